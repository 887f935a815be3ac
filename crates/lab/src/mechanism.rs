//! The ways in which one thread can make another go on, under one protocol.
//!
//! A mechanism is one file here and one line in [`ALL`]. It says how to make its two ends; what is
//! done with them (how many messages, stamped how, on which CPUs) is the engine's business, and no
//! mechanism knows of it. Every message carries a sequence number, and whatever else of it was
//! asked for, that the receiver verifies.

mod async_wake;
mod atomic;
mod condvar;
mod crossed;
mod eventfd;
mod fiber_switch;
mod function_call;
mod futex;
mod lanes;
mod message;
mod os_pipe;
mod park;
mod parking_lot_condvar;
mod pthread_condvar;
mod semaphore;
mod sleep_poll;
mod socketpair;
mod spin_yield;
mod std_condvar;
mod std_mpsc;
mod stream;
pub(crate) mod sysv_semaphore;
mod tcp_loopback;
#[cfg(test)]
pub(crate) mod tests;

pub use threadtoll_record::Class;
use threadtoll_record::{Layout, Pause, Subject};

use crate::exchange::{Ends, Exchange};
use crate::program::Program;

/// What a mechanism is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of one message, the sequence number included: a multiple of 8, at least 8.
    pub payload_bytes: usize,
    /// Where the counters lie.
    pub layout: Layout,
    /// Whether a spinning end pauses.
    pub pause: Pause,
}

/// A mechanism could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct Unavailable {
    /// What was tried.
    pub what: &'static str,
    /// What the system said.
    pub error: std::io::Error,
}

impl Unavailable {
    /// The system call `what` has just failed.
    pub(crate) fn last(what: &'static str) -> Self {
        Unavailable { what, error: std::io::Error::last_os_error() }
    }
}

/// A mechanism: what the registry knows of it.
#[derive(Clone, Copy)]
pub struct Mechanism {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub sentence: &'static str,
    /// How its ends wait.
    pub class: Class,
    /// Whether it has a choice of line layout.
    pub has_layout: bool,
    /// Whether it has a choice of pause hint.
    pub has_pause: bool,
    make: fn(&Settings) -> Result<Ends, Unavailable>,
}

impl std::fmt::Debug for Mechanism {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Mechanism {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Mechanism {
    /// What its cells measure.
    pub fn subject(&self) -> Subject {
        Subject::mechanism(self.name, self.class)
    }

    /// Makes the two ends, with every byte that they share allocated and touched by the calling
    /// thread.
    ///
    /// # Errors
    ///
    /// If the kernel refuses what the mechanism needs.
    pub(crate) fn make(&self, settings: &Settings) -> Result<Ends, Unavailable> {
        (self.make)(settings)
    }
}

impl Mechanism {
    /// What the threads of its cells run.
    pub(crate) fn program(&'static self, settings: Settings) -> Program {
        Program::Exchange { make: Box::new(move || self.make(&settings)), class: self.class }
    }
}

const fn plain(
    name: &'static str,
    class: Class,
    make: fn(&Settings) -> Result<Ends, Unavailable>,
    sentence: &'static str,
) -> Mechanism {
    Mechanism { name, sentence, class, has_layout: false, has_pause: false, make }
}

const fn line(
    name: &'static str,
    make: fn(&Settings) -> Result<Ends, Unavailable>,
    sentence: &'static str,
) -> Mechanism {
    Mechanism { name, sentence, class: Class::Spin, has_layout: true, has_pause: true, make }
}

/// Every mechanism, from the cheapest class to the dearest; the order of the contract.
#[rustfmt::skip]
pub const ALL: &[Mechanism] = &[
    plain("function-call", Class::OneThread, function_call::make, "a call that the compiler cannot inline, and its return"),
    plain("fiber-switch", Class::OneThread, fiber_switch::make, "a switch to a stackful coroutine on the same thread, and back"),
    plain("async-wake", Class::OneThread, async_wake::make, "a task waking another one on a single-threaded async runtime (tokio)"),
    line("atomic-store", atomic::make_store, "a counter that one end stores with release and the other spins on"),
    line("atomic-rmw", atomic::make_rmw, "a counter that one end increments with a locked instruction and the other spins on"),
    line("atomic-seqcst", atomic::make_seqcst, "a counter that one end stores with sequential consistency and the other spins on"),
    plain("spin-yield", Class::Poll, spin_yield::make, "a counter that the other end polls, yielding its CPU between looks"),
    plain("sleep-poll", Class::Poll, sleep_poll::make, "a counter that the other end polls, sleeping a microsecond between looks"),
    plain("futex", Class::Sleep, futex::make, "the bare futex system call: wait while the word is unchanged, wake one"),
    plain("park", Class::Sleep, park::make, "std::thread::park and unpark"),
    plain("std-condvar", Class::Sleep, std_condvar::make, "std Mutex and Condvar, signalled while the lock is held"),
    plain("std-condvar-after", Class::Sleep, std_condvar::make_after, "std Mutex and Condvar, signalled after unlocking"),
    plain("pthread-condvar", Class::Sleep, pthread_condvar::make, "pthread mutex and condition variable, signalled while the lock is held"),
    plain("pthread-condvar-after", Class::Sleep, pthread_condvar::make_after, "pthread mutex and condition variable, signalled after unlocking"),
    plain("parking-lot-condvar", Class::Sleep, parking_lot_condvar::make, "parking_lot Mutex and Condvar, signalled while the lock is held"),
    plain("parking-lot-condvar-after", Class::Sleep, parking_lot_condvar::make_after, "parking_lot Mutex and Condvar, signalled after unlocking"),
    plain("semaphore", Class::Sleep, semaphore::make, "POSIX semaphores: sem_post and sem_wait"),
    plain("sysv-semaphore", Class::Sleep, sysv_semaphore::make, "System V semaphores: every operation is a system call"),
    plain("eventfd", Class::Sleep, eventfd::make, "eventfd counters with blocking reads"),
    plain("os-pipe", Class::Sleep, os_pipe::make, "the message itself through a pair of pipes"),
    plain("socketpair", Class::Sleep, socketpair::make, "the message itself through a pair of Unix stream sockets"),
    plain("tcp-loopback", Class::Sleep, tcp_loopback::make, "the message itself through a TCP connection over loopback, without delay"),
    plain("std-mpsc", Class::Sleep, std_mpsc::make, "std::sync::mpsc channels with blocking receives"),
];

/// The mechanism of that name.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    ALL.iter().find(|mechanism| mechanism.name == name)
}

//! The ways in which one thread can make another go on, under one protocol.
//!
//! A mechanism is one file here and one line in the registry. It says how to make its two ends;
//! what is done with them (how many messages, stamped how, on which CPUs) is the engine's business,
//! and no mechanism knows of it. Every message carries a sequence number, and whatever else of it
//! was asked for, that the receiver verifies.

mod condvar;
mod crossed;
mod lanes;
mod message;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

pub use threadtoll_record::Class;
use threadtoll_record::{Layout, Pause, Subject};

use crate::program::{Make, Program};

pub use crate::error::Unavailable;
pub use crate::exchange::{Ends, Exchange, Solo};

/// Declares the files of mechanisms.
macro_rules! mechanisms {
    ($($vis:vis $file:ident),+ $(,)?) => {
        $($vis mod $file;)+

        fn ours() -> Vec<Mechanism> {
            let mut all = Vec::new();
            $(all.extend($file::mechanisms());)+
            all
        }
    };
}

// From the cheapest class to the most expensive one: the order in which they are listed.
mechanisms! {
    function_call,
    fiber_switch,
    async_wake,
    pub(crate) atomic,
    spin_yield,
    sleep_poll,
    futex,
    park,
    std_condvar,
    pthread_condvar,
    parking_lot_condvar,
    semaphore,
    pub(crate) sysv_semaphore,
    eventfd,
    os_pipe,
    socketpair,
    tcp_loopback,
    std_mpsc,
}

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

type MakeEnds = dyn Fn(&Settings) -> Result<Ends, Unavailable> + Send + Sync;

/// A mechanism, as a registry knows it.
#[derive(Clone)]
pub struct Mechanism {
    /// Its name on the command line and in files.
    pub name: String,
    /// Its description, in a sentence.
    pub sentence: String,
    /// How its ends wait.
    pub class: Class,
    /// Whether it has a choice of line layout.
    pub has_layout: bool,
    /// Whether it has a choice of pause hint.
    pub has_pause: bool,
    make: Arc<MakeEnds>,
}

impl std::fmt::Debug for Mechanism {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Mechanism {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Mechanism {
    /// A mechanism. `make` makes its two ends on the thread that will be the leading one, with
    /// every byte that they share allocated and touched.
    pub fn new(
        name: impl Into<String>,
        class: Class,
        sentence: impl Into<String>,
        make: impl Fn(&Settings) -> Result<Ends, Unavailable> + Send + Sync + 'static,
    ) -> Self {
        Mechanism {
            name: name.into(),
            sentence: sentence.into(),
            class,
            has_layout: false,
            has_pause: false,
            make: Arc::new(make),
        }
    }

    /// This mechanism, with a choice of line layout.
    pub fn with_layout(self) -> Self {
        Mechanism { has_layout: true, ..self }
    }

    /// This mechanism, with a choice of pause hint.
    pub fn with_pause(self) -> Self {
        Mechanism { has_pause: true, ..self }
    }

    /// The subject of its cells.
    pub fn subject(&self) -> Subject {
        Subject::mechanism(self.name.as_str(), self.class)
    }

    /// Makes the two ends.
    ///
    /// # Errors
    ///
    /// If the kernel refuses what the mechanism needs.
    pub(crate) fn make(&self, settings: &Settings) -> Result<Ends, Unavailable> {
        (self.make)(settings)
    }

    /// Makes the two ends on another thread, later.
    pub(crate) fn maker(&self, settings: Settings) -> Make<Ends> {
        let make = Arc::clone(&self.make);
        Box::new(move || make(&settings))
    }

    /// The program of the threads of its cells.
    pub(crate) fn program(&self, settings: Settings) -> Program {
        Program::Exchange { make: self.maker(settings), class: self.class }
    }
}

/// Every mechanism that can be named: ours first, then those that the caller adds.
#[derive(Clone, Debug)]
pub struct Mechanisms(Arc<[Mechanism]>);

impl Default for Mechanisms {
    fn default() -> Self {
        Self::with([])
    }
}

impl Mechanisms {
    /// Ours and these.
    pub fn with(extra: impl IntoIterator<Item = Mechanism>) -> Self {
        Mechanisms(ours().into_iter().chain(extra).collect())
    }

    /// All of them, ours first.
    pub fn all(&self) -> impl Iterator<Item = &Mechanism> + Clone {
        self.0.iter()
    }

    /// The mechanism of that name.
    pub fn find(&self, name: &str) -> Option<&Mechanism> {
        self.all().find(|mechanism| mechanism.name == name)
    }
}

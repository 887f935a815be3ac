//! The loops that pass messages back and forth, and the protocol that mechanisms keep.
//!
//! A round trip is a message from the leading end to the following end, and its echo. The leading
//! end takes the time stamps; the following end only answers, unless one-way times or its CPU are
//! asked for. All loops are monomorphised for each mechanism, so between two stamps there is
//! nothing but the mechanism itself.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;

use crate::cache_padded::CachePadded;

/// One end of a hand-off. Messages go back and forth in turns; sequence numbers start at 1 and rise
/// by 1 with each round trip.
pub trait Exchange: Send {
    /// Called once by the thread that will be this end, before the first message of either end.
    fn enter(&mut self) {}

    /// Hands over the message with this sequence number. Called only in turn.
    fn send(&mut self, seq: u64);

    /// Waits for the next message and returns its sequence number, or any other number if part of
    /// the message is wrong.
    fn receive(&mut self) -> u64;
}

/// Both ends on one thread: a message and its echo in one call.
pub trait Solo: Send {
    /// Sends the message and returns the sequence number of its echo.
    fn exchange(&mut self, seq: u64) -> u64;
}

/// The ends of a mechanism, ready to be given to threads.
pub struct Ends {
    pub(crate) lead: Box<dyn Lead>,
    /// `None` if one thread plays both.
    pub(crate) follow: Option<Box<dyn Follow>>,
}

impl Ends {
    /// The leading and the following end, each for a thread of its own.
    pub fn two(lead: impl Exchange + 'static, follow: impl Exchange + 'static) -> Self {
        Ends {
            lead: Box::new(TwoThreads(Some(lead))),
            follow: Some(Box::new(TwoThreads(Some(follow)))),
        }
    }

    /// Both ends on one thread.
    pub fn one(solo: impl Solo + 'static) -> Self {
        Self::of_one_thread(SingleThread(solo))
    }

    pub(crate) fn of_one_thread(lead: impl Lead + 'static) -> Self {
        Ends { lead: Box::new(lead), follow: None }
    }
}

impl std::fmt::Debug for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}

/// The leading end's orders: stretches of `per_stretch` round trips, with a mark before the first
/// and after each, until there were `stretches` of them or a mark was made at or after `until`. A
/// stamped block has stretches of one round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopSpec {
    /// Sequence number of the first message.
    pub(crate) first: u64,
    pub(crate) stretches: u64,
    pub(crate) per_stretch: u64,
    /// By the clock of the marks.
    pub(crate) until: u64,
}

/// What an end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopResult {
    /// Sequence number of the message after the last.
    pub(crate) next: u64,
    /// The bits in which messages differed from what was due: 0 if all were right.
    pub(crate) wrong: u64,
}

/// Round trips that close a pass. The following end looks for the last one while it waits for a
/// message, not between seeing and answering it, so it must be told one message ahead.
pub(crate) const DRAIN_ROUNDS: u64 = 2;

/// How the following end learns that a pass is over: the sequence number of its last message.
///
/// The leading end stores it before it sends the second-to-last message, so the following end,
/// having received that message, reads it. Between passes it is an old number, which never comes
/// again. It has a cache line of its own, which both ends only read while they are measured.
#[derive(Debug, Default)]
pub(crate) struct StopAt(CachePadded<AtomicU64>);

impl StopAt {
    // Relaxed on both sides: the message itself orders them.
    #[inline(always)]
    pub(crate) fn is(&self, seq: u64) -> bool {
        self.0.load(Ordering::Relaxed) == seq
    }

    #[inline(always)]
    pub(crate) fn announce(&self, seq: u64) {
        self.0.store(seq, Ordering::Relaxed);
    }
}

/// Where marks go. Buffers have room for the longest pass, and were touched before.
pub(crate) enum Stamps<'a> {
    /// Nowhere, and no clock is read.
    None,
    /// Nowhere, but the clock is read, so that a pass ends in time.
    Clock(&'a Clock),
    /// The time.
    Times(&'a Clock, &'a mut Vec<u64>),
    /// The time and the CPU.
    TimesAndCpus(&'a Clock, &'a mut Vec<u64>, &'a mut Vec<u32>),
}

/// The leading end, with its loop compiled for its mechanism.
pub(crate) trait Lead: Send {
    fn enter(&mut self);
    /// Runs the pass, and the round trips that close it.
    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult;
}

/// The following end, likewise.
pub(crate) trait Follow: Send {
    fn enter(&mut self);
    /// Echoes messages from the one numbered `first` to the last, marking the arrival of each.
    fn follow(&mut self, first: u64, last: &StopAt, marks: Stamps<'_>) -> LoopResult;
}

/// A way of marking, as a type, so that the loops are compiled for it.
pub(crate) trait Mark {
    /// Marks, and tells the time; 0 where no clock is read.
    fn mark(&mut self) -> u64;
}

pub(crate) struct Silent;

impl Mark for Silent {
    #[inline(always)]
    fn mark(&mut self) -> u64 {
        0
    }
}

pub(crate) struct Watching<'a>(pub(crate) &'a Clock);

impl Mark for Watching<'_> {
    #[inline(always)]
    fn mark(&mut self) -> u64 {
        self.0.stamp()
    }
}

pub(crate) struct Times<'a>(pub(crate) &'a Clock, pub(crate) &'a mut Vec<u64>);

impl Mark for Times<'_> {
    #[inline(always)]
    fn mark(&mut self) -> u64 {
        let now = self.0.stamp();
        self.1.push(now);
        now
    }
}

pub(crate) struct TimesAndCpus<'a>(
    pub(crate) &'a Clock,
    pub(crate) &'a mut Vec<u64>,
    pub(crate) &'a mut Vec<u32>,
);

impl Mark for TimesAndCpus<'_> {
    #[inline(always)]
    fn mark(&mut self) -> u64 {
        let (now, cpu) = self.0.stamp_cpu();
        self.1.push(now);
        self.2.push(cpu);
        now
    }
}

/// Runs `$body` with the way of marking that was asked for; `$body` is compiled once for each.
macro_rules! marking {
    ($marks:expr, $mark:ident => $body:expr) => {
        match $marks {
            $crate::exchange::Stamps::None => {
                let mut $mark = $crate::exchange::Silent;
                $body
            }
            $crate::exchange::Stamps::Clock(clock) => {
                let mut $mark = $crate::exchange::Watching(clock);
                $body
            }
            $crate::exchange::Stamps::Times(clock, times) => {
                let mut $mark = $crate::exchange::Times(clock, times);
                $body
            }
            $crate::exchange::Stamps::TimesAndCpus(clock, times, cpus) => {
                let mut $mark = $crate::exchange::TimesAndCpus(clock, times, cpus);
                $body
            }
        }
    };
}
pub(crate) use marking;

/// The loop of the leading end. `$exchange` sends the message with the sequence number `$seq` and
/// gives the echo's; it may await, which is why this is a macro: the async rung runs this very loop
/// inside its task.
macro_rules! lead_loop {
    ($spec:expr, $last:expr, $mark:ident, $seq:ident => $exchange:expr) => {{
        let spec: $crate::exchange::LoopSpec = $spec;
        let mut wrong = 0u64;
        let mut $seq = spec.first;
        $crate::exchange::Mark::mark(&mut $mark);
        for _ in 0..spec.stretches {
            for _ in 0..spec.per_stretch {
                let echo: u64 = $exchange;
                // Accumulated without a branch, checked once per block: verifying must not show in
                // the figures.
                wrong |= echo ^ $seq;
                $seq += 1;
            }
            if $crate::exchange::Mark::mark(&mut $mark) >= spec.until {
                break;
            }
        }
        $last.announce($seq + 1);
        for _ in 0..$crate::exchange::DRAIN_ROUNDS {
            let echo: u64 = $exchange;
            wrong |= echo ^ $seq;
            $seq += 1;
        }
        $crate::exchange::LoopResult { next: $seq, wrong }
    }};
}
pub(crate) use lead_loop;

/// Aligns the code that follows to a cache line. Each function with a measured loop calls it first.
///
/// A loop is compiled once in each crate that has a row for it, and functions begin wherever the
/// last one ended. Equal instructions would then be aligned differently, and need not be equally
/// fast.
#[inline(always)]
pub(crate) fn on_a_line() {
    // SAFETY: only padding is emitted, of instructions that do nothing.
    unsafe { std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
}

/// An end that is to have its loops.
///
/// While a loop runs, the end is moved out of here into a local variable whose address never
/// escapes. So the compiler keeps the end's state and the addresses of its counters in registers,
/// as it would in a program written for this mechanism alone. Behind a pointer, they would be
/// loaded and stored again around every atomic operation, and the few instructions between seeing a
/// message and answering it decide whether a line goes back and forth in 27 or in 50 ns.
///
/// It has cache lines of its own because one thread makes both ends side by side: the state that
/// one end keeps must not share a line with anything that the other end reads.
#[repr(align(128))]
struct TwoThreads<E>(Option<E>);

impl<E> TwoThreads<E> {
    /// Runs `body` on the end as a local variable, without a destructor that would need its
    /// address.
    #[inline(always)]
    fn with<T>(&mut self, body: impl FnOnce(&mut E) -> T) -> T {
        let Some(end) = self.0.take() else { unreachable!("the end is put back after every loop") };
        let mut end = ManuallyDrop::new(end);
        let result = body(&mut end);
        self.0 = Some(ManuallyDrop::into_inner(end));
        result
    }
}

impl<E: Exchange> Lead for TwoThreads<E> {
    fn enter(&mut self) {
        self.with(|end| end.enter());
    }

    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        on_a_line();
        marking!(marks, mark => self.with(
            #[inline(always)]
            |end| lead_loop!(spec, last, mark, seq => {
                end.send(seq);
                end.receive()
            })
        ))
    }
}

impl<E: Exchange> Follow for TwoThreads<E> {
    fn enter(&mut self) {
        self.with(|end| end.enter());
    }

    fn follow(&mut self, first: u64, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        on_a_line();
        marking!(marks, mark => self.with(
            #[inline(always)]
            |end| {
                let mut wrong = 0;
                let mut seq = first;
                let mut over = false;
                loop {
                    let received = end.receive();
                    mark.mark();
                    end.send(received);
                    wrong |= received ^ seq;
                    seq += 1;
                    if over {
                        break LoopResult { next: seq, wrong };
                    }
                    // The echo has left, but not that of the last message: the other end cannot be
                    // at its next pass.
                    over = last.is(seq);
                }
            }
        ))
    }
}

/// Both ends on one thread, with their loop.
struct SingleThread<S>(S);

impl<S: Solo> Lead for SingleThread<S> {
    fn enter(&mut self) {}

    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        marking!(marks, mark => lead_loop!(spec, last, mark, seq => self.0.exchange(seq)))
    }
}

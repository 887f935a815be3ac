//! Loops that pass messages back and forth between the two ends of a mechanism.
//!
//! A round trip is a message from the leading end to the following end, and its echo. The leading
//! end takes the time stamps. Loops are monomorphised for each mechanism, so that nothing but the
//! mechanism runs between two stamps.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;

use crate::cache_padded::CachePadded;

/// One end of a hand-off. The ends take turns; sequence numbers start at 1 and increase by 1 per
/// round trip.
pub trait Exchange: Send {
    /// Called once on the thread of this end, before the first message of either end.
    fn enter(&mut self) {}

    /// Sends the message with this sequence number. Called only when it is this end's turn.
    fn send(&mut self, seq: u64);

    /// Waits for the next message and returns its sequence number, or a different number if any
    /// part of the message is wrong.
    fn receive(&mut self) -> u64;
}

/// A mechanism whose two ends run on one thread.
pub trait Solo: Send {
    /// Sends a message and returns the sequence number of its echo.
    fn exchange(&mut self, seq: u64) -> u64;
}

/// Both ends of a mechanism, ready to move to their threads.
pub struct Ends {
    pub(crate) lead: Box<dyn Lead>,
    /// `None` if one thread is both ends.
    pub(crate) follow: Option<Box<dyn Follow>>,
}

impl Ends {
    /// A leading and a following end, each for its own thread.
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

/// One pass of the leading end: stretches of `per_stretch` round trips, with a mark (a reading of
/// the clock) before the first stretch and after each. The pass ends after `stretches` stretches,
/// or at the first mark that is not before `until`. In a stamped block, a stretch is one round
/// trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopSpec {
    pub(crate) first: u64,
    pub(crate) stretches: u64,
    pub(crate) per_stretch: u64,
    /// In clock ticks.
    pub(crate) until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopResult {
    pub(crate) next: u64,
    /// Bits in which any received sequence number differed from the expected one; 0 if all were
    /// right.
    pub(crate) wrong: u64,
}

/// Number of unmeasured round trips at the end of a pass. The following end checks if the next
/// message is the last one only after it has answered, so that the check delays no answer. It must
/// therefore learn the last sequence number one message early.
pub(crate) const DRAIN_ROUNDS: u64 = 2;

/// Sequence number of the last message of a pass, which tells the following end when to stop.
///
/// The leading end stores the number before it sends the second-to-last message, and the following
/// end reads the number after it has received that message. Until then, the number is that of an
/// earlier message, which is never sent again. The number has a cache line of its own, which
/// neither end writes during a measurement.
#[derive(Debug, Default)]
pub(crate) struct StopAt(CachePadded<AtomicU64>);

impl StopAt {
    // Relaxed on both sides: the messages already order the accesses.
    #[inline(always)]
    pub(crate) fn is(&self, seq: u64) -> bool {
        self.0.load(Ordering::Relaxed) == seq
    }

    #[inline(always)]
    pub(crate) fn announce(&self, seq: u64) {
        self.0.store(seq, Ordering::Relaxed);
    }
}

/// Destination of the marks. The buffers have room for the longest pass, and their pages have been
/// touched.
pub(crate) enum Stamps<'a> {
    None,
    /// Marks are not recorded. The clock is read only to end the pass in time.
    Clock(&'a Clock),
    Times(&'a Clock, &'a mut Vec<u64>),
    TimesAndCpus(&'a Clock, &'a mut Vec<u64>, &'a mut Vec<u32>),
}

pub(crate) trait Lead: Send {
    fn enter(&mut self);
    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult;
    /// Address of the measured loop.
    fn code(&self) -> usize {
        Self::lead as *const () as usize
    }
}

pub(crate) trait Follow: Send {
    fn enter(&mut self);
    fn follow(&mut self, first: u64, last: &StopAt, marks: Stamps<'_>) -> LoopResult;
    fn code(&self) -> usize {
        Self::follow as *const () as usize
    }
}

/// Each kind of mark is a type, so that the loops are compiled once for each kind.
pub(crate) trait Mark {
    /// Returns the time in clock ticks, or 0 if no clock is read.
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

/// The leading end's loop. `$exchange` sends the message with sequence number `$seq` and returns
/// the number of the echo. This is a macro because `$exchange` may await: the async mechanism runs
/// the loop inside its task.
macro_rules! lead_loop {
    ($spec:expr, $last:expr, $mark:ident, $seq:ident => $exchange:expr) => {{
        let spec: $crate::exchange::LoopSpec = $spec;
        let mut wrong = 0u64;
        let mut $seq = spec.first;
        $crate::exchange::Mark::mark(&mut $mark);
        for _ in 0..spec.stretches {
            for _ in 0..spec.per_stretch {
                let echo: u64 = $exchange;
                // Errors are accumulated without a branch and checked once per block, so that
                // verification does not slow the loop down.
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

/// Aligns the code that follows to a cache line. Functions with a measured loop call this first:
/// the loop is compiled in every crate that instantiates it, and without alignment, equal
/// instructions could differ in speed between crates.
#[inline(always)]
pub(crate) fn on_a_line() {
    // SAFETY: only emits padding instructions.
    unsafe { std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
}

/// Moves an end into a local variable whose address never escapes, runs `body` on it, and moves it
/// back.
///
/// The compiler can then keep the end's state in registers. Behind a pointer, the state would be
/// reloaded and stored around every atomic operation. The instructions between receiving and
/// answering decide whether a cache line goes back and forth in 27 or in 50 ns. The variable has no
/// destructor, because a destructor would need its address.
#[inline(always)]
pub(crate) fn with<E, T>(place: &mut Option<E>, body: impl FnOnce(&mut E) -> T) -> T {
    let Some(end) = place.take() else { unreachable!("the end is put back after every loop") };
    let mut end = ManuallyDrop::new(end);
    let result = body(&mut end);
    *place = Some(ManuallyDrop::into_inner(end));
    result
}

/// On cache lines of its own: one thread allocates both ends, and an end's private state must not
/// share a line with anything that the other end reads.
#[repr(align(128))]
struct TwoThreads<E>(Option<E>);

impl<E: Exchange> Lead for TwoThreads<E> {
    fn enter(&mut self) {
        with(&mut self.0, |end| end.enter());
    }

    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        on_a_line();
        marking!(marks, mark => with(
            &mut self.0,
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
        with(&mut self.0, |end| end.enter());
    }

    fn follow(&mut self, first: u64, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        on_a_line();
        marking!(marks, mark => with(
            &mut self.0,
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
                    // The number read here belongs to the current pass: the last message of this
                    // pass has not been echoed yet, so the leading end cannot have begun the next
                    // pass.
                    over = last.is(seq);
                }
            }
        ))
    }
}

struct SingleThread<S>(S);

impl<S: Solo> Lead for SingleThread<S> {
    fn enter(&mut self) {}

    fn lead(&mut self, spec: LoopSpec, last: &StopAt, marks: Stamps<'_>) -> LoopResult {
        marking!(marks, mark => lead_loop!(spec, last, mark, seq => self.0.exchange(seq)))
    }
}

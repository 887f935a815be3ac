//! The loops that pass messages back and forth, and the protocol that mechanisms keep.
//!
//! A round trip is a message from the leading end to the following one and its echo. The leading end stamps; the
//! following end only answers, unless one-way times or its CPU are asked for. All loops are compiled anew for each
//! mechanism, so between two stamps there is nothing but the mechanism itself.

use threadtoll_machine::clock::Clock;

/// One end of a hand-off. Messages go back and forth in turns; sequence numbers start at 1 and rise by 1 with each
/// round trip.
pub(crate) trait Exchange: Send {
    /// Called once by the thread that will be this end, before the first message of either end.
    fn enter(&mut self) {}

    /// Hands over the message with this sequence number. Called only in turn.
    fn send(&mut self, seq: u64);

    /// Waits for the next message and returns its sequence number; anything else if a part of it is wrong.
    fn receive(&mut self) -> u64;
}

/// Both ends on one thread: a message and its echo in one call.
pub(crate) trait Solo: Send {
    /// Sends the message and returns the sequence number of its echo.
    fn exchange(&mut self, seq: u64) -> u64;
}

/// The ends of a mechanism, ready to be given to threads.
pub(crate) enum Ends {
    /// One thread plays both.
    One(Box<dyn Lead>),
    /// Two threads.
    Two(Box<dyn Lead>, Box<dyn Follow>),
}

impl Ends {
    pub(crate) fn two(lead: impl Exchange + 'static, follow: impl Exchange + 'static) -> Self {
        Ends::Two(Box::new(lead), Box::new(follow))
    }

    pub(crate) fn one(solo: impl Solo + 'static) -> Self {
        Ends::One(Box::new(Alone(solo)))
    }
}

/// What the leading end is told to do: `stretches` times `per_stretch` round trips, with a mark before the first and
/// after each stretch. A stamped block has stretches of one round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    /// Sequence number of the first message.
    pub(crate) first: u64,
    pub(crate) stretches: u64,
    pub(crate) per_stretch: u64,
}

/// Where marks go. Buffers are as large as the course is long, and were touched before.
pub(crate) enum Marks<'a> {
    /// Nowhere: the following end of most blocks, and warming up.
    None,
    /// The time.
    Times(&'a Clock, &'a mut Vec<u64>),
    /// The time and the CPU.
    TimesAndCpus(&'a Clock, &'a mut Vec<u64>, &'a mut Vec<u32>),
}

/// The leading end, with its loop compiled for its mechanism.
pub(crate) trait Lead: Send {
    fn enter(&mut self);
    /// Runs the course and returns the number of wrong messages (as bits that differed, so 0 if none did).
    fn lead(&mut self, course: Course, marks: Marks<'_>) -> u64;
}

/// The following end, likewise.
pub(crate) trait Follow: Send {
    fn enter(&mut self);
    /// Echoes that many messages, marking the arrival of each; returns 0 if all were right.
    fn follow(&mut self, first: u64, count: u64, marks: Marks<'_>) -> u64;
}

/// A way of marking, as a type, so that the loops are compiled for it.
pub(crate) trait Mark {
    fn mark(&mut self);
}

struct Silent;

impl Mark for Silent {
    #[inline(always)]
    fn mark(&mut self) {}
}

struct Times<'a>(&'a Clock, &'a mut Vec<u64>);

impl Mark for Times<'_> {
    #[inline(always)]
    fn mark(&mut self) {
        let now = self.0.stamp();
        self.1.push(now);
    }
}

struct TimesAndCpus<'a>(&'a Clock, &'a mut Vec<u64>, &'a mut Vec<u32>);

impl Mark for TimesAndCpus<'_> {
    #[inline(always)]
    fn mark(&mut self) {
        let (now, cpu) = self.0.stamp_cpu();
        self.1.push(now);
        self.2.push(cpu);
    }
}

/// Runs `$body` with the way of marking that was asked for; `$body` is compiled once for each.
macro_rules! marking {
    ($marks:expr, $mark:ident => $body:expr) => {
        match $marks {
            $crate::exchange::Marks::None => {
                let mut $mark = $crate::exchange::silent();
                $body
            }
            $crate::exchange::Marks::Times(clock, times) => {
                let mut $mark = $crate::exchange::times(clock, times);
                $body
            }
            $crate::exchange::Marks::TimesAndCpus(clock, times, cpus) => {
                let mut $mark = $crate::exchange::times_and_cpus(clock, times, cpus);
                $body
            }
        }
    };
}
pub(crate) use marking;

pub(crate) fn silent() -> impl Mark {
    Silent
}

pub(crate) fn times<'a>(clock: &'a Clock, times: &'a mut Vec<u64>) -> impl Mark + use<'a> {
    Times(clock, times)
}

pub(crate) fn times_and_cpus<'a>(
    clock: &'a Clock,
    times: &'a mut Vec<u64>,
    cpus: &'a mut Vec<u32>,
) -> impl Mark + use<'a> {
    TimesAndCpus(clock, times, cpus)
}

/// The loop of the leading end. `$exchange` sends the message with the sequence number `$seq` and gives the echo's; it
/// may await, which is why this is a macro: the async rung runs the very same loop inside its task.
macro_rules! lead_loop {
    ($course:expr, $mark:ident, $seq:ident => $exchange:expr) => {{
        let course: $crate::exchange::Course = $course;
        let mut wrong = 0u64;
        let mut $seq = course.first;
        $crate::exchange::Mark::mark(&mut $mark);
        for _ in 0..course.stretches {
            for _ in 0..course.per_stretch {
                let echo: u64 = $exchange;
                // Gathered without a branch, looked at once per block: verifying must not show in the figures.
                wrong |= echo ^ $seq;
                $seq += 1;
            }
            $crate::exchange::Mark::mark(&mut $mark);
        }
        wrong
    }};
}
pub(crate) use lead_loop;

impl<E: Exchange> Lead for E {
    fn enter(&mut self) {
        Exchange::enter(self);
    }

    fn lead(&mut self, course: Course, marks: Marks<'_>) -> u64 {
        marking!(marks, mark => lead_loop!(course, mark, seq => {
            self.send(seq);
            self.receive()
        }))
    }
}

impl<E: Exchange> Follow for E {
    fn enter(&mut self) {
        Exchange::enter(self);
    }

    fn follow(&mut self, first: u64, count: u64, marks: Marks<'_>) -> u64 {
        marking!(marks, mark => {
            let mut wrong = 0;
            for seq in first..first + count {
                let received = self.receive();
                mark.mark();
                wrong |= received ^ seq;
                self.send(received);
            }
            wrong
        })
    }
}

struct Alone<S>(S);

impl<S: Solo> Lead for Alone<S> {
    fn enter(&mut self) {}

    fn lead(&mut self, course: Course, marks: Marks<'_>) -> u64 {
        marking!(marks, mark => lead_loop!(course, mark, seq => self.0.exchange(seq)))
    }
}

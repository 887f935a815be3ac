//! `threadtoll`'s call: request and answer share one cache line, so one object serves both
//! directions of `ask-reply`.

use threadtoll::call::{Callee, Caller, Options};
use threadtoll::wait::Wait;

use super::{Capacity, OUR_WAITS, Queue, Way};
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};

pub(super) fn queues() -> [Queue; 1] {
    let ways = OUR_WAITS.map(|(waiting, wait)| Way::exchange_only(wait, move || ends(waiting)));
    let sentence = "threadtoll's call: request and answer through one cache line; the caller waits";
    [Queue::ours("call", sentence, Capacity::Fixed, ways.into())]
}

fn ends(wait: Wait) -> Result<Ends, Unavailable> {
    let (caller, callee) = Options::new().wait(wait).line();
    Ok(Ends::two(Asks { caller, answer: 0 }, Answers(callee)))
}

struct Asks {
    caller: Caller<u64, u64>,
    answer: u64,
}

impl Exchange for Asks {
    /// Makes the whole call. The next `receive` returns the answer.
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // The call cannot fail: the other end is dropped only at the end of the run.
        self.answer = self.caller.call(seq).unwrap_or(0);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.answer
    }
}

struct Answers(Callee<u64, u64>);

impl Exchange for Answers {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        self.0.answer(seq);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.0.recv().unwrap_or(0)
    }
}

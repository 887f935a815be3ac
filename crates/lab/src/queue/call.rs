//! `threadtoll`'s call: request and answer share one cache line, so one object serves both
//! directions of `ask-reply`.

use threadtoll::call::{Callee, Caller, Options};
use threadtoll::wait::{Adaptive, Park, Spin, SpinYield, Wait as Waiting};
use threadtoll_record::Wait;

use super::{Capacity, Queue, Way};
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};

pub(super) fn queues() -> [Queue; 1] {
    let ways = vec![
        Way::exchange_only(Wait::Spin, ends::<Spin>),
        Way::exchange_only(Wait::SpinYield, ends::<SpinYield>),
        Way::exchange_only(Wait::Adaptive, ends::<Adaptive>),
        Way::exchange_only(Wait::Park, ends::<Park>),
    ];
    let sentence = "threadtoll's call: request and answer through one cache line; the caller waits";
    [Queue::ours("call", sentence, Capacity::Fixed, ways)]
}

fn ends<W: Waiting>() -> Result<Ends, Unavailable> {
    let (caller, callee) = Options::new().wait(W::default()).line();
    Ok(Ends::two(Asks { caller, answer: 0 }, Answers(callee)))
}

struct Asks<W: Waiting> {
    caller: Caller<u64, u64, W>,
    answer: u64,
}

impl<W: Waiting> Exchange for Asks<W> {
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

struct Answers<W: Waiting>(Callee<u64, u64, W>);

impl<W: Waiting> Exchange for Answers<W> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        self.0.answer(seq);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.0.recv().unwrap_or(0)
    }
}

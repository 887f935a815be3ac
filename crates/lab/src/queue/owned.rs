//! `threadtoll`'s owner: the asker sends a closure to the thread that owns the state, and waits for
//! what it returns. So one object serves both directions of `ask-reply`.

use std::collections::VecDeque;
use std::thread::yield_now;
use std::time::Duration;

use threadtoll::error::AskError;
use threadtoll::owned::{Handle, Options, Owner};
use threadtoll::wait::Wait;

use super::{Capacity, OUR_WAITS, Queue, Way};
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};

pub(super) fn queues() -> [Queue; 1] {
    let ways = OUR_WAITS.map(|(waiting, wait)| Way::exchange_only(wait, move || ends(waiting)));
    let sentence = "threadtoll's owner: closures run on the thread that owns the state; asks wait";
    [Queue::ours("owned", sentence, Capacity::Unbounded, ways.into())]
}

/// Numbers that the closures have brought, and `receive` has not returned: a round may run two.
type State = VecDeque<u64>;

fn ends(wait: Wait) -> Result<Ends, Unavailable> {
    let (owner, handle) = Options::new().wait(wait).build(VecDeque::with_capacity(2));
    Ok(Ends::two(Asks { handle, answer: 0 }, Runs(owner)))
}

struct Asks {
    handle: Handle<State>,
    answer: u64,
}

impl Exchange for Asks {
    /// Asks and waits. The next `receive` returns the answer.
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        let ask = || {
            self.handle.ask(move |numbers, _| {
                numbers.push_back(seq);
                seq
            })
        };
        let mut asked = ask();
        // The threads may have changed roles, and the other one may not run the owner yet.
        while asked == Err(AskError::OwnThread) {
            yield_now();
            asked = ask();
        }
        self.answer = asked.unwrap_or(0);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.answer
    }
}

struct Runs(Owner<State>);

impl Exchange for Runs {
    /// The owner has answered already.
    #[inline(always)]
    fn send(&mut self, _: u64) {}

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        loop {
            if let Some(seq) = self.0.state_mut().pop_front() {
                return seq;
            }
            if !self.0.run_once(Duration::MAX) {
                return 0;
            }
        }
    }
}

//! `threadtoll`'s owner: closures run on the thread that owns the state.
//!
//! In `ask-reply`, the asker sends a closure and waits for what it returns, so one object serves
//! both directions. In the other scenarios, a message is a closure that is posted and brings the
//! message to the state.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::yield_now;
use std::time::Duration;

use threadtoll::error::AskError;
use threadtoll::owned::{Handle, Options, Owner};
use threadtoll::wait::Wait;

use super::way::ways;
use super::{Capacity, Channel, Message, Queue, Sink, Source, Way, ask_reply, open_loop, stream};
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};
use crate::program::Program;

pub(super) fn queues() -> [Queue; 1] {
    let sentence = "threadtoll's owner: closures are posted to the state's thread; ask-reply asks";
    [Queue::ours("owned", sentence, Capacity::Unbounded, ways(way))]
}

fn way(waiting: Wait, wait: threadtoll_record::Wait) -> Way {
    let posting = Way::many_senders_of(Posting(waiting), wait);
    let posts = Arc::clone(&posting.programs);
    Way {
        programs: Arc::new(move |scenario, usage| {
            if scenario == ask_reply::SCENARIO.name {
                let make = Arc::new(move || asking(waiting));
                return Some(Program::Exchange { make, class: usage.class });
            }
            let is_posted = [stream::SCENARIO.name, open_loop::SCENARIO.name].contains(&scenario);
            is_posted.then(|| posts(scenario, usage)).flatten()
        }),
        ..posting
    }
}

/// Messages that closures have brought, and `receive` has not returned.
type Brought<M> = VecDeque<M>;

/// Runs the owner until a message is there.
#[inline(always)]
fn next<M>(owner: &mut Owner<Brought<M>>) -> Option<M> {
    loop {
        if let Some(message) = owner.state_mut().pop_front() {
            return Some(message);
        }
        if !owner.run_once(Duration::MAX) {
            return None;
        }
    }
}

#[derive(Clone, Copy)]
struct Posting(Wait);

impl<M: Message> Channel<M> for Posting {
    type Source = Posts<M>;
    type Sink = Runs<M>;

    fn open(&self, _: usize) -> Result<(Posts<M>, Runs<M>), Unavailable> {
        let (owner, handle) = Options::new().wait(self.0).build(VecDeque::with_capacity(64));
        Ok((Posts(handle), Runs(owner)))
    }
}

struct Posts<M>(Handle<Brought<M>>);

impl<M> Clone for Posts<M> {
    fn clone(&self) -> Self {
        Posts(self.0.clone())
    }
}

impl<M: Message> Source<M> for Posts<M> {
    #[inline(always)]
    fn send(&mut self, message: M) {
        // It cannot fail: the owner is dropped only at the end of the run.
        let _ = self.0.post(move |brought, _| brought.push_back(message));
    }
}

struct Runs<M>(Owner<Brought<M>>);

impl<M: Message> Sink<M> for Runs<M> {
    #[inline(always)]
    fn receive(&mut self) -> M {
        next(&mut self.0).unwrap_or_else(|| M::all(0))
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        take(&[self.receive()]);
        let more = self.0.state_mut().len().min(limit - 1);
        self.0.state_mut().drain(..more).for_each(|message| take(&[message]));
        1 + more
    }
}

fn asking(wait: Wait) -> Result<Ends, Unavailable> {
    let (owner, handle) = Options::new().wait(wait).build(VecDeque::with_capacity(2));
    Ok(Ends::two(Asks { handle, answer: 0 }, Answers(owner)))
}

struct Asks {
    handle: Handle<Brought<u64>>,
    answer: u64,
}

impl Exchange for Asks {
    /// Asks and waits. The next `receive` returns the answer.
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        let ask = || {
            self.handle.ask(move |brought, _| {
                brought.push_back(seq);
                seq
            })
        };
        let mut asked = ask();
        // The threads may have changed roles, and the other one may not run the owner yet.
        while asked == Err(AskError::OwnThread) {
            yield_now();
            asked = ask();
        }
        // It cannot fail: the owner is dropped only at the end of the run.
        self.answer = asked.unwrap_or(0);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.answer
    }
}

struct Answers(Owner<Brought<u64>>);

impl Exchange for Answers {
    /// The owner has answered already.
    #[inline(always)]
    fn send(&mut self, _: u64) {}

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        next(&mut self.0).unwrap_or(0)
    }
}

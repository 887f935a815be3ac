//! `threadtoll`'s owner: closures run on the thread that owns the state.
//!
//! In `ask-reply`, the asker sends a closure and waits for what it returns, so one object serves
//! both directions. In the other scenarios, a message is a closure that is posted and brings the
//! message to the state.
//!
//! Two more rows show what sockets cost posts. An owner with sockets always sleeps in the kernel.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream as Peer;
use std::sync::Arc;
use std::thread::yield_now;
use std::time::Duration;

use mio::Interest;
use mio::net::UnixStream;
use threadtoll::error::AskError;
use threadtoll::owned::{Context, Handle, Options, Owner};
use threadtoll::wait::Wait;

use super::way::ways;
use super::{Capacity, Channel, Message, Queue, Sink, Source, Way, ask_reply, open_loop, stream};
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};
use crate::program::Program;

pub(super) fn queues() -> [Queue; 3] {
    let queue = |name, sentence, beside| {
        let way = move |waiting, wait| way(Posting { wait: waiting, beside }, wait);
        let mut ways = ways(way);
        // With sockets, other waits are the same.
        ways.retain(|way| beside == Beside::Nothing || way.wait == threadtoll_record::Wait::Park);
        Queue::ours(name, sentence, Capacity::Unbounded, ways)
    };
    [
        queue(
            "owned",
            "threadtoll's owner: closures are posted to the state's thread; ask-reply asks",
            Beside::Nothing,
        ),
        queue("owned-socket", "an owner that also serves a socket, which is quiet", Beside::Quiet),
        queue(
            "owned-ready-socket",
            "an owner that also serves a socket, which always has something to read",
            Beside::Ready,
        ),
    ]
}

fn way(posting: Posting, wait: threadtoll_record::Wait) -> Way {
    let posts = Way::many_senders_of(posting, wait);
    let programs = Arc::clone(&posts.programs);
    Way {
        programs: Arc::new(move |scenario, usage| {
            if scenario == ask_reply::SCENARIO.name {
                let make = Arc::new(move || asking(posting));
                return Some(Program::Exchange { make, class: usage.class });
            }
            let is_posted = [stream::SCENARIO.name, open_loop::SCENARIO.name].contains(&scenario);
            is_posted.then(|| programs(scenario, usage)).flatten()
        }),
        ..posts
    }
}

/// The owner's state.
struct Brought<M> {
    /// Messages that closures have brought, and `receive` has not returned.
    messages: VecDeque<M>,
    /// A socket that the owner serves, and its other end.
    socket: Option<(UnixStream, Peer)>,
}

/// The socket that an owner serves, besides running what is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// A socket that is never ready.
    Quiet,
    /// A socket that is always ready: each byte that is read is sent again.
    Ready,
}

/// Runs the owner until a message is there.
#[inline(always)]
fn next<M>(owner: &mut Owner<Brought<M>>) -> Option<M> {
    loop {
        if let Some(message) = owner.state_mut().messages.pop_front() {
            return Some(message);
        }
        if !owner.run_once(Duration::MAX) {
            return None;
        }
    }
}

#[derive(Clone, Copy)]
struct Posting {
    wait: Wait,
    beside: Beside,
}

type OwnerAndHandle<M> = (Owner<Brought<M>>, Handle<Brought<M>>);

impl Posting {
    fn build<M: Send + 'static>(self) -> Result<OwnerAndHandle<M>, Unavailable> {
        let served = |error| Unavailable::new("the owner's socket", error);
        let socket = match self.beside {
            Beside::Nothing => None,
            Beside::Quiet | Beside::Ready => Some(socket().map_err(served)?),
        };
        let serves = socket.is_some();
        let brought = Brought { messages: VecDeque::with_capacity(64), socket };
        let (owner, handle) = Options::new().wait(self.wait).build(brought);
        if serves {
            let ready = self.beside == Beside::Ready;
            // It cannot fail: the owner is there.
            let _ = handle.post(move |brought, context| serve(brought, context, ready));
        }
        Ok((owner, handle))
    }
}

fn socket() -> io::Result<(UnixStream, Peer)> {
    let (peer, own) = Peer::pair()?;
    own.set_nonblocking(true)?;
    Ok((UnixStream::from_std(own), peer))
}

/// Runs on the owner's thread.
///
/// # Panics
///
/// If the owner cannot serve the socket, so that no figure of another owner stands in its row.
fn serve<M>(brought: &mut Brought<M>, context: &mut Context<Brought<M>>, ready: bool) {
    let Some((own, peer)) = &mut brought.socket else { return };
    let send_again = |brought: &mut Brought<M>, _: &mut Context<Brought<M>>, _: &_| {
        let Some((own, peer)) = &mut brought.socket else { return };
        let mut byte = [0];
        if own.read_exact(&mut byte).is_ok() {
            let _ = peer.write_all(&byte);
        }
    };
    let served = context.register(own, Interest::READABLE, send_again);
    assert!(served.is_ok(), "the owner's socket: {served:?}");
    if ready {
        let _ = peer.write_all(&[1]);
    }
}

impl<M: Message> Channel<M> for Posting {
    type Source = Posts<M>;
    type Sink = Runs<M>;

    fn open(&self, _: usize) -> Result<(Posts<M>, Runs<M>), Unavailable> {
        let (owner, handle) = self.build()?;
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
        let _ = self.0.post(move |brought, _| brought.messages.push_back(message));
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
        let messages = &mut self.0.state_mut().messages;
        let more = messages.len().min(limit - 1);
        messages.drain(..more).for_each(|message| take(&[message]));
        1 + more
    }
}

fn asking(posting: Posting) -> Result<Ends, Unavailable> {
    let (owner, handle) = posting.build()?;
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
                brought.messages.push_back(seq);
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

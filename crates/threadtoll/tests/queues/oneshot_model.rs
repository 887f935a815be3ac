//! Random calls of both ends of a one-shot, compared with what each of them must return, and with
//! the wakers that it must wake or drop.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use threadtoll::error::{RecvTimeoutError, SendError, TryRecvError};
use threadtoll::oneshot::{Receiver, Sender, channel};

use crate::element::{Aligned, Bomb, Counted, Element, Ledger, cases, surviving};
use crate::waker::Record;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    DropSender,
    Recv,
    TryRecv,
    RecvTimeout,
    /// With the first or the second waker.
    Poll(usize),
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Send),
        1 => Just(Step::DropSender),
        3 => Just(Step::Recv),
        3 => Just(Step::TryRecv),
        2 => Just(Step::RecvTimeout),
        8 => (0..2usize).prop_map(Step::Poll),
        1 => Just(Step::DropReceiver),
    ]
}

/// A channel, and what is expected of it.
struct Run<T> {
    sender: Option<Sender<T>>,
    receiver: Option<Receiver<T>>,
    ledger: Arc<Ledger>,
    /// Number of the message.
    id: u64,
    is_inside: bool,
    wakers: [Arc<Record>; 2],
    wakes: [usize; 2],
    /// The waker that waits.
    waiting: Option<usize>,
}

impl<T: Element> Run<T> {
    fn new(id: u64) -> Self {
        let (sender, receiver) = channel();
        Run {
            sender: Some(sender),
            receiver: Some(receiver),
            ledger: Arc::default(),
            id,
            is_inside: false,
            wakers: [Record::new(), Record::new()],
            wakes: [0; 2],
            waiting: None,
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Send => {
                let Some(sender) = self.sender.take() else { return };
                match sender.send(T::make(self.id, &self.ledger)) {
                    Ok(()) => {
                        assert!(self.receiver.is_some(), "nobody is there to receive it");
                        self.is_inside = true;
                    }
                    Err(SendError(message)) => {
                        assert!(self.receiver.is_none(), "the receiver is there");
                        self.dispose(message);
                    }
                }
                self.wake();
            }
            Step::DropSender => {
                self.sender = None;
                self.wake();
            }
            Step::Recv if self.is_inside || self.sender.is_none() => {
                self.receive(|receiver, _| receiver.recv().map_err(TryRecvError::from));
            }
            Step::Recv | Step::TryRecv => self.receive(|receiver, _| receiver.try_recv()),
            Step::RecvTimeout => {
                self.receive(|receiver, waiting| {
                    let received = receiver.recv_timeout(Duration::ZERO);
                    received.map_err(|error| match error {
                        RecvTimeoutError::Timeout => {
                            *waiting = None;
                            TryRecvError::Empty
                        }
                        RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                        error => panic!("{error}"),
                    })
                });
            }
            Step::Poll(which) => {
                let waker = self.wakers[which].waker();
                self.receive(|receiver, waiting| {
                    match receiver.poll_recv(&mut Context::from_waker(&waker)) {
                        Poll::Ready(received) => received.map_err(TryRecvError::from),
                        Poll::Pending => {
                            *waiting = Some(which);
                            Err(TryRecvError::Empty)
                        }
                    }
                });
            }
            Step::DropReceiver => {
                let receiver = self.receiver.take();
                let survived = surviving(|| drop(receiver));
                assert!(survived || self.is_inside, "there is no message to drop");
                (self.is_inside, self.waiting) = (false, None);
            }
        }
    }

    /// Drops a message, which must be the one that was sent.
    fn dispose(&self, message: T) {
        assert!(message.is(self.id), "another message");
        surviving(|| drop(message));
    }

    /// The sender is gone.
    fn wake(&mut self) {
        if let Some(which) = self.waiting.take() {
            self.wakes[which] += 1;
        }
    }

    /// Calls a method of the receiver, if that is there.
    fn receive(
        &mut self,
        method: impl FnOnce(&mut Receiver<T>, &mut Option<usize>) -> Result<T, TryRecvError>,
    ) {
        let Some(receiver) = &mut self.receiver else { return };
        match method(receiver, &mut self.waiting) {
            Ok(message) => {
                assert!(self.is_inside, "there was no message");
                self.is_inside = false;
                self.dispose(message);
            }
            Err(error) => {
                assert!(!self.is_inside, "the message is there");
                let expected = match self.sender {
                    Some(_) => TryRecvError::Empty,
                    None => TryRecvError::Disconnected,
                };
                assert_eq!(error, expected);
            }
        }
    }

    /// Checks what both ends report, and the wakers.
    fn look(&self) {
        if let Some(sender) = &self.sender {
            assert_eq!(sender.is_disconnected(), self.receiver.is_none());
        }
        if let Some(receiver) = &self.receiver {
            assert_eq!(receiver.is_disconnected(), self.sender.is_none());
        }
        for (which, waker) in self.wakers.iter().enumerate() {
            assert_eq!(waker.wakes(), self.wakes[which], "wake-ups of waker {which}");
            assert_eq!(waker.alive(), usize::from(self.waiting == Some(which)), "waker {which}");
        }
    }
}

fn agrees<T: Element>() {
    let config =
        ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(id in 0..100u64, steps in vec(step(), 0..16), sender_first: bool)| {
        let mut run = Run::<T>::new(id);
        run.look();
        let mut ends = [Step::DropSender, Step::DropReceiver];
        if !sender_first {
            ends.reverse();
        }
        for step in steps.into_iter().chain(ends) {
            run.apply(step);
            run.look();
        }
        run.ledger.assert_settled();
    });
}

macro_rules! agrees_for {
    ($($name:ident: $element:ty;)+) => {$(
        #[test]
        fn $name() {
            agrees::<$element>();
        }
    )+};
}

agrees_for! {
    words: u64;
    nothings: ();
    a_line: [u64; 8];
    five_lines_long: [u8; 300];
    strictly_aligned: Aligned;
    boxed: Box<u64>;
    counted: Counted;
    panicking_in_drop: Bomb;
}

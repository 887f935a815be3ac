//! Every verb of a pipe, in any order, against a `VecDeque`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use threadtoll::error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use threadtoll::pipe::{Options, Receiver, Sender};

use crate::element::{Aligned, Bomb, Counted, Element, Ledger, cases, surviving};

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    TrySend,
    SendTimeout,
    SendSlice(usize),
    SendAll(usize),
    /// Messages to claim, and the part of them, in 256ths, to fill and send; `None` drops the
    /// claim.
    Claim(usize, Option<usize>),
    Recv,
    TryRecv,
    RecvTimeout,
    /// So many are moved out before the rest is dropped, or the batch forgotten.
    Batch(usize, bool),
    TryIter(usize),
    Peek,
    Lengths,
    DropSender,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    let many = prop_oneof![4 => 0..12usize, 2 => 0..200usize, 1 => 0..3000usize];
    prop_oneof![
        12 => Just(Step::Send),
        8 => Just(Step::TrySend),
        2 => Just(Step::SendTimeout),
        6 => many.clone().prop_map(Step::SendSlice),
        3 => many.clone().prop_map(Step::SendAll),
        6 => (1..400usize, prop::option::weighted(0.7, 0..=256usize)).prop_map(|(most, part)| Step::Claim(most, part)),
        10 => Just(Step::Recv),
        8 => Just(Step::TryRecv),
        2 => Just(Step::RecvTimeout),
        10 => (0..100usize, prop::bool::weighted(0.1)).prop_map(|(taken, forgets)| Step::Batch(taken, forgets)),
        4 => many.prop_map(Step::TryIter),
        3 => Just(Step::Peek),
        4 => Just(Step::Lengths),
        1 => prop_oneof![8 => Just(Step::Lengths), 1 => Just(Step::DropSender), 1 => Just(Step::DropReceiver)],
    ]
}

/// Messages of a page, which is the longest record: the length of an unbounded pipe may be off by
/// this many.
fn per_record<T>() -> usize {
    4096usize.checked_div(size_of::<T>()).unwrap_or(1 << 16).max(1)
}

/// A pipe and what should be in it.
struct Run<T> {
    sender: Option<Sender<T>>,
    receiver: Option<Receiver<T>>,
    ledger: Arc<Ledger>,
    next: u64,
    inside: VecDeque<u64>,
    /// A batch was forgotten, so that the sender does not know yet what it took.
    forgotten: bool,
}

impl<T: Element> Run<T> {
    fn new(capacity: Option<usize>, segment: usize, retain: usize) -> Self {
        let options = Options::new().segment(segment).retain(retain);
        let (sender, receiver) = match capacity {
            Some(capacity) => options.bounded(capacity),
            None => options.unbounded(),
        };
        assert_eq!((sender.capacity(), receiver.capacity()), (capacity, capacity));
        Run {
            sender: Some(sender),
            receiver: Some(receiver),
            ledger: Arc::default(),
            next: 0,
            inside: VecDeque::new(),
            forgotten: false,
        }
    }

    fn make(&mut self) -> T {
        self.next += 1;
        T::make(self.next - 1, &self.ledger)
    }

    /// The last so many messages that were made went in, and the receiver knows.
    fn went_in(&mut self, count: u64) {
        self.inside.extend(self.next - count..self.next);
    }

    /// The message that was made last was handed back.
    fn handed_back(&mut self, message: T) {
        assert!(message.is(self.next - 1), "another message was handed back");
        surviving(|| drop(message));
    }

    fn came_out(&mut self, message: T) {
        let id = self.inside.pop_front().expect("a message came out of an empty pipe");
        assert!(message.is(id), "message {id} was another one");
        surviving(|| drop(message));
    }

    fn nothing_there(&self) {
        assert!(self.inside.is_empty(), "messages are there");
        assert!(self.sender.is_some(), "the sender is gone");
    }

    fn all_received(&self) {
        assert!(self.inside.is_empty() && self.sender.is_none(), "not the end: {:?}", self.inside);
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Recv
            | Step::TryRecv
            | Step::RecvTimeout
            | Step::Batch(..)
            | Step::TryIter(_)
            | Step::Peek => {
                if let Some(mut receiver) = self.receiver.take() {
                    self.receive(step, &mut receiver);
                    self.receiver = Some(receiver);
                }
            }
            Step::Lengths => self.look_at_lengths(),
            Step::DropSender => {
                let sender = self.sender.take();
                assert!(surviving(|| drop(sender)) || self.receiver.is_none());
            }
            Step::DropReceiver => {
                let receiver = self.receiver.take();
                surviving(|| drop(receiver));
                self.inside.clear();
            }
            _ => {
                if let Some(mut sender) = self.sender.take() {
                    self.send(step, &mut sender);
                    self.sender = Some(sender);
                }
            }
        }
    }

    fn look_at_lengths(&mut self) {
        let inside = self.inside.len();
        if let Some(receiver) = &self.receiver {
            let len = receiver.len();
            assert_eq!(len, inside);
            assert_eq!(receiver.is_empty(), len == 0);
            assert_eq!(receiver.is_disconnected(), self.sender.is_none());
            if let Some(sender) = &self.sender {
                let late = if sender.capacity().is_some() { 0 } else { per_record::<T>() };
                let len = sender.len();
                assert!((inside..=inside + late).contains(&len) || self.forgotten && len > inside);
                assert!(!sender.is_empty() || inside == 0);
                assert!(sender.same_channel(receiver) && receiver.same_channel(sender));
                let full = receiver.capacity() == Some(inside);
                assert_eq!(receiver.is_full(), full);
                assert!(sender.is_full() == full || self.forgotten);
            }
        }
        if let Some(sender) = &self.sender {
            assert_eq!(sender.is_disconnected(), self.receiver.is_none());
        }
    }

    fn send(&mut self, step: Step, sender: &mut Sender<T>) {
        let alive = self.receiver.is_some();
        let room = match sender.capacity() {
            Some(capacity) if alive => capacity - sender.len(),
            _ => usize::MAX,
        };
        match step {
            Step::Send if room > 0 => {
                let message = self.make();
                match sender.send(message) {
                    Ok(()) => {
                        assert!(alive);
                        self.went_in(1);
                    }
                    Err(SendError(message)) => {
                        assert!(!alive);
                        self.handed_back(message);
                    }
                }
            }
            Step::Send | Step::TrySend => {
                let message = self.make();
                match sender.try_send(message) {
                    Ok(()) => {
                        assert!(alive && (room > 0 || self.forgotten));
                        self.went_in(1);
                    }
                    Err(TrySendError::Full(message)) => {
                        assert!(alive && room == 0);
                        self.handed_back(message);
                    }
                    Err(TrySendError::Disconnected(message)) => {
                        assert!(!alive);
                        self.handed_back(message);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::SendTimeout => {
                let message = self.make();
                match sender.send_timeout(message, Duration::ZERO) {
                    Ok(()) => {
                        assert!(alive && (room > 0 || self.forgotten));
                        self.went_in(1);
                    }
                    Err(SendTimeoutError::Timeout(message)) => {
                        assert!(alive && room == 0);
                        self.handed_back(message);
                    }
                    Err(SendTimeoutError::Disconnected(message)) => {
                        assert!(!alive);
                        self.handed_back(message);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::SendSlice(many) => {
                let many = many.min(room) as u64;
                let ids = self.next..self.next + many;
                match T::send_slice(sender, ids, &self.ledger) {
                    None => {}
                    Some(Ok(())) => {
                        assert!(alive || many == 0);
                        self.next += many;
                        self.went_in(many);
                    }
                    Some(Err(error)) => {
                        assert!(!alive && matches!(error, SendError(_)));
                    }
                }
                if !alive {
                    self.inside.clear();
                }
            }
            Step::SendAll(many) => {
                let many = many.min(room) as u64;
                let sent = sender.send_all((0..many).map(|_| self.make()));
                match sent {
                    Ok(sent) => {
                        assert_eq!(sent as u64, many);
                        assert!(alive || many == 0);
                        if alive && many > 0 {
                            self.went_in(many);
                        }
                    }
                    Err(SendError(message)) => {
                        assert!(!alive);
                        self.handed_back(message);
                    }
                }
            }
            Step::Claim(most, part) if room > 0 => {
                let mut claim = match sender.claim(most) {
                    Ok(claim) => {
                        assert!(alive);
                        claim
                    }
                    Err(error) => {
                        assert!(!alive && error == SendError(()));
                        return;
                    }
                };
                let places = claim.room();
                assert!(!places.is_empty() && places.len() <= most.min(room));
                // Whoever borrows the room may write all over it.
                // SAFETY: any bytes will do for a `MaybeUninit`.
                unsafe { std::ptr::write_bytes(places.as_mut_ptr(), 0xa5, places.len()) };
                let Some(part) = part else { return };
                let count = places.len() * part / 256;
                for place in &mut places[..count] {
                    place.write(T::make(self.next, &self.ledger));
                    self.next += 1;
                }
                // SAFETY: so many were written.
                assert_eq!(unsafe { claim.send(count) }, Ok(()));
                self.went_in(count as u64);
            }
            _ => {}
        }
    }

    fn receive(&mut self, step: Step, receiver: &mut Receiver<T>) {
        let waits_not = !self.inside.is_empty() || self.sender.is_none();
        match step {
            Step::Recv if waits_not => match receiver.recv() {
                Ok(message) => {
                    self.came_out(message);
                    self.forgotten = false;
                }
                Err(error) => {
                    assert_eq!(error, RecvError);
                    self.all_received();
                }
            },
            Step::Recv | Step::TryRecv => match receiver.try_recv() {
                Ok(message) => {
                    self.came_out(message);
                    self.forgotten = false;
                }
                Err(TryRecvError::Empty) => self.nothing_there(),
                Err(error) => {
                    assert_eq!(error, TryRecvError::Disconnected);
                    self.all_received();
                }
            },
            Step::RecvTimeout => match receiver.recv_timeout(Duration::ZERO) {
                Ok(message) => {
                    self.came_out(message);
                    self.forgotten = false;
                }
                Err(RecvTimeoutError::Timeout) => self.nothing_there(),
                Err(error) => {
                    assert_eq!(error, RecvTimeoutError::Disconnected);
                    self.all_received();
                }
            },
            Step::Batch(taken, forgets) => {
                let batch = if waits_not {
                    receiver.recv_batch().map_err(TryRecvError::from)
                } else {
                    receiver.try_recv_batch()
                };
                let mut batch = match batch {
                    Ok(batch) => batch,
                    Err(TryRecvError::Empty) => return self.nothing_there(),
                    Err(error) => {
                        assert_eq!(error, TryRecvError::Disconnected);
                        return self.all_received();
                    }
                };
                let there = batch.len();
                assert!(0 < there && there <= self.inside.len());
                for (message, &id) in batch.iter().zip(&self.inside) {
                    assert!(message.is(id), "message {id} was another one");
                }
                for message in batch.by_ref().take(taken) {
                    self.came_out(message);
                }
                let left = there.saturating_sub(taken);
                assert_eq!(batch.len(), left);
                if forgets {
                    std::mem::forget(batch);
                    self.forgotten |= taken > 0;
                } else {
                    surviving(|| drop(batch));
                    self.inside.drain(..left);
                    self.forgotten = false;
                }
            }
            Step::TryIter(many) => {
                for message in receiver.try_iter().take(many) {
                    self.came_out(message);
                    self.forgotten = false;
                }
            }
            Step::Peek => match receiver.peek() {
                Some(message) => assert!(self.inside.front().is_some_and(|&id| message.is(id))),
                None => assert!(self.inside.is_empty()),
            },
            _ => {}
        }
    }

    /// Both ends go, in this order, and everything is accounted for.
    fn finish(mut self, sender_first: bool) {
        let ends = if sender_first {
            [Step::DropSender, Step::DropReceiver]
        } else {
            [Step::DropReceiver, Step::DropSender]
        };
        ends.into_iter().for_each(|end| self.apply(end));
        self.ledger.assert_settled();
    }
}

fn try_out<T: Element>(
    capacity: Option<usize>,
    (segment, retain): (usize, usize),
    steps: &[Step],
    sender_first: bool,
) {
    let mut run = Run::<T>::new(capacity, segment, retain);
    for &step in steps {
        run.apply(step);
    }
    run.finish(sender_first);
}

macro_rules! against_the_model {
    ($($name:ident: $type:ty;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: cases(32), failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    capacity in prop_oneof![
                        3 => (1..=40usize).prop_map(Some),
                        1 => (41..3000usize).prop_map(Some),
                        2 => Just(None),
                    ],
                    segment in prop_oneof![Just(0usize), Just(4 << 10), Just(256 << 10)],
                    retain in prop_oneof![Just(0usize), Just(2 << 10), Just(1 << 20)],
                    steps in vec(step(), 0..120),
                    sender_first: bool,
                ) {
                    try_out::<$type>(capacity, (segment, retain), &steps, sender_first);
                }
            )+
        }
    };
}

against_the_model! {
    bytes: u8;
    words: u64;
    nothings: ();
    as_long_as_a_line: [u8; 60];
    just_too_long_for_a_line: [u64; 9];
    five_lines_long: [u8; 300];
    strictly_aligned: Aligned;
    boxed: Box<u64>;
    counted: Counted;
    panicking_in_drop: Bomb;
}

//! Every verb of a funnel, in any order, against a `VecDeque`.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use threadtoll::error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use threadtoll::funnel::{Options, Receiver, Sender};

use crate::element::{Aligned, Bomb, Counted, Element, Ledger, cases, surviving};

/// What an iterator of messages does.
#[derive(Clone, Copy, Debug)]
enum Manners {
    Honest,
    /// Gives only so many of those that it promised.
    Short(usize),
    /// Panics after so many.
    Panics(usize),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize),
    TrySend(usize),
    SendTimeout(usize),
    SendAll(usize, Manners),
    SendSlice(usize, usize),
    Clone(usize),
    DropSender(usize),
    Recv,
    TryRecv,
    RecvTimeout,
    RecvMany(usize),
    Drain(usize),
    TryIter(usize),
    Peek,
    Lengths,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    let many = prop_oneof![4 => 0..12usize, 2 => 0..200usize, 1 => 0..3000usize];
    let manners = prop_oneof![
        4 => Just(Manners::Honest),
        1 => (0..20usize).prop_map(Manners::Short),
        1 => (0..20usize).prop_map(Manners::Panics),
    ];
    prop_oneof![
        20 => any::<usize>().prop_map(Step::Send),
        8 => any::<usize>().prop_map(Step::TrySend),
        2 => any::<usize>().prop_map(Step::SendTimeout),
        8 => (many.clone(), manners).prop_map(|(many, manners)| Step::SendAll(many, manners)),
        4 => (any::<usize>(), many.clone()).prop_map(|(which, many)| Step::SendSlice(which, many)),
        2 => any::<usize>().prop_map(Step::Clone),
        1 => any::<usize>().prop_map(Step::DropSender),
        10 => Just(Step::Recv),
        8 => Just(Step::TryRecv),
        2 => Just(Step::RecvTimeout),
        4 => many.clone().prop_map(Step::RecvMany),
        4 => many.clone().prop_map(Step::Drain),
        4 => many.prop_map(Step::TryIter),
        3 => Just(Step::Peek),
        4 => Just(Step::Lengths),
        1 => prop_oneof![16 => Just(Step::Lengths), 1 => Just(Step::DropReceiver)],
    ]
}

/// Promises more than it may give.
struct Batch<'a, T> {
    run: &'a mut Run<T>,
    left: usize,
    gives: usize,
    panics: bool,
}

impl<T: Element> Iterator for Batch<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.gives == 0 {
            if self.panics {
                resume_unwind(Box::new("an iterator that panics"));
            }
            return None;
        }
        self.gives -= 1;
        self.left -= 1;
        Some(self.run.make())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Element> ExactSizeIterator for Batch<'_, T> {}

struct Run<T> {
    senders: Vec<Sender<T>>,
    receiver: Option<Receiver<T>>,
    capacity: Option<usize>,
    ledger: Arc<Ledger>,
    next: u64,
    inside: VecDeque<u64>,
    /// Tickets that were given up count as messages until the receiver comes to them.
    voids: bool,
}

impl<T: Element> Run<T> {
    fn new(capacity: Option<usize>, retain: usize) -> Self {
        let options = Options::new().retain(retain);
        let (sender, receiver) = match capacity {
            Some(capacity) => options.bounded(capacity),
            None => options.unbounded(),
        };
        Run {
            senders: vec![sender],
            receiver: Some(receiver),
            capacity,
            ledger: Arc::default(),
            next: 0,
            inside: VecDeque::new(),
            voids: false,
        }
    }

    fn make(&mut self) -> T {
        self.next += 1;
        T::make(self.next - 1, &self.ledger)
    }

    fn went_in(&mut self) {
        assert!(self.receiver.is_some());
        self.inside.push_back(self.next - 1);
    }

    fn handed_back(&mut self, message: T) {
        assert!(message.is(self.next - 1), "another message was handed back");
        surviving(|| drop(message));
    }

    fn came_out(&mut self, message: T) {
        let id = self.inside.pop_front().expect("a message came out of an empty funnel");
        assert!(message.is(id), "message {id} was another one");
        surviving(|| drop(message));
    }

    /// Number of messages that a sender can send without waiting.
    fn room(&self, sender: &Sender<T>) -> usize {
        match self.capacity {
            Some(capacity) if self.receiver.is_some() => capacity - sender.len(),
            _ => usize::MAX,
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Send(which)
            | Step::TrySend(which)
            | Step::SendTimeout(which)
            | Step::SendAll(which, _)
            | Step::SendSlice(which, _)
            | Step::Clone(which) => self.send(step, which),
            Step::DropSender(which) => {
                if !self.senders.is_empty() {
                    let sender = self.senders.swap_remove(which % self.senders.len());
                    surviving(|| drop(sender));
                }
            }
            Step::DropReceiver => {
                let receiver = self.receiver.take();
                surviving(|| drop(receiver));
                self.inside.clear();
            }
            _ => {
                if let Some(mut receiver) = self.receiver.take() {
                    self.receive(step, &mut receiver);
                    self.receiver = Some(receiver);
                }
            }
        }
    }

    fn send(&mut self, step: Step, which: usize) {
        if self.senders.is_empty() {
            return;
        }
        let which = which % self.senders.len();
        let sender = self.senders.swap_remove(which);
        let alive = self.receiver.is_some();
        let room = self.room(&sender);
        match step {
            Step::Clone(_) => self.senders.push(sender.clone()),
            // A sender that waited for room would wait for ever: nobody else is there.
            Step::Send(_) if room > 0 => {
                let message = self.make();
                match sender.send(message) {
                    Ok(()) => self.went_in(),
                    Err(SendError(message)) => {
                        assert!(!alive);
                        self.handed_back(message);
                    }
                }
            }
            Step::SendSlice(_, many) => self.send_slice(&sender, many.min(room)),
            Step::SendTimeout(_) => {
                let message = self.make();
                match sender.send_timeout(message, Duration::ZERO) {
                    Ok(()) => self.went_in(),
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
            Step::SendAll(many, manners) => self.send_all(&sender, many.min(room), manners),
            _ => {
                let message = self.make();
                match sender.try_send(message) {
                    Ok(()) => self.went_in(),
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
        }
        self.senders.push(sender);
    }

    fn send_slice(&mut self, sender: &Sender<T>, many: usize) {
        let ids = self.next..self.next + many as u64;
        match T::send_slice_to_funnel(sender, ids.clone(), &self.ledger) {
            None => {}
            Some(Ok(())) => {
                assert!(self.receiver.is_some() || many == 0);
                self.inside.extend(ids);
                self.next += many as u64;
            }
            Some(Err(SendError(sent))) => assert!(self.receiver.is_none() && sent == 0),
        }
    }

    fn send_all(&mut self, sender: &Sender<T>, many: usize, manners: Manners) {
        let (gives, panics) = match manners {
            Manners::Honest => (many, false),
            Manners::Short(count) => (count.min(many), false),
            Manners::Panics(count) => (count.min(many), count < many),
        };
        let alive = self.receiver.is_some();
        let first = self.next;
        let batch = Batch { run: self, left: many, gives, panics };
        let mut left = None;
        let survived = surviving(|| {
            left = sender.send_all(batch).err().map(|SendError(rest)| rest.len());
        });
        if alive {
            assert_eq!((survived, left), (!panics, None));
            assert_eq!(self.next - first, gives as u64);
            self.inside.extend(first..self.next);
            self.voids |= gives < many;
        } else {
            assert_eq!(left, (many > 0).then_some(many));
        }
    }

    fn nothing_there(&self) {
        assert!(self.inside.is_empty() && !self.senders.is_empty());
    }

    fn all_received(&self) {
        assert!(self.inside.is_empty() && self.senders.is_empty());
    }

    fn receive(&mut self, step: Step, receiver: &mut Receiver<T>) {
        let waits_not = !self.inside.is_empty() || self.senders.is_empty();
        match step {
            Step::Recv if waits_not => match receiver.recv() {
                Ok(message) => self.came_out(message),
                Err(error) => {
                    assert_eq!(error, RecvError);
                    self.all_received();
                }
            },
            Step::RecvTimeout => match receiver.recv_timeout(Duration::ZERO) {
                Ok(message) => self.came_out(message),
                Err(RecvTimeoutError::Timeout) => self.nothing_there(),
                Err(error) => {
                    assert_eq!(error, RecvTimeoutError::Disconnected);
                    self.all_received();
                }
            },
            Step::RecvMany(most) if waits_not => {
                let mut messages = Vec::new();
                match receiver.recv_many(&mut messages, most) {
                    Ok(count) => {
                        assert_eq!(count, messages.len());
                        assert_eq!(count, most.min(self.inside.len()));
                        messages.into_iter().for_each(|message| self.came_out(message));
                    }
                    Err(error) => {
                        assert_eq!(error, RecvError);
                        self.all_received();
                    }
                }
            }
            Step::Drain(most) => {
                let there = self.inside.len();
                assert_eq!(receiver.drain(most, |message| self.came_out(message)), most.min(there));
            }
            Step::TryIter(most) => {
                receiver.try_iter().take(most).for_each(|message| self.came_out(message));
            }
            Step::Peek => {
                match receiver.peek() {
                    Some(message) => assert!(self.inside.front().is_some_and(|&id| message.is(id))),
                    None => assert!(self.inside.is_empty()),
                }
                // Senders know the room that it passed over.
                let len = receiver.len();
                assert!(self.senders.iter().all(|sender| sender.len() == len));
            }
            Step::Lengths => {
                let len = receiver.len();
                assert!(len == self.inside.len() || self.voids && len > self.inside.len());
                assert_eq!(receiver.is_empty(), len == 0);
                assert_eq!(receiver.is_disconnected(), self.senders.is_empty());
                assert_eq!(receiver.capacity(), self.capacity);
                assert!(self.senders.iter().all(|sender| !sender.is_disconnected()));
            }
            _ => match receiver.try_recv() {
                Ok(message) => self.came_out(message),
                Err(TryRecvError::Empty) => self.nothing_there(),
                Err(error) => {
                    assert_eq!(error, TryRecvError::Disconnected);
                    self.all_received();
                }
            },
        }
    }

    fn finish(mut self, senders_first: bool) {
        if !senders_first {
            self.apply(Step::DropReceiver);
        }
        while !self.senders.is_empty() {
            self.apply(Step::DropSender(0));
        }
        self.apply(Step::DropReceiver);
        self.ledger.assert_settled();
    }
}

fn try_out<T: Element>(
    capacity: Option<usize>,
    retain: usize,
    steps: &[Step],
    senders_first: bool,
) {
    let mut run = Run::<T>::new(capacity, retain);
    for &step in steps {
        run.apply(step);
    }
    run.finish(senders_first);
}

macro_rules! against_the_model {
    ($($name:ident: $type:ty;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: cases(32), failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    capacity in prop_oneof![Just(None), (1..100usize).prop_map(Some)],
                    retain in prop_oneof![Just(0usize), Just(1 << 20)],
                    steps in vec(step(), 0..120),
                    senders_first: bool,
                ) {
                    try_out::<$type>(capacity, retain, &steps, senders_first);
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
    five_lines_long: [u8; 300];
    strictly_aligned: Aligned;
    boxed: Box<u64>;
    counted: Counted;
    panicking_in_drop: Bomb;
}

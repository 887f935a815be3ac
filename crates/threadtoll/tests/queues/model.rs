//! All methods of a queue, in any order, against a `VecDeque`. `pipe_model` and `funnel_model` add
//! the methods that only one of them has, and define how far it may differ from the reference.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use threadtoll::error::{
    RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};

use crate::element::{Element, Ledger, cases, surviving};
use crate::verbs::{ReceiverVerbs, SenderVerbs, State};

/// A kind of queue. A value holds how far the queue differs from the reference at the moment.
pub(crate) trait Queue<T: Element>: Sized {
    type Sender: SenderVerbs<T>;
    type Receiver: ReceiverVerbs<T>;
    type Options: Debug;
    /// A method that other queues do not have.
    type Verb: Clone + Debug + 'static;

    fn options() -> impl Strategy<Value = Self::Options>;

    fn open(
        options: Self::Options,
        capacity: Option<usize>,
    ) -> (Self, Self::Sender, Self::Receiver);

    fn verbs() -> BoxedStrategy<Self::Verb>;

    fn apply(run: &mut Run<T, Self>, verb: Self::Verb);

    /// Asserts that the length that an end reports is allowed.
    fn check_len(&self, end: End, len: usize, inside: usize);

    /// Returns `true` if a sender that finds the queue full may still have room.
    fn makes_room(&self) -> bool {
        false
    }

    /// The receiver received a message.
    fn received(&mut self) {}

    /// The receiver peeked.
    fn peeked(_: &[Self::Sender], _: &Self::Receiver) {}
}

/// An end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// A method call, and the sender that makes it.
#[derive(Clone, Copy, Debug)]
enum Step<V> {
    Send(usize),
    TrySend(usize),
    SendTimeout(usize),
    SendSlice(usize, usize),
    Recv,
    TryRecv,
    RecvTimeout,
    RecvMany(usize),
    Drain(usize),
    TryIter(usize),
    Peek,
    DropSender(usize),
    DropReceiver,
    Own(V),
}

/// Number of messages in a batch.
pub(crate) fn many() -> impl Strategy<Value = usize> + Clone {
    prop_oneof![4 => 0..12usize, 2 => 0..200usize, 1 => 0..3000usize]
}

fn step<T: Element, Q: Queue<T>>() -> impl Strategy<Value = Step<Q::Verb>> {
    prop_oneof![
        16 => any::<usize>().prop_map(Step::Send),
        8 => any::<usize>().prop_map(Step::TrySend),
        2 => any::<usize>().prop_map(Step::SendTimeout),
        5 => (any::<usize>(), many()).prop_map(|(which, many)| Step::SendSlice(which, many)),
        10 => Just(Step::Recv),
        8 => Just(Step::TryRecv),
        2 => Just(Step::RecvTimeout),
        3 => many().prop_map(Step::RecvMany),
        3 => many().prop_map(Step::Drain),
        3 => many().prop_map(Step::TryIter),
        3 => Just(Step::Peek),
        16 => Q::verbs().prop_map(Step::Own),
        // Rarely, because little can go wrong afterwards.
        1 => prop_oneof![
            8 => Just(Step::Peek),
            1 => any::<usize>().prop_map(Step::DropSender),
            1 => Just(Step::DropReceiver),
        ],
    ]
}

/// A queue and its expected content.
pub(crate) struct Run<T: Element, Q: Queue<T>> {
    pub(crate) queue: Q,
    pub(crate) senders: Vec<Q::Sender>,
    pub(crate) receiver: Option<Q::Receiver>,
    capacity: Option<usize>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) next: u64,
    pub(crate) inside: VecDeque<u64>,
}

impl<T: Element, Q: Queue<T>> Run<T, Q> {
    fn new(options: Q::Options, capacity: Option<usize>) -> Self {
        let (queue, sender, receiver) = Q::open(options, capacity);
        Run {
            queue,
            senders: vec![sender],
            receiver: Some(receiver),
            capacity,
            ledger: Arc::default(),
            next: 0,
            inside: VecDeque::new(),
        }
    }

    pub(crate) fn make(&mut self) -> T {
        self.next += 1;
        T::make(self.next - 1, &self.ledger)
    }

    /// The last `count` messages were accepted.
    pub(crate) fn went_in(&mut self, count: usize) {
        assert!(count == 0 || self.receiver.is_some(), "nobody is there to receive it");
        self.inside.extend(self.next - count as u64..self.next);
    }

    /// The last message was handed back.
    pub(crate) fn handed_back(&mut self, message: T) {
        assert!(self.receiver.is_none(), "the receiver is there");
        self.is_last(message);
    }

    fn is_last(&self, message: T) {
        assert!(message.is(self.next - 1), "another message was handed back");
        surviving(|| drop(message));
    }

    pub(crate) fn came_out(&mut self, message: T) {
        let id = self.inside.pop_front().expect("a message came out of an empty queue");
        assert!(message.is(id), "message {id} was another one");
        surviving(|| drop(message));
        self.queue.received();
    }

    /// The receiver got an error.
    pub(crate) fn nothing_came(&self, why: TryRecvError) {
        assert!(self.inside.is_empty(), "messages are there: {:?}", self.inside);
        let expected = match self.senders.is_empty() {
            true => TryRecvError::Disconnected,
            false => TryRecvError::Empty,
        };
        assert_eq!(why, expected);
    }

    /// Returns `true` if the receiver would not wait for ever.
    pub(crate) fn can_receive(&self) -> bool {
        !self.inside.is_empty() || self.senders.is_empty()
    }

    /// Calls `body` with a sender, if there is one, and the number of messages that it can send
    /// without waiting.
    pub(crate) fn with_sender(
        &mut self,
        which: usize,
        body: impl FnOnce(&mut Self, &mut Q::Sender, usize),
    ) {
        if self.senders.is_empty() {
            return;
        }
        let mut sender = self.senders.swap_remove(which % self.senders.len());
        let room = match self.capacity {
            Some(capacity) if self.receiver.is_some() => capacity - sender.state().len,
            _ => usize::MAX,
        };
        body(self, &mut sender, room);
        self.senders.push(sender);
    }

    /// Calls `body` with the receiver, if there is one.
    pub(crate) fn with_receiver(&mut self, body: impl FnOnce(&mut Self, &mut Q::Receiver)) {
        if let Some(mut receiver) = self.receiver.take() {
            body(self, &mut receiver);
            self.receiver = Some(receiver);
        }
    }

    fn apply(&mut self, step: Step<Q::Verb>) {
        match step {
            Step::Send(which) => self.with_sender(which, |run, sender, room| {
                let message = run.make();
                // A sender would wait for room for ever.
                let sent = match room {
                    0 => sender.try_send(message),
                    _ => sender.send(message).map_err(TrySendError::from),
                };
                run.sent(sent, room);
            }),
            Step::TrySend(which) => self.with_sender(which, |run, sender, room| {
                let message = run.make();
                run.sent(sender.try_send(message), room);
            }),
            Step::SendTimeout(which) => self.with_sender(which, |run, sender, room| {
                let message = run.make();
                let sent = sender.send_timeout(message, Duration::ZERO);
                let without_time = |error| match error {
                    SendTimeoutError::Timeout(message) => TrySendError::Full(message),
                    SendTimeoutError::Disconnected(message) => TrySendError::Disconnected(message),
                    error => panic!("{error}"),
                };
                run.sent(sent.map_err(without_time), room);
            }),
            Step::SendSlice(which, many) => self.with_sender(which, |run, sender, room| {
                run.send_slice(sender, many.min(room));
            }),
            Step::Recv if self.can_receive() => self.with_receiver(|run, receiver| {
                run.tried(receiver.recv().map_err(TryRecvError::from));
            }),
            Step::Recv | Step::TryRecv => self.with_receiver(|run, receiver| {
                run.tried(receiver.try_recv());
            }),
            Step::RecvTimeout => self.with_receiver(|run, receiver| {
                let without_time = |error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                    error => panic!("{error}"),
                };
                run.tried(receiver.recv_timeout(Duration::ZERO).map_err(without_time));
            }),
            Step::RecvMany(most) if most == 0 || self.can_receive() => {
                self.with_receiver(|run, receiver| run.recv_many(receiver, most));
            }
            Step::RecvMany(most) | Step::Drain(most) => self.with_receiver(|run, receiver| {
                let expected = most.min(run.inside.len());
                assert_eq!(receiver.drain(most, |message| run.came_out(message)), expected);
            }),
            Step::TryIter(most) => self.with_receiver(|run, receiver| {
                let expected = run.inside.len().saturating_sub(most);
                receiver.try_iter().take(most).for_each(|message| run.came_out(message));
                assert_eq!(run.inside.len(), expected, "it ended too early");
            }),
            Step::Peek => self.with_receiver(|run, receiver| {
                match receiver.peek() {
                    Some(message) => assert!(run.inside.front().is_some_and(|&id| message.is(id))),
                    None => assert!(run.inside.is_empty()),
                }
                Q::peeked(&run.senders, receiver);
            }),
            Step::DropSender(which) => self.drop_sender(which),
            Step::DropReceiver => {
                let receiver = self.receiver.take();
                surviving(|| drop(receiver));
                self.inside.clear();
            }
            Step::Own(verb) => Q::apply(self, verb),
        }
    }

    fn sent(&mut self, outcome: Result<(), TrySendError<T>>, room: usize) {
        match outcome {
            Ok(()) => {
                assert!(room > 0 || self.queue.makes_room(), "it was full");
                self.went_in(1);
            }
            Err(TrySendError::Full(message)) => {
                assert!(self.receiver.is_some() && room == 0, "it was not full");
                self.is_last(message);
            }
            Err(TrySendError::Disconnected(message)) => self.handed_back(message),
            Err(error) => panic!("{error}"),
        }
    }

    fn send_slice(&mut self, sender: &mut Q::Sender, many: usize) {
        let ids = self.next..self.next + many as u64;
        match T::send_slice(sender, ids, &self.ledger) {
            None => {}
            Some(Ok(())) => {
                self.next += many as u64;
                self.went_in(many);
            }
            Some(Err(SendError(sent))) => assert!(self.receiver.is_none() && sent == 0),
        }
    }

    fn tried(&mut self, outcome: Result<T, TryRecvError>) {
        match outcome {
            Ok(message) => self.came_out(message),
            Err(error) => self.nothing_came(error),
        }
    }

    fn recv_many(&mut self, receiver: &mut Q::Receiver, most: usize) {
        let expected = most.min(self.inside.len());
        let mut messages = Vec::new();
        match receiver.recv_many(&mut messages, most) {
            Ok(count) => {
                assert_eq!((count, messages.len()), (expected, expected));
                messages.into_iter().for_each(|message| self.came_out(message));
            }
            Err(error) => self.nothing_came(error.into()),
        }
    }

    pub(crate) fn drop_sender(&mut self, which: usize) {
        if !self.senders.is_empty() {
            let sender = self.senders.swap_remove(which % self.senders.len());
            let survived = surviving(|| drop(sender));
            assert!(survived || self.receiver.is_none(), "messages are the receiver's to drop");
        }
    }

    /// Checks what both ends report.
    fn look(&self) {
        let check = |end: End, told: State, is_disconnected: bool| {
            let expected = State {
                len: told.len,
                is_empty: told.len == 0,
                is_full: self.capacity == Some(told.len),
                is_disconnected,
                capacity: self.capacity,
            };
            assert_eq!(told, expected, "{end:?}");
            if self.receiver.is_some() {
                self.queue.check_len(end, told.len, self.inside.len());
            }
        };
        for sender in &self.senders {
            check(End::Sender, sender.state(), self.receiver.is_none());
        }
        if let Some(receiver) = &self.receiver {
            check(End::Receiver, receiver.state(), self.senders.is_empty());
        }
    }

    /// Drops both ends, in this order, and checks that all messages were dropped.
    fn finish(mut self, senders_first: bool) {
        if !senders_first {
            self.apply(Step::DropReceiver);
        }
        while !self.senders.is_empty() {
            self.drop_sender(0);
            self.look();
        }
        self.apply(Step::DropReceiver);
        self.ledger.assert_settled();
    }
}

/// Runs the calls on the queue and the reference.
pub(crate) fn agrees<T: Element, Q: Queue<T>>() {
    let capacity = prop_oneof![
        3 => (1..=40usize).prop_map(Some),
        1 => (41..3000usize).prop_map(Some),
        2 => Just(None),
    ];
    let config =
        ProptestConfig { cases: cases(32), failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(
        options in Q::options(),
        capacity in capacity,
        steps in vec(step::<T, Q>(), 0..120),
        senders_first: bool,
    )| {
        let mut run = Run::<T, Q>::new(options, capacity);
        run.look();
        for step in steps {
            run.apply(step);
            run.look();
        }
        run.finish(senders_first);
    });
}

/// A property per shape of message.
macro_rules! agrees_for_all_elements {
    ($queue:ty) => {
        $crate::model::agrees_for_all_elements! { $queue;
            bytes: u8;
            words: u64;
            nothings: ();
            as_long_as_a_line: [u8; 60];
            exactly_a_line: [u64; 8];
            just_too_long_for_a_line: [u64; 9];
            exactly_eight_lines: [u64; 64];
            five_lines_long: [u8; 300];
            strictly_aligned: $crate::element::Aligned;
            boxed: Box<u64>;
            counted: $crate::element::Counted;
            panicking_in_drop: $crate::element::Bomb;
        }
    };
    ($queue:ty; $($name:ident: $element:ty;)+) => {$(
        #[test]
        fn $name() {
            $crate::model::agrees::<$element, $queue>();
        }
    )+};
}
pub(crate) use agrees_for_all_elements;

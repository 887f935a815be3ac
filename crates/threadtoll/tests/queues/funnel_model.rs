//! Features of funnels only: several senders, and batches whose iterators yield less than they
//! promise.

use std::panic::resume_unwind;

use proptest::prelude::*;
use threadtoll::error::SendError;
use threadtoll::funnel::{Options, Receiver, Sender};

use crate::element::{Element, surviving};
use crate::model::{End, Queue, Run, agrees_for_all_elements, many};

struct Funnel {
    /// Number of voided tickets, which count as messages until the receiver passes them.
    voids: bool,
}

/// Behaviour of an iterator of messages.
#[derive(Clone, Copy, Debug)]
enum Manners {
    Honest,
    /// Yields no more than this number of messages.
    Short(usize),
    /// Panics after this number of messages.
    Panics(usize),
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    SendAll(usize, usize, Manners),
    Clone(usize),
    DropSender(usize),
}

impl<T: Element> Queue<T> for Funnel {
    type Sender = Sender<T>;
    type Receiver = Receiver<T>;
    /// Bytes to retain.
    type Options = usize;
    type Verb = Verb;

    fn options() -> impl Strategy<Value = usize> {
        prop_oneof![Just(0usize), Just(1 << 20)]
    }

    fn open(retain: usize, capacity: Option<usize>) -> (Self, Sender<T>, Receiver<T>) {
        let options = Options::new().retain(retain);
        let (sender, receiver) = match capacity {
            Some(capacity) => options.bounded(capacity),
            None => options.unbounded(),
        };
        (Funnel { voids: false }, sender, receiver)
    }

    fn verbs() -> BoxedStrategy<Verb> {
        let manners = prop_oneof![
            4 => Just(Manners::Honest),
            1 => (0..20usize).prop_map(Manners::Short),
            1 => (0..20usize).prop_map(Manners::Panics),
        ];
        prop_oneof![
            12 => (any::<usize>(), many(), manners)
                .prop_map(|(which, many, manners)| Verb::SendAll(which, many, manners)),
            3 => any::<usize>().prop_map(Verb::Clone),
            1 => any::<usize>().prop_map(Verb::DropSender),
        ]
        .boxed()
    }

    fn apply(run: &mut Run<T, Self>, verb: Verb) {
        match verb {
            Verb::SendAll(which, many, manners) => run.with_sender(which, |run, sender, room| {
                send_all(run, sender, many.min(room), manners);
            }),
            Verb::Clone(which) => run.with_sender(which, |run, sender, _| {
                run.senders.push(sender.clone());
            }),
            Verb::DropSender(which) => run.drop_sender(which),
        }
    }

    fn check_len(&self, end: End, len: usize, inside: usize) {
        assert!(len == inside || self.voids && len > inside, "{end:?}: {len}, {inside}");
    }

    /// Publishes the room of the tickets that it passed.
    fn peeked(senders: &[Sender<T>], receiver: &Receiver<T>) {
        assert!(senders.iter().all(|sender| sender.len() == receiver.len()));
    }
}

/// Promises more messages than it may yield.
struct Batch<'a, T: Element> {
    run: &'a mut Run<T, Funnel>,
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

fn send_all<T: Element>(
    run: &mut Run<T, Funnel>,
    sender: &Sender<T>,
    many: usize,
    manners: Manners,
) {
    let (gives, panics) = match manners {
        Manners::Honest => (many, false),
        Manners::Short(count) => (count.min(many), false),
        Manners::Panics(count) => (count.min(many), count < many),
    };
    let alive = run.receiver.is_some();
    let first = run.next;
    let batch = Batch { run, left: many, gives, panics };
    let mut left = None;
    let survived = surviving(|| {
        left = sender.send_all(batch).err().map(|SendError(rest)| rest.len());
    });
    if alive {
        assert_eq!((survived, left), (!panics, None));
        assert_eq!(run.next - first, gives as u64);
        run.went_in(gives);
        run.queue.voids |= gives < many;
    } else {
        assert_eq!(left, (many > 0).then_some(many));
    }
}

agrees_for_all_elements! { Funnel }

//! All methods of a ring, in any order, against a plain model.

use std::collections::BTreeSet;
use std::mem;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use threadtoll::error::{
    RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use threadtoll::ring::{Batch, Builder, Iter, Reader, Writer};

use crate::element::{Aligned, Counted, Element, Ledger, cases, surviving};

/// Number of an event that no reader sees.
const NOBODY: u64 = 1 << 40;

/// The method with which an end tries.
#[derive(Clone, Copy, Debug)]
enum Verb {
    /// Waits, unless it would wait for ever.
    Wait,
    Try,
    Timeout,
}

/// An end of a batch.
#[derive(Clone, Copy, Debug)]
enum End {
    Drop,
    Forget,
    Panic,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish(Verb),
    PublishMany(usize, Verb),
    /// Panics at the event with this index.
    PanicIn(usize, usize),
    /// Index of the reader, number of events to which the batch is cut, and its end.
    Receive(usize, Verb, Option<usize>, End),
    DropReader(usize),
    DropWriter,
}

fn steps() -> impl Strategy<Value = Step> {
    let verb = prop_oneof![3 => Just(Verb::Wait), 3 => Just(Verb::Try), 1 => Just(Verb::Timeout)];
    let end = prop_oneof![8 => Just(End::Drop), 1 => Just(End::Forget), 1 => Just(End::Panic)];
    let many = prop_oneof![3 => 0..10usize, 1 => 0..60usize];
    let most = prop::option::weighted(0.3, 0..10usize);
    prop_oneof![
        12 => verb.clone().prop_map(Step::Publish),
        10 => (many.clone(), verb.clone()).prop_map(|(many, verb)| Step::PublishMany(many, verb)),
        2 => (many, 0..10usize).prop_map(|(many, at)| Step::PanicIn(many, at)),
        40 => (any::<usize>(), verb, most, end)
            .prop_map(|(which, verb, most, end)| Step::Receive(which, verb, most, end)),
        1 => prop_oneof![
            6 => any::<usize>().prop_map(Step::DropReader),
            1 => Just(Step::DropWriter),
        ],
    ]
}

/// For each reader, bits of those of the earlier ones after which it comes.
fn graph() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), any::<u8>()], 1..6)
}

struct Member<T> {
    reader: Reader<T>,
    read: u64,
    /// Number of events that it may read without another look.
    visible: u64,
    /// The first event that an earlier one had not read when it left, as far as this one knows.
    lost_from: u64,
}

struct Run<T> {
    capacity: u64,
    writer: Option<Writer<T>>,
    published: u64,
    members: Vec<Option<Member<T>>>,
    /// For each reader that has left, the number of events that it had read.
    left_at: Vec<u64>,
    dependencies: Vec<Vec<usize>>,
    ledger: Arc<Ledger>,
}

impl<T: Element + Sync> Run<T> {
    fn new(capacity: usize, graph: &[u8]) -> Self {
        let ledger: Arc<Ledger> = Arc::default();
        let mut builder = Builder::new(capacity, || T::make(NOBODY, &ledger));
        let (mut readers, mut dependencies): (Vec<Reader<T>>, Vec<Vec<usize>>) = Default::default();
        for (index, bits) in graph.iter().enumerate() {
            let before: Vec<usize> = (0..index).filter(|other| bits & 1 << other != 0).collect();
            let reader = builder.reader_after(before.iter().map(|other| &readers[*other]));
            readers.push(reader);
            dependencies.push(before);
        }
        let writer = builder.start().expect("there are readers");
        let member = |reader| Some(Member { reader, read: 0, visible: 0, lost_from: u64::MAX });
        Run {
            capacity: capacity as u64,
            writer: Some(writer),
            published: 0,
            members: readers.into_iter().map(member).collect(),
            left_at: vec![u64::MAX; graph.len()],
            dependencies,
            ledger,
        }
    }

    fn slowest(&self) -> Option<u64> {
        self.members.iter().flatten().map(|member| member.read).min()
    }

    /// The readers that this one follows now, and the first event that others had not read when
    /// they left.
    fn follows(&self, which: usize) -> (BTreeSet<usize>, u64) {
        let (mut follows, mut lost_from) = (BTreeSet::new(), u64::MAX);
        for &other in &self.dependencies[which] {
            if self.members[other].is_some() {
                follows.insert(other);
            } else {
                let (others, from) = self.follows(other);
                follows.extend(others);
                lost_from = lost_from.min(from).min(self.left_at[other]);
            }
        }
        (follows, lost_from)
    }

    fn publish(&mut self, many: Option<usize>, verb: Verb) {
        let Some(mut writer) = self.writer.take() else { return };
        let count = many.unwrap_or(1).min(self.capacity as usize);
        let slowest = self.slowest();
        let has_room =
            slowest.is_none_or(|slowest| self.published + count as u64 - slowest <= self.capacity);
        let (first, ledger) = (self.published, &self.ledger);
        let fill = |index: usize, event: &mut T| *event = T::make(first + index as u64, ledger);
        let disconnected = |SendError(())| TrySendError::Disconnected(());
        let without_time = |error| match error {
            SendTimeoutError::Timeout(()) => TrySendError::Full(()),
            SendTimeoutError::Disconnected(()) => TrySendError::Disconnected(()),
            error => panic!("{error}"),
        };
        let result = match (many, verb) {
            (None, Verb::Wait) if has_room => {
                writer.publish(|event| fill(0, event)).map_err(disconnected)
            }
            (Some(_), Verb::Wait) if has_room => {
                writer.publish_many(count, fill).map_err(disconnected)
            }
            (None, Verb::Timeout) => {
                writer.publish_timeout(Duration::ZERO, |event| fill(0, event)).map_err(without_time)
            }
            (Some(_), Verb::Timeout) => {
                writer.publish_many_timeout(Duration::ZERO, count, fill).map_err(without_time)
            }
            (None, _) => writer.try_publish(|event| fill(0, event)),
            (Some(_), _) => writer.try_publish_many(count, fill),
        };
        match slowest {
            Some(_) if has_room => {
                assert_eq!(result, Ok(()));
                self.published += count as u64;
            }
            Some(_) => assert_eq!(result, Err(TrySendError::Full(()))),
            None if count == 0 => assert_eq!(result, Ok(())),
            None => assert_eq!(result, Err(TrySendError::Disconnected(()))),
        }
        self.writer = Some(writer);
    }

    fn panic_in(&mut self, many: usize, at: usize) {
        let Some(slowest) = self.slowest() else { return };
        let Some(writer) = &mut self.writer else { return };
        let room = self.capacity - (self.published - slowest);
        let many = many.min(room as usize);
        if at >= many {
            return;
        }
        let survived = surviving(|| {
            let _ = writer.publish_many(many, |index, event| {
                *event = T::make(NOBODY, &self.ledger);
                if index == at {
                    // Unlike `panic!`, without a report.
                    resume_unwind(Box::new("a closure that panics"));
                }
            });
        });
        assert!(!survived);
    }

    fn receive(&mut self, which: usize, verb: Verb, most: Option<usize>, end: End) {
        let which = which % self.members.len();
        let (follows, lost_from) = self.follows(which);
        let visible = follows.iter().filter_map(|other| self.members[*other].as_ref());
        let visible = visible.map(|member| member.read).min().unwrap_or(self.published);
        let is_over = self.writer.is_none();
        let Some(member) = &mut self.members[which] else { return };
        if member.visible == member.read {
            member.visible = visible;
            member.lost_from = member.lost_from.min(lost_from);
        }
        let is_closed = is_over && member.read == self.published;
        let can_receive = member.visible > member.read || is_closed;
        let without_time = |error| match error {
            RecvTimeoutError::Timeout => TryRecvError::Empty,
            RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            error => panic!("{error}"),
        };
        {
            let batch = match verb {
                Verb::Wait if can_receive => member.reader.recv_batch().map_err(TryRecvError::from),
                Verb::Timeout => {
                    member.reader.recv_batch_timeout(Duration::ZERO).map_err(without_time)
                }
                _ => member.reader.try_recv_batch(),
            };
            let mut batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    assert_eq!(member.visible, member.read, "events are there");
                    let expected =
                        if is_closed { TryRecvError::Disconnected } else { TryRecvError::Empty };
                    return assert_eq!(error, expected);
                }
            };
            let mut len = member.visible - member.read;
            check(&batch, member.read, len);
            if let Some(most) = most {
                batch.truncate(most);
                len = len.min(most as u64);
                check(&batch, member.read, len);
            }
            assert_eq!(batch.has_lost_dependency(), member.read + len > member.lost_from);
            match end {
                End::Drop => {
                    drop(batch);
                    member.read += len;
                }
                End::Forget => mem::forget(batch),
                End::Panic => assert!(!surviving(|| {
                    let _batch = batch;
                    resume_unwind(Box::new("a reader that panics"));
                })),
            }
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Publish(verb) => self.publish(None, verb),
            Step::PublishMany(many, verb) => self.publish(Some(many), verb),
            Step::PanicIn(many, at) => self.panic_in(many, at),
            Step::Receive(which, verb, most, end) => self.receive(which, verb, most, end),
            Step::DropReader(which) => {
                let which = which % self.members.len();
                if let Some(member) = self.members[which].take() {
                    self.left_at[which] = member.read;
                }
            }
            Step::DropWriter => self.writer = None,
        }
        for member in self.members.iter().flatten() {
            assert_eq!(member.reader.lag(), self.published - member.read);
            assert_eq!(member.reader.is_disconnected(), self.writer.is_none());
        }
        if let Some(writer) = &self.writer {
            assert_eq!(writer.readers(), self.members.iter().flatten().count());
            assert_eq!(writer.lag(), self.slowest().map_or(0, |slowest| self.published - slowest));
            assert_eq!(writer.is_disconnected(), writer.readers() == 0);
        }
    }
}

/// Asserts that `fold` goes through these events.
fn check_fold<T: Element>(events: Iter<'_, T>, numbers: Range<u64>) {
    let end = events.fold(numbers.start, |number, event| {
        assert!(event.is(number));
        number + 1
    });
    assert_eq!(end, numbers.end);
}

/// Asserts that these are the events from `first` on.
fn check<T: Element>(batch: &Batch<'_, T>, first: u64, len: u64) {
    assert_eq!((batch.first_number(), batch.len() as u64), (first, len));
    assert_eq!(batch.is_empty(), len == 0);
    assert_eq!(batch.iter().len() as u64, len);
    // By `next`.
    let mut events = batch.iter();
    for number in first..first + len {
        if number - first < 10 {
            check_fold(events.clone(), number..first + len);
        }
        assert!(events.next().is_some_and(|event| event.is(number)));
    }
    check_fold(events.clone(), 0..0);
    assert!(events.next().is_none());
}

fn agrees<T: Element + Sync>() {
    let capacity = prop_oneof![1..40usize, Just(64), Just(1000)];
    let config =
        ProptestConfig { cases: cases(64), failure_persistence: None, ..Default::default() };
    proptest!(config, |(capacity in capacity, graph in graph(), steps in vec(steps(), 1..300))| {
        let mut run = Run::<T>::new(capacity, &graph);
        steps.into_iter().for_each(|step| run.apply(step));
        let ledger = Arc::clone(&run.ledger);
        drop(run);
        ledger.assert_settled();
    });
}

macro_rules! agrees_for {
    ($($name:ident: $type:ty;)+) => {$(
        #[test]
        fn $name() {
            agrees::<$type>();
        }
    )+};
}

agrees_for! {
    bytes: u8;
    numbers: u64;
    nearly_a_line: [u8; 60];
    a_line: [u64; 8];
    more_than_a_line: [u64; 9];
    many_lines: [u8; 300];
    aligned: Aligned;
    boxed: Box<u64>;
    counted: Counted;
}

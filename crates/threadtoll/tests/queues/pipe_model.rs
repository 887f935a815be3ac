//! Features of pipes only: claims and batches.

use proptest::prelude::*;
use threadtoll::error::{SendError, TryRecvError};
use threadtoll::pipe::{Options, Receiver, Sender};

use crate::element::{Element, surviving};
use crate::model::{End, Queue, Run, agrees_for_all_elements, many};

struct Pipe {
    bounded: bool,
    /// Number of messages by which the length of an unbounded pipe may be off: those of a page, the
    /// longest run.
    per_record: usize,
    /// True if a batch was forgotten, and the sender does not know yet what it took.
    forgotten: bool,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    SendAll(usize),
    /// Messages to claim, and the part of them, in 256ths, to fill and send; `None` drops the
    /// claim.
    Claim(usize, Option<usize>),
    /// Number of messages to move out before the rest is dropped, or the batch forgotten.
    Batch(usize, bool),
}

impl<T: Element> Queue<T> for Pipe {
    type Sender = Sender<T>;
    type Receiver = Receiver<T>;
    /// Bytes of a segment and bytes to retain.
    type Options = (usize, usize);
    type Verb = Verb;

    fn options() -> impl Strategy<Value = (usize, usize)> {
        let segment = prop_oneof![Just(0usize), Just(4 << 10), Just(256 << 10)];
        let retain = prop_oneof![Just(0usize), Just(2 << 10), Just(1 << 20)];
        (segment, retain)
    }

    fn open(
        (segment, retain): (usize, usize),
        capacity: Option<usize>,
    ) -> (Self, Sender<T>, Receiver<T>) {
        let options = Options::new().segment(segment).retain(retain);
        let (sender, receiver) = match capacity {
            Some(capacity) => options.bounded(capacity),
            None => options.unbounded(),
        };
        let per_record = 4096usize.checked_div(size_of::<T>()).unwrap_or(1 << 16).max(1);
        (Pipe { bounded: capacity.is_some(), per_record, forgotten: false }, sender, receiver)
    }

    fn verbs() -> BoxedStrategy<Verb> {
        let part = prop::option::weighted(0.7, 0..=256usize);
        prop_oneof![
            3 => many().prop_map(Verb::SendAll),
            5 => (1..400usize, part).prop_map(|(most, part)| Verb::Claim(most, part)),
            8 => (0..100usize, prop::bool::weighted(0.1))
                .prop_map(|(taken, forgets)| Verb::Batch(taken, forgets)),
        ]
        .boxed()
    }

    fn apply(run: &mut Run<T, Self>, verb: Verb) {
        match verb {
            Verb::SendAll(many) => run.with_sender(0, |run, sender, room| {
                send_all(run, sender, many.min(room));
            }),
            Verb::Claim(most, part) => run.with_sender(0, |run, sender, room| {
                // A sender would wait for room for ever.
                if room > 0 {
                    claim(run, sender, (most, room), part);
                }
            }),
            Verb::Batch(taken, forgets) => run.with_receiver(|run, receiver| {
                batch(run, receiver, taken, forgets);
            }),
        }
    }

    fn check_len(&self, end: End, len: usize, inside: usize) {
        let late = match end {
            End::Sender if !self.bounded => self.per_record,
            _ => 0,
        };
        let unknown = end == End::Sender && self.forgotten && len > inside;
        assert!((inside..=inside + late).contains(&len) || unknown, "{end:?}: {len}, {inside}");
    }

    fn makes_room(&self) -> bool {
        self.forgotten
    }

    fn received(&mut self) {
        self.forgotten = false;
    }
}

fn send_all<T: Element>(run: &mut Run<T, Pipe>, sender: &mut Sender<T>, many: usize) {
    match sender.send_all((0..many).map(|_| run.make())) {
        Ok(sent) => {
            assert_eq!(sent, many);
            run.went_in(many);
        }
        Err(SendError(message)) => run.handed_back(message),
    }
}

fn claim<T: Element>(
    run: &mut Run<T, Pipe>,
    sender: &mut Sender<T>,
    (most, room): (usize, usize),
    part: Option<usize>,
) {
    let mut claim = match sender.claim(most) {
        Ok(claim) => claim,
        Err(error) => {
            assert!(run.receiver.is_none() && error == SendError(()));
            return;
        }
    };
    assert!(run.receiver.is_some());
    let places = claim.room();
    assert!(!places.is_empty() && places.len() <= most.min(room));
    // The user may write anything to the slots.
    // SAFETY: a `MaybeUninit` may hold any bytes.
    unsafe { std::ptr::write_bytes(places.as_mut_ptr(), 0xa5, places.len()) };
    let Some(part) = part else { return };
    let count = places.len() * part / 256;
    for place in &mut places[..count] {
        place.write(run.make());
    }
    // SAFETY: the first slots were written.
    assert_eq!(unsafe { claim.send(count) }, Ok(()));
    run.went_in(count);
}

fn batch<T: Element>(
    run: &mut Run<T, Pipe>,
    receiver: &mut Receiver<T>,
    taken: usize,
    forgets: bool,
) {
    let batch = match run.can_receive() {
        true => receiver.recv_batch().map_err(TryRecvError::from),
        false => receiver.try_recv_batch(),
    };
    let mut batch = match batch {
        Ok(batch) => batch,
        Err(error) => return run.nothing_came(error),
    };
    let there = batch.len();
    assert!(0 < there && there <= run.inside.len());
    for (message, &id) in batch.iter().zip(&run.inside) {
        assert!(message.is(id), "message {id} was another one");
    }
    for message in batch.by_ref().take(taken) {
        run.came_out(message);
    }
    let left = there.saturating_sub(taken);
    assert_eq!(batch.len(), left);
    if forgets {
        std::mem::forget(batch);
        run.queue.forgotten |= taken > 0;
    } else {
        surviving(|| drop(batch));
        run.inside.drain(..left);
        run.queue.forgotten = false;
    }
}

agrees_for_all_elements! { Pipe }

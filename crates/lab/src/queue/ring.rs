//! `threadtoll`'s ring: every receiver gets every message.

use std::{io, slice};

use threadtoll::ring::{Builder, Options, Reader, Writer};
use threadtoll::wait::Wait;
use threadtoll_record::Graph;
use threadtoll_record::Wait::Spin;

use super::stream::BATCH;
use super::way::ways;
use super::{
    Broadcast, Capacity, Channel, Message, Queue, Sink, Slots, Source, Way, ask_reply, stream,
};
use crate::error::Unavailable;

/// With one receiver, a ring is a queue like others. It is compared with them in these scenarios.
const ALONE: &[&str] = &[ask_reply::SCENARIO.name, stream::SCENARIO.name];

pub(super) fn queues() -> [Queue; 2] {
    let sentence = "threadtoll's ring: one writer, readers that each see every event, in batches";
    let singly = "threadtoll's ring, whose readers count single events as read, not batches";
    let rows = ways(|waiting, wait| Way::broadcast_and(Ring::new(waiting), wait, ALONE));
    // Enough to show what batches are worth.
    let singly_rows = vec![Way::broadcast_only(Singly(Ring::new(Wait::Spin)), Spin).in_batches()];
    [
        Queue::ours("ring", sentence, Capacity::Slots(slots()), rows),
        Queue::ours("ring-singly", singly, Capacity::Slots(slots()), singly_rows),
    ]
}

/// A line holds seven events and their count. There is one line more than the capacity needs.
fn slots() -> Slots {
    Slots { spare: |_| 1, ..Slots::groups(7, 64) }
}

/// A ring.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    wait: Wait,
}

impl Ring {
    /// A ring whose ends wait in this way.
    pub fn new(wait: Wait) -> Self {
        Ring { wait }
    }

    fn builder<M: Message>(self, capacity: usize) -> Builder<M> {
        Options::new().wait(self.wait).builder(capacity, || M::all(0))
    }
}

fn start<M: Message>(builder: Builder<M>) -> Result<To<M>, Unavailable> {
    builder.start().map(To).map_err(|error| Unavailable::new("a ring", io::Error::other(error)))
}

impl<M: Message> Channel<M> for Ring {
    type Source = To<M>;
    type Sink = From<M>;

    fn open(&self, capacity: usize) -> Result<(To<M>, From<M>), Unavailable> {
        let mut builder = self.builder(capacity);
        let reader = builder.reader();
        Ok((start(builder)?, From::new(reader)))
    }
}

impl Broadcast for Ring {
    type Source = To;
    type Sink = From;

    fn open(
        &self,
        graph: Graph,
        receivers: usize,
        capacity: usize,
    ) -> Result<(To, Vec<From>), Unavailable> {
        let mut builder = self.builder(capacity);
        let first = match graph {
            Graph::FanOut => receivers,
            Graph::Diamond => receivers - 1,
        };
        let mut readers: Vec<Reader<u64>> = (0..first).map(|_| builder.reader()).collect();
        if graph == Graph::Diamond {
            readers.push(builder.reader_after(&readers));
        }
        Ok((start(builder)?, readers.into_iter().map(From::new).collect()))
    }
}

/// A ring whose readers count each event as read before they take the next one.
#[derive(Clone, Copy, Debug)]
struct Singly(Ring);

impl Broadcast for Singly {
    type Source = To;
    type Sink = FromSingly;

    fn open(
        &self,
        graph: Graph,
        receivers: usize,
        capacity: usize,
    ) -> Result<(To, Vec<FromSingly>), Unavailable> {
        let (to, readers) = Broadcast::open(&self.0, graph, receivers, capacity)?;
        Ok((to, readers.into_iter().map(FromSingly).collect()))
    }
}

/// The writer.
#[derive(Debug)]
pub struct To<M = u64>(Writer<M>);

impl<M: Message> Source<M> for To<M> {
    #[inline(always)]
    fn send(&mut self, message: M) {
        // Publishing cannot fail: readers are dropped only at the end of the run.
        let _ = self.0.publish(|event| *event = message);
    }

    #[inline(always)]
    fn try_send(&mut self, message: M) -> bool {
        self.0.try_publish(|event| *event = message).is_ok()
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[M]) {
        // A ring publishes no more than its capacity at once.
        for messages in messages.chunks(self.0.capacity()) {
            let _ = self.0.publish_many(messages.len(), |index, event| *event = messages[index]);
        }
    }
}

/// A reader.
#[derive(Debug)]
pub struct From<M = u64> {
    reader: Reader<M>,
    /// Events that have been read and counted, for calls that want one at a time.
    read: Vec<M>,
    /// Index of the next of these events.
    next: usize,
}

impl<M: Message> From<M> {
    fn new(reader: Reader<M>) -> Self {
        From { reader, read: Vec::with_capacity(BATCH as usize), next: 0 }
    }
}

/// Reads at most `limit` events, and counts them as read.
#[inline(always)]
fn read<M: Message>(
    reader: &mut Reader<M>,
    limit: usize,
    mut take: impl FnMut(&M),
) -> Option<usize> {
    let mut batch = reader.recv_batch().ok()?;
    batch.truncate(limit);
    batch.iter().for_each(&mut take);
    Some(batch.len())
}

impl<M: Message> Sink<M> for From<M> {
    #[inline(always)]
    fn receive(&mut self) -> M {
        if self.next == self.read.len() {
            self.read.clear();
            let events = &mut self.read;
            if read(&mut self.reader, BATCH as usize, |event| events.push(*event)).is_none() {
                return M::all(0);
            }
            self.next = 0;
        }
        self.next += 1;
        self.read[self.next - 1]
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        let taken = read(&mut self.reader, limit, |event| take(slice::from_ref(event)));
        taken.unwrap_or_else(|| {
            take(&[M::all(0)]);
            1
        })
    }
}

/// A reader that counts single events as read.
#[derive(Debug)]
pub struct FromSingly(From);

impl Sink for FromSingly {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let mut message = 0;
        self.0.receive_batch(1, |messages| message = messages[0]);
        message
    }
}

//! `disruptor`: a port of LMAX's ring. Each receiver polls all events that are there.

use std::hint::spin_loop;
use std::slice;

use disruptor::{
    BusySpin, EventPoller, MultiConsumerBarrier, Polling, Producer, SingleConsumerBarrier,
    SingleProducer, SingleProducerBarrier, build_single_producer,
};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Broadcast, Capacity, Queue, Sink, Slots, Source, Way};
use threadtoll_record::{Graph, Origin, Wait};

use crate::peer::nobody;

/// The queue `disruptor-crate`: LMAX's own has the name `disruptor`.
pub(crate) fn ring() -> Queue {
    Queue {
        name: "disruptor-crate".into(),
        origin: Origin::Rust,
        version: env!("VERSION_disruptor").into(),
        sentence: "the crate disruptor: a ring with one producer, each receiver an event poller"
            .into(),
        capacity: Capacity::Slots(Slots::PLAIN.power_of_two()),
        built: None,
        ways: vec![Way::broadcast_only(Ring, Wait::Poll).in_batches()],
    }
}

#[derive(Clone)]
struct Ring;

impl Broadcast for Ring {
    type Source = To;
    type Sink = From;

    fn open(
        &self,
        graph: Graph,
        receivers: usize,
        capacity: usize,
    ) -> Result<(To, Vec<From>), Unavailable> {
        let builder = build_single_producer(capacity, || 0, BusySpin);
        let (first, builder) = builder.new_event_poller();
        let mut sinks = vec![From::Producer(first)];
        if receivers == 1 {
            return Ok((To { capacity, producer: Ends::One(builder.build()) }, sinks));
        }
        let first = if graph == Graph::Diamond { receivers - 1 } else { receivers };
        let (second, mut many) = builder.new_event_poller();
        sinks.push(From::Producer(second));
        for _ in 2..first {
            let (next, more) = many.new_event_poller();
            sinks.push(From::Producer(next));
            many = more;
        }
        let producer = match graph {
            Graph::FanOut => Ends::Many(many.build()),
            Graph::Diamond => {
                let (last, builder) = many.and_then().new_event_poller();
                sinks.push(From::Others(last));
                Ends::One(builder.build())
            }
        };
        Ok((To { capacity, producer }, sinks))
    }
}

/// The producer, and the maximum number of events that it publishes at once.
struct To {
    capacity: usize,
    producer: Ends,
}

/// A producer that waits for one receiver, or for several that are last.
enum Ends {
    One(SingleProducer<u64, SingleConsumerBarrier>),
    Many(SingleProducer<u64, MultiConsumerBarrier>),
}

#[inline(always)]
fn send_batch(producer: &mut impl Producer<u64>, messages: &[u64]) {
    producer.batch_publish(messages.len(), |events| {
        events.zip(messages).for_each(|(event, message)| *event = *message);
    });
}

impl Source for To {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        match &mut self.producer {
            Ends::One(producer) => producer.publish(|event| *event = message),
            Ends::Many(producer) => producer.publish(|event| *event = message),
        }
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[u64]) {
        for messages in messages.chunks(self.capacity) {
            match &mut self.producer {
                Ends::One(producer) => send_batch(producer, messages),
                Ends::Many(producer) => send_batch(producer, messages),
            }
        }
    }
}

/// A receiver that follows the producer, or the receivers before it.
enum From {
    Producer(EventPoller<u64, SingleProducerBarrier>),
    Others(EventPoller<u64, MultiConsumerBarrier>),
}

/// The trait of barriers is private, so this cannot be a generic function.
macro_rules! receive {
    ($poller:ident, $limit:ident, $take:ident) => {
        loop {
            match $poller.take($limit as u64) {
                Ok(mut events) => {
                    let received = (&mut events).len();
                    (&mut events).for_each(|event| $take(slice::from_ref(event)));
                    return received;
                }
                Err(Polling::NoEvents) => spin_loop(),
                Err(Polling::Shutdown) => {
                    $take(&[nobody()]);
                    return 1;
                }
            }
        }
    };
}

impl Sink for From {
    fn receive(&mut self) -> u64 {
        let mut message = nobody();
        self.receive_batch(1, |messages| message = messages[0]);
        message
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        match self {
            From::Producer(poller) => receive!(poller, limit, take),
            From::Others(poller) => receive!(poller, limit, take),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_receiver_comes_after_the_others() {
        assert_eq!(threadtoll_lab::real::check::diamond(&Ring), Ok(()));
    }
}

//! `tokio::sync::broadcast`, used outside of a runtime. It drops the oldest message if it is full,
//! so the sender keeps count of the room, and yields until a quarter of the capacity is free.

use std::thread::yield_now;

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Broadcast, Capacity, Queue, Sink, Slots, Source, Way};
use threadtoll_record::{Graph, Origin, Wait};
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::peer::nobody;

/// The queue `tokio-broadcast`.
pub(crate) fn channel_of_all() -> Queue {
    Queue {
        name: "tokio-broadcast".into(),
        origin: Origin::Rust,
        version: env!("VERSION_tokio").into(),
        sentence:
            "tokio::sync::broadcast with its blocking receive; its sender yields if it is full"
                .into(),
        capacity: Capacity::Slots(Slots::groups(1, SLOT_BYTES).power_of_two()),
        built: None,
        ways: vec![Way::broadcast_only(Tokio, Wait::Block)],
    }
}

/// A lock, the number of receivers that lack the message, its position, and the message.
const SLOT_BYTES: u64 = 40;

#[derive(Clone)]
struct Tokio;

impl Broadcast for Tokio {
    type Source = To;
    type Sink = From;

    const DIAMONDS: bool = false;

    fn open(
        &self,
        _: Graph,
        receivers: usize,
        capacity: usize,
    ) -> Result<(To, Vec<From>), Unavailable> {
        let (sender, first) = channel(capacity);
        let others: Vec<From> = (1..receivers).map(|_| From(sender.subscribe())).collect();
        let sinks = std::iter::once(From(first)).chain(others).collect();
        Ok((To { sender, capacity, room: capacity }, sinks))
    }
}

struct To {
    sender: Sender<u64>,
    capacity: usize,
    /// Number of messages for which there is room, as far as the sender has looked.
    room: usize,
}

impl Source for To {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        while self.room == 0 {
            // Counting takes locks, so it is worth it only for many messages.
            let room = self.capacity - self.sender.len();
            if room >= (self.capacity / 4).max(1) {
                self.room = room;
            } else {
                yield_now();
            }
        }
        self.room -= 1;
        // Sending fails only if all receivers are gone.
        let _ = self.sender.send(message);
    }
}

struct From(Receiver<u64>);

impl Sink for From {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.0.blocking_recv().unwrap_or_else(|_| nobody())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        take(&[self.receive()]);
        let mut received = 1;
        while received < limit
            && let Ok(message) = self.0.try_recv()
        {
            take(&[message]);
            received += 1;
        }
        received
    }
}

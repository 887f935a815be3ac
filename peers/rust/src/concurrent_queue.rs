//! `concurrent-queue`: an array with a stamp per slot.

use concurrent_queue::ConcurrentQueue;
use std::sync::Arc;
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

type End = Arc<ConcurrentQueue<u64>>;

peer! {
    package: "concurrent-queue";
    bounded: {
        name: "concurrent-queue",
        sentence: "concurrent_queue::ConcurrentQueue::bounded, an array with a stamp per slot",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: |capacity| {
            let queue = Arc::new(ConcurrentQueue::bounded(capacity));
            (queue.clone(), queue)
        },
    };
    many_senders: (End, End);
    calls: {
        try_send: |sender, message| sender.push(message).is_ok(),
        try_receive: |receiver| receiver.pop().ok(),
    }
}

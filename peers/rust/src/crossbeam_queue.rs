//! `crossbeam-queue`: non-blocking queues that are shared by reference.

use std::sync::Arc;

use crossbeam_queue::{ArrayQueue, SegQueue};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

fn shared<Q>(queue: Q) -> (Arc<Q>, Arc<Q>) {
    let queue = Arc::new(queue);
    (Arc::clone(&queue), queue)
}

peer! {
    package: "crossbeam-queue";
    array: {
        name: "crossbeam-array-queue",
        sentence: "crossbeam_queue::ArrayQueue, an array with a stamp per slot",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: |capacity| shared(ArrayQueue::new(capacity)),
    };
    many_receivers: (Arc<ArrayQueue<M>>, Arc<ArrayQueue<M>>);
    calls: {
        try_send: |queue, message| queue.push(message).is_ok(),
        try_receive: |queue| queue.pop(),
        is_full: |queue| queue.is_full(),
        force_send: |queue, message| queue.force_push(message).is_some(),
    }
}

peer! {
    package: "crossbeam-queue";
    segmented: {
        name: "crossbeam-seg-queue",
        sentence: "crossbeam_queue::SegQueue, a list of blocks",
        capacity: Capacity::Unbounded,
        open: |_| shared(SegQueue::new()),
    };
    many_receivers: (Arc<SegQueue<M>>, Arc<SegQueue<M>>);
    calls: {
        try_send: |queue, message| {
            queue.push(message);
            true
        },
        try_receive: |queue| queue.pop(),
    }
}

//! `ringbuf`: a ring for one sender and one receiver, whose ends cache each other's position.
//! Batches are copied through its slices.

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use threadtoll_lab::queue::{BATCH, Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "ringbuf";
    ring: {
        name: "ringbuf",
        sentence: "ringbuf::HeapRb, a ring for one sender and one receiver",
        capacity: Capacity::Slots(Slots::PLAIN),
        open: |capacity| {
            let (sender, receiver) = HeapRb::new(capacity).split();
            (sender, (receiver, vec![0; BATCH as usize]))
        },
    };
    one_sender: (HeapProd<u64>, (HeapCons<u64>, Vec<u64>));
    calls: {
        try_send: |sender, message| sender.try_push(message).is_ok(),
        try_receive: |(receiver, _)| receiver.try_pop(),
        try_send_batch: |sender, messages| sender.push_slice(messages),
        try_receive_batch: |(receiver, batch), limit, take| {
            let room = limit.min(batch.len());
            let received = receiver.pop_slice(&mut batch[..room]);
            if received > 0 {
                take(&batch[..received]);
            }
            received
        },
    }
}

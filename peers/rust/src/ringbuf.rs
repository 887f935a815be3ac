//! `ringbuf`: a ring for one sender and one receiver; each end caches the other's position. Batches
//! are copied through the slices that the ring offers.

use ringbuf::traits::{Consumer, Observer, Producer, Raw, Split};
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
            (sender, (receiver, vec![M::all(0); BATCH as usize]))
        },
    };
    one_sender: (HeapProd<M>, (HeapCons<M>, Vec<M>));
    calls: {
        try_send: |sender, message| sender.try_push(message).is_ok(),
        try_receive: |(receiver, _)| receiver.try_pop(),
        is_full: |sender| sender.is_full(),
        try_send_batch: |sender, messages| sender.push_slice(messages),
        try_receive_batch: |(receiver, batch), limit, take| {
            let room = limit.min(batch.len());
            let received = receiver.pop_slice(&mut batch[..room]);
            if received > 0 {
                take(&batch[..received]);
            }
            received
        },
        try_send_in_place: |sender, number| {
            if sender.is_full() {
                return false;
            }
            M::fill(&mut sender.vacant_slices_mut().0[0], number);
            // SAFETY: `fill` has just written the whole of the first vacant slot.
            unsafe { sender.advance_write_index(1) };
            true
        },
        try_receive_in_place: |(receiver, _), number| {
            if receiver.is_empty() {
                return None;
            }
            let wrong = receiver.as_slices().0[0].difference(number);
            // SAFETY: the ring holds a message, and messages need no drop.
            unsafe { receiver.advance_read_index(1) };
            Some(wrong)
        },
    }
}

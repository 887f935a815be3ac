//! `rtrb`: a ring for one sender and one receiver. Batches are copied through the slices that the
//! ring offers.

use rtrb::{Consumer, Producer, RingBuffer};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "rtrb";
    ring: {
        name: "rtrb",
        sentence: "rtrb::RingBuffer, a ring for one sender and one receiver",
        capacity: Capacity::Slots(Slots::PLAIN),
        open: RingBuffer::new,
    };
    one_sender: (Producer<M>, Consumer<M>);
    calls: {
        try_send: |sender, message| sender.push(message).is_ok(),
        try_receive: |receiver| receiver.pop().ok(),
        is_full: |sender| sender.is_full(),
        try_send_batch: |sender, messages| sender.push_partial_slice(messages).0.len(),
        try_receive_batch: |receiver, limit, take| {
            let ready = receiver.slots().min(limit);
            let chunk = receiver.read_chunk(ready).ok().filter(|_| ready > 0);
            chunk.map_or(0, |chunk| {
                let (first, second) = chunk.as_slices();
                take(first);
                take(second);
                chunk.commit_all();
                ready
            })
        },
        try_send_in_place: |sender, number| {
            let Ok(mut chunk) = sender.write_chunk_uninit(1) else { return false };
            M::fill(&mut chunk.as_mut_slices().0[0], number);
            // SAFETY: `fill` has just written the whole of the chunk's only slot.
            unsafe { chunk.commit_all() };
            true
        },
        try_receive_in_place: |receiver, number| {
            let chunk = receiver.read_chunk(1).ok()?;
            let wrong = chunk.as_slices().0[0].difference(number);
            chunk.commit_all();
            Some(wrong)
        },
    }
}

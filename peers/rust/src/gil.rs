//! `gil`: its ring for one sender and one receiver. The receiver reads batches in place.
//!
//! It is measured only with polling. Its parking ring (`gil::spsc::parking`, as of 0.9.0) publishes
//! a message and then checks if the receiver sleeps, without a fence in between. A processor may
//! reorder the two, and then both ends sleep: between two CPUs of an x86-64 machine, an ask-reply
//! exchange hangs within seconds.

use std::num::NonZeroUsize;

use gil::spsc::{Receiver, Sender, channel};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "gil";
    ring: {
        name: "gil",
        sentence: "gil::spsc, a ring for one sender and one receiver",
        capacity: Capacity::Slots(Slots::PLAIN.power_of_two()),
        open: |capacity| channel(NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN)),
    };
    one_sender: (Sender<M>, Receiver<M>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv(),
        is_full: |sender| sender.write_buffer().is_empty(),
        try_send_batch: |sender, messages| {
            let room = sender.write_buffer();
            let sent = room.len().min(messages.len());
            for (slot, message) in room.iter_mut().zip(messages) {
                slot.write(*message);
            }
            if sent > 0 {
                // SAFETY: the first `sent` slots of the buffer have just been written.
                unsafe { sender.commit(sent) };
            }
            sent
        },
        try_receive_batch: |receiver, limit, take| {
            let mut guard = receiver.read_guard();
            let count = guard.len().min(limit);
            if count > 0 {
                take(&guard.as_slice()[..count]);
                guard.advance(count);
            }
            count
        },
        try_send_in_place: |sender, number| {
            let Some(slot) = sender.write_buffer().first_mut() else { return false };
            M::fill(slot, number);
            // SAFETY: `fill` has just written the whole of the first slot of the buffer.
            unsafe { sender.commit(1) };
            true
        },
        try_receive_in_place: |receiver, number| {
            let mut guard = receiver.read_guard();
            let wrong = guard.as_slice().first()?.difference(number);
            guard.advance(1);
            Some(wrong)
        },
    }
}

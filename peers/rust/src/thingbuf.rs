//! The blocking channel of `thingbuf`: an array of slots, in which messages are written in place.

use thingbuf::mpsc::blocking::{Receiver, Sender, with_recycle};
use thingbuf::recycling::Recycle;
use threadtoll_lab::queue::{Capacity, Message, Slots};

use crate::peer::peer;

peer! {
    package: "thingbuf";
    bounded: {
        name: "thingbuf",
        sentence: "thingbuf::mpsc::blocking::channel, an array of reused slots",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: |capacity| with_recycle(capacity, Reuse),
    };
    many_senders: (Sender<M, Reuse>, Receiver<M, Reuse>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        is_full: |sender| sender.remaining() == 0,
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv(),
        try_send_in_place: |sender, number| {
            let Ok(mut slot) = sender.try_send_ref() else { return false };
            slot.overwrite(number);
            true
        },
        try_receive_in_place: |receiver, number| {
            Some(receiver.try_recv_ref().ok()?.difference(number))
        },
        send_in_place: |sender, number| {
            if let Ok(mut slot) = sender.send_ref() {
                slot.overwrite(number);
            }
        },
        receive_in_place: |receiver, number| {
            receiver.recv_ref().map_or(u64::MAX, |slot| slot.difference(number))
        },
    }
}

/// Leaves messages of several words in their slots: the channel's default clears them, although the
/// next message will overwrite them anyway. Clears single words.
#[derive(Clone)]
struct Reuse;

impl<M: Message> Recycle<M> for Reuse {
    fn new_element(&self) -> M {
        M::all(0)
    }

    #[inline(always)]
    fn recycle(&self, element: &mut M) {
        if size_of::<M>() == size_of::<u64>() {
            *element = M::all(0);
        }
    }
}

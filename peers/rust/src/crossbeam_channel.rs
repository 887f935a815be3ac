//! `crossbeam-channel`: if bounded, an array with a stamp in each slot; if unbounded, a list of
//! blocks of 31 messages.

use crossbeam_channel::{Receiver, Sender};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "crossbeam-channel";
    bounded: {
        name: "crossbeam-bounded",
        sentence: "crossbeam_channel::bounded, an array with a stamp per slot",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: crossbeam_channel::bounded,
    },
    unbounded: {
        name: "crossbeam-unbounded",
        sentence: "crossbeam_channel::unbounded, a list of blocks",
        capacity: Capacity::Unbounded,
        open: |_| crossbeam_channel::unbounded(),
    };
    many_receivers: (Sender<M>, Receiver<M>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        is_full: |sender| sender.is_full(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv().ok(),
    }
}

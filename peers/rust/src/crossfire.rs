//! The blocking ends of `crossfire`, whose queues are variants of crossbeam's: arrays, for many
//! senders with a stamp in each slot, and lists of blocks.

use crossfire::{MTx, Rx, Tx, mpsc, spsc};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "crossfire";
    bounded: {
        name: "crossfire-bounded",
        sentence: "crossfire::mpsc::bounded_blocking, an array with a stamp per slot",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: mpsc::bounded_blocking,
    };
    many_senders: (MTx<mpsc::Array<M>>, Rx<mpsc::Array<M>>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        is_full: |sender| sender.is_full(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv().ok(),
    }
}

peer! {
    package: "crossfire";
    unbounded: {
        name: "crossfire-unbounded",
        sentence: "crossfire::mpsc::unbounded_blocking, a list of blocks",
        capacity: Capacity::Unbounded,
        open: |_| mpsc::unbounded_blocking(),
    };
    many_senders: (MTx<mpsc::List<M>>, Rx<mpsc::List<M>>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv().ok(),
    }
}

peer! {
    package: "crossfire";
    spsc: {
        name: "crossfire-spsc",
        sentence: "crossfire::spsc::bounded_blocking, a ring for one sender and one receiver",
        capacity: Capacity::Slots(Slots::PLAIN),
        open: spsc::bounded_blocking,
    };
    one_sender: (Tx<spsc::Array<M>>, Rx<spsc::Array<M>>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        is_full: |sender| sender.is_full(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv().ok(),
    }
}

//! `std::sync::mpsc`: since Rust 1.67, the code of crossbeam-channel. The bounded form is
//! `sync_channel`.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "std";
    bounded: {
        name: "std-mpsc-bounded",
        sentence: "std::sync::mpsc::sync_channel",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: sync_channel,
    };
    many_senders: (SyncSender<M>, Receiver<M>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv().ok(),
    }
}

peer! {
    package: "std";
    unbounded: {
        name: "std-mpsc-unbounded",
        sentence: "std::sync::mpsc::channel",
        capacity: Capacity::Unbounded,
        open: |_| channel(),
    };
    many_senders: (Sender<M>, Receiver<M>);
    calls: {
        try_send: |sender, message| {
            let _ = sender.send(message);
            true
        },
        try_receive: |receiver| receiver.try_recv().ok(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv().ok(),
    }
}

//! The blocking ends of `async-channel`.

use async_channel::{Receiver, Sender};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "async-channel";
    bounded: {
        name: "async-channel-bounded",
        sentence: "async_channel::bounded with its blocking ends",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: async_channel::bounded,
    },
    unbounded: {
        name: "async-channel-unbounded",
        sentence: "async_channel::unbounded with its blocking ends",
        capacity: Capacity::Unbounded,
        open: |_| async_channel::unbounded(),
    };
    many_receivers: (Sender<M>, Receiver<M>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        is_full: |sender| sender.is_full(),
        send: |sender, message| sender.send_blocking(message),
        receive: |receiver| receiver.recv_blocking().ok(),
    }
}

//! `thingbuf`, its blocking channel: an array of slots in which messages are written in place.

use thingbuf::mpsc::blocking::{Receiver, Sender, channel};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "thingbuf";
    bounded: {
        name: "thingbuf",
        sentence: "thingbuf::mpsc::blocking::channel, an array of reused slots",
        capacity: Capacity::Slots(Slots::NUMBERED),
        open: channel,
    };
    many_senders: (Sender<u64>, Receiver<u64>);
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |receiver| receiver.try_recv().ok(),
        send: |sender, message| sender.send(message),
        receive: |receiver| receiver.recv(),
    }
}

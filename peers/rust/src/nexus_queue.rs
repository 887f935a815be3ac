//! `nexus-queue`: its ring for one sender and one receiver; each end caches the other's position.

use nexus_queue::spsc::{Consumer, Producer, ring_buffer};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::peer::peer;

peer! {
    package: "nexus-queue";
    ring: {
        name: "nexus-queue",
        sentence: "nexus_queue::spsc, a ring for one sender and one receiver",
        capacity: Capacity::Slots(Slots::PLAIN.power_of_two()),
        open: ring_buffer,
    };
    one_sender: (Producer<M>, Consumer<M>);
    calls: {
        try_send: |sender, message| sender.push(message).is_ok(),
        try_receive: |receiver| receiver.pop(),
    }
}

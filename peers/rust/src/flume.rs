//! `flume`: a deque behind a lock. Its asynchronous part is left out, because the blocking ends do
//! not use it.
//!
//! Its batch call is `drain`, which takes all available messages under one acquisition of the lock.

use flume::{Receiver, Sender};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::buffer::{Buffer, buffered};
use crate::peer::{nobody, peer};

peer! {
    package: "flume";
    bounded: {
        name: "flume-bounded",
        sentence: "flume::bounded, a deque behind a lock",
        capacity: Capacity::Slots(Slots::PLAIN),
        open: |capacity| buffered(flume::bounded(capacity)),
    },
    unbounded: {
        name: "flume-unbounded",
        sentence: "flume::unbounded, a deque behind a lock",
        capacity: Capacity::Unbounded,
        open: |_| buffered(flume::unbounded()),
    };
    many_receivers: (Sender<M>, (Receiver<M>, Buffer<M>));
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |(receiver, _)| receiver.try_recv().ok(),
        is_full: |sender| sender.is_full(),
        send: |sender, message| sender.send(message),
        receive: |(receiver, _)| receiver.recv().ok(),
        try_receive_batch: |(receiver, buffer), limit, take| {
            buffer.hand_on(limit, take, |messages| messages.extend(receiver.drain()))
        },
        receive_batch: |(receiver, buffer), limit, take| buffer.hand_on(limit, take, |messages| {
            messages.push(receiver.recv().unwrap_or(nobody()));
            messages.extend(receiver.drain());
        }),
    }
}

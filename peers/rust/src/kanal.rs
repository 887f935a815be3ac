//! The blocking ends of `kanal`: a deque behind a lock. If an end waits, its message is copied
//! directly from stack to stack.
//!
//! Its batch call is `drain_into`, which takes all available messages under one acquisition of the
//! lock.

use kanal::{Receiver, Sender};
use threadtoll_lab::queue::{Capacity, Slots};

use crate::buffer::{Buffer, buffered};
use crate::peer::{nobody, peer};

peer! {
    package: "kanal";
    bounded: {
        name: "kanal-bounded",
        sentence: "kanal::bounded, its blocking ends",
        capacity: Capacity::Slots(Slots::PLAIN),
        open: |capacity| buffered(kanal::bounded(capacity)),
    },
    unbounded: {
        name: "kanal-unbounded",
        sentence: "kanal::unbounded, its blocking ends",
        capacity: Capacity::Unbounded,
        open: |_| buffered(kanal::unbounded()),
    };
    many_receivers: (Sender<M>, (Receiver<M>, Buffer<M>));
    calls: {
        try_send: |sender, message| sender.try_send(message) == Ok(true),
        try_receive: |(receiver, _)| receiver.try_recv().ok().flatten(),
        is_full: |sender| sender.is_full(),
        send: |sender, message| sender.send(message),
        receive: |(receiver, _)| receiver.recv().ok(),
        try_receive_batch: |(receiver, buffer), limit, take| {
            buffer.hand_on(limit, take, |messages| _ = receiver.drain_into(messages))
        },
        receive_batch: |(receiver, buffer), limit, take| buffer.hand_on(limit, take, |messages| {
            messages.push(receiver.recv().unwrap_or(nobody()));
            _ = receiver.drain_into(messages);
        }),
    }
}

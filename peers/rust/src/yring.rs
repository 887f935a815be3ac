//! `yring`: a ring for one sender and one receiver that publishes on request: here, after each
//! message or each batch.

use threadtoll_lab::queue::{Capacity, Slots};
use yring::{Consumer, Producer};

use crate::buffer::buffered;
use crate::peer::peer;

peer! {
    package: "yring";
    ring: {
        name: "yring",
        sentence: "yring::spsc, a ring for one sender and one receiver that publishes in batches",
        capacity: Capacity::Slots(Slots::PLAIN.power_of_two()),
        open: |capacity| buffered(yring::spsc(capacity)),
    };
    one_sender: (Producer<M>, (Consumer<M>, Vec<M>));
    calls: {
        try_send: |sender, message| sender.push_and_flush(message).is_ok(),
        try_receive: |(receiver, _)| receiver.prefetch_and_pop(),
        is_full: |sender| sender.is_full(),
        try_send_batch: |sender, messages| {
            let sent = messages.iter().take_while(|message| sender.push(**message).is_ok()).count();
            if sent > 0 {
                sender.flush();
            }
            sent
        },
        try_receive_batch: |(receiver, batch), limit, take| {
            receiver.prefetch();
            batch.clear();
            let received = receiver.pop_into(batch, limit);
            if received > 0 {
                receiver.release();
                take(batch);
            }
            received
        },
    }
}

//! `tokio::sync::mpsc`, used outside of a runtime: its blocking ends, and its non-blocking calls.
//!
//! Its batch call is `blocking_recv_many`, so batches are measured only with blocking calls.

use threadtoll_lab::queue::{Capacity, Slots};
use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};

use crate::buffer::buffered;
use crate::peer::{nobody, peer};

peer! {
    package: "tokio";
    bounded: {
        name: "tokio-mpsc-bounded",
        sentence: "tokio::sync::mpsc::channel with its blocking ends, outside of a runtime",
        // Each block holds 32 messages and four more words.
        capacity: Capacity::Slots(Slots::groups(32, 288)),
        open: |capacity| buffered(channel(capacity)),
    };
    many_senders: (Sender<M>, (Receiver<M>, Vec<M>));
    calls: {
        try_send: |sender, message| sender.try_send(message).is_ok(),
        try_receive: |(receiver, _)| receiver.try_recv().ok(),
        is_full: |sender| sender.capacity() == 0,
        send: |sender, message| sender.blocking_send(message),
        receive: |(receiver, _)| receiver.blocking_recv(),
        receive_batch: |(receiver, batch), limit, take| {
            batch.clear();
            if receiver.blocking_recv_many(batch, limit) == 0 {
                batch.push(nobody());
            }
            take(batch);
            batch.len()
        },
    }
}

peer! {
    package: "tokio";
    unbounded: {
        name: "tokio-mpsc-unbounded",
        sentence: "tokio::sync::mpsc::unbounded_channel with its blocking receive, outside of a runtime",
        capacity: Capacity::Unbounded,
        open: |_| buffered(unbounded_channel()),
    };
    many_senders: (UnboundedSender<M>, (UnboundedReceiver<M>, Vec<M>));
    calls: {
        try_send: |sender, message| {
            let _ = sender.send(message);
            true
        },
        try_receive: |(receiver, _)| receiver.try_recv().ok(),
        send: |sender, message| sender.send(message),
        receive: |(receiver, _)| receiver.blocking_recv(),
        receive_batch: |(receiver, batch), limit, take| {
            batch.clear();
            if receiver.blocking_recv_many(batch, limit) == 0 {
                batch.push(nobody());
            }
            take(batch);
            batch.len()
        },
    }
}

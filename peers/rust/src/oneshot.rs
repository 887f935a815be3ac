//! The crate `oneshot`, as the channel of a reply.

use oneshot::{Receiver, Sender};
use threadtoll_lab::queue::oneshot::{Reply, requests};
use threadtoll_lab::queue::{Capacity, Queue, Way};
use threadtoll_record::{Origin, Wait};

/// The queue `oneshot-crate`: the crate's name is that of our own row.
pub(crate) fn reply() -> Queue {
    Queue {
        name: "oneshot-crate".into(),
        origin: Origin::Rust,
        version: env!("VERSION_oneshot").into(),
        sentence:
            "the crate oneshot: each answer through a fresh channel, its request through a pipe"
                .into(),
        capacity: Capacity::Fixed,
        built: None,
        ways: vec![Way::exchange_only(Wait::Block, requests::<Oneshot>)],
    }
}

enum Oneshot {}

impl Reply for Oneshot {
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;

    fn channel() -> (Sender<u64>, Receiver<u64>) {
        oneshot::channel()
    }

    #[inline(always)]
    fn send(sender: Sender<u64>, answer: u64) {
        let _ = sender.send(answer);
    }

    #[inline(always)]
    fn receive(receiver: Receiver<u64>) -> u64 {
        receiver.recv().unwrap_or(0)
    }
}

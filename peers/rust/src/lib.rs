//! Adapters from common Rust channels and rings to the lab's queues.
//!
//! A peer is one file, and one line in `peers!`. Each peer is used in the way that its
//! documentation recommends for speed, and its version is recorded with every measurement. A
//! *polled* peer is measured with a loop around its non-blocking calls, either without a pause or
//! with a pause after each failure. A *blocking* peer is measured with its blocking calls, which
//! wait in their own way before they sleep. The slot layout of a bounded peer is taken from its
//! source code. A channel for one message is measured as the channel of a reply.

mod buffer;
mod peer;
pub mod twin;

use threadtoll_lab::queue::Queue;

/// Declares the peers' modules and lists their queues.
macro_rules! peers {
    ($($module:ident: $($row:ident),+;)+) => {
        $(mod $module;)+

        /// All peers; queues of the same library are next to each other.
        pub fn peers() -> Vec<Queue> {
            vec![$($($module::$row()),+),+]
        }
    };
}

peers! {
    std_mpsc: bounded, unbounded;
    crossbeam_channel: bounded, unbounded;
    crossbeam_queue: array, segmented;
    flume: bounded, unbounded;
    kanal: bounded, unbounded;
    async_channel: bounded, unbounded;
    tokio_mpsc: bounded, unbounded;
    tokio_spawn: spawned;
    tokio_broadcast: channel_of_all;
    disruptor: ring;
    crossfire: bounded, unbounded, spsc;
    rtrb: ring;
    ringbuf: ring;
    nexus_queue: ring;
    gil: ring;
    oneshot: reply;
}

//! Adapters from common Rust channels and rings to the lab's queues.
//!
//! A peer is one file, and one line in `peers!`. Each is used in the way that its documentation
//! recommends for speed, and its version is part of every cell. A *polled* row calls the
//! non-blocking receive function in a loop, and the non-blocking send function while the peer is
//! full, either without a pause or with one after each failure. A row that *blocks* makes the
//! blocking calls, however these wait before they sleep. The slots of a bounded peer have the
//! layout that is in its source.

mod buffer;
mod peer;
pub mod twin;

use threadtoll_lab::queue::Queue;

/// Declares the peers' modules and lists their rows.
macro_rules! peers {
    ($($module:ident: $($row:ident),+;)+) => {
        $(mod $module;)+

        /// All peers; those of the same library are next to each other.
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
    thingbuf: bounded;
    rtrb: ring;
    ringbuf: ring;
    nexus_queue: ring;
    yring: ring;
    gil: ring;
}

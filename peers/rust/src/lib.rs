//! Adapters of Rust's common channels and rings to the lab's queues.
//!
//! A peer is one file and one line in `peers!`. Each is used as its documentation recommends for
//! speed, and its version is part of every cell. A *polled* row calls the non-blocking receive in a
//! loop, and the non-blocking send while the peer is full, without a pause or with one after each
//! failure. A row that *blocks* makes the blocking calls, however they wait before they sleep. The
//! slots of a bounded peer are those in its source.

mod buffer;
mod peer;
pub mod twin;

use threadtoll_lab::queue::Queue;

/// Declares the peers' modules and lists their rows.
macro_rules! peers {
    ($($module:ident: $($row:ident),+;)+) => {
        $(mod $module;)+

        /// Returns all peers, those of a library next to each other.
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

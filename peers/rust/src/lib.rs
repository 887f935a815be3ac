//! The channels and rings that people choose between in Rust, on the lab's queue seam.
//!
//! A peer is one file and one line in `peers!`. Each is used as its own documentation recommends
//! for speed, and its version is in every cell. A *polled* receive calls the peer's non-blocking
//! one in a loop, and then so does a send while the peer is full: as tight as it gets, or with a
//! pause after each failure. A receive that *blocks* is the peer's blocking call, however it waits
//! before it sleeps. They are different rows. The slots of a bounded peer are those of its source.

mod buffer;
mod peer;
mod twin;

use threadtoll_lab::queue::Queue;

/// Declares the modules of the peers, each with its rows.
macro_rules! peers {
    ($($module:ident: $($row:ident),+;)+) => {
        $(mod $module;)+

        /// Returns all of them, those of one library next to each other.
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

/// Returns our queues once more, compiled here: see [`Origin::Twin`](threadtoll_record::Origin).
pub fn twins() -> Vec<Queue> {
    vec![twin::pipe(), twin::pipe_bounded(), twin::funnel()]
}

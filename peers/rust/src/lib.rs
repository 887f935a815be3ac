//! The channels and rings that people choose between in Rust, on the lab's queue seam.
//!
//! A peer is one file and one line in [`peers`]. Each is used as its own documentation recommends
//! for speed, and its version is in every cell. A *polled* receive calls the peer's non-blocking
//! one in a loop, and then so does a send while the peer is full: as tight as it gets, or with a
//! pause after each failure. A receive that *blocks* is the peer's blocking call, however it waits
//! before it sleeps. They are different rows. The slots of a bounded peer are those of its source.
//!
//! The other end of a channel is gone only when a run is over, or has failed; so an end that finds
//! itself alone sends into the void, and receives a made-up message.

mod async_channel;
mod crossbeam_channel;
mod crossbeam_queue;
mod flume;
mod gil;
mod kanal;
mod nexus_queue;
mod ringbuf;
mod rtrb;
mod std_mpsc;
mod surplus;
mod thingbuf;
mod tokio_mpsc;
mod twin;
mod yring;

use threadtoll_lab::queue::{Capacity, Queue, Slots, Way};
use threadtoll_record::Origin;

/// Returns all of them. Where two forms of one share a file, the bounded one comes first.
pub fn peers() -> Vec<Queue> {
    vec![
        std_mpsc::bounded_row(),
        std_mpsc::unbounded_row(),
        crossbeam_channel::bounded_row(),
        crossbeam_channel::unbounded_row(),
        crossbeam_queue::array_row(),
        crossbeam_queue::segmented_row(),
        flume::bounded_row(),
        flume::unbounded_row(),
        kanal::bounded_row(),
        kanal::unbounded_row(),
        async_channel::bounded_row(),
        async_channel::unbounded_row(),
        tokio_mpsc::bounded_row(),
        tokio_mpsc::unbounded_row(),
        thingbuf::row(),
        rtrb::row(),
        ringbuf::row(),
        nexus_queue::row(),
        yring::row(),
        gil::row(),
    ]
}

/// Returns our queues once more, compiled here: see [`Origin::Twin`].
pub fn twins() -> Vec<Queue> {
    vec![twin::pipe_row(), twin::pipe_bounded_row(), twin::funnel_row()]
}

/// What is received where no sender is left.
const NOBODY: u64 = u64::MAX;

fn bounded<const N: usize>(
    name: &str,
    version: &str,
    slots: Slots,
    ways: [Way; N],
    sentence: &str,
) -> Queue {
    Queue { capacity: Capacity::Slots(slots), ..unbounded(name, version, ways, sentence) }
}

fn unbounded<const N: usize>(name: &str, version: &str, ways: [Way; N], sentence: &str) -> Queue {
    Queue {
        name: name.into(),
        origin: Origin::Rust,
        version: version.into(),
        sentence: sentence.into(),
        capacity: Capacity::Unbounded,
        ways: ways.into(),
    }
}

/// An end that polls in a loop as tight as it gets.
const TIGHT: u32 = 0;
/// An end that polls with this number of pause hints after a failed attempt, some microseconds,
/// while the other end fills or empties many lines undisturbed.
const BACKOFF: u32 = 100;
/// An end that calls what blocks.
const BLOCK: u32 = u32::MAX;

/// Tries until it succeeds, with that many pause hints after each failure.
#[inline(always)]
fn until<const PAUSES: u32, T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        pause::<PAUSES>();
    }
}

#[inline(always)]
fn pause<const PAUSES: u32>() {
    for _ in 0..PAUSES {
        std::hint::spin_loop();
    }
}

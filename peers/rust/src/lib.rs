//! The channels and rings that people choose between in Rust, on the lab's queue seam.
//!
//! A peer is one file and one line in [`PEERS`]. Each is used as its own documentation recommends for speed, and its
//! version stands in every cell. A receive that is *polled* is the peer's attempt in a loop as tight as it gets, and so is a
//! send then where the peer is full; a receive that *blocks* is the peer's blocking one, whatever it does before it sleeps. They
//! are different rows. Bounded peers hold [`CAPACITY`](threadtoll_lab::queue::CAPACITY) messages.
//!
//! The other end of a channel is gone only when a run is over, or has failed; so an end that finds itself alone sends into the
//! void, and receives a message that nobody sent.

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
mod yring;

use threadtoll_lab::queue::{Queue, Way};
use threadtoll_record::Origin;

/// All of them. Where two forms of one share a file, the bounded one comes first.
pub const PEERS: &[Queue] = &[
    std_mpsc::BOUNDED,
    std_mpsc::UNBOUNDED,
    crossbeam_channel::BOUNDED,
    crossbeam_channel::UNBOUNDED,
    crossbeam_queue::ARRAY,
    crossbeam_queue::SEGMENTED,
    flume::BOUNDED,
    flume::UNBOUNDED,
    kanal::BOUNDED,
    kanal::UNBOUNDED,
    async_channel::BOUNDED,
    async_channel::UNBOUNDED,
    tokio_mpsc::BOUNDED,
    tokio_mpsc::UNBOUNDED,
    thingbuf::QUEUE,
    rtrb::QUEUE,
    ringbuf::QUEUE,
    nexus_queue::QUEUE,
    yring::QUEUE,
    gil::QUEUE,
];

/// What is received where no sender is left.
const NOBODY: u64 = u64::MAX;

const fn bounded(
    name: &'static str,
    version: &'static str,
    ways: &'static [Way],
    sentence: &'static str,
) -> Queue {
    Queue { name, origin: Origin::Rust, version, sentence, bounded: true, ways }
}

const fn unbounded(
    name: &'static str,
    version: &'static str,
    ways: &'static [Way],
    sentence: &'static str,
) -> Queue {
    Queue { bounded: false, ..bounded(name, version, ways, sentence) }
}

/// Tries until it succeeds, without a pause: the tightest loop that there is around an attempt.
#[inline(always)]
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = attempt() {
            return found;
        }
    }
}

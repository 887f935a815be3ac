//! The ring: one writer, and readers that each see every event (the Disruptor pattern).
//!
//! The slots are made once and reused: the writer changes the event in the next slot, and readers
//! borrow it. A reader takes all events that are there as one batch, so it catches up the faster
//! the further it is behind. A reader may come after others, and then sees an event only when these
//! have read it. The writer waits for the slowest reader.
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::ring;
//!
//! #[derive(Default)]
//! struct Quote {
//!     instrument: usize,
//!     price: u64,
//! }
//!
//! // The logic prices only what has been journalled and replicated.
//! let mut builder = ring::Builder::new(1024, Quote::default);
//! let (mut journal, mut replica) = (builder.reader(), builder.reader());
//! let mut logic = builder.reader_after([&journal, &replica]);
//! let mut writer = builder.start()?;
//!
//! // Each thread owns its reader, so the reader leaves if the thread panics.
//! let journal = thread::spawn(move || {
//!     let mut lines = Vec::new();
//!     while let Ok(batch) = journal.recv_batch() {
//!         // One write for the whole batch.
//!         lines.extend(batch.iter().map(|quote| (quote.instrument, quote.price)));
//!     }
//!     lines
//! });
//! let replica = thread::spawn(move || {
//!     let mut copies = 0;
//!     while let Ok(batch) = replica.recv_batch() {
//!         copies += batch.len();
//!     }
//!     copies
//! });
//! let logic = thread::spawn(move || {
//!     let mut highest = [0; 4];
//!     while let Ok(batch) = logic.recv_batch() {
//!         for quote in &batch {
//!             let highest = &mut highest[quote.instrument];
//!             *highest = quote.price.max(*highest);
//!         }
//!     }
//!     highest
//! });
//! for price in 1..=100 {
//!     writer.publish(|quote| {
//!         quote.instrument = price as usize % 4;
//!         quote.price = price;
//!     })?;
//! }
//! drop(writer);
//! assert_eq!(journal.join().unwrap().len(), 100);
//! assert_eq!(replica.join().unwrap(), 100);
//! assert_eq!(logic.join().unwrap(), [100, 97, 98, 99]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! - **Several writers.** Put a [funnel](crate::funnel) in front, whose receiver writes.
//! - **Overwrite.** A reader that does not read stops the writer. [`Reader::lag`] and
//!   [`Writer::lag`] tell how far it is behind; dropping it lets the others go on. A writer that
//!   must not wait uses [`Writer::try_publish`].
//! - **Late readers.** All readers are there when the ring is started.
//! - **Share the work.** Each reader sees every event. To give each event to one of several
//!   workers, use a [pipe](crate::pipe) for each.
//! - **Sleep without disturbing others.** An end that goes to sleep may [interrupt other
//!   threads](crate::wait#what-a-sleep-costs-others), unless others often sleep for the same end.
//!   [`Options::fence`] avoids that.
//! - **Wait in a task.** Threads wait: for events of one ring, for several ends by a
//!   [`Select`](crate::select::Select), in an event loop by a
//!   [`Descriptor`](crate::select::Descriptor), or for everything that an
//!   [owner](crate::owned::Context::serve_ring) serves. The methods that begin with `try_` may be
//!   called in a task.
//! - **Hold a batch for free.** Slots are free once the slowest reader has dropped its batch. A
//!   reader that takes long for each event may [truncate](Batch::truncate) its batches.
//!
//! # What it promises
//!
//! - Every reader receives every event that is published while it is there, once and in order, and
//!   never sees part of an event. Exceptions are batches that are leaked or in which the thread
//!   panics: a reader that goes on receives their events again.
//! - A reader receives an event after all readers that were named in its
//!   [`reader_after`](Builder::reader_after) have read it, unless one of these has left: see
//!   [`Batch::has_lost_dependency`]. Dropping a [`Batch`] counts all its events as read, unless the
//!   thread panics.
//! - A reader that leaves, because it is dropped or its thread panics while it owns the reader, no
//!   longer holds back the writer. Readers that come after it follow the readers that it came
//!   after, or else the writer. They are not stopped, since the ring cannot know if they can do
//!   without it.
//! - An event is visible when `publish` returns; the events of one
//!   [`publish_many`](Writer::publish_many) become visible together. If the closure panics, nothing
//!   becomes visible, and the writer may go on.
//! - `try_publish` and `try_recv_batch` never wait for another thread. No method of writer and
//!   readers allocates, except that a reader may if one after which it comes has left.
//! - A publication that finds room and has nobody to wake executes no fence, no locked instruction
//!   and no system call, and neither does a reader that finds events. There are four exceptions.
//!   An end for which others often sleep fences, until none has slept for 64 events. If another one
//!   has slept for it until a time-out, the next event makes one system call, though nobody sleeps.
//!   If a `Select` has waited for it in vain, the next event executes two locked instructions. With
//!   [`Options::fence`], or if the kernel lacks `membarrier(2)`, all ends always fence.
//! - When the writer is dropped, each reader receives what is left and then an error. When the last
//!   reader is dropped, the writer gets an error.
//!
//! # How it works
//!
//! Events of up to 56 bytes lie in cache lines together with a count, as the messages of a
//! [pipe](crate::pipe) do, so an event and the news of it arrive in one transfer. A reader that
//! comes after others polls their positions instead, each of which has a cache line of its own, and
//! is stored once for each batch. The writer reads the positions of the readers when it has filled
//! the room that it knew of, which is a lap if the readers keep up. Positions are 64 bits wide and
//! never wrap around. The Disruptor calls a position a *sequence*, and those for which the writer
//! waits its *gating sequences*.
//!
//! The pattern is that of the LMAX Disruptor (Thompson, Farley, Barker, Gee and Stewart:
//! *Disruptor: High performance alternative to bounded queues for exchanging data between
//! concurrent threads*, 2011).

mod builder;
mod progress;
mod reader;
mod shared;
mod slots;
#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests;
mod watcher;
mod writer;

pub use builder::{Builder, Options};
pub use reader::{Batch, Iter, Reader};
pub use writer::Writer;

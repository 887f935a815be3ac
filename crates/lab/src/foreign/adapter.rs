//! Rows of adapters (shared libraries). Our loops call the C functions of a library, so that every
//! scenario measures queues of adapters as it measures ours.
//!
//! Each message costs a call through a pointer at each end, which queues compiled with this program
//! do not pay. Receivers always copy messages: the interface has no call that reads a message in
//! its slot. A library runs in the measuring process, where its stray writes may corrupt other
//! rows.

use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use threadtoll_record::{Build, Carry, Wait};

use crate::error::Unavailable;
use crate::queue::{Channel, Message, Queue, Sink, Source, Usage, Way};

use super::description::{self, Described as DescribedQueue};
use super::file_name;
use super::library::{Described, Destroy, Functions, Loader, Receive, Send, create};

/// Number of pause hints after a failed attempt in rows that poll with back-off.
const BACKOFF: u32 = 100;
/// Return values of `tt_send` and `tt_send_wait`.
const TAKEN: c_int = 0;
const FULL: c_int = 1;
/// Maximum number of messages that a receiver takes in one call.
const MOST: usize = 1024;
/// Sender number that is passed to `tt_enter` on a receiver's thread.
const RECEIVER: c_int = -1;

/// Name of a queue, and either the queue or a clause that says why it cannot be measured.
pub(super) type Found = (String, Result<Queue, String>);

pub(super) fn queues(described: &Described) -> Result<Vec<Found>, String> {
    let adapter = description::parse(&described.text)?;
    let loader = Arc::new(Loader::new(described));
    let origin = adapter.origin();
    let (language, compiler, flags) = adapter.build();
    let built = Build { language, compiler, flags, sha256: described.sha256.clone() };
    let queue = |queue: Result<DescribedQueue, String>| {
        let queue = queue?;
        Ok(Queue {
            name: queue.name.clone(),
            origin,
            version: queue.version(),
            sentence: queue.sentence(),
            capacity: queue.capacity(),
            built: Some(built.clone()),
            ways: ways(&queue, described, &loader)?,
        })
    };
    Ok(adapter.into_queues().into_iter().map(|(name, found)| (name, queue(found))).collect())
}

fn ways(
    queue: &DescribedQueue,
    described: &Described,
    loader: &Arc<Loader>,
) -> Result<Vec<Way>, String> {
    let sizes = queue.message_bytes();
    let waits = queue.waits();
    let blocks = waits.contains(&Wait::Block);
    let needs: [(bool, &str, &[&str]); 5] = [
        (queue.batches, "batches", &["tt_send_many", "tt_recv_many"]),
        (queue.claims, "claims", &["tt_claim", "tt_publish"]),
        (sizes != [8], "messages of more than 8 bytes", &["tt_create_sized"]),
        (blocks, "the wait “block”", &["tt_recv"]),
        (blocks && queue.bounded(), "the wait “block”", &["tt_send_wait"]),
    ];
    for (_, what, functions) in needs.iter().filter(|(needed, ..)| *needed) {
        if let Some(function) = functions.iter().find(|function| !described.has(function)) {
            return Err(format!("it claims to support {what}, but the library has no {function}"));
        }
    }
    let name: Arc<CStr> =
        CString::new(queue.name.as_str()).map_err(|error| error.to_string())?.into();
    let way = |wait: Wait| {
        let (loader, name) = (Arc::clone(loader), Arc::clone(&name));
        let adapter = Adapter { loader, name, wait, bounded: queue.bounded() };
        let way = match (queue.many_senders(), queue.many_receivers()) {
            (_, true) => Way::many_receivers_of(adapter, wait),
            (true, false) => Way::many_senders_of(adapter, wait),
            (false, false) => Way::one_sender_of(adapter, wait),
        };
        let (batches, claims, sizes) = (queue.batches, queue.claims, sizes.clone());
        let way = way.limited_to(move |_: &str, usage: &Usage| match usage.load.carry {
            Some(Carry::InPlace) => claims && sizes.contains(&usage.payload_bytes),
            Some(Carry::Moved) | None => sizes.contains(&usage.payload_bytes),
        });
        if batches { way.in_batches() } else { way }
    };
    Ok(waits.into_iter().map(way).collect())
}

#[derive(Clone)]
struct Adapter {
    loader: Arc<Loader>,
    name: Arc<CStr>,
    wait: Wait,
    bounded: bool,
}

impl<M: Message> Channel<M> for Adapter {
    type Source = To;
    type Sink = From<M>;

    const IN_PLACE: bool = true;

    fn open(&self, capacity: usize) -> Result<(To, From<M>), Unavailable> {
        let unavailable = |error| Unavailable::new(file_name(self.loader.path()), error);
        let functions = self.loader.functions().map_err(unavailable)?;
        let queue = create(&functions, &self.name, capacity, size_of::<M>()).ok_or_else(|| {
            let what = format!("with room for {capacity} messages of {} bytes", size_of::<M>());
            unavailable(io::Error::other(format!("it cannot create a queue {what}")))
        })?;
        let handle = Arc::new(Handle { queue, destroy: functions.destroy });
        let blocks = self.wait == Wait::Block;
        let pauses = if self.wait == Wait::PollBackoff { BACKOFF } else { 0 };
        let to = To {
            queue,
            // A library need not support `tt_send_wait` for unbounded queues.
            send: functions.send_wait.filter(|_| blocks && self.bounded).unwrap_or(functions.send),
            pauses,
            functions,
            sender: 0,
            senders: Arc::new(AtomicI32::new(1)),
            handle: Arc::clone(&handle),
        };
        let receive = functions.receive.filter(|_| blocks).unwrap_or(functions.try_receive);
        // Only messages of 8 bytes are received in batches.
        let most = if size_of::<M>() == 8 { MOST } else { 1 };
        // The buffer is touched here, before the clock starts.
        let buffer = std::iter::repeat_n(std::hint::black_box(M::all(0)), most).collect();
        Ok((to, From { queue, receive, blocks, pauses, functions, buffer, handle }))
    }
}

/// Destroys the queue when its last end is dropped.
struct Handle {
    queue: *mut c_void,
    destroy: Destroy,
}

// SAFETY: by the interface, any thread may destroy a queue that no thread uses any more.
unsafe impl std::marker::Send for Handle {}
// SAFETY: a shared handle gives access to nothing.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the queue was created by the same library, and no end of it is left.
        unsafe { (self.destroy)(self.queue) };
    }
}

#[inline(always)]
fn pause(hints: u32) {
    for _ in 0..hints {
        std::hint::spin_loop();
    }
}

/// Ends the thread of a sender whose queue is closed or has returned an invalid value, so that the
/// row is given up. Otherwise, the receiver would wait for ever.
#[cold]
fn closed() -> ! {
    // Unlike `panic!`, this prints nothing to standard error. The unwinding does not pass through
    // the library.
    resume_unwind(Box::new("the queue is closed"))
}

struct To {
    queue: *mut c_void,
    /// `tt_send`, or `tt_send_wait` in rows that block.
    send: Send,
    pauses: u32,
    functions: Functions,
    sender: c_int,
    /// Number that the next clone gets.
    senders: Arc<AtomicI32>,
    handle: Arc<Handle>,
}

// SAFETY: by the interface, a queue may be used by a thread that did not create it, and each end
// by one thread at a time.
unsafe impl std::marker::Send for To {}

impl Clone for To {
    fn clone(&self) -> Self {
        To {
            queue: self.queue,
            send: self.send,
            pauses: self.pauses,
            functions: self.functions,
            // Relaxed: the numbers only have to be distinct.
            sender: self.senders.fetch_add(1, Ordering::Relaxed),
            senders: Arc::clone(&self.senders),
            handle: Arc::clone(&self.handle),
        }
    }
}

impl<M: Message> Source<M> for To {
    fn enter(&mut self) {
        if let Some(enter) = self.functions.enter {
            // SAFETY: by the interface, called once on the thread of this end.
            unsafe { enter(self.queue, self.sender) };
        }
    }

    #[inline(always)]
    fn send(&mut self, message: M) {
        let place = (&raw const message).cast();
        loop {
            // SAFETY: by the interface; the message has this many bytes and outlives the call.
            match unsafe { (self.send)(self.queue, place, size_of::<M>()) } {
                TAKEN => return,
                FULL => pause(self.pauses),
                _ => closed(),
            }
        }
    }

    #[inline(always)]
    fn try_send(&mut self, message: M) -> bool {
        let place = (&raw const message).cast();
        // SAFETY: as in `send`.
        match unsafe { (self.functions.send)(self.queue, place, size_of::<M>()) } {
            TAKEN => true,
            FULL => false,
            _ => closed(),
        }
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[M]) {
        let Some(send_many) = self.functions.send_many else {
            messages.iter().for_each(|message| self.send(*message));
            return;
        };
        while let [first, rest @ ..] = messages {
            let place = messages.as_ptr().cast();
            // SAFETY: by the interface; there are this many messages, which outlive the call.
            let sent = unsafe { send_many(self.queue, place, size_of::<M>(), messages.len()) };
            match messages.get(sent..) {
                // The queue is full: `send` waits according to the row's wait strategy.
                Some(_) if sent == 0 => {
                    self.send(*first);
                    messages = rest;
                }
                Some(left) => messages = left,
                // The library claims to have sent more messages than there were.
                None => closed(),
            }
        }
    }

    #[inline(always)]
    fn send_in_place(&mut self, number: u64) {
        let (Some(claim), Some(publish)) = (self.functions.claim, self.functions.publish) else {
            self.send(M::numbered(number));
            return;
        };
        let place = loop {
            // SAFETY: by the interface, this end has no other claim.
            let place = unsafe { claim(self.queue, size_of::<M>()) }.cast::<MaybeUninit<M>>();
            if !place.is_null() {
                break place;
            }
            pause(self.pauses);
        };
        if place.is_aligned() {
            // SAFETY: by the interface the place has room for a message, and is this end's alone
            // until it is published.
            M::fill(unsafe { &mut *place }, number);
        } else {
            // SAFETY: as above.
            unsafe { place.cast::<M>().write_unaligned(M::numbered(number)) };
        }
        // SAFETY: the claimed place has been filled.
        unsafe { publish(self.queue) };
    }
}

struct From<M> {
    queue: *mut c_void,
    /// `tt_try_recv`, or `tt_recv` in rows that block.
    receive: Receive,
    blocks: bool,
    pauses: u32,
    functions: Functions,
    buffer: Vec<M>,
    handle: Arc<Handle>,
}

// SAFETY: as for `To`.
unsafe impl<M: Message> std::marker::Send for From<M> {}

impl<M: Message> Clone for From<M> {
    fn clone(&self) -> Self {
        From { buffer: self.buffer.clone(), handle: Arc::clone(&self.handle), ..*self }
    }
}

impl<M: Message> Sink<M> for From<M> {
    fn enter(&mut self) {
        if let Some(enter) = self.functions.enter {
            // SAFETY: by the interface, called once on the thread of this end.
            unsafe { enter(self.queue, RECEIVER) };
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> M {
        let mut message = MaybeUninit::<M>::uninit();
        let place = message.as_mut_ptr().cast();
        loop {
            // SAFETY: by the interface; the place has room for this many bytes.
            let length = unsafe { (self.receive)(self.queue, place, size_of::<M>()) };
            if length == size_of::<M>() as c_long {
                // SAFETY: by the interface, that many bytes were written.
                return unsafe { message.assume_init() };
            }
            if length != 0 {
                // The queue is closed, or the message has the wrong size. No valid message has the
                // returned value, so verification fails.
                return M::all(u64::MAX);
            }
            pause(self.pauses);
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        let Some(receive_many) = self.functions.receive_many else {
            take(&[self.receive()]);
            return 1;
        };
        let most = self.buffer.len().min(limit);
        loop {
            let place = self.buffer.as_mut_ptr().cast();
            // SAFETY: by the interface; there is room for that many messages.
            let received = unsafe { receive_many(self.queue, place, size_of::<M>(), most) };
            match self.buffer.get(..received) {
                Some([]) if self.blocks => {
                    // The queue is empty: `receive` waits as the library chooses.
                    take(&[self.receive()]);
                    return 1;
                }
                Some([]) => pause(self.pauses),
                Some(messages) if received <= most => {
                    take(messages);
                    return received;
                }
                // The library claims to have written more messages than there was room for.
                _ => {
                    take(&[M::all(u64::MAX)]);
                    return 1;
                }
            }
        }
    }
}

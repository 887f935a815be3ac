//! threadtoll's unbounded pipe behind the C interface of adapters (`peers/adapter.h`): measured
//! next to the pipe itself, it shows what the calls through the interface cost.
//!
//! As in the adapters of C++, a call crosses the C boundary and takes one indirect jump.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ptr;

use threadtoll::pipe::{Options, Receiver, Sender};
use threadtoll::wait::Wait;

const DESCRIPTION: &str = concat!(
    r#"{"adapter":1,"language":"rust","compiler":""#,
    env!("COMPILER"),
    r#"","flags":""#,
    env!("FLAGS"),
    r#"","queues":["#,
    r#"{"name":"pipe-adapter","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","sentence":"threadtoll's pipe with spin, driven as an adapter","waits":["poll"],"#,
    r#""senders":"one","receivers":"one","capacity":"unbounded","batches":true,"claims":false,"#,
    r#""message_bytes":[8,64,512,4096,65536]},"#,
    r#"{"name":"pipe-adapter-park","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","sentence":"threadtoll's pipe with park, driven as an adapter","waits":["block"],"#,
    r#""senders":"one","receivers":"one","capacity":"unbounded","batches":true,"claims":false,"#,
    r#""message_bytes":[8,64,512,4096,65536]}]}"#,
    "\0"
);

const TAKEN: c_int = 0;
const NOTHING: c_long = 0;
const CLOSED: c_long = -1;

/// A queue of messages of one size.
trait Queue {
    /// # Safety
    ///
    /// The sender's thread calls it, with a message of the queue's size.
    unsafe fn send(&self, message: *const c_void) -> c_int;

    /// # Safety
    ///
    /// The sender's thread calls it, with this many messages.
    unsafe fn send_many(&self, messages: *const c_void, count: usize) -> usize;

    /// # Safety
    ///
    /// The receiver's thread calls it, with a place for a message.
    unsafe fn receive(&self, message: *mut c_void, waits: bool) -> c_long;

    /// # Safety
    ///
    /// The receiver's thread calls it, with places for this many messages.
    unsafe fn receive_many(&self, messages: *mut c_void, most: usize) -> usize;
}

/// A line for each end, so that neither thread writes to the other's.
#[repr(align(128))]
struct End<T>(UnsafeCell<T>);

struct Pipe<T> {
    sender: End<Sender<T>>,
    receiver: End<Receiver<T>>,
}

impl<T: Copy + Send + 'static> Pipe<T> {
    fn boxed(wait: Wait) -> Box<dyn Queue> {
        let (sender, receiver) = Options::new().wait(wait).reserve().unbounded::<T>();
        let sender = End(UnsafeCell::new(sender));
        Box::new(Pipe { sender, receiver: End(UnsafeCell::new(receiver)) })
    }
}

impl<T: Copy + Send> Queue for Pipe<T> {
    unsafe fn send(&self, message: *const c_void) -> c_int {
        // SAFETY: only the sender's thread uses this end, one call at a time.
        let sender = unsafe { &mut *self.sender.0.get() };
        // SAFETY: the caller's message has this type, and messages are aligned to 8 bytes.
        let message = unsafe { message.cast::<T>().read() };
        if sender.send(message).is_ok() { TAKEN } else { CLOSED as c_int }
    }

    unsafe fn send_many(&self, messages: *const c_void, count: usize) -> usize {
        // SAFETY: as in `send`.
        let sender = unsafe { &mut *self.sender.0.get() };
        // SAFETY: the caller has this many messages there.
        let messages = unsafe { std::slice::from_raw_parts(messages.cast::<T>(), count) };
        if sender.send_slice(messages).is_ok() { count } else { 0 }
    }

    unsafe fn receive(&self, message: *mut c_void, waits: bool) -> c_long {
        // SAFETY: only the receiver's thread uses this end, one call at a time.
        let receiver = unsafe { &mut *self.receiver.0.get() };
        let received = if waits { receiver.recv().ok() } else { receiver.try_recv().ok() };
        match received {
            Some(received) => {
                // SAFETY: the caller's place is one for such a message.
                unsafe { message.cast::<T>().write(received) };
                size_of::<T>() as c_long
            }
            // The sender is there for as long as the queue.
            None if waits => CLOSED,
            None => NOTHING,
        }
    }

    unsafe fn receive_many(&self, messages: *mut c_void, most: usize) -> usize {
        // SAFETY: as in `receive`.
        let receiver = unsafe { &mut *self.receiver.0.get() };
        let Ok(mut batch) = receiver.try_recv_batch() else { return 0 };
        batch.truncate(most);
        // SAFETY: the caller's place has room for `most` messages, and they do not overlap.
        unsafe { ptr::copy_nonoverlapping(batch.as_ptr(), messages.cast::<T>(), batch.len()) };
        batch.len()
    }
}

fn sized(wait: Wait, message_bytes: usize) -> Option<Box<dyn Queue>> {
    Some(match message_bytes {
        8 => Pipe::<u64>::boxed(wait),
        64 => Pipe::<[u64; 8]>::boxed(wait),
        512 => Pipe::<[u64; 64]>::boxed(wait),
        4096 => Pipe::<[u64; 512]>::boxed(wait),
        65_536 => Pipe::<[u64; 8192]>::boxed(wait),
        _ => return None,
    })
}

/// # Safety
///
/// `queue` is one that `tt_create` made.
unsafe fn of<'q>(queue: *mut c_void) -> &'q dyn Queue {
    // SAFETY: `tt_create_sized` returns a box of a box.
    &**unsafe { &*queue.cast::<Box<dyn Queue>>() }
}

#[unsafe(no_mangle)]
extern "C" fn tt_describe() -> *const c_char {
    DESCRIPTION.as_ptr().cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_create(name: *const c_char, capacity: usize) -> *mut c_void {
    // SAFETY: the caller's promises are those of the other function.
    unsafe { tt_create_sized(name, capacity, 8) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_create_sized(
    name: *const c_char,
    _capacity: usize,
    message_bytes: usize,
) -> *mut c_void {
    // SAFETY: by the interface, a text that ends with a zero byte.
    let queue = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"pipe-adapter" => sized(Wait::Spin, message_bytes),
        b"pipe-adapter-park" => sized(Wait::Park, message_bytes),
        _ => None,
    };
    queue.map_or(ptr::null_mut(), |queue| Box::into_raw(Box::new(queue)).cast())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_destroy(queue: *mut c_void) {
    // SAFETY: by the interface it is one of ours, and nothing uses it any more.
    drop(unsafe { Box::from_raw(queue.cast::<Box<dyn Queue>>()) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_send(queue: *mut c_void, message: *const c_void, _len: usize) -> c_int {
    // SAFETY: by the interface.
    let queue = unsafe { of(queue) };
    // SAFETY: by the interface.
    unsafe { queue.send(message) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_try_recv(queue: *mut c_void, message: *mut c_void, _len: usize) -> c_long {
    // SAFETY: by the interface.
    let queue = unsafe { of(queue) };
    // SAFETY: by the interface.
    unsafe { queue.receive(message, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_recv(queue: *mut c_void, message: *mut c_void, _len: usize) -> c_long {
    // SAFETY: by the interface.
    let queue = unsafe { of(queue) };
    // SAFETY: by the interface.
    unsafe { queue.receive(message, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_send_many(
    queue: *mut c_void,
    messages: *const c_void,
    _len: usize,
    count: usize,
) -> usize {
    // SAFETY: by the interface.
    let queue = unsafe { of(queue) };
    // SAFETY: by the interface.
    unsafe { queue.send_many(messages, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn tt_recv_many(
    queue: *mut c_void,
    messages: *mut c_void,
    _len: usize,
    most: usize,
) -> usize {
    // SAFETY: by the interface.
    let queue = unsafe { of(queue) };
    // SAFETY: by the interface.
    unsafe { queue.receive_many(messages, most) }
}

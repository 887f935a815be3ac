//! Wakers that keep a record, and an executor for one task.

use std::mem::ManuallyDrop;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread::{self, Thread};

/// What a waker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Clone,
    Wake,
    Drop,
}

/// What was done with a waker and its clones.
#[derive(Debug, Default)]
pub(crate) struct Record {
    wakes: AtomicUsize,
    /// The deed that panics from now on, plus 1.
    panics: AtomicU32,
}

impl Record {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A waker that keeps this record. It compares equal to all others of this record.
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        // SAFETY: the functions of the table fulfil the contract of `RawWaker`.
        unsafe { Waker::from_raw(raw(Arc::clone(self))) }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.load(Relaxed)
    }

    /// Number of wakers that were neither woken by value nor dropped.
    pub(crate) fn alive(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }

    /// From now on, this deed panics; `None` makes all deeds succeed.
    pub(crate) fn panic_at(&self, deed: Option<Deed>) {
        self.panics.store(deed.map_or(0, |deed| deed as u32 + 1), Relaxed);
    }

    fn does(&self, deed: Deed) {
        if self.panics.load(Relaxed) == deed as u32 + 1 && !thread::panicking() {
            // Unlike `panic!`, without a report.
            resume_unwind(Box::new("a waker that panics"));
        }
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

fn raw(record: Arc<Record>) -> RawWaker {
    RawWaker::new(Arc::into_raw(record).cast(), &TABLE)
}

/// # Safety
///
/// `record` must come from [`raw`], and its waker must not be used again.
unsafe fn owned(record: *const ()) -> Arc<Record> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(record.cast()) }
}

/// # Safety
///
/// `record` must come from [`raw`].
unsafe fn borrowed(record: *const ()) -> ManuallyDrop<Arc<Record>> {
    // SAFETY: the caller's promise; the count of references stays as it is.
    ManuallyDrop::new(unsafe { owned(record) })
}

unsafe fn clone(record: *const ()) -> RawWaker {
    // SAFETY: called by a waker.
    let record = unsafe { borrowed(record) };
    record.does(Deed::Clone);
    raw(Arc::clone(&record))
}

unsafe fn wake(record: *const ()) {
    // SAFETY: called by a waker that is consumed.
    let record = unsafe { owned(record) };
    record.wakes.fetch_add(1, Relaxed);
    record.does(Deed::Wake);
}

unsafe fn wake_by_ref(record: *const ()) {
    // SAFETY: called by a waker.
    let record = unsafe { borrowed(record) };
    record.wakes.fetch_add(1, Relaxed);
    record.does(Deed::Wake);
}

unsafe fn drop_waker(record: *const ()) {
    // SAFETY: called by a waker that is dropped.
    let record = unsafe { owned(record) };
    record.does(Deed::Drop);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a task on this thread, which sleeps while the task waits.
pub(crate) fn block_on<F: Future>(task: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

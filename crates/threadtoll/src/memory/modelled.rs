//! The memory of a pipe or ring under a model checker: each slot is an `UnsafeCell`, which holds
//! `None` while the slot is free.

use std::ops::Deref;

use super::Geometry;
use crate::sync::{self, AtomicU64, Life, Ordering, UnsafeCell};

/// A header that panics if it is used after its memory was freed.
#[derive(Debug)]
pub(crate) struct Header {
    word: AtomicU64,
    life: Life,
}

impl Deref for Header {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        self.life.assert();
        &self.word
    }
}

pub(crate) struct Memory<T> {
    content: *mut Content<T>,
}

struct Content<T> {
    headers: Vec<Header>,
    messages: Vec<UnsafeCell<Option<T>>>,
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Memory<T> {}

impl<T> Memory<T> {
    pub(crate) fn new(units: usize) -> Self {
        let header = || Header { word: AtomicU64::new(0), life: Life::new() };
        let content = Content {
            headers: (0..units).map(|_| header()).collect(),
            messages: (0..units * Geometry::<T>::PER_FRAME)
                .map(|_| UnsafeCell::new(None))
                .collect(),
        };
        Memory { content: sync::boxed(content) }
    }

    pub(crate) unsafe fn touch(&self) {}

    pub(crate) unsafe fn free(self) {
        // SAFETY: alive until the end of the execution.
        let content = unsafe { &*self.content };
        for header in &content.headers {
            header.life.end();
        }
        for place in &content.messages {
            // SAFETY: the checker reports a concurrent access.
            let forgotten = place.with_mut(|place| unsafe { &*place }.is_some());
            assert!(!forgotten, "memory was freed with a message in it");
        }
        // SAFETY: came from `boxed`; the caller promises the rest.
        unsafe { sync::free_boxed(self.content) };
    }

    pub(crate) fn frame(&self, unit: usize) -> FramePtr<T> {
        FramePtr { memory: *self, unit }
    }

    pub(crate) fn unit(&self, frame: FramePtr<T>) -> usize {
        frame.unit
    }
}

pub(crate) struct FramePtr<T> {
    memory: Memory<T>,
    unit: usize,
}

impl<T> Clone for FramePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for FramePtr<T> {}

impl<T> PartialEq for FramePtr<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.memory.content, self.unit) == (other.memory.content, other.unit)
    }
}

impl<T> FramePtr<T> {
    pub(crate) unsafe fn header<'a>(self) -> &'a Header {
        // SAFETY: alive until the end of the execution, and `Header` panics if the memory was
        // freed.
        let headers: &'a Vec<Header> = unsafe { &(*self.memory.content).headers };
        &headers[self.unit]
    }

    pub(crate) fn header_pointer(self) -> *mut Header {
        // SAFETY: alive until the end of the execution.
        let headers: &Vec<Header> = unsafe { &(*self.memory.content).headers };
        headers.as_ptr().wrapping_add(self.unit).cast_mut()
    }

    pub(crate) fn header_behind(header: *mut Header) -> *mut Header {
        header.wrapping_add(1)
    }

    pub(crate) fn prefetch(self, _: usize, _: Self) {}

    pub(crate) fn prefetch_to_write(self, _: usize, _: Self) {}

    pub(crate) unsafe fn store(self, stamp: u64, order: Ordering) {
        // SAFETY: the caller's promise.
        unsafe { self.header() }.store(stamp, order);
    }

    pub(crate) unsafe fn load(self, order: Ordering) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.header() }.load(order)
    }

    pub(crate) unsafe fn next(self) -> Self {
        FramePtr { unit: self.unit + 1, ..self }
    }

    pub(crate) fn first_message(self) -> MessagePtr<T> {
        MessagePtr { memory: self.memory, index: self.unit * Geometry::<T>::PER_FRAME }
    }

    pub(crate) unsafe fn first_of_run(self, _: usize) -> MessagePtr<T> {
        self.first_message()
    }
}

pub(crate) struct MessagePtr<T> {
    memory: Memory<T>,
    index: usize,
}

impl<T> Clone for MessagePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MessagePtr<T> {}

impl<T> MessagePtr<T> {
    pub(crate) unsafe fn add(self, count: usize) -> Self {
        MessagePtr { index: self.index + count, ..self }
    }

    pub(crate) fn base(self, number: u64) -> BasePtr<T> {
        BasePtr(MessagePtr { index: self.index.wrapping_sub(number as usize), ..self })
    }

    fn content<R>(self, body: impl FnOnce(&mut Option<T>) -> R) -> R {
        // SAFETY: alive until the end of the execution.
        let content = unsafe { &*self.memory.content };
        content.headers[self.index / Geometry::<T>::PER_FRAME].life.assert();
        // SAFETY: the checker reports a concurrent access.
        content.messages[self.index].with_mut(|place| body(unsafe { &mut *place }))
    }

    pub(crate) unsafe fn write(self, message: T) {
        let was = self.content(|place| place.replace(message));
        assert!(was.is_none(), "a message was overwritten");
    }

    /// Also overwrites the headers within the run, as the messages of a real run do, with a value
    /// that looks like a count.
    pub(crate) unsafe fn copy(self, from: *const T, count: usize)
    where
        T: Copy,
    {
        for ahead in 0..count {
            let index = self.index + ahead;
            if ahead > 0 && index.is_multiple_of(Geometry::<T>::PER_FRAME) {
                let unit = index / Geometry::<T>::PER_FRAME;
                let header = FramePtr { memory: self.memory, unit };
                // SAFETY: the caller's promise.
                unsafe { header.store(1 << 40, Ordering::Relaxed) };
            }
            // SAFETY: the caller's promise.
            let message = unsafe { *from.wrapping_add(ahead) };
            // SAFETY: the caller's promise.
            let place = unsafe { self.add(ahead) };
            // SAFETY: the caller's promise.
            unsafe { place.write(message) };
        }
    }

    pub(crate) unsafe fn read(self) -> T {
        let Some(message) = self.content(Option::take) else { panic!("there is no message") };
        message
    }

    pub(crate) unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: alive until the end of the execution.
        let content: &'a Content<T> = unsafe { &*self.memory.content };
        content.headers[self.index / Geometry::<T>::PER_FRAME].life.assert();
        // SAFETY: the checker reports a write that is not ordered with this.
        let message = content.messages[self.index].with(|place| unsafe { &*place });
        let Some(message) = message else { panic!("there is no message") };
        message
    }

    pub(crate) unsafe fn change(self, body: impl FnOnce(&mut T)) {
        self.content(|place| {
            let Some(message) = place else { panic!("there is no message") };
            body(message);
        });
    }
}

pub(crate) struct BasePtr<T>(MessagePtr<T>);

impl<T> Clone for BasePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BasePtr<T> {}

impl<T> BasePtr<T> {
    pub(crate) fn message(self, number: u64) -> MessagePtr<T> {
        MessagePtr { index: self.0.index.wrapping_add(number as usize), ..self.0 }
    }
}

//! The memory of a pipe as a model checker sees it: each place is a cell of its own, and is empty unless a message lies in it.

use super::Geometry;
use crate::sync::{self, AtomicU32, UnsafeCell};

pub(in super::super) struct Memory<T> {
    content: *mut Content<T>,
}

struct Content<T> {
    headers: Vec<AtomicU32>,
    messages: Vec<UnsafeCell<Option<T>>>,
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Memory<T> {}

impl<T> Memory<T> {
    pub(in super::super) fn new(units: usize) -> Self {
        let content = Content {
            // What lay there before: full, final, and closed.
            headers: (0..units).map(|_| AtomicU32::new(u32::MAX)).collect(),
            messages: (0..units * Geometry::<T>::PER_FRAME).map(|_| UnsafeCell::new(None)).collect(),
        };
        Memory { content: sync::boxed(content) }
    }

    pub(in super::super) unsafe fn touch(&self) {}

    pub(in super::super) unsafe fn free(self) {
        // SAFETY: alive until the end of the execution.
        let content = unsafe { &*self.content };
        for header in &content.headers {
            header.life.end();
        }
        for place in &content.messages {
            // SAFETY: the checker sees to it that nobody else is here.
            let forgotten = place.with_mut(|place| unsafe { &*place }.is_some());
            assert!(!forgotten, "the memory is freed with a message in it");
        }
        // SAFETY: came from `boxed`; the caller promises the rest.
        unsafe { sync::free_boxed(self.content) };
    }

    pub(in super::super) fn frame(&self, unit: usize) -> Frame<T> {
        Frame { memory: *self, unit }
    }

    pub(in super::super) fn line(&self, _: usize) -> *const u8 {
        std::ptr::null()
    }
}

pub(in super::super) struct Frame<T> {
    memory: Memory<T>,
    unit: usize,
}

impl<T> Clone for Frame<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Frame<T> {}

impl<T> Frame<T> {
    pub(in super::super) unsafe fn header<'a>(self) -> &'a AtomicU32 {
        // SAFETY: alive until the end of the execution, and a header knows whether it should be.
        let headers: &'a Vec<AtomicU32> = unsafe { &(*self.memory.content).headers };
        &headers[self.unit]
    }

    fn place<R>(self, index: usize, body: impl FnOnce(&mut Option<T>) -> R) -> R {
        // SAFETY: alive until the end of the execution.
        let content = unsafe { &*self.memory.content };
        content.headers[self.unit].life.assert();
        // SAFETY: the checker sees to it that nobody else is here.
        content.messages[self.unit * Geometry::<T>::PER_FRAME + index]
            .with_mut(|place| body(unsafe { &mut *place }))
    }

    pub(in super::super) unsafe fn write(self, index: usize, message: T) {
        let was = self.place(index, |place| place.replace(message));
        assert!(was.is_none(), "a message was written over another one");
    }

    pub(in super::super) unsafe fn copy(self, index: usize, from: *const T, count: usize)
    where
        T: Copy,
    {
        for ahead in 0..count {
            // SAFETY: the caller's promise.
            let message = unsafe { *from.wrapping_add(ahead) };
            // SAFETY: the caller's promise.
            unsafe { self.write(index + ahead, message) };
        }
    }

    pub(in super::super) unsafe fn read(self, index: usize) -> T {
        let Some(message) = self.place(index, Option::take) else { panic!("there is no message here") };
        message
    }
}

//! Messages that are lent side by side.

use std::fmt;

use super::Receiver;
use crate::unwound::Unwound;
use crate::wait::{Adaptive, Wait};

/// Messages that lie side by side; see [`Receiver::recv_batch`].
///
/// Lends them as a slice, or moves them out as an iterator.
pub struct Batch<'a, T, W: Wait = Adaptive> {
    pub(super) receiver: &'a mut Receiver<T, W>,
    /// Where in the record the batch ends.
    pub(super) end: usize,
}

impl<T, W: Wait> Batch<'_, T, W> {
    /// Leaves all but the first `most` messages to a later receive.
    #[inline]
    pub fn truncate(&mut self, most: usize) {
        let index = self.receiver.cursor.index;
        self.end = self.end.min(index.saturating_add(most));
    }
}

impl<T, W: Wait> std::ops::Deref for Batch<'_, T, W> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        let cursor = &self.receiver.cursor;
        let first = cursor.frame.place(cursor.index);
        // SAFETY: the header counts them, and messages of a record lie side by side.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), self.end - cursor.index) }
    }
}

impl<T, W: Wait> Iterator for Batch<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let cursor = &mut self.receiver.cursor;
        (cursor.index != self.end).then(|| cursor.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<T, W: Wait> ExactSizeIterator for Batch<'_, T, W> {
    fn len(&self) -> usize {
        self.end - self.receiver.cursor.index
    }
}

impl<T, W: Wait> Drop for Batch<'_, T, W> {
    fn drop(&mut self) {
        let mut unwound = Unwound::default();
        if std::mem::needs_drop::<T>() {
            for message in self.by_ref() {
                unwound.drop(message);
            }
        }
        let receiver = &mut *self.receiver;
        receiver.cursor.index = self.end;
        // A fork is told by the next receive.
        let _ = receiver.took();
        receiver.tell_due_room();
        unwound.resume();
    }
}

impl<T: fmt::Debug, W: Wait> fmt::Debug for Batch<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

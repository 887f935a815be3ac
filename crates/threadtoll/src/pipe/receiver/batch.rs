//! Messages that are lent side by side.

use std::fmt;
use std::iter::FusedIterator;

use super::{ALIVE, Receiver};
use crate::first_panic::FirstPanic;
use crate::wait::{Adaptive, Wait};

/// Messages that lie side by side; see [`Receiver::recv_batch`].
///
/// Lends its messages as a slice, or moves them out as an iterator. If it is forgotten
/// (`mem::forget`), those that were not moved out are received again; a sender that waits for the
/// room of the others may learn of it only from the next receive, and until then its
/// [`len`](crate::pipe::Sender::len) counts them. In a forked child it is empty.
pub struct Batch<'a, T, W: Wait = Adaptive> {
    receiver: &'a mut Receiver<T, W>,
    /// Number of messages that are lent.
    lent: usize,
}

impl<'a, T, W: Wait> Batch<'a, T, W> {
    pub(super) fn new(receiver: &'a mut Receiver<T, W>) -> Self {
        Batch { lent: receiver.cursor.available(), receiver }
    }
}

impl<T, W: Wait> Batch<'_, T, W> {
    /// Leaves all but the first `most` messages to a later receive.
    #[inline]
    pub fn truncate(&mut self, most: usize) {
        self.lent = self.lent.min(most);
    }

    /// Number of messages, none of which are a forked child's.
    #[inline(always)]
    fn available(&self) -> usize {
        if self.receiver.state() & ALIVE == 0 { 0 } else { self.lent }
    }
}

impl<T, W: Wait> std::ops::Deref for Batch<'_, T, W> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        let first = self.receiver.cursor.next_message().as_ptr();
        // SAFETY: a header counts them, and messages of a run lie side by side.
        unsafe { std::slice::from_raw_parts(first, self.available()) }
    }
}

impl<T, W: Wait> Iterator for Batch<'_, T, W> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        (self.available() > 0).then(|| {
            self.lent -= 1;
            self.receiver.cursor.take()
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.available(), Some(self.available()))
    }
}

impl<T, W: Wait> ExactSizeIterator for Batch<'_, T, W> {}

impl<T, W: Wait> FusedIterator for Batch<'_, T, W> {}

impl<T, W: Wait> Drop for Batch<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        let mut first_panic = FirstPanic::default();
        if std::mem::needs_drop::<T>() {
            for message in self.by_ref() {
                first_panic.drop(message);
            }
        }
        let taken = self.receiver.cursor.taken() + self.available() as u64;
        self.receiver.cursor.advance_to(taken);
        // A fork is told by the next receive.
        let _ = self.receiver.report_taken(taken);
        first_panic.resume();
    }
}

impl<T: fmt::Debug, W: Wait> fmt::Debug for Batch<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

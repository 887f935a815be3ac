use std::fmt;
use std::iter::FusedIterator;

use super::{ALIVE, Receiver};
use crate::first_panic::FirstPanic;

/// Contiguous messages, borrowed from a pipe; see [`Receiver::recv_batch`].
///
/// A batch dereferences to a slice, and is an iterator that moves messages out. In a forked child,
/// every batch is empty.
///
/// If the batch is leaked ([`mem::forget`](std::mem::forget)), messages that were not moved out are
/// received again. The sender may then learn only from the next receive that the messages moved out
/// have made room.
pub struct Batch<'a, T> {
    receiver: &'a mut Receiver<T>,
    /// Number of messages left in the batch.
    lent: usize,
}

impl<'a, T> Batch<'a, T> {
    pub(super) fn new(receiver: &'a mut Receiver<T>) -> Self {
        Batch { lent: receiver.cursor.available(), receiver }
    }
}

impl<T> Batch<'_, T> {
    /// Leaves all messages except the first `most` to a later receive.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send_slice(&[1, 2, 3]).unwrap();
    /// let mut batch = receiver.recv_batch().unwrap();
    /// batch.truncate(2);
    /// assert_eq!(batch[..], [1, 2]);
    /// drop(batch);
    /// assert_eq!(receiver.recv(), Ok(3));
    /// ```
    #[inline]
    pub fn truncate(&mut self, most: usize) {
        self.lent = self.lent.min(most);
    }

    /// Counts the messages of the batch as taken, except for those that `truncate` has cut off.
    #[inline(always)]
    fn report_taken(&mut self) {
        let taken = self.receiver.cursor.taken() + self.available() as u64;
        // `false` means that this is a forked child, which the next receive reports.
        let _ = self.receiver.report_taken(taken);
        // Done last, as in `Receiver::take`.
        self.receiver.cursor.advance_to(taken);
    }

    /// Like `lent`, but 0 in a forked child.
    #[inline(always)]
    fn available(&self) -> usize {
        if self.receiver.state() & ALIVE == 0 { 0 } else { self.lent }
    }
}

impl<T> std::ops::Deref for Batch<'_, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        let first = self.receiver.cursor.next_message().as_ptr();
        // SAFETY: a header counts the messages, and messages of a frame or run are contiguous.
        unsafe { std::slice::from_raw_parts(first, self.available()) }
    }
}

impl<T> Iterator for Batch<'_, T> {
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

impl<T> ExactSizeIterator for Batch<'_, T> {}

impl<T> FusedIterator for Batch<'_, T> {}

impl<T> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            let mut first_panic = FirstPanic::default();
            for message in self.by_ref() {
                first_panic.drop(message);
            }
            self.report_taken();
            first_panic.resume();
        } else {
            self.report_taken();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

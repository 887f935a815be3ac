use std::iter::FusedIterator;

use super::Receiver;
use crate::wait::{Adaptive, Wait};

/// Iterator that waits for each message and ends when the sender is gone; see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T, W: Wait = Adaptive>(pub(super) &'a mut Receiver<T, W>);

impl<T, W: Wait> Iterator for Iter<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, W: Wait> FusedIterator for Iter<'_, T, W> {}

/// Iterator over the messages that are available; see [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T, W: Wait = Adaptive>(pub(super) &'a mut Receiver<T, W>);

impl<T, W: Wait> Iterator for TryIter<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<'a, T, W: Wait> IntoIterator for &'a mut Receiver<T, W> {
    type Item = T;
    type IntoIter = Iter<'a, T, W>;

    fn into_iter(self) -> Iter<'a, T, W> {
        self.iter()
    }
}

/// Iterator that owns the receiver, waits for each message, and ends when the sender is gone.
#[derive(Debug)]
pub struct IntoIter<T, W: Wait = Adaptive>(Receiver<T, W>);

impl<T, W: Wait> Iterator for IntoIter<T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, W: Wait> FusedIterator for IntoIter<T, W> {}

impl<T, W: Wait> IntoIterator for Receiver<T, W> {
    type Item = T;
    type IntoIter = IntoIter<T, W>;

    fn into_iter(self) -> IntoIter<T, W> {
        IntoIter(self)
    }
}

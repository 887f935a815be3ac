use std::iter::FusedIterator;

use super::Receiver;

/// Iterator that waits for each message and ends when the sender is gone; see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T>(pub(super) &'a mut Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

/// Iterator over the messages that are available; see [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T>(pub(super) &'a mut Receiver<T>);

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a mut Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterator that owns the receiver, waits for each message, and ends when the sender is gone.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> FusedIterator for IntoIter<T> {}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

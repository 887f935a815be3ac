//! A pair of signals, one per direction, in the order in which each end needs them.

use std::sync::Arc;

/// One end's signals: the one to send, and the one to wait for.
pub(super) type Signals<T> = (Arc<T>, Arc<T>);

pub(super) fn crossed<T>(there: T, back: T) -> (Signals<T>, Signals<T>) {
    let (there, back) = (Arc::new(there), Arc::new(back));
    ((Arc::clone(&there), Arc::clone(&back)), (back, there))
}

//! Shares two signals, one per direction, between two ends.

use std::sync::Arc;

/// The signal that an end sends, and the signal that it waits for.
pub(super) type Signals<T> = (Arc<T>, Arc<T>);

pub(super) fn crossed<T>(there: T, back: T) -> (Signals<T>, Signals<T>) {
    let (there, back) = (Arc::new(there), Arc::new(back));
    ((Arc::clone(&there), Arc::clone(&back)), (back, there))
}

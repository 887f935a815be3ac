//! What two ends signal each other with, one for each direction.

use std::sync::Arc;

/// An end's view of two signals: the one that it gives, and the one that it waits for.
pub(super) type Signals<T> = (Arc<T>, Arc<T>);

/// The views of the leading and of the following end.
pub(super) fn crossed<T>(there: T, back: T) -> (Signals<T>, Signals<T>) {
    let (there, back) = (Arc::new(there), Arc::new(back));
    ((Arc::clone(&there), Arc::clone(&back)), (back, there))
}

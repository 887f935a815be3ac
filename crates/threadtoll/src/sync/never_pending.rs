//! For systems and models in which no thread waits for another one's barrier.

/// A barrier that waits for another thread's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingBarrier {}

impl PendingBarrier {
    pub(crate) fn poll(self) -> Option<bool> {
        match self {}
    }

    pub(crate) fn force(self) -> bool {
        match self {}
    }
}

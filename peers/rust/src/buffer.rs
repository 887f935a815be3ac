//! Messages that a batch call took from a queue.

/// A batch handed on in parts: some queues give all their messages or none.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    messages: Vec<u64>,
    taken: usize,
}

/// Adds a buffer to the receiver.
pub(crate) fn buffered<S, R, B: Default>((sender, receiver): (S, R)) -> (S, (R, B)) {
    (sender, (receiver, B::default()))
}

impl Buffer {
    /// Hands at most `limit` messages to `take`, after a `refill` if none are left; returns how
    /// many.
    #[inline(always)]
    pub(crate) fn hand_on(
        &mut self,
        limit: usize,
        take: &mut impl FnMut(&[u64]),
        refill: impl FnOnce(&mut Vec<u64>),
    ) -> usize {
        if self.taken == self.messages.len() {
            self.taken = 0;
            self.messages.clear();
            refill(&mut self.messages);
        }
        let left = &self.messages[self.taken..];
        let part = &left[..left.len().min(limit)];
        if !part.is_empty() {
            take(part);
        }
        self.taken += part.len();
        part.len()
    }
}

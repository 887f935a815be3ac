//! Messages that a batch call has moved out of a queue.

/// A batch that is handed on in parts: some queues give all their messages or none.
#[derive(Default)]
pub(crate) struct Buffer {
    messages: Vec<u64>,
    taken: usize,
}

/// Gives a receiver room for batches.
pub(crate) fn buffered<S, R, B: Default>((sender, receiver): (S, R)) -> (S, (R, B)) {
    (sender, (receiver, B::default()))
}

impl Buffer {
    /// Hands at most `limit` messages to `take`, after a `refill` if there are none left; returns
    /// how many.
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

/// A batch whose messages are passed on in parts, for queues whose batch call always returns all
/// messages.
#[derive(Clone)]
pub(crate) struct Buffer<M> {
    messages: Vec<M>,
    taken: usize,
}

impl<M> Default for Buffer<M> {
    fn default() -> Self {
        Buffer { messages: Vec::new(), taken: 0 }
    }
}

/// Pairs the receiver with an empty buffer.
pub(crate) fn buffered<S, R, B: Default>((sender, receiver): (S, R)) -> (S, (R, B)) {
    (sender, (receiver, B::default()))
}

impl<M> Buffer<M> {
    /// Passes at most `limit` messages to `take`; calls `refill` first if no messages are left.
    /// Returns the number of messages passed.
    #[inline(always)]
    pub(crate) fn hand_on(
        &mut self,
        limit: usize,
        take: &mut impl FnMut(&[M]),
        refill: impl FnOnce(&mut Vec<M>),
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

//! Messages that a queue handed out beyond the number asked for: some queues take all available
//! messages or none.

/// A batch that is handed on in parts.
#[derive(Default)]
pub(crate) struct Surplus {
    messages: Vec<u64>,
    taken: usize,
}

impl Surplus {
    /// Whether all of it was handed on.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.messages.len()
    }

    /// Room for the next batch; what is left of the last one must be nothing.
    #[inline(always)]
    pub(crate) fn refill(&mut self) -> &mut Vec<u64> {
        debug_assert!(self.is_empty());
        self.taken = 0;
        self.messages.clear();
        &mut self.messages
    }

    /// Hands on at most `limit` messages, and tells how many.
    #[inline(always)]
    pub(crate) fn take(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        let left = &self.messages[self.taken..];
        let part = &left[..left.len().min(limit)];
        take(part);
        self.taken += part.len();
        part.len()
    }
}

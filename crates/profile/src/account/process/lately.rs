//! Threads of a process that are alive or have ended only recently.
//!
//! A TID in a lock word is interpreted some time after it was read. The thread may have ended by
//! then.

use std::collections::HashSet;

/// Number of threads per generation. The current and the previous generation are kept.
const MANY: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Lately {
    latest: HashSet<u32>,
    before: HashSet<u32>,
}

impl Lately {
    pub(super) fn note(&mut self, tid: u32) {
        if self.latest.len() >= MANY {
            self.before = std::mem::take(&mut self.latest);
        }
        self.latest.insert(tid);
    }

    pub(super) fn has(&self, tid: u32) -> bool {
        self.latest.contains(&tid) || self.before.contains(&tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_threads_are_known() {
        let mut lately = Lately::default();
        let many = MANY as u32;
        (0..10 * many).for_each(|tid| lately.note(tid));
        assert!((9 * many..10 * many).all(|tid| lately.has(tid)));
        assert!(!lately.has(7 * many));
        assert!(lately.latest.len() + lately.before.len() <= 2 * MANY);
    }
}

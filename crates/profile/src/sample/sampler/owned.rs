//! Second reading of words whose owners were examined.
//!
//! If a word then names another owner, the lock has changed hands, and the first owner's state says
//! nothing about a holder.

use super::{Chunk, Reason, Sampler};
use crate::clock::now;

const MAX_OWNED: usize = 64;

/// Words that name their owners and on which threads wait: index of the process, and index of the
/// word in that process.
#[derive(Debug, Default)]
pub(super) struct Owned(Vec<(u32, u32)>);

impl Owned {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn note(&mut self, place: u32, word: u32) {
        let owned = (place, word);
        if self.0.len() < MAX_OWNED && !self.0.contains(&owned) {
            self.0.push(owned);
        }
    }
}

impl Sampler {
    pub(super) fn read_owned(&mut self, chunk: &mut Chunk) {
        let owned = &mut self.owned.0;
        if owned.is_empty() {
            return;
        }
        let began = now();
        owned.sort_unstable();
        for owned in owned.chunk_by(|one, other| one.0 == other.0) {
            let words = owned.iter().map(|&(_, word)| word as usize);
            self.followed[owned[0].0 as usize].read(words, Reason::Again, chunk);
        }
        chunk.tick().checked_at = Some(began + (now() - began) / 2);
    }
}

//! Displaces memory at random, so that an instance of a program is not where the last one was.
//!
//! Which part of a shared cache a line belongs to depends on its address, and with it the time that
//! two CPUs need to pass the line on. An allocator prefers the addresses that were freed last.

use std::hash::{BuildHasher, RandomState};

/// Most lines: some pages, which differ as much as addresses within one.
const LINES: usize = 512;

/// A random number of lines of memory. What its thread allocates while it exists lies elsewhere
/// than before, because the lines take the gaps that were left, and then move the rest.
pub(super) struct Displacement {
    _lines: Vec<Vec<u8>>,
}

impl Displacement {
    pub(super) fn random() -> Self {
        let count = RandomState::new().hash_one(()) as usize % LINES;
        Displacement { _lines: (0..count).map(|_| vec![1; 128]).collect() }
    }
}

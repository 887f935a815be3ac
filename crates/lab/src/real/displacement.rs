//! Displaces memory at random, so that a program's memory has different addresses each time the
//! program is created.
//!
//! The address of a line determines to which part of a shared cache it belongs, and therefore how
//! long two CPUs take to pass it on. Allocators prefer the addresses that were freed last.

use std::hash::{BuildHasher, RandomState};

/// Maximum number of lines. They fill several pages, because the time to pass a line on depends as
/// much on its page as on its address within the page.
const LINES: usize = 512;

/// A random number of cache lines of memory. While they are allocated, the thread's other
/// allocations get new addresses: the lines fill the gaps that were left, and shift everything
/// else.
pub(super) struct Displacement {
    _lines: Vec<Vec<u8>>,
}

impl Displacement {
    pub(super) fn random() -> Self {
        let count = RandomState::new().hash_one(()) as usize % LINES;
        Displacement { _lines: (0..count).map(|_| vec![1; 128]).collect() }
    }
}

//! Shifts memory by a random amount, so that a program's memory has different addresses each time
//! the program is created.
//!
//! The address of a cache line determines which part of a shared cache holds the line, and so how
//! long it takes to pass the line from one CPU to another. Allocators prefer the addresses that
//! were freed last, so without a shift the addresses would repeat.

use std::hash::{BuildHasher, RandomState};

/// Maximum number of lines. They fill several pages: the time to pass a line on depends as much on
/// its page as on its address within the page.
const LINES: usize = 512;

/// A random number of allocated cache lines. They fill the gaps in the thread's heap, so its later
/// allocations get new addresses.
pub(super) struct Displacement {
    _lines: Vec<Vec<u8>>,
}

impl Displacement {
    pub(super) fn random() -> Self {
        let count = RandomState::new().hash_one(()) as usize % LINES;
        Displacement { _lines: (0..count).map(|_| vec![1; 128]).collect() }
    }
}

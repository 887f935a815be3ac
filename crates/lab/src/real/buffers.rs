//! A thread's stamp buffers. Every page has been written once, so that none faults while the clock
//! runs.
//!
//! They outlive the thread, because touching them takes longer than starting another thread. Their
//! contents are copied after the clock has stopped.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::budget::MAX_BLOCK_SAMPLES;

/// Buffers that one thread at a time uses.
#[derive(Clone, Default)]
pub(super) struct SharedBuffers(Arc<OnceLock<Mutex<Buffers>>>);

impl SharedBuffers {
    /// Creates and touches the buffers, unless an earlier thread has done so.
    pub(super) fn touch(&self) {
        self.0.get_or_init(Buffers::touched);
    }

    /// Returns the buffers, empty.
    pub(super) fn lock(&self) -> MutexGuard<'_, Buffers> {
        let buffers = self.0.get_or_init(Buffers::touched);
        // If a thread panicked, its block has failed, and the contents do not matter.
        let mut buffers = buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.times.clear();
        buffers.cpus.clear();
        buffers
    }
}

pub(super) struct Buffers {
    pub(super) times: Vec<u64>,
    pub(super) cpus: Vec<u32>,
}

impl Buffers {
    fn touched() -> Mutex<Self> {
        Mutex::new(Buffers {
            // One page more than any pass needs.
            times: touched(MAX_BLOCK_SAMPLES as usize + 512),
            cpus: touched(MAX_BLOCK_SAMPLES as usize + 1024),
        })
    }
}

fn touched<T: Clone + Default>(len: usize) -> Vec<T> {
    let mut buffer = Vec::with_capacity(len);
    // Zeroed memory may consist of untouched pages; `extend` writes each element.
    buffer.extend(std::iter::repeat_n(std::hint::black_box(T::default()), len));
    buffer.clear();
    buffer
}

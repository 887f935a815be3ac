//! A thread's stamp buffers. Every page is written in advance, so that none faults while the clock
//! runs.
//!
//! The buffers outlive the thread, because touching them takes longer than starting a new thread.
//! Their contents are copied after the clock has stopped.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::budget::MAX_BLOCK_SAMPLES;
use crate::touched::touched;

/// Buffers that are used by one thread at a time.
#[derive(Clone, Default)]
pub(super) struct SharedBuffers(Arc<OnceLock<Mutex<Buffers>>>);

impl SharedBuffers {
    pub(super) fn touch(&self) {
        self.0.get_or_init(Buffers::touched);
    }

    pub(super) fn cleared(&self) -> MutexGuard<'_, Buffers> {
        let mut buffers = locked(self.0.get_or_init(Buffers::touched));
        buffers.times.clear();
        buffers.cpus.clear();
        buffers
    }

    pub(super) fn contents(&self) -> Buffers {
        self.0.get().map_or_else(Buffers::default, |buffers| locked(buffers).clone())
    }
}

fn locked(buffers: &Mutex<Buffers>) -> MutexGuard<'_, Buffers> {
    // Poisoning is ignored: if a thread panicked, its block has failed, and the contents do not
    // matter.
    buffers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Debug, Default)]
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

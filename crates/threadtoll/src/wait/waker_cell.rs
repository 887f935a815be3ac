//! A place for the waker of a task that waits at a queue: [`super::task`].
//!
//! | cell | who may access the waker |
//! |---|---|
//! | `EMPTY` | the waiting side |
//! | `HELD` | nobody: the waiting side withdraws it, or another end claims it |
//! | `CLAIMED` | the end that has claimed it, until it has moved the waker out |

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::sync::{AtomicU32, Ordering, UnsafeCell, mutate};

const EMPTY: u32 = 0;
const HELD: u32 = 1;
const CLAIMED: u32 = 2;

/// The waker of a side that waits in a task. The side stores and withdraws it, other ends take it.
#[derive(Debug)]
pub(crate) struct WakerCell {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the table above gives the waker to one thread at a time, and wakers may be sent. Each
// change of hands is a release and an acquire of `state`.
unsafe impl Sync for WakerCell {}

/// Another end is moving the last waker out of the cell.
pub(crate) struct Busy;

impl WakerCell {
    pub(crate) fn new() -> Self {
        WakerCell { state: AtomicU32::new(EMPTY), waker: UnsafeCell::new(None) }
    }

    /// Stores a clone of this waker in place of the last one. Only the waiting side may call this.
    pub(crate) fn register(&self, waker: &Waker) -> Result<(), Busy> {
        let old = self.withdraw()?;
        // The old waker is dropped last, because its destructor may panic.
        let (new, _old) = match old {
            Some(same) if mutate!(same_task, same.will_wake(waker) => true) => (same, None),
            old => (waker.clone(), old),
        };
        // SAFETY: the cell is empty, so it is this side's.
        self.waker.with_mut(|place| unsafe { *place = Some(new) });
        // Release: the end that claims the waker sees it.
        self.state.store(HELD, mutate!(publish_waker, Release));
        Ok(())
    }

    /// Takes the waker back, if there is one. Only the waiting side may call this.
    pub(crate) fn withdraw(&self) -> Result<Option<Waker>, Busy> {
        // Acquire: an end that has left the cell no longer accesses it.
        let mut state = self.state.load(mutate!(enter_cell, Acquire));
        if state == HELD {
            // Relaxed: this side stored the waker itself. Acquire: as above.
            let (relaxed, acquire) = (Ordering::Relaxed, mutate!(enter_cell, Acquire));
            let withdrawn = mutate!(
                withdraw_waker,
                self.state.compare_exchange(HELD, EMPTY, relaxed, acquire)
                    => Ok(self.state.swap(EMPTY, Ordering::AcqRel))
            );
            match withdrawn {
                // SAFETY: nobody has claimed the waker, so it is this side's.
                Ok(_) => return Ok(self.waker.with_mut(|place| unsafe { &mut *place }.take())),
                Err(other) => state = other,
            }
        }
        if mutate!(see_claim, state == EMPTY => true) { Ok(None) } else { Err(Busy) }
    }

    /// Takes the waker, if there is one, and wakes its task. Any end but the waiting side may call
    /// this.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.take() {
            wake_task(waker);
        }
    }

    /// Takes the waker, if there is one. Any end but the waiting side may call this.
    pub(super) fn take(&self) -> Option<Waker> {
        // Relaxed: the bit was read with acquire, so this finds the waker that was stored before
        // the bit was set, or what has become of it.
        if self.state.load(Ordering::Relaxed) != HELD {
            return None;
        }
        // Acquire: the waker is visible.
        let acquire = mutate!(see_waker, Acquire);
        let claimed = mutate!(
            claim_waker,
            self.state.compare_exchange(HELD, CLAIMED, acquire, Ordering::Relaxed)
                => Ok(self.state.swap(CLAIMED, Ordering::AcqRel))
        );
        claimed.ok()?;
        // SAFETY: claimed.
        let waker = self.waker.with_mut(|place| unsafe { &mut *place }.take());
        // Release: whoever stores the next waker comes after this access.
        self.state.store(EMPTY, mutate!(leave_cell, Release));
        waker
    }
}

/// Wakes a task. If its waker panics, the panic hook reports it, and that is all: the end that
/// calls this has published something and goes on.
pub(super) fn wake_task(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Forgotten, because the payload's own destructor may panic.
        mem::forget(payload);
    }
}

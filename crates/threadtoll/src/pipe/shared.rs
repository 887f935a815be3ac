//! What both ends of a pipe share, and the agreement on who drops what when one of them leaves.

use super::cursor::Cursor;
use super::memory::{CLOSED, Geometry};
use super::segment::{Measures, Segment, Spares};
use crate::sync::{
    self, Alone, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Kept, Ordering, UnsafeCell, fence, mutate,
};
use crate::unwound::Unwound;
use crate::wait::{Meeting, Sleeper, Wait};

/// The pipe lives: always set, so that 0 means a forked child.
pub(super) const ALIVE: u32 = 1;
/// The receiver sleeps, or is about to.
pub(super) const RECEIVER_SLEEPS: u32 = 1 << 1;
/// The sender sleeps, or is about to.
pub(super) const SENDER_SLEEPS: u32 = 1 << 2;
/// The receiver has left and drops what it finds.
pub(super) const RECEIVER_GONE: u32 = 1 << 3;
/// The sender has sent something after that.
pub(super) const SENT_LATE: u32 = 1 << 4;
/// The receiver has left and looks at nothing any more.
pub(super) const DRAINED: u32 = 1 << 5;
/// The kernel has no membarrier: whoever publishes must fence before it looks at this word.
pub(super) const MUST_FENCE: u32 = 1 << 6;

/// The sender's side of a [`Meeting`].
pub(super) const SENDER: usize = 0;
/// The receiver's.
pub(super) const RECEIVER: usize = 1;

pub(super) struct Shared<T> {
    /// The bits above. Both ends look at it with each message; it is written only when somebody sleeps, wakes or leaves, so
    /// each has a copy of its line.
    pub(super) state: Kept<AtomicU32>,
    /// How many messages the receiver has taken. Written with each message; read by a sender that finds no room in `room`.
    pub(super) taken: Alone<AtomicU64>,
    /// The same, written rarely, so that a sender that waits for room does not slow the receiver down.
    pub(super) room: Alone<AtomicU64>,
    /// What the sender tells about itself, for whoever asks for the length.
    pub(super) sent: Alone<Sent>,
    pub(super) home: Segment<T>,
    pub(super) measures: Measures,
    pub(super) spares: Spares<T>,
    pub(super) meeting: Meeting,
    pub(super) sender_gone: AtomicBool,
    pub(super) high_water: AtomicU64,
    process: u32,
    /// Where the receiver stopped reading when it left.
    rest: UnsafeCell<Option<Cursor<T>>>,
}

/// The sender's progress.
pub(super) struct Sent {
    /// Messages in the records before the one that is open.
    pub(super) before: AtomicU64,
    /// The header of the record that is open.
    pub(super) open: AtomicPtr<AtomicU32>,
}

// SAFETY: messages are written by the one sender and read by the one receiver, handed over by a header's release and acquire,
// so the pipe moves values of a `Send` type from thread to thread and shares none. Everything else is atomics, or `rest`, which is
// handed over by the end of the last owner.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn new<W: Wait>(measures: Measures, retain_bytes: usize) -> Self {
        let fence = if sync::senders_must_fence() { MUST_FENCE } else { 0 };
        let home = Segment::new(measures.home_units);
        // SAFETY: nobody else knows of it.
        unsafe { home.memory.touch() };
        // SAFETY: alive as long as the pipe; unit 0 is a header.
        let open = unsafe { home.memory.frame(0).header() };
        // SAFETY: so is the frame behind it.
        let behind = unsafe { home.memory.frame(Geometry::<T>::FRAME).header() };
        // The frame in which the sender begins, and the one behind it, as it keeps them. Whoever shares the pipe orders these.
        mutate!(zero_first, open.store(0, Ordering::Relaxed) => ());
        mutate!(zero_second, behind.store(0, Ordering::Relaxed) => ());
        Shared {
            state: Kept::new(AtomicU32::new(ALIVE | fence)),
            taken: Alone(AtomicU64::new(0)),
            room: Alone(AtomicU64::new(0)),
            sent: Alone(Sent {
                before: AtomicU64::new(0),
                open: AtomicPtr::new(std::ptr::from_ref(open).cast_mut()),
            }),
            home,
            measures,
            spares: Spares::new(measures.chunk_units, retain_bytes),
            meeting: Meeting::new::<W>(),
            sender_gone: AtomicBool::new(false),
            high_water: AtomicU64::new(0),
            process: sync::process(),
            rest: UnsafeCell::new(None),
        }
    }

    pub(super) fn sleeper(&self, side: usize) -> Sleeper<'_> {
        let bit = if side == SENDER { SENDER_SLEEPS } else { RECEIVER_SLEEPS };
        Sleeper {
            word: &self.state,
            bit,
            meeting: &self.meeting,
            side,
            many: false,
            bare: crate::wait::BARE,
            glances: if side == SENDER { crate::wait::GLANCES } else { 0 },
            process: self.process,
        }
    }

    /// The state, looked at after something was published: with a full fence before it where nobody else provides one.
    #[cold]
    pub(super) fn state_after_publishing(&self) -> u32 {
        if self.state.load(Ordering::Relaxed) & MUST_FENCE != 0 {
            // The partner of the one in `heavy_barrier`.
            mutate!(fence_without_membarrier, fence(Ordering::SeqCst) => ());
        }
        self.state.load(Ordering::Acquire)
    }

    pub(super) fn wake_receiver(&self) {
        crate::wait::wake(&self.state, RECEIVER_SLEEPS, &self.meeting, SENDER);
    }

    pub(super) fn wake_sender(&self) {
        crate::wait::wake(&self.state, SENDER_SLEEPS, &self.meeting, RECEIVER);
    }

    /// The receiver leaves: everything that is there is dropped now, and what comes later by the sender.
    pub(super) fn leave(&self, mut cursor: Cursor<T>) {
        self.state.fetch_or(RECEIVER_GONE, Ordering::AcqRel);
        mutate!(wake_in_leave, self.wake_sender() => ());
        let mut unwound = Unwound::default();
        loop {
            cursor.drop_all(self, &mut unwound);
            // Release: a sender that still waits for room may find it here, and writes where we have read. Whether its message was
            // dropped, it asks only after `DRAINED`.
            self.taken.store(cursor.taken(), mutate!(tell_taken_in_leave, Release));
            // A message that was sent after the last look is announced by `SENT_LATE`: it is dropped here too. Once `DRAINED` is set,
            // the receiver touches nothing any more, and a sender that finds it takes its message back.
            let state = self.state.load(Ordering::Acquire);
            let next = if state & SENT_LATE != 0 { state & !SENT_LATE } else { state | DRAINED };
            // The cursor is handed to whoever drops the pipe, before anybody may read it.
            if state & SENT_LATE == 0 {
                // SAFETY: read only by the drop of the pipe, which comes after this end's.
                self.rest.with_mut(|rest| unsafe { *rest = Some(cursor.clone()) });
            }
            let swapped =
                self.state.compare_exchange(state, next, mutate!(drained, AcqRel), Ordering::Relaxed).is_ok();
            if swapped && state & SENT_LATE == 0 {
                break;
            }
        }
        unwound.resume();
    }

    /// The sender has sent a message and finds the receiver gone: false if the receiver will look again and drop it. If true, it
    /// looks no more, and `taken` is final: a message that it does not count is the sender's to take back.
    pub(super) fn sent_late(&self) -> bool {
        self.state.fetch_or(SENT_LATE, mutate!(sent_late, AcqRel)) & DRAINED != 0
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let rest = self.rest.with_mut(|rest| {
            // SAFETY: the last owner is alone.
            let rest = unsafe { &mut *rest };
            rest.take()
        });
        let mut unwound = Unwound::default();
        if let Some(mut cursor) = rest {
            cursor.drop_all(self, &mut unwound);
            cursor.free(self);
        }
        self.spares.trim(&mut std::ptr::null_mut());
        // SAFETY: both ends are gone.
        unsafe { self.home.memory.free() };
        unwound.resume();
    }
}

/// Whether a header says that nothing comes after its record.
pub(super) fn is_closed(flags: u32) -> bool {
    flags & CLOSED != 0
}

//! Finding room: what the receiver has taken, how long to wait for it to take more, and where an unbounded pipe goes instead.

use super::Sender;
use crate::pipe::memory::{FINAL, Geometry, JUMP};
use crate::pipe::shared::{ALIVE, RECEIVER_GONE, SENDER};
use crate::sync::{Arc, Instant, Ordering, mutate};
use crate::wait::{Certainty, Wait, Waited, by_barrier, wait};

/// The high-water mark is looked after when it may have risen by so many messages…
pub(super) const MARK_STEP: u64 = 512;
/// …or by this part of itself.
const MARK_SHARE: u64 = 16;
/// A sender that finds no room looks at `room` so often for each message that the pipe holds, then at `taken`: the receiver writes that with
/// each message, and is slowed down by being looked at.
const PATIENT_LOOKS: u64 = if cfg!(any(loom, shuttle)) { 4096 } else { 4 };
/// It never looks at `room` more often than this.
const MOST_PATIENT: u64 = 4096;

/// How long to wait for room.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Now,
    /// Null: for ever.
    Deadline(Option<Instant>),
}

/// Why there is no room.
pub(super) enum NoRoom {
    Full,
    Disconnected,
    Forked,
}

impl<T, W: Wait> Sender<T, W> {
    /// There may be no room: finds out, waits, or goes to another segment.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, until: Until) -> Result<(), NoRoom> {
        let unbounded = self.shared.measures.chunk_units != 0;
        let state = self.shared.state.load(Ordering::Relaxed);
        if state & ALIVE == 0 {
            return Err(NoRoom::Forked);
        }
        if state & RECEIVER_GONE != 0 {
            return Err(NoRoom::Disconnected);
        }
        self.restore();
        // What was sent quietly must be seen, by a receiver that is awake, before anybody waits for it to be taken.
        self.flush();
        if self.filled != self.allowed {
            return Ok(());
        }
        self.refresh(false);
        self.look_after_mark();
        if matches!(until, Until::Now) || unbounded && self.sent() - self.seen >= self.shared.measures.home {
            self.refresh(true);
        }
        if unbounded {
            if self.at_home && self.sent() - self.seen >= self.shared.measures.home || self.unit == self.last
            {
                self.change_segment();
            }
            self.set_limit();
            return Ok(());
        }
        self.set_limit();
        if self.filled != self.allowed {
            return Ok(());
        }
        let deadline = match until {
            Until::Now => return Err(NoRoom::Full),
            Until::Deadline(deadline) => deadline,
        };
        self.wait_for_room(deadline)
    }

    fn wait_for_room(&mut self, deadline: Option<Instant>) -> Result<(), NoRoom> {
        let shared = Arc::clone(&self.shared);
        let mut looks = 0u64;
        let patient = shared.measures.home.saturating_mul(PATIENT_LOOKS).min(MOST_PATIENT);
        let waited = wait::<W, _>(shared.sleeper(SENDER), deadline, by_barrier, |certainty| {
            looks = looks.saturating_add(1);
            self.refresh(certainty == Certainty::Certain || looks > patient);
            if mutate!(see_receiver_gone, shared.state.load(Ordering::Acquire) & RECEIVER_GONE != 0 => false)
            {
                return Some(Err(NoRoom::Disconnected));
            }
            (self.sent() - self.seen < shared.measures.home).then_some(Ok(()))
        });
        match waited {
            Waited::Found(found) => found?,
            Waited::Late => return Err(NoRoom::Full),
            Waited::Forked => return Err(NoRoom::Forked),
        }
        self.set_limit();
        Ok(())
    }

    /// Makes good what a claim may have written over: the header behind the frame that is open.
    #[inline]
    pub(super) fn restore(&mut self) {
        if self.unit != self.last {
            self.prepare(self.after(self.unit, Geometry::<T>::FRAME));
        }
        self.allow();
    }

    /// Finds out what the receiver has taken. Where that may be a little old, nothing more is taken from its cache.
    pub(super) fn refresh(&mut self, certain: bool) {
        let shared = &self.shared;
        // Acquire: what the receiver has read may be written.
        let taken = if certain {
            shared.taken.load(mutate!(see_taken, Acquire))
        } else {
            shared.room.load(mutate!(see_room, Acquire))
        };
        self.seen = self.seen.max(taken);
        let under_way = self.sent() - self.seen;
        if certain && under_way > shared.high_water.load(Ordering::Relaxed) {
            shared.high_water.store(under_way, Ordering::Relaxed);
        }
    }

    /// Sets how many messages may be sent before something must be looked after.
    pub(super) fn set_limit(&mut self) {
        let capacity = if self.at_home { self.shared.measures.home } else { u64::MAX / 2 };
        let limit = self.seen + capacity.min(self.high);
        self.limit = limit.max(self.sent());
        self.allow();
    }

    /// The number of messages under way may have passed the mark: if so, says so, and moves the mark on.
    fn look_after_mark(&mut self) {
        let under_way = self.sent() - self.seen;
        if under_way < self.high {
            return;
        }
        self.refresh(true);
        let under_way = self.sent() - self.seen;
        if under_way < self.high {
            return;
        }
        self.high = under_way + MARK_STEP.max(under_way / MARK_SHARE);
        if let Some(callback) = &mut self.on_high {
            callback(under_way as usize);
        }
    }

    /// Goes on in another segment: home if the receiver has left it and is near, a chunk otherwise.
    fn change_segment(&mut self) {
        let shared = Arc::clone(&self.shared);
        let home = std::ptr::from_ref(&shared.home).cast_mut();
        let under_way = self.sent() - self.seen;
        // The receiver has taken a message from behind home, so it has read the jump out of it.
        let home_is_free = !self.at_home && self.seen > self.home_left;
        let goes_home =
            mutate!(go_home, home_is_free && under_way <= shared.measures.home / 2 => !self.at_home);
        let (next, memory, unit, wrap, last) = if goes_home {
            (home, shared.home.memory, self.home_unit, shared.measures.home_units, usize::MAX)
        } else {
            let chunk = shared.spares.take(&mut self.spares);
            // SAFETY: a chunk that was just taken is alive and ours.
            (chunk, unsafe { &*chunk }.memory, 0, usize::MAX, shared.measures.chunk_units)
        };
        // SAFETY: the segment that we are in is alive: the receiver has not been told to leave it.
        unsafe { &*self.segment }.next.store(next, Ordering::Relaxed);
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        let jump = self.filled as u32 | FINAL | JUMP;
        if self.at_home {
            self.home_left = self.sent();
            self.home_unit = self.after(self.unit, Geometry::<T>::FRAME);
        }
        self.segment = next;
        self.memory = memory;
        self.at_home = goes_home;
        (self.wrap, self.last) = (wrap, last);
        mutate!(zero_in_segment, self.prepare(unit) => ());
        self.open(self.filled, unit, Geometry::<T>::FRAME);
        self.filled = 0;
        // Last: once the receiver has seen this it may give the segment back, and asks us only for what was told before.
        // Release: as in `show`, and the next segment is ready.
        header.store(jump, mutate!(publish_jump, Release));
    }
}

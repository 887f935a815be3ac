//! Filling records and publishing them.

use super::Sender;
use crate::pipe::memory::{FINAL, Frame, Geometry};
use crate::sync::{Ordering, mutate, prefetch_to_write};
use crate::wait::Wait;

impl<T, W: Wait> Sender<T, W> {
    /// Lets the receiver see everything that is in the frame.
    #[inline(always)]
    pub(super) fn publish(&mut self) {
        self.filled = self.show(self.frame, self.filled);
    }

    /// Lets the receiver see so many messages of the open frame, and goes on to the next one if it is full. Returns the messages in
    /// the frame that is open then, for the caller to keep: so one store writes what the next send loads, whichever way it went. A CPU
    /// that guesses which store feeds a load would be wrong once per frame otherwise.
    #[inline(always)]
    pub(super) fn show(&mut self, frame: Frame<T>, filled: usize) -> usize {
        if filled == Geometry::<T>::PER_FRAME {
            self.close_record(frame, filled, Geometry::<T>::FRAME);
            return 0;
        }
        // SAFETY: the frame that is open begins here.
        let header = unsafe { frame.header() };
        // Release: the partner of the acquire in the receiver's look. Without it the receiver might read before we have written.
        header.store(filled as u32, mutate!(publish, Release));
        filled
    }

    /// The same for messages that were sent quietly, if there are any.
    pub(super) fn publish_quiet(&mut self) {
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        // Only this end stores headers.
        if header.load(Ordering::Relaxed) as usize != self.filled {
            self.publish();
        }
    }

    /// Publishes a record that is full, and opens the frame behind it. The caller sets `filled` to 0.
    #[inline(always)]
    pub(super) fn close_record(&mut self, frame: Frame<T>, filled: usize, units: usize) {
        if units > Geometry::<T>::FRAME {
            // The frame behind an ordinary frame was prepared before; that behind a longer record was not.
            mutate!(zero_behind_long_record, self.prepare(self.after(self.unit, units)) => ());
        }
        // SAFETY: the record that is open begins here.
        let header = unsafe { frame.header() };
        // Release: as in `show`; and the header behind it, zeroed before, is seen as zero.
        header.store(filled as u32 | FINAL, mutate!(publish_record, Release));
        self.open(filled, self.after(self.unit, units), units);
    }

    /// The same for the record that was just written, of so many units.
    #[inline(always)]
    pub(super) fn close_long_record(&mut self, units: usize) {
        self.close_record(self.frame, self.filled, units);
        self.filled = 0;
    }

    #[inline(always)]
    pub(super) fn after(&self, unit: usize, units: usize) -> usize {
        let next = unit + units;
        if next == self.wrap { 0 } else { next }
    }

    /// Makes the header of a frame that is about to follow say that it is empty.
    #[inline(always)]
    pub(super) fn prepare(&self, unit: usize) {
        // SAFETY: free memory in which a record will begin; the receiver looks there only when the one before it is final.
        unsafe { self.memory.frame(unit).header() }.store(0, Ordering::Relaxed);
    }

    /// Goes on with an empty frame, whose header is zero, behind a record of so many messages and units. The caller sets `filled` to 0.
    #[inline(always)]
    pub(super) fn open(&mut self, filled: usize, unit: usize, behind: usize) {
        self.before += filled as u64;
        self.unit = unit;
        self.frame = self.memory.frame(unit);
        self.allow();
        if unit != self.last {
            // Here and not before the last frame was made final: there the store would have to wait for its line in front of
            // the one that somebody is waiting for.
            mutate!(zero_behind_record, self.prepare(self.after(unit, Geometry::<T>::FRAME)) => ());
            self.fetch_ahead(behind);
        }
        mutate!(tell_progress, self.tell_progress() => ());
    }

    /// Sets how many messages the open frame may hold.
    #[inline(always)]
    pub(super) fn allow(&mut self) {
        // The last frame of a chunk only ends it: no room makes the next send look for a segment.
        let most = if self.unit == self.last { 0 } else { Geometry::<T>::PER_FRAME as u64 };
        self.allowed = most.min(self.limit - self.before) as usize;
    }

    #[inline(always)]
    pub(super) fn tell_progress(&self) {
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        let sent = &self.shared.sent;
        sent.open.store(std::ptr::from_ref(header).cast_mut(), Ordering::Release);
        sent.before.store(self.before, Ordering::Release);
    }

    /// Asks for as many lines as the last record had, which will be written soon.
    #[inline(always)]
    fn fetch_ahead(&self, units: usize) {
        let unit = self.unit + self.ahead;
        let unit = if unit >= self.wrap { unit - self.wrap } else { unit };
        if units == 1 {
            return prefetch_to_write(self.memory.line(unit));
        }
        let straight = units.min(self.wrap - unit);
        self.fetch(unit, straight);
        self.fetch(0, units - straight);
    }

    /// Asks for so many lines from this unit on. Behind a chunk's end that may be a few that are somebody else's: they are fetched in vain, and once
    /// per chunk.
    #[inline(always)]
    fn fetch(&self, unit: usize, units: usize) {
        let mut line = self.memory.line(unit);
        for _ in 0..units {
            prefetch_to_write(line);
            line = line.wrapping_add(Geometry::<T>::UNIT);
        }
    }

    /// How many of so many messages go into one long record, and its units; null if they go into frames.
    ///
    /// A long record never takes more units than the same messages in full frames: that is what home has room for.
    #[inline(always)]
    pub(super) fn long_record(&self, messages: usize) -> Option<(usize, usize)> {
        if !Geometry::<T>::DENSE || messages < Geometry::<T>::fits(2) || self.filled != 0 {
            return None;
        }
        let most = self.shared.measures.longest.min(self.wrap.min(self.last) - self.unit);
        let count = messages.min(Geometry::<T>::fits(most));
        let units = Geometry::<T>::units(count);
        if units * Geometry::<T>::PER_FRAME <= count {
            return Some((count, units));
        }
        // The last line would be too empty: one less, filled to its end.
        (units > 2).then(|| (Geometry::<T>::fits(units - 1), units - 1))
    }
}

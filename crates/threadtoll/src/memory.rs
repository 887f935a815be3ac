//! The layout of a pipe's messages and of a ring's events: an array of *frames*. A frame holds a
//! header and messages, and usually takes one *unit*: a cache line.
//!
//! ```text
//!  unit 0                  unit 1                  unit 2 …
//! ┌────────┬──┬──┬─ … ─┐  ┌────────┬──┬──┬─ … ─┐  ┌───
//! │ header │m0│m1│ m6  │  │ header │m7│m8│ m13 │  │
//! └────────┴──┴──┴─ … ─┘  └────────┴──┴──┴─ … ─┘  └───
//! ```
//! A header is the number of messages sent in the whole life of the pipe, up to and including the
//! last one in its frame. So a message and its count travel in one cache line, as with the epoch
//! word of Barrelfish's URPC messages (Baumann et al., SOSP 2009). A header left from an earlier
//! lap holds a smaller number, so memory can be reused without being cleared.
//!
//! A message that does not fit into a unit takes several units, together with its header. If the
//! size of a message is a multiple of a unit, up to seven messages share a header, which then has a
//! unit to itself. If each message had its own header, sending messages of 64 bytes would move
//! nearly twice as many cache lines.
//!
//! A batch may span several units as one *long run*: one header, and contiguous messages. In runs
//! of eight units or more, the header has a unit to itself, so that the messages begin at the start
//! of a cache line, where they are copied fastest. A run overwrites the headers of earlier frames.
//! The sender clears those places before the receiver may read headers there again.
//!
//! | header, relative to the number of messages received | meaning |
//! |---|---|
//! | not larger | no new message |
//! | larger by no more than the free slots of the frame | that many new messages |
//! | larger by more | a long run |
//! | [`JUMP`] set | after these messages, continue in the next segment |
//! | [`RETIRED`] set too | and free this segment: the sender will not return to it |
//! | [`CLOSED`] set | after these messages, the sender is gone |
//!
//! A [ring](crate::ring) has neither runs nor flags, and its headers are plain counts. Its slots
//! are filled when it is made; events are changed in place, and never moved out.

#[cfg(any(threadtoll_loom, threadtoll_shuttle))]
mod modelled;
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod real;

use std::marker::PhantomData;

#[cfg(any(threadtoll_loom, threadtoll_shuttle))]
pub(crate) use modelled::{BasePtr, FramePtr, Header, Memory, MessagePtr};
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub(crate) use real::{BasePtr, FramePtr, Header, Memory, MessagePtr};

/// The amount that each message adds to a header.
pub(crate) const ONE: u64 = 1 << SHIFT;
const SHIFT: u32 = 2;
/// Mask of the flags in a header. After a header with a flag, no message follows in this segment.
pub(crate) const FLAGS: u64 = ONE - 1;
/// The next message is in another segment.
pub(crate) const JUMP: u64 = 1;
/// With [`JUMP`]: the sender never returns to this segment.
pub(crate) const RETIRED: u64 = 2;
/// The sender is gone.
pub(crate) const CLOSED: u64 = 2;

#[inline(always)]
pub(crate) fn count(stamp: u64) -> u64 {
    stamp >> SHIFT
}

/// Number of messages by which `header` is ahead of the count `known`. Huge if `header` is behind
/// `known` or has flags.
#[inline(always)]
pub(crate) fn new_messages(header: u64, known: u64) -> u64 {
    header.wrapping_sub(known * ONE).rotate_right(SHIFT)
}

/// Bytes of a unit, unless messages need a stricter alignment.
const LINE: usize = 64;
/// Maximum number of messages that share a header, if the header takes a unit of its own.
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
const MAX_SHARING: usize = 7;
/// Maximum number of units of messages that share a header. A message that takes more units has a
/// header of its own.
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
const SHARING_UNITS: usize = 32;

/// Sizes of the frames for messages of type `T`.
pub(crate) struct Geometry<T>(PhantomData<T>);

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
impl<T> Geometry<T> {
    /// Bytes of a unit: a cache line, or the alignment of `T` if that is larger.
    pub(crate) const UNIT_BYTES: usize =
        if align_of::<T>() > LINE { align_of::<T>() } else { LINE };
    /// Size of a header in bytes, including padding up to the first message.
    const LEAST_HEADER_BYTES: usize = if align_of::<T>() > 8 { align_of::<T>() } else { 8 };
    /// True if a unit has room for a header and a message.
    const FITS: bool = Self::LEAST_HEADER_BYTES + size_of::<T>() <= Self::UNIT_BYTES;
    /// True if the size of a message is a multiple of a unit. A header then takes a unit of its
    /// own, so several messages share it.
    const SHARES: bool = !Self::FITS && size_of::<T>().is_multiple_of(Self::UNIT_BYTES);
    /// Offset in bytes of the first message in a frame.
    const HEADER_BYTES: usize =
        if Self::SHARES { Self::UNIT_BYTES } else { Self::LEAST_HEADER_BYTES };
    /// Number of messages in a frame.
    pub(crate) const PER_FRAME: usize = match size_of::<T>() {
        // Messages of size 0 take no memory, so any number will do.
        0 => 1 << 16,
        size if Self::FITS => (Self::UNIT_BYTES - Self::HEADER_BYTES) / size,
        size if Self::SHARES => match SHARING_UNITS / (size / Self::UNIT_BYTES) {
            0 => 1,
            1..MAX_SHARING => SHARING_UNITS / (size / Self::UNIT_BYTES),
            _ => MAX_SHARING,
        },
        _ => 1,
    };
    /// Number of units in a frame: more than one if a message does not fit into a single unit.
    pub(crate) const FRAME_UNITS: usize = {
        let messages = if size_of::<T>() == 0 { 0 } else { Self::PER_FRAME };
        (Self::HEADER_BYTES + messages * size_of::<T>()).div_ceil(Self::UNIT_BYTES)
    };
    /// True if messages can take less memory in a long run than in frames.
    pub(crate) const PACKS_RUNS: bool = Self::FITS && size_of::<T>() > 0;

    /// Minimum number of messages of a run whose header has a unit to itself: as many as eight
    /// frames hold. A frame spends at least an eighth of its unit on the header. So such a run
    /// still holds at least as many messages as frames would hold in the same units.
    const ALIGNED_RUN: usize = 8 * Self::PER_FRAME;

    /// Minimum number of messages of a slice that is sent as a long run: as many as seven frames
    /// hold. Clearing the headers that a shorter run overwrites would cost more than the run saves.
    pub(crate) const MIN_RUN: usize = 7 * Self::PER_FRAME;

    /// Offset in bytes of the first message in a run of `count` messages.
    pub(crate) const fn run_offset(count: usize) -> usize {
        if Self::PACKS_RUNS && count >= Self::ALIGNED_RUN {
            Self::UNIT_BYTES
        } else {
            Self::HEADER_BYTES
        }
    }

    /// Maximum number of messages in a run of `units` units.
    pub(crate) const fn messages_in(units: usize) -> usize {
        if !Self::PACKS_RUNS {
            return Self::PER_FRAME;
        }
        let aligned = (units - 1) * Self::UNIT_BYTES / size_of::<T>();
        if aligned >= Self::ALIGNED_RUN {
            return aligned;
        }
        let packed = (units * Self::UNIT_BYTES - Self::HEADER_BYTES) / size_of::<T>();
        if packed < Self::ALIGNED_RUN { packed } else { Self::ALIGNED_RUN - 1 }
    }

    /// Number of units that a run of `count` messages takes.
    pub(crate) const fn units_for(count: usize) -> usize {
        if count <= Self::PER_FRAME {
            return Self::FRAME_UNITS;
        }
        (Self::run_offset(count) + count * size_of::<T>()).div_ceil(Self::UNIT_BYTES)
    }
}

/// Small sizes keep models small: two messages in a frame, and two frames in the longest run.
#[cfg(any(threadtoll_loom, threadtoll_shuttle))]
impl<T> Geometry<T> {
    pub(crate) const UNIT_BYTES: usize = LINE;
    pub(crate) const FRAME_UNITS: usize = 1;
    pub(crate) const PER_FRAME: usize = 2;
    pub(crate) const PACKS_RUNS: bool = true;
    pub(crate) const MIN_RUN: usize = 2 * Self::PER_FRAME;

    pub(crate) const fn messages_in(units: usize) -> usize {
        units * Self::PER_FRAME
    }

    pub(crate) const fn units_for(count: usize) -> usize {
        count.div_ceil(Self::PER_FRAME)
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn only_messages_ahead_of_the_count_are_news() {
        let stamp = 10 * ONE;
        assert_eq!(new_messages(13 * ONE, 10), 3);
        let no_news = [stamp, 9 * ONE, 0, stamp | JUMP, (12 * ONE) | JUMP, (10 * ONE) | CLOSED];
        for header in no_news {
            assert!(new_messages(header, 10).wrapping_sub(1) >= 1 << 32, "{header:#x}");
        }
    }

    #[test]
    fn messages_without_a_size_take_next_to_no_memory() {
        assert_eq!((Geometry::<()>::FRAME_UNITS, Geometry::<()>::PER_FRAME), (1, 1 << 16));
        assert_eq!(Geometry::<u64>::PER_FRAME, 7);
        assert_eq!(Geometry::<[u8; 57]>::FRAME_UNITS, 2);
    }

    #[test]
    fn a_run_holds_no_fewer_messages_than_frames() {
        fn check<T>() {
            for units in 2..=100 {
                let most = Geometry::<T>::messages_in(units);
                assert!(most >= units * Geometry::<T>::PER_FRAME, "{units} units");
                assert!(Geometry::<T>::units_for(most) <= units, "{units} units");
                assert!(Geometry::<T>::units_for(most + 1) > units, "{units} units");
            }
        }
        check::<u8>();
        check::<u64>();
        check::<u128>();
        check::<[u8; 9]>();
        check::<[u64; 3]>();
        check::<[u64; 4]>();
        check::<[u64; 7]>();
        assert_eq!(Geometry::<u64>::messages_in(65), 512, "a page");
    }

    #[test]
    fn messages_of_whole_lines_share_the_line_of_their_header() {
        fn frame<T>() -> (usize, usize) {
            assert!(Geometry::<T>::HEADER_BYTES.is_multiple_of(align_of::<T>()));
            (Geometry::<T>::PER_FRAME, Geometry::<T>::FRAME_UNITS)
        }
        #[repr(align(64))]
        struct Line(#[expect(dead_code)] [u8; 64]);
        #[repr(align(128))]
        struct Lines(#[expect(dead_code)] [u8; 256]);

        assert_eq!(frame::<[u64; 8]>(), (7, 8));
        assert_eq!(frame::<Line>(), (7, 8));
        assert_eq!(frame::<[u64; 64]>(), (4, 33));
        assert_eq!(frame::<[u64; 256]>(), (1, 33));
        assert_eq!(frame::<[u64; 512]>(), (1, 65));
        assert_eq!(frame::<Lines>(), (7, 15));
        assert_eq!(frame::<[u64; 9]>(), (1, 2));
    }
}

//! `pthread_barrier_t` of glibc 2.25 and later.
//!
//! | offset | field |
//! |---|---|
//! | 0 | threads that have arrived since the last reset |
//! | 4 | futex: arrived threads whose round is over |
//! | 8 | threads per round |
//! | 12 | process-shared |
//! | 16 | threads that have left |
//!
//! Source: `sysdeps/nptl/internaltypes.h` (`struct pthread_barrier`),
//! `nptl/pthread_barrier_wait.c`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::MAX_THREADS;
use super::{Family, Kind, Primitive, Window};
use crate::futex::Operation;

pub(super) static FAMILY: Family =
    Family { primitives: &[&GlibcBarrier], sleeps_by_itself: true, ..Family::NONE };

const FUTEX: u64 = 4;

#[derive(Debug)]
struct GlibcBarrier;

impl Primitive for GlibcBarrier {
    fn name(&self) -> &'static str {
        "glibc barrier"
    }

    fn kind(&self) -> Kind {
        Kind::Barrier
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let target = evidence.address().checked_sub(FUTEX)?;
        let waits = evidence.all_waits(|w| w.operation == Operation::Wait && !w.timed)?;
        let fields = |window: &Window<'_>| {
            let word = |offset| window.u32(target.wrapping_add(offset)).unwrap_or(u32::MAX);
            [0, FUTEX, 8, 12, 16].map(word)
        };
        let fits = |window: &Window<'_>| {
            let [came, over, round, shared, left] = fields(window);
            let counted = (2..=MAX_THREADS).contains(&round) && left <= came;
            let rounds = over.is_multiple_of(round.max(1)) && came.wrapping_sub(over) <= round;
            let shape = waits.iter().all(|wait| wait.private == (shared == 0));
            counted && rounds && shape && matches!(shared, 0 | 128)
        };
        let waited_for = |window: &Window<'_>| {
            let [came, over, ..] = fields(window);
            came != over
        };
        let found = target.is_multiple_of(4) && evidence.windows_show(fits, waited_for);
        found.then(|| Claim::new(target, Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 20)
    }
}

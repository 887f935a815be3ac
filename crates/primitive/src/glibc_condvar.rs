//! `pthread_cond_t` of glibc 2.25 and later.
//!
//! | old | new | field |
//! |---|---|---|
//! | 0 | 0 | 64 bits: sequence of waiters, above one bit for the open group |
//! | 8 | 8 | 64 bits: position of the first group; in the old layout, above one bit |
//! | 16, 20 | – | futexes: references to the groups; signallers may wait until there are none |
//! | 24, 28 | 16, 20 | sizes of the groups |
//! | 32 | 24 | futex: initial size of the first group, above two bits of an internal lock |
//! | 36 | 28 | number of waiters, above three bits: shared, clock, destruction |
//! | 40, 44 | 32, 36 | futexes: signals of the groups |
//! | – | 40, 44 | unused, 0 |
//!
//! glibc 2.41 changed the layout, with the fix for lost wake-ups (bug 25847). Distributions
//! backported the fix, so only the contents of a condition variable show its layout. Up to glibc
//! 2.33, an untimed wait names no clock.
//!
//! The bytes before another futex, such as a program's counters, may look like these fields by
//! chance. So the values with which threads wait must fit, too: 0 for the old signals, even values
//! for the new ones, and odd values for the references. The futex of the internal lock is left out:
//! its waiters see 2, like those of any mutex, and the lock is held only for a few instructions.
//!
//! Source: `sysdeps/nptl/bits/thread-shared-types.h` and `nptl/pthread_cond_wait.c`, in both
//! versions.

use super::evidence::{Claim, Context, Evidence, Strength, plain};
use super::pattern::MAX_THREADS;
use super::{Family, Kind, Primitive, Window};
use crate::function::Part;
use crate::futex::FutexWait;

pub(super) static FAMILY: Family = Family {
    primitives: &[&GlibcCondvar],
    functions: &[("cnd_", Part::Wait)],
    sleeps_by_itself: true,
    ..Family::NONE
};

struct Futex {
    offset: u64,
    /// Returns `true` for the values with which threads wait.
    fits: fn(u32) -> bool,
    /// True if hardly any other bytes and values fit.
    tells: bool,
}

struct Layout {
    /// Offset of the number of waiters.
    waiters: u64,
    /// Offset of 64 unused bits, if there are any.
    unused: Option<u64>,
    futexes: &'static [Futex],
}

static LAYOUTS: [Layout; 2] = [
    Layout {
        waiters: 36,
        unused: None,
        futexes: &[
            Futex { offset: 40, fits: is_zero, tells: true },
            Futex { offset: 44, fits: is_zero, tells: true },
            Futex { offset: 16, fits: is_odd, tells: false },
            Futex { offset: 20, fits: is_odd, tells: false },
        ],
    },
    Layout {
        waiters: 28,
        unused: Some(40),
        futexes: &[
            Futex { offset: 32, fits: is_even, tells: false },
            Futex { offset: 36, fits: is_even, tells: false },
        ],
    },
];

const FIRST_GROUP: u64 = 8;
const WAITER_SHIFT: u32 = 3;

#[derive(Debug)]
struct GlibcCondvar;

impl Primitive for GlibcCondvar {
    fn name(&self) -> &'static str {
        "glibc condition variable"
    }

    fn kind(&self) -> Kind {
        Kind::Condvar
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        let (target, futex) = found(evidence)?;
        // A Java virtual machine parks threads on condition variables, so only the stack shows the
        // purpose of a wait.
        let certain = !context.jvm || !evidence.callers().is_empty();
        let named = || evidence.named(&[&["pthread_cond"], &["cnd_"]]).is_some();
        let strength = match (certain, futex.tells || named()) {
            (false, _) => Strength::FALLBACK,
            (true, false) => Strength::LIKELY,
            (true, true) => Strength::CERTAIN,
        };
        Some(Claim::new(target, strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 48)
    }

    fn has_type(&self, path: &str) -> bool {
        path == "pthread_cond_t"
    }
}

/// Address of the condition variable to which this futex belongs.
pub(super) fn target(evidence: &Evidence) -> Option<u64> {
    found(evidence).map(|(target, _)| target)
}

fn found(evidence: &Evidence) -> Option<(u64, &'static Futex)> {
    let waits = evidence.all_waits(plain)?;
    let found = |layout: &Layout, futex: &Futex| {
        let target = evidence.address().checked_sub(futex.offset)?;
        let count = |window: &Window<'_>| waiters_of(target, layout, window, &waits);
        let waited_for = |window: &Window<'_>| count(window).is_some_and(|count| count != 0);
        let shown = evidence.windows_show(|window| count(window).is_some(), waited_for);
        (shown && waits.iter().all(|wait| (futex.fits)(wait.value))).then_some(target)
    };
    LAYOUTS.iter().find_map(|layout| {
        layout.futexes.iter().find_map(|futex| Some((found(layout, futex)?, futex)))
    })
}

fn is_zero(value: u32) -> bool {
    value == 0
}

fn is_odd(value: u32) -> bool {
    value % 2 == 1
}

fn is_even(value: u32) -> bool {
    value.is_multiple_of(2)
}

/// Number of waiters; `None` if these bytes cannot be a condition variable.
fn waiters_of(
    target: u64,
    layout: &Layout,
    window: &Window<'_>,
    waits: &[FutexWait],
) -> Option<u32> {
    let sequence = window.u64(target)? >> 1;
    let first = window.u64(target.wrapping_add(FIRST_GROUP))?;
    let flags = window.u32(target.wrapping_add(layout.waiters))?;
    let count = flags >> WAITER_SHIFT;
    let counted = count <= MAX_THREADS && u64::from(count) <= sequence;
    let unused = layout.unused.and_then(|offset| window.u64(target.wrapping_add(offset)));
    let counted = counted && unused.is_none_or(|bytes| bytes == 0);
    let shape = waits.iter().all(|wait| wait.private == (flags & 1 == 0));
    let outstanding = [first >> 1, first]
        .iter()
        .any(|&first| sequence.checked_sub(first).is_some_and(|n| n <= u64::from(MAX_THREADS)));
    (target.is_multiple_of(8) && counted && outstanding && shape).then_some(count)
}

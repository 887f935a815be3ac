//! `pthread_spinlock_t`: an `int`. Nobody ever sleeps for it, so that only debug information can
//! name one.
//!
//! Source: `sysdeps/x86_64/nptl/pthread_spin_lock.S` (1 free, less when held) and
//! `nptl/pthread_spin_lock.c` (0 free, 1 held) for other architectures.

use super::evidence::{Claim, Context, Evidence};
use super::{Hold, Kind, Primitive, Window};

pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&GlibcSpinlock];

const FREE: i32 = if cfg!(target_arch = "x86_64") { 1 } else { 0 };

#[derive(Debug)]
struct GlibcSpinlock;

impl Primitive for GlibcSpinlock {
    fn name(&self) -> &'static str {
        "glibc spinlock"
    }

    fn kind(&self) -> Kind {
        Kind::Spinlock
    }

    fn claim(&self, _: &Evidence, _: &Context<'_>) -> Option<Claim> {
        None
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, object: u64, window: &Window<'_>) -> Hold {
        match window.u32(object).map(u32::cast_signed) {
            None => Hold::Unseen,
            Some(FREE) => Hold::Free,
            Some(_) => Hold::Held { owner: None },
        }
    }

    fn contradicted(&self, object: u64, window: &Window<'_>) -> bool {
        window.u32(object).is_some_and(|word| word.cast_signed() > 1)
    }

    fn has_type(&self, name: &str) -> bool {
        name == "pthread_spinlock_t"
    }
}

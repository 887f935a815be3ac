//! HotSpot: threads park on a condition variable of their own, for monitors, for `ReentrantLock`
//! and for `Object.wait` alike. The lock is an object of the Java heap, out of sight.
//!
//! Source: `os/posix/os_posix.cpp` (`PlatformEvent`, `Parker`).

use super::evidence::{Claim, Context, Evidence, Strength, plain};
use super::{Kind, Primitive, Window};

pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&Jvm];

#[derive(Debug)]
struct Jvm;

impl Primitive for Jvm {
    fn name(&self) -> &'static str {
        "JVM parking"
    }

    fn kind(&self) -> Kind {
        Kind::Parker
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(plain)?;
        // Mutexes and semaphores of the virtual machine itself remain what they are.
        let object = super::glibc_condvar::object(evidence)?;
        if context.jvm && evidence.callers().is_empty() {
            let fits = !evidence.shared() && evidence.windows_fit(|w| mutex_before(object, w));
            return fits.then(|| Claim::new(object, Strength::LIKELY));
        }
        let depth = evidence.callers().iter().take(4).position(|caller| {
            caller.module.rsplit('/').next().is_some_and(|file| file.starts_with("libjvm.so"))
        })?;
        Some(Claim::new(object, Strength::named(depth)))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 48)
    }
}

/// The condition variable follows a mutex that its one waiter uses.
fn mutex_before(condvar: u64, window: &Window<'_>) -> bool {
    let word = |before| window.u32(condvar.wrapping_sub(before));
    let (owner, users, kind) = (word(32), word(28), word(24));
    owner == Some(0) && users == Some(1) && matches!(kind, Some(0 | 0x200))
}

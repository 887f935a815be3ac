//! A thread's end, for which `pthread_join` waits: the kernel clears the thread's tid and wakes
//! whoever sleeps on it, which works only for a shared futex.
//!
//! Source: `nptl/pthread_join_common.c`; set_tid_address(2).

use super::evidence::{Claim, Context, Evidence, Strength, plain};
use super::{Kind, Primitive};

pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&Join];

#[derive(Debug)]
struct Join;

impl Primitive for Join {
    fn name(&self) -> &'static str {
        "pthread_join"
    }

    fn kind(&self) -> Kind {
        Kind::Join
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        let tid = |tid: u32| tid != 0 && (context.is_thread)(tid);
        evidence.all_waits(|wait| plain(wait) && !wait.private && tid(wait.value))?;
        // An address that is used anew belongs to another thread: only zero may follow a tid.
        let waited = evidence.values_waited_with();
        let fits = evidence.values_fit(|value| value == 0 || waited.contains(&value));
        fits.then(|| Claim::new(evidence.address(), Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}

//! The end of a thread, for which `pthread_join` waits. The kernel then clears the thread's TID and
//! wakes the thread that sleeps on it. This works only for a shared futex.
//!
//! Source: `nptl/pthread_join_common.c`; set_tid_address(2).

use super::evidence::{Claim, Context, Evidence, Strength, plain};
use super::pattern::MAX_TID;
use super::{Family, Kind, Primitive};

pub(super) static FAMILY: Family =
    Family { primitives: &[&Join], sleeps_by_itself: true, ..Family::NONE };

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
        let waits = evidence.all_waits(|wait| plain(wait) && !wait.private)?;
        let tids = waits.iter().all(|wait| (1..MAX_TID).contains(&wait.value));
        // One thread is enough: threads named by earlier waits may have ended, and a new thread may
        // use the memory of one of them.
        let thread = waits.iter().any(|wait| (context.is_thread)(wait.value));
        let fits = evidence.values().iter().all(|&value| value < MAX_TID);
        let found = tids && thread && fits;
        found.then(|| Claim::new(evidence.address(), Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}

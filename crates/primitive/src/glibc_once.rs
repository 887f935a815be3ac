//! `pthread_once_t` of glibc, which `std::call_once` uses: 0 not begun, 1 in progress, 2 done.
//! While in progress, the higher bits contain the number of forks.
//!
//! Source: `nptl/pthread_once.c`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::{Family, Kind, Primitive};
use crate::futex::Operation;

pub(super) static FAMILY: Family =
    Family { primitives: &[&GlibcOnce], sleeps_by_itself: true, ..Family::NONE };

const IN_PROGRESS: u32 = 1;
const DONE: u32 = 2;

#[derive(Debug)]
struct GlibcOnce;

impl Primitive for GlibcOnce {
    fn name(&self) -> &'static str {
        "pthread_once"
    }

    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| {
            let running = wait.value & 3 == IN_PROGRESS && wait.value < 1 << 16;
            wait.operation == Operation::Wait && wait.private && !wait.timed && running
        })?;
        let waited = evidence.values_waited_with();
        let fits = |value| waited.contains(&value) || value == 0 || value == DONE;
        if waited.len() != 1 || !evidence.values_fit(fits) || evidence.fell() {
            return None;
        }
        // Threads that park, or wait at a gate of the program, may sleep with this value. Their
        // words are never 2.
        let likely = evidence.values().contains(&DONE).then_some(Strength::LIKELY);
        // Rust's `FnOnce::call_once`, with which every Rust thread begins, must not match.
        let strength = evidence.named(&[&["pthread_once"], &["std::call_once"]]).or(likely)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}

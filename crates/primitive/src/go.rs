//! Go's runtime. A thread without work sleeps on a note of its own, and the runtime's internal
//! locks have three values. `sync.Mutex` parks goroutines, not threads, so no futex shows it.
//!
//! Source: `runtime/lock_futex.go`, `runtime/os_linux.go`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::{Caller, Family, Kind, ParkedFor, Primitive};
use crate::function::Part;
use crate::futex::Operation;

pub(super) static FAMILY: Family = Family {
    primitives: &[&Note],
    functions: &[("runtime.futex", Part::Wait), ("runtime.note", Part::Wait)],
    spins: &["runtime.lock2", "runtime.procyield"],
    ..Family::NONE
};

#[derive(Debug)]
struct Note;

impl Primitive for Note {
    fn name(&self) -> &'static str {
        "Go parking"
    }

    fn kind(&self) -> Kind {
        Kind::Parker
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|w| w.operation == Operation::Wait && w.private && w.value == 0)?;
        let named = evidence.named(&[&["runtime.futex"], &["runtime.notesleep"]]);
        let fits = context.go && evidence.values_fit(|value| value <= 1);
        let strength = named.or(fits.then_some(Strength::LIKELY))?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    /// A thread sleeps when it has no goroutine to run, whatever the goroutines wait for.
    fn parked_for(&self, _: &[Caller]) -> ParkedFor {
        ParkedFor::Untold
    }
}

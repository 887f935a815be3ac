//! `std.Thread.Mutex` of Zig 0.11 to 0.14: 0 free, 1 held, 3 held and waited for. It records no
//! owner.
//!
//! Source: `lib/std/Thread/Mutex.zig` (`FutexImpl`), `lib/std/Thread/Futex.zig` (`LinuxImpl`).

use super::evidence::{Claim, Context, Evidence, Strength};
use super::futex_lock::three_values;
use super::{Family, Hold, Kind, Primitive, Window};
use crate::function::Part;
use crate::futex::Operation;

pub(super) static FAMILY: Family = Family {
    primitives: &[&ZigMutex],
    functions: &[("Thread.Mutex.", Part::Lock), ("Thread.Futex.", Part::Wait)],
    spins: &["Thread.Mutex.FutexImpl.lockSlow"],
    ..Family::NONE
};

const CONTENDED: u32 = 3;

#[derive(Debug)]
struct ZigMutex;

impl Primitive for ZigMutex {
    fn name(&self) -> &'static str {
        "Zig mutex"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| {
            let plain = wait.operation == Operation::Wait && wait.private && !wait.timed;
            plain && wait.value == CONTENDED
        })?;
        if !evidence.values_fit(is_state) {
            return None;
        }
        // A counter passes through these values, too.
        let contended = evidence.rose_again() && evidence.shared();
        let likely = contended.then_some(Strength::LIKELY);
        let strength = evidence.named(&[&["Thread.Mutex."]]).or(likely)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, object: u64, window: &Window<'_>) -> Hold {
        three_values(window.u32(object))
    }

    fn contradicted(&self, object: u64, window: &Window<'_>) -> bool {
        window.u32(object).is_some_and(|word| !is_state(word))
    }

    fn has_type(&self, path: &str) -> bool {
        path == "Thread.Mutex.FutexImpl"
    }
}

fn is_state(word: u32) -> bool {
    matches!(word, 0 | 1 | CONTENDED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::part;
    use crate::futex::FutexWait;
    use crate::spinning::spins_for_a_lock;
    use crate::{Caller, Wait, declared, identify};

    #[test]
    fn a_mutex_is_known_by_its_word_its_functions_and_its_type() {
        let wait = FutexWait {
            address: 0x1000,
            operation: Operation::Wait,
            private: true,
            realtime: false,
            value: CONTENDED,
            timed: false,
        };
        let mut evidence = Evidence::new(0x1000);
        evidence.saw_wait(7, Wait::Futex(wait));
        evidence.saw_value(CONTENDED);
        let context = Context { is_thread: &|_| true, go: false, jvm: false };
        assert_eq!(identify(&evidence, &context).kind(), Kind::Unknown);
        let function = Some("Thread.Mutex.FutexImpl.lockSlow".to_owned());
        evidence.saw_callers(vec![Caller { function, module: String::new() }]);
        let mutex = identify(&evidence, &context);
        assert_eq!((mutex.name(), mutex.certain), ("Zig mutex", true));
        assert_eq!(declared("Thread.Mutex.FutexImpl", 0x1000), Some(mutex));
        let window = Window { address: 0x1000, bytes: &1_u32.to_ne_bytes() };
        assert_eq!(mutex.hold(&window), Hold::Held { owner: None });
        assert_eq!(part("Thread.Mutex.FutexImpl.lockSlow"), Part::Lock);
        assert!(spins_for_a_lock("Thread.Mutex.FutexImpl.lockSlow"));
    }
}

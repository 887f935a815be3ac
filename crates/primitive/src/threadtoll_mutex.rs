//! The word of `threadtoll::lock`: bits, and the number of waiting threads, spinning ones included.
//!
//! | bit | meaning |
//! |---|---|
//! | 0 | locked |
//! | 1 | handed over: nobody holds the lock until the heir takes it |
//! | 2 | a waiter is awake |
//! | 3 | a waiter has starved |
//! | 4 | poisoned |
//! | 5 | a waiter sleeps, or is about to |
//! | 6, 7 | a time |
//! | from 8 | number of waiters |
//!
//! Waiters sleep with `FUTEX_WAIT_BITSET` and a bitset of one bit. Source:
//! `crates/threadtoll/src/lock/state.rs`.

use super::evidence::{Claim, Context, Evidence};
use super::pattern::MAX_THREADS;
use super::{Family, Hold, Kind, Primitive, Window};
use crate::function::Part;
use crate::futex::Operation;

pub(super) static FAMILY: Family = Family {
    primitives: &[&ThreadtollMutex],
    rust_functions: &[("threadtoll::lock::", Part::Lock)],
    spins: &["threadtoll::lock::word::Word::lock", "threadtoll::lock::word::Word::wait"],
    ..Family::NONE
};

const LOCKED: u32 = 1;
const HANDED: u32 = 2;
const STARVED: u32 = 8;
const ASLEEP: u32 = 32;
const TIME: u32 = 64 | 128;
const ONE_WAITER: u32 = 256;

#[derive(Debug)]
struct ThreadtollMutex;

impl Primitive for ThreadtollMutex {
    fn name(&self) -> &'static str {
        "threadtoll mutex"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        // Threads fall asleep only while the lock is taken, and count themselves before.
        let asleep = |word: u32| is_state(word) && word & (LOCKED | ASLEEP) == LOCKED | ASLEEP;
        evidence.all_waits(|wait| {
            wait.operation == Operation::WaitMasked
                && wait.private
                && !wait.realtime
                && asleep(wait.value)
        })?;
        let target = evidence.address();
        let word = |window: &Window<'_>| window.u32(target);
        let waited_for = |window: &Window<'_>| word(window).is_some_and(asleep);
        if !evidence.windows_show(|window| word(window).is_some_and(is_state), waited_for) {
            return None;
        }
        Some(Claim::new(target, evidence.named(&[&["threadtoll::lock"]])?))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        match window.u32(target) {
            None => Hold::Unseen,
            Some(word) if word & (LOCKED | HANDED) == LOCKED => Hold::Held { owner: None },
            Some(_) => Hold::Free,
        }
    }

    fn waiting(&self, target: u64, window: &Window<'_>) -> Option<u32> {
        Some(window.u32(target)? / ONE_WAITER)
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_some_and(|word| !is_state(word))
    }

    fn has_type(&self, path: &str) -> bool {
        path == "threadtoll::lock::word::Word"
    }
}

fn is_state(word: u32) -> bool {
    let waited_for = word >= ONE_WAITER;
    let kept = word & (HANDED | STARVED) == 0 || word & LOCKED != 0 && waited_for;
    kept && (waited_for || word & (ASLEEP | TIME) == 0) && word / ONE_WAITER <= MAX_THREADS
}

#[cfg(test)]
mod tests {
    use crate::evidence::{Caller, Context, Evidence, Wait};
    use crate::futex::FutexWait;
    use crate::{Hold, Identity, Window, declared, identify};

    const ADDRESS: u64 = 0x5555_0000_1000;

    fn bytes(word: u32) -> Vec<u8> {
        word.to_ne_bytes().to_vec()
    }

    fn saw(evidence: &mut Evidence, tid: u32, mask: u64, value: u32, now: u32) {
        let arguments = [ADDRESS, 9 | 128, value.into(), 0, 0, mask];
        let wait = FutexWait::of(libc::SYS_futex as u32, arguments).unwrap();
        evidence.saw_wait(tid, Wait::Futex(wait));
        evidence.saw_window(&Window { address: ADDRESS, bytes: &bytes(now) });
    }

    fn seen(evidence: &Evidence) -> &'static str {
        let context = Context { is_thread: &|_| true, go: false, jvm: false };
        identify(evidence, &context).name()
    }

    #[test]
    fn it_is_known_by_its_name() {
        let mut evidence = Evidence::new(ADDRESS);
        saw(&mut evidence, 1, 2, 0b1_0010_0001, 0b1_0010_0001);
        assert_eq!(seen(&evidence), "unknown");
        let caller = Caller {
            function: Some("threadtoll::lock::word::Word::lock".into()),
            module: "server".into(),
        };
        evidence.saw_callers(vec![caller.clone()]);
        evidence.saw_callers(vec![caller]);
        assert_eq!(seen(&evidence), "threadtoll mutex");
        // A thread never falls asleep while the lock is free, so this is another word.
        saw(&mut evidence, 3, 2, 0b10_0010_0000, 0b10_0010_0001);
        assert_eq!(seen(&evidence), "unknown");
    }

    #[test]
    fn its_word_tells_holder_and_queue() {
        let lock: Identity = declared("threadtoll::lock::word::Word", ADDRESS).unwrap();
        for (word, hold, waiting) in [
            (0, Hold::Free, 0),
            (1, Hold::Held { owner: None }, 0),
            (0b11_0110_0101, Hold::Held { owner: None }, 3),
            (0b1_0000_0100, Hold::Free, 1),
            (0b1_0010_1011, Hold::Free, 1),
            (0b1_0000, Hold::Free, 0),
        ] {
            let bytes = bytes(word);
            let window = Window { address: ADDRESS, bytes: &bytes };
            assert_eq!(
                (lock.hold(&window), lock.waiting(&window)),
                (hold, Some(waiting)),
                "{word}"
            );
            assert!(!lock.contradicted(&window), "{word:#b}");
        }
        for word in [0b10, 0b1000, 0b1011, u32::MAX, 0b1_0000_0010, 0b10_0001, 0b1000_0001] {
            let bytes = bytes(word);
            let window = Window { address: ADDRESS, bytes: &bytes };
            assert!(lock.contradicted(&window), "{word:#b}");
        }
    }
}

//! `pthread_spinlock_t` of glibc.
//!
//! | state | word on x86-64 | word elsewhere |
//! |---|---|---|
//! | free | 1 | 0 |
//! | held | 0, less the number of waiters | 1 |
//!
//! On x86-64, a thread that tries to take the lock subtracts 1. If it fails, it tries again only
//! after it has seen the word at 1. So each waiter that has run since the lock was last released
//! counts once.
//!
//! Source: `sysdeps/x86_64/nptl/pthread_spin_lock.S` and `nptl/pthread_spin_lock.c` of glibc 2.36
//! and of 2026. musl has functions of the same names; its word is 0 if the lock is free, and 16 if
//! not.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::MAX_THREADS;
use super::{Family, Hold, Kind, Primitive, Window};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&GlibcSpinlock],
    functions: &[("pthread_spin_", Part::Lock), ("__pthread_spin_", Part::Lock)],
    spins_at_argument: &["pthread_spin_lock", "__pthread_spin_lock"],
    ..Family::NONE
};

#[derive(Debug)]
struct GlibcSpinlock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Held, with the number of waiters if the word counts them.
    Held(Option<u32>),
}

impl State {
    /// `None` if the word cannot be that of a spinlock. `counts` is `true` if waiters subtract 1.
    fn of(word: u32, counts: bool) -> Option<State> {
        match (counts, word.cast_signed()) {
            (true, 1) | (false, 0) => Some(State::Free),
            (true, word @ ..=0) => {
                let waiters = Some(word.unsigned_abs()).filter(|&waiters| waiters <= MAX_THREADS);
                waiters.map(|waiters| State::Held(Some(waiters)))
            }
            (false, 1) => Some(State::Held(None)),
            _ => None,
        }
    }

    fn of_this_architecture(word: u32) -> Option<State> {
        State::of(word, cfg!(target_arch = "x86_64"))
    }
}

impl Primitive for GlibcSpinlock {
    fn name(&self) -> &'static str {
        "glibc spinlock"
    }

    fn kind(&self) -> Kind {
        Kind::Spinlock
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let fits = |word| State::of_this_architecture(word).is_some();
        // A word that is always 0 may be musl's.
        let tells = evidence.values().iter().any(|&word| word != 0);
        let found = evidence.all_spin() && evidence.values_fit(fits) && tells;
        found.then(|| Claim::new(evidence.address(), Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        match window.u32(target).and_then(State::of_this_architecture) {
            Some(State::Free) => Hold::Free,
            Some(State::Held(_)) => Hold::Held { owner: None },
            None => Hold::Unseen,
        }
    }

    fn waiting(&self, target: u64, window: &Window<'_>) -> Option<u32> {
        match State::of_this_architecture(window.u32(target)?)? {
            State::Free if cfg!(target_arch = "x86_64") => Some(0),
            State::Free => None,
            State::Held(waiters) => waiters,
        }
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_some_and(|word| State::of_this_architecture(word).is_none())
    }

    fn has_type(&self, path: &str) -> bool {
        path == "pthread_spinlock_t"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Wait;
    use crate::futex::FutexWait;
    use crate::{Identity, identify};

    const WORD: u64 = 0x1000;

    #[test]
    fn words_show_the_state_of_the_lock() {
        let states =
            |counts| [1, 0, -1_i32, -3].map(|word| State::of(word.cast_unsigned(), counts));
        let held = |waiters| Some(State::Held(Some(waiters)));
        assert_eq!(states(true), [Some(State::Free), held(0), held(1), held(3)]);
        assert_eq!(states(false), [Some(State::Held(None)), Some(State::Free), None, None]);
        // musl's word, and no lock's.
        for counts in [true, false] {
            assert_eq!(State::of(16, counts), None);
            assert_eq!(State::of(0x8000_0000, counts), None);
        }
    }

    fn seen(waits: &[Wait], words: &[u32]) -> Identity {
        let mut evidence = Evidence::new(WORD);
        waits.iter().for_each(|&wait| _ = evidence.saw_wait(7, wait));
        for word in words {
            evidence.saw_window(&Window { address: WORD, bytes: &word.to_ne_bytes() });
        }
        identify(&evidence, &Context { is_thread: &|_| true, go: false, jvm: false })
    }

    #[test]
    fn spinning_threads_and_the_word_show_a_spinlock() {
        let lock = seen(&[Wait::Spinning], &[0, 1]);
        assert_eq!((lock.name(), lock.certain), ("glibc spinlock", true));
        assert_eq!((lock.kind(), lock.address), (Kind::Spinlock, WORD));
        let sleeps = [WORD, 128, 2, 0, 0, 0];
        let sleeps = Wait::Futex(FutexWait::of(libc::SYS_futex as u32, sleeps).unwrap());
        for (waits, words) in [
            (&[Wait::Spinning][..], &[0][..]),
            (&[Wait::Spinning], &[0, 16]),
            (&[Wait::Spinning, sleeps], &[0, 1]),
            (&[], &[0, 1]),
        ] {
            assert_ne!(seen(waits, words).kind(), Kind::Spinlock, "{waits:?} {words:?}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_word_below_zero_counts_the_waiters() {
        let lock = seen(&[Wait::Spinning], &[0, 1]);
        for (word, hold, waiting) in [
            (1, Hold::Free, Some(0)),
            (0, Hold::Held { owner: None }, Some(0)),
            (-2_i32, Hold::Held { owner: None }, Some(2)),
            (5, Hold::Unseen, None),
        ] {
            let window = Window { address: WORD, bytes: &word.to_ne_bytes() };
            assert_eq!((lock.hold(&window), lock.waiting(&window)), (hold, waiting), "{word}");
            assert_eq!(lock.contradicted(&window), word == 5);
        }
    }
}

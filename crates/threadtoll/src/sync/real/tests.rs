//! Sleeping and waking, on Linux and elsewhere.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::{AtomicU32, Ordering, futex_wait, futex_wake};

#[test]
fn a_word_that_has_changed_is_not_slept_on() {
    assert!(!futex_wait(&AtomicU32::new(1), 0, None));
}

#[test]
fn a_sleep_ends_with_its_time_and_is_not_counted_as_woken() {
    let word = AtomicU32::new(0);
    assert!(!futex_wait(&word, 0, Some(Duration::from_millis(1))));
    assert_eq!(futex_wake(&word, 1), 0, "nobody sleeps any more");
}

/// Exactly the threads that were counted return `true`.
#[test]
fn as_many_wake_as_are_counted() {
    let (word, other) = (AtomicU32::new(0), AtomicU32::new(0));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sleep = || {
            let mut woken = 0;
            while !over.load(Ordering::Relaxed) {
                woken += u32::from(futex_wait(&word, 0, None));
            }
            woken
        };
        let sleepers = [(); 3].map(|()| scope.spawn(sleep));
        let mut counted = 0;
        for _ in 0..1000 {
            assert_eq!(futex_wake(&other, 3), 0, "nobody sleeps there");
            let woken = futex_wake(&word, 2);
            assert!(woken <= 2);
            counted += woken;
            thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        word.store(1, Ordering::Relaxed);
        counted += futex_wake(&word, u32::MAX);
        let woken: u32 =
            sleepers.into_iter().map(|sleeper| sleeper.join().expect("it does not panic")).sum();
        assert_eq!(woken, counted);
    });
}

/// An unrelated `unpark` is not a wake-up.
#[test]
fn a_stray_unpark_is_not_counted() {
    let word = AtomicU32::new(0);
    thread::current().unpark();
    assert!(!futex_wait(&word, 0, Some(Duration::from_millis(1))));
    assert_eq!(futex_wake(&word, 1), 0);
}

//! Unlucky circumstances: panics, threads that end, guards that are leaked, the longest and the
//! shortest time.

use std::mem::{forget, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{Full, LockBoundedTimeoutError, LockTimeoutError};
use threadtoll::lock::Mutex;

use crate::asleep::fall_asleep;

const SOON: Duration = Duration::from_millis(1);

/// Panics with the lock held, in another thread.
fn panic_with(mutex: &Mutex<u64>) {
    let panicked = thread::scope(|scope| {
        let panicking = scope.spawn(|| {
            let mut value = mutex.lock();
            *value += 1;
            resume_unwind(Box::new("halfway"));
        });
        panicking.join().is_err()
    });
    assert!(panicked);
}

fn panics<R>(body: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(body()))).is_err()
}

#[test]
fn a_panic_unlocks() {
    for mutex in [Mutex::new(0), Mutex::fair(0)] {
        panic_with(&mutex);
        assert!(!mutex.is_poisoned());
        assert_eq!(*mutex.lock(), 1);
    }
}

#[test]
fn a_panic_poisons_if_wanted() {
    for mut mutex in [Mutex::new(0).poisoning(), Mutex::fair(0).poisoning()] {
        drop(mutex.lock());
        assert!(!mutex.is_poisoned());
        panic_with(&mutex);
        assert!(mutex.is_poisoned());
        assert!(panics(|| mutex.lock()));
        assert!(panics(|| mutex.try_lock()));
        assert!(panics(|| mutex.lock_timeout(SOON)));
        assert!(panics(|| mutex.lock_bounded(1)));
        assert!(panics(|| mutex.lock_bounded_timeout(1, SOON)));
        let text = format!("{mutex:?}");
        assert_eq!(text, "Mutex { value: 1, queue_len: 0, is_poisoned: true, .. }");
        assert_eq!(*mutex.get_mut(), 1);
        // None of the panics has kept the lock.
        mutex.clear_poison();
        assert_eq!(*mutex.try_lock().expect("it is free"), 1);
        panic_with(&mutex);
        assert_eq!(mutex.into_inner(), 2);
    }
}

#[test]
fn a_guard_made_while_panicking_does_not_poison() {
    struct LocksInDrop<'a>(&'a Mutex<u64>);
    impl Drop for LocksInDrop<'_> {
        fn drop(&mut self) {
            *self.0.lock() += 1;
        }
    }
    let mutex = Mutex::new(0).poisoning();
    assert!(panics(|| {
        let _locks = LocksInDrop(&mutex);
        resume_unwind(Box::new("halfway"));
    }));
    assert!(!mutex.is_poisoned());
    assert_eq!(*mutex.lock(), 1);
}

/// Sleepers of a mutex that becomes poisoned learn of it, one after the other.
#[test]
fn sleepers_learn_of_a_panic() {
    for mutex in [Mutex::new(0).poisoning(), Mutex::fair(0).poisoning()] {
        let panicked = thread::scope(|scope| {
            let guard = mutex.lock();
            let sleepers: Vec<_> = (1..=3)
                .map(|queue| fall_asleep(scope, &mutex, queue, || panics(|| mutex.lock())))
                .collect();
            assert!(panics(|| {
                let _guard = guard;
                resume_unwind(Box::new("halfway"));
            }));
            let ended = sleepers.into_iter().map(|sleeper| sleeper.join());
            ended.filter(|ended| matches!(ended, Ok(true))).count()
        });
        assert_eq!(panicked, 3);
        assert_eq!(mutex.queue_len(), 0);
    }
}

#[test]
fn a_thread_that_ends_with_a_leaked_guard_leaves_the_lock_taken() {
    let mutex = Arc::new(Mutex::new(0));
    let other = Arc::clone(&mutex);
    thread::spawn(move || forget(other.lock())).join().expect("it does not panic");
    assert!(mutex.try_lock().is_none());
    assert_eq!(mutex.lock_timeout(SOON).err(), Some(LockTimeoutError));
    assert_eq!(mutex.lock_bounded(0).err(), Some(Full { queue: 0 }));
    assert_eq!(mutex.queue_len(), 0);
    assert_eq!(
        format!("{mutex:?}"),
        "Mutex { value: <locked>, queue_len: 0, is_poisoned: false, .. }"
    );
}

#[test]
fn the_shortest_time_is_none() {
    let mutex = Mutex::new(0);
    assert!(mutex.lock_timeout(Duration::ZERO).is_ok());
    assert!(mutex.lock_deadline(Instant::now()).is_ok());
    let guard = mutex.lock();
    assert_eq!(mutex.lock_timeout(Duration::ZERO).err(), Some(LockTimeoutError));
    assert_eq!(mutex.lock_deadline(Instant::now()).err(), Some(LockTimeoutError));
    assert_eq!(
        mutex.lock_bounded_timeout(1, Duration::ZERO).err(),
        Some(LockBoundedTimeoutError::Timeout)
    );
    assert_eq!(
        mutex.lock_bounded_timeout(0, Duration::MAX).err(),
        Some(LockBoundedTimeoutError::Full { queue: 0 })
    );
    drop(guard);
}

#[test]
fn the_longest_time_is_for_ever() {
    let mutex = Mutex::fair(0);
    thread::scope(|scope| {
        let guard = mutex.lock();
        let sleeper =
            fall_asleep(scope, &mutex, 1, || mutex.lock_timeout(Duration::MAX).map(|it| *it));
        let other = fall_asleep(scope, &mutex, 2, || {
            mutex.lock_bounded_timeout(usize::MAX, Duration::MAX).map(|it| *it)
        });
        drop(guard);
        assert_eq!(sleeper.join().expect("it does not panic"), Ok(0));
        assert_eq!(other.join().expect("it does not panic"), Ok(0));
    });
}

/// A wait that times out leaves nothing behind, among those who sleep on.
#[test]
fn others_sleep_on() {
    for mutex in [Mutex::new(0), Mutex::fair(0)] {
        thread::scope(|scope| {
            let guard = mutex.lock();
            fall_asleep(scope, &mutex, 1, || *mutex.lock() += 1);
            assert_eq!(mutex.lock_timeout(SOON).err(), Some(LockTimeoutError));
            fall_asleep(scope, &mutex, 2, || *mutex.lock() += 1);
            assert_eq!(mutex.lock_timeout(4 * SOON).err(), Some(LockTimeoutError));
            assert_eq!(mutex.queue_len(), 2);
            drop(guard);
        });
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.queue_len(), 0);
    }
}

#[test]
fn it_is_small_and_can_be_static() {
    static SIZED: Mutex<[u64; 3]> = Mutex::new([1, 2, 3]);
    let unsized_mutex: &Mutex<[u64]> = &SIZED;
    assert_eq!(unsized_mutex.lock().iter().sum::<u64>(), 6);
    assert_eq!((size_of::<Mutex<()>>(), size_of::<Mutex<u64>>()), (8, 16));
    assert_eq!(size_of::<Mutex<u64>>(), size_of::<std::sync::Mutex<u64>>());
}

//! Many threads at once.
//!
//! `THREADTOLL_TRIES` is the number of attempts to lock that each thread of a storm makes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use threadtoll::error::{Full, LockBoundedTimeoutError};
use threadtoll::lock::{Mutex, MutexGuard};

const THREADS: u64 = 8;

fn tries() -> u64 {
    let tries = std::env::var("THREADTOLL_TRIES").ok().and_then(|tries| tries.parse().ok());
    tries.unwrap_or(20_000)
}

/// Numbers that repeat with the seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Mostly computes while it holds the lock, and now and then loses its CPU.
fn hold(dice: &mut Dice) {
    match dice.below(64) {
        0 => thread::yield_now(),
        1 => thread::sleep(Duration::from_micros(20)),
        _ => (0..dice.below(200)).for_each(|_| std::hint::spin_loop()),
    }
}

/// Runs `body` in all threads, and then expects a mutex that is free and counts its visits.
fn storm(mutex: &Mutex<usize>, body: impl Fn(&mut Dice) -> usize + Sync) {
    let visits = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (body, mut dice) = (&body, Dice(seed));
                scope.spawn(move || (0..tries()).map(|_| body(&mut dice)).sum::<usize>())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<usize>()
    });
    assert_eq!(mutex.queue_len(), 0);
    assert_eq!(*mutex.try_lock().expect("it is free"), visits);
}

/// The mutex counts the threads that have entered, and excludes them from each other.
fn visit<'a>(mut guard: MutexGuard<'a, usize>, dice: &mut Dice) -> MutexGuard<'a, usize> {
    let before = *guard;
    hold(dice);
    *guard = before + 1;
    guard
}

fn never_beyond(bound: usize, mutex: &Mutex<usize>) {
    let (over, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                assert!(mutex.queue_len() <= bound);
            }
        });
        storm(mutex, |dice| {
            let entered = if dice.below(2) == 0 {
                mutex.lock_bounded(bound).map_err(Into::into)
            } else {
                let limit = Duration::from_micros(dice.below(60));
                mutex.lock_bounded_timeout(bound, limit)
            };
            match entered {
                Ok(guard) => {
                    assert!(mutex.queue_len() <= bound);
                    drop(visit(guard, dice));
                    1
                }
                Err(LockBoundedTimeoutError::Full { queue }) => {
                    assert_eq!(queue, bound);
                    refused.fetch_add(1, Relaxed);
                    0
                }
                Err(LockBoundedTimeoutError::Timeout) => 0,
            }
        });
        over.store(true, Relaxed);
    });
    assert!(refused.into_inner() > 0, "nobody was refused: there was no storm");
}

#[test]
fn the_queue_never_exceeds_its_bound() {
    never_beyond(3, &Mutex::new(0));
    never_beyond(1, &Mutex::fair(0));
    assert_eq!(Full { queue: 1 }.to_string(), "1 thread waits for the lock already");
}

/// Locks in every way, gives up at every moment, and unlocks in both ways.
fn somehow(mutex: &Mutex<usize>, dice: &mut Dice) -> usize {
    let entered = match dice.below(8) {
        0 => mutex.try_lock(),
        1 => mutex.lock_bounded(dice.below(4) as usize).ok(),
        2 | 3 => Some(mutex.lock()),
        _ => mutex.lock_timeout(Duration::from_micros(dice.below(80))).ok(),
    };
    let Some(guard) = entered else { return 0 };
    let guard = visit(guard, dice);
    if dice.below(4) == 0 {
        MutexGuard::unlock_fair(guard);
    }
    1
}

#[test]
fn waits_end_and_time_out_while_the_lock_is_handed_over() {
    for mutex in [Mutex::new(0), Mutex::fair(0), Mutex::new(0).poisoning()] {
        storm(&mutex, |dice| somehow(&mutex, dice));
    }
}

//! Who is served next.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use threadtoll::lock::{Mutex, MutexGuard};

use crate::asleep::fall_asleep;

/// Five threads fall asleep one after the other; then the lock is unlocked.
fn order_of(mutex: &Mutex<Vec<usize>>, unlock_fair: bool) -> Vec<usize> {
    const SLEEPERS: usize = 5;
    let unlock = |guard| if unlock_fair { MutexGuard::unlock_fair(guard) } else { drop(guard) };
    let guard = mutex.lock();
    thread::scope(|scope| {
        for name in 0..SLEEPERS {
            fall_asleep(scope, mutex, name + 1, move || {
                let mut order = mutex.lock();
                order.push(name);
                unlock(order);
            });
        }
        unlock(guard);
        // This thread is faster than any that must wake up.
        while mutex.queue_len() > 0 {
            if let Some(order) = mutex.try_lock() {
                assert_eq!(order.len(), SLEEPERS, "it overtook a thread that waited");
            }
        }
    });
    mutex.lock().clone()
}

#[test]
fn a_fair_mutex_serves_in_order() {
    assert_eq!(order_of(&Mutex::fair(Vec::new()), false), [0, 1, 2, 3, 4]);
}

#[test]
fn a_fair_unlock_hands_over() {
    assert_eq!(order_of(&Mutex::new(Vec::new()), true), [0, 1, 2, 3, 4]);
}

/// All three wait for more than a millisecond.
#[test]
fn whoever_came_later_does_not_overtake_sleepers() {
    let (mutex, turn) = (Mutex::new(Vec::new()), AtomicU32::new(0));
    let until = |now| {
        while turn.load(Relaxed) < now {
            thread::yield_now();
        }
    };
    let guard = mutex.lock();
    thread::scope(|scope| {
        fall_asleep(scope, &mutex, 1, || {
            let mut order = mutex.lock();
            order.push("first");
            turn.store(1, Relaxed);
            until(2);
        });
        fall_asleep(scope, &mutex, 2, || mutex.lock().push("second"));
        thread::sleep(Duration::from_millis(5));
        drop(guard);
        until(1);
        fall_asleep(scope, &mutex, 2, || mutex.lock().push("third"));
        thread::sleep(Duration::from_millis(5));
        turn.store(2, Relaxed);
    });
    assert_eq!(*mutex.lock(), ["first", "second", "third"]);
}

/// A thread that locks again as soon as it has unlocked is quicker than any that it wakes.
#[test]
fn a_hog_cannot_starve_a_waiter() {
    const TRIES: u32 = 20;
    let (mutex, holds, over) = (Mutex::new(()), AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                let _guard = mutex.lock();
                holds.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        let mut holds_while_waiting = 0;
        for _ in 0..TRIES {
            while holds.load(Relaxed) == 0 {
                thread::yield_now();
            }
            let before = holds.load(Relaxed);
            drop(mutex.lock());
            holds_while_waiting += holds.load(Relaxed) - before;
        }
        over.store(true, Relaxed);
        // It is woken by the first unlock, comes too late, and is served by the second.
        assert!(holds_while_waiting <= 5 * TRIES, "{holds_while_waiting} holds in {TRIES} waits");
    });
}

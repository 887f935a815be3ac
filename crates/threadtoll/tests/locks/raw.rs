//! The lock through `lock_api`.

use std::thread;
use std::time::{Duration, Instant};

use lock_api::{MutexGuard, RawMutex as _};
use threadtoll::error::Full;
use threadtoll::lock::{RawFairMutex, RawMutex};

const SOON: Duration = Duration::from_millis(1);

/// Four threads count, with every kind of lock and unlock.
fn counts<R>()
where
    R: lock_api::RawMutexFair
        + lock_api::RawMutexTimed<Duration = Duration, Instant = Instant>
        + Send
        + Sync,
{
    const EACH: usize = 2_000;
    let mutex = lock_api::Mutex::<R, usize>::new(0);
    thread::scope(|scope| {
        for name in 0..4 {
            let mutex = &mutex;
            scope.spawn(move || {
                for round in 0..EACH {
                    let mut guard = loop {
                        match (name + round) % 3 {
                            0 => break mutex.lock(),
                            1 => match mutex.try_lock_for(SOON) {
                                Some(guard) => break guard,
                                None => continue,
                            },
                            _ => match mutex.try_lock_until(Instant::now() + SOON) {
                                Some(guard) => break guard,
                                None => continue,
                            },
                        }
                    };
                    *guard += 1;
                    match round % 3 {
                        0 => MutexGuard::unlock_fair(guard),
                        1 => MutexGuard::bump(&mut guard),
                        _ => {}
                    }
                }
            });
        }
    });
    assert!(!mutex.is_locked());
    assert_eq!(*mutex.try_lock().expect("it is free"), 4 * EACH);
}

#[test]
fn both_kinds_count() {
    counts::<RawMutex>();
    counts::<RawFairMutex>();
}

#[test]
fn its_queue_can_be_bounded() {
    let raw = RawMutex::INIT;
    let guard = raw.lock_bounded(0).expect("it is free");
    assert!(raw.is_locked() && raw.try_lock().is_none());
    assert_eq!(raw.lock_bounded(0).err(), Some(Full { queue: 0 }));
    assert_eq!(raw.queue_len(), 0);
    // SAFETY: it was locked above.
    unsafe { raw.unlock(guard) };
    assert!(!raw.is_locked());
    assert_eq!(size_of::<RawMutex>(), 4);
}

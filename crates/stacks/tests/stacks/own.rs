//! Threads of this very process.

use std::hint::black_box;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

use super::observe::Observer;

#[inline(never)]
fn outer_step(lock: &Mutex<u32>, tid: &mpsc::Sender<u32>) -> u32 {
    let scratch = black_box([3u8; 200]);
    middle_step(lock, tid) + u32::from(scratch[7])
}

#[inline(never)]
fn middle_step(lock: &Mutex<u32>, tid: &mpsc::Sender<u32>) -> u32 {
    let call: fn(&Mutex<u32>, &mpsc::Sender<u32>) -> u32 = black_box(inner_step);
    call(lock, tid) + 1
}

#[inline(never)]
fn inner_step(lock: &Mutex<u32>, tid: &mpsc::Sender<u32>) -> u32 {
    // SAFETY: The call has no preconditions.
    let own = unsafe { libc::gettid() };
    tid.send(own.cast_unsigned()).unwrap();
    let value = lock.lock().unwrap();
    black_box(*value) + 1
}

#[test]
fn a_thread_that_waits_for_a_mutex_is_unwound_to_its_start() {
    let lock = Arc::new(Mutex::new(1));
    let held = lock.lock().unwrap();
    let (sender, receiver) = mpsc::channel();
    let other = lock.clone();
    let waiter = thread::spawn(move || outer_step(&other, &sender));
    let tid = receiver.recv().unwrap();

    let mut observer = Observer::new(std::process::id());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    // The thread may still be about to send its number when it is first seen asleep.
    let seen = loop {
        let seen = observer.sample(tid);
        let waits = seen.names.iter().any(|name| name.contains("Mutex") || name.contains("mutex"));
        assert!(std::time::Instant::now() < until, "{:#?}", seen.names);
        if waits {
            break seen;
        }
    };
    drop(held);
    waiter.join().unwrap();

    assert!(!seen.stack.cut, "{:#?}", seen.names);
    let steps: Vec<_> = seen.names.iter().filter(|name| name.contains("_step")).collect();
    let expected = ["inner_step", "middle_step", "outer_step"];
    let matches = steps.len() == 3 && steps.iter().zip(expected).all(|(a, b)| a.ends_with(b));
    assert!(matches, "{:#?}", seen.names);
}

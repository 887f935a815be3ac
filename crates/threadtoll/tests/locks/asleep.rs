//! Threads that are known to sleep.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use threadtoll::lock::Mutex;

/// Starts a thread that locks the mutex, and returns once that thread sleeps for it, as the last of
/// `queue` waiters.
pub(crate) fn fall_asleep<'scope, T: Send, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    mutex: &'scope Mutex<T>,
    queue: usize,
    body: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    let (tell, told) = channel();
    let thread = scope.spawn(move || {
        tell.send(name_of_this_thread()).expect("the other thread waits for it");
        body()
    });
    while mutex.queue_len() < queue {
        thread::yield_now();
    }
    until_asleep(&told);
    thread
}

/// Its folder in `/proc`, if there is one.
fn name_of_this_thread() -> Option<String> {
    let folder = std::fs::read_link("/proc/thread-self").ok()?;
    Some(format!("/proc/{}/stat", folder.to_str()?))
}

fn until_asleep(told: &Receiver<Option<String>>) {
    let Some(file) = told.recv().expect("the thread has begun") else {
        // Time in which it falls asleep.
        return thread::sleep(Duration::from_millis(20));
    };
    // The state comes after the name, which is in parentheses.
    let sleeps = || {
        let line = std::fs::read_to_string(&file).unwrap_or_default();
        line.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
    };
    while !sleeps() {
        thread::yield_now();
    }
}

//! A process that forks while another of its threads is inside a call of the clock.
//!
//! The thread holds no lock of a queue then, which the child would inherit and wait for: queues
//! that the child makes work. This program defines `clock_gettime` itself, so that it can stop a
//! thread in each of its calls.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use threadtoll::error::RecvTimeoutError;
use threadtoll::{call, funnel, pipe};

thread_local! {
    static STOPS_IN_CLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Number of calls in which the thread was stopped, and number of those that it may leave.
static ENTERED: AtomicUsize = AtomicUsize::new(0);
static MAY_LEAVE: AtomicUsize = AtomicUsize::new(0);

/// # Safety
///
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> libc::c_int {
    if STOPS_IN_CLOCK.get() {
        let call = ENTERED.fetch_add(1, Ordering::SeqCst);
        while MAY_LEAVE.load(Ordering::SeqCst) <= call {
            // SAFETY: takes no argument.
            unsafe { libc::sched_yield() };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as libc::c_int }
}

/// Sleeps in each kind of queue, and wakes a sleeper.
fn use_queues() {
    const SOON: Duration = Duration::from_millis(1);
    let (sender, mut receiver) = pipe::bounded::<u64>(4);
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    drop(sender);
    let (sender, mut receiver) = funnel::bounded::<u64>(1);
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    sender.send(1).expect("there is room");
    assert!(sender.send_timeout(2, SOON).is_err());
    let (_caller, mut callee) = call::line::<u64, u64>();
    assert_eq!(callee.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
}

/// Waits until the thread is stopped in this call, counted from 0. Returns `false` if it does not
/// come to it, because it sleeps.
fn is_in_call(call: usize) -> bool {
    // The first call may take a while, and must not be missed.
    for _ in 0..if call == 0 { 30_000 } else { 500 } {
        if ENTERED.load(Ordering::SeqCst) > call {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn queues_of_a_child_do_not_wait_for_a_thread_in_the_clock() {
    let (sender, mut receiver) = pipe::unbounded::<u64>();
    let sleeper = thread::spawn(move || {
        STOPS_IN_CLOCK.set(true);
        receiver.recv()
    });
    let mut calls = 0;
    while is_in_call(calls) {
        // SAFETY: the child allocates, which glibc and musl allow, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: takes a number. Ends a child that hangs.
            unsafe { libc::alarm(10) };
            let failed = std::panic::catch_unwind(use_queues).is_err();
            // SAFETY: ends the child without running destructors or exit handlers.
            unsafe { libc::_exit(failed.into()) };
        }
        let mut status = 0;
        // SAFETY: the status is valid.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(waited == child && status == 0, "forked in call {calls}: it ended with {status}");
        calls += 1;
        MAY_LEAVE.store(calls, Ordering::SeqCst);
    }
    println!("forked in each of {calls} calls of the clock");
    assert!(calls > 2, "the sleeper read the clock {calls} times");
    MAY_LEAVE.store(usize::MAX, Ordering::SeqCst);
    drop(sender);
    assert!(sleeper.join().expect("it does not panic").is_err());
}

//! No wake-up is lost if a sandbox refuses `membarrier(2)`, before or after a queue is created.
//!
//! A filter cannot be removed, and the kernel's answer is kept for the life of the process. So each
//! case runs in a process of its own: this program again, with one of the ignored tests.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

#[path = "sandbox/filter.rs"]
mod filter;

use std::thread;
use std::time::Duration;

use filter::{answer_commands, answer_membarrier, has_filters, is_refused, refuse_membarrier, run};
use threadtoll::wait::Wait::Park;
use threadtoll::{call, funnel, pipe};

/// Both ends wait for each message and for room for it.
fn back_and_forth_if_refused(pipe: Pipe, funnel: Funnel) {
    assert!(is_refused());
    back_and_forth(pipe, funnel);
}

fn back_and_forth(
    (mut there, ask): (pipe::Sender<u64>, pipe::Receiver<u64>),
    (answer, mut back): (funnel::Sender<u64>, funnel::Receiver<u64>),
) {
    // SAFETY: takes a number. Ends the process if a wake-up is lost.
    unsafe { libc::alarm(60) };
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in ask {
                answer.send(number).expect("the other lives");
            }
        });
        for number in 0..1000 {
            there.send(number).expect("the other lives");
            assert_eq!(back.recv(), Ok(number));
        }
        scope.spawn(move || {
            for number in 0..1000 {
                there.send(number).expect("the other lives");
            }
        });
        for number in 0..1000 {
            if number % 100 == 0 {
                // Time for the queue to fill up, and for all threads to fall asleep.
                thread::sleep(Duration::from_millis(2));
            }
            assert_eq!(back.recv(), Ok(number));
        }
    });
}

type Pipe = (pipe::Sender<u64>, pipe::Receiver<u64>);
type Funnel = (funnel::Sender<u64>, funnel::Receiver<u64>);

fn queues() -> (Pipe, Funnel) {
    let pipe = pipe::Options::new().wait(Park).bounded(1);
    let funnel = funnel::Options::new().wait(Park).bounded(1);
    (pipe, funnel)
}

#[test]
#[ignore = "run by `refused_before`, in a process of its own"]
fn child_refused_before() {
    let (pipe, funnel) = queues();
    back_and_forth_if_refused(pipe, funnel);
}

#[test]
#[ignore = "run by `refused_after`, in a process of its own"]
fn child_refused_after() {
    let (pipe, funnel) = queues();
    assert!(refuse_membarrier());
    back_and_forth_if_refused(pipe, funnel);
}

/// Both ends of a line sleep in turn; then a late answer meets a caller that leaves.
fn call_and_leave((mut caller, mut callee): (call::Caller<u64, u64>, call::Callee<u64, u64>)) {
    // SAFETY: takes a number. A lost wake-up ends here.
    unsafe { libc::alarm(60) };
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..200 {
                assert_eq!(callee.recv(), Ok(number));
                if number % 20 == 0 {
                    thread::sleep(Duration::from_millis(2));
                }
                callee.answer(number + 1);
            }
        });
        for number in 0..200 {
            assert_eq!(caller.call(number), Ok(number + 1));
        }
    });
    assert!(caller.call_timeout(0, Duration::from_millis(1)).is_err());
    assert_eq!(callee.recv(), Ok(0));
    drop(caller);
    callee.answer(1);
    assert!(callee.recv().is_err());
}

#[test]
#[ignore = "run by `calls_where_it_is_refused`, in a process of its own"]
fn child_calls_where_it_is_refused() {
    let line = call::Options::new().wait(Park).line();
    assert!(refuse_membarrier());
    call_and_leave(line);
}

#[test]
#[ignore = "run by `ends_that_fence_interrupt_nobody`, in a process of its own"]
fn child_fences() {
    let line = call::Options::new().wait(Park).fence().line();
    assert!(answer_membarrier(libc::SECCOMP_RET_KILL_PROCESS));
    call_and_leave(line);
}

/// Queues never make a call that the kernel does not name.
#[test]
#[ignore = "run by `success_is_pretended`, in a process of its own"]
fn child_success_is_pretended() {
    const SUCCESS: u32 = libc::SECCOMP_RET_ERRNO;
    assert!(answer_commands(SUCCESS, libc::SECCOMP_RET_KILL_PROCESS));
    let (pipe, funnel) = queues();
    back_and_forth(pipe, funnel);
    call_and_leave(call::Options::new().wait(Park).line());
}

/// After `prepare`, no queue asks the kernel for anything that takes milliseconds.
#[test]
#[ignore = "run by `prepared`, in a process of its own"]
fn child_prepared() {
    threadtoll::prepare();
    assert!(answer_membarrier(libc::SECCOMP_RET_KILL_PROCESS));
    drop((queues(), call::line::<u64, u64>()));
}

#[test]
fn success_is_pretended() {
    if has_filters() {
        run("child_success_is_pretended", false);
    }
}

#[test]
fn prepared() {
    if has_filters() {
        run("child_prepared", false);
    }
}

#[test]
fn calls_where_it_is_refused() {
    if has_filters() {
        run("child_calls_where_it_is_refused", false);
    }
}

#[test]
fn ends_that_fence_interrupt_nobody() {
    if has_filters() {
        run("child_fences", false);
    }
}

#[test]
fn refused_before() {
    run("child_refused_before", true);
}

#[test]
fn refused_after() {
    if has_filters() {
        run("child_refused_after", false);
    }
}

//! A child after `fork(2)` has copies of the ends and nobody who moves the other ones: every verb says so, and none waits.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use threadtoll::wait::{Adaptive, Park, Spin, SpinYield, Wait};
use threadtoll::{call, funnel, pipe};

/// Seconds after which a child that hangs is killed.
const WATCH: u32 = 30;

/// Does something in a forked child, and fails if it fails or hangs there.
fn in_child(body: impl FnOnce()) {
    // SAFETY: the child calls what it must not after a fork of a process with several threads — it allocates — which
    // glibc and musl allow, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: takes a number.
        unsafe { libc::alarm(WATCH) };
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: leaves without running what the parent will run.
        unsafe { libc::_exit(failed.into()) };
    }
    let mut status = 0;
    // SAFETY: the status is valid.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child);
    assert!(!libc::WIFSIGNALED(status), "the child hung, or died of signal {}", libc::WTERMSIG(status));
    assert_eq!(libc::WEXITSTATUS(status), 0, "the child failed: see above");
}

const SOON: Duration = Duration::from_secs(3600);

fn sending_says_so<W: Wait>(sender: &mut pipe::Sender<u64, W>) {
    assert_eq!(sender.send(1), Err(SendError::Forked(1)));
    assert_eq!(sender.try_send(2), Err(TrySendError::Forked(2)));
    assert_eq!(sender.send_timeout(3, SOON), Err(SendTimeoutError::Forked(3)));
    assert!(matches!(sender.send_slice(&[4]), Err(SendError::Forked(_))));
    assert_eq!(sender.send_all([5, 6]), Err(SendError::Forked(5)));
    assert!(sender.claim(1).is_err_and(|error| error == SendError::Forked(())));
    // Quiet messages may get lost, as they may when the receiver leaves, but nobody waits for room that will never be.
    for message in 0..10_000 {
        if let Err(error) = sender.send_quiet(message) {
            assert_eq!(error, SendError::Forked(message));
            break;
        }
    }
    sender.flush();
    sender.trim();
    assert!(sender.len() < 20_000);
}

fn receiving_says_so<W: Wait>(receiver: &mut pipe::Receiver<u64, W>) {
    let first = receiver.peek().copied();
    assert!(receiver.len() < 20_000);
    assert_eq!(receiver.recv(), Err(RecvError::Forked));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Forked));
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Forked));
    assert_eq!(receiver.recv_deadline(Instant::now() + SOON), Err(RecvTimeoutError::Forked));
    assert!(receiver.recv_batch().is_err_and(|error| error == RecvError::Forked));
    assert!(receiver.try_recv_batch().is_err_and(|error| error == TryRecvError::Forked));
    assert_eq!(receiver.iter().next(), None);
    assert_eq!(receiver.try_iter().next(), None);
    // What was not received was not taken either, to be dropped here and again where it belongs.
    assert_eq!(receiver.peek().copied(), first);
    receiver.trim();
}

fn pipes<W: Wait + Copy>(wait: W) {
    // Empty, half full, full, and without a limit.
    for (capacity, inside) in [(Some(4), 0), (Some(4), 2), (Some(4), 4), (None, 0), (None, 5000)] {
        let options = pipe::Options::new().wait(wait);
        let (mut sender, mut receiver) = match capacity {
            Some(capacity) => options.bounded::<u64>(capacity),
            None => options.unbounded(),
        };
        (0..inside).for_each(|number| sender.send(number).expect("there is room"));
        in_child(|| sending_says_so(&mut sender));
        in_child(|| receiving_says_so(&mut receiver));
        in_child(|| {
            sending_says_so(&mut sender);
            receiving_says_so(&mut receiver);
        });
        // What a child takes out is still here.
        let mut ends = (Some(sender), Some(receiver));
        in_child(|| {
            drop(ends.0.take());
            drop(ends.1.take());
        });
        in_child(|| {
            drop(ends.1.take());
            drop(ends.0.take());
        });
        let (Some(mut sender), Some(mut receiver)) = ends else { unreachable!("this is the parent") };
        // The parent notices nothing of all this.
        assert!(receiver.try_iter().eq(0..inside));
        sender.send(8).expect("the receiver lives");
        assert_eq!(receiver.recv(), Ok(8));
    }
}

#[test]
fn pipes_say_so() {
    pipes(Adaptive);
    pipes(Park);
    pipes(Spin);
    pipes(SpinYield);
}

fn funnels<W: Wait + Copy>(wait: W) {
    for (ceiling, inside) in [(Some(4), 0), (Some(4), 4), (None, 0), (None, 5000)] {
        let options = funnel::Options::new().wait(wait);
        let options = match ceiling {
            Some(messages) => options.ceiling(messages, funnel::Ceiling::Wait),
            None => options,
        };
        let (sender, mut receiver) = options.build::<u64>();
        (0..inside).for_each(|number| sender.send(number).expect("there is room"));
        in_child(|| {
            assert_eq!(sender.send(1), Err(SendError::Forked(1)));
            assert_eq!(sender.clone().try_send(2), Err(TrySendError::Forked(2)));
            assert_eq!(sender.send_timeout(3, SOON), Err(SendTimeoutError::Forked(3)));
            assert!(matches!(sender.send_all([4, 5]), Err(TrySendError::Forked(_))));
        });
        in_child(|| {
            let first = receiver.peek().copied();
            assert_eq!(receiver.recv(), Err(RecvError::Forked));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Forked));
            assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Forked));
            assert_eq!(receiver.recv_many(&mut Vec::new(), 10), Err(RecvError::Forked));
            assert_eq!(receiver.drain(10, |_| {}), 0);
            assert_eq!(receiver.iter().next(), None);
            assert_eq!(receiver.peek().copied(), first);
            receiver.trim();
        });
        // What a child takes out is still here.
        let mut ends = (Some(sender), Some(receiver));
        in_child(|| {
            drop(ends.0.take());
            drop(ends.1.take());
        });
        in_child(|| {
            drop(ends.1.take());
            drop(ends.0.take());
        });
        let (Some(sender), Some(mut receiver)) = ends else { unreachable!("this is the parent") };
        assert!(receiver.try_iter().eq(0..inside));
        sender.send(8).expect("the receiver lives");
        assert_eq!(receiver.recv(), Ok(8));
    }
}

#[test]
fn funnels_say_so() {
    funnels(Adaptive);
    funnels(Park);
    funnels(Spin);
    funnels(SpinYield);
}

#[test]
fn calls_say_so() {
    let (mut caller, mut callee) = call::line::<u64, u64>();
    in_child(|| assert!(caller.call(1).is_err()));
    in_child(|| assert_eq!(callee.recv(), Err(RecvError::Forked)));
    thread::scope(|scope| {
        scope.spawn(|| callee.serve(|number| number + 1));
        assert!(matches!(caller.call(1), Ok(Some(2))));
        drop(caller);
    });
}

/// One that sleeps in the parent while others fork is woken all the same.
#[test]
fn the_parent_sleeps_on() {
    let (mut sender, mut receiver) = pipe::Options::new().wait(Park).unbounded::<u64>();
    thread::scope(|scope| {
        let sleeper = scope.spawn(move || receiver.recv());
        for _ in 0..20 {
            in_child(|| assert!(sender.send(1).is_err()));
        }
        sender.send(2).expect("the receiver lives");
        assert_eq!(sleeper.join().expect("it does not panic"), Ok(2));
    });
}

fn works<T: Debug + PartialEq>(mut received: impl Iterator<Item = T>, expected: T) {
    assert_eq!(received.next(), Some(expected));
}

/// What a child makes for itself works, sleep and all, also if it was forked while others made and dropped queues.
#[test]
fn a_child_can_have_queues_of_its_own() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Small ones: a sanitizer's allocator has locks of its own for large memory, which it does not look after in a child.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(pipe::Options::new().segment(0).unbounded::<u64>());
            }
        });
        let _over = SetAtEnd(&over);
        for _ in 0..50 {
            in_child(|| {
                let (mut sender, receiver) = pipe::Options::new().wait(Park).bounded::<u64>(1);
                let (back, answers) = funnel::Options::new().wait(Park).build::<u64>();
                let other = thread::spawn(move || {
                    receiver.into_iter().for_each(|number| back.send(number + 1).expect("the child waits"));
                });
                sender.send(1).expect("the receiver lives");
                sender.send(2).expect("the receiver lives");
                let mut answers = answers.into_iter();
                works(answers.by_ref(), 2);
                works(answers.by_ref(), 3);
                drop(sender);
                other.join().expect("it does not panic");
            });
        }
    });
}

/// Tells a thread that it is over, also where the test fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

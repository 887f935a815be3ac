//! After `fork(2)` a child has copies of the ends, but no thread runs the other ends. Every
//! operation reports a disconnection, and none waits.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

use std::fmt::Debug;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{
    AskError, AskTimeoutError, CallError, CallTimeoutError, LockTimeoutError, RecvError,
    RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use threadtoll::lock::Mutex;
use threadtoll::select::{Descriptor, Select};
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};
use threadtoll::{call, funnel, oneshot, owned, pipe, ring};

/// Seconds after which a child that hangs is killed.
const WATCH: u32 = 30;

/// Runs `body` in a forked child. Fails if it fails or hangs there.
fn in_child(body: impl FnOnce()) {
    // SAFETY: the child of a process with several threads allocates, which glibc and musl allow. It
    // ends by `_exit`.
    let child = unsafe { libc::fork() };
    ends_in_child(Some(child), body);
}

/// As [`in_child`], but after a `fork` that returned this. Only the parent returns.
fn ends_in_child(child: Option<libc::pid_t>, body: impl FnOnce()) {
    let Some(child) = child else { panic!("nothing was forked") };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: takes a number.
        unsafe { libc::alarm(WATCH) };
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: ends the child without running destructors or exit handlers.
        unsafe { libc::_exit(failed.into()) };
    }
    let mut status = 0;
    // SAFETY: the status is valid.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child);
    assert!(
        !libc::WIFSIGNALED(status),
        "the child hung, or died of signal {}",
        libc::WTERMSIG(status)
    );
    assert_eq!(libc::WEXITSTATUS(status), 0, "the child failed: see above");
}

/// Runs `other` in a second thread of a child, and `here` beside it.
///
/// Threads of the standard library take a lock of its own when they start and end. The child would
/// find it locked for ever if a thread of the parent was just doing so.
fn beside<F: FnOnce() + Send>(other: F, here: impl FnOnce()) {
    extern "C" fn start<F: FnOnce()>(other: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: `beside` gives a valid `Option<F>`, which it leaves alone until this thread ends.
        let other = unsafe { &mut *other.cast::<Option<F>>() };
        other.take().expect("it runs once")();
        ptr::null_mut()
    }
    let mut other = Some(other);
    let (mut thread, argument) = (0, (&raw mut other).cast());
    // SAFETY: `other` is not touched before the thread has been waited for, and can be sent to it.
    let error = unsafe { libc::pthread_create(&mut thread, ptr::null(), start::<F>, argument) };
    assert_eq!(error, 0);
    let ended = catch_unwind(AssertUnwindSafe(here));
    // SAFETY: it was created above and is waited for once.
    assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    ended.expect("it does not panic");
}

const SOON: Duration = Duration::from_secs(3600);

/// Of a task that nobody wakes.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn sending_says_so(sender: &mut pipe::Sender<u64>) {
    let sent_by_parent = sender.len();
    assert_eq!(sender.send(1), Err(SendError(1)));
    assert_eq!(sender.try_send(2), Err(TrySendError::Disconnected(2)));
    assert_eq!(sender.send_timeout(3, SOON), Err(SendTimeoutError::Disconnected(3)));
    assert_eq!(sender.send_slice(&[4]), Err(SendError(0)));
    assert_eq!(sender.try_send_slice(&[4]), Err(SendError(0)));
    assert_eq!(sender.send_all([5, 6]), Err(SendError(5)));
    assert_eq!(pin!(sender.send_async(6)).poll(&mut context()), Poll::Ready(Err(SendError(6))));
    assert!(sender.claim(1).is_err_and(|error| error == SendError(())));
    assert_eq!(sender.send_slice(&[7; 10_000]), Err(SendError(0)));
    assert!(sender.is_disconnected());
    assert!(sender.len() >= sent_by_parent);
}

fn receiving_says_so(receiver: &mut pipe::Receiver<u64>) {
    assert_eq!(receiver.peek(), None);
    assert_eq!(receiver.len(), 0);
    assert!(receiver.is_disconnected());
    assert_eq!(receiver.drain(9, |_| unreachable!("messages are the parent's")), 0);
    assert_eq!(receiver.recv(), Err(RecvError));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    assert_eq!(receiver.recv_deadline(Instant::now() + SOON), Err(RecvTimeoutError::Disconnected));
    assert_eq!(receiver.poll_recv(&mut context()), Poll::Ready(Err(RecvError)));
    assert!(receiver.recv_batch().is_err_and(|error| error == RecvError));
    assert!(receiver.try_recv_batch().is_err_and(|error| error == TryRecvError::Disconnected));
    assert_eq!(receiver.iter().next(), None);
    assert_eq!(receiver.try_iter().next(), None);
}

fn pipes(wait: Wait) {
    // Empty, half full, full, and unbounded.
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
        if inside > 0 {
            let mut batch = receiver.recv_batch().expect("messages are there");
            in_child(|| {
                assert_eq!(batch[..], []);
                assert_eq!(batch.next(), None);
            });
            batch.truncate(0);
        }
        // Values that a child moves out are still here.
        let mut ends = (Some(sender), Some(receiver));
        in_child(|| {
            drop(ends.0.take());
            drop(ends.1.take());
        });
        in_child(|| {
            drop(ends.1.take());
            drop(ends.0.take());
        });
        let (Some(mut sender), Some(mut receiver)) = ends else {
            unreachable!("this is the parent")
        };
        // The parent is not affected.
        assert!(receiver.try_iter().eq(0..inside));
        sender.send(8).expect("the receiver lives");
        assert_eq!(receiver.recv(), Ok(8));
    }
}

#[test]
#[cfg_attr(threadtoll_portable, ignore = "only memory that is wiped tells each verb")]
fn pipes_say_so() {
    pipes(Adaptive);
    pipes(Park);
    pipes(Spin);
    pipes(SpinYield);
}

fn publishing_says_so(writer: &mut ring::Writer<u64>) {
    // The first call may call the closure, later ones do not.
    assert_eq!(writer.try_publish(|_| {}), Err(TrySendError::Disconnected(())));
    assert_eq!(writer.publish(|_| unreachable!()), Err(SendError(())));
    assert_eq!(writer.publish_many(2, |_, _| unreachable!()), Err(SendError(())));
    let late = SendTimeoutError::Disconnected(());
    assert_eq!(writer.publish_timeout(SOON, |_| unreachable!()), Err(late));
    assert_eq!(writer.publish_many_timeout(SOON, 2, |_, _| unreachable!()), Err(late));
    assert!(writer.is_disconnected());
    assert_eq!(writer.lag(), 0);
}

fn reading_says_so(reader: &mut ring::Reader<u64>) {
    assert!(reader.recv_batch().is_err_and(|error| error == RecvError));
    assert!(reader.try_recv_batch().is_err_and(|error| error == TryRecvError::Disconnected));
    let late = RecvTimeoutError::Disconnected;
    assert!(reader.recv_batch_timeout(SOON).is_err_and(|error| error == late));
    assert!(reader.is_disconnected());
    assert_eq!(reader.lag(), 0);
}

#[test]
fn rings_say_so() {
    for wait in [Adaptive, Park, SpinYield, Spin] {
        // Empty, half full, and full.
        for inside in [0, 2, 4] {
            let mut builder = ring::Options::new().wait(wait).builder(4, || 0u64);
            let mut first = builder.reader();
            let mut second = builder.reader_after([&first]);
            let mut writer = builder.start().expect("there are readers");
            writer.publish_many(inside, |index, event| *event = index as u64).expect("room");
            in_child(|| publishing_says_so(&mut writer));
            in_child(|| {
                reading_says_so(&mut second);
                reading_says_so(&mut first);
                publishing_says_so(&mut writer);
            });
            if inside > 0 {
                let batch = first.recv_batch().expect("events are there");
                in_child(|| assert!(batch.is_empty() && batch.iter().next().is_none()));
                drop(batch);
                assert_eq!(second.recv_batch().expect("events are there").len(), inside);
            }
            in_child(|| {
                drop(first);
                drop(writer);
                reading_says_so(&mut second);
            });
        }
    }
}

fn funnels(wait: Wait) {
    for (capacity, inside) in [(Some(4), 0), (Some(4), 4), (None, 0), (None, 5000)] {
        let options = funnel::Options::new().wait(wait);
        let (sender, mut receiver) = match capacity {
            Some(capacity) => options.bounded::<u64>(capacity),
            None => options.unbounded(),
        };
        (0..inside).for_each(|number| sender.send(number).expect("there is room"));
        in_child(|| {
            assert_eq!(sender.send(1), Err(SendError(1)));
            assert_eq!(sender.clone().try_send(2), Err(TrySendError::Disconnected(2)));
            assert_eq!(sender.send_timeout(3, SOON), Err(SendTimeoutError::Disconnected(3)));
            assert!(matches!(sender.send_all([4, 5]), Err(SendError(_))));
        });
        in_child(|| {
            assert_eq!(receiver.peek(), None);
            assert_eq!(receiver.recv(), Err(RecvError));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
            assert_eq!(receiver.poll_recv(&mut context()), Poll::Ready(Err(RecvError)));
            assert_eq!(receiver.recv_many(&mut Vec::new(), 10), Err(RecvError));
            assert_eq!(receiver.drain(10, |_| {}), 0);
            assert_eq!(receiver.iter().next(), None);
            assert_eq!(receiver.peek(), None);
        });
        // Values that a child takes out are still here.
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
#[cfg_attr(threadtoll_portable, ignore = "only memory that is wiped tells each verb")]
fn funnels_say_so() {
    funnels(Adaptive);
    funnels(Park);
    funnels(Spin);
    funnels(SpinYield);
}

#[test]
#[cfg_attr(threadtoll_portable, ignore = "only memory that is wiped tells each verb")]
fn calls_say_so() {
    let (mut caller, mut callee) = call::line::<u64, u64>();
    let calling_says_so = |caller: &mut call::Caller<u64, u64>| {
        assert!(caller.is_disconnected());
        assert_eq!(caller.call(1), Err(CallError::Disconnected(1)));
        assert_eq!(caller.call_timeout(2, SOON), Err(CallTimeoutError::Disconnected(2)));
        let deadline = Instant::now() + SOON;
        assert_eq!(caller.call_deadline(3, deadline), Err(CallTimeoutError::Disconnected(3)));
    };
    let receiving_says_so = |callee: &mut call::Callee<u64, u64>| {
        assert!(callee.is_disconnected());
        assert!(callee.recv().is_err());
        assert_eq!(callee.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(callee.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
        let deadline = Instant::now() + SOON;
        assert_eq!(callee.recv_deadline(deadline), Err(RecvTimeoutError::Disconnected));
    };
    in_child(|| calling_says_so(&mut caller));
    in_child(|| receiving_says_so(&mut callee));
    // The child does not receive a request that waits for the callee.
    assert!(caller.call_timeout(0, Duration::from_millis(1)).is_err());
    in_child(|| {
        calling_says_so(&mut caller);
        receiving_says_so(&mut callee);
    });
    // Values that a child takes out are still here.
    let mut ends = (Some(caller), Some(callee));
    in_child(|| drop((ends.0.take(), ends.1.take())));
    let (Some(mut caller), Some(mut callee)) = ends else { unreachable!("this is the parent") };
    assert_eq!(callee.recv(), Ok(0));
    in_child(|| callee.answer(1));
    callee.answer(1);
    thread::scope(|scope| {
        scope.spawn(|| callee.serve(|number| number + 1));
        assert!(matches!(caller.call(1), Ok(2)));
        drop(caller);
    });
}

fn waits_end_with(wait: Wait) {
    let (mut sender, mut receiver) = pipe::Options::new().wait(wait).bounded::<u64>(1);
    in_child(|| assert_eq!(receiver.recv(), Err(RecvError)));
    in_child(|| assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected)));
    sender.send(1).expect("there is room");
    in_child(|| assert_eq!(sender.send(2), Err(SendError(2))));
    in_child(|| assert_eq!(sender.send_timeout(2, SOON), Err(SendTimeoutError::Disconnected(2))));

    let (sender, mut receiver) = funnel::Options::new().wait(wait).bounded::<u64>(1);
    in_child(|| assert_eq!(receiver.recv(), Err(RecvError)));
    in_child(|| assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected)));
    sender.send(1).expect("there is room");
    in_child(|| assert_eq!(sender.send(2), Err(SendError(2))));
    in_child(|| assert_eq!(sender.send_timeout(2, SOON), Err(SendTimeoutError::Disconnected(2))));

    let (mut caller, mut callee) = call::Options::new().wait(wait).line::<u64, u64>();
    in_child(|| assert_eq!(caller.call(1), Err(CallError::Disconnected(1))));
    in_child(|| assert_eq!(caller.call_timeout(1, SOON), Err(CallTimeoutError::Disconnected(1))));
    in_child(|| assert_eq!(callee.recv(), Err(RecvError)));
    in_child(|| assert_eq!(callee.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected)));
}

/// Even if a child's memory is not wiped.
#[test]
fn waits_end() {
    waits_end_with(Adaptive);
    waits_end_with(Park);
    waits_end_with(Spin);
    waits_end_with(SpinYield);
}

/// A child has copies of both ends, and may use them without waiting.
#[test]
fn waits_for_one_shots_end() {
    let await_once = |receiver: &mut oneshot::Receiver<u64>| {
        receiver.poll_recv(&mut Context::from_waker(Waker::noop()))
    };
    let waiting_says_so = |receiver: &mut oneshot::Receiver<u64>| {
        assert_eq!(receiver.recv(), Err(RecvError));
        assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
        let deadline = Instant::now() + SOON;
        assert_eq!(receiver.recv_deadline(deadline), Err(RecvTimeoutError::Disconnected));
        assert_eq!(await_once(receiver), Poll::Ready(Err(RecvError)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    };
    let (sender, mut receiver) = oneshot::channel();
    in_child(|| waiting_says_so(&mut receiver));
    assert!(await_once(&mut receiver).is_pending());
    in_child(|| waiting_says_so(&mut receiver));
    in_child(|| {
        let (own_sender, mut own) = oneshot::channel();
        in_child(|| waiting_says_so(&mut own));
        let (started, mut start) = oneshot::channel();
        beside(
            move || {
                assert_eq!(start.recv(), Ok(()));
                assert_eq!(own_sender.send(2), Ok(()));
            },
            || {
                assert_eq!(started.send(()), Ok(()));
                assert_eq!(own.recv(), Ok(2));
            },
        );
        waiting_says_so(&mut receiver);
    });
    let mut ends = (Some(sender), Some(receiver));
    in_child(|| drop((ends.0.take(), ends.1.take())));
    in_child(|| drop((ends.1.take(), ends.0.take())));
    let (Some(sender), Some(mut receiver)) = ends else { unreachable!("this is the parent") };
    assert_eq!(sender.send(3), Ok(()));
    in_child(|| assert_eq!(receiver.recv(), Ok(3)));
    assert_eq!(receiver.recv(), Ok(3));
}

/// A thread that sleeps in the parent while others fork is still woken.
#[test]
fn the_parent_sleeps_on() {
    let (mut sender, mut receiver) = pipe::Options::new().wait(Park).unbounded::<u64>();
    thread::scope(|scope| {
        let sleeper = scope.spawn(move || receiver.recv());
        for _ in 0..20 {
            // If a child's memory is not wiped, this wakes a copy of the sleeper, which no thread
            // runs.
            in_child(|| _ = sender.send(1));
        }
        sender.send(2).expect("the receiver lives");
        assert_eq!(sleeper.join().expect("it does not panic"), Ok(2));
    });
}

fn works<T: Debug + PartialEq>(mut received: impl Iterator<Item = T>, expected: T) {
    assert_eq!(received.next(), Some(expected));
}

/// Queues that a child creates work, and its threads can sleep, even if it was forked while other
/// threads created and dropped queues.
#[test]
fn a_child_can_have_queues_of_its_own() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Small ones, because the locks of a sanitizer's allocator for large memory do not survive
        // a fork.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(pipe::Options::new().segment(0).unbounded::<u64>());
            }
        });
        let _over = SetAtEnd(&over);
        for _ in 0..50 {
            in_child(|| {
                let (mut sender, receiver) = pipe::Options::new().wait(Park).bounded::<u64>(1);
                let (back, answers) = funnel::Options::new().wait(Park).unbounded::<u64>();
                let other = move || {
                    receiver
                        .into_iter()
                        .for_each(|number| back.send(number + 1).expect("the child waits"));
                };
                beside(other, move || {
                    sender.send(1).expect("the receiver lives");
                    sender.send(2).expect("the receiver lives");
                    let mut answers = answers.into_iter();
                    works(answers.by_ref(), 2);
                    works(answers.by_ref(), 3);
                });
            });
        }
    });
}

/// A lock is not wiped: if it is held while the process forks, the child finds it locked.
#[test]
fn a_lock_that_is_held_stays_locked_in_a_child() {
    let (held, free) = (Mutex::new(0), Mutex::fair(0));
    let guard = held.lock();
    in_child(|| {
        assert!(held.try_lock().is_none());
        assert_eq!(held.lock_timeout(Duration::from_millis(1)).err(), Some(LockTimeoutError));
        let own = Mutex::new(0);
        for mutex in [&free, &own] {
            let count = || (0..1000).for_each(|_| *mutex.lock() += 1);
            beside(count, count);
            assert_eq!(*mutex.lock(), 2000);
        }
    });
    drop(guard);
    assert_eq!(*held.lock(), 0);
}

/// If the body forks, it gets no more messages in the child.
#[test]
#[cfg_attr(threadtoll_portable, ignore = "only memory that is wiped tells each verb")]
fn a_drain_ends_where_its_body_forks() {
    for capacity in [Some(100), None] {
        let (sender, mut receiver) = match capacity {
            Some(capacity) => funnel::bounded(capacity),
            None => funnel::unbounded(),
        };
        sender.send_all(0..9).expect("the receiver lives");
        forks_in(|fork| receiver.drain(9, fork));
        sender.send_all(0..9).expect("the receiver lives");
        forks_in(|fork| receiver.try_iter().map(fork).count());
        let (mut sender, mut receiver) = match capacity {
            Some(capacity) => pipe::bounded(capacity),
            None => pipe::unbounded(),
        };
        sender.send_all(0..9).expect("the receiver lives");
        forks_in(|fork| receiver.drain(9, fork));
    }
}

/// Calls `drain` with a body that forks at message 4. The child must get no more messages, and the
/// parent all of them.
fn forks_in(drain: impl FnOnce(&mut dyn FnMut(usize)) -> usize) {
    let mut given = Vec::new();
    let mut child = None;
    let count = drain(&mut |number| {
        given.push(number);
        if number == 4 {
            // SAFETY: as in `in_child`.
            child = Some(unsafe { libc::fork() });
        }
    });
    ends_in_child(child, || {
        assert_eq!(given, [0, 1, 2, 3, 4]);
        assert_eq!(count, 5);
    });
    assert_eq!((count, given), (9, (0..9).collect()));
}

/// If a batch's iterator forks, the batch fails in the child.
#[test]
#[cfg_attr(threadtoll_portable, ignore = "only memory that is wiped tells each verb")]
fn a_batch_fails_where_its_iterator_forks() {
    for options in [None, Some(3), Some(100)] {
        let (sender, receiver) = match options {
            Some(capacity) => funnel::bounded(capacity),
            None => funnel::unbounded(),
        };
        let mut child = None;
        let numbers = (0..9).inspect(|number| {
            if *number == 4 {
                // SAFETY: as in `in_child`.
                child = Some(unsafe { libc::fork() });
            }
        });
        let received = thread::spawn(move || receiver.into_iter().collect::<Vec<_>>());
        let sent = sender.send_all(numbers).map_err(drop);
        ends_in_child(child, || assert_eq!(sent, Err(())));
        assert_eq!(sent, Ok(()));
        drop(sender);
        assert!(received.join().expect("it does not panic").into_iter().eq(0..9));
    }
}

/// Bytes of this process that are wiped in a child.
fn wiped_bytes() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let (mut size, mut wiped) = (0, 0);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Size:") => size = words.next().and_then(|size| size.parse().ok()).unwrap_or(0),
            Some("VmFlags:") if words.any(|flag| flag == "wf") => wiped += size << 10,
            _ => {}
        }
    }
    wiped
}

/// More than all queues of these tests take together.
const FEW_WIPED_BYTES: usize = 2 << 20;

fn make_queues(count: usize) {
    for _ in 0..count {
        let ends = pipe::Options::new().segment(0).unbounded::<u64>();
        drop((call::line::<u64, u64>(), ends, funnel::Options::new().retain(0).bounded::<u64>(1)));
    }
}

#[test]
fn queues_that_are_gone_leave_nothing() {
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| make_queues(5000));
        }
    });
    assert!(wiped_bytes() <= FEW_WIPED_BYTES, "{}", wiped_bytes());
}

/// In a child that was forked while other threads created and dropped queues, and in its own child.
#[test]
fn a_child_can_have_many_queues() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    make_queues(1);
                }
            });
        }
        let _over = SetAtEnd(&over);
        for _ in 0..20 {
            in_child(|| {
                beside(|| make_queues(500), || make_queues(500));
                in_child(|| make_queues(500));
                assert!(wiped_bytes() <= FEW_WIPED_BYTES, "{}", wiped_bytes());
            });
        }
    });
}

/// The parent's registration with the kernel holds for the child, whose ends need not nap.
#[test]
fn a_child_can_order_its_threads() {
    drop(pipe::unbounded::<u64>());
    // SAFETY: the call accesses no memory of the process.
    let order = || unsafe {
        libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)
    };
    if order() == 0 {
        in_child(|| assert_eq!(order(), 0));
    }
}

/// Tells a thread to stop, even if the test fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A child does not wait for sources of its parent, and its copy of a `Select` works with its own.
#[test]
fn selects_do_not_wait_for_the_parent() {
    for wait in [Adaptive, Park, Spin, SpinYield] {
        let (mut sender, mut receiver) = pipe::unbounded::<u64>();
        let (_other, mut inbox) = funnel::unbounded::<u64>();
        let (_caller, mut callee) = call::line::<u64, u64>();
        let (_reply, mut answer) = oneshot::channel::<u64>();
        let mut builder = ring::Builder::new(4, || 0);
        let mut reader = builder.reader();
        let mut writer = builder.start().expect("there is a reader");
        let mut select = Select::with_wait(wait);
        let sources = (&mut receiver, &mut inbox, &mut callee, &mut answer, &mut reader);
        let shortly = Duration::from_millis(1);
        assert_eq!(select.ready_timeout(sources, shortly), None);
        in_child(|| {
            let (mut sender, mut own) = pipe::unbounded::<u64>();
            assert_eq!(select.ready_timeout((&mut own,), shortly), None);
            beside(
                move || sender.send(1).expect("it is there"),
                || assert_eq!(select.ready((&mut own,)), 0),
            );
            assert_eq!(own.try_recv(), Ok(1));
            assert_eq!(select.ready((&mut receiver,)), 0);
            assert_eq!(select.ready((&mut inbox,)), 0);
            assert_eq!(select.ready((&mut callee,)), 0);
            assert_eq!(select.ready((&mut answer,)), 0);
            assert_eq!(answer.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(select.ready((&mut reader,)), 0);
            let none = reader.try_recv_batch().expect_err("the writer is in the parent");
            assert_eq!(none, TryRecvError::Disconnected);
        });
        sender.send(1).expect("it is there");
        assert_eq!(select.ready((&mut inbox, &mut receiver)), 1);
        writer.publish(|event| *event = 1).expect("the reader lives");
        assert_eq!(select.ready((&mut inbox, &mut reader)), 1);
    }
}

/// To the child, the owner is gone; to its owner, the handles are. What was posted stays with the
/// parent.
#[test]
fn owners_say_so() {
    for wait in [Adaptive, Park, Spin, SpinYield] {
        let (mut owner, handle) = owned::Options::new().wait(wait).build(0);
        handle.post(|count, _| *count += 1).expect("the owner lives");
        in_child(|| {
            assert!(handle.is_disconnected());
            assert!(handle.post(|count, _| *count += 1).is_err_and(|e| e.is_disconnected()));
            assert_eq!(handle.ask(|count, _| *count), Err(AskError::Disconnected));
            let asked = handle.ask_timeout(SOON, |count, _| *count);
            assert_eq!(asked, Err(AskTimeoutError::Disconnected));
            let asked = pin!(handle.ask_async(|count, _| *count)).poll(&mut context());
            assert_eq!(asked, Poll::Ready(Err(AskError::Disconnected)));
            handle.after(Duration::ZERO, |count, _| *count += 1).cancel();
            handle.stop();
            assert!(!owner.run_once(SOON));
            assert_eq!(owner.run(), &0);
            let (mut own, handle) = owned::Options::new().wait(wait).build(0);
            handle.post(|count, _| *count += 1).expect("the owner lives");
            drop(handle);
            assert_eq!(own.run(), &1);
        });
        // An owner that forks in a closure.
        handle
            .post(|count, context| {
                in_child(|| context.post(|_, _| ()));
                *count += 1;
            })
            .expect("the owner lives");
        drop(handle);
        assert_eq!(owner.run(), &2);
    }
}

fn is_readable(descriptor: &Descriptor) -> bool {
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` is valid, and it is one.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 }
}

/// A child shares its parent's descriptor, but does not write to it.
#[test]
fn a_child_does_not_wake_an_event_loop_of_its_parent() {
    let (sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let (reply, mut answer) = oneshot::channel::<u64>();
    let mut descriptor = Descriptor::new().expect("few files are open");
    let mut senders = (Some(sender), Some(other), Some(reply));
    assert_eq!(descriptor.arm((&mut receiver, &mut inbox, &mut answer)), None);
    in_child(|| drop((senders.0.take(), senders.1.take(), senders.2.take())));
    in_child(|| {
        assert_eq!(senders.2.take().map(|reply| reply.send(1)), Some(Ok(())));
        let (own_reply, mut own_answer) = oneshot::channel::<u64>();
        let mut own = Descriptor::new().expect("few files are open");
        assert_eq!(own.arm((&mut own_answer,)), None);
        assert_eq!(own_reply.send(2), Ok(()));
        assert!(is_readable(&own));
        assert_eq!(own.arm((&mut own_answer,)), Some(0));
    });
    assert!(!is_readable(&descriptor));
    assert_eq!(senders.2.take().map(|reply| reply.send(3)), Some(Ok(())));
    assert!(is_readable(&descriptor));
    assert_eq!(descriptor.arm((&mut receiver, &mut inbox, &mut answer)), Some(2));
    assert_eq!(answer.try_recv(), Ok(3));
}

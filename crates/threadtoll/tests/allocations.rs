//! Allocations of queues: few at creation, none in steady traffic; and running out of memory.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use threadtoll::select::Select;
use threadtoll::wait::Wait;
use threadtoll::{call, funnel, oneshot, owned, pipe, ring};

thread_local! {
    /// Number and bytes of this thread's allocations.
    static ALLOCATED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Limit of all allocations, in bytes.
const MOST: usize = 1 << 30;

/// The system's allocator with a count and a limit.
struct Counting;

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (count, bytes) = ALLOCATED.get();
        ALLOCATED.set((count + 1, bytes + layout.size()));
        if layout.size() > MOST {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Number and bytes of the allocations of `body`.
fn allocated<R>(body: impl FnOnce() -> R) -> ((usize, usize), R) {
    let (count, bytes) = ALLOCATED.get();
    let result = body();
    let (count_after, bytes_after) = ALLOCATED.get();
    ((count_after - count, bytes_after - bytes), result)
}

#[test]
fn births_are_small() {
    for (name, (count, bytes)) in [
        ("pipe for one", allocated(|| pipe::bounded::<u64>(1)).0),
        ("pipe for 1000", allocated(|| pipe::bounded::<u64>(1000)).0),
        ("unbounded pipe", allocated(pipe::unbounded::<u64>).0),
        ("funnel for one", allocated(|| funnel::bounded::<u64>(1)).0),
        ("unbounded funnel", allocated(funnel::unbounded::<u64>).0),
        ("call", allocated(call::line::<u64, u64>).0),
    ] {
        println!("{name}: {bytes} bytes in {count} allocations");
        assert!(bytes <= 20_000, "{name}: {bytes} bytes");
    }
}

/// Neither sending nor waiting allocates anything.
#[test]
fn a_one_shot_is_one_small_allocation() {
    let ((count, bytes), (sender, mut receiver)) = allocated(oneshot::channel::<u64>);
    assert_eq!(count, 1);
    assert!(bytes <= 40, "{bytes} bytes");
    let (later, ()) = allocated(|| {
        let soon = Duration::from_millis(1);
        assert!(receiver.recv_timeout(soon).is_err_and(|error| error.is_timeout()));
        assert!(receiver.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(sender.send(1), Ok(()));
        assert_eq!(receiver.recv(), Ok(1));
    });
    assert_eq!(later, (0, 0));
}

#[test]
fn a_task_that_waits_allocates_nothing() {
    let mut context = Context::from_waker(Waker::noop());
    let (mut sender, mut receiver) = pipe::bounded::<u64>(1);
    let (to_funnel, mut from_funnel) = funnel::unbounded::<u64>();
    let (waits, ()) = allocated(|| {
        for number in 0..10 {
            assert!(receiver.poll_recv(&mut context).is_pending());
            assert!(from_funnel.poll_recv(&mut context).is_pending());
            sender.send(number).expect("there is room");
            assert!(pin!(sender.send_async(0)).poll(&mut context).is_pending());
            to_funnel.send(number).expect("it is there");
            assert_eq!(receiver.poll_recv(&mut context), Poll::Ready(Ok(number)));
            assert_eq!(from_funnel.poll_recv(&mut context), Poll::Ready(Ok(number)));
        }
    });
    assert_eq!(waits, (0, 0));
}

/// Sends and receives a few messages at a time, in turn.
fn by_turns(
    burst: usize,
    rounds: usize,
    mut send: impl FnMut(u64),
    mut receive: impl FnMut() -> u64,
) {
    for round in 0..rounds {
        let numbers = (round * burst) as u64..((round + 1) * burst) as u64;
        numbers.clone().for_each(&mut send);
        numbers.for_each(|number| assert_eq!(receive(), number));
    }
}

#[test]
fn a_pipe_that_has_grown_allocates_nothing() {
    for (capacity, burst) in [(None, 1), (None, 10_000), (Some(1), 1), (Some(20_000), 20_000)] {
        let (mut sender, mut receiver) = match capacity {
            Some(capacity) => pipe::bounded::<u64>(capacity),
            None => pipe::unbounded(),
        };
        let mut traffic = |rounds| {
            by_turns(
                burst,
                rounds,
                |number| sender.send(number).expect("there is room"),
                || receiver.recv().expect("it was sent"),
            );
        };
        let (grown, ()) = allocated(|| traffic(2));
        assert_eq!(grown.0 > 0, burst > 1, "the first bursts do not fit into 4 KiB");
        let (steady, ()) = allocated(|| traffic(50_000 / burst + 20));
        assert_eq!(steady, (0, 0), "{capacity:?}, {burst} at a time");
    }
}

#[test]
fn a_pipe_with_its_memory_reserved_allocates_nothing() {
    let (mut sender, mut receiver) = pipe::Options::new().reserve().bounded::<u64>(100_000);
    let (asked, ()) = allocated(|| {
        by_turns(
            100_000,
            3,
            |number| sender.send(number).expect("there is room"),
            || receiver.recv().expect("it was sent"),
        );
    });
    assert_eq!(asked, (0, 0));
}

#[test]
fn a_ring_that_has_started_allocates_nothing() {
    let mut builder = ring::Builder::new(64, || 0);
    let mut journal = builder.reader();
    let mut logic = builder.reader_after([&journal]);
    let mut writer = builder.start().expect("there are readers");
    let (asked, ()) = allocated(|| {
        for round in 0..10_000 {
            let count = round % 30;
            writer.publish_many(count, |index, event| *event = index).expect("the readers live");
            writer.publish(|event| *event = count).expect("the readers live");
            for reader in [&mut journal, &mut logic] {
                assert!(
                    reader.recv_batch().expect("events are there").iter().copied().eq(0..=count)
                );
                assert!(reader.recv_batch_timeout(Duration::ZERO).is_err());
            }
        }
    });
    assert_eq!(asked, (0, 0));
}

/// Closures of up to 48 bytes are not boxed, and a question lies in the asker's frame.
#[test]
fn a_post_allocates_nothing() {
    let (mut owner, handle) = owned::new(0);
    let mut posts = |rounds: usize, words: usize| {
        for round in 0..rounds {
            let posted = if words == 6 {
                let captured = [round; 6];
                handle.post(move |count, _| *count += captured[5]).is_ok()
            } else {
                let captured = [round; 7];
                handle.post(move |count, _| *count += captured[6]).is_ok()
            };
            assert!(posted && owner.run_once(Duration::ZERO));
        }
    };
    posts(20_000, 6);
    let (inline, ()) = allocated(|| posts(20_000, 6));
    assert_eq!(inline, (0, 0));
    let (boxed, ()) = allocated(|| posts(1_000, 7));
    assert_eq!(boxed, (1_000, 56_000));

    let options = owned::Options::new().wait(Wait::Spin);
    let (handle, thread) = options.spawn("owner", || 0usize);
    let ask = |rounds| {
        for round in 0..rounds {
            let captured = [round; 64];
            assert!(handle.ask(|last, _| std::mem::replace(last, captured[63])).is_ok());
        }
    };
    ask(5_000);
    let (asked, ()) = allocated(|| ask(1_000));
    assert_eq!(asked, (0, 0));
    drop(handle);
    thread.join().expect("it does not panic");
}

/// Chunks that were read are reused.
#[test]
fn a_funnel_in_steady_traffic_allocates_nothing() {
    for burst in [1, 1_000] {
        let (sender, mut receiver) = funnel::unbounded::<u64>();
        let mut traffic = |rounds| {
            by_turns(
                burst,
                rounds,
                |number| sender.send(number).expect("the receiver lives"),
                || receiver.recv().expect("it was sent"),
            );
        };
        traffic(20_000 / burst);
        let (steady, ()) = allocated(|| traffic(200_000 / burst));
        assert_eq!(steady, (0, 0), "{burst} at a time");
    }
}

/// Even if one chunk takes more than is kept by default.
#[test]
fn a_funnel_of_large_messages_allocates_nothing() {
    let (sender, mut receiver) = funnel::unbounded::<[u64; 2048]>();
    let mut traffic = |rounds| {
        by_turns(
            1,
            rounds,
            |number| sender.send([number; 2048]).expect("the receiver lives"),
            || receiver.recv().expect("it was sent")[2047],
        );
    };
    traffic(200);
    let (steady, ()) = allocated(|| traffic(1000));
    assert_eq!(steady, (0, 0));
    assert!(receiver.memory().kept_bytes <= 2 << 20, "{:?}", receiver.memory());
}

/// A send during another thread's batch allocates about as much as any other, however long the
/// batch is: its own chunk, or the one after it.
#[test]
fn a_send_does_not_pay_for_a_batch() {
    for batch in [1_000, 1 << 20u32] {
        let (sender, _receiver) = funnel::unbounded::<u32>();
        let mut during = (0, 0);
        let messages = (0..batch).inspect(|&number| {
            if number == 1 {
                during = allocated(|| sender.send(0).expect("the receiver lives")).0;
            }
        });
        assert!(sender.send_all(messages).is_ok());
        assert!(during.1 <= 40_000, "in a batch of {batch}: {during:?}");
    }
    // Chunks of large messages have fewer slots.
    let (sender, _receiver) = funnel::unbounded::<[u64; 512]>();
    let mut during = (0, 0);
    let messages = (0..1_000u32).map(|number| {
        if number == 1 {
            during = allocated(|| sender.send([0; 512]).expect("the receiver lives")).0;
        }
        [number.into(); 512]
    });
    assert!(sender.send_all(messages).is_ok());
    assert!(during.1 <= 2 * 33 * 4104, "{during:?}");
}

/// Except where sleeping itself does.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "threads that sleep are in a list")]
#[cfg_attr(any(threadtoll_portable, miri), ignore = "threads that sleep are in a list")]
fn a_select_allocates_nothing_after_its_birth() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (_other, mut inbox) = funnel::unbounded::<u64>();
    let (_caller, mut callee) = call::line::<u64, u64>();
    let (_reply, mut answer) = oneshot::channel::<u64>();
    let (born, mut select) = allocated(|| Select::with_wait(Wait::Park));
    assert!(born.0 == 1 && born.1 <= 256, "{born:?}");
    let (later, ()) = allocated(|| {
        for number in 0..10 {
            let sources = (&mut receiver, &mut inbox, &mut callee, &mut answer);
            assert_eq!(select.ready_timeout(sources, Duration::from_millis(1)), None);
            sender.send(number).expect("the receiver lives");
            assert_eq!(select.ready((&mut receiver, &mut inbox)), 0);
            assert_eq!(receiver.try_recv(), Ok(number));
        }
    });
    assert_eq!(later, (0, 0));
}

/// As with a `Vec`, running out of memory is not an error but an abort.
#[cfg(target_os = "linux")]
#[test]
fn to_reserve_what_is_not_there_aborts() {
    // SAFETY: the child of a process with several threads allocates, which glibc and musl allow. It
    // ends by a signal or `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let no_file = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is valid.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_file) };
        // SAFETY: nothing else in the child uses it. The report of the abort would look like a
        // failure.
        unsafe { libc::close(2) };
        let made = std::panic::catch_unwind(|| pipe::Options::new().reserve().bounded::<u64>(MOST));
        // SAFETY: ends the child without running destructors or exit handlers.
        unsafe { libc::_exit(made.is_ok().into()) };
    }
    let mut status = 0;
    // SAFETY: the status is valid.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child);
    assert!(libc::WIFSIGNALED(status), "it ended with {status}");
    assert_eq!(libc::WTERMSIG(status), libc::SIGABRT);
}

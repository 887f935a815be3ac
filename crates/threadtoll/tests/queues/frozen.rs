//! A thread that is stopped anywhere, for any time, must not stop other threads.
//!
//! A signal makes the thread sleep in its handler, at whatever instruction it was.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use threadtoll::error::TryRecvError;
use threadtoll::wait::Wait::{self, Adaptive, Park, SpinYield};
use threadtoll::{funnel, pipe, ring};

use crate::element::Random;

/// Without the kernel's futex, sleeping and waking take a lock, and a thread that is stopped while
/// it holds the lock blocks others. Ends that spin never take it.
const LOCKS_TO_SLEEP: bool = cfg!(threadtoll_portable);

/// Bytes that queues keep for the next burst: enough that they never free memory, because that
/// could wait for a thread that is stopped inside the allocator.
const KEPT: usize = 1 << 30;

/// Asks the thread that got the signal to sleep.
static FREEZE: AtomicBool = AtomicBool::new(false);
/// Set while it sleeps.
static FROZEN: AtomicBool = AtomicBool::new(false);
/// One freezes at a time.
static ONE: Mutex<()> = Mutex::new(());

extern "C" fn freeze(_: libc::c_int) {
    FROZEN.store(true, SeqCst);
    let moment = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
    while FREEZE.load(SeqCst) {
        // SAFETY: the time is valid; the remaining time is not requested.
        unsafe { libc::nanosleep(&moment, std::ptr::null_mut()) };
    }
    FROZEN.store(false, SeqCst);
}

/// Freezes threads. Aborts the test if it lasts too long, since it looks for threads that wait for
/// ever.
struct Freezer {
    _one: MutexGuard<'static, ()>,
    over: Arc<AtomicBool>,
}

impl Freezer {
    fn new() -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let handler: extern "C" fn(libc::c_int) = freeze;
        // SAFETY: the handler is async-signal-safe.
        let before = unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
        assert_ne!(before, libc::SIG_ERR);
        let over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&over);
        thread::spawn(move || {
            for _ in 0..1200 {
                thread::sleep(Duration::from_millis(100));
                if watched.load(Relaxed) {
                    return;
                }
            }
            eprintln!("somebody waits for a frozen thread: nothing has ended for two minutes");
            std::process::abort();
        });
        Freezer { _one: one, over }
    }

    /// Runs `body` while the thread is frozen. The thread must be alive.
    fn while_frozen(&self, thread: libc::pthread_t, body: impl FnOnce()) {
        FREEZE.store(true, SeqCst);
        // SAFETY: the caller promises that the thread lives.
        assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0);
        while !FROZEN.load(SeqCst) {
            thread::yield_now();
        }
        body();
        FREEZE.store(false, SeqCst);
        while FROZEN.load(SeqCst) {
            thread::yield_now();
        }
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        FREEZE.store(false, SeqCst);
        self.over.store(true, Relaxed);
    }
}

fn this_thread() -> libc::pthread_t {
    // SAFETY: always allowed.
    unsafe { libc::pthread_self() }
}

/// Number of freezes: `THREADTOLL_FREEZES`, or else 150.
fn freezes() -> u64 {
    std::env::var("THREADTOLL_FREEZES").ok().and_then(|freezes| freezes.parse().ok()).unwrap_or(150)
}

fn pipe_with_a_frozen_sender(wait: Wait, capacity: Option<usize>) {
    let freezer = Freezer::new();
    let options = pipe::Options::new().wait(wait).reserve().retain(KEPT);
    let (mut sender, mut receiver) = match capacity {
        Some(capacity) => options.bounded::<u64>(capacity),
        // Small, so that chunks come and go.
        None => options.segment(4 << 10).unbounded(),
    };
    let stop = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    let mut random = Random::new(7);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (stop, sent) = (&stop, &sent);
        let stopped = scope.spawn(move || {
            tell.send(this_thread()).expect("the test waits for it");
            let mut number = 0;
            while !stop.load(Relaxed) {
                sender.send(number).expect("the receiver lives");
                number += 1;
                // Keeps an unbounded pipe from filling the memory.
                while sender.len() > 5_000 && !stop.load(Relaxed) {
                    thread::yield_now();
                }
            }
            sent.store(number, SeqCst);
            sender
        });
        let thread = told.recv().expect("the thread begins");
        let mut next = 0;
        let mut came = |number: u64| {
            assert_eq!(number, next);
            next += 1;
        };
        for _ in 0..freezes() {
            for _ in 0..random.below(200) {
                came(receiver.recv().expect("the sender lives"));
            }
            (0..random.below(500)).for_each(|_| std::hint::spin_loop());
            freezer.while_frozen(thread, || {
                // More polls than there can be messages, so that some find none, and return at
                // once.
                let mut empty = false;
                for _ in 0..20_000 {
                    match receiver.try_recv() {
                        Ok(number) => came(number),
                        Err(TryRecvError::Empty) => empty = true,
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(empty && receiver.is_empty() && receiver.peek().is_none());
                assert!(receiver.recv_timeout(Duration::from_micros(200)).is_err());
            });
        }
        stop.store(true, Relaxed);
        // It may wait for room.
        while !stopped.is_finished() {
            receiver.try_iter().for_each(&mut came);
        }
        drop(stopped.join());
        receiver.iter().for_each(came);
        assert_eq!(next, sent.load(SeqCst));
    });
}

#[test]
fn a_pipe_with_a_frozen_sender() {
    pipe_with_a_frozen_sender(SpinYield, None);
    if !LOCKS_TO_SLEEP {
        pipe_with_a_frozen_sender(Adaptive, None);
        pipe_with_a_frozen_sender(Park, Some(8));
    }
}

fn pipe_with_a_frozen_receiver(wait: Wait) {
    let freezer = Freezer::new();
    let options = pipe::Options::new().wait(wait).reserve().retain(KEPT);
    let (mut unbounded, mut from_unbounded) = options.unbounded::<u64>();
    let (mut bounded, mut from_bounded) = options.bounded::<u64>(16);
    let mut random = Random::new(8);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (leave, left) = mpsc::channel::<()>();
        let received = scope.spawn(move || {
            tell.send(this_thread()).expect("the test waits for it");
            let mut next = [0, 0];
            // Receives from both pipes, each of which gets messages now and then.
            while let Ok(number) = from_unbounded.recv() {
                assert_eq!(number, next[0]);
                next[0] += 1;
                for number in from_bounded.try_iter() {
                    assert_eq!(number, next[1]);
                    next[1] += 1;
                }
            }
            for number in from_bounded.iter() {
                assert_eq!(number, next[1]);
                next[1] += 1;
            }
            // Stays alive as long as it may get a signal.
            let _ = left.recv();
            next
        });
        let thread = told.recv().expect("the thread begins");
        let mut sent = [0, 0];
        for _ in 0..freezes() {
            for _ in 0..random.below(200) {
                unbounded.send(sent[0]).expect("the receiver lives");
                sent[0] += 1;
                sent[1] += u64::from(bounded.try_send(sent[1]).is_ok());
            }
            freezer.while_frozen(thread, || {
                let mut full = false;
                for _ in 0..1_000 {
                    unbounded.send(sent[0]).expect("the receiver lives");
                    sent[0] += 1;
                    match bounded.try_send(sent[1]) {
                        Ok(()) => sent[1] += 1,
                        Err(_) => full = true,
                    }
                }
                assert!(full && bounded.send_timeout(0, Duration::from_micros(200)).is_err());
            });
        }
        drop((unbounded, bounded));
        drop(leave);
        assert_eq!(received.join().expect("it does not panic"), sent);
    });
}

#[test]
fn a_pipe_with_a_frozen_receiver() {
    pipe_with_a_frozen_receiver(SpinYield);
    if !LOCKS_TO_SLEEP {
        pipe_with_a_frozen_receiver(Adaptive);
        pipe_with_a_frozen_receiver(Park);
    }
}

/// A frozen sender blocks no other sender, nor a receiver that polls. Messages behind its own may
/// have to wait.
fn funnel_with_a_frozen_sender(wait: Wait) {
    let freezer = Freezer::new();
    let options = funnel::Options::new().wait(wait).retain(KEPT);
    let (sender, mut receiver) = options.unbounded::<(usize, u64)>();
    let stop = AtomicBool::new(false);
    let mut random = Random::new(9);
    let mut pending = 0;
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (frozen, stop) = (sender.clone(), &stop);
        let frozen = scope.spawn(move || {
            tell.send(this_thread()).expect("the test waits for it");
            let mut number = 0;
            while !stop.load(Relaxed) {
                if number % 7 == 0 {
                    frozen.send_all([(0, number), (0, number + 1)]).expect("the receiver lives");
                    number += 2;
                } else {
                    frozen.send((0, number)).expect("the receiver lives");
                    number += 1;
                }
                while frozen.len() > 5_000 && !stop.load(Relaxed) {
                    thread::yield_now();
                }
            }
            (frozen, number)
        });
        let thread = told.recv().expect("the thread begins");
        let mut sent = 0;
        let mut next = [0, 0];
        let mut came = |(from, number): (usize, u64)| {
            assert_eq!(number, next[from]);
            next[from] += 1;
        };
        let mut rounds = 0;
        // Until one was stopped in mid-send, since the test shows nothing before.
        while rounds < 2 * freezes() || pending == 0 {
            rounds += 1;
            // A sender that waits for a shorter queue is not in mid-send.
            while receiver.len() > 1_000 {
                came(receiver.recv().expect("the senders live"));
            }
            for _ in 0..random.below(200) {
                came(receiver.recv().expect("the senders live"));
            }
            (0..random.below(500)).for_each(|_| std::hint::spin_loop());
            freezer.while_frozen(thread, || {
                for _ in 0..1_000 {
                    sender.send((1, sent)).expect("the receiver lives");
                    sent += 1;
                }
                for _ in 0..20_000 {
                    match receiver.try_recv() {
                        Ok(message) => came(message),
                        Err(TryRecvError::Empty) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                pending += u64::from(!receiver.is_empty());
                assert!(receiver.recv_timeout(Duration::from_micros(200)).is_err());
                assert_eq!(receiver.peek(), None);
            });
        }
        stop.store(true, Relaxed);
        let (other, number) = frozen.join().expect("it does not panic");
        drop((other, sender));
        receiver.iter().for_each(came);
        assert_eq!(next, [number, sent]);
    });
    println!("held up by a sender in the middle of a send {pending} times");
}

#[test]
fn a_funnel_with_a_frozen_sender() {
    funnel_with_a_frozen_sender(SpinYield);
    if !LOCKS_TO_SLEEP {
        funnel_with_a_frozen_sender(Park);
    }
}

/// A frozen reader stops neither a reader that follows the writer, nor a writer that polls for
/// room.
fn ring_with_a_frozen_reader(wait: Wait) {
    let freezer = Freezer::new();
    let mut builder = ring::Options::new().wait(wait).builder(64, || 0);
    let (mut frozen, mut other) = (builder.reader(), builder.reader());
    let mut behind = builder.reader_after([&frozen]);
    let mut writer = builder.start().expect("there are readers");
    let mut random = Random::new(10);
    let reached = AtomicU64::new(0);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (leave, left) = mpsc::channel::<()>();
        let reached = &reached;
        let stopped = scope.spawn(move || {
            tell.send(this_thread()).expect("the test waits for it");
            let mut next = 0;
            while let Ok(batch) = frozen.recv_batch() {
                for number in &batch {
                    assert_eq!(*number, next);
                    next += 1;
                    reached.store(next, Relaxed);
                }
            }
            // Stays alive as long as it may get a signal.
            let _ = left.recv();
            next
        });
        let thread = told.recv().expect("the thread begins");
        let (mut sent, mut read, mut read_behind) = (0, 0, 0);
        let mut receive = |sent: u64| {
            while let Ok(batch) = other.try_recv_batch() {
                read += batch.len() as u64;
            }
            assert_eq!(read, sent);
            while let Ok(batch) = behind.try_recv_batch() {
                read_behind += batch.len() as u64;
            }
            assert!(read_behind <= reached.load(Relaxed), "it has passed the one before it");
            read_behind
        };
        for _ in 0..freezes() {
            for _ in 0..random.below(200) {
                while writer.try_publish(|event| *event = sent).is_err() {
                    receive(sent);
                    thread::yield_now();
                }
                sent += 1;
            }
            freezer.while_frozen(thread, || {
                let mut full = false;
                for _ in 0..200 {
                    match writer.try_publish(|event| *event = sent) {
                        Ok(()) => sent += 1,
                        Err(_) => full = true,
                    }
                    receive(sent);
                }
                assert!(full && writer.lag() == 64);
                let soon = Duration::from_micros(200);
                assert!(writer.publish_timeout(soon, |_| unreachable!()).is_err());
            });
        }
        while receive(sent) < sent {
            thread::yield_now();
        }
        drop(writer);
        drop(leave);
        assert_eq!(stopped.join().expect("it does not panic"), sent);
    });
}

#[test]
fn a_ring_with_a_frozen_reader() {
    ring_with_a_frozen_reader(SpinYield);
    if !LOCKS_TO_SLEEP {
        ring_with_a_frozen_reader(Adaptive);
        ring_with_a_frozen_reader(Park);
    }
}

/// A reader does not wait for a frozen writer, and sees no part of what it publishes at once.
fn ring_with_a_frozen_writer(wait: Wait) {
    // More frames than those of which a reader reads the headers at first: an event fills a frame.
    const MANY: u64 = 300;
    let freezer = Freezer::new();
    let mut builder = ring::Options::new().wait(wait).builder(16_384, || [0; 7]);
    let mut reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    let stop = AtomicBool::new(false);
    let mut random = Random::new(11);
    let (mut next, mut parts) = (0, 0);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let stop = &stop;
        let stopped = scope.spawn(move || {
            tell.send(this_thread()).expect("the test waits for it");
            let mut next = 0;
            while !stop.load(Relaxed) {
                let fill = |index, event: &mut [u64; 7]| *event = [next + index as u64; 7];
                if writer.try_publish_many(MANY as usize, fill).is_ok() {
                    next += MANY;
                }
            }
            next
        });
        let thread = told.recv().expect("the thread begins");
        let mut came = |batch: ring::Batch<'_, [u64; 7]>| {
            parts += u64::from(!(batch.len() as u64).is_multiple_of(MANY));
            for event in &batch {
                parts += u64::from(*event != [next; 7]);
                next += 1;
            }
        };
        for _ in 0..4 * freezes() {
            for _ in 0..random.below(20) {
                reader.try_recv_batch().into_iter().for_each(&mut came);
            }
            freezer.while_frozen(thread, || {
                while let Ok(batch) = reader.try_recv_batch() {
                    came(batch);
                }
                if random.below(8) == 0 {
                    let _ = reader.recv_batch_timeout(Duration::from_micros(200)).map(&mut came);
                }
            });
        }
        stop.store(true, Relaxed);
        let published = stopped.join().expect("it does not panic");
        while let Ok(batch) = reader.recv_batch() {
            came(batch);
        }
        assert_eq!(next, published);
    });
    assert_eq!(parts, 0, "parts of publications came");
}

#[test]
fn a_ring_with_a_frozen_writer() {
    ring_with_a_frozen_writer(SpinYield);
    if !LOCKS_TO_SLEEP {
        ring_with_a_frozen_writer(Park);
    }
}

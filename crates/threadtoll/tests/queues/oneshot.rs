//! One-shots: every order of sending, waiting and leaving; wakers; waits that are cancelled.

use std::future::poll_fn;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{RecvError, RecvTimeoutError, SendError, TryRecvError};
use threadtoll::oneshot::{Receiver, Sender, channel};
use threadtoll::pipe;

use crate::call::races;
use crate::element::{Bomb, Counted, Element, Ledger, Random, surviving};
use crate::waker::{Deed, Record, block_on};

const SOON: Duration = Duration::from_millis(1);
/// Time in which the receiver falls asleep.
const LATE: Duration = Duration::from_millis(5);
/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3600);

fn poll<T>(receiver: &mut Receiver<T>, waker: &Waker) -> Poll<Result<T, RecvError>> {
    receiver.poll_recv(&mut Context::from_waker(waker))
}

type Receive = fn(&mut Receiver<u64>) -> Result<u64, RecvError>;

/// Every way to wait.
const WAYS: [Receive; 7] = [
    |receiver| receiver.recv(),
    |receiver| receiver.recv_timeout(NEVER).map_err(told_of),
    |receiver| receiver.recv_timeout(Duration::MAX).map_err(told_of),
    |receiver| receiver.recv_deadline(Instant::now() + NEVER).map_err(told_of),
    |receiver| block_on(receiver),
    |receiver| block_on(poll_fn(|context| receiver.poll_recv(context))),
    |receiver| {
        loop {
            match receiver.try_recv() {
                Ok(message) => return Ok(message),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(_) => thread::yield_now(),
            }
        }
    },
];

fn told_of(error: RecvTimeoutError) -> RecvError {
    assert_eq!(error, RecvTimeoutError::Disconnected);
    RecvError
}

/// Nothing more comes, however one asks.
fn assert_spent(mut receiver: Receiver<u64>) {
    assert!(receiver.is_disconnected());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(poll(&mut receiver, Waker::noop()), Poll::Ready(Err(RecvError)));
    for wait in WAYS {
        assert_eq!(wait(&mut receiver), Err(RecvError));
    }
}

#[test]
fn a_message_comes_before_or_after_the_wait() {
    for wait in WAYS {
        let (sender, mut receiver) = channel();
        assert!(!receiver.is_disconnected() && !sender.is_disconnected());
        assert_eq!(sender.send(1), Ok(()));
        assert!(receiver.is_disconnected());
        assert_eq!(wait(&mut receiver), Ok(1));
        assert_spent(receiver);

        let (sender, mut receiver) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(LATE);
                assert_eq!(sender.send(2), Ok(()));
            });
            assert_eq!(wait(&mut receiver), Ok(2));
        });
        assert_spent(receiver);
    }
}

#[test]
fn a_sender_leaves_before_or_during_the_wait() {
    for wait in WAYS {
        let (sender, mut receiver) = channel();
        drop(sender);
        assert!(receiver.is_disconnected());
        assert_eq!(wait(&mut receiver), Err(RecvError));
        assert_spent(receiver);

        let (sender, mut receiver) = channel::<u64>();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(LATE);
                drop(sender);
            });
            assert_eq!(wait(&mut receiver), Err(RecvError));
        });
        assert_spent(receiver);
    }
}

#[test]
fn a_receiver_that_has_left_gets_nothing() {
    let ledger = Arc::default();
    let (sender, receiver) = channel();
    drop(receiver);
    assert!(sender.is_disconnected());
    let sent = sender.send(Counted::make(7, &ledger));
    assert!(sent.is_err_and(|SendError(message)| message.is(7)));
    let (sender, receiver) = channel::<Counted>();
    drop(receiver);
    drop(sender);
    ledger.assert_settled();
}

#[test]
fn a_message_that_nobody_receives_is_dropped_with_the_receiver() {
    fn leave<T: Element>(survives: bool) {
        let ledger = Arc::default();
        let (sender, receiver) = channel();
        assert!(sender.send(T::make(0, &ledger)).is_ok());
        assert_eq!(surviving(|| drop(receiver)), survives);
        ledger.assert_settled();
    }
    leave::<Counted>(true);
    leave::<Bomb>(false);
    leave::<Box<u64>>(true);
}

#[test]
fn a_wait_that_times_out_loses_nothing() {
    let (sender, mut receiver) = channel();
    for timeout in [Duration::ZERO, SOON] {
        assert_eq!(receiver.recv_timeout(timeout), Err(RecvTimeoutError::Timeout));
        let deadline = Instant::now() + timeout;
        assert_eq!(receiver.recv_deadline(deadline), Err(RecvTimeoutError::Timeout));
    }
    assert!(poll(&mut receiver, Waker::noop()).is_pending());
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    assert!(!sender.is_disconnected());
    assert_eq!(sender.send(3), Ok(()));
    assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(3));
}

/// A future is dropped after it was polled; the next one gets the message.
#[test]
fn a_future_that_is_dropped_loses_nothing() {
    let (sender, mut receiver) = channel();
    let record = Record::new();
    let mut future = Pin::new(&mut receiver);
    let waker = record.waker();
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(sender.send(4), Ok(()));
    assert_eq!(record.wakes(), 1);
    assert_eq!(block_on(&mut receiver), Ok(4));
}

#[test]
fn the_last_waker_is_woken_once() {
    let records = [Record::new(), Record::new()];
    let (sender, mut receiver) = channel();
    // Equal wakers, and others.
    for which in [0, 0, 1, 1, 0, 1] {
        assert!(poll(&mut receiver, &records[which].waker()).is_pending());
        assert_eq!((records[which].alive(), records[1 - which].alive()), (1, 0));
    }
    assert_eq!(sender.send(5), Ok(()));
    assert_eq!((records[0].wakes(), records[1].wakes()), (0, 1));
    assert_eq!((records[0].alive(), records[1].alive()), (0, 0));
    assert_eq!(poll(&mut receiver, &records[0].waker()), Poll::Ready(Ok(5)));
    assert_eq!((records[0].wakes(), records[1].wakes()), (0, 1));
}

#[test]
fn a_sender_that_leaves_wakes_the_task() {
    let record = Record::new();
    let (sender, mut receiver) = channel::<u64>();
    assert!(poll(&mut receiver, &record.waker()).is_pending());
    drop(sender);
    assert_eq!((record.wakes(), record.alive()), (1, 0));
    assert_eq!(poll(&mut receiver, &record.waker()), Poll::Ready(Err(RecvError)));
}

#[test]
fn a_waker_goes_with_its_receiver() {
    let record = Record::new();
    let (sender, mut receiver) = channel::<u64>();
    assert!(poll(&mut receiver, &record.waker()).is_pending());
    drop(receiver);
    assert_eq!((record.wakes(), record.alive()), (0, 0));
    assert_eq!(sender.send(6), Err(SendError(6)));

    // Nor does a thread that waits leave the waker of an earlier poll there.
    let (_sender, mut receiver) = channel::<u64>();
    assert!(poll(&mut receiver, &record.waker()).is_pending());
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    assert_eq!((record.wakes(), record.alive()), (0, 0));
}

/// After a waker has panicked, the message is received or dropped as if it had not.
#[test]
fn wakers_that_panic() {
    let ledger = Arc::default();
    let record = Record::new();
    let polled = || {
        let (sender, mut receiver) = channel();
        assert!(poll(&mut receiver, &record.waker()).is_pending());
        (sender, receiver)
    };
    let received = |mut receiver: Receiver<Counted>| {
        assert!(receiver.recv().is_ok_and(|message| message.is(0)));
    };

    let (sender, receiver) = polled();
    record.panic_at(Some(Deed::Wake));
    assert!(!surviving(|| assert!(sender.send(Counted::make(0, &ledger)).is_ok())));
    received(receiver);

    record.panic_at(None);
    let (sender, receiver) = polled();
    record.panic_at(Some(Deed::Wake));
    assert!(!surviving(|| drop(sender)));
    assert!(receiver.is_disconnected());

    // The waker of the poll that panics is another one, which is cloned.
    record.panic_at(None);
    let other = Record::new();
    for first in [false, true] {
        let (sender, mut receiver) = if first { channel() } else { polled() };
        let waker = other.waker();
        other.panic_at(Some(Deed::Clone));
        assert!(!surviving(|| _ = poll(&mut receiver, &waker)));
        other.panic_at(None);
        drop(waker);
        assert!(sender.send(Counted::make(0, &ledger)).is_ok());
        assert_eq!(record.wakes(), 2, "no task waits");
        received(receiver);
    }

    // The waker of an earlier poll is dropped: by another poll, by a wait, and by the destructor.
    for cancel in [
        |receiver: &mut Receiver<Counted>| _ = poll(receiver, Waker::noop()),
        |receiver: &mut Receiver<Counted>| _ = receiver.recv_timeout(SOON),
    ] {
        let (sender, mut receiver) = polled();
        record.panic_at(Some(Deed::Drop));
        assert!(!surviving(|| cancel(&mut receiver)));
        record.panic_at(None);
        assert!(sender.send(Counted::make(0, &ledger)).is_ok());
        received(receiver);
    }
    let (sender, receiver) = polled();
    record.panic_at(Some(Deed::Drop));
    assert!(!surviving(|| drop(receiver)));
    record.panic_at(None);
    assert!(sender.send(Counted::make(0, &ledger)).is_err());
    assert_eq!((record.alive(), other.alive()), (0, 0));
    ledger.assert_settled();
}

/// An executor that runs the task in the middle of the sender's wake-up. The task ends there.
#[test]
fn a_task_that_runs_inside_its_wake_up() {
    struct Inline {
        receiver: Mutex<Option<Receiver<Counted>>>,
    }

    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let receiver = self.receiver.lock().expect("nobody panics here").take();
            let mut receiver = receiver.expect("it is woken once");
            assert!(receiver.try_recv().is_ok_and(|message| message.is(8)));
        }
    }

    let ledger = Arc::default();
    let (sender, receiver) = channel();
    let inline = Arc::new(Inline { receiver: Mutex::new(Some(receiver)) });
    if let Some(receiver) = &mut *inline.receiver.lock().expect("nobody panics here") {
        assert!(poll(receiver, &Waker::from(Arc::clone(&inline))).is_pending());
    }
    assert!(sender.send(Counted::make(8, &ledger)).is_ok());
    assert!(inline.receiver.lock().expect("nobody panics here").is_none());
    ledger.assert_settled();
}

/// A task is polled on one thread, and then on another, with another waker.
#[test]
fn a_task_that_moves_to_another_thread() {
    for _ in 0..if cfg!(miri) { 20 } else { 500 } {
        let (sender, mut receiver) = channel::<u64>();
        let before = Record::new();
        assert!(poll(&mut receiver, &before.waker()).is_pending());
        thread::scope(|scope| {
            scope.spawn(move || assert_eq!(block_on(receiver), Ok(9)));
            assert_eq!(sender.send(9), Ok(()));
        });
        assert_eq!(before.alive(), 0);
    }
}

type Raced = (Option<Receiver<Counted>>, Arc<Ledger>);

/// Ends that meet while the message is sent or dropped. `polled`: a task has waited before.
fn meet(polled: bool, receive: impl Fn(Receiver<Counted>) -> Option<Receiver<Counted>> + Sync) {
    let record = Record::new();
    for sends in [true, false] {
        let make = || {
            let ledger = Arc::default();
            let (sender, mut receiver) = channel();
            if polled {
                assert!(poll(&mut receiver, &record.waker()).is_pending());
            }
            let message = Counted::make(0, &ledger);
            ((Some(receiver), ledger), (sender, message))
        };
        let first = |(receiver, ledger): Raced| (receiver.and_then(&receive), ledger);
        let second = |(sender, message): (Sender<Counted>, Counted)| {
            if sends {
                drop(sender.send(message));
            } else {
                drop((sender, message));
            }
        };
        races(make, first, second, |(receiver, ledger): Raced| {
            drop(receiver);
            ledger.assert_settled();
        });
    }
    assert_eq!(record.alive(), 0);
}

#[test]
fn ends_meet() {
    for polled in [false, true] {
        meet(polled, |receiver| {
            drop(receiver);
            None
        });
        meet(polled, |mut receiver| {
            drop(receiver.recv());
            Some(receiver)
        });
        meet(polled, |mut receiver| {
            drop(receiver.recv_timeout(Duration::from_nanos(1)));
            Some(receiver)
        });
        meet(polled, |mut receiver| {
            drop(receiver.try_recv());
            None
        });
        meet(polled, |mut receiver| {
            drop(poll(&mut receiver, Waker::noop()));
            drop(poll(&mut receiver, &Record::new().waker()));
            None
        });
        meet(polled, |receiver| {
            drop(block_on(receiver));
            None
        });
    }
}

/// Requests whose askers wait in every way, for a while, or not at all.
#[test]
fn requests_with_a_one_shot_each() {
    let ledger: Arc<Ledger> = Arc::default();
    let (mut requests, inbox) = pipe::bounded::<(u64, Sender<Counted>)>(16);
    let (mut answered, mut given_up) = (0, 0);
    thread::scope(|scope| {
        let answers = &ledger;
        scope.spawn(move || {
            let mut random = Random::new(21);
            for (number, reply) in inbox {
                (0..random.below(300)).for_each(|_| std::hint::spin_loop());
                if number % 7 != 0 {
                    drop(reply.send(Counted::make(number, answers)));
                }
            }
        });
        let mut random = Random::new(22);
        for number in 0..if cfg!(miri) { 100 } else { 30_000 } {
            let (reply, mut answer) = channel();
            assert!(requests.send((number, reply)).is_ok(), "the answerer lives");
            let answer = match random.below(6) {
                0 => answer.recv(),
                1 => block_on(&mut answer),
                2 => {
                    let timeout = Duration::from_micros(random.below(16));
                    answer.recv_timeout(timeout).or_else(|_| answer.recv())
                }
                3 => {
                    drop(poll(&mut answer, Waker::noop()));
                    given_up += 1;
                    continue;
                }
                4 => match answer.recv_timeout(Duration::from_micros(random.below(8))) {
                    Ok(answer) => Ok(answer),
                    Err(_) => {
                        given_up += 1;
                        continue;
                    }
                },
                _ => {
                    given_up += 1;
                    continue;
                }
            };
            match answer {
                Ok(answer) => assert!(answer.is(number)),
                Err(RecvError) => assert_eq!(number % 7, 0),
            }
            answered += 1;
        }
        drop(requests);
    });
    println!("{answered} answers, {given_up} given up");
    assert!(answered > 0 && given_up > 0);
    ledger.assert_settled();
}

#[test]
fn ends_may_be_used_after_a_panic() {
    fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<Sender<Box<dyn Fn() + Send>>>();
    is_unwind_safe::<Receiver<Box<dyn Fn() + Send>>>();
}

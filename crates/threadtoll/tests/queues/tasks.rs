//! Tasks that wait at pipes and funnels: wakers that move, panic and are left behind; waits by
//! threads in between; ends that leave.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use threadtoll::error::RecvError;
use threadtoll::{funnel, pipe};

use crate::element::{Counted, Element, Random, surviving};
use crate::waker::{Deed, Record, block_on};

/// Time in which a thread falls asleep, or a task waits.
const LATE: Duration = Duration::from_millis(5);
const SOON: Duration = Duration::from_millis(1);

/// Tests a receiver of each kind. `$sender` sends `u64`s.
macro_rules! both {
    ($($(#[$meta:meta])* fn $name:ident($sender:ident, $receiver:ident) $body:block)+) => {
        mod pipes {
            use super::*;

            $($(#[$meta])* #[test]
            fn $name() {
                let (mut $sender, mut $receiver) = pipe::unbounded::<u64>();
                $body
            })+
        }

        #[allow(unused_mut, reason = "a pipe's sender needs it")]
        mod funnels {
            use super::*;

            $($(#[$meta])* #[test]
            fn $name() {
                let (mut $sender, mut $receiver) = funnel::unbounded::<u64>();
                $body
            })+
        }
    };
}

macro_rules! poll {
    ($receiver:expr, $waker:expr) => {
        $receiver.poll_recv(&mut Context::from_waker(&$waker))
    };
}

both! {
    fn a_message_wakes_the_last_waker_once(sender, receiver) {
        let (first, last) = (Record::new(), Record::new());
        assert!(poll!(receiver, first.waker()).is_pending());
        assert!(poll!(receiver, last.waker()).is_pending());
        assert_eq!((first.alive(), last.alive()), (0, 1), "a waker that is replaced is dropped");
        sender.send(1).expect("it is there");
        sender.send(2).expect("it is there");
        assert_eq!((first.wakes(), last.wakes()), (0, 1));
        assert_eq!(last.alive(), 0);
        assert_eq!(poll!(receiver, last.waker()), Poll::Ready(Ok(1)));
        assert_eq!(poll!(receiver, last.waker()), Poll::Ready(Ok(2)));
        assert_eq!(last.alive(), 0, "no waker is kept after a message was received");
        assert!(poll!(receiver, last.waker()).is_pending());
        sender.send(3).expect("it is there");
        assert_eq!(last.wakes(), 2);
    }

    fn an_equal_waker_is_not_cloned(sender, receiver) {
        let record = Record::new();
        assert!(poll!(receiver, record.waker()).is_pending());
        record.panic_at(Some(Deed::Clone));
        assert!(poll!(receiver, record.waker()).is_pending());
        sender.send(1).expect("it is there");
        assert_eq!(record.wakes(), 1);
    }

    fn a_sender_that_leaves_wakes_the_task(sender, receiver) {
        let record = Record::new();
        assert!(poll!(receiver, record.waker()).is_pending());
        sender.send(1).expect("it is there");
        assert_eq!(poll!(receiver, record.waker()), Poll::Ready(Ok(1)));
        assert!(poll!(receiver, record.waker()).is_pending());
        drop(sender);
        assert_eq!(record.wakes(), 2);
        for _ in 0..2 {
            assert_eq!(poll!(receiver, record.waker()), Poll::Ready(Err(RecvError)));
        }
        assert_eq!(record.alive(), 0);
    }

    #[cfg(feature = "stream")]
    fn a_receiver_is_a_stream(sender, receiver) {
        use futures_core::Stream;
        let record = Record::new();
        let waker = record.waker();
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut receiver).poll_next(&mut context).is_pending());
        sender.send(1).expect("it is there");
        assert_eq!(record.wakes(), 1);
        assert_eq!(Pin::new(&mut receiver).poll_next(&mut context), Poll::Ready(Some(1)));
        assert!(Pin::new(&mut receiver).poll_next(&mut context).is_pending());
        drop(sender);
        assert_eq!(record.wakes(), 2);
        assert_eq!(Pin::new(&mut receiver).poll_next(&mut context), Poll::Ready(None));
    }

    fn a_receiver_that_leaves_drops_its_waker(sender, receiver) {
        let record = Record::new();
        assert!(poll!(receiver, record.waker()).is_pending());
        drop(receiver);
        assert_eq!(record.alive(), 0);
        assert!(sender.send(1).is_err());
        assert_eq!(record.wakes(), 0);
    }

    fn a_future_that_is_dropped_loses_nothing(sender, receiver) {
        let record = Record::new();
        for number in 0..3 {
            let mut future = receiver.recv_async();
            let polled = Pin::new(&mut future).poll(&mut Context::from_waker(&record.waker()));
            assert!(polled.is_pending());
            if number == 1 {
                sender.send(number).expect("it is there");
                drop(future);
                assert_eq!(record.wakes(), 1);
            } else {
                drop(future);
                sender.send(number).expect("it is there");
            }
            assert_eq!(record.alive(), 0);
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        assert_eq!(record.wakes(), 1, "a task that is gone is not woken");
    }

    fn a_waker_that_panics_does_no_harm(sender, receiver) {
        let record = Record::new();
        assert!(poll!(receiver, record.waker()).is_pending());
        record.panic_at(Some(Deed::Wake));
        sender.send(1).expect("the sender is not affected");
        record.panic_at(Some(Deed::Clone));
        assert_eq!(poll!(receiver, record.waker()), Poll::Ready(Ok(1)));
        assert!(!surviving(|| _ = poll!(receiver, record.waker())));
        record.panic_at(None);
        sender.send(2).expect("it is there");
        assert_eq!(receiver.recv(), Ok(2));
        assert!(poll!(receiver, record.waker()).is_pending());
        record.panic_at(Some(Deed::Drop));
        let waker = Record::new().waker();
        assert!(!surviving(|| _ = poll!(receiver, waker)));
        sender.send(3).expect("it is there");
        assert_eq!(receiver.recv(), Ok(3));
        record.panic_at(None);
        assert_eq!(record.alive(), 0);
        // The sender's last message is a panic.
        assert!(poll!(receiver, record.waker()).is_pending());
        record.panic_at(Some(Deed::Wake));
        drop(sender);
        assert_eq!(receiver.recv(), Err(RecvError));
    }

    fn threads_and_tasks_take_turns(sender, receiver) {
        let record = Record::new();
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..40 {
                    thread::sleep(SOON);
                    sender.send(number).expect("it is there");
                }
            });
            for number in 0..40 {
                match number % 4 {
                    0 => {
                        let abandoned = poll!(receiver, record.waker());
                        if let Poll::Ready(received) = abandoned {
                            assert_eq!(received, Ok(number));
                            continue;
                        }
                    }
                    1 => {
                        assert_eq!(block_on(receiver.recv_async()), Ok(number));
                        continue;
                    }
                    2 => {
                        if let Ok(received) = receiver.recv_timeout(SOON / 4) {
                            assert_eq!(received, number);
                            continue;
                        }
                    }
                    _ => {}
                }
                assert_eq!(receiver.recv(), Ok(number));
            }
            assert_eq!(block_on(receiver.recv_async()), Err(RecvError));
        });
        assert_eq!(record.alive(), 0);
    }

    /// A storm of messages for a task that is polled at random, by two threads in turn, with wakers
    /// that are equal or not, and dropped at random.
    fn a_task_that_moves_misses_no_wake_up(sender, receiver) {
        const MESSAGES: u64 = if cfg!(miri) { 100 } else { 100_000 };
        let mut random = Random::new(7);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = Random::new(8);
                for number in 0..MESSAGES {
                    sender.send(number).expect("it is there");
                    if random.below(4) == 0 {
                        (0..random.below(200)).for_each(|_| std::hint::spin_loop());
                    }
                }
            });
            let mut next = 0;
            while next < MESSAGES {
                if random.below(2) == 0 {
                    let polled = poll!(receiver, Record::new().waker());
                    if let Poll::Ready(received) = polled {
                        assert_eq!(received, Ok(next));
                        next += 1;
                        continue;
                    }
                }
                if random.below(2) == 0 {
                    let mut future = pin!(receiver.recv_async());
                    let mut context = Context::from_waker(Waker::noop());
                    if let Poll::Ready(received) = future.as_mut().poll(&mut context) {
                        assert_eq!(received, Ok(next));
                        next += 1;
                        continue;
                    }
                }
                let received = match random.below(4) {
                    0 => receiver.recv(),
                    1 => {
                        let receiver = &mut receiver;
                        thread::scope(|scope| {
                            let moved = scope.spawn(|| block_on(receiver.recv_async()));
                            moved.join().expect("it does not panic")
                        })
                    }
                    _ => block_on(receiver.recv_async()),
                };
                assert_eq!(received, Ok(next));
                next += 1;
            }
            assert_eq!(block_on(receiver.recv_async()), Err(RecvError));
        });
    }
}

#[test]
fn a_task_waits_for_many_senders() {
    const SENDERS: u64 = 3;
    const EACH: u64 = if cfg!(miri) { 50 } else { 20_000 };
    for capacity in [1, 1000] {
        let (sender, mut receiver) = funnel::bounded(capacity);
        thread::scope(|scope| {
            for number in 0..SENDERS {
                let sender = sender.clone();
                scope.spawn(move || {
                    for place in 0..EACH {
                        sender.send((number, place)).expect("it is there");
                    }
                });
            }
            drop(sender);
            block_on(async {
                let mut next = [0; SENDERS as usize];
                while let Ok((sender, place)) = receiver.recv_async().await {
                    assert_eq!(place, std::mem::replace(&mut next[sender as usize], place + 1));
                }
                assert_eq!(next, [EACH; SENDERS as usize]);
            });
        });
    }
}

#[test]
fn tasks_at_both_ends_of_a_full_pipe() {
    const MESSAGES: u64 = if cfg!(miri) { 50 } else { 20_000 };
    for capacity in [1, 8, 1000] {
        let (mut sender, mut receiver) = pipe::bounded(capacity);
        thread::scope(|scope| {
            scope.spawn(move || {
                block_on(async {
                    for number in 0..MESSAGES {
                        sender.send_async(number).await.expect("it is there");
                    }
                });
            });
            block_on(async {
                for number in 0..MESSAGES {
                    assert_eq!(receiver.recv_async().await, Ok(number));
                }
                assert_eq!(receiver.recv_async().await, Err(RecvError));
            });
        });
    }
}

#[test]
fn a_task_waits_for_room() {
    let ledger = Arc::default();
    let record = Record::new();
    let waker = record.waker();
    let mut context = Context::from_waker(&waker);
    let (mut sender, mut receiver) = pipe::bounded(1);
    sender.send(Counted::make(0, &ledger)).expect("there is room");
    // A future that is dropped drops its message, and is not woken.
    let mut future = sender.send_async(Counted::make(1, &ledger));
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    drop(future);
    assert_eq!(record.alive(), 1, "only the test's own waker is left");
    assert!(sender.is_full());
    let mut future = sender.send_async(Counted::make(2, &ledger));
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    assert!(receiver.recv().is_ok_and(|message| message.is(0)));
    assert_eq!(record.wakes(), 1);
    assert_eq!(
        Pin::new(&mut future).poll(&mut context).map(|sent| sent.is_ok()),
        Poll::Ready(true)
    );
    drop(future);
    // A waker that panics does not keep the receiver from receiving.
    let mut future = sender.send_async(Counted::make(3, &ledger));
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    record.panic_at(Some(Deed::Wake));
    assert!(receiver.recv().is_ok_and(|message| message.is(2)));
    record.panic_at(None);
    assert_eq!(
        Pin::new(&mut future).poll(&mut context).map(|sent| sent.is_ok()),
        Poll::Ready(true)
    );
    drop(future);
    // A receiver that leaves wakes the task, which gets its message back.
    let mut future = sender.send_async(Counted::make(4, &ledger));
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    drop(receiver);
    assert_eq!(record.wakes(), 3);
    let Poll::Ready(Err(error)) = Pin::new(&mut future).poll(&mut context) else {
        panic!("the receiver is gone")
    };
    assert!(error.into_inner().is(4));
    drop(future);
    drop(sender);
    ledger.assert_settled();
}

#[test]
fn a_thread_waits_for_room_after_a_task() {
    let (mut sender, mut receiver) = pipe::bounded(1);
    sender.send(0).expect("there is room");
    let mut future = sender.send_async(1);
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    // Leaves its waker behind.
    std::mem::forget(future);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(LATE);
            assert_eq!(receiver.recv(), Ok(0));
            assert_eq!(receiver.recv(), Ok(2));
        });
        sender.send(2).expect("it is there");
    });
}

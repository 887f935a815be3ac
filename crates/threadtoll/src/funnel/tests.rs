//! Funnels late in their lives, up to the last ticket, and senders that are stopped in mid-send.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::chunk::slots;
use super::{Options, Receiver, Sender};
use crate::error::SendError;
use crate::wait::Wait::Park;

const SENDERS: u64 = 2;
const MESSAGES: u64 = 100_000;

fn stream(sender: &Sender<(u64, u64)>, mut receiver: Receiver<(u64, u64)>, from: u64) {
    receiver.begin_at(from);
    assert_eq!((receiver.len(), sender.len()), (0, 0));
    thread::scope(|scope| {
        for which in 0..SENDERS {
            scope.spawn(move || {
                for number in 0..MESSAGES / SENDERS / 2 {
                    sender.send((which, 2 * number)).unwrap();
                    sender.send_all([(which, 2 * number + 1)]).unwrap();
                }
            });
        }
        let mut next = [0; SENDERS as usize];
        for _ in 0..MESSAGES {
            let (which, number) = receiver.recv().unwrap();
            assert_eq!(number, next[which as usize]);
            next[which as usize] += 1;
            assert!(receiver.len() as u64 <= MESSAGES);
        }
    });
    assert!(receiver.try_recv().is_err());
}

#[test]
fn tickets_pass_32_bits_and_come_to_the_last() {
    // A ticket has 61 bits.
    for from in [u64::from(u32::MAX) - MESSAGES / 2, (1 << 61) - MESSAGES - 1] {
        let (sender, receiver) = Options::new().unbounded();
        stream(&sender, receiver, from);
        let (sender, receiver) = Options::new().bounded(10);
        stream(&sender, receiver, from);
    }
}

#[test]
fn a_refused_batch_draws_no_tickets() {
    let (sender, receiver) = Options::new().unbounded();
    sender.send(0).unwrap();
    drop(receiver);
    for _ in 0..100 {
        assert!(sender.send_all(0..1000).is_err());
    }
    assert_eq!(sender.next_ticket(), 1);
}

/// Sends a message, begins another send, and sends many more messages.
fn stop_in_the_midst(
    sender: &Sender<Arc<()>>,
    message: &Arc<()>,
) -> impl FnOnce(Arc<()>) -> Result<(), Arc<()>> {
    sender.send(Arc::clone(message)).unwrap();
    let end = sender.begin_send();
    (0..5_000).for_each(|_| sender.send(Arc::clone(message)).unwrap());
    end
}

#[test]
fn nothing_stays_behind_when_the_receiver_leaves_amid_a_send() {
    for options in [Options::new(), Options::new().fence()] {
        for (sender, receiver) in [options.unbounded(), options.bounded(10_000)] {
            let message = Arc::new(());
            let end = stop_in_the_midst(&sender, &message);
            drop(receiver);
            assert_eq!(Arc::strong_count(&message), 1);
            assert!(end(Arc::clone(&message)).is_err());
            assert_eq!(Arc::strong_count(&message), 1);
            drop(sender);
            assert_eq!(Arc::strong_count(&message), 1);
        }
    }
}

#[test]
fn a_batch_goes_on_to_its_last_ticket_when_the_receiver_leaves_amid_it() {
    const SENT: usize = 5_000;
    let message = Arc::new(());
    let (sender, receiver) = Options::new().unbounded();
    let mut receiver = Some(receiver);
    let messages = (0..SENT).map(|number| {
        if number == 1_000 {
            drop(receiver.take());
            assert_eq!(Arc::strong_count(&message), 1);
        }
        Arc::clone(&message)
    });
    let SendError(rest) = sender.send_all(messages).unwrap_err();
    assert_eq!(SENT - rest.len(), slots::<Arc<()>>());
    assert_eq!(Arc::strong_count(&message), 1);
}

#[test]
fn messages_behind_a_sender_that_died_are_dropped() {
    let message = Arc::new(());
    let (sender, receiver) = Options::new().unbounded();
    drop(stop_in_the_midst(&sender, &message));
    drop(sender);
    drop(receiver);
    assert_eq!(Arc::strong_count(&message), 1);
}

#[test]
fn a_sender_does_not_wait_for_another_one_while_there_is_room() {
    let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
    sender.send(0).unwrap();
    sender.stop_a_woken_sender();
    let more = thread::spawn(move || sender.send(1));
    // By then the sender should be asleep.
    thread::sleep(Duration::from_millis(50));
    assert_eq!(receiver.recv(), Ok(0));
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(more.join().unwrap(), Ok(()));
}

/// Number of times that this thread has gone to sleep.
#[cfg(target_os = "linux")]
fn sleeps() -> i64 {
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: valid for the call.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
    usage.ru_nvcsw
}

/// It does not look again and again, and it is not late by the rest of a nap: the send wakes it.
#[cfg(target_os = "linux")]
#[test]
fn a_receiver_behind_a_send_in_progress_sleeps_until_that_is_done() {
    for options in [Options::new(), Options::new().fence()] {
        for (sender, mut receiver) in
            [options.wait(Park).unbounded(), options.wait(Park).bounded(4)]
        {
            let complete = sender.begin_send();
            sender.send(2).unwrap();
            let (ready, is_ready) = std::sync::mpsc::channel();
            let receiving = thread::spawn(move || {
                ready.send(()).unwrap();
                let before = sleeps();
                assert_eq!(receiver.recv(), Ok(1));
                let slept = sleeps() - before;
                assert_eq!(receiver.recv(), Ok(2));
                slept
            });
            is_ready.recv().unwrap();
            // Time for more than a hundred naps.
            thread::sleep(Duration::from_millis(200));
            complete(1).unwrap();
            let slept = receiving.join().unwrap();
            assert!((1..10).contains(&slept), "it fell asleep {slept} times");
        }
    }
}

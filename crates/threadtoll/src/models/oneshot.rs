//! The one-shot.

use std::task::{Context, Poll};
use std::time::Duration;

use super::checker::thread;
use super::task::{block_on, waker};
use super::{Message, model, settled, tally};
use crate::error::{RecvError, RecvTimeoutError, SendError};
use crate::oneshot::{Receiver, Sender, channel};

/// A timeout that may pass at any moment of a sleep.
const HOUR: Duration = Duration::from_secs(3600);

/// A channel whose message is counted.
fn counted() -> (Sender<Message>, Receiver<Message>) {
    tally(1);
    channel()
}

/// Sends the message, which the receiver takes or drops.
fn send(sender: Sender<Message>) {
    assert!(sender.send(Message(0)).is_ok());
}

/// Sends the message. If it is handed back, drops it.
fn send_or_drop(sender: Sender<Message>) {
    if let Err(SendError(message)) = sender.send(Message(0)) {
        assert_eq!(message.0, 0);
    }
}

/// Polls once with a waker of its own.
fn poll_once(receiver: &mut Receiver<Message>) -> Poll<Result<Message, RecvError>> {
    receiver.poll_recv(&mut Context::from_waker(&waker()))
}

model! {
    /// The receiver looks until the message has come.
    hand_over(Refuses)
    orders [publish_shot, see_shot]
    steps [take_shot]
    {
        let (sender, mut receiver) = counted();
        let sending = thread::spawn(move || send(sender));
        loop {
            match receiver.try_recv() {
                Ok(message) => break assert_eq!(message.0, 0),
                Err(error) => assert!(error.is_empty()),
            }
            thread::yield_now();
        }
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A thread sleeps until the message comes, and leaves while the sender may still wake it.
    sleeping(Refuses)
    orders [publish_shot, see_shot, publish_hook, see_hook, woken, leave_waking]
    steps [wake_shot, register_unless_sent, hooked_word, keep_while_waking, free_if_left]
    {
        let (sender, mut receiver) = counted();
        let sending = thread::spawn(move || send(sender));
        assert_eq!(receiver.recv().unwrap().0, 0);
        assert!(receiver.recv().is_err());
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A task waits for the message.
    awaiting(Refuses)
    orders [publish_shot, publish_hook, see_hook]
    steps [wake_shot, register_unless_sent]
    {
        let (sender, mut receiver) = counted();
        let sending = thread::spawn(move || send(sender));
        assert_eq!(block_on(&mut receiver).unwrap().0, 0);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A task is polled with another waker while the message is sent. It may leave while the sender
    /// still takes its first waker.
    other_waker(Refuses)
    orders [withdraw_unless_sent, publish_hook, see_hook, woken, leave_waking]
    steps [same_waker, keep_while_waking, free_if_left]
    {
        let (sender, mut receiver) = counted();
        assert!(poll_once(&mut receiver).is_pending());
        let sending = thread::spawn(move || send(sender));
        assert_eq!(block_on(&mut receiver).unwrap().0, 0);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A thread sleeps at a receiver that a task has polled before.
    polled_before(Refuses)
    orders [withdraw_unless_sent]
    steps [wake_shot]
    {
        let (sender, mut receiver) = counted();
        assert!(poll_once(&mut receiver).is_pending());
        let sending = thread::spawn(move || send(sender));
        assert_eq!(receiver.recv().unwrap().0, 0);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A wait times out while the message is sent. The next wait finds it.
    timeout(Refuses)
    orders [withdraw_unless_sent, see_shot]
    steps [wake_shot]
    {
        let (sender, mut receiver) = counted();
        let sending = thread::spawn(move || send(sender));
        let message = match receiver.recv_timeout(HOUR) {
            Err(RecvTimeoutError::Timeout) => receiver.recv().unwrap(),
            received => received.unwrap(),
        };
        assert_eq!(message.0, 0);
        drop(message);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A wait times out, and the receiver leaves, while the message is sent.
    timeout_and_leave(Refuses)
    orders [withdraw_unless_sent, leave_shot]
    steps [take_shot, hand_back_shot]
    {
        let (sender, mut receiver) = counted();
        let sending = thread::spawn(move || send_or_drop(sender));
        drop(receiver.recv_timeout(HOUR));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// A task is dropped after its first poll, while the message is sent.
    cancelled(Refuses)
    orders [withdraw_unless_sent, publish_shot, see_hook, woken, leave_waking, leave_shot]
    steps [keep_while_waking, free_if_left, take_shot, hand_back_shot]
    {
        let (sender, mut receiver) = counted();
        assert!(poll_once(&mut receiver).is_pending());
        let sending = thread::spawn(move || send_or_drop(sender));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The receiver leaves while the message is sent, without having waited.
    receiver_leaves(Refuses)
    orders [publish_shot, see_hook, leave_shot]
    steps [take_shot, hand_back_shot]
    {
        let (sender, receiver) = counted();
        let sending = thread::spawn(move || send_or_drop(sender));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The sender leaves without sending, while a thread waits.
    sender_leaves(Refuses)
    orders [publish_shot, see_hook, woken, leave_waking]
    steps [wake_shot, hooked_word]
    {
        let (sender, mut receiver) = channel::<usize>();
        let leaving = thread::spawn(move || drop(sender));
        assert_eq!(receiver.recv(), Err(RecvError));
        leaving.join().unwrap();
    }
}

model! {
    /// The sender leaves without sending, while a task waits.
    sender_leaves_task(Refuses)
    orders [publish_hook, see_hook]
    steps [wake_shot]
    {
        let (sender, mut receiver) = channel::<Message>();
        let leaving = thread::spawn(move || drop(sender));
        assert!(block_on(&mut receiver).is_err());
        leaving.join().unwrap();
    }
}

model! {
    /// Both ends leave at once.
    both_leave(Refuses)
    orders [publish_shot, see_hook, leave_shot]
    steps [hand_back_shot]
    {
        let (sender, receiver) = channel::<usize>();
        let leaving = thread::spawn(move || drop(sender));
        drop(receiver);
        leaving.join().unwrap();
    }
}

//! Tasks that wait at a pipe or a funnel. The models of the one-shot use [`block_on`], too.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::checker::sync::{Condvar, Mutex};
use super::checker::thread;
use super::model;
use crate::error::RecvError;
use crate::wait::Wait::Park;
use crate::{funnel, pipe};

/// Wakes a thread that runs a task.
struct Alarm {
    rings: Mutex<bool>,
    rang: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.rings.lock().unwrap() = true;
        self.rang.notify_all();
    }
}

/// A waker that compares equal to no other.
pub(super) fn waker() -> Waker {
    Waker::from(alarm())
}

fn alarm() -> Arc<Alarm> {
    Arc::new(Alarm { rings: Mutex::new(false), rang: Condvar::new() })
}

/// Runs a task, and sleeps until its waker is woken.
pub(super) fn block_on<F: Future>(task: F) -> F::Output {
    let alarm = alarm();
    let waker = Waker::from(Arc::clone(&alarm));
    let mut task = pin!(task);
    loop {
        if let Poll::Ready(output) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut rings = alarm.rings.lock().unwrap();
        if *rings {
            // The task may have woken itself, so let others run: otherwise the execution never
            // ends.
            *rings = false;
            drop(rings);
            thread::yield_now();
            continue;
        }
        while !*rings {
            rings = alarm.rang.wait(rings).unwrap();
        }
        *rings = false;
    }
}

/// Polls once, with a waker of its own.
fn poll_once<R>(poll: impl FnOnce(&mut Context<'_>) -> Poll<R>) -> Poll<R> {
    poll(&mut Context::from_waker(&waker()))
}

fn pipe() -> (pipe::Sender<usize>, pipe::Receiver<usize>) {
    pipe::Options::new().wait(Park).unbounded()
}

fn funnel() -> (funnel::Sender<usize>, funnel::Receiver<usize>) {
    funnel::Options::new().wait(Park).unbounded()
}

/// Sends `count` messages from another thread.
fn give(mut sender: pipe::Sender<usize>, count: usize) -> thread::JoinHandle<pipe::Sender<usize>> {
    thread::spawn(move || {
        (0..count).for_each(|number| sender.send(number).unwrap());
        sender
    })
}

model! {
    /// A task waits for a message.
    pipe_awaited(Orders, Lacks, Busy)
    orders [barrier_in_send, fence_without_membarrier, fence_of_sleeper, announce]
    steps [look_before_sleep, ring_task]
    {
        let (sender, mut receiver) = pipe();
        let sending = give(sender, 1);
        assert_eq!(block_on(receiver.recv_async()), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The kernel has refused the barrier since the queue was created: the task polls.
    pipe_polled(Refuses)
    steps [wake_self]
    {
        let (sender, mut receiver) = pipe();
        let sending = give(sender, 1);
        assert_eq!(block_on(receiver.recv_async()), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// A task waits for two messages, and stores a waker while the last one is taken.
    pipe_awaited_twice(Orders) fewer 1
    orders [publish_waker, see_waker, enter_cell, leave_cell, withdraw_waker, claim_waker]
    steps [see_claim, wake_self, same_task]
    {
        let (sender, mut receiver) = pipe();
        assert!(poll_once(|context| receiver.poll_recv(context)).is_pending());
        let sending = give(sender, 2);
        assert_eq!(block_on(receiver.recv_async()), Ok(0));
        assert_eq!(block_on(receiver.recv_async()), Ok(1));
        sending.join().unwrap();
    }
}

model! {
    /// The task is dropped while the message is sent, and another one receives it.
    pipe_cancelled(Orders)
    orders [withdraw_waker, claim_waker]
    {
        let (sender, mut receiver) = pipe();
        let mut cancelled = Box::pin(receiver.recv_async());
        let first = poll_once(|context| cancelled.as_mut().poll(context));
        assert!(first.is_pending());
        let sending = give(sender, 1);
        drop(cancelled);
        assert_eq!(block_on(receiver.recv_async()), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// A thread sleeps at a receiver that a task has polled before.
    pipe_polled_before(Orders)
    steps [forget_before_sleep]
    {
        let (sender, mut receiver) = pipe();
        assert!(poll_once(|context| receiver.poll_recv(context)).is_pending());
        let sending = give(sender, 1);
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The sender leaves while a task waits.
    pipe_sender_leaves(Orders)
    steps [wake_in_close, ring_task]
    {
        let (sender, mut receiver) = pipe();
        let leaving = thread::spawn(move || drop(sender));
        assert_eq!(block_on(receiver.recv_async()), Err(RecvError));
        leaving.join().unwrap();
    }
}

model! {
    /// The receiver is dropped after a poll, while a message is sent.
    pipe_receiver_leaves(Orders)
    orders [withdraw_waker, claim_waker]
    {
        let (mut sender, mut receiver) = pipe();
        assert!(poll_once(|context| receiver.poll_recv(context)).is_pending());
        let sending = thread::spawn(move || _ = sender.send(0));
        drop(receiver);
        sending.join().unwrap();
    }
}

model! {
    /// A task waits for room.
    pipe_awaits_room(Orders, Lacks)
    orders [barrier_in_recv, fence_without_membarrier, announce]
    steps [look_before_sleep, ring_task]
    {
        let (mut sender, mut receiver) = pipe::Options::new().wait(Park).reserve().bounded(1);
        sender.send(0).unwrap();
        let sending = thread::spawn(move || block_on(sender.send_async(1)).unwrap());
        // After this the receiver does nothing more.
        assert_eq!(receiver.try_recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while a task waits for room.
    pipe_receiver_leaves_full(Orders)
    steps [wake_in_leave, see_receiver_gone, ring_task]
    {
        let (mut sender, receiver) = pipe::Options::new().wait(Park).reserve().bounded(1);
        sender.send(0).unwrap();
        let sending = thread::spawn(move || _ = block_on(sender.send_async(1)));
        drop(receiver);
        sending.join().unwrap();
    }
}

model! {
    /// A task waits for the messages of two senders.
    funnel_awaited(Refuses) fewer 1
    orders [claim_waker]
    steps [park_at_head, ring_task]
    {
        let (sender, mut receiver) = funnel();
        let other = sender.clone();
        let sending = thread::spawn(move || { sender.send(0).unwrap(); sender });
        let more = thread::spawn(move || { other.send(1).unwrap(); other });
        let mut taken = [(); 2].map(|()| block_on(receiver.recv_async()).unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [0, 1]);
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// A task waits behind a send in progress.
    funnel_send_in_progress(Orders, Lacks, Busy)
    orders [barrier_in_funnel_send, barrier_behind, fence_of_sender, fence_of_receiver]
    steps [say_behind, wake_from_behind, ring_task]
    {
        let (sender, mut receiver) = funnel();
        let complete = sender.begin_send();
        let receiving = thread::spawn(move || block_on(poll_fn(|context| receiver.poll_recv(context))));
        complete(0).unwrap();
        assert_eq!(receiving.join().unwrap(), Ok(0));
    }
}

model! {
    /// All senders leave while a task waits.
    funnel_senders_leave(Refuses)
    steps [wake_by_last_sender, ring_task]
    {
        let (sender, mut receiver) = funnel();
        let leaving = thread::spawn(move || drop(sender));
        assert_eq!(block_on(receiver.recv_async()), Err(RecvError));
        leaving.join().unwrap();
    }
}

model! {
    /// The receiver of a funnel is dropped after a poll, while a message is sent.
    funnel_receiver_leaves(Orders)
    orders [withdraw_waker, claim_waker]
    {
        let (sender, mut receiver) = funnel();
        assert!(poll_once(|context| receiver.poll_recv(context)).is_pending());
        let sending = thread::spawn(move || _ = sender.send(0));
        drop(receiver);
        sending.join().unwrap();
    }
}

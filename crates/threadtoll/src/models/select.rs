//! Waiting at several receiving ends.

use std::task::Context;
use std::time::Duration;

use super::checker::thread;
use super::funnel::Short;
use super::model;
use super::task::waker;
use crate::call::{self, Callee, Caller};
use crate::error::{RecvError, TryRecvError};
use crate::select::{Descriptor, Select, Sources};
use crate::wait::Wait::Park;
use crate::{funnel, oneshot, pipe, ring};

/// A time limit that may pass at any moment of a sleep.
const HOUR: Duration = Duration::from_secs(3600);

fn select() -> Select {
    Select::with_wait(Park)
}

fn pipe() -> (pipe::Sender<usize>, pipe::Receiver<usize>) {
    pipe::Options::new().wait(Park).unbounded()
}

/// A pipe whose receiver needs a barrier before it sleeps, because its sender has sent before.
fn used_pipe() -> (pipe::Sender<usize>, pipe::Receiver<usize>) {
    let (mut sender, mut receiver) = pipe();
    sender.send(9).unwrap();
    assert_eq!(receiver.try_recv(), Ok(9));
    (sender, receiver)
}

fn funnel() -> (funnel::Sender<usize>, funnel::Receiver<usize>) {
    funnel::Options::new().wait(Park).unbounded()
}

fn line() -> (Caller<usize, usize>, Callee<usize, usize>) {
    call::Options::new().wait(Park).line()
}

fn ring_builder() -> ring::Builder<usize> {
    ring::Options::new().wait(Park).builder(2, || 0)
}

fn publish(writer: &mut ring::Writer<usize>) {
    writer.publish(|event| *event += 1).unwrap();
}

/// Receives an event from a reader that is ready.
fn take(reader: &mut ring::Reader<usize>) {
    assert_eq!(reader.try_recv_batch().unwrap().len(), 1);
}

/// Sends `count` messages from another thread.
fn give(mut sender: pipe::Sender<usize>, count: usize) -> thread::JoinHandle<pipe::Sender<usize>> {
    thread::spawn(move || {
        (0..count).for_each(|number| sender.send(number).unwrap());
        sender
    })
}

/// Waits until a source is ready or the time limit has passed.
fn wait_or_not(sources: impl Sources) -> bool {
    select().ready_timeout(sources, HOUR).is_some()
}

model! {
    /// A message comes to the second of two pipes, one of which needs a barrier before the sleep.
    message_to_pipe(Orders, Lacks, Busy)
    orders [barrier_in_send, barrier_for_all, fence_without_membarrier, fence_for_all]
    steps [announce, look_before_sleep, ring_task, ring_bell, expected_word]
    {
        let (_quiet, mut quiet) = pipe();
        let (sender, mut receiver) = used_pipe();
        let sending = give(sender, 1);
        assert_eq!(select().ready((&mut quiet, &mut receiver)), 1);
        assert_eq!(receiver.try_recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The message comes to a funnel, by a send in progress.
    send_in_progress(Orders, Lacks, Busy)
    orders [barrier_in_funnel_send, barrier_for_all, fence_of_sender, fence_for_all]
    steps [say_behind, wake_from_behind]
    {
        let (_quiet, mut quiet) = pipe();
        let (sender, mut receiver) = funnel();
        let complete = sender.begin_send();
        let receiving = thread::spawn(move || {
            assert_eq!(select().ready((&mut quiet, &mut receiver)), 1);
            receiver.try_recv()
        });
        complete(0).unwrap();
        assert_eq!(receiving.join().unwrap(), Ok(0));
    }
}

model! {
    /// The message comes to a funnel behind a ticket that gets none.
    short_batch_in_progress(Orders, Lacks, Busy)
    orders [barrier_in_funnel_send, fence_of_sender, watch_anew]
    {
        let (sender, mut receiver) = funnel();
        let sending = thread::spawn(move || {
            assert!(sender.send_all(Short(2)).is_ok());
            sender.send(5).unwrap();
            sender
        });
        let mut select = select();
        for number in [1, 5] {
            assert_eq!(select.ready((&mut receiver,)), 0);
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        sending.join().unwrap();
    }
}

model! {
    /// A request comes to a callee.
    request(Orders, Lacks, Busy)
    orders [barrier_in_pass, fence_in_attend, barrier_for_all, fence_for_all]
    steps [ring_task, ring_bell]
    {
        let (_quiet, mut quiet) = pipe();
        let (mut caller, mut callee) = line();
        let calling = thread::spawn(move || caller.call(1));
        assert_eq!(select().ready((&mut quiet, &mut callee)), 1);
        assert_eq!(callee.try_recv(), Ok(1));
        callee.answer(2);
        assert_eq!(calling.join().unwrap(), Ok(2));
    }
}

model! {
    /// The caller leaves.
    caller_leaves(Orders, Refuses)
    steps [wake_in_call_leave]
    {
        let (caller, mut callee) = line();
        let leaving = thread::spawn(move || drop(caller));
        assert_eq!(select().ready((&mut callee,)), 0);
        assert!(callee.try_recv().is_err_and(|error| error.is_disconnected()));
        leaving.join().unwrap();
    }
}

model! {
    /// The message of a one-shot comes.
    one_shot(Refuses)
    orders [publish_shot, publish_hook, see_hook]
    steps [wake_shot, register_unless_sent]
    {
        let (sender, mut receiver) = oneshot::channel::<usize>();
        let sending = thread::spawn(move || sender.send(0).unwrap());
        assert_eq!(select().ready((&mut receiver,)), 0);
        assert_eq!(receiver.try_recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The wait for a one-shot times out while its message is sent.
    timeout_of_one_shot(Refuses)
    orders [withdraw_unless_sent]
    {
        let (sender, mut receiver) = oneshot::channel::<usize>();
        let sending = thread::spawn(move || sender.send(0).unwrap());
        let _ = wait_or_not((&mut receiver,));
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The senders of two kinds of sources leave.
    senders_leave(Orders) fewer 1
    steps [wake_in_close, wake_by_last_sender]
    {
        let ((sender, mut pipe), (other, mut funnel)) = (pipe(), funnel());
        let leaving = thread::spawn(move || drop(sender));
        let more = thread::spawn(move || drop(other));
        let mut select = select();
        assert_eq!(select.ready((&mut pipe,)), 0);
        assert_eq!(pipe.recv(), Err(RecvError));
        assert_eq!(select.ready((&mut funnel,)), 0);
        assert_eq!(funnel.recv(), Err(RecvError));
        leaving.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// Messages come to two sources at once.
    two_at_once(Orders) fewer 1
    steps [look_before_sleep, ring_bell]
    {
        let ((sender, mut pipe), (other, mut funnel)) = (pipe(), funnel());
        let sending = give(sender, 1);
        let more = thread::spawn(move || { other.send(1).unwrap(); other });
        let mut select = select();
        for _ in 0..2 {
            match select.ready((&mut pipe, &mut funnel)) {
                0 => assert_eq!(pipe.try_recv(), Ok(0)),
                _ => assert_eq!(funnel.try_recv(), Ok(1)),
            }
        }
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// A wait begins while the waker that a task has left is taken, and then another.
    two_in_a_row(Orders) fewer 1
    orders [publish_waker, see_waker, enter_cell, leave_cell, withdraw_waker, claim_waker]
    steps [see_claim, stay_awake]
    {
        let (sender, mut receiver) = pipe();
        assert!(receiver.poll_recv(&mut Context::from_waker(&waker())).is_pending());
        let sending = give(sender, 2);
        let mut select = select();
        for number in 0..2 {
            assert_eq!(select.ready((&mut receiver,)), 0);
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        sending.join().unwrap();
    }
}

model! {
    /// There is no barrier, so each sleep is short, and the next does without the fences of which
    /// the sender does not know.
    without_barrier(Refuses)
    orders [watch_afresh]
    {
        let (sender, mut receiver) = used_pipe();
        let sending = give(sender, 1);
        assert_eq!(select().ready((&mut receiver,)), 0);
        assert_eq!(receiver.try_recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The wait times out while the message is sent, and a thread then sleeps at the source.
    timeout(Orders, Busy)
    orders [barrier_in_send]
    steps [look_before_sleep]
    {
        let (sender, mut receiver) = used_pipe();
        let sending = give(sender, 1);
        let _ = wait_or_not((&mut receiver,));
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// There is no barrier. The wait ends because of one source, and a thread then sleeps at the
    /// other, without the fences of which its sender does not know.
    without_barrier_at_the_other(Refuses)
    orders [end_watch]
    {
        let ((mut first, mut one), (mut second, mut other)) = (pipe(), used_pipe());
        let sending = thread::spawn(move || {
            first.send(0).unwrap();
            second.send(1).unwrap();
            (first, second)
        });
        // Because of either of them.
        select().ready((&mut one, &mut other));
        assert_eq!(other.recv(), Ok(1));
        sending.join().unwrap();
    }
}

model! {
    /// As `timeout`, with a callee.
    timeout_of_callee(Orders, Refuses)
    orders [barrier_in_pass]
    {
        let (mut caller, mut callee) = line();
        let calling = thread::spawn(move || caller.call(1));
        let _ = wait_or_not((&mut callee,));
        assert_eq!(callee.recv(), Ok(1));
        callee.answer(2);
        assert_eq!(calling.join().unwrap(), Ok(2));
    }
}

model! {
    /// The wait times out, and the source leaves, while the message is sent.
    timeout_and_leave(Orders)
    orders [withdraw_waker, claim_waker]
    {
        let (mut sender, mut receiver) = pipe();
        let sending = thread::spawn(move || _ = sender.send(0));
        let _ = wait_or_not((&mut receiver,));
        drop(receiver);
        sending.join().unwrap();
    }
}

/// Receives in an event loop that sleeps by a descriptor. Returns the descriptor, too.
fn run_event_loop(
    receiver: &mut pipe::Receiver<usize>,
) -> (Descriptor, Result<usize, TryRecvError>) {
    let mut descriptor = Descriptor::new().unwrap();
    while descriptor.arm((&mut *receiver,)).is_none() {
        descriptor.poll();
        // The descriptor may be readable by its own doing, so let others run.
        thread::yield_now();
    }
    (descriptor, receiver.try_recv())
}

model! {
    /// An event loop is woken by its descriptor, to which the sender may write late.
    event_loop(Orders, Lacks, Busy)
    orders [barrier_in_send, barrier_for_all, fence_without_membarrier, fence_for_all]
    steps [write_event, read_later]
    {
        let (sender, mut receiver) = used_pipe();
        let sending = give(sender, 1);
        let (mut descriptor, received) = run_event_loop(&mut receiver);
        assert_eq!(received, Ok(0));
        sending.join().unwrap();
        let none: &mut [pipe::Receiver<usize>] = &mut [];
        assert_eq!(descriptor.arm(none), None);
        assert!(!descriptor.is_readable(), "an event loop would not sleep");
    }
}

model! {
    /// The sender leaves while an event loop sleeps.
    event_loop_is_left(Orders)
    steps [write_event, wake_in_close]
    {
        let (sender, mut receiver) = used_pipe();
        let leaving = thread::spawn(move || drop(sender));
        let (_, received) = run_event_loop(&mut receiver);
        assert_eq!(received, Err(TryRecvError::Disconnected));
        leaving.join().unwrap();
    }
}

model! {
    /// There is no barrier: the event loop polls, and relies on no fences of which the sender does
    /// not know.
    event_loop_without_barrier(Refuses)
    orders [end_watch]
    {
        let (sender, mut receiver) = used_pipe();
        let sending = give(sender, 1);
        let (_, received) = run_event_loop(&mut receiver);
        assert_eq!(received, Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// A thread sleeps at the sources of a descriptor that is armed.
    armed_before(Orders)
    steps [forget_before_sleep]
    {
        let ((sender, mut receiver), (mut caller, mut callee)) = (pipe(), line());
        let mut descriptor = Descriptor::new().unwrap();
        assert_eq!(descriptor.arm((&mut receiver, &mut callee)), None);
        let sending = give(sender, 1);
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
        let calling = thread::spawn(move || caller.call(1));
        assert_eq!(callee.recv(), Ok(1));
        callee.answer(2);
        assert_eq!(calling.join().unwrap(), Ok(2));
    }
}

model! {
    /// An event comes to a ring beside a pipe.
    event_in_ring(Orders, Lacks, Busy)
    orders [barrier_in_ring, barrier_for_all, ring_fence_of_owner, fence_for_all]
    steps [announce, look_before_sleep, ring_watcher, ring_bell]
    {
        let (_sender, mut receiver) = pipe();
        let mut builder = ring_builder();
        let mut reader = builder.reader();
        let mut writer = builder.start().unwrap();
        let writing = thread::spawn(move || {
            publish(&mut writer);
            writer
        });
        assert_eq!(select().ready((&mut receiver, &mut reader)), 1);
        take(&mut reader);
        let _writer = writing.join().unwrap();
    }
}

model! {
    /// The writer of a ring leaves.
    writer_leaves(Orders)
    steps [wake_in_ring_close, ring_watcher]
    {
        let mut builder = ring_builder();
        let mut reader = builder.reader();
        let writer = builder.start().unwrap();
        let leaving = thread::spawn(move || drop(writer));
        assert_eq!(select().ready((&mut reader,)), 0);
        assert_eq!(reader.try_recv_batch().unwrap_err(), TryRecvError::Disconnected);
        leaving.join().unwrap();
    }
}

model! {
    /// The reader after which one comes leaves, or reads the event.
    behind_a_reader_that_leaves(Orders)
    steps [ring_watcher, wake_in_ring_leave]
    {
        let mut builder = ring_builder();
        let first = builder.reader();
        let mut last = builder.reader_after([&first]);
        let mut writer = builder.start().unwrap();
        publish(&mut writer);
        let leaving = thread::spawn(move || drop(first));
        assert_eq!(select().ready((&mut last,)), 0);
        take(&mut last);
        leaving.join().unwrap();
    }
}

model! {
    /// A reader comes after two others, which read an event in whatever order.
    behind_two_readers(Orders)
    steps [watch_other]
    {
        let mut builder = ring_builder();
        let readers = [builder.reader(), builder.reader()];
        let mut last = builder.reader_after(&readers);
        let mut writer = builder.start().unwrap();
        publish(&mut writer);
        let reading = readers.map(|mut reader| thread::spawn(move || {
            take(&mut reader);
            reader
        }));
        assert_eq!(select().ready((&mut last,)), 0);
        take(&mut last);
        reading.into_iter().for_each(|reading| drop(reading.join().unwrap()));
    }
}

model! {
    /// The writer wakes one `Select`, and takes the waker of another one, which waits for a reader.
    waker_is_taken(Orders) fewer 1
    steps [ring_watcher]
    {
        let mut builder = ring_builder();
        let (mut first, mut other) = (builder.reader(), builder.reader());
        let mut last = builder.reader_after([&first]);
        let mut writer = builder.start().unwrap();
        let waiting = thread::spawn(move || {
            assert_eq!(select().ready((&mut other,)), 0);
            other
        });
        let working = thread::spawn(move || {
            publish(&mut writer);
            take(&mut first);
            (writer, first)
        });
        assert_eq!(select().ready((&mut last,)), 0);
        take(&mut last);
        drop(waiting.join().unwrap());
        drop(working.join().unwrap());
    }
}

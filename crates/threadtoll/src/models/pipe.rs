//! The pipe. A frame holds two messages, a ring for a capacity of one or two has five frames, and a
//! chunk has two and the one that ends it.

use std::ops::Range;
use std::time::Duration;

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::pipe::{Options, Receiver, Sender};
use crate::wait::Wait::{self, Adaptive, Park, SpinYield};

/// With a ring that need not grow.
fn bounded<T: Send>(wait: Wait, capacity: usize) -> (Sender<T>, Receiver<T>) {
    Options::new().wait(wait).reserve().bounded(capacity)
}

fn unbounded<T: Send>(wait: Wait) -> (Sender<T>, Receiver<T>) {
    Options::new().wait(wait).unbounded()
}

fn give(sender: &mut Sender<usize>, numbers: Range<usize>) {
    numbers.for_each(|number| sender.send(number).unwrap());
}

/// Sends these numbers, each of which is received at once.
fn pass(sender: &mut Sender<usize>, receiver: &mut Receiver<usize>, numbers: Range<usize>) {
    for number in numbers {
        sender.send(number).unwrap();
        assert_eq!(receiver.try_recv(), Ok(number));
    }
}

/// Sends a slice, and receives it.
fn pass_slice<const N: usize>(
    sender: &mut Sender<usize>,
    receiver: &mut Receiver<usize>,
    numbers: [usize; N],
) {
    sender.send_slice(&numbers).unwrap();
    assert!(numbers.iter().all(|number| receiver.try_recv() == Ok(*number)));
}

/// Receives these numbers without sleeping.
fn take(receiver: &mut Receiver<usize>, numbers: Range<usize>) {
    for number in numbers {
        loop {
            match receiver.try_recv() {
                Ok(received) => break assert_eq!(received, number),
                Err(error) => assert_eq!(error, TryRecvError::Empty),
            }
            thread::yield_now();
        }
    }
}

model! {
    /// Three messages, past the end of a frame.
    hand_over(Refuses)
    orders [publish, publish_close, see_header, see_next_header]
    {
        let (mut sender, mut receiver) = unbounded(SpinYield);
        let sending = thread::spawn(move || give(&mut sender, 0..3));
        take(&mut receiver, 0..3);
        sending.join().unwrap();
    }
}

model! {
    /// A full pipe wraps around: the sender overwrites what the receiver has just read.
    wrap_around(Refuses) fewer 1
    orders [see_taken, tell_taken]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 8);
        give(&mut sender, 0..8);
        let sending = thread::spawn(move || (8..17).all(|number| sender.try_send(number).is_ok()));
        for number in 0..9 {
            match receiver.try_recv() {
                Ok(received) => assert_eq!(received, number),
                Err(_) => break,
            }
        }
        sending.join().unwrap();
    }
}

model! {
    /// A frame where a run of the last lap has left what looks like a header.
    old_header(Refuses)
    steps [clear_behind]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 16);
        // The run is in units 0 and 1, of 13.
        pass_slice(&mut sender, &mut receiver, [0, 1, 2, 3]);
        pass(&mut sender, &mut receiver, 4..26);
        let sending = thread::spawn(move || give(&mut sender, 26..29));
        take(&mut receiver, 26..29);
        sending.join().unwrap();
    }
}

model! {
    /// A slice becomes one long run. The unit after it has what looks like a header, from a run of
    /// the last lap; it is not among those that were cleared before.
    long_run(Refuses)
    orders [publish_run]
    steps [clear_behind_run]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 32);
        pass(&mut sender, &mut receiver, 0..8);
        // The first run is in units 4 and 5, the second in 3 and 4, of 23.
        pass_slice(&mut sender, &mut receiver, [8, 9, 10, 11]);
        pass(&mut sender, &mut receiver, 12..52);
        let sending = thread::spawn(move || {
            sender.send_slice(&[52, 53, 54, 55]).unwrap();
            sender.send(56).unwrap();
        });
        take(&mut receiver, 52..57);
        sending.join().unwrap();
    }
}

model! {
    /// A slice goes into the rest of a frame and the next two, which are published first.
    slice_in_frames(Refuses)
    orders [publish, see_next_header]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 16);
        pass(&mut sender, &mut receiver, 0..3);
        let sending = thread::spawn(move || sender.send_slice(&[3, 4, 5, 6]).unwrap());
        take(&mut receiver, 3..7);
        sending.join().unwrap();
    }
}

model! {
    /// From the ring into a chunk, and back again; the chunk is freed.
    chunk_and_back(Refuses)
    steps [back_to_ring, tell_open, clear_in_segment]
    {
        let (mut sender, mut receiver) = Options::new().wait(SpinYield).retain(0).unbounded();
        give(&mut sender, 0..6);
        take(&mut receiver, 0..3);
        let sending = thread::spawn(move || {
            give(&mut sender, 6..7);
            sender
        });
        take(&mut receiver, 3..6);
        assert!(receiver.len() <= 1);
        let mut sender = sending.join().unwrap();
        assert_eq!(receiver.len(), 1);
        give(&mut sender, 7..12);
        take(&mut receiver, 6..12);
    }
}

model! {
    /// The ring grows while the receiver reads the old one, which it then frees.
    growing_ring(Refuses) fewer 1
    orders [publish_jump]
    steps [clear_in_segment]
    {
        let (mut sender, mut receiver) = Options::new().wait(SpinYield).bounded(8);
        give(&mut sender, 0..2);
        let sending = thread::spawn(move || {
            give(&mut sender, 2..5);
            sender
        });
        take(&mut receiver, 0..5);
        assert_eq!(receiver.len(), 0);
        sending.join().unwrap();
    }
}

model! {
    /// Back in the ring, where a run before the chunk has left what looks like a header.
    old_header_in_ring(Refuses)
    steps [is_dirty]
    {
        let (mut sender, mut receiver) = Options::new().wait(SpinYield).segment(1).unbounded();
        // The run is in units 0 and 1, of 13.
        pass_slice(&mut sender, &mut receiver, [0, 1, 2, 3]);
        give(&mut sender, 4..24);
        // The last four are in a chunk.
        take(&mut receiver, 4..24);
        pass(&mut sender, &mut receiver, 24..28);
        let sending = thread::spawn(move || give(&mut sender, 28..31));
        take(&mut receiver, 28..31);
        sending.join().unwrap();
    }
}

model! {
    /// The sender reuses a chunk that the receiver has just given back.
    spare_chunk(Refuses) fewer 1
    orders [give_spare, take_spare]
    {
        let (mut sender, mut receiver) = unbounded(SpinYield);
        // Fills the ring, a chunk, and half of another one.
        give(&mut sender, 0..8);
        take(&mut receiver, 0..5);
        let sending = thread::spawn(move || give(&mut sender, 8..12));
        take(&mut receiver, 5..12);
        sending.join().unwrap();
    }
}

model! {
    /// The receiver sleeps, or is about to, when a message comes.
    sleeping_receiver(Orders, Lacks, Busy)
    orders [barrier_in_send, fence_without_membarrier, fence_of_sleeper, announce]
    steps [look_before_sleep, expected_word]
    {
        let (mut sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            give(&mut sender, 0..2);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Ok(1));
        sending.join().unwrap();
    }
}

model! {
    /// As `sleeping_receiver`, but the receiver spins before it sleeps.
    adaptive_receiver(Orders)
    orders [barrier_in_send]
    steps [look_before_sleep]
    {
        let (mut sender, mut receiver) = unbounded(Adaptive);
        let sending = thread::spawn(move || {
            give(&mut sender, 0..2);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Ok(1));
        sending.join().unwrap();
    }
}

model! {
    /// The kernel has refused the barrier since the queue was created: the receiver naps.
    napping_receiver(Refuses)
    orders [announce]
    {
        let (mut sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            give(&mut sender, 0..1);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The sender sleeps, or is about to, when room is made.
    sleeping_sender(Orders, Lacks, Busy)
    orders [barrier_in_recv, fence_without_membarrier, announce]
    steps [look_before_sleep]
    {
        let (mut sender, mut receiver) = bounded(Park, 1);
        sender.send(0).unwrap();
        let sending = thread::spawn(move || give(&mut sender, 1..2));
        // After this the receiver does nothing more.
        take(&mut receiver, 0..1);
        sending.join().unwrap();
    }
}

model! {
    /// Both ends sleep in turn.
    both_sleep(Orders)
    orders [barrier_in_send]
    steps [look_before_sleep]
    {
        let (mut sender, mut receiver) = bounded(Park, 1);
        let sending = thread::spawn(move || give(&mut sender, 0..3));
        (0..3).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
        assert_eq!(receiver.recv(), Err(RecvError));
        sending.join().unwrap();
    }
}

model! {
    /// The sender leaves while the receiver sleeps, or is about to.
    sender_leaves(Orders, Lacks)
    steps [wake_in_close]
    {
        let (mut sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || give(&mut sender, 0..1));
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Err(RecvError));
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while the sender sleeps for want of room, or is about to. Dropping
    /// messages makes room, so the send may succeed, and its message is dropped as well.
    receiver_leaves_full(Orders)
    steps [wake_in_leave, see_receiver_gone]
    {
        tally(2);
        let (mut sender, receiver) = bounded(Park, 1);
        sender.send(Message(0)).unwrap();
        let sending = thread::spawn(move || drop(sender.send(Message(1))));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The receiver leaves, and the sender overwrites what it has just read, before it notices.
    /// These messages have no destructor, so the receiver needs no barrier.
    receiver_leaves_room(Orders) fewer 1
    orders [tell_taken_in_leave]
    {
        let (mut sender, receiver) = bounded(SpinYield, 10);
        give(&mut sender, 0..10);
        let sending = thread::spawn(move || (10..19).for_each(|number| {
            let _ = sender.try_send(number);
        }));
        drop(receiver);
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while messages are being sent: each is received, dropped or handed back
    /// while the sender lives. (loom has no notion of time, so `tests/membarrier.rs` checks that a
    /// nap replaces a barrier that the kernel refuses.)
    receiver_leaves(Orders, Lacks)
    orders [sent_late, drained, barrier_in_send, barrier_in_leave, fence_without_membarrier, fence_of_sleeper, idle]
    steps [not_taken]
    {
        tally(3);
        let (mut sender, mut receiver) = unbounded(SpinYield);
        let sending = thread::spawn(move || {
            for number in 0..3 {
                if let Err(error) = sender.send(Message(number)) {
                    assert_eq!(error.into_inner().0, number);
                }
            }
            sender
        });
        drop(receiver.try_recv());
        drop(receiver);
        let sender = sending.join().unwrap();
        settled();
        drop(sender);
    }
}

model! {
    /// As `receiver_leaves`, but the pipe carries a single message, for which there may be no
    /// barrier.
    receiver_leaves_at_once(Orders, Lacks)
    orders [barrier_in_send, barrier_in_leave, first_send]
    {
        tally(1);
        let (mut sender, receiver) = bounded(SpinYield, 1);
        let sending = thread::spawn(move || {
            drop(sender.send(Message(0)));
            sender
        });
        drop(receiver);
        let sender = sending.join().unwrap();
        settled();
        drop(sender);
    }
}

model! {
    /// The receiver sleeps without a barrier before the first message is sent.
    sleeping_before_the_first(Orders, Refuses)
    orders [first_send]
    {
        let (mut sender, mut receiver) = bounded(Park, 1);
        let sending = thread::spawn(move || {
            give(&mut sender, 0..1);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while the sender goes into a chunk.
    receiver_leaves_chunks(Orders)
    orders [publish_jump]
    steps [not_taken]
    {
        tally(4);
        let (mut sender, receiver) = unbounded(SpinYield);
        let sending = thread::spawn(move || (0..4).for_each(|number| drop(sender.send(Message(number)))));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// Both leave at once, with messages in a chunk.
    both_leave(Refuses)
    steps [not_taken]
    {
        tally(5);
        let (mut sender, receiver) = unbounded(Park);
        (0..4).for_each(|number| sender.send(Message(number)).unwrap());
        let sending = thread::spawn(move || drop(sender.send(Message(4))));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The receiver times out just as a message comes, and receives it now or later.
    timeout(Orders, Lacks)
    orders [publish, see_header]
    {
        let (mut sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            give(&mut sender, 0..2);
            sender
        });
        let mut next = 0;
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(number) => {
                assert_eq!(number, 0);
                next = 1;
            }
            Err(error) => assert_eq!(error, RecvTimeoutError::Timeout),
        }
        (next..2).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
        sending.join().unwrap();
    }
}

model! {
    /// The sender times out just as room is made.
    timeout_of_sender(Orders)
    orders [barrier_in_recv]
    {
        let (mut sender, mut receiver) = bounded(Park, 1);
        sender.send(0).unwrap();
        let sending = thread::spawn(move || {
            if sender.send_timeout(1, Duration::from_secs(1)).is_err() {
                sender.send(1).unwrap();
            }
            sender
        });
        take(&mut receiver, 0..1);
        sending.join().unwrap();
        take(&mut receiver, 1..2);
    }
}

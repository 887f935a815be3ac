//! The pipe. A frame holds two messages, home five frames for a capacity of one or two, a chunk two frames and the one that ends it.

use std::ops::Range;
use std::time::Duration;

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::pipe::{Options, Receiver, Sender};
use crate::wait::{Adaptive, Park, SpinYield, Wait};

fn bounded<T: Send, W: Wait>(wait: W, capacity: usize) -> (Sender<T, W>, Receiver<T, W>) {
    Options::new().wait(wait).bounded(capacity)
}

fn unbounded<T: Send, W: Wait>(wait: W) -> (Sender<T, W>, Receiver<T, W>) {
    Options::new().wait(wait).unbounded()
}

fn give<W: Wait>(sender: &mut Sender<usize, W>, numbers: Range<usize>) {
    numbers.for_each(|number| sender.send(number).unwrap());
}

/// Receives these numbers without sleeping.
fn take<W: Wait>(receiver: &mut Receiver<usize, W>, numbers: Range<usize>) {
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
    /// Three messages, through the end of a frame.
    hand_over(Refuses)
    orders [publish, publish_record, see_header, see_next_header]
    steps [zero_first, zero_second]
    {
        let (mut sender, mut receiver) = unbounded(SpinYield);
        let sending = thread::spawn(move || give(&mut sender, 0..3));
        take(&mut receiver, 0..3);
        sending.join().unwrap();
    }
}

model! {
    /// A full pipe goes round: the sender looks for room, and writes where the receiver has just read.
    round_home(Refuses) fewer 1
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
    /// The same where the sender waits for room, which is told by another word.
    round_home_waiting(Refuses) fewer 1
    orders [see_room, tell_room]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 8);
        give(&mut sender, 0..8);
        let sending = thread::spawn(move || give(&mut sender, 8..17));
        (0..8).for_each(|number| assert_eq!(receiver.try_recv(), Ok(number)));
        take(&mut receiver, 8..11);
        sending.join().unwrap();
        take(&mut receiver, 11..17);
    }
}

model! {
    /// A frame whose header still tells of older messages.
    old_header(Refuses)
    steps [zero_behind_record]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 4);
        for number in 0..15 {
            sender.send(number).unwrap();
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        let sending = thread::spawn(move || give(&mut sender, 15..17));
        take(&mut receiver, 15..17);
        sending.join().unwrap();
    }
}

model! {
    /// A slice becomes one long record, where shorter ones lay before.
    long_record(Refuses)
    orders [publish_record]
    steps [zero_behind_long_record]
    {
        let (mut sender, mut receiver) = bounded(SpinYield, 16);
        for number in 0..30 {
            sender.send(number).unwrap();
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        let sending = thread::spawn(move || {
            sender.send_slice(&[30, 31, 32, 33]).unwrap();
            sender.send(34).unwrap();
        });
        take(&mut receiver, 30..35);
        sending.join().unwrap();
    }
}

model! {
    /// From home into a chunk, and home again; the chunk is freed.
    chunk_and_back(Refuses)
    steps [go_home, tell_progress, zero_in_segment]
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
    /// The sender takes a chunk again that the receiver has just given back.
    spare_chunk(Refuses) fewer 1
    orders [give_spare, take_spare]
    {
        let (mut sender, mut receiver) = unbounded(SpinYield);
        // Home, a whole chunk, and half of another one.
        give(&mut sender, 0..8);
        take(&mut receiver, 0..5);
        let sending = thread::spawn(move || give(&mut sender, 8..12));
        take(&mut receiver, 5..12);
        sending.join().unwrap();
    }
}

model! {
    /// Both ends free what is kept, while the receiver gives a chunk back.
    trim(Refuses)
    orders [give_spare, trim_spare]
    {
        let (mut sender, mut receiver) = unbounded(SpinYield);
        // Home, two chunks, and the first message of another one.
        give(&mut sender, 0..10);
        take(&mut receiver, 0..6);
        let sending = thread::spawn(move || sender.trim());
        take(&mut receiver, 6..10);
        receiver.trim();
        sending.join().unwrap();
    }
}

model! {
    /// The receiver sleeps, or is about to, when a message comes.
    sleeping_receiver(Orders, Lacks)
    orders [barrier_in_send, fence_without_membarrier, announce]
    steps [look_before_sleep, said]
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
    /// The same where it looks a while before it sleeps.
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
    /// The kernel refuses the barrier after the queue was made: the receiver naps.
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
    /// Quiet messages come to a sleeping receiver when they are flushed.
    flush(Orders, Lacks)
    orders [barrier_in_flush, fence_without_membarrier]
    {
        let (mut sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            sender.send_quiet(0).unwrap();
            sender.flush();
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// The sender sleeps, or is about to, when there is room.
    sleeping_sender(Orders, Lacks)
    orders [barrier_in_recv, fence_without_membarrier, announce]
    steps [look_before_sleep]
    {
        let (mut sender, mut receiver) = bounded(Park, 1);
        sender.send(0).unwrap();
        let sending = thread::spawn(move || give(&mut sender, 1..3));
        take(&mut receiver, 0..3);
        sending.join().unwrap();
    }
}

model! {
    /// Both sleep by turns.
    both_sleep(Orders)
    orders [barrier_in_recv]
    {
        let (mut sender, mut receiver) = bounded(Park, 1);
        let sending = thread::spawn(move || give(&mut sender, 0..3));
        (0..3).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
        assert_eq!(receiver.recv(), Err(RecvError::Disconnected));
        sending.join().unwrap();
    }
}

model! {
    /// The sender leaves while the receiver sleeps, or is about to.
    sender_leaves(Orders, Lacks)
    orders [barrier_in_close, fence_without_membarrier]
    steps [wake_in_close]
    {
        let (mut sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || give(&mut sender, 0..1));
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Err(RecvError::Disconnected));
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while the sender sleeps for want of room, or is about to. What it drops makes room: a send that finds that has
    /// come in time, and its message is dropped as well.
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
    /// The receiver leaves, and the sender, which finds room before it finds that, writes where the receiver has just read.
    receiver_leaves_room(Orders)
    orders [tell_taken_in_leave]
    {
        tally(19);
        let (mut sender, receiver) = bounded(SpinYield, 10);
        (0..10).for_each(|number| sender.send(Message(number)).unwrap());
        let sending = thread::spawn(move || (10..19).for_each(|number| drop(sender.try_send(Message(number)))));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The receiver leaves while messages are being sent: each is received, dropped or handed back.
    receiver_leaves(Refuses, Lacks) fewer 1
    orders [sent_late, drained]
    steps [not_taken]
    {
        tally(4);
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
        let mut sender = sending.join().unwrap();
        assert!(sender.send(Message(3)).is_err());
        drop(sender);
        settled();
    }
}

model! {
    /// The receiver leaves while the sender goes into a chunk.
    receiver_leaves_chunks(Refuses) fewer 1
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
    /// The time is over just when a message comes: it is received, now or with the next look.
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
    /// The time of a sender is over just when there is room.
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
        take(&mut receiver, 0..2);
        sending.join().unwrap();
    }
}

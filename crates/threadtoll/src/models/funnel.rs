//! The funnel. A chunk holds two messages.

use std::ops::Range;
use std::time::Duration;

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::funnel::{Ceiling, Options, Receiver, Sender};
use crate::wait::{Park, SpinYield, Wait};

fn unbounded<T: Send, W: Wait>(wait: W) -> (Sender<T, W>, Receiver<T, W>) {
    Options::new().wait(wait).build()
}

fn give<W: Wait>(sender: &Sender<usize, W>, numbers: Range<usize>) {
    numbers.for_each(|number| sender.send(number).unwrap());
}

/// Receives so many messages without sleeping.
fn take<W: Wait>(receiver: &mut Receiver<usize, W>, count: usize) -> Vec<usize> {
    let mut taken = Vec::new();
    while taken.len() < count {
        match receiver.try_recv() {
            Ok(number) => taken.push(number),
            Err(error) => {
                assert!(matches!(error, TryRecvError::Empty | TryRecvError::Pending));
                thread::yield_now();
            }
        }
    }
    taken
}

/// Whether what one sender sent came in its order.
fn in_order(taken: &[usize], sent: Range<usize>) {
    assert!(taken.iter().copied().filter(|number| sent.contains(number)).eq(sent.clone()));
}

model! {
    /// One sender, into a second chunk.
    hand_over(Refuses)
    orders [stamp, see_stamp]
    {
        let (sender, mut receiver) = unbounded(SpinYield);
        let sending = thread::spawn(move || give(&sender, 0..3));
        assert_eq!(take(&mut receiver, 3), [0, 1, 2]);
        sending.join().unwrap();
    }
}

model! {
    /// Two senders, through the end of a chunk.
    two_senders(Refuses)
    orders [stamp, see_stamp, link, see_latest, move_latest]
    {
        let (sender, mut receiver) = unbounded(SpinYield);
        let other = sender.clone();
        let sending = thread::spawn(move || give(&sender, 0..2));
        give(&other, 10..12);
        let taken = take(&mut receiver, 4);
        in_order(&taken, 0..2);
        in_order(&taken, 10..12);
        sending.join().unwrap();
    }
}

model! {
    /// The receiver gives a chunk back while a sender that is held up may still come across it.
    reclaim(Refuses)
    orders [note_cutoff, draw]
    steps [wait_for_cutoff]
    {
        let (sender, mut receiver) = Options::new().wait(SpinYield).retain(0).build();
        // A chunk, and the next one linked behind it.
        give(&sender, 0..2);
        let sending = thread::spawn(move || give(&sender, 2..4));
        assert_eq!(take(&mut receiver, 3), [0, 1, 2]);
        sending.join().unwrap();
    }
}

model! {
    /// The same with two senders, of which one moves on where the other is held up.
    reclaim_from_two(Refuses) fewer 1
    orders [note_cutoff]
    steps [wait_for_cutoff]
    {
        let (sender, mut receiver) = Options::new().wait(SpinYield).retain(0).build();
        let other = sender.clone();
        give(&sender, 0..2);
        let sending = thread::spawn(move || give(&other, 10..11));
        let more = thread::spawn(move || give(&sender, 2..3));
        let mut taken = Vec::new();
        (0..3).for_each(|_| taken.extend(receiver.try_recv()));
        sending.join().unwrap();
        more.join().unwrap();
        taken.extend(receiver.try_iter());
        in_order(&taken, 0..3);
        assert_eq!(taken.len(), 4);
    }
}

model! {
    /// A sender takes a chunk again that was just given back.
    spare_chunk(Refuses) fewer 1
    orders [give_spare_chunk, take_spare_chunk]
    {
        let (sender, mut receiver) = unbounded(SpinYield);
        give(&sender, 0..3);
        let sending = thread::spawn(move || give(&sender, 3..7));
        let mut taken: Vec<_> = (0..5).flat_map(|_| receiver.try_recv()).collect();
        sending.join().unwrap();
        taken.extend(receiver.try_iter());
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6]);
    }
}

model! {
    /// The receiver sleeps, or is about to, when messages come.
    sleeping_receiver(Refuses)
    steps [park_at_head, said]
    {
        let (sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            give(&sender, 0..2);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Ok(1));
        sending.join().unwrap();
    }
}

model! {
    /// The same with two senders, of which one may be held up in the midst of its send.
    sleeping_receiver_of_two(Refuses) fewer 1
    steps [park_at_head]
    {
        let (sender, mut receiver) = unbounded(Park);
        let other = sender.clone();
        let sending = thread::spawn(move || {
            give(&sender, 0..1);
            sender
        });
        let more = thread::spawn(move || {
            give(&other, 1..2);
            other
        });
        let mut taken = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        taken.sort_unstable();
        assert_eq!(taken, [0, 1]);
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// The last sender leaves while the receiver sleeps, or is about to.
    senders_leave(Refuses)
    steps [wake_by_last_sender]
    {
        let (sender, mut receiver) = unbounded(Park);
        let other = sender.clone();
        let sending = thread::spawn(move || give(&sender, 0..1));
        let more = thread::spawn(move || drop(other));
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Err(RecvError::Disconnected));
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// The receiver leaves while two senders send: each message is received, dropped or handed back.
    receiver_leaves(Refuses) fewer 1
    steps [see_closed]
    {
        tally(4);
        let (sender, mut receiver) = unbounded(SpinYield);
        let other = sender.clone();
        let sending = thread::spawn(move || (0..2).for_each(|number| drop(sender.send(Message(number)))));
        let more = thread::spawn(move || {
            drop(other.send(Message(2)));
            other
        });
        drop(receiver.try_recv());
        drop(receiver);
        sending.join().unwrap();
        assert!(more.join().unwrap().send(Message(3)).is_err());
        settled();
    }
}

model! {
    /// A sender sleeps at the ceiling, or is about to, when there is room.
    ceiling(Orders, Lacks)
    orders [barrier_in_funnel_recv, funnel_fence_without_membarrier]
    {
        let (sender, mut receiver) = Options::new().wait(Park).ceiling(1, Ceiling::Wait).build();
        give(&sender, 0..1);
        let sending = thread::spawn(move || {
            give(&sender, 1..2);
            sender
        });
        assert_eq!(take(&mut receiver, 2), [0, 1]);
        sending.join().unwrap();
    }
}

model! {
    /// A place at the ceiling is claimed and given up: whoever waits for room must learn of it, from a receiver that may be asleep.
    claim_given_up(Orders, Lacks)
    orders [funnel_fence_without_membarrier]
    steps [wake_by_claim, tell_passed]
    {
        let (sender, mut receiver) = Options::new().wait(Park).ceiling(1, Ceiling::Wait).build();
        let sending = thread::spawn(move || {
            drop(sender.claim().unwrap());
            give(&sender, 0..1);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

/// An iterator that gives one message fewer than it says.
struct Short(usize);

impl Iterator for Short {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0 -= 1;
        (self.0 > 0).then_some(self.0)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0, Some(self.0))
    }
}

impl ExactSizeIterator for Short {}

model! {
    /// A batch gives fewer messages than it drew tickets for, while the receiver sleeps, or is about to.
    short_batch(Refuses)
    orders [stamp, see_stamp]
    steps [wake_by_batch]
    {
        let (sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            assert!(sender.send_all(Short(3)).is_ok());
            sender
        });
        assert_eq!(receiver.recv(), Ok(2));
        assert_eq!(receiver.recv(), Ok(1));
        sending.join().unwrap();
    }
}

model! {
    /// A batch that gives nothing at all, at a ceiling that it fills.
    empty_batch(Orders)
    steps [wake_by_batch, tell_passed]
    {
        let (sender, mut receiver) = Options::new().wait(Park).ceiling(1, Ceiling::Wait).build();
        let sending = thread::spawn(move || {
            assert!(sender.send_all(Short(1)).is_ok());
            give(&sender, 0..1);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        sending.join().unwrap();
    }
}

model! {
    /// A sender frees what is kept while the receiver gives a chunk back.
    trim(Refuses)
    orders [give_spare_chunk, trim_spare_chunk]
    {
        let (sender, mut receiver) = unbounded(SpinYield);
        give(&sender, 0..5);
        let sending = thread::spawn(move || sender.trim());
        assert_eq!(take(&mut receiver, 5), [0, 1, 2, 3, 4]);
        receiver.trim();
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while senders sleep at the ceiling, or are about to.
    receiver_leaves_ceiling(Orders)
    steps [wake_senders_in_leave]
    {
        tally(2);
        let (sender, receiver) = Options::new().wait(Park).ceiling(1, Ceiling::Wait).build();
        sender.send(Message(0)).unwrap();
        let sending = thread::spawn(move || assert!(sender.send(Message(1)).is_err()));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The time is over just when a message comes.
    timeout(Refuses)
    orders [stamp, see_stamp]
    {
        let (sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            give(&sender, 0..1);
            sender
        });
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(number) => assert_eq!(number, 0),
            Err(error) => {
                assert_eq!(error, RecvTimeoutError::Timeout);
                assert_eq!(receiver.recv(), Ok(0));
            }
        }
        sending.join().unwrap();
    }
}

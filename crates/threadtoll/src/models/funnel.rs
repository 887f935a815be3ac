//! The funnel. A chunk holds two messages.

use std::ops::Range;
use std::time::Duration;

use super::checker::thread;
use super::{Message, is_dropped, model, settled, tally};
use crate::error::{RecvError, RecvTimeoutError, SendTimeoutError, TryRecvError};
use crate::funnel::{Options, Receiver, Sender};
use crate::sync::{Arc, AtomicUsize, Ordering, count_looks_at, looks};
use crate::wait::Wait::{self, Park, SpinYield};

fn unbounded<T: Send>(wait: Wait) -> (Sender<T>, Receiver<T>) {
    Options::new().wait(wait).unbounded()
}

fn give(sender: &Sender<usize>, numbers: Range<usize>) {
    numbers.for_each(|number| sender.send(number).unwrap());
}

/// Receives `count` messages without sleeping.
fn take(receiver: &mut Receiver<usize>, count: usize) -> Vec<usize> {
    let mut taken = Vec::new();
    while taken.len() < count {
        match receiver.try_recv() {
            Ok(number) => taken.push(number),
            Err(error) => {
                assert!(matches!(error, TryRecvError::Empty));
                thread::yield_now();
            }
        }
    }
    taken
}

/// Asserts that the messages of one sender came in order.
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
    /// The receiver gives a chunk back while a stopped sender may still reach it.
    reclaim(Refuses)
    orders [note_cutoff, draw]
    steps [wait_for_cutoff]
    {
        let (sender, mut receiver) = Options::new().wait(SpinYield).retain(0).unbounded();
        // Fills a chunk, and links the next one.
        give(&sender, 0..2);
        let sending = thread::spawn(move || give(&sender, 2..4));
        assert_eq!(take(&mut receiver, 3), [0, 1, 2]);
        sending.join().unwrap();
    }
}

model! {
    /// As `reclaim`, but with two senders, of which one continues while the other is stopped.
    reclaim_from_two(Refuses) fewer 1
    orders [note_cutoff]
    steps [wait_for_cutoff]
    {
        let (sender, mut receiver) = Options::new().wait(SpinYield).retain(0).unbounded();
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
    /// A sender reuses a chunk that was just given back.
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
    steps [park_at_head, expected_word]
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
    /// As `sleeping_receiver`, but with two senders, one of which may be stopped in mid-send.
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
    /// The receiver sleeps behind a send in progress, which wakes it.
    send_in_progress(Orders, Lacks, Busy)
    orders [barrier_in_funnel_send, barrier_behind, fence_of_sender, fence_of_receiver]
    steps [say_behind, wake_from_behind]
    {
        let (sender, mut receiver) = unbounded(Park);
        let complete = sender.begin_send();
        let receiving = thread::spawn(move || receiver.recv());
        complete(0).unwrap();
        assert_eq!(receiving.join().unwrap(), Ok(0));
    }
}

model! {
    /// As `send_in_progress`, with a second sender, whose send may complete first.
    sends_in_progress(Orders) fewer 1
    orders [barrier_in_funnel_send, barrier_behind]
    steps [say_behind, wake_from_behind]
    {
        let (sender, mut receiver) = unbounded(Park);
        let other = sender.clone();
        let complete = sender.begin_send();
        let sending = thread::spawn(move || {
            give(&other, 1..2);
            other
        });
        let receiving = thread::spawn(move || [receiver.recv(), receiver.recv()]);
        complete(0).unwrap();
        assert_eq!(receiving.join().unwrap(), [Ok(0), Ok(1)]);
        sending.join().unwrap();
    }
}

model! {
    /// The receiver sleeps behind a batch in progress that has fewer messages than tickets.
    short_batch_in_progress(Orders, Lacks, Busy)
    orders [barrier_in_funnel_send, fence_of_sender, announce_anew]
    steps [wake_by_void]
    {
        let (sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || {
            assert!(sender.send_all(Short(2)).is_ok());
            give(&sender, 5..6);
            sender
        });
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv(), Ok(5));
        sending.join().unwrap();
    }
}

model! {
    /// As `short_batch_in_progress`, and the sender leaves after it.
    short_batch_is_the_last(Orders, Busy)
    steps [park_again]
    {
        let (sender, mut receiver) = unbounded(Park);
        let sending = thread::spawn(move || assert!(sender.send_all(Short(1)).is_ok()));
        assert_eq!(receiver.recv(), Err(RecvError));
        sending.join().unwrap();
    }
}

model! {
    /// The last sender leaves while the receiver polls.
    senders_leave_while_polled(Refuses)
    orders [say_senders_gone, see_senders_gone]
    {
        let (sender, mut receiver) = unbounded(SpinYield);
        let sending = thread::spawn(move || give(&sender, 0..1));
        assert_eq!(take(&mut receiver, 1), [0]);
        while receiver.try_recv() != Err(TryRecvError::Disconnected) {
            thread::yield_now();
        }
        sending.join().unwrap();
    }
}

model! {
    /// A receiver that finds nothing does not look at the line that senders write.
    empty_polls(Refuses)
    steps [spare_tail]
    {
        let (sender, mut receiver) = unbounded(SpinYield);
        count_looks_at(receiver.tail());
        // shuttle wants a second thread.
        let other = thread::spawn(thread::yield_now);
        (0..3).for_each(|_| assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty)));
        assert_eq!(looks(), 0);
        other.join().unwrap();
        give(&sender, 0..1);
        assert!(looks() > 0, "a send draws a ticket there");
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
        assert_eq!(receiver.recv(), Err(RecvError));
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// A weak sender is upgraded while the last sender leaves: its message arrives before the
    /// disconnection.
    weak_sender(Refuses)
    steps [upgrade_only_senders]
    {
        let (sender, mut receiver) = unbounded(Park);
        let weak = sender.downgrade();
        let sending = thread::spawn(move || {
            let Some(sender) = weak.upgrade() else { return false };
            sender.send(0).is_ok()
        });
        drop(sender);
        let received = receiver.recv();
        assert_eq!(sending.join().unwrap(), received.is_ok());
        assert_eq!(receiver.recv(), Err(RecvError));
    }
}

model! {
    /// The receiver leaves while two senders send: each message is received, dropped or handed
    /// back.
    receiver_leaves(Refuses) fewer 1
    steps [see_receiver_gone_in_draw]
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
    /// The receiver leaves while senders live: each message that was sent before is dropped at
    /// once, whatever the other sender does.
    receiver_leaves_before_senders(Refuses)
    orders [stamp, see_stamp, see_stamp_in_claim]
    steps [drop_behind_busy_sender]
    {
        tally(3);
        let (sender, receiver) = unbounded(SpinYield);
        let other = sender.clone();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let sending = thread::spawn(move || {
            for number in 0..2 {
                if sender.send(Message(number)).is_ok() {
                    // Release: a thread that sees the count sees the message.
                    count.store(number + 1, Ordering::Release);
                }
            }
            sender
        });
        other.send(Message(2)).unwrap();
        let accepted = accepted.load(Ordering::Acquire);
        drop(receiver);
        assert!(is_dropped(2) && (0..accepted).all(is_dropped));
        drop((sending.join().unwrap(), other));
        settled();
    }
}

model! {
    /// The receiver leaves while a sender is in the middle of a send: the message is dropped or
    /// handed back while the sender lives.
    receiver_leaves_amid_send(Orders)
    orders [barrier_in_funnel_send, barrier_in_funnel_leave]
    steps [claim_late, claim_once]
    {
        tally(1);
        let (sender, receiver) = unbounded(SpinYield);
        let leaving = thread::spawn(move || drop(receiver));
        drop(sender.send(Message(0)));
        leaving.join().unwrap();
        settled();
    }
}

model! {
    /// The receiver leaves while one sender sends and another is stopped in mid-send. The first may
    /// look late, for a message that the receiver has dropped.
    receiver_leaves_behind_stopped_sender(Orders) more 1
    orders [say_gone, see_signals]
    steps [late_look, claim_late]
    {
        tally(2);
        let (sender, receiver) = unbounded(SpinYield);
        let (first, stopped) = (sender.begin_send(), sender.begin_send());
        let leaving = thread::spawn(move || drop(receiver));
        drop(first(Message(0)));
        leaving.join().unwrap();
        assert!(is_dropped(0) && stopped(Message(1)).is_err());
        settled();
    }
}

model! {
    /// A sender sleeps for want of room, or is about to, when room is made.
    bounded(Orders, Lacks)
    orders [barrier_in_funnel_recv, funnel_fence_without_membarrier, funnel_fence_of_sleeper]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
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
    /// Two senders draw tickets while room is made: there are never more messages than the funnel
    /// holds.
    never_oversubscribed(Orders)
    steps [draw_only_with_room]
    {
        let (sender, mut receiver) = Options::new().wait(SpinYield).bounded(1);
        let other = sender.clone();
        let sending = thread::spawn(move || (0..2).filter(|at| sender.try_send(*at).is_ok()).count());
        let more = thread::spawn(move || usize::from(other.try_send(2).is_ok()));
        let mut taken = 0;
        for _ in 0..2 {
            assert!(receiver.len() <= 1);
            taken += usize::from(receiver.try_recv().is_ok());
        }
        let sent = sending.join().unwrap() + more.join().unwrap();
        assert!(receiver.len() <= 1);
        taken += receiver.try_iter().count();
        assert_eq!(taken, sent);
    }
}

model! {
    /// As `bounded`, but with `Options::fence`, and a kernel that refuses barriers.
    bounded_fence(Refuses)
    orders [funnel_fence_without_membarrier, funnel_fence_of_sleeper]
    {
        let (sender, mut receiver) = Options::new().wait(Park).fence().bounded(1);
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
    /// Two senders sleep for want of room, or are about to: each receive wakes one.
    bounded_two(Orders) fewer 1
    steps [more_sleep, woken_has_come]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
        let other = sender.clone();
        give(&sender, 0..1);
        let sending = thread::spawn(move || {
            give(&sender, 1..2);
            sender
        });
        let more = thread::spawn(move || {
            give(&other, 2..3);
            other
        });
        assert_eq!(take(&mut receiver, 3).iter().sum::<usize>(), 3);
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// Two senders sleep for want of room, or are about to, and one may time out just as it is
    /// woken.
    bounded_two_timeout(Orders) fewer 1
    steps [look_after_sleep]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
        let other = sender.clone();
        give(&sender, 0..1);
        let sending = thread::spawn(move || {
            let sent = sender.send_timeout(1, Duration::from_secs(1));
            assert!(sent.is_ok() || sent == Err(SendTimeoutError::Timeout(1)));
            (sender, sent.is_ok())
        });
        let more = thread::spawn(move || {
            give(&other, 2..3);
            other
        });
        assert_eq!(take(&mut receiver, 1), [0]);
        let first = take(&mut receiver, 1);
        let (_sender, sent) = sending.join().unwrap();
        if sent {
            assert_eq!(first[0] + take(&mut receiver, 1)[0], 3);
        } else {
            assert_eq!(first, [2]);
        }
        more.join().unwrap();
    }
}

model! {
    /// Room is made for both of two senders while they are about to sleep: neither does, although
    /// no message is received after that.
    room_for_two(Orders) fewer 1
    orders [epoch]
    steps [wake_for_all_room]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(2);
        let other = sender.clone();
        give(&sender, 0..2);
        let sending = thread::spawn(move || {
            give(&sender, 2..3);
            sender
        });
        let more = thread::spawn(move || {
            give(&other, 3..4);
            other
        });
        assert_eq!(take(&mut receiver, 2), [0, 1]);
        sending.join().unwrap();
        more.join().unwrap();
    }
}

model! {
    /// A woken sender is stopped before it takes its slot: a receiver that finds no message wakes
    /// the other sender.
    woken_sender_is_stopped(Orders, Refuses)
    steps [wake_for_unclaimed_room]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
        give(&sender, 0..1);
        sender.stop_a_woken_sender();
        let sending = thread::spawn(move || {
            give(&sender, 1..2);
            sender
        });
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Ok(1));
        sending.join().unwrap();
    }
}

/// An iterator that yields one message fewer than its length.
pub(super) struct Short(pub(super) usize);

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
    /// A batch has fewer messages than tickets, while the receiver sleeps, or is about to.
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
    /// A batch fills the funnel and has no messages.
    empty_batch(Orders, Lacks)
    orders [funnel_fence_without_membarrier]
    steps [wake_by_batch, tell_passed]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
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
    /// As `empty_batch`, but the receiver only peeks.
    empty_batch_and_peek(Orders)
    steps [tell_passed_by_peek]
    {
        let (sender, mut receiver) = Options::new().wait(Park).bounded(1);
        let sending = thread::spawn(move || {
            assert!(sender.send_all(Short(1)).is_ok());
            give(&sender, 0..1);
            sender
        });
        while receiver.peek().is_none() {
            thread::yield_now();
        }
        assert_eq!(receiver.peek(), Some(&0));
        sending.join().unwrap();
    }
}

model! {
    /// The receiver leaves while senders sleep for want of room, or are about to.
    receiver_leaves_full(Orders)
    steps [wake_senders_in_leave]
    {
        tally(2);
        let (sender, receiver) = Options::new().wait(Park).bounded(1);
        sender.send(Message(0)).unwrap();
        let sending = thread::spawn(move || assert!(sender.send(Message(1)).is_err()));
        drop(receiver);
        sending.join().unwrap();
        settled();
    }
}

model! {
    /// The receiver times out just as a message comes.
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

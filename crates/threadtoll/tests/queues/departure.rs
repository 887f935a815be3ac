//! A receiver that leaves between two steps of a sender. The sender learns how many messages got
//! through, and the others are dropped at once, not with the sender.

use std::sync::Arc;
use std::thread;

use threadtoll::error::SendError;
use threadtoll::pipe;

use crate::element::{Bomb, Counted, Element, Ledger, surviving};

const CAPACITY: usize = 64;

/// The number that a failed slice returns counts the messages that the receiver has received or
/// dropped.
#[test]
fn a_slice_tells_how_much_of_it_came_through() {
    let numbers: Vec<u64> = (0..10_000).collect();
    for round in 0..2_000 {
        let (mut sender, mut receiver) = pipe::bounded::<u64>(CAPACITY);
        // Messages of an earlier send do not count.
        let before = round % 5;
        sender.send_slice(&numbers[..before]).expect("there is room");
        let received = round % 300;
        let sent = thread::scope(|scope| {
            let sending = scope.spawn(|| sender.send_slice(&numbers));
            (0..before + received).for_each(|_| assert!(receiver.recv().is_ok()));
            (0..round % 70).for_each(|_| std::hint::spin_loop());
            drop(receiver);
            sending.join().expect("it does not panic")
        });
        let Err(SendError(sent)) = sent else { panic!("more was sent than received and held") };
        assert!(
            (received..=received + CAPACITY).contains(&sent),
            "{received} received, {sent} sent"
        );
        assert_eq!(sender.send_slice(&numbers), Err(SendError(0)));
        assert_eq!(sender.try_send_slice(&numbers), Err(SendError(0)));
    }
}

/// Fills a claim, and sends a part of it after the receiver has left.
fn leave_a_claim<T: Element>(before: u64, claimed: u64, sent: u64) {
    let ledger = Arc::new(Ledger::default());
    let (mut sender, mut receiver) = pipe::bounded::<T>(1024);
    for id in 0..before {
        assert!(sender.send(T::make(id, &ledger)).is_ok());
    }
    if before > 1 {
        surviving(|| drop(receiver.recv()));
    }
    let mut claim = sender.claim(claimed as usize).expect("the receiver lives");
    let sent = sent.min(claim.room().len() as u64);
    for (id, place) in (before..before + sent).zip(claim.room()) {
        place.write(T::make(id, &ledger));
    }
    surviving(|| drop(receiver));
    surviving(|| {
        // SAFETY: the first `sent` slots were written.
        let result = unsafe { claim.send(sent as usize) };
        assert_eq!(result, if sent == 0 { Ok(()) } else { Err(SendError(0)) });
    });
    // Checked while the sender lives.
    ledger.assert_settled();
    drop(sender);
    ledger.assert_settled();
}

#[test]
fn a_claim_outlives_its_receiver() {
    for before in 0..9 {
        for (claimed, sent) in [(1, 1), (3, 2), (4, 0), (40, 40), (40, 1), (124, 50), (124, 124)] {
            leave_a_claim::<Counted>(before, claimed, sent);
            leave_a_claim::<Bomb>(before, claimed, sent);
            leave_a_claim::<Box<u64>>(before, claimed, sent);
        }
    }
}

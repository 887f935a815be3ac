//! Funnels late in their lives, which nobody lives to see: just before tickets pass 32 bits, and up to the last there are.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::thread;

use super::{Ceiling, Options, Receiver, Sender};

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
    // A ticket has 60 bits.
    for from in [u64::from(u32::MAX) - MESSAGES / 2, (1 << 60) - MESSAGES - 1] {
        let (sender, receiver) = Options::new().build();
        stream(&sender, receiver, from);
        let (sender, receiver) = Options::new().ceiling(10, Ceiling::Wait).build();
        stream(&sender, receiver, from);
    }
}

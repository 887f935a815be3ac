//! Pipes late in their lives: just before a count passes 32 bits, and 60.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::thread;

use super::{Receiver, Sender, bounded, unbounded};

const MESSAGES: u64 = 100_000;

fn stream(mut sender: Sender<u64>, mut receiver: Receiver<u64>, from: u64) {
    sender.begin_at(from);
    receiver.begin_at(from);
    assert_eq!((receiver.len(), sender.len()), (0, 0));
    let sending = thread::spawn(move || {
        for number in 0..MESSAGES / 4 {
            sender.send(4 * number).unwrap();
            sender.send_slice(&[4 * number + 1, 4 * number + 2]).unwrap();
            sender.send(4 * number + 3).unwrap();
        }
    });
    for number in 0..MESSAGES {
        assert_eq!(receiver.recv(), Ok(number));
        assert!((receiver.len() as u64) < MESSAGES);
    }
    assert!(receiver.recv().is_err());
    sending.join().unwrap();
}

#[test]
fn counts_pass_32_bits_and_60() {
    for from in [u64::from(u32::MAX) - MESSAGES / 2, (1 << 60) - MESSAGES / 2] {
        let (sender, receiver) = unbounded();
        stream(sender, receiver, from);
        let (sender, receiver) = bounded(10);
        stream(sender, receiver, from);
    }
}

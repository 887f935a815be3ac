//! Rings late in their lives: just before a count passes 32 bits, and 60.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::thread;

use super::{Builder, Reader};

const EVENTS: u64 = 10_000;

fn check(mut reader: Reader<u64>, from: u64) {
    let mut next = 0;
    while let Ok(batch) = reader.recv_batch() {
        assert_eq!(batch.first_number(), from + next);
        for event in &batch {
            assert_eq!(*event, next);
            next += 1;
        }
    }
    assert_eq!(next, EVENTS);
}

#[test]
fn counts_pass_32_bits_and_60() {
    for from in [u64::from(u32::MAX) - EVENTS / 2, (1 << 60) - EVENTS / 2] {
        for capacity in [1, 10, 1000] {
            let mut builder = Builder::new(capacity, || 0);
            let mut first = builder.reader();
            let mut second = builder.reader_after([&first]);
            let mut writer = builder.start().unwrap();
            first.begin_at(from);
            second.begin_at(from);
            writer.begin_at(from);
            assert_eq!((first.lag(), second.lag(), writer.lag()), (0, 0, 0));
            let readers = [first, second].map(|reader| thread::spawn(move || check(reader, from)));
            let mut next = 0;
            while next < EVENTS {
                let count = (next % 13 + 1).min(EVENTS - next).min(capacity as u64);
                let first = next;
                writer
                    .publish_many(count as usize, |index, event| *event = first + index as u64)
                    .unwrap();
                next += count;
                assert!(writer.lag() <= capacity as u64);
            }
            drop(writer);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        }
    }
}

//! Slices and single messages that look like headers, through rings, so that each place of memory
//! holds a header in one lap and a message in another.

use std::mem::MaybeUninit;

use threadtoll::pipe::{Options, Receiver, Sender};

/// As a header, it counts more messages than were ever sent.
fn message(number: u64) -> u64 {
    (number + 1) << 20
}

/// Numbers that repeat with the seed.
struct Dice(u64);

impl Dice {
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

/// Sends and receives in turns, by all means, until `messages` were received.
fn pass(
    dice: &mut Dice,
    sender: &mut Sender<u64>,
    receiver: &mut Receiver<u64>,
    (most_ahead, longest, messages): (usize, usize, u64),
) {
    let (mut sent, mut received) = (0, 0);
    while received < messages {
        match dice.below(6) {
            0 => sent += u64::from(sender.try_send(message(sent)).is_ok()),
            1 => {
                let Ok(mut claim) = sender.try_claim(1 + dice.below(longest)) else { continue };
                let places = claim.room();
                places.fill(MaybeUninit::new(u64::MAX >> 1));
                let count = dice.below(places.len() + 1);
                for (place, number) in places[..count].iter_mut().zip(sent..) {
                    place.write(message(number));
                }
                // SAFETY: the first slots were written.
                unsafe { claim.send(count) }.expect("the receiver is there");
                sent += count as u64;
            }
            2 | 3 => {
                let room = most_ahead.saturating_sub((sent - received) as usize);
                let length = dice.below(longest).min(room);
                let slice: Vec<u64> = (sent..).take(length).map(message).collect();
                sent += sender.try_send_slice(&slice).expect("the receiver is there") as u64;
            }
            4 => {
                for _ in 0..dice.below(longest) {
                    let Ok(found) = receiver.try_recv() else { break };
                    assert_eq!(found, message(received));
                    received += 1;
                }
            }
            _ => {
                let Ok(mut batch) = receiver.try_recv_batch() else { continue };
                batch.truncate(1 + dice.below(longest));
                for found in batch {
                    assert_eq!(found, message(received));
                    received += 1;
                }
            }
        }
    }
    while let Ok(found) = receiver.try_recv() {
        assert_eq!(found, message(received));
        received += 1;
    }
    assert_eq!(received, sent);
}

#[test]
fn messages_that_look_like_headers_are_no_headers_in_a_bounded_pipe() {
    for capacity in [1, 8, 40, 64, 100, 300, 1000] {
        for seed in 0..20 {
            let mut dice = Dice(seed);
            let longest = 2 + dice.below(2 * capacity);
            let (mut sender, mut receiver) = Options::new().reserve().bounded(capacity);
            pass(&mut dice, &mut sender, &mut receiver, (usize::MAX, longest, 20_000));
        }
    }
}

#[test]
fn messages_that_look_like_headers_are_no_headers_in_an_unbounded_pipe() {
    for (segment, ahead) in [(0, 30), (0, 200), (2 << 10, 500), (8 << 10, 3000)] {
        for seed in 0..20 {
            let mut dice = Dice(seed);
            let longest = 2 + dice.below(ahead);
            let options = Options::new().segment(segment).retain(16 << 10);
            let (mut sender, mut receiver) = options.unbounded();
            pass(&mut dice, &mut sender, &mut receiver, (ahead, longest, 20_000));
        }
    }
}

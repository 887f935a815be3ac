//! Two threads and more, each doing what a seed says, for every way of waiting; ends that leave at any moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use threadtoll::error::{RecvTimeoutError, TryRecvError};
use threadtoll::wait::{Adaptive, Park, Spin, SpinYield, Wait};
use threadtoll::{funnel, pipe};

use crate::element::{Bomb, Counted, Element, Ledger, Random, surviving};

/// Sends up to `most` messages in all ways there are.
fn send_somehow<T: Element, W: Wait>(
    mut sender: pipe::Sender<T, W>,
    ledger: &Arc<Ledger>,
    random: &mut Random,
    most: u64,
) {
    let mut next = 0;
    while next < most {
        let burst = if random.below(50) == 0 { 2000 } else { 20 };
        let many = random.below(burst).min(most - next);
        let gone = match random.below(8) {
            0 => {
                let sent = sender.send_all((next..next + many).map(|id| T::make(id, ledger)));
                next += many;
                sent.map_err(|error| surviving(|| drop(error))).is_err()
            }
            1 => {
                let ids = next..next + many;
                match T::send_slice(&mut sender, ids, ledger) {
                    Some(sent) => {
                        next += many;
                        sent.is_err()
                    }
                    None => false,
                }
            }
            2 => match sender.claim(many.max(1) as usize) {
                Err(_) => true,
                Ok(mut claim) => {
                    let count = claim.room().len().min((most - next) as usize).min(many as usize);
                    for place in &mut claim.room()[..count] {
                        place.write(T::make(next, ledger));
                        next += 1;
                    }
                    // SAFETY: so many were written.
                    unsafe { claim.send(count) };
                    false
                }
            },
            3 => {
                let mut gone = false;
                for _ in 0..many {
                    gone |= sender
                        .send_quiet(T::make(next, ledger))
                        .map_err(|error| surviving(|| drop(error)))
                        .is_err();
                    next += 1;
                }
                sender.flush();
                gone
            }
            4 => {
                let mut message = T::make(next, ledger);
                next += 1;
                loop {
                    match sender.send_timeout(message, Duration::from_micros(random.below(50))) {
                        Ok(()) => break false,
                        Err(threadtoll::error::SendTimeoutError::Timeout(back)) => message = back,
                        Err(error) => {
                            surviving(|| drop(error));
                            break true;
                        }
                    }
                }
            }
            5 => {
                thread::sleep(Duration::from_micros(random.below(80)));
                false
            }
            _ => {
                let sent = sender.send(T::make(next, ledger));
                next += 1;
                sent.map_err(|error| surviving(|| drop(error))).is_err()
            }
        };
        if gone {
            break;
        }
        if random.below(64) == 0 {
            sender.trim();
        }
    }
    surviving(|| drop(sender));
}

/// Receives in all ways there are until the sender is gone or `most` were received.
fn receive_somehow<T: Element, W: Wait>(
    mut receiver: pipe::Receiver<T, W>,
    random: &mut Random,
    most: u64,
) -> u64 {
    let mut next = 0;
    let take = |message: T, next: &mut u64| {
        assert!(message.is(*next), "message {next} was another one");
        *next += 1;
        surviving(|| drop(message));
    };
    while next < most {
        match random.below(8) {
            0 => match receiver.recv_batch() {
                Err(_) => break,
                Ok(mut batch) => {
                    let taken = random.below(2 * batch.len() as u64) as usize;
                    for message in batch.by_ref().take(taken) {
                        take(message, &mut next);
                    }
                    assert!(batch.iter().zip(next..).all(|(message, id)| message.is(id)));
                    next += batch.len() as u64;
                    surviving(|| drop(batch));
                }
            },
            1 => match receiver.try_recv() {
                Ok(message) => take(message, &mut next),
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(_) => break,
            },
            2 => match receiver.recv_timeout(Duration::from_micros(random.below(50))) {
                Ok(message) => take(message, &mut next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(_) => break,
            },
            3 => assert!(receiver.peek().is_none_or(|message| message.is(next))),
            4 if random.below(8) == 0 => thread::sleep(Duration::from_micros(random.below(80))),
            5 => assert!(receiver.is_empty() || receiver.peek().is_some()),
            _ => match receiver.recv() {
                Ok(message) => take(message, &mut next),
                Err(_) => break,
            },
        }
    }
    surviving(|| drop(receiver));
    next
}

fn pipes<T: Element, W: Wait + Copy>(wait: W, runs: u64) {
    for seed in 0..runs {
        let mut random = Random::new(seed + 1);
        let options = pipe::Options::new()
            .wait(wait)
            .segment(random.below(3) as usize * (4 << 10))
            .retain(random.below(2) as usize * (1 << 20));
        let (sender, receiver) = match random.below(4) {
            0 => options.unbounded::<T>(),
            1 => options.bounded(1 + random.below(3) as usize),
            _ => options.bounded(1 + random.below(300) as usize),
        };
        let ledger = Arc::new(Ledger::default());
        let messages = random.below(3000);
        // Now and then the receiver leaves early.
        let most = if random.below(3) == 0 { random.below(messages + 1) } else { u64::MAX };
        let received = thread::scope(|scope| {
            let (ledger, seed) = (&ledger, random.below(u64::MAX));
            scope.spawn(move || send_somehow(sender, ledger, &mut Random::new(seed), messages));
            receive_somehow(receiver, &mut random, most)
        });
        assert!(most != u64::MAX || received == messages, "seed {seed}: {received} of {messages}");
        ledger.assert_settled();
    }
}

#[test]
fn pipes_of_words() {
    pipes::<u64, _>(Adaptive, 30);
    pipes::<u64, _>(Park, 30);
    pipes::<u64, _>(Spin, 10);
    pipes::<u64, _>(SpinYield, 20);
}

#[test]
fn pipes_of_all_sizes() {
    pipes::<u8, _>(Adaptive, 20);
    pipes::<(), _>(Adaptive, 20);
    pipes::<[u8; 300], _>(Park, 15);
    pipes::<[u64; 9], _>(Adaptive, 15);
}

#[test]
fn pipes_of_what_counts_its_drops() {
    pipes::<Counted, _>(Adaptive, 20);
    pipes::<Counted, _>(Park, 20);
    pipes::<Bomb, _>(Adaptive, 20);
}

/// Tells who sent it and as which of its messages.
struct Parcel(u64, Counted);

fn funnels<W: Wait + Copy>(wait: W, runs: u64) {
    for seed in 0..runs {
        let mut random = Random::new(seed + 1);
        let options = funnel::Options::new().wait(wait).retain(random.below(2) as usize * (1 << 20));
        let options = match random.below(3) {
            0 => options.ceiling(1 + random.below(50) as usize, funnel::Ceiling::Wait),
            _ => options,
        };
        let (sender, mut receiver) = options.build::<Parcel>();
        let ledger = Arc::new(Ledger::default());
        let senders = 1 + random.below(4);
        let messages = random.below(1500);
        let most = if random.below(3) == 0 { random.below(senders * messages + 1) } else { u64::MAX };
        thread::scope(|scope| {
            for number in 0..senders {
                let (sender, ledger, seed) = (sender.clone(), &ledger, random.below(u64::MAX));
                scope.spawn(move || send_parcels(sender, number, ledger, &mut Random::new(seed), messages));
            }
            drop(sender);
            let mut next: HashMap<u64, u64> = HashMap::new();
            let mut take = |Parcel(from, message): Parcel| {
                let next = next.entry(from).or_default();
                assert!(message.is(*next), "sender {from}: message {next} was another one");
                *next += 1;
            };
            let mut received = 0;
            while received < most {
                match random.below(6) {
                    0 => received += receiver.drain(random.below(100) as usize, &mut take) as u64,
                    1 => match receiver.recv_timeout(Duration::from_micros(random.below(50))) {
                        Ok(message) => {
                            take(message);
                            received += 1;
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(_) => break,
                    },
                    2 => match receiver.try_recv() {
                        Ok(message) => {
                            take(message);
                            received += 1;
                        }
                        Err(TryRecvError::Empty | TryRecvError::Pending) => thread::yield_now(),
                        Err(_) => break,
                    },
                    _ => match receiver.recv() {
                        Ok(message) => {
                            take(message);
                            received += 1;
                        }
                        Err(_) => break,
                    },
                }
            }
            drop(receiver);
            if most == u64::MAX {
                assert_eq!(received, senders * messages, "seed {seed}");
            }
        });
        ledger.assert_settled();
    }
}

fn send_parcels<W: Wait>(
    sender: funnel::Sender<Parcel, W>,
    number: u64,
    ledger: &Arc<Ledger>,
    random: &mut Random,
    messages: u64,
) {
    let mut next = 0;
    while next < messages {
        let gone = match random.below(16) {
            0 => {
                let many = random.below(40).min(messages - next).min(sender.capacity().unwrap_or(40) as u64);
                let batch = (next..next + many).map(|id| Parcel(number, Counted::make(id, ledger)));
                next += many;
                let batch: Vec<_> = batch.collect();
                sender.send_all(batch).is_err()
            }
            1 => {
                thread::sleep(Duration::from_micros(random.below(80)));
                false
            }
            2 => {
                let other = sender.clone();
                next += 1;
                other.send(Parcel(number, Counted::make(next - 1, ledger))).is_err()
            }
            _ => {
                next += 1;
                sender.send(Parcel(number, Counted::make(next - 1, ledger))).is_err()
            }
        };
        if gone {
            return;
        }
    }
}

#[test]
fn funnels_keep_the_order_of_each_sender() {
    funnels(Adaptive, 30);
    funnels(Park, 30);
    funnels(SpinYield, 20);
}

/// The last message before a receiver leaves is either received, dropped once, or handed back: never two of these.
#[test]
fn a_receiver_that_leaves_in_the_midst_of_a_send() {
    for round in 0..4_000 {
        let ledger = Arc::new(Ledger::default());
        let (mut sender, receiver) = pipe::unbounded::<Counted>();
        let start = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                start.wait();
                for id in 0..200 {
                    if sender.send(Counted::make(id, &ledger)).is_err() {
                        break;
                    }
                }
            });
            start.wait();
            (0..round % 301).for_each(|_| std::hint::spin_loop());
            drop(receiver);
            sending.join().expect("it does not panic");
        });
        drop(sender);
        ledger.assert_settled();
    }
}

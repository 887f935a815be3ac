//! Two or more threads with random operations, for every way of waiting, and ends that leave at any
//! moment.

use std::collections::HashMap;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{RecvTimeoutError, TryRecvError};
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};
use threadtoll::{funnel, pipe};

use crate::element::{Bomb, Counted, Element, Ledger, Random, surviving};

/// Sends up to `most` messages by all methods.
fn send_somehow<T: Element>(
    mut sender: pipe::Sender<T>,
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
                    let mut gone = false;
                    // SAFETY: the first slots were written.
                    surviving(|| gone = unsafe { claim.send(count) }.is_err());
                    gone
                }
            },
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
    }
    surviving(|| drop(sender));
}

/// Receives by all methods until the sender is gone or `most` messages were received.
fn receive_somehow<T: Element>(
    mut receiver: pipe::Receiver<T>,
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

fn pipes<T: Element>(wait: Wait, runs: u64) {
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
    pipes::<u64>(Adaptive, 30);
    pipes::<u64>(Park, 30);
    pipes::<u64>(Spin, 10);
    pipes::<u64>(SpinYield, 20);
}

#[test]
fn pipes_of_all_sizes() {
    pipes::<u8>(Adaptive, 20);
    pipes::<()>(Adaptive, 20);
    pipes::<[u8; 300]>(Park, 15);
    pipes::<[u64; 8]>(Park, 20);
    pipes::<[u64; 9]>(Adaptive, 15);
    pipes::<[u64; 64]>(Adaptive, 10);
}

#[test]
fn pipes_of_what_counts_its_drops() {
    pipes::<Counted>(Adaptive, 20);
    pipes::<Counted>(Park, 20);
    pipes::<Bomb>(Adaptive, 20);
}

/// A message with its sender and number.
struct Parcel(u64, Counted);

fn funnels(wait: Wait, runs: u64) {
    for seed in 0..runs {
        let mut random = Random::new(seed + 1);
        let options =
            funnel::Options::new().wait(wait).retain(random.below(2) as usize * (1 << 20));
        let options = if random.below(2) == 0 { options.fence() } else { options };
        let (sender, mut receiver) = match random.below(3) {
            0 => options.bounded::<Parcel>(1 + random.below(50) as usize),
            _ => options.unbounded(),
        };
        let ledger = Arc::new(Ledger::default());
        let senders = 1 + random.below(4);
        let messages = random.below(1500);
        let most =
            if random.below(3) == 0 { random.below(senders * messages + 1) } else { u64::MAX };
        thread::scope(|scope| {
            for number in 0..senders {
                let (sender, ledger, seed) = (sender.clone(), &ledger, random.below(u64::MAX));
                scope.spawn(move || {
                    send_parcels(sender, number, ledger, &mut Random::new(seed), messages)
                });
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
                        Err(TryRecvError::Empty) => thread::yield_now(),
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

fn send_parcels(
    sender: funnel::Sender<Parcel>,
    number: u64,
    ledger: &Arc<Ledger>,
    random: &mut Random,
    messages: u64,
) {
    let mut next = 0;
    while next < messages {
        let gone = match random.below(16) {
            0 => {
                let many = random.below(40).min(messages - next);
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

/// The last message before a receiver leaves is either received, dropped once, or handed back, and
/// never two of these.
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

/// Number of times that the calling thread has slept.
#[cfg(target_os = "linux")]
pub(crate) fn sleeps() -> i64 {
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the usage is valid.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
    usage.ru_nvcsw
}

/// Each receive from a full funnel wakes one waiting sender, not all.
#[test]
#[cfg(target_os = "linux")]
fn a_receive_wakes_one_sender() {
    const SENDERS: i64 = 32;
    const EACH: i64 = 100;
    let (sender, mut receiver) = funnel::Options::new().wait(Park).bounded(1);
    let slept: i64 = thread::scope(|scope| {
        let send = || {
            (0..EACH).for_each(|number| sender.send(number).expect("the receiver lives"));
            sleeps()
        };
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        for _ in 0..SENDERS * EACH {
            receiver.recv().expect("the senders live");
        }
        senders.into_iter().map(|sender| sender.join().expect("it does not panic")).sum()
    });
    // A woken sender may find that another one was faster, and sleep again.
    assert!(slept < 4 * SENDERS * EACH, "{} messages, {slept} sleeps", SENDERS * EACH);
}

/// `is_full`, and the senders that keep a funnel connected.
#[test]
fn a_funnel_knows_its_ends() {
    let (sender, mut receiver) = funnel::bounded::<u64>(2);
    sender.send_all([1, 2]).expect("the receiver lives");
    assert!(sender.is_full() && receiver.is_full());
    let sent = sender.send_deadline(3, Instant::now());
    assert!(sent.is_err_and(|error| error.is_timeout() && error.into_inner() == 3));
    let weak = sender.downgrade();
    drop(sender);
    assert!(weak.upgrade().is_none() && receiver.is_disconnected());
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(2)));
    assert!(receiver.try_recv().is_err_and(|error| error.is_disconnected()));
}

/// The methods of a pipe that the properties leave out, with and without room.
#[test]
fn a_pipe_that_is_full_says_so() {
    let (mut sender, mut receiver) = pipe::bounded::<u64>(4);
    let mut claim = sender.try_claim(1).expect("there is room");
    claim.room()[0].write(1);
    // SAFETY: the first slot was written.
    unsafe { claim.send(1) }.expect("the receiver lives");
    sender.send_deadline(2, Instant::now()).expect("there is room");
    assert_eq!(sender.try_send_slice(&[3, 4, 5]), Ok(2));
    assert_eq!(sender.try_send_slice(&[5]), Ok(0));
    assert!(sender.try_claim(1).is_err_and(|error| error.is_full()));
    let sent = sender.send_deadline(5, Instant::now());
    assert!(sent.is_err_and(|error| error.is_timeout() && error.into_inner() == 5));

    let mut messages = Vec::new();
    assert_eq!(receiver.recv_many(&mut messages, 3), Ok(3));
    assert_eq!(receiver.recv_deadline(Instant::now()), Ok(4));
    assert_eq!(receiver.recv_deadline(Instant::now()), Err(RecvTimeoutError::Timeout));
    assert_eq!((messages, receiver.recv_many(&mut Vec::new(), 0)), (vec![1, 2, 3], Ok(0)));
    drop(receiver);
    assert!(sender.try_claim(1).is_err_and(|error| error.is_disconnected()));
}

/// Fewer messages than were claimed may have another place in a run.
#[test]
fn part_of_a_claim_may_be_sent() {
    fn check<T: Copy + PartialEq + std::fmt::Debug + Send>(number: fn(u64) -> T) {
        let bounded = pipe::bounded(700);
        for (mut sender, mut receiver) in [pipe::unbounded(), bounded] {
            let mut next = 0;
            for most in (1..=20).chain(48..=72).chain([127, 128, 300, 511, 512, 513, 600]) {
                for count in (0..=most).filter(|count| *count < 70 || count % 37 == 0) {
                    let mut claim = sender.claim(most).expect("the receiver lives");
                    let room = claim.room();
                    for (slot, number) in room.iter_mut().zip((next..).map(number)) {
                        slot.write(number);
                    }
                    let count = count.min(room.len());
                    // SAFETY: all slots were written.
                    unsafe { claim.send(count) }.expect("the receiver lives");
                    let sent = (next..).take(count).map(number);
                    assert!(receiver.try_iter().eq(sent), "{count} of {most}");
                    next += count as u64;
                }
            }
        }
    }
    check(|number| number);
    check(|number| number as u8);
    check(|number| [number; 2]);
    check(|number| [number; 3]);
    check(u128::from);
    check(|number| [number; 8]);
}

/// A batch larger than a bounded funnel goes through in parts.
#[test]
fn a_batch_need_not_fit() {
    let (sender, mut receiver) = funnel::bounded::<u64>(3);
    thread::scope(|scope| {
        scope.spawn(move || {
            let numbers: Vec<u64> = (0..1_000).collect();
            sender.send_slice(&numbers).expect("the receiver lives");
            sender.send_all(numbers.into_iter().map(|number| number + 1_000)).expect("it lives");
        });
        assert!(receiver.iter().eq(0..2_000));
    });
}

/// The ends can cross `catch_unwind`, like those of std and crossbeam.
#[test]
fn ends_are_unwind_safe() {
    fn assert_safe<T: UnwindSafe + RefUnwindSafe>() {}
    assert_safe::<funnel::Sender<std::cell::Cell<u64>>>();
    assert_safe::<funnel::WeakSender<std::cell::Cell<u64>>>();
    assert_safe::<funnel::Receiver<std::cell::Cell<u64>>>();
}

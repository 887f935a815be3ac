//! Unlucky circumstances: one CPU for all threads, more threads than CPUs, counters and rings that
//! wrap around, and past bugs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{SendError, TryRecvError};
use threadtoll::wait::Wait::{self, Adaptive, Park, SpinYield};
use threadtoll::{call, funnel, pipe};

use crate::cpus;

/// Pins the calling thread to the first CPU that it may use. Returns `false` on failure.
pub(crate) fn bind_to_one_cpu() -> bool {
    cpus::allowed().first().is_some_and(|&first| cpus::bind(first))
}

/// Numbers go back and forth, then in a stream.
fn through_a_pipe(wait: Wait, rounds: u64, on_one_cpu: bool) {
    let (mut there, mut ask) = pipe::Options::new().wait(wait).bounded::<u64>(4);
    let (mut answer, mut back) = pipe::Options::new().wait(wait).bounded::<u64>(4);
    thread::scope(|scope| {
        scope.spawn(move || {
            assert!(!on_one_cpu || bind_to_one_cpu());
            for number in ask.iter() {
                answer.send(number + 1).expect("the asker waits");
            }
        });
        scope.spawn(move || {
            assert!(!on_one_cpu || bind_to_one_cpu());
            for number in 0..rounds {
                there.send(number).expect("the other lives");
                assert_eq!(back.recv(), Ok(number + 1));
            }
        });
    });
    let (mut sender, receiver) = pipe::Options::new().wait(wait).bounded::<u64>(64);
    thread::scope(|scope| {
        scope.spawn(move || {
            assert!(!on_one_cpu || bind_to_one_cpu());
            (0..rounds * 10).for_each(|number| sender.send(number).expect("the receiver lives"));
        });
        scope.spawn(move || {
            assert!(!on_one_cpu || bind_to_one_cpu());
            assert!(receiver.into_iter().eq(0..rounds * 10));
        });
    });
}

/// Waits for messages and for room, without a limit that the clock can represent.
macro_rules! assert_waits_for_ever {
    ($ends:expr) => {
        let (mut sender, mut receiver) = $ends;
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..3 {
                    thread::sleep(LATE);
                    assert!(sender.send_timeout(number, Duration::MAX).is_ok());
                }
                assert!(sender.send_timeout(3, Duration::MAX).is_ok(), "it waits for room");
            });
            for number in 0..3 {
                assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(number));
            }
            thread::sleep(LATE);
            assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(3));
        });
    };
}

/// Time in which the other end falls asleep.
const LATE: Duration = Duration::from_millis(20);

#[test]
#[allow(unused_mut, reason = "a funnel's sender need not be mutable")]
fn the_longest_time_out_is_none() {
    assert_waits_for_ever!(pipe::bounded::<u64>(1));
    assert_waits_for_ever!(funnel::bounded::<u64>(1));
    let (mut caller, mut callee) = call::line::<u64, u64>();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(LATE);
            assert_eq!(callee.recv_timeout(Duration::MAX), Ok(1));
            thread::sleep(LATE);
            callee.answer(2);
        });
        assert_eq!(caller.call_timeout(1, Duration::MAX), Ok(2));
    });
}

#[test]
fn one_cpu_for_both_ends() {
    let tried = thread::spawn(bind_to_one_cpu).join().expect("it does not panic");
    if !tried {
        println!("skipped: threads cannot be bound to a CPU here");
        return;
    }
    through_a_pipe(Adaptive, 5_000, true);
    through_a_pipe(Park, 5_000, true);
    through_a_pipe(SpinYield, 5_000, true);
}

#[test]
fn more_threads_than_cpus() {
    thread::scope(|scope| {
        for pair in 0..4 {
            scope.spawn(move || {
                if pair % 2 == 0 {
                    through_a_pipe(Adaptive, 3_000, false);
                } else {
                    through_a_pipe(Park, 3_000, false);
                }
            });
        }
    });
}

/// Runs of every length wrap around at each of their slots.
#[test]
fn rings_go_round_many_times() {
    for capacity in 1..=40 {
        let (mut sender, mut receiver) = pipe::bounded::<u8>(capacity);
        let (mut sent, mut received) = (0u64, 0u64);
        for round in 0..1_000usize {
            let room = capacity - sender.len();
            let many = (round * 7 + round / 40) % (room + 1);
            let messages: Vec<u8> = (0..many as u64).map(|index| (sent + index) as u8).collect();
            match round % 3 {
                0 => sender.send_slice(&messages).expect("the receiver lives"),
                1 => messages
                    .iter()
                    .for_each(|&message| sender.send(message).expect("the receiver lives")),
                _ => {
                    sender.send_all(messages).expect("the receiver lives");
                }
            }
            sent += many as u64;
            let taken = (round * 5 + 3) % (capacity + 1);
            for message in receiver.try_iter().take(taken) {
                assert_eq!(message, received as u8);
                received += 1;
            }
            assert_eq!(sender.len() as u64, sent - received);
        }
    }
}

/// A claim that is mostly unused must not take more of the ring than its messages would in frames.
#[test]
fn claims_that_are_hardly_filled() {
    for filled in 1..=124 {
        let (mut sender, mut receiver) = pipe::bounded::<u8>(1024);
        let mut sent = Vec::new();
        while sender.len() < 1024 {
            let mut claim = sender.claim(124).expect("the receiver lives");
            let count = claim.room().len().min(filled);
            for place in &mut claim.room()[..count] {
                place.write(sent.len() as u8);
                sent.push(sent.len() as u8);
            }
            // SAFETY: the first slots were written.
            unsafe { claim.send(count) }.expect("the receiver lives");
        }
        assert!(receiver.try_iter().eq(sent));
    }
}

/// Messages of a claim that look like headers are never taken for headers, neither while the claim
/// is open nor once it is dropped.
#[test]
fn claims_that_are_let_be() {
    for ahead in [1, 8] {
        for sent in 0..20 {
            let (mut sender, mut receiver) = pipe::bounded::<u64>(1024);
            (0..sent).for_each(|number| sender.send(number).expect("the receiver lives"));
            let mut claim = sender.claim(40).expect("the receiver lives");
            for (index, place) in (0..).zip(claim.room()) {
                // A header counts messages from its third bit up, and may be at every eighth slot.
                place.write((sent + ahead + index / 8) << 2);
            }
            assert_eq!(receiver.len() as u64, sent);
            assert!(receiver.try_iter().eq(0..sent), "after {sent}");
            assert!(receiver.is_empty());
            for number in 0..40 {
                sender.send(number).expect("the receiver lives");
                assert_eq!((receiver.len(), receiver.recv()), (1, Ok(number)));
                assert!(receiver.try_recv().is_err());
            }
        }
    }
}

/// If a batch is forgotten after its messages were moved out, the sender sleeps only until the next
/// receive.
#[test]
fn a_batch_that_is_forgotten() {
    let (mut sender, mut receiver) = pipe::bounded::<u64>(4);
    thread::scope(|scope| {
        scope.spawn(move || {
            (0..8).for_each(|number| sender.send(number).expect("the receiver lives"))
        });
        let mut received = 0;
        while received < 8 {
            let mut batch = receiver.recv_batch().expect("the sender has not sent all");
            received += batch.by_ref().count();
            std::mem::forget(batch);
            // Time for the sender to fall asleep.
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// The sender never learns of room that does not count as taken, even if batches are forgotten.
#[test]
fn a_forgotten_batch_is_counted_before_its_room_is_told() {
    let (mut sender, mut receiver) = pipe::bounded::<u64>(2);
    sender.send(0).expect("the receiver lives");
    let mut batch = receiver.recv_batch().expect("it was sent");
    assert_eq!(batch.next(), Some(0));
    std::mem::forget(batch);
    sender.send(1).expect("the receiver lives");
    std::mem::forget(receiver.recv_batch().expect("it was sent"));
    sender.send(2).expect("the receiver lives");
    assert_eq!(sender.len(), 2);
}

/// A deadline that passes while a message is on its way loses neither the message nor the next
/// wake-up.
#[test]
fn deadlines_and_messages_cross() {
    let (mut sender, mut receiver) = pipe::Options::new().wait(Park).bounded::<u64>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..5_000 {
                let mut message = number;
                while let Err(error) =
                    sender.send_timeout(message, Duration::from_micros(number % 70))
                {
                    message = error.into_inner();
                }
            }
        });
        for number in 0..5_000 {
            let mut received = receiver.recv_timeout(Duration::from_micros(number % 60));
            while received.is_err() {
                received = receiver.recv_timeout(Duration::from_micros(number % 60));
            }
            assert_eq!(received, Ok(number));
        }
    });
}

/// Both ends leave at once, full or empty, asleep or not.
#[test]
fn both_ends_leave_at_once() {
    for round in 0..500u64 {
        let (mut sender, mut receiver) =
            pipe::Options::new().wait(Park).bounded::<Box<u64>>(1 + round as usize % 3);
        thread::scope(|scope| {
            scope.spawn(move || while sender.send(Box::new(round)).is_ok() {});
            scope.spawn(move || {
                for _ in 0..round % 5 {
                    receiver.recv().expect("the sender stays until we leave");
                }
            });
        });
    }
}

/// A disconnection is reported only when everything was received, even to a receiver that polls in
/// between.
#[test]
fn nothing_is_lost_before_disconnection() {
    for _ in 0..800 {
        let (sender, mut receiver) = funnel::unbounded::<u64>();
        thread::scope(|scope| {
            for _ in 0..2 {
                let sender = sender.clone();
                scope.spawn(move || {
                    (0..3).for_each(|number| sender.send(number).expect("the receiver lives"))
                });
            }
            drop(sender);
            let mut received = 0;
            loop {
                match receiver.try_recv() {
                    Ok(_) => received += 1,
                    Err(TryRecvError::Disconnected) => break,
                    Err(_) => thread::yield_now(),
                }
            }
            assert_eq!(received, 6);
        });
    }
}

/// An end that leaves wakes one that sleeps.
#[test]
fn leaving_wakes_the_other() {
    for _ in 0..200 {
        let (sender, mut receiver) = pipe::Options::new().wait(Park).unbounded::<u64>();
        thread::scope(|scope| {
            scope.spawn(move || assert!(receiver.recv().is_err()));
            thread::sleep(Duration::from_micros(50));
            drop(sender);
        });
        let (mut sender, receiver) = pipe::Options::new().wait(Park).bounded::<u64>(1);
        sender.send(1).expect("the receiver is there still");
        thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!(sender.send(2), Err(SendError(2)));
            });
            thread::sleep(Duration::from_micros(50));
            drop(receiver);
        });
    }
}

/// The memory of a burst is freed, and traffic that keeps up takes none.
#[test]
fn bursts_give_their_memory_back() {
    let (mut sender, mut receiver) = pipe::Options::new().retain(0).unbounded::<u64>();
    for _ in 0..3 {
        (0..1_000_000).for_each(|number| sender.send(number).expect("the receiver lives"));
        assert!(sender.memory().burst_bytes > 8_000_000);
        assert!(receiver.try_iter().eq(0..1_000_000));
        // Back in the ring, once the last chunk was read.
        (0..100_000).for_each(|number| {
            sender.send(number).expect("the receiver lives");
            assert_eq!(receiver.try_recv(), Ok(number));
        });
        let memory = sender.memory();
        assert_eq!((memory.burst_bytes, memory.kept_bytes), (0, 0));
    }
}

/// A funnel that may keep the memory of a burst does, and the next burst allocates nothing. One
/// that may not frees it.
#[test]
fn a_funnel_keeps_what_it_may() {
    for (retain, may_keep) in [(1 << 30, true), (0, false)] {
        let (sender, mut receiver) = funnel::Options::new().retain(retain).unbounded::<u64>();
        let mut had = Vec::new();
        for _ in 0..3 {
            (0..1_000_000).for_each(|number| sender.send(number).expect("the receiver lives"));
            let memory = receiver.memory();
            had.push(memory.used_bytes + memory.kept_bytes);
            assert!(memory.used_bytes > 16_000_000);
            assert!(receiver.try_iter().eq(0..1_000_000));
            let memory = receiver.memory();
            assert!(memory.used_bytes < 100_000, "{memory:?}");
            assert_eq!(memory.kept_bytes > 15_900_000, may_keep, "{memory:?}");
        }
        assert!(had.iter().all(|bytes| bytes.abs_diff(had[0]) < 100_000), "{had:?}");
    }
}

fn stream(messages: u64) {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            (0..messages).for_each(|number| sender.send(number).expect("the receiver lives"))
        });
        for number in 0..messages {
            assert_eq!(receiver.recv(), Ok(number));
        }
        assert!(receiver.recv().is_err());
    });
    println!("pipe: {messages} messages, each the right one, in {:.1?}", began.elapsed());
}

fn collect(messages: u64) {
    let (sender, mut receiver) = funnel::unbounded::<(u64, u64)>();
    let began = Instant::now();
    thread::scope(|scope| {
        for from in 0..4 {
            let sender = sender.clone();
            scope.spawn(move || {
                (0..messages / 4)
                    .for_each(|number| sender.send((from, number)).expect("the receiver lives"));
            });
        }
        drop(sender);
        let mut next = [0; 4];
        for (from, number) in receiver.iter() {
            assert_eq!(number, next[from as usize]);
            next[from as usize] += 1;
        }
        assert_eq!(next, [messages / 4; 4]);
    });
    println!(
        "funnel: {messages} messages of 4 senders, each in its order, in {:.1?}",
        began.elapsed()
    );
}

/// Many sleeps and wake-ups of both sides. A watchdog turns a hang into a failure.
fn naps(rounds: u64) {
    let moved = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    let (mut sender, mut receiver) = pipe::Options::new().wait(Park).bounded::<u64>(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                thread::sleep(Duration::from_secs(10));
                if !moved.swap(false, Relaxed) && !over.load(Relaxed) {
                    eprintln!("a wake-up was lost: nothing has moved for ten seconds");
                    std::process::abort();
                }
            }
        });
        scope.spawn(move || {
            (0..rounds).for_each(|number| sender.send(number).expect("the receiver lives"))
        });
        for number in 0..rounds {
            assert_eq!(receiver.recv(), Ok(number));
            moved.store(true, Relaxed);
        }
        over.store(true, Relaxed);
    });
    println!("{rounds} messages between ends that sleep at once");
}

#[test]
fn a_short_stress() {
    stream(1_000_000);
    collect(1_000_000);
}

#[test]
#[ignore = "takes minutes; ci/long/stress.sh runs it"]
fn a_long_stress() {
    stream(1_000_000_000);
    collect(200_000_000);
    naps(5_000_000);
}

/// A slice is received in long slices, not line by line.
#[test]
fn slices_stay_long() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let numbers: Vec<u64> = (0..5_000).collect();
    sender.send_slice(&numbers).expect("the receiver lives");
    let (mut received, mut batches) = (Vec::new(), 0);
    while let Ok(batch) = receiver.try_recv_batch() {
        received.extend_from_slice(&batch);
        batches += 1;
    }
    assert_eq!(received, numbers);
    assert!(batches < 20, "{batches} batches");
}

/// An iterator that panics before its first message.
struct Panics;

impl Iterator for Panics {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        std::panic::resume_unwind(Box::new("an iterator that panics"));
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (1, Some(1))
    }
}

impl ExactSizeIterator for Panics {}

/// A receiver that only peeks passes the room of an empty batch on to a sender.
#[test]
fn a_peek_makes_room() {
    let (sender, mut receiver) = funnel::bounded::<u64>(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(std::panic::catch_unwind(|| sender.send_all(Panics).is_ok()).is_err());
            let sent = sender.send_timeout(7, Duration::from_secs(20));
            assert!(sent.is_ok(), "nobody told that there is room");
        });
        let until = Instant::now() + Duration::from_secs(30);
        while receiver.peek().is_none() && Instant::now() < until {
            thread::yield_now();
        }
        assert_eq!(receiver.peek(), Some(&7));
    });
}

//! Rings: threads that follow each other, and unlucky circumstances.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::error::{SendError, SendTimeoutError, StartError, TryRecvError, TrySendError};
use threadtoll::ring::{Builder, Options, Reader};
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};

use crate::cpus;
use crate::element::{Bomb, Element, Ledger, Random, surviving};

/// An event in which each reader leaves its mark.
#[derive(Default)]
struct Marked {
    number: u64,
    marks: [AtomicU64; 3],
}

/// Reads all events. Those before this reader must have marked each, with its number.
fn read(mut reader: Reader<Marked>, before: &[usize], mark: usize) -> u64 {
    let mut next = 0;
    while let Ok(mut batch) = reader.recv_batch() {
        // Now and then, as a reader that takes long.
        if next % 5 == 3 {
            batch.truncate(2);
        }
        assert_eq!(batch.first_number(), next);
        assert!(!batch.has_lost_dependency());
        for event in &batch {
            assert_eq!(event.number, next);
            assert!(before.iter().all(|before| event.marks[*before].load(Relaxed) == next));
            event.marks[mark].store(next, Relaxed);
            next += 1;
        }
    }
    next
}

fn diamond(wait: Wait, capacity: usize, events: u64, on_one_cpu: bool) {
    let mut builder = Options::new().wait(wait).builder(capacity, Marked::default);
    let (journal, replica) = (builder.reader(), builder.reader());
    let logic = builder.reader_after([&journal, &replica]);
    let mut writer = builder.start().expect("there are readers");
    let bind = move || {
        assert!(!on_one_cpu || cpus::allowed().first().is_some_and(|&first| cpus::bind(first)));
    };
    thread::scope(|scope| {
        let readers = [(journal, &[][..], 0), (replica, &[][..], 1), (logic, &[0, 1][..], 2)];
        let readers = readers.map(|(reader, before, mark)| {
            scope.spawn(move || {
                bind();
                read(reader, before, mark)
            })
        });
        scope.spawn(move || {
            bind();
            let mut next = 0;
            let mut random = Random::new(events);
            while next < events {
                let many = random.below(capacity.min(20) as u64 + 1).min(events - next);
                let first = next;
                if many < 2 {
                    writer.publish(|event| event.number = next).expect("the readers live");
                    next += 1;
                } else {
                    let fill = |index, event: &mut Marked| event.number = first + index as u64;
                    writer.publish_many(many as usize, fill).expect("the readers live");
                    next += many;
                }
            }
        });
        for reader in readers {
            assert_eq!(reader.join().expect("it does not panic"), events);
        }
    });
}

#[test]
fn a_diamond_for_every_wait() {
    for wait in [Adaptive, Park, SpinYield] {
        diamond(wait, 64, 100_000, false);
        diamond(wait, 3, 5_000, false);
    }
    // Spinning threads wait for each other's time slices.
    diamond(Spin, 1024, 20_000, false);
}

#[test]
#[ignore = "takes minutes; ci/long/stress.sh runs it"]
fn a_long_diamond() {
    diamond(Adaptive, 1024, 1_000_000_000, false);
}

#[test]
#[cfg(target_os = "linux")]
fn a_diamond_on_one_cpu() {
    // Only the new threads are bound.
    for wait in [Adaptive, Park, SpinYield] {
        diamond(wait, 16, 2_000, true);
    }
}

/// A batch ends where a publication ends, however long that is.
#[test]
fn publications_come_whole() {
    // Several times as many frames as those of which a reader reads the headers at first.
    const MANY: u64 = 4_096;
    const EVENTS: u64 = 200 * MANY;
    for wait in [Adaptive, SpinYield] {
        let mut builder = Options::new().wait(wait).builder(4 * MANY as usize, || 0);
        let readers = [builder.reader(), builder.reader()];
        let mut writer = builder.start().expect("there are readers");
        let readers = readers.map(|mut reader| {
            thread::spawn(move || {
                let mut next = 0;
                while let Ok(batch) = reader.recv_batch() {
                    assert_eq!(batch.len() as u64 % MANY, 0, "a part of a publication came");
                    for number in &batch {
                        assert_eq!(*number, next);
                        next += 1;
                    }
                }
                next
            })
        });
        for first in (0..EVENTS).step_by(MANY as usize) {
            let fill = |index, event: &mut u64| *event = first + index as u64;
            writer.publish_many(MANY as usize, fill).expect("the readers live");
        }
        drop(writer);
        for reader in readers {
            assert_eq!(reader.join().expect("it does not panic"), EVENTS);
        }
    }
}

#[test]
fn a_ring_needs_its_readers() {
    let start = |builder: Builder<u64>| builder.start().expect_err("there is a mistake");
    assert_eq!(start(Builder::new(8, || 0)), StartError::NoReader);
    let mut builder = Builder::new(8, || 0);
    let (mut first, second) = (builder.reader(), builder.reader());
    drop(second);
    assert_eq!(start(builder), StartError::ReaderDropped);
    assert!(first.recv_batch().is_err(), "there will be no writer");

    let mut builder = Builder::new(8, || 0);
    let mut reader = builder.reader();
    let reading = thread::spawn(move || reader.recv_batch().is_err());
    drop(builder);
    assert!(reading.join().expect("it does not panic"));
}

#[test]
#[should_panic(expected = "another ring")]
fn readers_of_two_rings() {
    let (mut one, mut other) = (Builder::new(8, || 0), Builder::new(8, || 0));
    let reader = one.reader();
    other.reader_after([&reader]);
}

#[test]
#[should_panic(expected = "more events than the ring holds")]
fn more_than_a_ring_holds() {
    let mut builder = Builder::new(8, || 0);
    let _reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    let _ = writer.publish_many(9, |_, _| {});
}

#[test]
fn a_reader_waits_for_the_start() {
    let mut builder = Builder::new(8, || 0);
    let mut reader = builder.reader();
    let reading = thread::spawn(move || reader.recv_batch().map(|batch| batch.iter().sum::<u64>()));
    thread::sleep(Duration::from_millis(2));
    let mut writer = builder.start().expect("there is a reader");
    writer.publish(|event| *event = 7).expect("the reader lives");
    assert_eq!(reading.join().expect("it does not panic"), Ok(7));
}

#[test]
fn a_full_ring_refuses_or_times_out() {
    const SOON: Duration = Duration::from_millis(2);
    for wait in [Adaptive, Park, SpinYield, Spin] {
        let mut builder = Options::new().wait(wait).builder(4, || 0);
        let mut reader = builder.reader();
        let mut writer = builder.start().expect("there is a reader");
        writer.publish_many(3, |index, event| *event = index).expect("the reader lives");
        assert_eq!(writer.try_publish_many(2, |_, _| unreachable!()), Err(TrySendError::Full(())));
        writer.publish(|event| *event = 3).expect("the reader lives");
        assert_eq!(writer.try_publish(|_| unreachable!()), Err(TrySendError::Full(())));
        let began = Instant::now();
        let late = SendTimeoutError::Timeout(());
        assert_eq!(writer.publish_timeout(SOON, |_| unreachable!()), Err(late));
        assert_eq!(writer.publish_deadline(began + 2 * SOON, |_| unreachable!()), Err(late));
        assert_eq!(writer.publish_many_timeout(SOON, 4, |_, _| unreachable!()), Err(late));
        let deadline = Instant::now() + SOON;
        assert_eq!(writer.publish_many_deadline(deadline, 1, |_, _| unreachable!()), Err(late));
        assert!(began.elapsed() >= 3 * SOON);

        assert_eq!(reader.recv_batch().expect("events are there").len(), 4);
        assert_eq!(reader.try_recv_batch().expect_err("none are"), TryRecvError::Empty);
        let began = Instant::now();
        assert!(reader.recv_batch_timeout(SOON).is_err_and(|error| error.is_timeout()));
        assert!(
            reader.recv_batch_deadline(began + 2 * SOON).is_err_and(|error| error.is_timeout())
        );
        assert!(began.elapsed() >= 2 * SOON);
        // The longest time-out is none.
        thread::scope(|scope| {
            scope.spawn(|| {
                let batch = reader.recv_batch_timeout(Duration::MAX);
                assert_eq!(batch.expect("an event comes").iter().sum::<usize>(), 9);
            });
            writer.publish_timeout(Duration::MAX, |event| *event = 9).expect("the reader lives");
        });
    }
}

#[test]
fn closing_wakes_everybody() {
    for wait in [Adaptive, Park, SpinYield, Spin] {
        let mut builder = Options::new().wait(wait).builder(4, || 0);
        let first = builder.reader();
        let second = builder.reader_after([&first]);
        let third = builder.reader_after([&first, &second]);
        let mut writer = builder.start().expect("there are readers");
        let readers = [first, second, third].map(|mut reader| {
            thread::spawn(move || {
                let mut sum = 0;
                while let Ok(batch) = reader.recv_batch() {
                    sum += batch.iter().sum::<u64>();
                }
                sum
            })
        });
        writer.publish(|event| *event = 5).expect("the readers live");
        thread::sleep(Duration::from_millis(2));
        drop(writer);
        for reader in readers {
            assert_eq!(reader.join().expect("it does not panic"), 5);
        }
    }
}

#[test]
fn the_last_reader_that_leaves_wakes_the_writer() {
    for wait in [Adaptive, Park, SpinYield, Spin] {
        let mut builder = Options::new().wait(wait).builder(2, || 0);
        let first = builder.reader();
        let second = builder.reader_after([&first]);
        let mut writer = builder.start().expect("there are readers");
        let (filled, is_full) = mpsc::channel();
        let writing = thread::spawn(move || {
            let mut published = 0;
            while writer.publish(|event| *event = published).is_ok() {
                published += 1;
                if published == 2 {
                    filled.send(()).expect("the test waits for it");
                }
            }
            assert!(writer.is_disconnected());
            assert_eq!(writer.try_publish(|_| unreachable!()), Err(TrySendError::Disconnected(())));
            published
        });
        is_full.recv().expect("two events fit");
        thread::sleep(Duration::from_millis(2));
        drop(first);
        thread::sleep(Duration::from_millis(1));
        drop(second);
        assert_eq!(writing.join().expect("it does not panic"), 2);
    }
}

#[test]
fn a_writer_with_room_learns_that_all_have_left() {
    let mut builder = Builder::new(1000, || 0);
    let reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    assert_eq!(writer.publish(|event| *event = 1), Ok(()));
    drop(reader);
    assert_eq!(writer.publish(|event| *event = 2), Err(SendError(())));
    assert_eq!(writer.publish(|_| unreachable!()), Err(SendError(())));
    assert_eq!((writer.readers(), writer.lag()), (0, 0));
}

/// Readers leave in the middle of a stream, in every order, by panics and otherwise. The others see
/// everything.
#[test]
fn readers_leave_in_the_stream() {
    const EVENTS: u64 = 3_000;
    for seed in 0..24u64 {
        let wait = [Adaptive, Park, SpinYield][seed as usize % 3];
        let mut builder = Options::new().wait(wait).builder(8, || 0);
        let first = builder.reader();
        let second = builder.reader_after([&first]);
        let third = builder.reader_after([&first, &second]);
        let fourth = builder.reader();
        let mut writer = builder.start().expect("there are readers");
        // One of the four stays to the end.
        let stays = seed as usize / 3 % 4;
        let readers: Vec<_> = [first, second, third, fourth]
            .into_iter()
            .enumerate()
            .map(|(index, mut reader)| {
                thread::spawn(move || {
                    let mut random = Random::new(100 * seed + index as u64);
                    let leaves_at = if index == stays { u64::MAX } else { random.below(EVENTS) };
                    let mut next = 0;
                    while let Ok(batch) = reader.recv_batch() {
                        for event in &batch {
                            assert_eq!(*event, next);
                            if next == leaves_at {
                                if random.below(2) == 0 {
                                    resume_unwind(Box::new("a reader that panics"));
                                }
                                return next;
                            }
                            next += 1;
                        }
                    }
                    next
                })
            })
            .collect();
        for number in 0..EVENTS {
            writer.publish(|event| *event = number).expect("one reader stays");
        }
        drop(writer);
        for (index, reader) in readers.into_iter().enumerate() {
            match reader.join() {
                Ok(read) => assert!(if index == stays { read == EVENTS } else { read < EVENTS }),
                Err(panic) => {
                    assert_ne!(index, stays);
                    assert_eq!(panic.downcast_ref(), Some(&"a reader that panics"));
                }
            }
        }
    }
}

#[test]
fn events_of_a_batch_that_panics_are_not_passed_on() {
    let mut builder = Builder::new(8, || 0);
    let mut journal = builder.reader();
    let mut logic = builder.reader_after([&journal]);
    let mut writer = builder.start().expect("there are readers");
    writer.publish_many(3, |index, event| *event = index).expect("the readers live");
    let survived = surviving(|| {
        let batch = journal.recv_batch().expect("events are there");
        assert_eq!(batch.len(), 3);
        resume_unwind(Box::new("a disk is full"));
    });
    assert!(!survived);
    assert_eq!(logic.try_recv_batch().expect_err("nothing is journalled"), TryRecvError::Empty);
    assert_eq!(journal.recv_batch().expect("they come again").len(), 3);
    assert!(!logic.recv_batch().expect("all is journalled").has_lost_dependency());
    writer.publish_many(2, |index, event| *event = index).expect("the readers live");
    let mut batch = journal.recv_batch().expect("events are there");
    batch.truncate(1);
    drop(batch);
    drop(journal);
    let mut batch = logic.recv_batch().expect("nobody holds it back");
    assert!(batch.len() == 2 && batch.has_lost_dependency());
    batch.truncate(1);
    assert!(!batch.has_lost_dependency(), "the first one was journalled");
}

/// A destructor that receives while its thread panics must come to an end.
#[test]
fn a_destructor_drains_the_ring() {
    struct Drains(Reader<u64>, mpsc::Sender<usize>);
    impl Drop for Drains {
        fn drop(&mut self) {
            let mut events = 0;
            while let Ok(batch) = self.0.try_recv_batch() {
                events += batch.len();
            }
            let _ = self.1.send(events);
        }
    }
    let mut builder = Builder::new(8, || 0);
    let reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    writer.publish_many(3, |_, event| *event = 1).expect("the reader lives");
    let (tell, told) = mpsc::channel();
    assert!(!surviving(|| {
        let _drains = Drains(reader, tell);
        resume_unwind(Box::new("a reader that panics"));
    }));
    assert_eq!(told.recv(), Ok(3));
}

#[test]
fn a_closure_that_panics_publishes_nothing() {
    let mut builder = Builder::new(20, || 0);
    let mut reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    let mut next = 0;
    for at in 0..15 {
        assert!(!surviving(|| {
            let _ = writer.publish_many(15, |index, event| {
                *event = u64::MAX;
                if index == at {
                    resume_unwind(Box::new("a closure that panics"));
                }
            });
        }));
        assert!(!surviving(|| {
            let _ = writer.publish(|event| {
                *event = u64::MAX;
                resume_unwind(Box::new("a closure that panics"));
            });
        }));
        assert_eq!(reader.lag(), 0);
        assert_eq!(reader.try_recv_batch().expect_err("nothing is"), TryRecvError::Empty);
        // One by one, so that the counts that a batch would have left are passed.
        for _ in 0..16 {
            writer.publish(|event| *event = next).expect("the reader lives");
            assert!(reader.recv_batch().expect("an event is there").iter().eq(&[next]));
            next += 1;
        }
    }
}

/// A slot that is made by a closure that panics in between: what was made is dropped once.
#[test]
fn slots_that_are_not_made() {
    static DROPS: AtomicU64 = AtomicU64::new(0);
    struct Slot;
    impl Drop for Slot {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Relaxed);
        }
    }
    let mut made = 0;
    assert!(!surviving(|| {
        Builder::new(100, || {
            made += 1;
            if made == 51 {
                resume_unwind(Box::new("a slot that cannot be made"));
            }
            // Of some size.
            (Slot, [0u64; 4])
        });
    }));
    assert_eq!(DROPS.load(Relaxed), 50);
}

/// A destructor that panics does not keep other events from being dropped once.
#[test]
fn destructors_that_panic() {
    let ledger: Arc<Ledger> = Arc::default();
    let mut made = 0;
    let mut builder = Builder::new(20, || {
        made += 1;
        Bomb::make(made, &ledger)
    });
    let mut reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    let replace = |index, event: &mut Bomb| *event = Bomb::make(100 + index as u64, &ledger);
    assert!(!surviving(|| {
        let _ = writer.publish_many(20, replace);
    }));
    assert_eq!(reader.try_recv_batch().expect_err("nothing is"), TryRecvError::Empty);
    drop(writer);
    assert!(!surviving(|| drop(reader)));
    ledger.assert_settled();
}

#[test]
fn events_without_a_size() {
    let mut builder = Builder::new(3, || ());
    let mut reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    for round in 0..100_000u64 {
        writer.publish_many(3, |_, ()| {}).expect("the reader lives");
        assert_eq!(writer.try_publish(|()| {}), Err(TrySendError::Full(())));
        let batch = reader.recv_batch().expect("events are there");
        assert_eq!((batch.first_number(), batch.len()), (3 * round, 3));
    }
}

/// A reader that waits is not woken by the events of others for ever.
#[test]
fn waits_that_cross_events() {
    let mut builder = Options::new().wait(Park).builder(2, || 0);
    let mut first = builder.reader();
    let mut second = builder.reader_after([&first]);
    let mut writer = builder.start().expect("there are readers");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        // Each thread owns its reader, so if one panics the others come to an end.
        scope.spawn(move || {
            let mut next = 0;
            while !over.load(Relaxed) {
                if let Ok(batch) = first.recv_batch_timeout(Duration::from_micros(next % 60)) {
                    next += batch.len() as u64;
                }
            }
            while let Ok(batch) = first.recv_batch() {
                next += batch.len() as u64;
            }
            assert_eq!(next, 20_000);
        });
        scope.spawn(move || {
            let mut next = 0;
            loop {
                match second.recv_batch_timeout(Duration::from_micros(next % 50)) {
                    Ok(batch) => next += batch.len() as u64,
                    Err(error) if error.is_disconnected() => break,
                    Err(_) => {}
                }
            }
            assert_eq!(next, 20_000);
        });
        for number in 0..20_000 {
            let limit = Duration::from_micros(number % 70);
            while let Err(error) = writer.publish_timeout(limit, |event| *event = number) {
                assert!(error.is_timeout());
            }
        }
        over.store(true, Relaxed);
        drop(writer);
    });
}

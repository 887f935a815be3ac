//! Readers of rings among the sources of a `Select`, and served by an owner.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use threadtoll::error::TryRecvError;
use threadtoll::owned;
use threadtoll::pipe;
use threadtoll::ring::{Builder, Reader};
use threadtoll::select::Select;
use threadtoll::wait::Wait::{self, Adaptive, Park, Spin, SpinYield};

use crate::element::{Random, surviving};

const SOON: Duration = Duration::from_millis(1);
/// Time in which a thread falls asleep.
const LATE: Duration = Duration::from_millis(5);

/// Receives what is there.
fn take(reader: &mut Reader<u64>) -> Vec<u64> {
    reader.try_recv_batch().expect("it is ready").iter().copied().collect()
}

#[test]
fn events_end_a_wait() {
    for (wait, after) in [(Adaptive, LATE), (Park, LATE), (Spin, SOON), (SpinYield, SOON)] {
        let (_sender, mut lane) = pipe::unbounded::<u64>();
        let mut builder = Builder::new(8, || 0);
        let mut reader = builder.reader();
        let mut writer = builder.start().expect("there is a reader");
        let mut select = Select::with_wait(wait);
        assert_eq!(select.try_ready((&mut lane, &mut reader)), None);
        assert_eq!(select.ready_timeout((&mut lane, &mut reader), Duration::ZERO), None);
        assert_eq!(select.ready_timeout((&mut lane, &mut reader), SOON), None);
        let writing = thread::spawn(move || {
            for number in 0..3 {
                thread::sleep(after);
                writer.publish(|event| *event = number).expect("the reader lives");
            }
            thread::sleep(after);
        });
        let mut next = 0;
        while next < 3 {
            assert_eq!(select.ready((&mut lane, &mut reader)), 1);
            for number in take(&mut reader) {
                assert_eq!(number, next);
                next += 1;
            }
        }
        // The writer leaves.
        assert_eq!(select.ready((&mut lane, &mut reader)), 1);
        assert_eq!(reader.try_recv_batch().expect_err("all is read"), TryRecvError::Disconnected);
        assert_eq!(select.try_ready((&mut lane, &mut reader)), Some(1));
        writing.join().expect("it does not panic");
    }
}

/// Both of the readers that it follows must have read an event; one of them leaves.
#[test]
fn a_reader_after_others_is_ready_once_they_have_read() {
    let mut builder = Builder::new(8, || 0);
    let (mut journal, mut replica) = (builder.reader(), builder.reader());
    let mut logic = builder.reader_after([&journal, &replica]);
    let mut writer = builder.start().expect("there are readers");
    let mut select = Select::with_wait(Park);
    writer.publish(|event| *event = 1).expect("the readers live");
    assert_eq!(select.ready_timeout((&mut logic,), SOON), None);
    let reading = thread::spawn(move || {
        thread::sleep(LATE);
        assert_eq!(take(&mut replica), [1]);
        thread::sleep(LATE);
        assert_eq!(take(&mut journal), [1]);
        journal
    });
    assert_eq!(select.ready((&mut logic,)), 0);
    assert_eq!(take(&mut logic), [1]);
    // The replica has left by now. Now the journal leaves before it has read.
    let journal = reading.join().expect("it does not panic");
    writer.publish(|event| *event = 2).expect("the readers live");
    assert_eq!(select.ready_timeout((&mut logic,), SOON), None);
    let leaving = thread::spawn(move || {
        thread::sleep(LATE);
        drop(journal);
    });
    assert_eq!(select.ready((&mut logic,)), 0);
    assert_eq!(take(&mut logic), [2]);
    leaving.join().expect("it does not panic");
}

/// Two readers read each event at about the same time, one after both waits for it by a `Select`,
/// and the next event comes only once that one has it.
#[test]
fn no_step_of_a_diamond_is_missed() {
    const EVENTS: u64 = if cfg!(miri) { 20 } else { 20_000 };
    for wait in [Park, SpinYield, Adaptive] {
        let mut builder = Builder::new(4, || 0);
        let readers = [builder.reader(), builder.reader()];
        let mut last = builder.reader_after(&readers);
        let mut writer = builder.start().expect("there are readers");
        let (mut done, taken) = pipe::unbounded::<()>();
        thread::scope(|scope| {
            for mut reader in readers {
                scope.spawn(move || while reader.recv_batch().is_ok() {});
            }
            scope.spawn(move || {
                let mut taken = taken.into_iter();
                for number in 0..EVENTS {
                    writer.publish(|event| *event = number).expect("the readers live");
                    taken.next().expect("the last reader lives");
                }
            });
            let mut select = Select::with_wait(wait);
            for number in 0..EVENTS {
                assert_eq!(select.ready((&mut last,)), 0);
                assert_eq!(take(&mut last), [number]);
                done.send(()).expect("the writer lives");
            }
        });
    }
}

/// Readers of one ring in one `Select`: each has its own events.
#[test]
fn readers_of_one_ring_are_sources_of_one_select() {
    let mut builder = Builder::new(8, || 0);
    let (mut one, mut other) = (builder.reader(), builder.reader());
    let mut last = builder.reader_after([&one, &other]);
    let mut writer = builder.start().expect("there are readers");
    let writing = thread::spawn(move || {
        for number in 0..100 {
            if number % 10 == 0 {
                thread::sleep(SOON);
            }
            writer.publish(|event| *event = number).expect("the readers live");
        }
    });
    let mut select = Select::with_wait(Park);
    let mut next = [0; 3];
    while next != [100; 3] {
        let index = select.ready((&mut one, &mut other, &mut last));
        let reader = [&mut one, &mut other, &mut last].into_iter().nth(index);
        let Some(Ok(batch)) = reader.map(Reader::try_recv_batch) else { continue };
        for number in &batch {
            assert_eq!(*number, next[index]);
            next[index] += 1;
        }
    }
    writing.join().expect("it does not panic");
}

/// A truncated batch leaves events that nobody publishes again.
#[test]
fn events_that_were_left_are_ready() {
    let mut builder = Builder::new(8, || 0);
    let mut reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    writer.publish_many(3, |index, event| *event = index as u64).expect("the reader lives");
    reader.recv_batch().expect("events are there").truncate(1);
    assert_eq!(Select::new().ready((&mut reader,)), 0);
    assert_eq!(take(&mut reader), [1, 2]);
    assert_eq!(Select::new().try_ready((&mut reader,)), None);
}

/// Receives the numbers from `next` on, or only the first of them. If there is a limit, waits for
/// them; otherwise they are there. Returns `true` if all were received.
fn receive(
    reader: &mut Reader<u64>,
    limit: Option<Duration>,
    only_first: bool,
    next: &mut u64,
) -> bool {
    let batch = match limit {
        None => reader.try_recv_batch().map_err(|error| assert!(error.is_disconnected())),
        Some(limit) => match reader.recv_batch_timeout(limit) {
            Err(error) if error.is_timeout() => return false,
            batch => batch.map_err(|_| ()),
        },
    };
    let Ok(mut batch) = batch else { return true };
    if only_first {
        batch.truncate(1);
    }
    for number in &batch {
        assert_eq!(*number, *next);
        *next += 1;
    }
    false
}

/// Two rings, each with a journal and a reader after it. One thread serves the journals, another
/// one the readers after them, each by a `Select` and now and then without.
fn storm(wait: Wait, seed: u64) {
    const EVENTS: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let mut writers = Vec::new();
    let (mut journals, mut followers) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let mut builder = Builder::new(64, || 0);
        let journal = builder.reader();
        followers.push(Some(builder.reader_after([&journal])));
        journals.push(Some(journal));
        writers.push(builder.start().expect("there are readers"));
    }
    let serve = |mut readers: Vec<Option<Reader<u64>>>, seed: u64| {
        let mut random = Random::new(seed);
        let mut select = Select::with_wait(wait);
        let mut next = [0, 0];
        while readers.iter().any(Option::is_some) {
            let limit = Duration::from_micros(random.below(100));
            let ready = match random.below(3) {
                0 => select.ready_timeout(&mut readers[..], limit),
                1 => select.try_ready(&mut readers[..]),
                _ => Some(select.ready(&mut readers[..])),
            };
            // Now and then, a thread waits at an end for which a `Select` has just waited.
            let waited = random.below(20) == 0;
            let Some(index) = ready.or_else(|| waited.then_some(0)) else { continue };
            let Some(reader) = &mut readers[index] else { continue };
            let limit = if ready.is_some() { None } else { Some(limit) };
            if receive(reader, limit, random.below(4) == 0, &mut next[index]) {
                readers[index] = None;
            }
        }
        assert_eq!(next, [EVENTS; 2]);
    };
    thread::scope(|scope| {
        for (place, mut writer) in writers.into_iter().enumerate() {
            scope.spawn(move || {
                let mut random = Random::new(seed + place as u64);
                let mut number = 0;
                while number < EVENTS {
                    let many = (1 + random.below(9)).min(EVENTS - number);
                    let fill = |index: usize, event: &mut u64| *event = number + index as u64;
                    writer.publish_many(many as usize, fill).expect("the readers live");
                    number += many;
                    match random.below(50) {
                        0 => thread::sleep(Duration::from_micros(random.below(100))),
                        1..20 => (0..random.below(200)).for_each(|_| std::hint::spin_loop()),
                        _ => {}
                    }
                }
            });
        }
        scope.spawn(|| serve(journals, seed + 2));
        serve(followers, seed + 3);
    });
}

#[test]
fn a_storm_for_readers_of_two_rings() {
    storm(Adaptive, 1);
    storm(Park, 5);
    storm(SpinYield, 9);
}

/// Each event is served once, or again if its closure has panicked, and the owner ends after the
/// writer.
#[test]
fn an_owner_serves_a_ring() {
    let mut builder = Builder::new(8, || 0);
    let reader = builder.reader();
    let mut writer = builder.start().expect("there is a reader");
    let (mut owner, handle) = owned::new(Vec::new());
    let serve = move |_: &mut Vec<u64>, context: &mut owned::Context<Vec<u64>>| {
        context.serve_ring(reader, |seen, _, event| {
            seen.push(*event);
            if seen[..] == [0, 1, 2] {
                resume_unwind(Box::new("a closure that panics"));
            }
        });
    };
    handle.post(serve).expect("the owner lives");
    let writing = thread::spawn(move || {
        for number in 0..6 {
            thread::sleep(SOON);
            writer.publish(|event| *event = number).expect("the reader lives");
        }
    });
    drop(handle);
    let mut panics = 0;
    while !surviving(|| while owner.run_once(Duration::MAX) {}) {
        panics += 1;
    }
    writing.join().expect("it does not panic");
    assert_eq!((panics, owner.into_state()), (1, vec![0, 1, 2, 2, 3, 4, 5]));
}

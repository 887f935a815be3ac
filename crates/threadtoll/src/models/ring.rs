//! The ring. A frame holds two events; a ring for one or two has two frames, for up to four three,
//! and so on.

use std::mem;
use std::ops::Range;
use std::time::Duration;

use super::checker::thread;
use super::{Message, model, settled, tally};
use crate::error::{RecvError, RecvTimeoutError, SendError};
use crate::ring::{Builder, Options, Reader, Writer};
use crate::sync::{Arc, AtomicUsize, Ordering};
use crate::wait::Wait::{self, Park, SpinYield};

/// A timeout that may pass at any moment of a sleep.
const HOUR: Duration = Duration::from_secs(3600);

fn builder(wait: Wait, capacity: usize) -> Builder<usize> {
    Options::new().wait(wait).builder(capacity, || 0)
}

/// A ring with one reader.
fn single(wait: Wait, capacity: usize) -> (Writer<usize>, Reader<usize>) {
    let mut builder = builder(wait, capacity);
    let reader = builder.reader();
    (builder.start().unwrap(), reader)
}

/// A ring with two readers, of which the second comes after the first.
fn chain(wait: Wait, capacity: usize) -> (Writer<usize>, Reader<usize>, Reader<usize>) {
    let mut builder = builder(wait, capacity);
    let first = builder.reader();
    let second = builder.reader_after([&first]);
    (builder.start().unwrap(), first, second)
}

fn give(writer: &mut Writer<usize>, numbers: Range<usize>) {
    numbers.for_each(|number| writer.publish(|event| *event = number).unwrap());
}

/// Receives these numbers without sleeping. Returns `true` if a dependency has not read them all.
fn take(reader: &mut Reader<usize>, numbers: Range<usize>) -> bool {
    let (mut next, mut lost) = (numbers.start, false);
    while next < numbers.end {
        match reader.try_recv_batch() {
            Ok(batch) => {
                lost |= batch.has_lost_dependency();
                for number in &batch {
                    assert_eq!(*number, next);
                    next += 1;
                }
            }
            Err(error) => assert!(error.is_empty()),
        }
        if next < numbers.end {
            thread::yield_now();
        }
    }
    assert_eq!(next, numbers.end);
    lost
}

/// Like [`take`], but sleeps until they come.
fn wait_for(reader: &mut Reader<usize>, numbers: Range<usize>) -> bool {
    let (mut next, mut lost) = (numbers.start, false);
    while next < numbers.end {
        let batch = reader.recv_batch().unwrap();
        lost |= batch.has_lost_dependency();
        for number in &batch {
            assert_eq!(*number, next);
            next += 1;
        }
    }
    assert_eq!(next, numbers.end);
    lost
}

/// Receives until the writer has left. Returns the number of events.
fn drain(reader: &mut Reader<usize>) -> usize {
    let mut next = 0;
    while let Ok(batch) = reader.recv_batch() {
        assert!(!batch.has_lost_dependency());
        for number in &batch {
            assert_eq!(*number, next);
            next += 1;
        }
    }
    next
}

/// Publishes these numbers in another thread.
fn giving(mut writer: Writer<usize>, numbers: Range<usize>) -> thread::JoinHandle<Writer<usize>> {
    thread::spawn(move || {
        give(&mut writer, numbers);
        writer
    })
}

model! {
    /// Three events, past the end of a frame.
    hand_over(Refuses)
    orders [publish_event, see_event]
    {
        let (writer, mut reader) = single(SpinYield, 4);
        let writing = giving(writer, 0..3);
        take(&mut reader, 0..3);
        writing.join().unwrap();
    }
}

model! {
    /// The reader is so far behind that it reads the writer's position.
    far_behind(Refuses)
    orders [tell_position, see_position]
    {
        let (mut writer, mut reader) = single(SpinYield, 8);
        give(&mut writer, 0..4);
        let writing = giving(writer, 4..6);
        take(&mut reader, 0..6);
        writing.join().unwrap();
    }
}

model! {
    /// The writer reuses slots that the reader has just read.
    wrap_around(Refuses)
    orders [tell_position, see_position]
    {
        let (mut writer, mut reader) = single(SpinYield, 4);
        give(&mut writer, 0..4);
        let writing = thread::spawn(move || {
            // Slot 0 is that of event 6.
            (4..7).all(|number| writer.try_publish(|event| *event = number).is_ok());
            writer
        });
        take(&mut reader, 0..4);
        writing.join().unwrap();
    }
}

model! {
    /// As many events as the ring holds become visible at once, in two frames.
    publish_many(Refuses)
    steps [first_frame_last, spare_frame]
    {
        let (mut writer, mut reader) = single(SpinYield, 2);
        give(&mut writer, 0..1);
        take(&mut reader, 0..1);
        let writing = thread::spawn(move || {
            writer.publish_many(2, |index, event| *event = 1 + index).unwrap();
            writer
        });
        loop {
            if let Ok(batch) = reader.try_recv_batch() {
                break assert!(batch.iter().eq(&[1, 2]));
            }
            thread::yield_now();
        }
        writing.join().unwrap();
    }
}

model! {
    /// Events become visible at once in more frames than those of which a reader reads the headers
    /// before it reads the writer's position, which is stored later.
    publish_many_frames(Refuses)
    steps [first_frame_last, look_on]
    {
        let (mut writer, mut reader) = single(SpinYield, 6);
        give(&mut writer, 0..1);
        take(&mut reader, 0..1);
        let writing = thread::spawn(move || {
            writer.publish_many(5, |index, event| *event = 1 + index).unwrap();
            writer
        });
        loop {
            if let Ok(batch) = reader.try_recv_batch() {
                break assert!(batch.iter().eq(&[1, 2, 3, 4, 5]));
            }
            thread::yield_now();
        }
        writing.join().unwrap();
    }
}

model! {
    /// A reader comes after two others.
    diamond(Refuses)
    orders [tell_position, see_position]
    steps [wait_for_all]
    {
        let mut builder = builder(SpinYield, 2);
        let (one, other) = (builder.reader(), builder.reader());
        let mut last = builder.reader_after([&one, &other]);
        let mut writer = builder.start().unwrap();
        give(&mut writer, 0..1);
        let done = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let read = |mut reader: Reader<usize>, done: &AtomicUsize| {
            let batch = reader.try_recv_batch().unwrap();
            assert!(batch.iter().eq(&[0]));
            done.store(1, Ordering::Relaxed);
            drop(batch);
            reader
        };
        let done_by_all = Arc::clone(&done);
        // In a thread of its own: loom does not return a value that the thread saw before it
        // yielded, and this one has seen the zeros.
        let reading_last = thread::spawn(move || {
            take(&mut last, 0..1);
            assert!(done_by_all.iter().all(|done| done.load(Ordering::Relaxed) == 1));
            last
        });
        let done_by_one = Arc::clone(&done);
        let reading = thread::spawn(move || read(one, &done_by_one[0]));
        let _other = read(other, &done[1]);
        let _last = reading_last.join().unwrap();
        reading.join().unwrap();
    }
}

model! {
    /// The writer reuses slots that the last of two readers in a row has just read, without asking
    /// the first.
    gated_by_the_last(Refuses) fewer 1
    orders [tell_position, see_position]
    {
        let (mut writer, mut first, mut last) = chain(SpinYield, 4);
        give(&mut writer, 0..4);
        let reading = thread::spawn(move || {
            take(&mut first, 0..4);
            first
        });
        let writing = thread::spawn(move || {
            // Slot 0 is that of event 6.
            (4..7).all(|number| writer.try_publish(|event| *event = number).is_ok());
            writer
        });
        take(&mut last, 0..4);
        writing.join().unwrap();
        reading.join().unwrap();
    }
}

model! {
    /// The last of two readers in a row leaves, so the writer has to ask the first.
    last_reader_leaves(Orders) fewer 1
    steps [gate_by_others]
    {
        let (mut writer, mut first, last) = chain(Park, 1);
        give(&mut writer, 0..1);
        take(&mut first, 0..1);
        let writing = giving(writer, 1..2);
        let leaving = thread::spawn(move || drop(last));
        wait_for(&mut first, 1..2);
        leaving.join().unwrap();
        writing.join().unwrap();
    }
}

model! {
    /// A reader leaves after it has read slots that the writer then reuses.
    reader_leaves(Refuses)
    orders [tell_gone]
    {
        let mut builder = builder(SpinYield, 4);
        let (mut leaver, mut other) = (builder.reader(), builder.reader());
        let mut writer = builder.start().unwrap();
        give(&mut writer, 0..4);
        let writing = thread::spawn(move || {
            take(&mut other, 0..4);
            // Slot 0 is that of event 6.
            for number in 4..7 {
                give(&mut writer, number..number + 1);
                take(&mut other, number..number + 1);
            }
            (writer, other)
        });
        let batch = leaver.try_recv_batch().unwrap();
        assert!(batch.iter().eq(&[0, 1, 2, 3]));
        // As if the thread panicked: the position does not change.
        mem::forget(batch);
        drop(leaver);
        writing.join().unwrap();
    }
}

model! {
    /// The middle one of three readers in a row leaves. The last one then follows the first.
    middle_reader_leaves(Refuses)
    steps [follow_beyond]
    {
        let mut builder = builder(SpinYield, 2);
        let mut first = builder.reader();
        let middle = builder.reader_after([&first]);
        let mut last = builder.reader_after([&middle]);
        let mut writer = builder.start().unwrap();
        give(&mut writer, 0..1);
        let leaving = thread::spawn(move || drop(middle));
        let done = Arc::new(AtomicUsize::new(0));
        let is_done = Arc::clone(&done);
        let reading = thread::spawn(move || {
            assert!(take(&mut last, 0..1), "the middle one has not read it");
            assert_eq!(is_done.load(Ordering::Relaxed), 1);
            last
        });
        thread::yield_now();
        let batch = first.try_recv_batch().unwrap();
        done.store(1, Ordering::Relaxed);
        drop(batch);
        let _last = reading.join().unwrap();
        leaving.join().unwrap();
    }
}

model! {
    /// A reader sleeps until an event comes, twice.
    sleeping_reader(Orders, Lacks, Busy)
    orders [barrier_in_ring, ring_fence_of_owner, ring_fence_of_sleeper, announce]
    steps [look_before_sleep, expected_word]
    {
        let (writer, mut reader) = single(Park, 4);
        let writing = giving(writer, 0..2);
        wait_for(&mut reader, 0..2);
        writing.join().unwrap();
    }
}

model! {
    /// A reader sleeps until the one before it has read an event.
    sleeping_behind_a_reader(Orders, Lacks)
    orders [barrier_in_ring, ring_fence_of_owner, announce]
    steps [look_before_sleep]
    {
        let (mut writer, mut first, mut last) = chain(Park, 2);
        give(&mut writer, 0..1);
        let reading = thread::spawn(move || {
            wait_for(&mut last, 0..1);
            last
        });
        // After this the first reader does nothing more.
        take(&mut first, 0..1);
        reading.join().unwrap();
    }
}

model! {
    /// A reader sleeps until both readers before it have read an event, in whatever order.
    sleeping_behind_two_readers(Orders) fewer 1
    steps [look_before_sleep]
    {
        let mut builder = builder(Park, 2);
        let readers = [builder.reader(), builder.reader()];
        let mut last = builder.reader_after(&readers);
        let mut writer = builder.start().unwrap();
        give(&mut writer, 0..1);
        let reading = readers.map(|mut reader| thread::spawn(move || {
            take(&mut reader, 0..1);
            reader
        }));
        wait_for(&mut last, 0..1);
        reading.into_iter().for_each(|reading| drop(reading.join().unwrap()));
    }
}

model! {
    /// The writer sleeps until there is room.
    sleeping_writer(Orders, Lacks)
    orders [barrier_in_ring, ring_fence_of_owner, announce]
    steps [look_before_sleep]
    {
        let (mut writer, mut reader) = single(Park, 1);
        give(&mut writer, 0..1);
        let writing = giving(writer, 1..2);
        // After this the reader does nothing more.
        take(&mut reader, 0..1);
        let _writer = writing.join().unwrap();
        take(&mut reader, 1..2);
    }
}

model! {
    /// Two readers sleep on one word. One sets the bit again before the other one is asleep.
    two_sleepers(Lacks)
    steps [epoch]
    {
        let mut builder = builder(Park, 2);
        let (mut one, mut other) = (builder.reader(), builder.reader());
        let mut writer = builder.start().unwrap();
        let first = thread::spawn(move || {
            wait_for(&mut one, 0..1);
            one
        });
        let second = thread::spawn(move || {
            wait_for(&mut other, 0..1);
            assert!(other.recv_batch_timeout(HOUR).is_err_and(|error| error.is_timeout()));
            other
        });
        give(&mut writer, 0..1);
        first.join().unwrap();
        second.join().unwrap();
    }
}

model! {
    /// The writer leaves while the reader sleeps, or naps.
    writer_leaves(Orders, Refuses)
    orders [see_ring_closed]
    steps [wake_in_ring_close]
    {
        let (mut writer, mut reader) = single(Park, 2);
        let writing = thread::spawn(move || give(&mut writer, 0..1));
        assert_eq!(drain(&mut reader), 1);
        writing.join().unwrap();
    }
}

model! {
    /// The writer leaves, and a reader that comes after another one still receives everything.
    writer_leaves_two_readers(Orders) fewer 1
    steps [wake_in_ring_close]
    {
        let (mut writer, mut first, mut last) = chain(Park, 2);
        let writing = thread::spawn(move || give(&mut writer, 0..1));
        // It leaves when it has read everything, so the last one loses nothing.
        let reading = thread::spawn(move || assert_eq!(drain(&mut first), 1));
        assert_eq!(drain(&mut last), 1);
        reading.join().unwrap();
        writing.join().unwrap();
    }
}

model! {
    /// A reader leaves while the writer sleeps for want of room.
    reader_leaves_full(Orders, Refuses)
    steps [wake_in_ring_leave]
    {
        let mut builder = builder(Park, 1);
        let (leaver, mut other) = (builder.reader(), builder.reader());
        let mut writer = builder.start().unwrap();
        give(&mut writer, 0..1);
        take(&mut other, 0..1);
        let writing = giving(writer, 1..2);
        drop(leaver);
        let _writer = writing.join().unwrap();
        take(&mut other, 1..2);
    }
}

model! {
    /// The only reader leaves while the writer sleeps for want of room.
    readers_leave_full(Orders, Refuses)
    steps [wake_in_ring_leave]
    {
        let (mut writer, reader) = single(Park, 1);
        give(&mut writer, 0..1);
        let writing = thread::spawn(move || {
            assert_eq!(writer.publish(|_| unreachable!()), Err(SendError(())));
        });
        drop(reader);
        writing.join().unwrap();
    }
}

model! {
    /// A reader leaves while another one sleeps until it has read an event.
    reader_leaves_sleeper(Orders, Refuses)
    steps [wake_in_ring_leave]
    {
        let (mut writer, first, mut last) = chain(Park, 2);
        give(&mut writer, 0..1);
        let reading = thread::spawn(move || {
            assert!(wait_for(&mut last, 0..1), "the first one has not read it");
        });
        drop(first);
        reading.join().unwrap();
    }
}

model! {
    /// A wait times out just as an event comes, which the next one receives.
    timeout(Orders, Lacks)
    orders [publish_event, see_event]
    {
        let (writer, mut reader) = single(Park, 2);
        let writing = giving(writer, 0..1);
        let next = match reader.recv_batch_timeout(HOUR) {
            Ok(batch) => batch.iter().map(|number| number + 1).sum(),
            Err(error) => {
                assert_eq!(error, RecvTimeoutError::Timeout);
                0
            }
        };
        wait_for(&mut reader, next..1);
        writing.join().unwrap();
    }
}

model! {
    /// The writer gives up just as there is room, and then waits again.
    timeout_of_writer(Orders)
    orders [barrier_in_ring]
    {
        let (mut writer, mut reader) = single(Park, 1);
        give(&mut writer, 0..1);
        let writing = thread::spawn(move || {
            if writer.publish_timeout(HOUR, |event| *event = 1).is_err() {
                give(&mut writer, 1..2);
            }
            writer
        });
        take(&mut reader, 0..1);
        let _writer = writing.join().unwrap();
        take(&mut reader, 1..2);
    }
}

model! {
    /// All ends leave at once.
    all_leave(Refuses)
    orders [see_ring_closed]
    {
        tally(4);
        let mut made = 0;
        let mut builder = Options::new().wait(SpinYield).builder(2, || {
            made += 1;
            Message(made - 1)
        });
        let (leaver, mut other) = (builder.reader(), builder.reader());
        let mut writer = builder.start().unwrap();
        let writing = thread::spawn(move || {
            writer.publish(|event| assert_eq!(event.0, 0)).unwrap();
        });
        let leaving = thread::spawn(move || drop(leaver));
        let mut events = 0;
        let end = loop {
            match other.recv_batch() {
                Ok(batch) => events += batch.len(),
                Err(error) => break error,
            }
        };
        assert_eq!((events, end), (1, RecvError));
        drop(other);
        writing.join().unwrap();
        leaving.join().unwrap();
        settled();
    }
}

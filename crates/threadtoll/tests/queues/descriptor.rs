//! Descriptors in an event loop of `epoll(7)`, among sockets.

use std::io::{Error, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use threadtoll::error::{RecvError, TryRecvError};
use threadtoll::select::Descriptor;
use threadtoll::wait::Wait::Park;
use threadtoll::{call, funnel, oneshot, pipe, ring};

use crate::element::Random;
use crate::waker::block_on;

const LATE: Duration = Duration::from_millis(5);
/// Milliseconds that are longer than any test takes.
const NEVER: i32 = 600_000;

struct Epoll(OwnedFd);

impl Epoll {
    fn new() -> Self {
        // SAFETY: takes a number.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(fd >= 0, "{}", Error::last_os_error());
        // SAFETY: just opened, and nothing else owns it.
        Epoll(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Adds a descriptor, level-triggered.
    fn add(&self, descriptor: &impl AsFd, number: u64) {
        let fd = descriptor.as_fd().as_raw_fd();
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        // SAFETY: the descriptors are open, and the event is valid.
        let done =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        assert_eq!(done, 0, "{}", Error::last_os_error());
    }

    /// Waits for up to `timeout` milliseconds. Returns the numbers of readable descriptors.
    fn wait(&self, timeout: i32) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
        // SAFETY: there is room for eight events.
        let count =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 8, timeout) };
        assert!(count >= 0, "{}", Error::last_os_error());
        events[..count as usize].iter().map(|event| event.u64).collect()
    }
}

/// A descriptor, and an event loop that waits for it only.
fn watched() -> (Descriptor, Epoll) {
    let (descriptor, epoll) = (Descriptor::new().expect("few files are open"), Epoll::new());
    epoll.add(&descriptor, 0);
    (descriptor, epoll)
}

/// A ring wakes an event loop, also behind another reader. A reader that waits in another way, or
/// is dropped, does not.
#[test]
fn a_ring_makes_a_descriptor_readable() {
    let mut builder = ring::Builder::new(8, || 0);
    let mut first = builder.reader();
    let mut last = builder.reader_after([&first]);
    let mut writer = builder.start().expect("there are readers");
    let (mut descriptor, epoll) = watched();
    assert_eq!(descriptor.arm((&mut last,)), None);
    assert_eq!(epoll.wait(0), []);
    writer.publish(|event| *event = 1).expect("the readers live");
    drop(first.recv_batch().expect("an event is there"));
    assert_eq!(epoll.wait(NEVER), [0]);
    assert_eq!(descriptor.arm((&mut last,)), Some(0));
    assert!(last.recv_batch().expect("an event is there").iter().eq(&[1]));

    assert_eq!(descriptor.arm((&mut first, &mut last)), None);
    assert!(first.recv_batch_timeout(LATE).expect_err("nothing is there").is_timeout());
    drop(last);
    writer.publish(|event| *event = 2).expect("a reader lives");
    assert_eq!(epoll.wait(0), []);
    assert_eq!(descriptor.arm((&mut first,)), Some(0));
    drop(first.recv_batch().expect("an event is there"));
    assert_eq!(descriptor.arm((&mut first,)), None);
    drop(writer);
    assert_eq!(epoll.wait(NEVER), [0]);
    assert_eq!(descriptor.arm((&mut first,)), Some(0));
    assert_eq!(first.try_recv_batch().expect_err("all is read"), TryRecvError::Disconnected);
}

#[test]
fn an_event_loop_serves_queues_and_a_socket() {
    let (mut far, mut near) = UnixStream::pair().expect("few files are open");
    let (mut sender, mut numbers) = pipe::unbounded::<u64>();
    let (words, mut inbox) = funnel::bounded::<String>(2);
    let (mut caller, mut callee) = call::line::<u64, u64>();
    let (reply, mut answer) = oneshot::channel::<u64>();
    let (mut descriptor, epoll) = watched();
    epoll.add(&near, 1);
    let other = thread::spawn(move || {
        for number in 0..10 {
            if number % 3 == 0 {
                thread::sleep(LATE);
            }
            sender.send(number).expect("it is there");
            words.send(number.to_string()).expect("it is there");
            far.write_all(&[number as u8]).expect("it is there");
            assert_eq!(caller.call(number), Ok(number + 1));
        }
        reply.send(10).expect("it is there");
    });
    let (mut received, mut read) = ([0; 4], 0);
    // The one-shot comes last, and with it everything else has been sent.
    while received != [10, 10, 10, 1] || read < 10 {
        let sources = (&mut numbers, &mut inbox, &mut callee, &mut answer);
        match descriptor.arm(sources) {
            Some(0) if received[0] < 10 => {
                assert_eq!(numbers.try_recv(), Ok(received[0]));
                received[0] += 1;
            }
            Some(1) if received[1] < 10 => {
                assert_eq!(inbox.try_recv(), Ok(received[1].to_string()));
                received[1] += 1;
            }
            Some(2) if received[2] < 10 => {
                assert_eq!(callee.try_recv(), Ok(received[2]));
                received[2] += 1;
                callee.answer(received[2]);
            }
            Some(3) if received[3] < 1 => {
                assert_eq!(answer.try_recv(), Ok(10));
                received[3] += 1;
            }
            // The other end has left, and what has left stays ready.
            Some(_) => {
                let mut byte = [0];
                if read < 10 {
                    near.read_exact(&mut byte).expect("it was sent");
                    assert_eq!(byte, [read]);
                    read += 1;
                }
            }
            None => {
                let readable = epoll.wait(NEVER);
                assert!(!readable.is_empty());
                if readable.contains(&1) {
                    let mut byte = [0];
                    // At its end, the socket stays readable.
                    if near.read(&mut byte).expect("it is readable") == 1 {
                        assert_eq!(byte, [read]);
                        read += 1;
                    }
                }
            }
        }
    }
    other.join().expect("it does not panic");
}

#[test]
fn it_is_readable_from_the_wake_up_to_the_next_arm() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let (mut descriptor, epoll) = watched();
    for _ in 0..3 {
        assert_eq!(descriptor.arm((&mut receiver, &mut inbox)), None);
        assert!(epoll.wait(0).is_empty());
        sender.send(1).expect("it is there");
        other.send(2).expect("it is there");
        assert_eq!(epoll.wait(0), [0]);
        assert_eq!(epoll.wait(0), [0], "it is level-triggered");
        assert!(descriptor.arm((&mut receiver, &mut inbox)).is_some());
        assert!(epoll.wait(0).is_empty());
        // It is not armed now.
        sender.send(3).expect("it is there");
        assert!(epoll.wait(0).is_empty());
        assert!(descriptor.arm((&mut receiver, &mut inbox)).is_some());
        assert_eq!([receiver.recv(), receiver.recv(), inbox.recv()], [Ok(1), Ok(3), Ok(2)]);
    }
    drop((sender, other));
    assert!(descriptor.arm((&mut receiver, &mut inbox)).is_some());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn there_is_one_write_for_each_sleep() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let (mut descriptor, _epoll) = watched();
    let mut counter =
        std::fs::File::from(descriptor.as_fd().try_clone_to_owned().expect("few files are open"));
    for _ in 0..3 {
        assert_eq!(descriptor.arm((&mut receiver, &mut inbox)), None);
        for number in 0..10 {
            sender.send(number).expect("it is there");
            other.send(number).expect("it is there");
        }
        let mut writes = [0; 8];
        counter.read_exact(&mut writes).expect("it is readable");
        assert_eq!(u64::from_ne_bytes(writes), 1);
        assert!(descriptor.arm((&mut receiver, &mut inbox)).is_some());
        assert_eq!((receiver.try_iter().count(), inbox.try_iter().count()), (10, 10));
    }
}

#[test]
fn an_end_that_leaves_makes_it_readable() {
    let (mut descriptor, epoll) = watched();
    let (sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let (caller, mut callee) = call::line::<u64, u64>();
    let (reply, mut answer) = oneshot::channel::<u64>();
    assert_eq!(descriptor.arm((&mut receiver, &mut inbox)), None);
    drop(sender);
    assert_eq!(epoll.wait(NEVER), [0]);
    assert_eq!(descriptor.arm((&mut inbox, &mut receiver)), Some(1));
    assert_eq!(descriptor.arm((&mut inbox, &mut callee, &mut answer)), None);
    drop(other);
    assert_eq!(epoll.wait(NEVER), [0]);
    assert_eq!(descriptor.arm((&mut inbox,)), Some(0));
    assert_eq!(descriptor.arm((&mut callee, &mut answer)), None);
    drop(caller);
    assert_eq!(epoll.wait(NEVER), [0]);
    assert_eq!(descriptor.arm((&mut answer,)), None);
    drop(reply);
    assert_eq!(epoll.wait(NEVER), [0]);
    assert_eq!(descriptor.arm((&mut answer,)), Some(0));
    let none: &mut [pipe::Receiver<u64>] = &mut [];
    assert_eq!(descriptor.arm(none), None);
    assert!(epoll.wait(1).is_empty());
}

/// Other waits follow one that was never ended, and ends are dropped.
#[test]
fn nothing_has_to_be_disarmed() {
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::unbounded::<u64>();
    let (mut caller, mut callee) = call::Options::new().wait(Park).line::<u64, u64>();
    let (reply, mut answer) = oneshot::channel::<u64>();
    let (mut descriptor, epoll) = watched();
    let sources = (&mut receiver, &mut inbox, &mut callee, &mut answer);
    assert_eq!(descriptor.arm(sources), None);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(LATE);
            sender.send(1).expect("it is there");
            other.send(2).expect("it is there");
            assert_eq!(caller.call(3), Ok(4));
            reply.send(5).expect("it is there");
        });
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(block_on(inbox.recv_async()), Ok(2));
        assert_eq!(callee.recv(), Ok(3));
        callee.answer(4);
        assert_eq!(answer.recv(), Ok(5));
    });
    let sources = (&mut receiver, &mut inbox, &mut callee);
    assert_eq!(descriptor.arm(sources), None);
    drop(receiver);
    drop(callee);
    assert!(sender.send(1).is_err());
    assert!(caller.call(1).is_err());
    drop((epoll, descriptor));
    other.send(2).expect("it is there");
    assert_eq!(inbox.recv(), Ok(2));
    drop(other);
    assert_eq!(inbox.recv(), Err(RecvError));
}

/// Wake-ups at all times, and other waits in between.
#[test]
fn a_storm_for_an_event_loop() {
    const MESSAGES: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let (mut sender, mut receiver) = pipe::unbounded::<u64>();
    let (other, mut inbox) = funnel::bounded::<u64>(5);
    let (mut descriptor, epoll) = watched();
    thread::scope(|scope| {
        let rest = |random: &mut Random| match random.below(50) {
            0 => thread::sleep(Duration::from_micros(random.below(100))),
            1..20 => (0..random.below(200)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        };
        scope.spawn(move || {
            let mut random = Random::new(1);
            for number in 0..MESSAGES {
                sender.send(number).expect("it is there");
                rest(&mut random);
            }
        });
        scope.spawn(move || {
            let mut random = Random::new(2);
            for number in 0..MESSAGES {
                other.send(number).expect("it is there");
                rest(&mut random);
            }
        });
        let (mut random, mut next) = (Random::new(3), [0, 0]);
        while next != [MESSAGES; 2] {
            let found = descriptor.arm((&mut receiver, &mut inbox));
            let received = match found {
                Some(0) => receiver.try_recv(),
                Some(_) => inbox.try_recv(),
                None => {
                    if random.below(4) > 0 {
                        assert_eq!(epoll.wait(NEVER), [0]);
                    }
                    continue;
                }
            };
            let index = found.unwrap_or_default();
            if let Ok(number) = received {
                assert_eq!(number, next[index]);
                next[index] += 1;
            } else {
                // It has left. Receives the rest of the other.
                assert_eq!(next[index], MESSAGES);
                let rest = if index == 0 { inbox.recv() } else { receiver.recv() };
                let index = 1 - index;
                match rest {
                    Ok(number) => {
                        assert_eq!(number, next[index]);
                        next[index] += 1;
                    }
                    Err(error) => assert_eq!((error, next[index]), (RecvError, MESSAGES)),
                }
            }
        }
    });
}

//! Huge capacities, messages that are huge or have no size, and the initial memory of a pipe.

use std::panic::catch_unwind;
use std::thread;

use threadtoll::{call, funnel, oneshot, pipe};

/// Most bytes of a pipe before anything was sent.
const AT_BIRTH: usize = 20_000;

fn ring_bytes<T: Send>() -> [usize; 4] {
    [1, 1000, usize::MAX]
        .map(Some)
        .into_iter()
        .chain([None])
        .map(|capacity| {
            let (sender, receiver) = match capacity {
                Some(capacity) => pipe::bounded::<T>(capacity),
                None => pipe::unbounded(),
            };
            assert_eq!(sender.memory(), receiver.memory());
            let pipe::MemoryUse { ring_bytes, burst_bytes, kept_bytes } = sender.memory();
            assert_eq!((burst_bytes, kept_bytes), (0, 0));
            ring_bytes
        })
        .collect::<Vec<_>>()
        .try_into()
        .expect("as many as went in")
}

#[test]
fn a_pipe_begins_small() {
    for bytes in [
        ring_bytes::<()>(),
        ring_bytes::<u8>(),
        ring_bytes::<u64>(),
        ring_bytes::<[u8; 60]>(),
        ring_bytes::<[u64; 8]>(),
        ring_bytes::<[u64; 32]>(),
        ring_bytes::<[u64; 64]>(),
    ] {
        assert!(bytes.iter().all(|&bytes| bytes <= AT_BIRTH), "{bytes:?}");
    }
}

/// Sends and receives some messages in a pipe that could hold many more.
fn hardly_fill<T: Send + PartialEq>(capacity: usize, message: impl Fn(u64) -> T) {
    let (mut sender, mut receiver) = pipe::bounded::<T>(capacity);
    assert_eq!(sender.capacity(), Some(capacity));
    for round in 0..3 {
        for number in 0..100_000 {
            assert!(sender.try_send(message(number)).is_ok());
        }
        assert_eq!((sender.len(), sender.is_full(), receiver.is_full()), (100_000, false, false));
        assert!(receiver.try_iter().eq((0..100_000).map(&message)), "round {round}");
    }
    let held = sender.memory().ring_bytes;
    assert!(held <= 8 * 100_000 * size_of::<T>() + AT_BIRTH, "{held} bytes");
}

#[test]
fn a_large_capacity_costs_nothing_until_it_is_used() {
    for capacity in [1 << 40, usize::MAX] {
        hardly_fill::<u64>(capacity, |number| number);
        hardly_fill::<()>(capacity, |_| ());
        hardly_fill::<u8>(capacity, |number| number as u8);
    }
}

/// Zero-sized messages need memory only for headers.
#[test]
fn messages_of_no_size_take_no_memory() {
    let (mut sender, mut receiver) = pipe::unbounded::<()>();
    for _ in 0..2_000_000 {
        sender.send(()).expect("the receiver lives");
    }
    assert_eq!((sender.len(), sender.memory().burst_bytes), (2_000_000, 0));
    assert!(sender.memory().ring_bytes <= AT_BIRTH);
    assert_eq!(receiver.try_iter().count(), 2_000_000);
}

/// A capacity and a number of messages, at both ends.
macro_rules! assert_holds {
    ($sender:ident, $receiver:ident, $inside:expr, $capacity:expr) => {
        for (length, full, capacity) in [
            ($sender.len(), $sender.is_full(), $sender.capacity()),
            ($receiver.len(), $receiver.is_full(), $receiver.capacity()),
        ] {
            assert_eq!((length, capacity), ($inside, $capacity));
            assert_eq!(full, capacity == Some($inside));
        }
    };
}

#[test]
fn messages_of_no_size_are_counted() {
    const CAPACITY: usize = 256;
    let (mut sender, mut receiver) = pipe::bounded::<()>(CAPACITY);
    for _ in 0..3 {
        for sent in 0..CAPACITY {
            assert_holds!(sender, receiver, sent, Some(CAPACITY));
            assert!(sender.try_send(()).is_ok());
        }
        assert_holds!(sender, receiver, CAPACITY, Some(CAPACITY));
        assert!(sender.try_send(()).is_err());
        assert_eq!(receiver.try_iter().count(), CAPACITY);
    }
    let (mut sender, mut receiver) = pipe::Options::new().reserve().unbounded::<()>();
    (0..100_000).for_each(|_| sender.send(()).expect("the receiver lives"));
    assert_holds!(sender, receiver, 100_000, None);
    assert_eq!(receiver.try_iter().count(), 100_000);

    let (sender, mut receiver) = funnel::bounded::<()>(CAPACITY);
    for _ in 0..30 {
        for sent in 0..CAPACITY {
            assert_holds!(sender, receiver, sent, Some(CAPACITY));
            assert!(sender.try_send(()).is_ok());
        }
        assert!(sender.try_send(()).is_err());
        assert_eq!(receiver.try_iter().count(), CAPACITY);
    }
    let (sender, mut receiver) = funnel::unbounded::<()>();
    (0..100_000).for_each(|_| sender.send(()).expect("the receiver lives"));
    assert_holds!(sender, receiver, 100_000, None);
    assert_eq!(receiver.try_iter().count(), 100_000);
}

fn at_the_edges<T: Send + Clone + PartialEq>(message: T) {
    let bytes = size_of::<T>().max(1);
    for capacity in [1, isize::MAX as usize / bytes, isize::MAX as usize / bytes + 1, 1 << 63] {
        for capacity in [capacity, capacity.wrapping_sub(1).max(1), usize::MAX] {
            let (mut sender, mut receiver) = pipe::bounded::<T>(capacity);
            assert!(sender.send(message.clone()).is_ok());
            assert_holds!(sender, receiver, 1, Some(capacity));
            assert!(receiver.recv().is_ok_and(|received| received == message));
            let (sender, mut receiver) = funnel::bounded::<T>(capacity);
            assert!(sender.send(message.clone()).is_ok());
            assert_holds!(sender, receiver, 1, Some(capacity));
            assert!(receiver.recv().is_ok_and(|received| received == message));
        }
    }
}

#[test]
fn capacities_at_the_edges_of_the_address_space() {
    #[derive(Clone, PartialEq)]
    #[repr(align(4096))]
    struct Page(u8);

    at_the_edges(());
    at_the_edges(1u8);
    at_the_edges(2u64);
    at_the_edges([3u64; 64]);
    at_the_edges(Page(4));
    for capacity in [|| drop(pipe::bounded::<u64>(0)), || drop(funnel::bounded::<u64>(0))] {
        assert!(catch_unwind(capacity).is_err());
    }
}

#[test]
fn to_reserve_what_cannot_be_addressed_panics() {
    for capacity in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8] {
        let made = catch_unwind(|| pipe::Options::new().reserve().bounded::<u64>(capacity));
        assert!(made.is_err(), "{capacity}");
    }
}

/// A queue is made where it stays, and not on the stack. An optimised build removes the copies that
/// overflowed it; `ci/package.sh` runs this without.
#[test]
fn the_stack_need_not_hold_a_queue_of_large_messages() {
    type Large = [u8; 1 << 19];
    let made = thread::Builder::new().stack_size(2 << 20).spawn(|| {
        drop(pipe::unbounded::<Large>());
        drop(pipe::bounded::<Large>(1));
        drop(funnel::unbounded::<Large>());
        drop(funnel::bounded::<Large>(1));
        drop(call::line::<Large, Large>());
        drop(oneshot::channel::<Large>());
    });
    made.expect("there is a thread").join().expect("an overflow would end the process");
}

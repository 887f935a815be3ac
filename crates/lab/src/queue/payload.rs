//! `payload`: one sender sends messages of 8 bytes to 64 KiB as fast as it can. Every word of a
//! message is written and read.
//!
//! ```text
//!   moved     sender: write ──▶ move into the queue   receiver: move out of it ──▶ read
//!   in place  sender: write a free slot of the queue  receiver: read it there, release it
//! ```
//!
//! The messages of each size have a type of their own.
//!
//! If the sender is faster than the receiver, an unbounded queue grows, as it would in a program.
//! Once it holds 64 MiB, the sender waits for the receiver.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Carry, Load};

use crate::cache_padded::CachePadded;
use crate::error::Unavailable;
use crate::exchange::{on_a_line, with};
use crate::polling::poll_until;
use crate::program::Program;
use crate::stream::{Received, ReceiverLoop, SenderLoop, StreamControl, StreamSpec, Streams};

use super::message::{MESSAGE_BYTES, Message, Words};
use super::stream::{StretchStamps, receive_pass};
use super::{
    AnySize, Channel, DEFAULT, Grouping, Loops, MAX_CAPACITY, RING_BYTES, Scenario, Sink, Source,
    Unsuitable, Usage, only,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "payload",
    sentence: "throughput of messages of 8 B to 64 KiB, moved into the queue or filled in place",
    loads: || loads(None),
    payloads: &MESSAGE_BYTES,
    sizes: &MESSAGE_BYTES,
    has_load,
    capacity: |slots, _| slots.capacity_within(RING_BYTES).max(slots.capacity(LEAST_CAPACITY)),
    grouping: Grouping::LoadAndRow,
    ..DEFAULT
};

/// Minimum default capacity of a bounded queue: one message is written while another is read.
const LEAST_CAPACITY: u64 = 2;
/// Number of bytes by which the sender may be ahead of the receiver in an unbounded queue.
const AHEAD_BYTES: u64 = 64 << 20;
/// Between two checks of the stop flag, the sender sends `ROUND` messages or, if messages are
/// large, about `ROUND_BYTES`.
const ROUND: u64 = super::stream::ROUND;
const ROUND_BYTES: u64 = 64 << 10;
/// Before the first stamp of a block, the receiver receives `SETTLING` messages or, if messages are
/// large, about `SETTLING_BYTES`.
const SETTLING: u64 = super::stream::SETTLING;
const SETTLING_BYTES: u64 = 1 << 20;
/// Maximum ring size that may be requested, in bytes of messages.
const MAX_RING_BYTES: u64 = MAX_CAPACITY * 8;

/// Returns loads that carry messages in these ways; `None` takes all ways.
pub fn loads(carries: Option<&[Carry]>) -> Vec<Load> {
    let carries = carries.unwrap_or(&Carry::ALL);
    // In the order of `Carry::ALL`, each load follows the load with which it is compared.
    let asked = Carry::ALL.into_iter().filter(|carry| carries.contains(carry));
    asked.map(|carry| Load { carry: Some(carry), ..Load::NONE }).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let plain = Load { carry: load.carry, ..Load::NONE };
    only(&plain, load.carry.is_some(), load, "the scenario does not support this load")
}

/// Rejects capacities that would take too much memory.
///
/// # Errors
///
/// Returns an error if a ring for messages of the largest size would be too large.
pub fn check(capacities: Option<&[u64]>, payloads: Option<&[u64]>) -> Result<(), Unsuitable> {
    let largest = payloads.unwrap_or(&MESSAGE_BYTES).iter().copied().max().unwrap_or(8);
    let most = MAX_RING_BYTES / largest;
    match capacities.into_iter().flatten().find(|capacity| **capacity > most) {
        None => Ok(()),
        Some(capacity) => Err(Unsuitable {
            why: format!(
                "--capacity {capacity}: queues hold at most {most} messages of {largest} bytes"
            ),
            hint: "use a smaller capacity or payload",
        }),
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: AnySize>(channel: &C, usage: Usage) -> Option<Program> {
        match (usage.load.carry?, usage.payload_bytes) {
            // Moving single words is the scenario `stream` without batches.
            (Carry::Moved, 8) => super::stream::Compiled::one_sender(channel, usage),
            (Carry::InPlace, 8) => in_place::<u64, C>(channel, &usage),
            (carry, 64) => typed::<Words<8>, C>(channel, &usage, carry),
            (carry, 512) => typed::<Words<64>, C>(channel, &usage, carry),
            (carry, 4096) => typed::<Words<512>, C>(channel, &usage, carry),
            (carry, 65_536) => typed::<Words<8192>, C>(channel, &usage, carry),
            _ => None,
        }
    }
}

fn typed<M: Message, C: Channel<M>>(channel: &C, usage: &Usage, carry: Carry) -> Option<Program> {
    if carry == Carry::InPlace {
        return in_place::<M, C>(channel, usage);
    }
    let channel = channel.clone();
    Some(program(usage, move |capacity, pace| {
        let (source, sink) = channel.open(capacity)?;
        Ok(streams_of::<M>(Moved(source), Moved(sink), pace))
    }))
}

fn in_place<M: Message, C: Channel<M>>(channel: &C, usage: &Usage) -> Option<Program> {
    // `if` instead of `then`: no loop is compiled for queues that cannot write in place.
    if C::IN_PLACE {
        let channel = channel.clone();
        return Some(program(usage, move |capacity, pace| {
            let (source, sink) = channel.open(capacity)?;
            Ok(streams_of::<M>(source, sink, pace))
        }));
    }
    None
}

/// Message size from which the loops are compiled once and not once per queue. A message of this
/// size takes hundreds of nanoseconds, so an indirect call makes no difference.
const ERASED_BYTES: usize = 4096;

fn streams_of<M: Message>(to: impl Source<M>, from: impl Sink<M>, pace: Pace) -> Streams {
    if size_of::<M>() >= ERASED_BYTES {
        let (to, from): (Box<dyn Source<M>>, Box<dyn Sink<M>>) = (Box::new(to), Box::new(from));
        return streams::<M>(to, from, pace);
    }
    streams::<M>(to, from, pace)
}

fn program(
    usage: &Usage,
    make: impl Fn(usize, Pace) -> Result<Streams, Unavailable> + Send + Sync + 'static,
) -> Program {
    let (capacity, pace) = (usage.flow.capacity, Pace::new(usage));
    usage.stream(pace.round, Arc::new(move || make(capacity, pace)))
}

#[derive(Clone, Copy)]
struct Pace {
    round: u64,
    settling: u64,
    ahead: u64,
}

impl Pace {
    fn new(usage: &Usage) -> Self {
        let payload_bytes = usage.payload_bytes;
        let round = (ROUND_BYTES / payload_bytes).clamp(1, ROUND);
        let settling = (SETTLING_BYTES / payload_bytes).clamp(1, SETTLING);
        let ahead = if usage.grows { AHEAD_BYTES / payload_bytes } else { u64::MAX };
        Pace { round, settling, ahead }
    }
}

fn streams<M: Message>(to: impl Source<M>, from: impl Sink<M>, pace: Pace) -> Streams {
    let received = Arc::new(CachePadded(AtomicU64::new(0)));
    let sender = Sending {
        to: Some(to),
        next: 1,
        round: pace.round,
        ahead: pace.ahead,
        known: 0,
        received: Arc::clone(&received),
        message: PhantomData::<M>,
    };
    let receiver = Receiving {
        from: Some(from),
        next: 1,
        round: pace.round,
        settling: pace.settling.next_multiple_of(pace.round),
        received,
        message: PhantomData::<M>,
    };
    Streams { senders: vec![Box::new(sender)], receiver: Box::new(receiver) }
}

/// An end that moves messages even if they could be written and read in place.
struct Moved<E>(E);

impl<M: Message, S: Source<M>> Source<M> for Moved<S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn send(&mut self, message: M) {
        self.0.send(message);
    }
}

impl<M: Message, S: Sink<M>> Sink<M> for Moved<S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn receive(&mut self) -> M {
        self.0.receive()
    }
}

#[repr(align(128))]
struct Sending<M, T> {
    to: Option<T>,
    next: u64,
    round: u64,
    ahead: u64,
    /// Number of received messages, as last read from `received`.
    known: u64,
    received: Arc<CachePadded<AtomicU64>>,
    message: PhantomData<M>,
}

impl<M: Message, T: Source<M>> SenderLoop for Sending<M, T> {
    fn enter(&mut self) {
        with(&mut self.to, Source::<M>::enter);
    }

    fn send(&mut self, sender: usize, control: &StreamControl) -> u64 {
        on_a_line();
        let Sending { round, ahead, .. } = *self;
        let (begin, received) = (self.next, &self.received.0);
        let (mut next, mut known) = (begin, self.known);
        with(
            &mut self.to,
            #[inline(always)]
            |to| loop {
                if next - known > ahead {
                    known = await_receiver(received, next.saturating_sub(ahead));
                }
                let last = control.stopped();
                if last {
                    control.announce(sender, next - begin + round);
                }
                for _ in 0..round {
                    to.send_in_place(next);
                    next += 1;
                }
                if last {
                    break;
                }
            },
        );
        (self.next, self.known) = (next, known);
        next - begin
    }

    fn code(&self) -> usize {
        Self::send as *const () as usize
    }
}

/// Waits until at least `least` messages have been received. Returns the number received.
#[cold]
fn await_receiver(received: &AtomicU64, least: u64) -> u64 {
    let mut known = 0;
    poll_until(|| {
        // Relaxed, like the store in the receiver: no data depends on this counter.
        known = received.load(Ordering::Relaxed);
        known >= least
    });
    known
}

#[repr(align(128))]
struct Receiving<M, F> {
    from: Option<F>,
    next: u64,
    round: u64,
    settling: u64,
    received: Arc<CachePadded<AtomicU64>>,
    message: PhantomData<M>,
}

impl<M: Message, F: Sink<M>> Receiving<M, F> {
    /// Receives the stretches of a pass. Each is a whole number of rounds.
    #[inline(never)]
    fn stretches(&mut self, spec: StreamSpec, marks: &mut StretchStamps<'_>) -> Received {
        on_a_line();
        let (begin, round, received) = (self.next, self.round, &self.received.0);
        let (next, wrong) = with(
            &mut self.from,
            #[inline(always)]
            |from| {
                let (mut next, mut wrong) = (begin, 0);
                for _ in 0..spec.stretches {
                    for _ in 0..spec.per_stretch / round {
                        for _ in 0..round {
                            // No branch: `wrong` is checked once per block.
                            wrong |= from.receive_in_place(next);
                            next += 1;
                        }
                        received.store(next - 1, Ordering::Relaxed);
                    }
                    if marks.mark() >= spec.until {
                        break;
                    }
                }
                (next, wrong)
            },
        );
        self.next = next;
        Received { messages: next - begin, wrong }
    }
}

impl<M: Message, F: Sink<M>> ReceiverLoop for Receiving<M, F> {
    fn enter(&mut self) {
        with(&mut self.from, Sink::<M>::enter);
    }

    fn receive(
        &mut self,
        spec: StreamSpec,
        control: &StreamControl,
        clock: &Clock,
        times: Option<&mut Vec<u64>>,
    ) -> Received {
        let marks = StretchStamps::new(clock, times);
        receive_pass(self.settling, spec, self.round, control, marks, |spec, marks| {
            self.stretches(spec, marks)
        })
    }

    fn code(&self) -> usize {
        Self::stretches as *const () as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::first_word;
    use super::*;

    struct Gives(Vec<u64>);

    impl Sink for Gives {
        fn receive(&mut self) -> u64 {
            self.0.remove(0)
        }
    }

    #[test]
    fn a_message_that_is_lost_or_comes_twice_is_detected() {
        let wrong = |numbers: &[u64]| {
            let words = numbers.iter().map(|number| first_word(*number)).collect();
            let mut from = Moved(Gives(words));
            let receive = |number| Sink::<u64>::receive_in_place(&mut from, number);
            (1..=3).map(receive).fold(0, |wrong, bits| wrong | bits)
        };
        assert_eq!(wrong(&[1, 2, 3]), 0);
        assert_ne!(wrong(&[1, 3, 4]), 0, "2 was lost");
        assert_ne!(wrong(&[1, 1, 2]), 0, "1 came twice");
        assert_ne!(wrong(&[2, 1, 3]), 0, "2 overtook 1");
    }

    #[test]
    fn a_sender_far_ahead_waits_for_the_receiver() {
        let received = Arc::new(AtomicU64::new(3));
        assert_eq!(await_receiver(&received, 3), 3);
        let other = Arc::clone(&received);
        let waiting = std::thread::spawn(move || await_receiver(&other, 5));
        received.store(4, Ordering::Relaxed);
        received.store(6, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap(), 6);
    }

    #[test]
    fn rounds_are_short_and_what_is_ahead_is_limited_whatever_the_size() {
        for payload_bytes in MESSAGE_BYTES {
            let flow = crate::queue::Flow { senders: 1, batch: 1, capacity: 1 };
            let usage = Usage {
                flow,
                class: crate::mechanism::Class::Spin,
                grows: true,
                load: Load::NONE,
                payload_bytes,
            };
            let pace = Pace::new(&usage);
            assert!((1..=ROUND).contains(&pace.round));
            assert!(pace.round == 1 || pace.round * payload_bytes <= ROUND_BYTES);
            assert!(pace.ahead * payload_bytes <= AHEAD_BYTES && pace.ahead > 2 * pace.round);
            let bounded = Usage { grows: false, ..usage };
            assert_eq!(Pace::new(&bounded).ahead, u64::MAX);
        }
    }
}

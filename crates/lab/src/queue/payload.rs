//! `payload`: one sender, as fast as it can, and messages of 8 bytes to 1 MiB of which every word
//! is written and read.
//!
//! ```text
//!   moved     sender: write ──▶ move into the queue   receiver: move out of it ──▶ read
//!   in place  sender: write a free slot of the queue  receiver: read it there, release it
//!   words     sender: write ──▶ send all words        receiver: receive words, read them
//! ```
//!
//! Moved messages, and those in place, are of a type for each size. Words go through a queue of
//! words, which their sender gives a message at a time and their receiver takes as they come: a
//! byte stream.
//!
//! An unbounded queue grows if its sender is faster, as it would in a program, but by no more than
//! [`AHEAD_BYTES`]: then its sender waits for the receiver.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Carry, Kind, Load, Origin};

use crate::cache_padded::CachePadded;
use crate::error::Unavailable;
use crate::exchange::on_a_line;
use crate::plan::MAX_PAYLOAD;
use crate::program::Program;
use crate::stream::{Received, ReceiverLoop, SenderLoop, StreamControl, StreamSpec, Streams};

use super::message::{MESSAGE_BYTES, Message, Words, first_word};
use super::stream::{StretchStamps, budget, no_samples, receive_pass_after, with};
use super::words::{count_up, difference};
use super::{
    AnySize, Asked, BLOCKS, Channel, Grouping, LoadOption, Loops, MAX_BATCH, MAX_CAPACITY,
    Overrides, Queue, RING_BYTES, Scenario, Sink, Source, Unsuitable, Usage, Way,
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "payload",
    sentence: "throughput of messages of 8 B to 64 KiB: moved, filled in place, or as a byte stream",
    kind: Kind::Stream,
    options: &[LoadOption::Payload, LoadOption::Carry],
    required: &[],
    check,
    loads,
    payloads,
    has_load,
    budget,
    capacity: |slots, _| slots.capacity_within(RING_BYTES).max(slots.capacity(LEAST_CAPACITY)),
    batches,
    wake_up: None,
    senders: |_, _| vec![1],
    grouping: Grouping::LoadAndRow,
};

/// Fewest messages of a bounded queue by default: one that is written, and one that is read.
const LEAST_CAPACITY: u64 = 2;
/// Bytes by which the sender of an unbounded queue may be ahead of the receiver.
const AHEAD_BYTES: u64 = 64 << 20;
/// Most messages, and about the bytes, between two checks of the stop flag.
const ROUND: u64 = super::stream::ROUND;
const ROUND_BYTES: u64 = 64 << 10;
/// Most messages, and about the bytes, before the first stamp of a block.
const SETTLING: u64 = super::stream::SETTLING;
const SETTLING_BYTES: u64 = 1 << 20;
/// Most bytes of a requested ring, without anything but messages in it.
const MAX_RING_BYTES: u64 = MAX_CAPACITY * 8;

fn payloads(overrides: &Overrides) -> Vec<u64> {
    overrides.load.payloads.clone().unwrap_or_else(|| MESSAGE_BYTES.to_vec())
}

fn carries(overrides: &Overrides) -> &[Carry] {
    overrides.load.carries.as_deref().unwrap_or(&Carry::ALL)
}

fn loads(overrides: &Overrides) -> Vec<Load> {
    // In this order, which puts what is compared with a load after it.
    let asked = Carry::ALL.into_iter().filter(|carry| carries(overrides).contains(carry));
    asked.map(|carry| Load { carry: Some(carry), ..Load::NONE }).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let plain = Load { carry: load.carry, ..Load::NONE };
    (load.carry.is_some() && *load == plain)
        .then_some(())
        .ok_or_else(|| "the scenario has no such load".into())
}

fn check(overrides: &Overrides) -> Result<(), Unsuitable> {
    super::ask_reply::one_at_a_time(SCENARIO.name, overrides)?;
    no_samples(SCENARIO.name, overrides)?;
    let carries = carries(overrides);
    let payloads = payloads(overrides);
    for bytes in payloads.iter().copied() {
        check_size(bytes, carries)?;
    }
    if payloads == [8] && carries == [Carry::Words] {
        return Err(Unsuitable {
            why: "--payload 8: a message of one word is no stream of words".into(),
            hint: "add `--carry moved`, or a larger size",
        });
    }
    let largest = payloads.iter().copied().max().unwrap_or(8);
    let most = MAX_RING_BYTES / largest;
    match overrides.capacities.iter().flatten().find(|capacity| **capacity > most) {
        None => Ok(()),
        Some(capacity) => Err(Unsuitable {
            why: format!(
                "--capacity {capacity}: queues hold at most {most} messages of {largest} bytes"
            ),
            hint: "use a smaller capacity or payload",
        }),
    }
}

fn check_size(bytes: u64, carries: &[Carry]) -> Result<(), Unsuitable> {
    const SIZES: &str = "use sizes such as 8,64,512,4096,65536";
    if !(8..=MAX_PAYLOAD).contains(&bytes) {
        let why = format!("--payload {bytes}: messages have from 8 to {MAX_PAYLOAD} bytes");
        return Err(Unsuitable { why, hint: SIZES });
    }
    if !bytes.is_multiple_of(8) {
        let why = format!("--payload {bytes} is not a multiple of 8 bytes");
        return Err(Unsuitable { why, hint: SIZES });
    }
    if carries.iter().all(|carry| *carry == Carry::Words) {
        return Ok(());
    }
    let hint = "use one of these sizes, or add `--carry words`";
    check_typed_size(bytes).map_err(|unsuitable| Unsuitable { hint, ..unsuitable })
}

/// Rejects sizes that no type of messages has.
pub(super) fn check_typed_size(bytes: u64) -> Result<(), Unsuitable> {
    if MESSAGE_BYTES.contains(&bytes) {
        return Ok(());
    }
    Err(Unsuitable {
        why: format!("--payload {bytes}: whole messages have 8, 64, 512, 4096 or 65536 bytes"),
        hint: "use one of these sizes",
    })
}

/// Words that the queue is given at once.
fn words(payload_bytes: u64) -> u64 {
    (payload_bytes / 8).min(MAX_BATCH)
}

/// A bare copy moves blocks of about 16 and 64 KiB, in whole messages.
fn batches(queue: &Queue, way: &Way, asked: &Asked<'_>) -> Vec<u64> {
    let words = words(asked.payload_bytes);
    match (queue.origin, asked.load.carry) {
        (Origin::Raw, _) => {
            let whole = |block: u64| block.max(words) / words * words;
            let mut blocks = vec![whole(BLOCKS[1]), whole(BLOCKS[2])];
            blocks.dedup();
            blocks
        }
        (_, Some(Carry::Words)) if way.batches => vec![words],
        (_, Some(Carry::Words)) => Vec::new(),
        _ => vec![1],
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: AnySize>(channel: &C, usage: Usage) -> Option<Program> {
        match (usage.load.carry?, usage.payload_bytes) {
            (Carry::Words, bytes) => as_words(channel, &usage, bytes),
            // A stream of words, one at a time.
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
        let (to, from) = (MovedTo(source, PhantomData), MovedFrom(sink, PhantomData));
        Ok(streams_of::<M>(to, from, pace))
    }))
}

fn in_place<M: Message, C: Channel<M>>(channel: &C, usage: &Usage) -> Option<Program> {
    // Not a closure: without slots in place, no loop is compiled for them.
    if C::Source::IN_PLACE {
        let channel = channel.clone();
        return Some(program(usage, move |capacity, pace| {
            let (source, sink) = channel.open(capacity)?;
            let (to, from) = (PlacedTo(source, PhantomData), PlacedFrom(sink, PhantomData));
            Ok(streams_of::<M>(to, from, pace))
        }));
    }
    None
}

/// Size from which on the loops are compiled once, not for every queue: where a message takes
/// hundreds of nanoseconds, an indirect call does not show.
const ERASED_BYTES: usize = 4096;

fn streams_of<M>(to: impl To + 'static, from: impl From + 'static, pace: Pace) -> Streams {
    if size_of::<M>() >= ERASED_BYTES {
        let (to, from): (Box<dyn To>, Box<dyn From>) = (Box::new(to), Box::new(from));
        return streams(to, from, pace);
    }
    streams(to, from, pace)
}

fn as_words<C: Channel>(channel: &C, usage: &Usage, bytes: u64) -> Option<Program> {
    if C::Sink::BATCHES && bytes > 8 {
        let channel = channel.clone();
        return Some(program(usage, move |capacity, pace| {
            let (source, sink) = channel.open(capacity)?;
            let words = pace.payload_bytes / 8;
            let message = (0..words).map(std::hint::black_box).collect();
            Ok(streams(WordsTo { source, message }, WordsFrom { sink, words }, pace))
        }));
    }
    None
}

fn program(
    usage: &Usage,
    make: impl Fn(usize, Pace) -> Result<Streams, Unavailable> + Send + Sync + 'static,
) -> Program {
    let (capacity, pace) = (usage.flow.capacity, Pace::new(usage));
    let (class, grows) = (usage.class, usage.grows);
    Program::Stream { make: Arc::new(move || make(capacity, pace)), class, grows }
}

/// Numbers of messages that depend on their size.
#[derive(Clone, Copy)]
struct Pace {
    payload_bytes: u64,
    /// Messages between two checks of the stop flag.
    round: u64,
    /// Messages before the first stamp.
    settling: u64,
    /// Messages by which the sender may be ahead.
    ahead: u64,
}

impl Pace {
    fn new(usage: &Usage) -> Self {
        let payload_bytes = usage.payload_bytes;
        let round = (ROUND_BYTES / payload_bytes).clamp(1, ROUND);
        let settling = (SETTLING_BYTES / payload_bytes).clamp(1, SETTLING);
        let ahead = if usage.grows { AHEAD_BYTES / payload_bytes } else { u64::MAX };
        Pace { payload_bytes, round, settling, ahead }
    }
}

fn streams<T: To + 'static, F: From + 'static>(to: T, from: F, pace: Pace) -> Streams {
    let received = Arc::new(CachePadded(AtomicU64::new(0)));
    let sender = Sending {
        to: Some(to),
        next: 1,
        round: pace.round,
        ahead: pace.ahead,
        known: 0,
        received: Arc::clone(&received),
    };
    let receiver = Receiving {
        from: Some(from),
        next: 1,
        round: pace.round,
        settling: pace.settling.next_multiple_of(pace.round),
        received,
    };
    Streams { senders: vec![Box::new(sender)], receiver: Box::new(receiver), round: pace.round }
}

/// A sending end with one way to carry messages.
trait To: Send {
    fn enter(&mut self);
    fn send(&mut self, number: u64);
}

/// A receiving end with one way to carry messages.
trait From: Send {
    fn enter(&mut self);
    /// Returns the bits in which the message differs from the one with this number.
    fn receive(&mut self, number: u64) -> u64;
}

impl To for Box<dyn To> {
    fn enter(&mut self) {
        (**self).enter();
    }

    #[inline(always)]
    fn send(&mut self, number: u64) {
        (**self).send(number);
    }
}

impl From for Box<dyn From> {
    fn enter(&mut self) {
        (**self).enter();
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> u64 {
        (**self).receive(number)
    }
}

struct MovedTo<M, S>(S, PhantomData<M>);

impl<M: Message, S: Source<M>> To for MovedTo<M, S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn send(&mut self, number: u64) {
        self.0.send(M::numbered(number));
    }
}

struct MovedFrom<M, S>(S, PhantomData<M>);

impl<M: Message, S: Sink<M>> From for MovedFrom<M, S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> u64 {
        self.0.receive().difference(number)
    }
}

struct PlacedTo<M, S>(S, PhantomData<M>);

impl<M: Message, S: Source<M>> To for PlacedTo<M, S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn send(&mut self, number: u64) {
        self.0.send_in_place(number);
    }
}

struct PlacedFrom<M, S>(S, PhantomData<M>);

impl<M: Message, S: Sink<M>> From for PlacedFrom<M, S> {
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> u64 {
        self.0.receive_in_place(number)
    }
}

struct WordsTo<S> {
    source: S,
    /// Where messages are written before they are sent.
    message: Vec<u64>,
}

impl<S: Source> To for WordsTo<S> {
    fn enter(&mut self) {
        self.source.enter();
    }

    #[inline(always)]
    fn send(&mut self, number: u64) {
        count_up(&mut self.message, first_word(number));
        for part in self.message.chunks(MAX_BATCH as usize) {
            self.source.send_batch(part);
        }
    }
}

struct WordsFrom<S> {
    sink: S,
    /// Words of a message.
    words: u64,
}

impl<S: Sink> From for WordsFrom<S> {
    fn enter(&mut self) {
        self.sink.enter();
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> u64 {
        let mut next = first_word(number);
        let end = next + self.words;
        let mut wrong = 0;
        while next < end {
            self.sink.receive_batch(
                (end - next) as usize,
                #[inline(always)]
                |words| {
                    wrong |= difference(words, next);
                    next += words.len() as u64;
                },
            );
        }
        wrong
    }
}

#[repr(align(128))]
struct Sending<T> {
    to: Option<T>,
    /// Number of the next message.
    next: u64,
    round: u64,
    ahead: u64,
    /// Number of messages that were received when this end last looked.
    known: u64,
    /// Number of messages that were received.
    received: Arc<CachePadded<AtomicU64>>,
}

impl<T: To> SenderLoop for Sending<T> {
    fn enter(&mut self) {
        with(&mut self.to, To::enter);
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
                    to.send(next);
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

/// Waits until this number of messages has been received; returns how many have been.
#[cold]
fn await_receiver(received: &AtomicU64, least: u64) -> u64 {
    let mut looks = 0u32;
    loop {
        // Relaxed, as in the receiver: only the queue passes anything from end to end.
        let known = received.load(Ordering::Relaxed);
        if known >= least {
            return known;
        }
        looks += 1;
        // The receiver may need this CPU.
        if looks.is_multiple_of(256) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}

#[repr(align(128))]
struct Receiving<F> {
    from: Option<F>,
    /// Number of the next message.
    next: u64,
    round: u64,
    settling: u64,
    received: Arc<CachePadded<AtomicU64>>,
}

impl<F: From> Receiving<F> {
    /// Receives the stretches of a pass, each a whole number of rounds.
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
                            // Accumulated without a branch and checked once per block.
                            wrong |= from.receive(next);
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

impl<F: From> ReceiverLoop for Receiving<F> {
    fn enter(&mut self) {
        with(&mut self.from, From::enter);
    }

    fn receive(
        &mut self,
        spec: StreamSpec,
        control: &StreamControl,
        clock: &Clock,
        times: Option<&mut Vec<u64>>,
    ) -> Received {
        let marks = StretchStamps::new(clock, times);
        receive_pass_after(self.settling, spec, self.round, control, marks, |spec, marks| {
            self.stretches(spec, marks)
        })
    }

    fn code(&self) -> usize {
        Self::stretches as *const () as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives these messages of a word.
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
            let mut from = MovedFrom::<u64, _>(Gives(words), PhantomData);
            (1..=3).fold(0, |wrong, number| wrong | from.receive(number))
        };
        assert_eq!(wrong(&[1, 2, 3]), 0);
        assert_ne!(wrong(&[1, 3, 4]), 0, "2 was lost");
        assert_ne!(wrong(&[1, 1, 2]), 0, "1 came twice");
        assert_ne!(wrong(&[2, 1, 3]), 0, "2 overtook 1");
    }

    #[test]
    fn a_torn_stream_of_words_is_detected() {
        let wrong = |words: Vec<u64>| {
            let mut from = WordsFrom { sink: Gives(words), words: 3 };
            from.receive(1) | from.receive(2)
        };
        let (one, two) = (first_word(1), first_word(2));
        assert_eq!(wrong(vec![one, one + 1, one + 2, two, two + 1, two + 2]), 0);
        assert_ne!(wrong(vec![one, one + 1, two, two + 1, two + 2, two + 3]), 0, "a word was lost");
        assert_ne!(wrong(vec![one, one + 2, one + 1, two, two + 1, two + 2]), 0, "out of order");
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
        for payload_bytes in [8, 24, 512, 65_536, MAX_PAYLOAD] {
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

    #[test]
    fn sizes_that_cannot_be_had_are_one_sentence() {
        let all = &Carry::ALL[..];
        assert!(MESSAGE_BYTES.iter().all(|bytes| check_size(*bytes, all).is_ok()));
        for bytes in [0, 7, 100, 24, MAX_PAYLOAD + 8] {
            assert!(check_size(bytes, all).is_err(), "{bytes}");
        }
        assert_eq!(check_size(24, &[Carry::Words]), Ok(()));
        assert!(check_size(24, &[Carry::Words, Carry::InPlace]).is_err());
        assert!(check_size(100, &[Carry::Words]).is_err());
    }
}

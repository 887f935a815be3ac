//! `stream`: senders send as fast as the queue accepts messages, and one receiver verifies every
//! message.
//!
//! ```text
//!   sender 1 ──┐
//!   sender 2 ──┼──▶ queue ──▶ receiver: in order? and a stamp after every stretch
//!   sender n ──┘
//! ```
//!
//! There is no flow control: if the sender is faster, an unbounded queue grows during the block, as
//! it would in a program.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Origin;

use crate::error::Unavailable;
use crate::exchange::{on_a_line, with};
use crate::program::Program;
use crate::stream::{Received, ReceiverLoop, SenderLoop, StreamControl, StreamSpec, Streams};
use crate::touched::touched;

use super::words::{count_up, difference};
use super::{
    Asked, BLOCKS, Channel, DEFAULT, Flow, Loops, MAX_SENDERS, Queue, Scenario, Sink, Source,
    Usage, Way,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "stream",
    sentence: "throughput of messages in one direction, as fast as the queue takes them, each \
               verified",
    batches,
    any_senders: true,
    ..DEFAULT
};

/// Default batch limit: a small part of a bounded queue, so that each end finds work while the
/// other end holds a batch.
pub const BATCH: u64 = 256;
/// Number of messages between two checks of the stop flag, for senders without batches.
pub(super) const ROUND: u64 = 64;
/// Minimum number of messages received before the first stamp of a block. They fill the queue and
/// train the branch predictors of the receiver's loop.
pub(super) const SETTLING: u64 = 256;

pub(super) fn settling(round: u64) -> u64 {
    SETTLING.next_multiple_of(round)
}

/// Number of low bits of a message that hold its number. The bits above hold the sender's index.
pub(super) const NUMBER_BITS: u32 = 56;

fn batches(queue: &Queue, way: &Way, asked: &Asked<'_>) -> Vec<u64> {
    match (queue.origin, asked.batch) {
        // A bare copy moves only whole blocks, whose sizes are fixed.
        (Origin::Raw, Some(1)) => Vec::new(),
        (Origin::Raw, _) => BLOCKS.to_vec(),
        (_, Some(1)) => vec![1],
        (_, Some(batch)) if way.batches => vec![batch],
        (_, Some(_)) => Vec::new(),
        (_, None) if way.batches => vec![1, BATCH],
        (_, None) => vec![1],
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        Some(program(&usage, move |flow| {
            let (source, sink) = channel.open(flow.capacity)?;
            Ok(streams(vec![source], sink, flow.batch))
        }))
    }

    fn many_senders<C: Channel<Source: Clone>>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        Some(program(&usage, move |flow| {
            let (source, sink) = channel.open(flow.capacity)?;
            let mut sources: Vec<C::Source> = (1..flow.senders).map(|_| source.clone()).collect();
            sources.push(source);
            Ok(streams(sources, sink, flow.batch))
        }))
    }
}

fn program(
    usage: &Usage,
    make: impl Fn(Flow) -> Result<Streams, Unavailable> + Send + Sync + 'static,
) -> Program {
    let flow = usage.flow;
    usage.stream(round(flow.batch), Arc::new(move || make(flow)))
}

fn round(batch: u64) -> u64 {
    if batch > 1 { batch } else { ROUND }
}

fn streams<So: Source, Si: Sink>(sources: Vec<So>, sink: Si, batch: u64) -> Streams {
    let many = sources.len() > 1;
    let (batched, round) = (batch > 1, round(batch));
    let sender = |(index, source): (usize, So)| -> Box<dyn SenderLoop> {
        let next = first(index);
        if batched {
            Box::new(Sending::<So, true> {
                source: Some(source),
                next,
                buffer: touched(batch as usize),
            })
        } else {
            Box::new(Sending::<So, false> { source: Some(source), next, buffer: Vec::new() })
        }
    };
    let receiver: Box<dyn ReceiverLoop> = match (batched, many) {
        (false, false) => Box::new(Receiving::<Si, One, false>::new(sink, round)),
        (false, true) => Box::new(Receiving::<Si, Many, false>::new(sink, round)),
        (true, false) => Box::new(Receiving::<Si, One, true>::new(sink, round)),
        (true, true) => Box::new(Receiving::<Si, Many, true>::new(sink, round)),
    };
    Streams { senders: sources.into_iter().enumerate().map(sender).collect(), receiver }
}

pub(super) fn first(sender: usize) -> u64 {
    ((sender as u64) << NUMBER_BITS) + 1
}

#[repr(align(128))]
struct Sending<S, const BATCHED: bool> {
    source: Option<S>,
    next: u64,
    buffer: Vec<u64>,
}

impl<S: Source, const BATCHED: bool> SenderLoop for Sending<S, BATCHED> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
    }

    fn send(&mut self, sender: usize, control: &StreamControl) -> u64 {
        on_a_line();
        let buffer = &mut self.buffer;
        let mut next = self.next;
        let begin = next;
        let round = if BATCHED { buffer.len() as u64 } else { ROUND };
        with(
            &mut self.source,
            #[inline(always)]
            |source| loop {
                let last = control.stopped();
                if last {
                    control.announce(sender, next - begin + round);
                }
                if BATCHED {
                    count_up(buffer, next);
                    next += round;
                    source.send_batch(buffer);
                } else {
                    for _ in 0..ROUND {
                        source.send(next);
                        next += 1;
                    }
                }
                if last {
                    break;
                }
            },
        );
        self.next = next;
        next - begin
    }

    fn code(&self) -> usize {
        Self::send as *const () as usize
    }
}

/// Next expected message of each sender.
trait Due: Copy + Send {
    fn new() -> Self;
    /// Returns the bits in which a message differs from the expected message; 0 if it does not.
    fn check(&mut self, message: u64) -> u64;

    #[inline(always)]
    fn check_all(&mut self, messages: &[u64]) -> u64 {
        messages.iter().fold(0, |wrong, message| wrong | self.check(*message))
    }
}

#[derive(Clone, Copy)]
struct One(u64);

impl Due for One {
    fn new() -> Self {
        One(first(0))
    }

    #[inline(always)]
    fn check(&mut self, message: u64) -> u64 {
        let wrong = message ^ self.0;
        self.0 += 1;
        wrong
    }

    #[inline(always)]
    fn check_all(&mut self, messages: &[u64]) -> u64 {
        let wrong = difference(messages, self.0);
        self.0 += messages.len() as u64;
        wrong
    }
}

#[derive(Clone, Copy)]
struct Many([u64; MAX_SENDERS as usize]);

impl Due for Many {
    fn new() -> Self {
        Many(std::array::from_fn(first))
    }

    #[inline(always)]
    fn check(&mut self, message: u64) -> u64 {
        // An unknown sender is detected, because its first message differs from the expected
        // message.
        let due = &mut self.0[(message >> NUMBER_BITS) as usize % MAX_SENDERS as usize];
        let wrong = message ^ *due;
        *due += 1;
        wrong
    }
}

#[repr(align(128))]
struct Receiving<S, D, const BATCHED: bool> {
    sink: Option<S>,
    due: D,
    round: u64,
}

impl<S: Sink, D: Due, const BATCHED: bool> Receiving<S, D, BATCHED> {
    fn new(sink: S, round: u64) -> Self {
        Receiving { sink: Some(sink), due: D::new(), round }
    }

    /// Receives the stretches of a pass. This is the only loop of the receiver that is measured.
    /// Not inlined, because a pass would contain three copies. Such copies competed for registers
    /// and differed between crates.
    #[inline(never)]
    fn stretches(&mut self, spec: StreamSpec, marks: &mut StretchStamps<'_>) -> Received {
        on_a_line();
        let mut due = self.due;
        let (messages, wrong) = with(
            &mut self.sink,
            #[inline(always)]
            |sink| {
                let mut wrong = 0;
                let mut messages = 0;
                for _ in 0..spec.stretches {
                    wrong |= stretch::<S, D, BATCHED>(sink, &mut due, spec.per_stretch);
                    messages += spec.per_stretch;
                    if marks.mark() >= spec.until {
                        break;
                    }
                }
                (messages, wrong)
            },
        );
        self.due = due;
        Received { messages, wrong }
    }
}

#[inline(always)]
fn stretch<S: Sink, D: Due, const BATCHED: bool>(sink: &mut S, due: &mut D, messages: u64) -> u64 {
    let mut wrong = 0;
    if BATCHED {
        let mut left = messages;
        while left > 0 {
            let taken = sink.receive_batch(
                left as usize,
                #[inline(always)]
                |messages| wrong |= due.check_all(messages),
            );
            left -= taken as u64;
        }
    } else {
        for _ in 0..messages {
            // No branch: `wrong` is checked once per block, so that verification does not affect
            // the figures.
            wrong |= due.check(sink.receive());
        }
    }
    wrong
}

impl<S: Sink, D: Due, const BATCHED: bool> ReceiverLoop for Receiving<S, D, BATCHED> {
    fn enter(&mut self) {
        with(&mut self.sink, Sink::enter);
    }

    fn receive(
        &mut self,
        spec: StreamSpec,
        control: &StreamControl,
        clock: &Clock,
        times: Option<&mut Vec<u64>>,
    ) -> Received {
        let (settling, marks) = (settling(self.round), StretchStamps::new(clock, times));
        receive_pass(settling, spec, self.round, control, marks, |spec, marks| {
            self.stretches(spec, marks)
        })
    }

    fn code(&self) -> usize {
        Self::stretches as *const () as usize
    }
}

pub(super) struct StretchStamps<'a> {
    clock: &'a Clock,
    /// `None` if stamps are not kept.
    times: Option<&'a mut Vec<u64>>,
}

impl<'a> StretchStamps<'a> {
    pub(super) fn new(clock: &'a Clock, times: Option<&'a mut Vec<u64>>) -> Self {
        StretchStamps { clock, times }
    }

    #[inline(always)]
    pub(super) fn mark(&mut self) -> u64 {
        let now = self.clock.stamp();
        if let Some(times) = &mut self.times {
            times.push(now);
        }
        now
    }
}

/// Runs a receiver's pass in three parts: messages before the first stamp (`settling`, a whole
/// number of rounds), the measured stretches, and the messages left in the queue. `stretches`
/// receives the messages of one part.
pub(super) fn receive_pass(
    settling: u64,
    spec: StreamSpec,
    round: u64,
    control: &StreamControl,
    mut marks: StretchStamps<'_>,
    mut stretches: impl FnMut(StreamSpec, &mut StretchStamps<'_>) -> Received,
) -> Received {
    let unkept = |per_stretch| StreamSpec { per_stretch, stretches: 1, until: 0 };
    let mut unmarked = StretchStamps::new(marks.clock, None);
    let mut all = stretches(unkept(settling), &mut unmarked);
    let mut add = |more: Received| {
        all.messages += more.messages;
        all.wrong |= more.wrong;
        all.messages
    };
    marks.mark();
    let mut messages = add(stretches(spec, &mut marks));
    control.stop();
    while control.total() != Some(messages) {
        messages = add(stretches(unkept(round), &mut unmarked));
    }
    all
}

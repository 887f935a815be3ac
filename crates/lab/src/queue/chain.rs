//! `chain`: messages that go through queues in a row, each time to another thread.
//!
//! ```text
//!   generator ──▶ queue 1 ──▶ relay ──▶ queue 2 ──▶ relay ──▶ queue 3 ──▶ receiver
//!       │ due, sent             │ received            │ received            │ received
//! ```
//!
//! A delivery lasts from the moment at which a message was due until the last thread had it, and a
//! hop until the next thread had it. Messages are so rare that each is alone on its way. Each chain
//! is compared with one hop of the same queue.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Arrivals, Budget, Kind, Load};

use crate::crew::{Crew, CrewProgram, Log, Part, Seating, Shift, VirtualQueue};
use crate::error::Unavailable;
use crate::exchange::on_a_line;
use crate::program::Program;

use super::arrivals::{MAX_MESSAGES, Pattern};
use super::erased::{self, AnySink, AnySource};
use super::paced::{self, END, Generator, Receiver, pattern};
use super::stream::with;
use super::{
    Channel, Grouping, LoadOption, Loops, Overrides, RING_BYTES, Scenario, Sink, Source,
    Unsuitable, Usage, one_word, open_loop,
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "chain",
    sentence: "latency through three queues in a row, to the sum of its hops and to one hop",
    kind: Kind::OpenLoop,
    options: &[LoadOption::Rate],
    required: &[],
    check,
    loads,
    payloads: one_word,
    has_load,
    budget,
    capacity: |slots, _| slots.capacity_within(RING_BYTES),
    batches: |_, _, _| vec![1],
    wake_up: None,
    senders: |_, _| vec![1],
    grouping: Grouping::Row,
};

/// Messages per second by default: rare, so that receivers that sleep have fallen asleep.
const RATES: [u64; 1] = [10_000];
/// One hop, and a chain of them.
const HOPS: [u64; 2] = [1, 3];
/// Usual length of a block.
const BLOCK_NS: f64 = 25e6;

fn budget(overrides: &Overrides, load: &Load) -> Budget {
    open_loop::budget_of_blocks(overrides, load, BLOCK_NS)
}

fn check(overrides: &Overrides) -> Result<(), Unsuitable> {
    super::ask_reply::one_at_a_time(SCENARIO.name, overrides)?;
    open_loop::check_rates(overrides)
}

fn loads(overrides: &Overrides) -> Vec<Load> {
    let rates = overrides.load.rates.as_deref().unwrap_or(&RATES);
    let load = |rate: u64, hops: u64| Load {
        arrivals: Some(Arrivals::Uniform),
        rate_per_s: Some(rate.into()),
        hops: Some(hops.into()),
        ..Load::NONE
    };
    rates.iter().flat_map(|rate| HOPS.map(|hops| load(*rate, hops))).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let is_chain = load.hops.is_some_and(|hops| HOPS.contains(&hops.get()));
    if !is_chain || load.arrivals != Some(Arrivals::Uniform) {
        return Err("its hops or its arrivals are out of range".into());
    }
    (open_loop::SCENARIO.has_load)(&Load { hops: None, ..load.clone() })
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let Usage { flow, class, grows, load, .. } = usage;
        let hops = load.hops.map_or(1, |hops| hops.get() as usize);
        let of_simulated = load.clone();
        Some(Program::Crew(CrewProgram {
            make: Arc::new(move || {
                crew(pattern(&load)?, hops, &|| erased::open(&channel, flow.capacity))
            }),
            threads: hops + 1,
            seating: Seating::InTurn,
            read: Arc::new(|worked| paced::read(worked, None)),
            simulate: Arc::new(move |queue| Ok(simulate(&pattern(&of_simulated)?, queue, hops))),
            class,
            grows,
        }))
    }
}

fn crew(
    pattern: Pattern,
    hops: usize,
    open: &dyn Fn() -> Result<(AnySource, AnySink), Unavailable>,
) -> Result<Crew, Unavailable> {
    let (source, mut sink) = open()?;
    let mut parts: Crew = vec![Box::new(Generator::new(pattern, source))];
    for _ in 1..hops {
        let (source, next) = open()?;
        let from = std::mem::replace(&mut sink, next);
        parts.push(Box::new(Relay { ends: Some((from, source)), received: Vec::new() }));
    }
    parts.push(Box::new(Receiver::new(sink)));
    Ok(parts)
}

/// Receives from one queue and sends to the next.
#[repr(align(128))]
struct Relay {
    ends: Option<(AnySink, AnySource)>,
    received: Vec<u64>,
}

impl Part for Relay {
    fn enter(&mut self) {
        with(&mut self.ends, |(sink, source)| {
            sink.enter();
            source.enter();
        });
    }

    fn prepare(&mut self, _: Shift, _: &Clock) {
        self.received = paced::touched(2 * MAX_MESSAGES);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let received = &mut self.received;
        let count = with(
            &mut self.ends,
            #[inline(always)]
            |(sink, source)| relay(sink, source, clock, received),
        );
        self.received.truncate(count);
        // The last thread checks the messages.
        Log { times: vec![std::mem::take(&mut self.received)], ..Log::default() }
    }
}

/// Passes messages on until the end of the block; returns their number.
#[inline(always)]
fn relay(sink: &mut AnySink, source: &mut AnySource, clock: &Clock, received: &mut [u64]) -> usize {
    on_a_line();
    let mut count = 0;
    loop {
        let message = sink.receive();
        let now = clock.stamp();
        source.send(message);
        if message == END {
            return count;
        }
        let Some(place) = received.get_mut(count) else { return count };
        *place = now;
        count += 1;
    }
}

/// Each hop is a queue with one server, and the next one's arrivals are its departures.
fn simulate(pattern: &Pattern, queue: &mut VirtualQueue<'_>, hops: usize) -> Vec<Log> {
    let mut logs = paced::simulate(pattern, queue);
    for _ in 1..hops {
        let arrived = &logs[logs.len() - 1].times[0];
        let mut idle = queue.begins_ps;
        let received = arrived.iter().enumerate().map(|(at, arrived)| {
            idle = idle.max(*arrived) + (queue.service_ps)(at, logs[0].times[0].len());
            idle
        });
        let received = received.collect();
        logs.push(Log { times: vec![received], ..Log::default() });
    }
    logs
}

//! `broadcast`: one sender sends as fast as it can, and each of several receivers gets every
//! message.
//!
//! ```text
//!   fan-out   sender ──┬──▶ receiver 1      diamond   sender ──┬──▶ receiver 1 ──┬──▶ receiver n
//!                      ├──▶ receiver 2                         └──▶ receiver 2 ──┘
//!                      └──▶ receiver n
//! ```
//!
//! In a diamond, the last receiver gets a message after all others have handled it.
//!
//! Every receiver takes what is there, at most 256 messages at once, and checks every message. The
//! sender has a CPU to itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Graph, Load};

use crate::cache_padded::CachePadded;
use crate::exchange::{on_a_line, with};
use crate::program::Program;
use crate::samples::{Samples, Stretches};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, VirtualQueue};
use crate::touched::touched;

use super::paced::AHEAD_NS;
use super::stream::{self, BATCH, ROUND};
use super::words::{count_up, difference};
use super::{
    Broadcast, Channel, DEFAULT, Loops, MAX_RECEIVERS, Scenario, Sink, Source, Usage, only, within,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "broadcast",
    sentence: "throughput of one sender whose every message goes to each of several receivers",
    loads: || loads(None, None),
    has_load,
    batches: stream::SCENARIO.batches,
    ..DEFAULT
};

const RECEIVERS: [u64; 4] = [1, 2, 3, 4];

/// Numbers of receivers of diamonds, unless numbers are given: the smallest.
const DIAMONDS: [u64; 1] = [LEAST_DIAMOND];

/// A diamond has a last receiver, and at least two before it.
pub const LEAST_DIAMOND: u64 = 3;

/// Returns loads with these numbers of receivers and these graphs; `None` takes the defaults.
/// Diamonds that would have too few receivers are left out.
pub fn loads(receivers: Option<&[u64]>, graphs: Option<&[Graph]>) -> Vec<Load> {
    let graphs = graphs.unwrap_or(&Graph::ALL).iter().copied();
    let load = |graph, receivers: u64| Load {
        graph: Some(graph),
        receivers: Some(receivers.into()),
        ..Load::NONE
    };
    let all = graphs.flat_map(|graph| {
        let usual = match graph {
            Graph::FanOut => &RECEIVERS[..],
            Graph::Diamond => &DIAMONDS,
        };
        receivers.unwrap_or(usual).iter().map(move |receivers| load(graph, *receivers))
    });
    all.filter(|load| has_load(load).is_ok()).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let Some(graph) = load.graph else { return Err("its graph is missing".into()) };
    let plain = Load { receivers: load.receivers, graph: load.graph, ..Load::NONE };
    let too_few = graph == Graph::Diamond && load.receivers.is_some_and(|of| of < LEAST_DIAMOND);
    let in_range = within(load.receivers, MAX_RECEIVERS) && !too_few;
    only(&plain, in_range, load, "its number of receivers is out of range")
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    /// Every row of this scenario has a [`program`] of its own.
    fn one_sender<C: Channel>(_: &C, _: Usage) -> Option<Program> {
        None
    }
}

/// The program of a queue that gives every message to each receiver; `None` for a diamond of which
/// the queue is not capable.
pub(super) fn program<C: Broadcast>(channel: &C, usage: Usage) -> Option<Program> {
    if usage.load.graph == Some(Graph::Diamond) && !C::DIAMONDS {
        return None;
    }
    let channel = channel.clone();
    let flow = usage.flow;
    let graph = usage.load.graph.unwrap_or(Graph::FanOut);
    let receivers = usage.load.receivers.map_or(1, |receivers| receivers.get() as usize);
    let make = move || {
        let last = Last::default();
        let (source, sinks) = channel.open(graph, receivers, flow.capacity)?;
        let receivers = sinks.into_iter().map(|sink| receiver(sink, &last));
        Ok(receivers.chain([sender(source, flow.batch, &last)]).collect())
    };
    let simulate = move |queue: &mut VirtualQueue<'_>| Ok(simulate(queue, receivers));
    Some(usage.threads(receivers + 1, make, read, simulate))
}

/// Number of the last message of the current block, once the sender knows it. Messages are numbered
/// from 1, over all blocks.
type Last = Arc<CachePadded<AtomicU64>>;

fn sender<S: Source>(source: S, batch: u64, last: &Last) -> Box<dyn Role> {
    let buffer = if batch > 1 { touched(batch as usize) } else { Vec::new() };
    let sender = Sender { source: Some(source), buffer, next: 1, length: 0, last: last.clone() };
    Box::new(sender)
}

fn receiver<S: Sink>(sink: S, last: &Last) -> Box<dyn Role> {
    Box::new(Receiver { sink: Some(sink), next: 1, last: last.clone() })
}

#[repr(align(128))]
struct Sender<S> {
    source: Option<S>,
    /// Room for a batch; empty if messages are sent one by one.
    buffer: Vec<u64>,
    next: u64,
    /// Length of the next block, in ticks.
    length: u64,
    last: Last,
}

impl<S: Source> Role for Sender<S> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        self.length = clock.ticks(block.length_ns);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Sender { source, buffer, next, length, last } = self;
        let first = *next;
        let begin = with(
            source,
            #[inline(always)]
            |source| match buffer.is_empty() {
                true => send::<S, false>(source, buffer, next, last, clock, *length),
                false => send::<S, true>(source, buffer, next, last, clock, *length),
            },
        );
        Log { times: vec![vec![begin]], numbers: vec![*next - first], wrong: 0 }
    }
}

/// Sends for `length` ticks. Returns the time at which sending began.
#[inline(always)]
fn send<S: Source, const BATCHED: bool>(
    source: &mut S,
    buffer: &mut [u64],
    next: &mut u64,
    last: &AtomicU64,
    clock: &Clock,
    length: u64,
) -> u64 {
    on_a_line();
    let begin = clock.stamp() + clock.ticks(AHEAD_NS);
    while clock.stamp() < begin {}
    // As many messages between two readings of the clock, however they are sent.
    let batches = if BATCHED { ROUND.div_ceil(buffer.len() as u64) } else { 1 };
    let round = if BATCHED { batches * buffer.len() as u64 } else { ROUND };
    loop {
        let is_last = clock.stamp() >= begin + length;
        if is_last {
            // Relaxed: whoever receives a message of the last round also sees this, because the
            // queue orders what was written before a message was sent.
            last.store(*next + round - 1, Ordering::Relaxed);
        }
        if BATCHED {
            for _ in 0..batches {
                count_up(buffer, *next);
                source.send_batch(buffer);
                *next += buffer.len() as u64;
            }
        } else {
            for _ in 0..ROUND {
                source.send(*next);
                *next += 1;
            }
        }
        if is_last {
            return begin;
        }
    }
}

#[repr(align(128))]
struct Receiver<S> {
    sink: Option<S>,
    /// Number of the next message.
    next: u64,
    last: Last,
}

impl<S: Sink> Role for Receiver<S> {
    fn enter(&mut self) {
        with(&mut self.sink, Sink::enter);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Receiver { sink, next, last } = self;
        let first = *next;
        let wrong = with(
            sink,
            #[inline(always)]
            |sink| receive(sink, next, last),
        );
        Log { times: vec![vec![clock.stamp()]], numbers: vec![*next - first], wrong }
    }
}

/// Receives all messages of a block. Returns the bits in which they differed from the expected
/// ones.
#[inline(always)]
fn receive<S: Sink>(sink: &mut S, next: &mut u64, last: &AtomicU64) -> u64 {
    on_a_line();
    let first = *next;
    let (mut wrong, mut due) = (0, first);
    loop {
        let mut at = due;
        let taken = sink.receive_batch(
            BATCH as usize,
            #[inline(always)]
            |messages| {
                wrong |= difference(messages, at);
                at += messages.len() as u64;
            },
        );
        // The adapter must have passed on as many as it says.
        wrong |= (at - due) ^ taken as u64;
        due = at;
        // Until the sender knows the last message, this is that of the block before.
        let last = last.load(Ordering::Relaxed);
        if last >= first && due > last {
            *next = due;
            return wrong;
        }
    }
}

/// Returns the block as one stretch, from the first send call until the last receiver is done.
/// `None` if a receiver did not get every message.
fn read(block_logs: BlockLogs) -> Option<Reading> {
    let (sender, receivers) = block_logs.logs.split_last()?;
    let (begin, sent) = (*sender.times.first()?.first()?, *sender.numbers.first()?);
    let end = receivers.iter().flat_map(|log| &log.times).flatten().max()?;
    let complete = receivers.iter().all(|log| log.numbers == [sent]);
    let lengths_ps = vec![end.saturating_sub(begin).max(1000)];
    let stretch = Stretches { lengths_ps, operations_each: sent };
    complete.then_some((Samples::Stream(stretch), sent))
}

/// Simulates receivers that each handle a message at the same time.
fn simulate(queue: &mut VirtualQueue<'_>, receivers: usize) -> Vec<Log> {
    let begin = queue.begins_ps;
    let end = begin + (queue.block.length_ns * 1000.0) as u64;
    let (mut at, mut sent) = (begin, 0);
    while sent == 0 || at < end && sent < queue.most {
        at += (queue.service_ps)(sent, queue.most);
        sent += 1;
    }
    let log = |time| Log { times: vec![vec![time]], numbers: vec![sent as u64], wrong: 0 };
    (0..receivers).map(|_| log(at)).chain([log(begin)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::ring::Ring;
    use crate::real::check;
    use threadtoll::wait::Wait;

    #[test]
    fn a_message_that_a_receiver_lacks_is_no_reading() {
        let log = |time: u64, number: u64| Log {
            times: vec![vec![time]],
            numbers: vec![number],
            wrong: 0,
        };
        let block_logs = |numbers: [u64; 2]| BlockLogs {
            logs: vec![log(9_000, numbers[0]), log(8_000, numbers[1]), log(4_000, 5)],
            cpu_ns: vec![0; 3],
            cpu: 0,
            clock_bound_ns: None,
        };
        let stretch = Stretches { lengths_ps: vec![5_000], operations_each: 5 };
        assert_eq!(read(block_logs([5, 5])), Some((Samples::Stream(stretch), 5)));
        assert_eq!(read(block_logs([5, 4])), None);
    }

    /// Gives the numbers from 1 on, two at a time, of which one may be replaced.
    struct Gives {
        next: u64,
        wrong: Option<u64>,
    }

    impl Sink for Gives {
        fn receive(&mut self) -> u64 {
            self.next += 1;
            if self.wrong == Some(self.next) { 0 } else { self.next }
        }

        fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
            let messages: Vec<u64> = (0..limit.min(2)).map(|_| self.receive()).collect();
            take(&messages);
            messages.len()
        }
    }

    fn received(mut sink: impl Sink) -> (u64, u64) {
        let (mut next, last) = (1, AtomicU64::new(6));
        let wrong = receive(&mut sink, &mut next, &last);
        (wrong, next)
    }

    #[test]
    fn every_message_is_checked() {
        let gives = |wrong| Gives { next: 0, wrong };
        assert_eq!(received(gives(None)), (0, 7));
        assert_ne!(received(gives(Some(6))).0, 0);
    }

    #[test]
    fn a_diamond_has_at_least_two_receivers_before_its_last() {
        let numbers = |loads: Vec<Load>| -> Vec<(Graph, u64)> {
            loads.iter().map(|load| (load.graph.unwrap(), load.receivers.unwrap().get())).collect()
        };
        let (fan_out, diamond) = (Graph::FanOut, Graph::Diamond);
        let asked = loads(Some(&[2, 4]), None);
        assert_eq!(numbers(asked), [(fan_out, 2), (fan_out, 4), (diamond, 4)]);
        assert_eq!(numbers(loads(Some(&[2]), Some(&[diamond]))), []);
        assert_eq!(numbers(loads(None, Some(&[diamond]))), [(diamond, 3)]);
    }

    #[test]
    fn the_last_receiver_of_a_ring_comes_after_the_others() {
        assert_eq!(check::diamond(&Ring::new(Wait::Park)), Ok(()));
    }
}

//! `workers`: one sender sends as fast as it can, and several receivers share its messages.
//!
//! ```text
//!                      ┌──▶ receiver 1                 ┌──▶ queue 1 ──▶ receiver 1
//!   sender ──▶ queue ──┼──▶ receiver 2   or   sender ──┼──▶ queue 2 ──▶ receiver 2
//!                      └──▶ receiver n                 └──▶ queue n ──▶ receiver n
//! ```
//!
//! If a queue supports several receivers, they share one queue. Otherwise each receiver has a queue
//! of its own, and the sender deals its messages to these queues round-robin (a bundle). Each
//! receiver checks that its messages are in ascending order. All receivers together check that no
//! message is missing. The sender, not a receiver, has a CPU to itself. Each row is compared with
//! the same row with one receiver.

use threadtoll_machine::clock::Clock;
use threadtoll_record::Load;

use crate::error::Unavailable;
use crate::exchange::{on_a_line, with};
use crate::program::Program;
use crate::samples::{Samples, SharedMessages};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::paced::{AHEAD_NS, END};
use super::stream::ROUND;
use super::{
    Channel, DEFAULT, Grouping, Loops, MAX_RECEIVERS, Scenario, Sink, Source, Usage, only, within,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "workers",
    sentence: "throughput of one sender whose messages are divided among several receivers, \
               compared with one receiver",
    loads: || loads(None),
    has_load,
    grouping: Grouping::Row,
    ..DEFAULT
};

const RECEIVERS: [u64; 4] = [1, 2, 4, 8];

/// Returns loads with these numbers of receivers; `None` takes the defaults. One receiver is always
/// included, because the other loads are compared with it.
pub fn loads(receivers: Option<&[u64]>) -> Vec<Load> {
    let others = receivers.unwrap_or(&RECEIVERS).iter().copied().filter(|receivers| *receivers > 1);
    let load = |receivers: u64| Load { receivers: Some(receivers.into()), ..Load::NONE };
    std::iter::once(1).chain(others).map(load).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let plain = Load { receivers: load.receivers, ..Load::NONE };
    let in_range = within(load.receivers, MAX_RECEIVERS);
    only(&plain, in_range, load, "its number of receivers is out of range")
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let (receivers, capacity) = (receivers(&usage.load), usage.flow.capacity);
        let make = move || {
            let (mut sources, mut sinks) = (Vec::new(), Vec::new());
            for _ in 0..receivers {
                let (source, sink) = channel.open(capacity)?;
                sources.push(source);
                sinks.push(sink);
            }
            // A single receiver needs no distribution.
            Ok(match sources.len() {
                1 => roles(sources.remove(0), sinks),
                _ => roles(Bundle { sources, next: 0 }, sinks),
            })
        };
        Some(program(&usage, receivers, make, true))
    }

    fn many_receivers<C: Channel<Source: Clone, Sink: Clone>>(
        channel: &C,
        usage: Usage,
    ) -> Option<Program> {
        let channel = channel.clone();
        let (receivers, capacity) = (receivers(&usage.load), usage.flow.capacity);
        let make = move || {
            let (source, sink) = channel.open(capacity)?;
            let mut sinks: Vec<C::Sink> = (1..receivers).map(|_| sink.clone()).collect();
            sinks.push(sink);
            Ok(roles(source, sinks))
        };
        Some(program(&usage, receivers, make, false))
    }
}

fn receivers(load: &Load) -> usize {
    load.receivers.map_or(1, |receivers| receivers.get() as usize)
}

fn program(
    usage: &Usage,
    receivers: usize,
    make: impl Fn() -> Result<ThreadGroup, Unavailable> + Send + Sync + 'static,
    bundle: bool,
) -> Program {
    let read = move |block_logs| read(block_logs, bundle);
    let simulate = move |queue: &mut VirtualQueue<'_>| Ok(simulate(queue, receivers, bundle));
    usage.threads(receivers + 1, make, read, simulate)
}

struct Bundle<S> {
    sources: Vec<S>,
    next: usize,
}

impl<S: Source> Source for Bundle<S> {
    fn enter(&mut self) {
        self.sources.iter_mut().for_each(Source::enter);
    }

    #[inline(always)]
    fn send(&mut self, message: u64) {
        self.sources[self.next].send(message);
        self.next += 1;
        if self.next == self.sources.len() {
            self.next = 0;
        }
    }
}

fn roles<So: Source, Si: Sink>(source: So, sinks: Vec<Si>) -> ThreadGroup {
    let sender = Sender { source: Some(source), receivers: sinks.len(), length: 0 };
    let receiver = |sink| -> Box<dyn Role> { Box::new(Receiver { sink: Some(sink) }) };
    sinks.into_iter().map(receiver).chain([Box::new(sender) as Box<dyn Role>]).collect()
}

#[repr(align(128))]
struct Sender<S> {
    source: Option<S>,
    receivers: usize,
    /// Length of the next block, in ticks.
    length: u64,
}

impl<S: Source> Role for Sender<S> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        self.length = clock.ticks(block.length_ns);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let (length, receivers) = (self.length, self.receivers);
        let (begin, sent) = with(
            &mut self.source,
            #[inline(always)]
            |source| send(source, clock, length, receivers),
        );
        Log { times: vec![vec![begin]], numbers: vec![sent], wrong: 0 }
    }
}

/// Sends for `length` ticks, then sends one end marker per receiver. Returns the time at which
/// sending began, and the number of messages.
#[inline(always)]
fn send<S: Source>(source: &mut S, clock: &Clock, length: u64, receivers: usize) -> (u64, u64) {
    on_a_line();
    let begin = clock.stamp() + clock.ticks(AHEAD_NS);
    while clock.stamp() < begin {}
    let mut sent = 0;
    loop {
        for _ in 0..ROUND {
            sent += 1;
            source.send(sent);
        }
        if clock.stamp() >= begin + length {
            break;
        }
    }
    // In a bundle, consecutive messages go to different receivers, so each receiver gets one
    // marker.
    (0..receivers).for_each(|_| source.send(END));
    (begin, sent)
}

#[repr(align(128))]
struct Receiver<S> {
    sink: Option<S>,
}

impl<S: Sink> Role for Receiver<S> {
    fn enter(&mut self) {
        with(&mut self.sink, Sink::enter);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let (count, sum, last) = with(
            &mut self.sink,
            #[inline(always)]
            |sink| receive(sink),
        );
        // `last` is the end marker, unless a message was out of order.
        let wrong = last ^ END;
        Log { times: vec![vec![clock.stamp()]], numbers: vec![count, sum], wrong }
    }
}

/// Receives numbers while they ascend. Returns their count, their sum, and the first value that did
/// not ascend.
#[inline(always)]
fn receive<S: Sink>(sink: &mut S) -> (u64, u64, u64) {
    on_a_line();
    let (mut count, mut sum, mut before) = (0, 0u64, END);
    loop {
        let message = sink.receive();
        if message <= before {
            return (count, sum, message);
        }
        before = message;
        count += 1;
        sum = sum.wrapping_add(message);
    }
}

/// Returns the block as one stretch, from the first send call until the last receiver is done.
/// `None` if a message was lost or received twice.
fn read(block_logs: BlockLogs, bundle: bool) -> Option<Reading> {
    let (sender, receivers) = block_logs.logs.split_last()?;
    let (begin, sent) = (*sender.times.first()?.first()?, *sender.numbers.first()?);
    let end = receivers.iter().flat_map(|log| &log.times).flatten().max()?;
    let numbers = |of: usize| -> Option<Vec<u64>> {
        receivers.iter().map(|log| log.numbers.get(of).copied()).collect()
    };
    let (received, sums) = (numbers(0)?, numbers(1)?);
    let sum = sums.iter().fold(0u64, |sum, own| sum.wrapping_add(*own));
    let complete = received.iter().sum::<u64>() == sent && sum == sent * (sent + 1) / 2;
    let elapsed_ps = end.saturating_sub(begin).max(1000);
    let messages = SharedMessages { elapsed_ps, received, bundle };
    complete.then_some((Samples::Shared(messages), sent))
}

/// Simulates a queue whose throughput is limited only by its receivers.
fn simulate(queue: &mut VirtualQueue<'_>, receivers: usize, bundle: bool) -> Vec<Log> {
    let begin = queue.begins_ps;
    let end = begin + (queue.block.length_ns * 1000.0) as u64;
    let mut logs = vec![(begin, 0u64, 0u64); receivers];
    let mut sent = 0;
    loop {
        let earliest = (0..receivers).min_by_key(|nth| logs[*nth].0).unwrap_or(0);
        let at = if bundle { sent % receivers } else { earliest };
        if sent >= receivers && (logs[at].0 >= end || sent >= queue.most) {
            break;
        }
        let (free, count, sum) = &mut logs[at];
        *free += (queue.service_ps)(sent, queue.most);
        sent += 1;
        *count += 1;
        *sum += sent as u64;
    }
    let log = |times, numbers| Log { times: vec![vec![times]], numbers, wrong: 0 };
    let receivers = logs.into_iter().map(|(free, count, sum)| log(free, vec![count, sum]));
    receivers.chain([log(begin, vec![sent as u64])]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_lost_or_comes_twice_is_no_reading() {
        let log = |time: u64, numbers: &[u64]| Log {
            times: vec![vec![time]],
            numbers: numbers.to_vec(),
            wrong: 0,
        };
        let block_logs = |first: [u64; 2], second: [u64; 2]| BlockLogs {
            logs: vec![log(9_000, &first), log(8_000, &second), log(4_000, &[5])],
            cpu_ns: vec![0; 3],
            cpu: 0,
            clock_bound_ns: None,
        };
        let (samples, count) = read(block_logs([2, 1 + 4], [3, 2 + 3 + 5]), true).unwrap();
        let expected = SharedMessages { elapsed_ps: 5_000, received: vec![2, 3], bundle: true };
        assert_eq!((samples, count), (Samples::Shared(expected), 5));
        assert_eq!(read(block_logs([2, 1 + 4], [2, 2 + 5]), true), None, "3 was lost");
        assert_eq!(read(block_logs([2, 1 + 4], [3, 2 + 4 + 5]), true), None, "4 came twice");
    }

    /// The first message occupies its receiver for a millisecond. From a shared queue, the other
    /// receiver takes all other messages. In a bundle, half of them wait.
    #[test]
    fn a_slow_message_holds_up_others_only_in_a_bundle() {
        let run = |bundle| {
            let mut service_ps = |at: usize, _| if at == 0 { 1_000_000_000 } else { 1_000_000 };
            let block = BlockSpec { length_ns: 1.0, seed: 1 };
            let (begins_ps, most) = (0, 1_000);
            let stall_ps = &|_, _| 0;
            let mut queue =
                VirtualQueue { block, begins_ps, most, service_ps: &mut service_ps, stall_ps };
            queue.block.length_ns = 2_000_000.0;
            let logs = simulate(&mut queue, 2, bundle);
            let block_logs = BlockLogs { logs, cpu_ns: vec![0; 3], cpu: 0, clock_bound_ns: None };
            let (samples, _) = read(block_logs, bundle).unwrap();
            let Samples::Shared(messages) = samples else { panic!("{samples:?}") };
            (messages.received, messages.elapsed_ps)
        };
        assert_eq!(run(false), (vec![1, 999], 1_000_000_000));
        assert_eq!(run(true), (vec![500, 500], 1_499_000_000));
    }

    #[test]
    fn a_receiver_stops_at_what_does_not_ascend() {
        struct Gives(Vec<u64>);
        impl Sink for Gives {
            fn receive(&mut self) -> u64 {
                self.0.remove(0)
            }
        }
        assert_eq!(receive(&mut Gives(vec![1, 3, 4, END])), (3, 8, END));
        assert_eq!(receive(&mut Gives(vec![1, 3, 3])), (2, 4, 3));
    }
}

//! `flood`: one sender (the dumper) dumps megabytes into a queue, while another (the writer) now
//! and then sends a line. Measures the time of the *writer's* send call.
//!
//! ```text
//!   dumper:  8 MiB as fast as it can ──┐   (one by one, or in large batches)
//!   writer:  a line ── a line ─────────┴▶ queue ──▶ receiver, slower than the dumper
//!             └─┘ send call
//! ```
//!
//! During the dump, a bounded queue is full. Then both senders wait or, if the load allows loss,
//! the queue refuses messages or drops the oldest. An unbounded queue grows. The writer sleeps
//! between lines, because it may share a CPU with the dumper.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::place;
use threadtoll_record::{Arrivals, Budget, Kind, Load, Lose, Lost};

use crate::cache_padded::CachePadded;
use crate::exchange::{on_a_line, with};
use crate::program::Program;
use crate::samples::{Samples, SendCalls, Waited};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::arrivals::{MAX_MESSAGES, Pattern};
use super::erased;
use super::lose::{Tally, loses, send};
use super::paced::{AHEAD_NS, END, pattern};
use super::stream::{NUMBER_BITS, ROUND, first};
use super::words::count_up;
use super::{
    Asked, Channel, DEFAULT, Loops, MAX_BATCH, Overrides, Queue, Scenario, Sink, Source, Usage,
    Way, open_loop,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "flood",
    sentence: "time to send a log line while another thread dumps 8 MiB into the queue; lines \
               refused or dropped",
    kind: Kind::SendCall,
    loads: || loads(None),
    has_load,
    budget,
    batches,
    senders: |_, _| vec![SENDERS],
    ..DEFAULT
};

/// The dumper and the writer.
const SENDERS: u32 = 2;
/// Number of messages in a dump, 8 MiB in total.
const DUMP: u64 = 1 << 20;
/// Time that the receiver computes after each message. It makes the dump last for a whole block.
const COMPUTES_NS: f64 = 100.0;
/// Lines per second.
const RATES: [u64; 1] = [10_000];
const BLOCK_NS: f64 = 100e6;
/// The writer spins if its next line is due sooner than this, and sleeps otherwise.
const NAP: Duration = Duration::from_micros(20);
/// Interval at which the dumper, after its dump, checks if the writer has finished. The dumper
/// sleeps between checks, because it may share a CPU with the writer.
const DUMPER_NAP: Duration = Duration::from_millis(1);

fn budget(overrides: &Overrides, load: &Load) -> Budget {
    open_loop::budget_of_blocks(overrides, load, BLOCK_NS)
}

/// Returns the batch sizes of the dumper: 1 and, if the queue has batch calls, the maximum. Both
/// matter: in some queues, the writer's call has to complete work that a call of the dumper has
/// begun.
fn batches(_: &Queue, way: &Way, asked: &Asked<'_>) -> Vec<u64> {
    // A batch call waits until there is room, so it does not suit loads that allow loss.
    let in_batches = way.batches && asked.load.lose == Some(Lose::Never);
    match asked.batch {
        Some(1) => vec![1],
        Some(batch) if in_batches => vec![batch],
        Some(_) => Vec::new(),
        None if in_batches => vec![1, MAX_BATCH],
        None => vec![1],
    }
}

/// Returns loads with these numbers of lines per second; `None` takes the default.
pub fn loads(rates: Option<&[u64]>) -> Vec<Load> {
    let rates = rates.unwrap_or(&RATES);
    let load = |rate: u64, lose: Lose| Load {
        arrivals: Some(Arrivals::Poisson),
        rate_per_s: Some(rate.into()),
        lose: Some(lose),
        ..Load::NONE
    };
    let all = [Lose::Never, Lose::Newest, Lose::Oldest];
    rates.iter().flat_map(|rate| all.map(|lose| load(*rate, lose))).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    if load.lose.is_none() || load.arrivals != Some(Arrivals::Poisson) {
        return Err("the plan does not say which messages may be lost or when lines are due".into());
    }
    (open_loop::SCENARIO.has_load)(&Load { lose: None, ..load.clone() })
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(_: &C, _: Usage) -> Option<Program> {
        None
    }

    fn many_senders<C: Channel<Source: Clone>>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let Usage { flow, grows, load, .. } = usage.clone();
        let lose = load.lose.unwrap_or(Lose::Never);
        let of_simulated = load.clone();
        let make = move || {
            let (mut sources, sink) = erased::open_for(&channel, SENDERS as usize, flow.capacity)?;
            let state = Arc::new(State::default());
            let dumper = Dumper {
                source: sources.pop(),
                lose,
                batch: vec![first(0); flow.batch as usize],
                state: Arc::clone(&state),
            };
            let writer = Writer {
                source: sources.pop(),
                lose,
                pattern: pattern(&load)?,
                due: Vec::new(),
                state,
            };
            let receiver = Receiver { sink: Some(sink) };
            let roles: ThreadGroup = vec![Box::new(dumper), Box::new(writer), Box::new(receiver)];
            Ok(roles)
        };
        let simulate = move |queue: &mut VirtualQueue<'_>| {
            Ok(simulate(&pattern(&of_simulated)?, queue, lose, grows))
        };
        loses::<C>(&usage).then(|| usage.threads(3, make, read, simulate))
    }
}

#[derive(Default)]
struct State {
    /// True once the writer has sent all lines.
    written: CachePadded<AtomicBool>,
    /// True once the dumper has sent its last message.
    dumped: CachePadded<AtomicBool>,
}

#[repr(align(128))]
struct Dumper<S> {
    source: Option<S>,
    lose: Lose,
    batch: Vec<u64>,
    state: Arc<State>,
}

impl<S: Source> Role for Dumper<S> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
    }

    fn prepare(&mut self, _: BlockSpec, _: &Clock) {
        // Relaxed: all threads synchronise between `prepare` and the block.
        self.state.written.0.store(false, Ordering::Relaxed);
        self.state.dumped.0.store(false, Ordering::Relaxed);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let begin = clock.stamp() + clock.ticks(AHEAD_NS);
        while clock.stamp() < begin {}
        let Dumper { source, lose, batch, state } = self;
        let written = &state.written.0;
        let Tally { taken, dropped, .. } = with(
            source,
            #[inline(always)]
            |source| match batch.len() {
                1 => dump(source, *lose, written),
                _ => dump_batches(source, batch, written),
            },
        );
        state.dumped.0.store(true, Ordering::Relaxed);
        end(source, written, DUMPER_NAP);
        Log { times: Vec::new(), numbers: vec![taken, dropped], wrong: 0 }
    }
}

/// Sends a sender's end marker after the last message of the other sender. A later message could
/// displace the marker. Each sender sends a marker, because not every queue keeps the order between
/// senders.
fn end<S: Source>(source: &mut Option<S>, other: &AtomicBool, nap: Duration) {
    while !other.load(Ordering::Relaxed) {
        std::thread::sleep(nap);
    }
    with(source, |source| source.send(END));
}

#[inline(always)]
fn dump<S: Source>(source: &mut S, lose: Lose, written: &AtomicBool) -> Tally {
    on_a_line();
    let mut tally = Tally::default();
    let mut number = first(0);
    // Relaxed: it is harmless to see the flag a round late.
    while tally.taken < DUMP && !written.load(Ordering::Relaxed) {
        for _ in 0..ROUND {
            tally.count(send(source, number, lose));
            number += 1;
        }
    }
    tally
}

#[inline(always)]
fn dump_batches<S: Source>(source: &mut S, batch: &mut [u64], written: &AtomicBool) -> Tally {
    on_a_line();
    let mut tally = Tally::default();
    while tally.taken < DUMP && !written.load(Ordering::Relaxed) {
        count_up(batch, first(0) + tally.taken);
        source.send_batch(batch);
        tally.taken += batch.len() as u64;
    }
    tally
}

#[repr(align(128))]
struct Writer<S> {
    source: Option<S>,
    lose: Lose,
    pattern: Pattern,
    /// Due times of the block's lines, in ticks after the start of the block.
    due: Vec<u64>,
    state: Arc<State>,
}

impl<S: Source> Role for Writer<S> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        let schedule = self.pattern.schedule(block.length_ns, MAX_MESSAGES, block.seed);
        // The lines begin after the start of the dump.
        let ticks = |ps: &u64| clock.ticks(*ps as f64 / 1e3 + 2.0 * AHEAD_NS);
        self.due = schedule.due_ps.iter().map(ticks).collect();
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Writer { source, lose, due, state, .. } = self;
        let begin = clock.stamp();
        let mut times = [Vec::with_capacity(due.len()), Vec::with_capacity(due.len())];
        let mut tally = Tally::default();
        with(source, |source| {
            for (number, due) in (first(1)..).zip(due.iter()) {
                wait_until(begin + due, clock);
                let before = clock.stamp();
                let sent = send(source, number, *lose);
                let after = clock.stamp();
                tally.count(sent);
                times[0].push(before);
                times[1].push(after);
            }
        });
        state.written.0.store(true, Ordering::Relaxed);
        end(source, &state.dumped.0, NAP);
        let numbers = vec![tally.taken, tally.dropped, tally.refused, place::current_cpu().into()];
        Log { times: times.to_vec(), numbers, wrong: 0 }
    }
}

fn wait_until(due: u64, clock: &Clock) {
    loop {
        let now = clock.stamp();
        if now >= due {
            return;
        }
        let left = Duration::from_nanos(clock.ns(due - now) as u64);
        if left > NAP {
            std::thread::sleep(left);
        }
    }
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
        let ([dumped, lines], wrong) = with(
            &mut self.sink,
            #[inline(always)]
            |sink| receive(sink, clock),
        );
        Log { times: Vec::new(), numbers: vec![dumped, lines], wrong }
    }
}

/// Receives until both end markers have arrived, and computes after each message. Returns the
/// number of messages of each sender, and 0 if each sender's messages were in ascending order.
#[inline(always)]
fn receive<S: Sink>(sink: &mut S, clock: &Clock) -> ([u64; 2], u64) {
    on_a_line();
    let computes = clock.ticks(COMPUTES_NS);
    let (mut counts, mut last) = ([0; 2], [first(0) - 1, first(1) - 1]);
    let mut ended = 0;
    loop {
        let message = sink.receive();
        if message == END {
            ended += 1;
            if ended == SENDERS {
                return (counts, 0);
            }
            continue;
        }
        let sender = usize::from(message >> NUMBER_BITS != 0);
        if message <= last[sender] || message >> NUMBER_BITS > 1 {
            return (counts, message);
        }
        last[sender] = message;
        counts[sender] += 1;
        let until = clock.stamp() + computes;
        while clock.stamp() < until {}
    }
}

/// Returns the durations of the writer's send calls and the number of lost lines. `None` if a
/// message is missing that the queue did not report as dropped.
fn read(block_logs: BlockLogs) -> Option<Reading> {
    let [dumper, writer, receiver] = block_logs.logs.as_slice() else { return None };
    let &[dumped, dropped_for_dump] = dumper.numbers.as_slice() else { return None };
    let &[lines, dropped_for_lines, refused, cpu] = writer.numbers.as_slice() else { return None };
    let &[dump_received, lines_received] = receiver.numbers.as_slice() else { return None };
    let received = dump_received + lines_received;
    if received + dropped_for_dump + dropped_for_lines != dumped + lines || lines_received > lines {
        return None;
    }
    let [before, after] = writer.times.as_slice() else { return None };
    let call = |(before, after): (&u64, &u64)| Waited {
        ps: after.saturating_sub(*before),
        at_s: *after as f64 / 1e12,
        cpu: cpu as u32,
    };
    let sends = SendCalls {
        calls: before.iter().zip(after).map(call).collect(),
        elapsed_ps: after.last()?.saturating_sub(*before.first()?).max(1000),
        lost: Lost { refused: refused.into(), dropped: (lines - lines_received).into() },
    };
    Some((Samples::SendCalls(sends), received))
}

/// Simulates an endless dump into a queue with one server. A bounded queue is always full: a sender
/// that waits gets the slot of the next message received, and a line that displaces a message is
/// itself displaced later. A call takes as long as the receiver needs for a message.
fn simulate(pattern: &Pattern, queue: &mut VirtualQueue<'_>, lose: Lose, grows: bool) -> Vec<Log> {
    let schedule = pattern.schedule(queue.block.length_ns, queue.most, queue.block.seed);
    let count = schedule.due_ps.len();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let (mut now, mut leaves) = (queue.begins_ps, queue.begins_ps);
    for (at, due) in schedule.due_ps.iter().enumerate() {
        now = now.max(queue.begins_ps + due) + (queue.stall_ps)(at, count);
        before.push(now);
        let call_ps = (queue.service_ps)(at, count);
        if lose == Lose::Never && !grows {
            while leaves < now {
                leaves += call_ps;
            }
            now = leaves;
        }
        now += call_ps;
        after.push(now);
    }
    let lines = count as u64;
    let (taken, refused, dropped) = match lose {
        Lose::Never => (lines, 0, 0),
        Lose::Newest => (0, lines, 0),
        Lose::Oldest => (lines, 0, lines),
    };
    let log = |times, numbers| Log { times, numbers, wrong: 0 };
    vec![
        log(Vec::new(), vec![0, 0]),
        log(vec![before, after], vec![taken, dropped, refused, 0]),
        log(Vec::new(), vec![0, taken - dropped]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_logs(dumper: [u64; 2], writer: [u64; 4], receiver: [u64; 2]) -> BlockLogs {
        let log = |numbers: &[u64]| Log { numbers: numbers.to_vec(), ..Log::default() };
        let calls = vec![vec![1_000, 9_000], vec![3_000, 9_500]];
        let logs = vec![log(&dumper), Log { times: calls, ..log(&writer) }, log(&receiver)];
        BlockLogs { logs, cpu_ns: vec![0; 3], cpu: 1, clock_bound_ns: None }
    }

    #[test]
    fn lines_that_were_refused_or_dropped_are_counted() {
        let (samples, count) = read(block_logs([100, 7], [2, 1, 1, 5], [93, 1])).unwrap();
        let Samples::SendCalls(sends) = samples else { panic!("{samples:?}") };
        assert_eq!((sends.lost.refused.get(), sends.lost.dropped.get(), count), (1, 1, 94));
        assert_eq!((sends.elapsed_ps, sends.calls[0].cpu), (8_500, 5));
        assert_eq!(sends.calls.iter().map(|call| call.ps).collect::<Vec<_>>(), [2_000, 500]);
        assert!(read(block_logs([100, 0], [2, 0, 0, 5], [99, 2])).is_none(), "one is missing");
    }

    #[test]
    fn a_receiver_stops_at_what_does_not_ascend() {
        struct Gives(Vec<u64>);
        impl Sink for Gives {
            fn receive(&mut self) -> u64 {
                self.0.remove(0)
            }
        }
        let (clock, _) = Clock::gate().unwrap();
        let (line, dumped) = (first(1), first(0));
        // One sender's end marker overtakes a message of the other sender.
        let good = vec![dumped, line, dumped + 5, END, line + 1, END];
        assert_eq!(receive(&mut Gives(good), &clock), ([2, 2], 0));
        let twice = vec![dumped, line, line];
        assert_eq!(receive(&mut Gives(twice), &clock), ([1, 1], line));
    }
}

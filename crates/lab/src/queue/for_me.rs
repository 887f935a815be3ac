//! `for-me`: sends the user's own traffic through every queue, to recommend one.
//!
//! ```text
//!   sender 1 ──┐   each message when it is due; one that finds the queue full
//!   sender 2 ──┼──▶ queue ──▶ receiver: a stamp for each message, by sender
//!   sender n ──┘   waits, is refused, or takes the place of the oldest
//! ```
//!
//! Senders take turns with the messages of one open loop, so the arrivals at the queue are the same
//! for any number of senders. If there are several, each sleeps until its next message is almost
//! due, so that a waiting sender does not keep another from its CPU.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Kind, Load, Lose, Lost, Scale};

use crate::cache_padded::CachePadded;
use crate::error::Make;
use crate::error::Unavailable;
use crate::program::Program;
use crate::samples::{Deliveries, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::arrivals::{MAX_MESSAGES, Pattern, Schedule};
use super::erased::{self, AnySink, AnySource};
use super::gathered::{Receiver, deliveries};
use super::lose::{Tally, send};
use super::paced::{END, Generator, busy_ns, pattern, sending_ps, share};
use super::stream::{NUMBER_BITS, first};
use super::{
    AnySize, ArrivalsChoice, Channel, DEFAULT, Loops, MESSAGE_BYTES, ManySenders, Scenario, Source,
    Unsuitable, Usage, Words, open_loop, payload,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "for-me",
    sentence: "a recommendation for your traffic: the queue with the lowest p99 of those that keep \
               up",
    kind: Kind::OpenLoop,
    loads: || loads(None, None, None, None),
    sizes: &MESSAGE_BYTES,
    has_load,
    budget: open_loop::budget,
    capacity: payload::SCENARIO.capacity,
    any_senders: true,
    ..DEFAULT
};

/// Maximum number of bytes of messages that may wait in a queue that grows.
const MAX_WAITING_BYTES: u64 = 512 << 20;
/// Time after which a sender gives up on a saturated queue, at high rates.
const BACKLOG_S: f64 = 0.05;
/// Interval at which a sender checks if all senders are done.
const NAP: Duration = Duration::from_micros(20);

/// Rejects messages that would take too much memory if they had to wait in the queue.
///
/// # Errors
///
/// If messages of the largest size may take more memory than a queue may use.
pub fn check(
    arrivals: Option<&ArrivalsChoice>,
    scale: Option<Scale>,
    rates: Option<&[u64]>,
    payloads: Option<&[u64]>,
) -> Result<(), Unsuitable> {
    let (fastest, at_once) = match arrivals {
        Some(ArrivalsChoice::File(trace)) => {
            (trace.rate(scale.unwrap_or(Scale::ONE)), trace.most_at_once())
        }
        _ => (rates.into_iter().flatten().max().map_or(0.0, |rate| *rate as f64), 0),
    };
    // Number of messages of a block in a queue that grows, if nothing is received.
    let waiting = ((fastest * BACKLOG_S) as usize).max(at_once).min(MAX_MESSAGES) as u64;
    let largest = payloads.into_iter().flatten().copied().max().unwrap_or(8);
    if waiting.saturating_mul(largest) > MAX_WAITING_BYTES {
        let why = format!(
            "--payload {largest}: {waiting} messages may have to wait in a queue, which would take \
             more than {} MiB",
            MAX_WAITING_BYTES >> 20
        );
        return Err(Unsuitable { why, hint: "use a smaller payload or rate" });
    }
    Ok(())
}

/// Loads with these [arrivals](open_loop::loads), for queues that lose nothing and for those that
/// may lose the messages in `loses`.
pub fn loads(
    arrivals: Option<&ArrivalsChoice>,
    scale: Option<Scale>,
    rates: Option<&[u64]>,
    lose: Option<Lose>,
) -> Vec<Load> {
    let chosen = lose.filter(|lose| *lose != Lose::Never);
    let all = || std::iter::once(Lose::Never).chain(chosen);
    let of_arrivals = open_loop::loads(arrivals, scale, rates).into_iter();
    of_arrivals
        .flat_map(|load| all().map(move |lose| Load { lose: Some(lose), ..load.clone() }))
        .collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    if load.lose.is_none() {
        return Err("the plan does not say which messages may be lost".into());
    }
    (open_loop::SCENARIO.has_load)(&Load { lose: None, ..load.clone() })
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: AnySize>(channel: &C, usage: Usage) -> Option<Program> {
        let capacity = usage.flow.capacity;
        type Open<C> = fn(&C, usize) -> Result<(AnySource, AnySink), Unavailable>;
        let one = |open: Open<C>| {
            let channel = channel.clone();
            let open = move || open(&channel, capacity).map(|(source, sink)| (vec![source], sink));
            Some(program(&usage, Arc::new(open)))
        };
        if usage.flow.senders != 1 || !loses::<C>(&usage) {
            return None;
        }
        match usage.payload_bytes {
            8 => one(erased::open::<C>),
            64 => one(erased::open_carrying::<Words<8>, C>),
            512 => one(erased::open_carrying::<Words<64>, C>),
            4096 => one(erased::open_carrying::<Words<512>, C>),
            65_536 => one(erased::open_carrying::<Words<8192>, C>),
            _ => None,
        }
    }

    fn many_senders<C: ManySenders>(channel: &C, usage: Usage) -> Option<Program> {
        let (senders, capacity) = (usage.flow.senders as usize, usage.flow.capacity);
        type Open<C> = fn(&C, usize, usize) -> Result<(Vec<AnySource>, AnySink), Unavailable>;
        let many = |open: Open<C>| {
            let channel = channel.clone();
            let open = move || open(&channel, senders, capacity);
            Some(program(&usage, Arc::new(open)))
        };
        if !loses::<C>(&usage) {
            return None;
        }
        match usage.payload_bytes {
            8 => many(erased::open_for::<C>),
            64 => many(erased::open_for_carrying::<Words<8>, C>),
            512 => many(erased::open_for_carrying::<Words<64>, C>),
            4096 => many(erased::open_for_carrying::<Words<512>, C>),
            65_536 => many(erased::open_for_carrying::<Words<8192>, C>),
            _ => None,
        }
    }
}

/// Returns `true` if the queue can lose such messages as the load allows.
fn loses<C: Channel>(usage: &Usage) -> bool {
    match usage.load.lose {
        None | Some(Lose::Never) => true,
        Some(Lose::Newest) => !usage.grows,
        Some(Lose::Oldest) => C::Source::OVERWRITES,
    }
}

fn program(usage: &Usage, open: Make<(Vec<AnySource>, AnySink)>) -> Program {
    let Usage { flow, load, .. } = usage.clone();
    let senders = flow.senders as usize;
    let lose = load.lose.unwrap_or(Lose::Never);
    let of_simulated = load.clone();
    let make = move || {
        let (sources, sink) = open()?;
        roles(sources, sink, &load, lose)
    };
    let simulate = move |queue: &mut VirtualQueue<'_>| {
        Ok(simulate(&pattern(&of_simulated)?, queue, senders, lose, flow.capacity))
    };
    usage.threads(senders + 1, make, move |block_logs| read(block_logs, lose), simulate)
}

fn roles(
    sources: Vec<AnySource>,
    sink: AnySink,
    load: &Load,
    lose: Lose,
) -> Result<ThreadGroup, Unavailable> {
    let senders = sources.len();
    let sent_all = Arc::new(CachePadded::default());
    let mut roles: ThreadGroup = Vec::new();
    for (sender, source) in sources.into_iter().enumerate() {
        let losing = Losing {
            source,
            lose,
            tally: Tally::default(),
            sent_all: Arc::clone(&sent_all),
            senders,
        };
        let generator =
            Generator::new(pattern(load)?, losing).from(first(sender)).dealt(sender, senders);
        let generator = if senders > 1 { generator.with_naps() } else { generator };
        roles.push(Box::new(Sender { generator }));
    }
    // In a file, several messages may arrive at the same time.
    roles.push(Box::new(Receiver::new(sink, senders, |_| 2 * MAX_MESSAGES)));
    Ok(roles)
}

/// A sending end that may lose messages.
struct Losing<S> {
    source: S,
    lose: Lose,
    tally: Tally,
    /// Number of senders that have sent all of their messages.
    sent_all: Arc<CachePadded<AtomicUsize>>,
    senders: usize,
}

impl<S: Source> Source for Losing<S> {
    fn enter(&mut self) {
        self.source.enter();
    }

    fn send(&mut self, message: u64) {
        if message == END {
            // After this, no message follows that could displace an end marker. Release and
            // acquire: an end marker comes after all messages of the other senders.
            self.sent_all.0.fetch_add(1, Ordering::Release);
            while self.sent_all.0.load(Ordering::Acquire) < self.senders {
                std::thread::sleep(NAP);
            }
            self.source.send(END);
        } else {
            self.tally.count(send(&mut self.source, message, self.lose));
        }
    }
}

struct Sender {
    generator: Generator<Losing<AnySource>>,
}

impl Role for Sender {
    fn enter(&mut self) {
        self.generator.enter();
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        if let Some(losing) = self.generator.source() {
            losing.tally = Tally::default();
            // All threads synchronise between this and the block.
            losing.sent_all.0.store(0, Ordering::Relaxed);
        }
        self.generator.prepare(block, clock);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let mut log = self.generator.work(clock);
        let tally = self.generator.source().map(|losing| losing.tally).unwrap_or_default();
        log.numbers.extend([tally.refused, tally.dropped]);
        log
    }
}

/// Deliveries of all senders; `None` if a message was lost that was neither refused nor dropped,
/// was received twice, or overtook another message of its sender.
fn read(block_logs: BlockLogs, lose: Lose) -> Option<Reading> {
    let BlockLogs { logs, cpu_ns, cpu, clock_bound_ns } = block_logs;
    let (receiver, generators) = logs.split_last()?;
    let mut received: Vec<Vec<Option<u64>>> = Vec::new();
    let (mut messages, mut lost, mut sending, mut begin) = (0, 0, 0, 0);
    for log in generators {
        let [due, sent, after, _] = log.times.as_slice() else { return None };
        let &[lead, refused, dropped] = log.numbers.as_slice() else { return None };
        received.push(vec![None; due.len()]);
        messages += due.len() as u64;
        lost += refused + dropped;
        sending += sending_ps(sent, after);
        begin = begin.max(due.get(lead as usize).copied().unwrap_or(0));
    }
    let mut next = vec![0; generators.len()];
    for (time, number) in receiver.times.first()?.iter().zip(&receiver.numbers) {
        let sender = (number >> NUMBER_BITS) as usize;
        let nth = number.checked_sub(first(sender))? as usize;
        let place = received.get_mut(sender)?.get_mut(nth)?;
        if nth < next[sender] {
            return None;
        }
        next[sender] = nth + 1;
        *place = Some(*time);
    }
    let missing = |own: &Vec<Option<u64>>| own.iter().filter(|time| time.is_none()).count() as u64;
    if received.iter().map(missing).sum::<u64>() != lost {
        return None;
    }
    let mut rows: Vec<[u64; 5]> = Vec::new();
    let mut lost_of_counted = 0;
    for (log, own) in generators.iter().zip(&received) {
        let [due, sent, after, ready] = log.times.as_slice() else { return None };
        for (nth, time) in own.iter().enumerate() {
            match time {
                Some(time) => rows.push([due[nth], ready[nth], sent[nth], after[nth], *time]),
                None => lost_of_counted += u64::from(due[nth] >= begin),
            }
        }
    }
    rows.sort_unstable();
    let lead = rows.partition_point(|row| row[0] < begin);
    let deliveries = Deliveries {
        lead,
        busy_ns: busy_ns(sending, &cpu_ns, generators.len()),
        busy_messages: Some(messages),
        lost: Some(match lose {
            Lose::Never | Lose::Newest => {
                Lost { refused: lost_of_counted.into(), ..Lost::default() }
            }
            Lose::Oldest => Lost { dropped: lost_of_counted.into(), ..Lost::default() },
        }),
        cpu,
        clock_bound_ns,
        ..deliveries(&rows)
    };
    let counted = rows.len() - lead;
    (counted > 1).then_some((Samples::OpenLoop(deliveries), messages))
}

/// A queue with one server and this capacity, which does not include the message being served. If
/// no messages may be lost, the capacity has no effect.
fn simulate(
    pattern: &Pattern,
    queue: &mut VirtualQueue<'_>,
    senders: usize,
    lose: Lose,
    capacity: usize,
) -> Vec<Log> {
    let Schedule { due_ps, lead } =
        pattern.schedule(queue.block.length_ns, queue.most, queue.block.seed);
    let count = due_ps.len();
    let mut logs: Vec<Log> = (0..senders)
        .map(|sender| {
            let lead = share(lead, [sender, senders]) as u64;
            Log { times: vec![Vec::new(); 4], numbers: vec![lead, 0, 0], wrong: 0 }
        })
        .collect();
    let mut free = vec![queue.begins_ps; senders];
    let mut sent: Vec<(u64, u64)> = Vec::with_capacity(count);
    for (at, due) in due_ps.iter().enumerate() {
        let (sender, due) = (at % senders, queue.begins_ps + due);
        free[sender] = free[sender].max(due) + (queue.stall_ps)(at, count);
        let own = &mut logs[sender].times;
        own[0].push(due);
        own[1].push(free[sender]);
        own[2].push(free[sender]);
        // Send calls take no time.
        own[3].push(due);
        sent.push((free[sender], first(sender) + own[0].len() as u64 - 1));
    }
    sent.sort_unstable();
    let mut receiver = Log { times: vec![Vec::new()], ..Log::default() };
    let mut waiting: VecDeque<(u64, u64)> = VecDeque::new();
    let mut idle = queue.begins_ps;
    let mut served = 0;
    // Serves the messages that the receiver takes before this time.
    let mut serve = |waiting: &mut VecDeque<(u64, u64)>, until: u64| {
        while let Some((came, number)) = waiting.front().copied() {
            let begins = idle.max(came);
            if begins > until {
                return;
            }
            waiting.pop_front();
            idle = begins + (queue.service_ps)(served, count);
            served += 1;
            receiver.times[0].push(idle);
            receiver.numbers.push(number);
        }
    };
    for (now, number) in sent {
        serve(&mut waiting, now);
        if lose != Lose::Never && waiting.len() >= capacity {
            let lost = match lose {
                Lose::Oldest => waiting.pop_front().map_or(number, |(_, oldest)| oldest),
                Lose::Never | Lose::Newest => number,
            };
            let sender = (lost >> NUMBER_BITS) as usize;
            logs[sender].numbers[if lose == Lose::Oldest { 2 } else { 1 }] += 1;
            if lost == number {
                continue;
            }
        }
        waiting.push_back((now, number));
    }
    serve(&mut waiting, u64::MAX);
    logs.push(receiver);
    logs
}

#[cfg(test)]
mod tests {
    use threadtoll_record::Arrivals;

    use super::*;

    fn log(times: &[&[u64]], numbers: &[u64]) -> Log {
        Log {
            times: times.iter().map(|times| times.to_vec()).collect(),
            numbers: numbers.to_vec(),
            wrong: 0,
        }
    }

    #[test]
    fn what_is_missing_must_have_been_refused_or_dropped() {
        let block_logs = |order: &[u64], refused: u64| {
            let times: Vec<u64> = (0..order.len() as u64).map(|nth| 22 + 10 * nth).collect();
            let one: [&[u64]; 4] = [&[10, 20, 30], &[10, 20, 30], &[11, 21, 31], &[10, 20, 30]];
            let two: [&[u64]; 4] = [&[15, 25, 35], &[15, 25, 35], &[16, 26, 36], &[15, 25, 35]];
            BlockLogs {
                logs: vec![
                    log(&one, &[1, refused, 0]),
                    log(&two, &[1, 0, 0]),
                    log(&[&times], order),
                ],
                cpu_ns: vec![1, 1, 5],
                cpu: 2,
                clock_bound_ns: None,
            }
        };
        let (one, two) = (first(0), first(1));
        let order = [one, two, two + 1, one + 2, two + 2];
        let (samples, messages) = read(block_logs(&order, 1), Lose::Newest).unwrap();
        let Samples::OpenLoop(deliveries) = samples else { panic!("{samples:?}") };
        // The messages before 25 do not count, and the one at 20 is lost.
        assert_eq!((messages, deliveries.lead, deliveries.lost), (6, 2, Some(Lost::default())));
        assert_eq!(deliveries.due_ps[2..], [25, 30, 35]);
        assert_eq!(deliveries.received_ps[2..], [42, 52, 62]);
        assert!(read(block_logs(&order, 0), Lose::Newest).is_none(), "one is missing");
        let overtaken = [one, two + 1, two, one + 2, two + 2];
        assert!(read(block_logs(&overtaken, 1), Lose::Newest).is_none());
        let lost = [one, one + 1, two, one + 2, two + 2];
        let (samples, _) = read(block_logs(&lost, 1), Lose::Oldest).unwrap();
        let Samples::OpenLoop(deliveries) = samples else { panic!("{samples:?}") };
        let dropped = Lost { dropped: 1.into(), ..Lost::default() };
        assert_eq!(deliveries.lost, Some(dropped), "the one at 25");
    }

    /// A message a microsecond, each served in a millisecond, and room for two.
    #[test]
    fn full_queues_lose_the_newest_or_the_oldest() {
        let run = |lose, senders| {
            let block = BlockSpec { length_ns: 5_000.0, seed: 1 };
            let mut queue = VirtualQueue {
                block,
                begins_ps: 0,
                most: 1_000,
                service_ps: &mut |_, _| 1_000_000_000,
                stall_ps: &|_, _| 0,
            };
            let pattern = Pattern::Uniform { gap_ns: 1_000.0 };
            simulate(&pattern, &mut queue, senders, lose, 2)
        };
        let newest = run(Lose::Newest, 1);
        let messages = newest[0].times[0].len() as u64;
        assert_eq!(newest[1].numbers, [1, 2, 3], "one is served, and two wait");
        assert_eq!(newest[0].numbers[1..], [messages - 3, 0]);
        let oldest = run(Lose::Oldest, 1);
        assert_eq!(oldest[1].numbers, [1, messages - 1, messages]);
        assert_eq!(oldest[0].numbers[1..], [0, messages - 3]);
        let never = run(Lose::Never, 2);
        assert_eq!(never[2].numbers.len() as u64, messages);
        assert_eq!(never[2].numbers[..3], [first(0), first(1), first(0) + 1]);
        for (logs, lose) in [(newest, Lose::Newest), (oldest, Lose::Oldest), (never, Lose::Never)] {
            let cpu_ns = vec![0; logs.len()];
            assert!(read(BlockLogs { logs, cpu_ns, cpu: 0, clock_bound_ns: None }, lose).is_some());
        }
    }

    #[test]
    fn messages_are_dealt_out_completely() {
        for (messages, senders) in [(0, 1), (7, 1), (7, 3), (6, 3), (2, 5)] {
            let shares = (0..senders).map(|sender| share(messages, [sender, senders]));
            assert_eq!(shares.sum::<usize>(), messages);
        }
    }

    #[test]
    fn messages_that_would_fill_the_memory_are_refused() {
        let asked = |rate: u64, bytes: u64| check(None, None, Some(&[rate]), Some(&[8, bytes]));
        assert_eq!(asked(100_000, 65_536), Ok(()));
        assert_eq!(asked(10_000_000, 4096), Ok(()));
        let refused = asked(1_000_000, 65_536).unwrap_err();
        assert!(refused.why.contains("50000 messages"), "{}", refused.why);
    }

    #[test]
    fn a_load_says_what_may_be_lost() {
        let load =
            Load { arrivals: Some(Arrivals::Poisson), rate_per_s: Some(10.into()), ..Load::NONE };
        assert!(has_load(&load).is_err());
        assert!(has_load(&Load { lose: Some(Lose::Oldest), ..load }).is_ok());
    }
}

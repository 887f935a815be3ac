//! `for-me`: sends the user's own traffic through every queue, to recommend one.
//!
//! ```text
//!   sender 1 ──┐   each message when it is due; one that finds the queue full
//!   sender 2 ──┼──▶ queue ──▶ receiver: a stamp for each message, by sender
//!   sender n ──┘   waits, is refused, or takes the place of the oldest
//! ```
//!
//! The messages of one open loop are dealt to the senders round-robin, so the arrivals at the queue
//! are independent of the number of senders. If there are several senders, each sleeps until its
//! next message is almost due, because senders may share a CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Kind, Load, Lose, Lost, Scale};

use crate::cache_padded::CachePadded;
use crate::error::Unavailable;
use crate::program::Program;
use crate::samples::{Deliveries, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::arrivals::MAX_MESSAGES;
use super::erased::{self, Open};
use super::gathered::{OfSender, Receiver, by_sender, deliveries, simulate};
use super::lose::{Tally, loses, send};
use super::paced::{END, Generator, pattern};
use super::stream::first;
use super::{
    AnySize, ArrivalsChoice, Channel, DEFAULT, Loops, MESSAGE_BYTES, ManySenders, Scenario, Sink,
    Source, Unsuitable, Usage, Words, open_loop, payload,
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

/// Maximum total size, in bytes, of the messages that wait in an unbounded queue.
const MAX_WAITING_BYTES: u64 = 512 << 20;
/// Time, at high rates, after which a sender gives up on a saturated queue.
const BACKLOG_S: f64 = 0.05;
/// Interval at which a sender checks if all senders have sent their messages.
const NAP: Duration = Duration::from_micros(20);

/// Rejects messages that would take too much memory if they had to wait in the queue.
///
/// # Errors
///
/// Returns an error if waiting messages of the largest size could take more than 512 MiB.
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
    // Number of messages that wait in an unbounded queue if the receiver stalls for a whole block.
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

/// Returns a load without loss for each of the [arrivals](open_loop::loads). If `lose` allows loss,
/// also returns a load that loses messages in that way.
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
        let open: Open<C> = match usage.payload_bytes {
            8 => erased::open::<C>,
            64 => erased::open_carrying::<Words<8>, C>,
            512 => erased::open_carrying::<Words<64>, C>,
            4096 => erased::open_carrying::<Words<512>, C>,
            65_536 => erased::open_carrying::<Words<8192>, C>,
            _ => return None,
        };
        (usage.flow.senders == 1).then(|| program(channel, &usage, open)).flatten()
    }

    fn many_senders<C: ManySenders>(channel: &C, usage: Usage) -> Option<Program> {
        let open: Open<C> = match usage.payload_bytes {
            8 => erased::open_for::<C>,
            64 => erased::open_for_carrying::<Words<8>, C>,
            512 => erased::open_for_carrying::<Words<64>, C>,
            4096 => erased::open_for_carrying::<Words<512>, C>,
            65_536 => erased::open_for_carrying::<Words<8192>, C>,
            _ => return None,
        };
        program(channel, &usage, open)
    }
}

fn program<C: Channel>(channel: &C, usage: &Usage, open: Open<C>) -> Option<Program> {
    let channel = channel.clone();
    let Usage { flow, load, .. } = usage.clone();
    let (senders, capacity) = (flow.senders as usize, flow.capacity);
    let lose = load.lose.unwrap_or(Lose::Never);
    let of_simulated = load.clone();
    let make = move || {
        let (sources, sink) = open(&channel, senders, capacity)?;
        roles(sources, sink, &load, lose)
    };
    let simulate = move |queue: &mut VirtualQueue<'_>| {
        let BlockSpec { length_ns, seed } = queue.block;
        let schedule = pattern(&of_simulated)?.schedule(length_ns, queue.most, seed);
        let dealt = (0..senders).map(|sender| schedule.dealt([sender, senders]));
        Ok(simulate(queue, &dealt.collect::<Vec<_>>(), lose, capacity))
    };
    let read = move |block_logs| read(block_logs, lose);
    loses::<C>(usage).then(|| usage.threads(senders + 1, make, read, simulate))
}

fn roles(
    sources: Vec<Box<dyn Source>>,
    sink: Box<dyn Sink>,
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
    // Twice the maximum, because several messages in a file may be due at the same time.
    roles.push(Box::new(Receiver::new(sink, senders, |_| 2 * MAX_MESSAGES)));
    Ok(roles)
}

struct Losing<S> {
    source: S,
    lose: Lose,
    tally: Tally,
    sent_all: Arc<CachePadded<AtomicUsize>>,
    senders: usize,
}

impl<S: Source> Source for Losing<S> {
    fn enter(&mut self) {
        self.source.enter();
    }

    fn send(&mut self, message: u64) {
        if message == END {
            // Wait until all senders have sent their messages, because a later message could
            // displace an end marker. Release and acquire order the messages of all senders before
            // every end marker.
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
    generator: Generator<Losing<Box<dyn Source>>>,
}

impl Role for Sender {
    fn enter(&mut self) {
        self.generator.enter();
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        if let Some(losing) = self.generator.source() {
            losing.tally = Tally::default();
            // Relaxed: all threads synchronise between `prepare` and the block.
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

/// Returns the deliveries of all senders' messages. `None` if a message was received twice,
/// overtook another message of its sender, or is missing although it was neither refused nor
/// dropped.
fn read(block_logs: BlockLogs, lose: Lose) -> Option<Reading> {
    let BlockLogs { logs, cpu_ns, cpu, clock_bound_ns } = block_logs;
    let senders = by_sender(&logs)?;
    let counted_from = |own: &OfSender<'_>| own.due.get(own.lead).copied().unwrap_or(0);
    let begin = senders.iter().map(counted_from).max()?;
    let mut rows: Vec<[u64; 5]> = Vec::new();
    let mut lost_of_counted = 0;
    for own in &senders {
        for (nth, due) in own.due.iter().enumerate() {
            match own.row(nth) {
                Some(row) => rows.push(row),
                None => lost_of_counted += u64::from(*due >= begin),
            }
        }
    }
    rows.sort_unstable();
    let lead = rows.partition_point(|row| row[0] < begin);
    let lost = match lose {
        Lose::Never | Lose::Newest => Lost { refused: lost_of_counted.into(), ..Lost::default() },
        Lose::Oldest => Lost { dropped: lost_of_counted.into(), ..Lost::default() },
    };
    let (deliveries, messages) = deliveries(&rows, &senders, &cpu_ns);
    let deliveries = Deliveries { lead, lost: Some(lost), cpu, clock_bound_ns, ..deliveries };
    (rows.len() - lead > 1).then_some((Samples::OpenLoop(deliveries), messages))
}

#[cfg(test)]
mod tests {
    use threadtoll_record::Arrivals;

    use super::*;
    use crate::queue::arrivals::{Pattern, Schedule};

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
        // Messages due before 25 are warm-up. The message due at 20 is lost.
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

    /// One message per microsecond, a service time of a millisecond, and room for two messages.
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
            let schedule = Pattern::Uniform { gap_ns: 1_000.0 }.schedule(5_000.0, 1_000, 1);
            let dealt = (0..senders).map(|sender| schedule.dealt([sender, senders]));
            simulate(&mut queue, &dealt.collect::<Vec<_>>(), lose, 2)
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
            let schedule = Schedule { due_ps: vec![0; messages], lead: messages };
            let dealt = (0..senders).map(|sender| schedule.dealt([sender, senders]));
            let counts = dealt.map(|own| (own.due_ps.len(), own.lead));
            let sums = counts.fold((0, 0), |sums, own| (sums.0 + own.0, sums.1 + own.1));
            assert_eq!(sums, (messages, messages));
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

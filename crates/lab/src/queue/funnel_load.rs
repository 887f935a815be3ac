//! `funnel`: rare important messages among those of chatty senders, all in one queue.
//!
//! ```text
//!   chatty 1 ────┐
//!   chatty n ────┼──▶ queue ──▶ receiver: a stamp for each message, by sender
//!   important ───┘
//! ```
//!
//! Every sender is an open loop of its own. Chatty senders never sleep: they are assumed to compute
//! between two messages. Senders of important messages sleep until their next message is almost
//! due.

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Arrivals, Budget, Kind, Load};

use crate::error::Unavailable;
use crate::program::Program;
use crate::samples::{Deliveries, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::arrivals::{MAX_MESSAGES, Pattern, Schedule};
use super::erased;
use super::gathered::{Receiver, deliveries};
use super::paced::{Generator, busy_ns, sending_ps};
use super::stream::{NUMBER_BITS, first};
use super::{
    Channel, DEFAULT, Loops, MAX_SENDERS, Overrides, Scenario, Sink, Usage, open_loop, within,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "funnel",
    sentence: "latency of rare, important messages among those of chatty senders, and fairness \
               between these senders",
    kind: Kind::OpenLoop,
    loads: || loads(None, None),
    has_load,
    budget,
    senders,
    any_senders: true,
    ..DEFAULT
};

/// Default number of messages per second, of all chatty senders together.
const RATES: [u64; 1] = [200_000];
/// Messages per second of an important sender.
pub(crate) const IMPORTANT_PER_S: f64 = 1e3;
/// Time between two of them.
const GAP_NS: f64 = 1e9 / IMPORTANT_PER_S;
/// Usual length of a block: each important sender has a hundred messages.
const BLOCK_NS: f64 = 100e6;

fn budget(overrides: &Overrides, _: &Load) -> Budget {
    let important = Load { rate_per_s: Some((IMPORTANT_PER_S as u64).into()), ..Load::NONE };
    open_loop::budget_of_blocks(overrides, &important, BLOCK_NS)
}

/// Numbers of senders: from those of important messages only, to twice as many as there are CPUs.
fn senders(load: &Load, cpus: usize) -> Vec<u32> {
    let least = load.important.map_or(1, |important| important.get() as u32);
    let most = (2 * cpus as u32).clamp(least, MAX_SENDERS);
    let powers = (0..).map(|power| 1 << power).take_while(|senders| *senders < most);
    let mut all: Vec<u32> = std::iter::once(least).chain(powers).chain([most]).collect();
    all.retain(|senders| *senders >= least);
    all.sort_unstable();
    all.dedup();
    all
}

/// Loads with these numbers of messages per second, of all chatty senders together, and this many
/// senders of important messages; `None` for the defaults.
pub fn loads(rates: Option<&[u64]>, important: Option<u64>) -> Vec<Load> {
    let load = |rate: &u64| Load {
        arrivals: Some(Arrivals::Poisson),
        rate_per_s: Some((*rate).into()),
        important: Some(important.unwrap_or(1).into()),
        ..Load::NONE
    };
    rates.unwrap_or(&RATES).iter().map(load).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    if !within(load.important, MAX_SENDERS.into()) || load.arrivals != Some(Arrivals::Poisson) {
        return Err("its important senders or its arrivals are out of range".into());
    }
    (open_loop::SCENARIO.has_load)(&Load { important: None, ..load.clone() })
}

/// The senders: the chatty ones, and those of important messages.
#[derive(Clone, Copy)]
struct Senders {
    all: usize,
    /// Number of chatty senders, which is also the index of the first sender of important messages.
    chatty: usize,
    chatty_gap_ns: f64,
}

impl Senders {
    fn of(senders: u32, load: &Load) -> Self {
        let all = senders as usize;
        let important = load.important.map_or(1, |important| important.get() as usize);
        let chatty = all.saturating_sub(important);
        let rate = load.rate_per_s.map_or(1.0, |rate| rate.as_f64());
        Senders { all, chatty, chatty_gap_ns: chatty as f64 * 1e9 / rate }
    }

    fn pattern(self, sender: usize) -> Pattern {
        let gap_ns = if sender < self.chatty { self.chatty_gap_ns } else { GAP_NS };
        Pattern::Poisson { gap_ns }
    }

    /// One and a half times the expected number of messages in a block, including a tenth that does
    /// not count.
    fn most(self, block: BlockSpec) -> usize {
        let Senders { all, chatty, chatty_gap_ns } = self;
        let gaps = [(chatty, chatty_gap_ns), (all - chatty, GAP_NS)];
        let paced = gaps.into_iter().filter(|(_, gap_ns)| *gap_ns > 0.0);
        let each = paced.map(|(senders, gap_ns)| senders as f64 * block.length_ns / gap_ns);
        ((each.sum::<f64>() * 1.65) as usize + 100 * all).min(all * MAX_MESSAGES)
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    /// With one sender, there is only a sender of important messages.
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let senders = Senders::of(1, &usage.load);
        let capacity = usage.flow.capacity;
        let make = move || {
            let (source, sink) = erased::open(&channel, capacity)?;
            Ok(roles(vec![source], sink, senders))
        };
        (usage.flow.senders == 1).then(|| program(&usage, senders, make))
    }

    fn many_senders<C: Channel<Source: Clone>>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let senders = Senders::of(usage.flow.senders, &usage.load);
        let capacity = usage.flow.capacity;
        let make = move || {
            let (sources, sink) = erased::open_for(&channel, senders.all, capacity)?;
            Ok(roles(sources, sink, senders))
        };
        Some(program(&usage, senders, make))
    }
}

fn program(
    usage: &Usage,
    senders: Senders,
    make: impl Fn() -> Result<ThreadGroup, Unavailable> + Send + Sync + 'static,
) -> Program {
    let read = move |block_logs| read(block_logs, senders);
    usage.threads(senders.all + 1, make, read, move |queue| Ok(simulate(queue, senders)))
}

fn roles<So: super::Source, Si: Sink>(sources: Vec<So>, sink: Si, senders: Senders) -> ThreadGroup {
    let generator = |(sender, source)| -> Box<dyn Role> {
        let generator = Seeded {
            generator: Generator::new(senders.pattern(sender), source).from(first(sender)),
            sender: sender as u64,
        };
        if sender < senders.chatty {
            Box::new(generator)
        } else {
            Box::new(Seeded { generator: generator.generator.with_naps(), ..generator })
        }
    };
    let receiver = Receiver::new(sink, senders.all, move |block| senders.most(block));
    let generators = sources.into_iter().enumerate().map(generator);
    generators.chain([Box::new(receiver) as Box<dyn Role>]).collect()
}

/// A generator with random arrivals of its own.
struct Seeded<S> {
    generator: Generator<S>,
    sender: u64,
}

impl<S: super::Source> Role for Seeded<S> {
    fn enter(&mut self) {
        self.generator.enter();
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        self.generator.prepare(of_sender(block, self.sender), clock);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        self.generator.work(clock)
    }
}

fn of_sender(block: BlockSpec, sender: u64) -> BlockSpec {
    BlockSpec { seed: block.seed ^ (sender << 32), ..block }
}

/// Deliveries of important messages, and of chatty ones by sender; `None` if a message was lost,
/// was received twice, or overtook another message of its sender.
fn read(block_logs: BlockLogs, senders: Senders) -> Option<Reading> {
    let BlockLogs { logs, cpu_ns, cpu, .. } = block_logs;
    let (receiver, generators) = logs.split_last()?;
    let mut received: Vec<Vec<u64>> = vec![Vec::new(); senders.all];
    for (time, number) in receiver.times.first()?.iter().zip(&receiver.numbers) {
        let own = received.get_mut((number >> NUMBER_BITS) as usize)?;
        let expected = first((number >> NUMBER_BITS) as usize) + own.len() as u64;
        if *number != expected {
            return None;
        }
        own.push(*time);
    }
    let mut important: Vec<[u64; 5]> = Vec::new();
    let mut chatty: Vec<Vec<u64>> = Vec::new();
    let (mut messages, mut sending) = (0, 0);
    for (sender, (log, received)) in generators.iter().zip(&received).enumerate() {
        let [due, sent, after, ready] = log.times.as_slice() else { return None };
        let lead = *log.numbers.first()? as usize;
        if due.len() != received.len() || lead >= due.len() {
            return None;
        }
        messages += due.len() as u64;
        sending += sending_ps(sent, after);
        let counted = lead..due.len();
        if sender < senders.chatty {
            let took = counted.filter_map(|nth| received[nth].checked_sub(due[nth]));
            chatty.push(took.collect());
        } else {
            let row = |nth| [due[nth], ready[nth], sent[nth], after[nth], received[nth]];
            important.extend(counted.map(row));
        }
    }
    important.sort_unstable();
    let deliveries = Deliveries {
        chatty: Some(chatty),
        busy_ns: busy_ns(sending, &cpu_ns, generators.len()),
        busy_messages: Some(messages),
        cpu,
        ..deliveries(&important)
    };
    (important.len() > 1).then_some((Samples::OpenLoop(deliveries), messages))
}

/// A queue with one server, which serves the messages of all senders in order.
fn simulate(queue: &mut VirtualQueue<'_>, senders: Senders) -> Vec<Log> {
    let schedule = |sender| {
        let block = of_sender(queue.block, sender as u64);
        senders.pattern(sender).schedule(block.length_ns, queue.most, block.seed)
    };
    let schedules: Vec<Schedule> = (0..senders.all).map(schedule).collect();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (sender, schedule) in schedules.iter().enumerate() {
        let due = schedule.due_ps.iter();
        all.extend((first(sender)..).zip(due).map(|(number, due)| (*due, number)));
    }
    all.sort_unstable();
    let (count, mut idle) = (all.len(), queue.begins_ps);
    let mut received = Log::default();
    let mut times = Vec::with_capacity(count);
    for (at, (due, number)) in all.into_iter().enumerate() {
        idle = idle.max(queue.begins_ps + due) + (queue.service_ps)(at, count);
        times.push(idle);
        received.numbers.push(number);
    }
    received.times.push(times);
    let generator = |schedule: Schedule| {
        let due: Vec<u64> = schedule.due_ps.iter().map(|due| queue.begins_ps + due).collect();
        let times = vec![due; 4];
        Log { times, numbers: vec![schedule.lead as u64], wrong: 0 }
    };
    schedules.into_iter().map(generator).chain([received]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_told_apart_and_lose_nothing() {
        let log = |times: &[&[u64]], numbers: &[u64]| Log {
            times: times.iter().map(|times| times.to_vec()).collect(),
            numbers: numbers.to_vec(),
            wrong: 0,
        };
        let load = Load { rate_per_s: Some(1000.into()), important: Some(1.into()), ..Load::NONE };
        let senders = Senders::of(2, &load);
        let block_logs = |numbers: &[u64]| {
            let chatty: [&[u64]; 4] = [&[10, 20, 30], &[10, 20, 30], &[11, 21, 31], &[10, 20, 30]];
            let important: [&[u64]; 4] =
                [&[15, 25, 35], &[16, 26, 36], &[17, 27, 37], &[15, 25, 35]];
            let received: [&[u64]; 1] = [&[12, 18, 22, 29, 38, 40]];
            BlockLogs {
                logs: vec![log(&chatty, &[1]), log(&important, &[1]), log(&received, numbers)],
                cpu_ns: vec![1, 1, 5],
                cpu: 2,
                clock_bound_ns: None,
            }
        };
        let (chatty, important) = (first(0), first(1));
        let order = [chatty, important, chatty + 1, important + 1, important + 2, chatty + 2];
        let (samples, messages) = read(block_logs(&order), senders).unwrap();
        let Samples::OpenLoop(deliveries) = samples else { panic!("{samples:?}") };
        assert_eq!((messages, deliveries.due_ps), (6, vec![25, 35]));
        assert_eq!(deliveries.received_ps, [29, 38]);
        assert_eq!(deliveries.chatty, Some(vec![vec![2, 10]]));
        let overtaken = [chatty, important, chatty + 1, important + 2, important + 1, chatty + 2];
        assert!(read(block_logs(&overtaken), senders).is_none());
        assert!(read(block_logs(&order[..5]), senders).is_none());
    }

    #[test]
    fn senders_go_from_the_important_ones_to_twice_the_cpus() {
        let of = |important: u64, cpus| {
            senders(&Load { important: Some(important.into()), ..Load::NONE }, cpus)
        };
        assert_eq!(of(1, 2), [1, 2, 4]);
        assert_eq!(of(3, 4), [3, 4, 8]);
        assert_eq!(of(1, 3), [1, 2, 4, 6]);
        assert_eq!(of(9, 2), [9]);
    }

    #[test]
    fn a_lone_sender_has_room_for_its_messages() {
        let load = Load { rate_per_s: Some(1000.into()), important: Some(1.into()), ..Load::NONE };
        let block = BlockSpec { length_ns: 1e9, seed: 1 };
        assert!(Senders::of(1, &load).most(block) > 1500);
    }
}

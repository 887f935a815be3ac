//! `funnel`: rare important messages among those of chatty senders, all in one queue.
//!
//! ```text
//!   chatty 1 ────┐
//!   chatty n ────┼──▶ queue ──▶ receiver: a stamp for each message, by sender
//!   important ───┘
//! ```
//!
//! Every sender is an open loop of its own. A chatty sender never sleeps: it is assumed to compute
//! between messages. A sender of important messages sleeps until its next message is almost due.

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Arrivals, Budget, Kind, Load, Lose};

use crate::program::Program;
use crate::samples::{Deliveries, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::arrivals::{MAX_MESSAGES, Pattern, Schedule};
use super::erased::{self, Open};
use super::gathered::{Receiver, by_sender, deliveries, simulate};
use super::paced::Generator;
use super::stream::first;
use super::{
    Channel, DEFAULT, Loops, MAX_SENDERS, Overrides, Scenario, Sink, Source, Usage, open_loop,
    within,
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

/// Default number of messages per second of all chatty senders together.
const RATES: [u64; 1] = [200_000];
/// Messages per second of each sender of important messages.
pub(crate) const IMPORTANT_PER_S: f64 = 1e3;
/// Time between two messages of one sender of important messages.
const GAP_NS: f64 = 1e9 / IMPORTANT_PER_S;
/// Usual length of a block: a hundred messages from each sender of important messages.
const BLOCK_NS: f64 = 100e6;

fn budget(overrides: &Overrides, _: &Load) -> Budget {
    let important = Load { rate_per_s: Some((IMPORTANT_PER_S as u64).into()), ..Load::NONE };
    open_loop::budget_of_blocks(overrides, &important, BLOCK_NS)
}

/// Returns the numbers of senders to measure, from the senders of important messages alone to twice
/// the number of CPUs.
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

/// Returns loads with these rates (messages per second of all chatty senders together) and this
/// number of senders of important messages. `None` takes the defaults.
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

#[derive(Clone, Copy)]
struct Senders {
    all: usize,
    /// Number of chatty senders. Also the index of the first sender of important messages.
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

    /// Returns the number of messages for which the receiver has room: 1.5 times the number
    /// expected in a block and its warm-up. The warm-up lasts a tenth of the block, so the factor
    /// is 1.65.
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
    /// A single sender sends important messages.
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        (usage.flow.senders == 1).then(|| program(channel, &usage, erased::open::<C>))
    }

    fn many_senders<C: Channel<Source: Clone>>(channel: &C, usage: Usage) -> Option<Program> {
        Some(program(channel, &usage, erased::open_for::<C>))
    }
}

fn program<C: Channel>(channel: &C, usage: &Usage, open: Open<C>) -> Program {
    let (channel, capacity) = (channel.clone(), usage.flow.capacity);
    let senders = Senders::of(usage.flow.senders, &usage.load);
    let make = move || {
        let (sources, sink) = open(&channel, senders.all, capacity)?;
        Ok(roles(sources, sink, senders))
    };
    let read = move |block_logs| read(block_logs, senders);
    let simulate = move |queue: &mut VirtualQueue<'_>| {
        let BlockSpec { length_ns, seed } = queue.block;
        let schedules = (0..senders.all).map(|sender| {
            senders.pattern(sender).schedule(length_ns, queue.most, seed_of(seed, sender))
        });
        let schedules: Vec<Schedule> = schedules.collect();
        Ok(simulate(queue, &schedules, Lose::Never, usize::MAX))
    };
    usage.threads(senders.all + 1, make, read, simulate)
}

fn roles(sources: Vec<Box<dyn Source>>, sink: Box<dyn Sink>, senders: Senders) -> ThreadGroup {
    let generator = |(sender, source)| -> Box<dyn Role> {
        let generator = Generator::new(senders.pattern(sender), source).from(first(sender));
        let is_chatty = sender < senders.chatty;
        let generator = if is_chatty { generator } else { generator.with_naps() };
        Box::new(Seeded { generator, sender })
    };
    let mut roles: ThreadGroup = sources.into_iter().enumerate().map(generator).collect();
    roles.push(Box::new(Receiver::new(sink, senders.all, move |block| senders.most(block))));
    roles
}

struct Seeded {
    generator: Generator<Box<dyn Source>>,
    sender: usize,
}

impl Role for Seeded {
    fn enter(&mut self) {
        self.generator.enter();
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        let seed = seed_of(block.seed, self.sender);
        self.generator.prepare(BlockSpec { seed, ..block }, clock);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        self.generator.work(clock)
    }
}

fn seed_of(block: u64, sender: usize) -> u64 {
    block ^ ((sender as u64) << 32)
}

/// Returns the deliveries of important messages, and the delivery times of chatty messages by
/// sender. `None` if a message was lost, was received twice, or overtook another message of its
/// sender.
fn read(block_logs: BlockLogs, senders: Senders) -> Option<Reading> {
    let BlockLogs { logs, cpu_ns, cpu, .. } = block_logs;
    let all = by_sender(&logs)?;
    let mut important: Vec<[u64; 5]> = Vec::new();
    let mut chatty: Vec<Vec<u64>> = Vec::new();
    for (sender, own) in all.iter().enumerate() {
        if own.lead >= own.due.len() {
            return None;
        }
        let rows = (own.lead..own.due.len()).filter_map(|nth| own.row(nth));
        if sender < senders.chatty {
            chatty.push(rows.filter_map(|[due, .., received]| received.checked_sub(due)).collect());
        } else {
            important.extend(rows);
        }
    }
    important.sort_unstable();
    let (deliveries, messages) = deliveries(&important, &all, &cpu_ns);
    let deliveries = Deliveries { chatty: Some(chatty), cpu, ..deliveries };
    (important.len() > 1).then_some((Samples::OpenLoop(deliveries), messages))
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

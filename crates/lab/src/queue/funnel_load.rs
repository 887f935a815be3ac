//! `funnel`: rare important messages among those of chatty senders, in one queue.
//!
//! ```text
//!   chatty 1 ────┐
//!   chatty n ────┼──▶ queue ──▶ receiver: a stamp for each message, by sender
//!   important ───┘
//! ```
//!
//! Every sender is an open loop of its own. Chatty ones never sleep: between two messages they are
//! taken to compute. Important ones sleep until their next message is nearly due. If stalls are
//! asked for, the first chatty sender is not paced: it is stalled in its send calls.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Arrivals, Budget, Count, Kind, Load};

use crate::crew::{Crew, CrewProgram, Log, Part, Reading, Seating, Shift, VirtualQueue, Worked};
use crate::program::Program;
use crate::samples::{Chat, Deliveries, HeldUp, Samples};

use super::arrivals::{MAX_MESSAGES, Pattern, Schedule};
use super::erased;
use super::gathered::{Receiver, deliveries};
use super::paced::{Generator, busy_ns, sending_ps};
use super::stalled::{self, MOST_SENT, Stalled};
use super::stream::{NUMBER_BITS, first};
use super::{
    Channel, Grouping, LoadOption, Loops, MAX_SENDERS, Overrides, RING_BYTES, Scenario, Sink,
    Unsuitable, Usage, one_word, open_loop,
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "funnel",
    sentence: "latency of rare important messages among those of chatty senders, and fairness",
    kind: Kind::OpenLoop,
    options: &[LoadOption::Rate, LoadOption::Important, LoadOption::Stall],
    required: &[],
    check,
    loads,
    payloads: one_word,
    has_load,
    budget,
    capacity: |slots, _| slots.capacity_within(RING_BYTES),
    batches: |_, _, _| vec![1],
    wake_up: None,
    senders,
    grouping: Grouping::Load,
};

/// Messages per second of all chatty senders together, by default.
const RATES: [u64; 1] = [200_000];
/// Messages per second of an important sender.
pub(crate) const IMPORTANT_PER_S: f64 = 1e3;
/// Time between two of them.
const GAP_NS: f64 = 1e9 / IMPORTANT_PER_S;
/// Usual length of a block: each important sender has a hundred messages.
const BLOCK_NS: f64 = 100e6;
/// Shortest and longest stall: other senders begin calls in its first half.
const STALL_NS: [u64; 2] = [1_000_000, 100_000_000];
/// Least length of a block in stalls; half of the time passes between them.
const STALLS: f64 = 20.0;

fn budget(overrides: &Overrides, load: &Load) -> Budget {
    let important = Load { rate_per_s: Some((IMPORTANT_PER_S as u64).into()), ..Load::NONE };
    let stalls_ns = load.stall_ns.map_or(0.0, |stall_ns| STALLS * stall_ns.as_f64());
    open_loop::budget_of_blocks(overrides, &important, BLOCK_NS.max(stalls_ns))
}

fn important(overrides: &Overrides) -> u32 {
    overrides.load.important.map_or(1, |important| important as u32)
}

/// The important ones, and one that is stalled.
fn least_senders(overrides: &Overrides) -> u32 {
    important(overrides) + u32::from(overrides.load.stall_ns.is_some())
}

/// From the important ones alone to twice as many senders as CPUs.
fn senders(overrides: &Overrides, cpus: usize) -> Vec<u32> {
    let least = least_senders(overrides);
    let most = (2 * cpus as u32).clamp(least, MAX_SENDERS);
    let powers = (0..).map(|power| 1 << power).take_while(|senders| *senders < most);
    let mut all: Vec<u32> = std::iter::once(least).chain(powers).chain([most]).collect();
    all.retain(|senders| *senders >= least);
    all.sort_unstable();
    all.dedup();
    all
}

fn check(overrides: &Overrides) -> Result<(), Unsuitable> {
    super::ask_reply::no_batches(SCENARIO.name, overrides)?;
    let important = important(overrides);
    let fewer = overrides.senders.iter().flatten().find(|senders| **senders < important);
    if let Some(senders) = fewer {
        let why = format!("--important {important}: more than --senders {senders}");
        return Err(Unsuitable { why, hint: "use more senders, or fewer important ones" });
    }
    if let Some(stall_ns) = overrides.load.stall_ns {
        check_stalls(overrides, stall_ns)?;
    }
    open_loop::check_rates(overrides)
}

fn check_stalls(overrides: &Overrides, stall_ns: u64) -> Result<(), Unsuitable> {
    let [shortest, longest] = STALL_NS;
    if !(shortest..=longest).contains(&stall_ns) {
        let why = format!("--stall: {stall_ns} ns is not from 1 ms to 100 ms");
        return Err(Unsuitable { why, hint: "a tick of the scheduler is 1 to 10 ms" });
    }
    let least = least_senders(overrides);
    match overrides.senders.iter().flatten().find(|senders| **senders < least) {
        None => Ok(()),
        Some(senders) => Err(Unsuitable {
            why: format!("--senders {senders}: all of them are important, and none can be stalled"),
            hint: "use more senders, or fewer important ones",
        }),
    }
}

fn loads(overrides: &Overrides) -> Vec<Load> {
    let rates = overrides.load.rates.as_deref().unwrap_or(&RATES);
    let load = |rate: &u64| Load {
        arrivals: Some(Arrivals::Poisson),
        rate_per_s: Some((*rate).into()),
        important: Some(u64::from(important(overrides)).into()),
        stall_ns: overrides.load.stall_ns.map(Count::from),
        ..Load::NONE
    };
    rates.iter().map(load).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let many = 1..=u64::from(MAX_SENDERS);
    let in_range = load.important.is_some_and(|important| many.contains(&important.get()));
    if !in_range || load.arrivals != Some(Arrivals::Poisson) {
        return Err("its important senders or its arrivals are out of range".into());
    }
    let [shortest, longest] = STALL_NS;
    if load.stall_ns.is_some_and(|stall_ns| !(shortest..=longest).contains(&stall_ns.get())) {
        return Err("its stalls are out of range".into());
    }
    (open_loop::SCENARIO.has_load)(&Load { important: None, stall_ns: None, ..load.clone() })
}

/// The senders: one that is stalled, if any is, the chatty ones, and those of important messages.
#[derive(Clone, Copy)]
struct Senders {
    all: usize,
    /// Number of the first of important messages.
    chatty: usize,
    chatty_gap_ns: f64,
    stall_ns: Option<u64>,
}

impl Senders {
    fn of(senders: u32, load: &Load) -> Self {
        let all = senders as usize;
        let important = load.important.map_or(1, |important| important.get() as usize);
        let chatty = all.saturating_sub(important);
        let rate = load.rate_per_s.map_or(1.0, |rate| rate.as_f64());
        let stall_ns = load.stall_ns.map(Count::get).filter(|_| chatty > 0);
        let paced = chatty - usize::from(stall_ns.is_some());
        Senders { all, chatty, chatty_gap_ns: paced as f64 * 1e9 / rate, stall_ns }
    }

    /// The length of this sender's stalls.
    fn stall_ns(self, sender: usize) -> Option<u64> {
        self.stall_ns.filter(|_| sender == 0)
    }

    fn pattern(self, sender: usize) -> Pattern {
        let gap_ns = if sender < self.chatty { self.chatty_gap_ns } else { GAP_NS };
        Pattern::Poisson { gap_ns }
    }

    /// Half again as many messages as are expected in a block, a lead of a tenth included, and
    /// those before each stall.
    fn most(self, shift: Shift) -> usize {
        let Senders { all, chatty, chatty_gap_ns, stall_ns } = self;
        let gaps = [(chatty, chatty_gap_ns), (all - chatty, GAP_NS)];
        let paced = gaps.into_iter().filter(|(_, gap_ns)| *gap_ns > 0.0);
        let each = paced.map(|(senders, gap_ns)| senders as f64 * shift.length_ns / gap_ns);
        let expected = ((each.sum::<f64>() * 1.65) as usize + 100 * all).min(all * MAX_MESSAGES);
        let stalls = stall_ns.map_or(0, |ns| stalled::most_stalls(shift.length_ns, ns));
        expected + stalls * MOST_SENT
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    /// Only a sender of important messages.
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let senders = Senders::of(1, &usage.load);
        let capacity = usage.flow.capacity;
        let make = move || {
            let (source, sink) = erased::open(&channel, capacity)?;
            Ok(crew(vec![source], sink, senders))
        };
        (usage.flow.senders == 1).then(|| program(&usage, senders, Arc::new(make)))
    }

    fn many_senders<C: Channel<Source: Clone>>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let senders = Senders::of(usage.flow.senders, &usage.load);
        let capacity = usage.flow.capacity;
        let make = move || {
            if senders.stall_ns.is_some() {
                stalled::check()?;
            }
            let (sources, sink) = erased::open_for(&channel, senders.all, capacity)?;
            Ok(crew(sources, sink, senders))
        };
        Some(program(&usage, senders, Arc::new(make)))
    }
}

fn program(usage: &Usage, senders: Senders, make: crate::error::Make<Crew>) -> Program {
    Program::Crew(CrewProgram {
        make,
        threads: senders.all + 1,
        seating: Seating::LastAlone,
        read: Arc::new(move |worked| read(worked, senders)),
        simulate: Arc::new(move |queue| Ok(simulate(queue, senders))),
        class: usage.class,
        grows: usage.grows,
    })
}

fn crew<So: super::Source, Si: Sink>(sources: Vec<So>, sink: Si, senders: Senders) -> Crew {
    let generator = |(sender, source)| -> Box<dyn Part> {
        if let Some(stall_ns) = senders.stall_ns(sender) {
            return Box::new(Stalled::new(source, first(sender), stall_ns));
        }
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
    let receiver = Receiver::new(sink, senders.all, move |shift| senders.most(shift));
    let generators = sources.into_iter().enumerate().map(generator);
    generators.chain([Box::new(receiver) as Box<dyn Part>]).collect()
}

/// A generator with arrivals of its own.
struct Seeded<S> {
    generator: Generator<S>,
    sender: u64,
}

impl<S: super::Source> Part for Seeded<S> {
    fn enter(&mut self) {
        self.generator.enter();
    }

    fn prepare(&mut self, shift: Shift, clock: &Clock) {
        self.generator.prepare(of_sender(shift, self.sender), clock);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        self.generator.work(clock)
    }
}

fn of_sender(shift: Shift, sender: u64) -> Shift {
    Shift { seed: shift.seed ^ (sender << 32), ..shift }
}

/// Deliveries of important messages, and of chatty ones by sender; `None` if a message was lost,
/// came twice, or overtook one of its sender.
fn read(worked: Worked, senders: Senders) -> Option<Reading> {
    let Worked { logs, cpu_ns, cpu, .. } = worked;
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
    let mut chatty: Vec<Chat> = Vec::new();
    let mut stalls: Option<&Log> = None;
    let mut calls: Vec<Vec<[u64; 3]>> = Vec::new();
    let (mut messages, mut sending) = (0, 0);
    for (sender, (log, received)) in generators.iter().zip(&received).enumerate() {
        if senders.stall_ns(sender).is_some() {
            if log.numbers != [received.len() as u64] {
                return None;
            }
            messages += received.len() as u64;
            stalls = Some(log);
            continue;
        }
        let [due, sent, after, ready] = log.times.as_slice() else { return None };
        let lead = *log.numbers.first()? as usize;
        if due.len() != received.len() || lead >= due.len() {
            return None;
        }
        messages += due.len() as u64;
        sending += sending_ps(sent, after);
        if senders.stall_ns.is_some() {
            let each = sent.iter().zip(after).zip(received);
            calls.push(each.map(|((sent, after), received)| [*sent, *after, *received]).collect());
        }
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
    let stalls = match stalls.map(|log| log.times.as_slice()) {
        None => None,
        Some([began, ended]) => Some(held_up(began, ended, &calls)),
        Some(_) => return None,
    };
    let deliveries = Deliveries {
        chatty: Some(chatty),
        stalls,
        busy_ns: busy_ns(sending, &cpu_ns, generators.len()),
        // The time of a stalled sender's calls is not known.
        busy_messages: Some(if senders.stall_ns.is_some() { 0 } else { messages }),
        cpu,
        ..deliveries(&important)
    };
    (important.len() > 1).then_some((Samples::OpenLoop(deliveries), messages))
}

/// Judges stalls by the calls of the other senders that were under way in their first half: by
/// sender, when each began and had returned, and when the receiver had its message.
fn held_up(began: &[u64], ended: &[u64], calls: &[Vec<[u64; 3]>]) -> HeldUp {
    let mut held = HeldUp::default();
    for (from, to) in began.iter().zip(ended) {
        let half = from + to.saturating_sub(*from) / 2;
        let within = calls.iter().flat_map(|calls| {
            let first = calls.partition_point(|[sent, after, _]| sent < from && after <= from);
            calls[first..].iter().take_while(move |[sent, ..]| *sent < half)
        });
        let within: Vec<&[u64; 3]> = within.collect();
        let latest = |of: usize| within.iter().map(|call| call[of]).max();
        let longest = |of: usize| within.iter().map(|call| call[of].saturating_sub(call[0])).max();
        held.stalls += u64::from(!within.is_empty());
        held.senders += u64::from(latest(1).is_some_and(|returned| returned >= *to));
        held.receiver += u64::from(latest(2).is_some_and(|received| received >= *to));
        held.send_ps = held.send_ps.max(longest(1).unwrap_or(0));
        held.delivery_ps = held.delivery_ps.max(longest(2).unwrap_or(0));
    }
    held
}

/// A queue with one server, which serves all senders in the order of their messages.
fn simulate(queue: &mut VirtualQueue<'_>, senders: Senders) -> Vec<Log> {
    let schedule = |sender| {
        let shift = of_sender(queue.shift, sender as u64);
        senders.pattern(sender).schedule(shift.length_ns, queue.most, shift.seed)
    };
    let schedules: Vec<Option<Schedule>> = (0..senders.all)
        .map(|sender| senders.stall_ns(sender).is_none().then(|| schedule(sender)))
        .collect();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (sender, schedule) in schedules.iter().enumerate() {
        let due = schedule.iter().flat_map(|schedule| &schedule.due_ps);
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
    let generator = |schedule: Option<Schedule>| {
        let Some(schedule) = schedule else { return stalls(queue, senders) };
        let due: Vec<u64> = schedule.due_ps.iter().map(|due| queue.begins_ps + due).collect();
        let times = vec![due; 4];
        Log { times, numbers: vec![schedule.lead as u64], wrong: 0 }
    };
    schedules.into_iter().map(generator).chain([received]).collect()
}

/// Stalls of a sender that sends nothing, with as much time between two as each takes.
fn stalls(queue: &VirtualQueue<'_>, senders: Senders) -> Log {
    let stall_ps = senders.stall_ns.unwrap_or(0).max(1) * 1000;
    let count = (queue.shift.length_ns * 1000.0) as u64 / (2 * stall_ps);
    let began: Vec<u64> = (0..count).map(|nth| queue.begins_ps + 2 * nth * stall_ps).collect();
    let ended = began.iter().map(|from| from + stall_ps).collect();
    Log { times: vec![began, ended], numbers: vec![0], wrong: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_judged_by_the_calls_under_way_in_their_first_half() {
        let (began, ended) = ([100, 300, 500, 700], [200, 400, 600, 800]);
        let one = vec![
            // Held up neither; sent in the second half, so that it tells nothing.
            [110, 111, 112],
            [160, 210, 220],
            // The receiver only, and for longer than the send call of another.
            [349, 390, 401],
            // The sender as well.
            [510, 600, 610],
        ];
        // Over before the third stall; under way when the fourth began, which held up both.
        let other = vec![[490, 500, 501], [690, 805, 806]];
        let held = held_up(&began, &ended, &[one, other]);
        let expected =
            HeldUp { stalls: 4, receiver: 3, senders: 2, delivery_ps: 116, send_ps: 115 };
        assert_eq!(held, expected);
    }

    #[test]
    fn senders_are_told_apart_and_lose_nothing() {
        let log = |times: &[&[u64]], numbers: &[u64]| Log {
            times: times.iter().map(|times| times.to_vec()).collect(),
            numbers: numbers.to_vec(),
            wrong: 0,
        };
        let load = Load { rate_per_s: Some(1000.into()), important: Some(1.into()), ..Load::NONE };
        let senders = Senders::of(2, &load);
        let worked = |numbers: &[u64]| {
            let chatty: [&[u64]; 4] = [&[10, 20, 30], &[10, 20, 30], &[11, 21, 31], &[10, 20, 30]];
            let important: [&[u64]; 4] =
                [&[15, 25, 35], &[16, 26, 36], &[17, 27, 37], &[15, 25, 35]];
            let received: [&[u64]; 1] = [&[12, 18, 22, 29, 38, 40]];
            Worked {
                logs: vec![log(&chatty, &[1]), log(&important, &[1]), log(&received, numbers)],
                cpu_ns: vec![1, 1, 5],
                cpu: 2,
                clock_bound_ns: None,
            }
        };
        let (chatty, important) = (first(0), first(1));
        let order = [chatty, important, chatty + 1, important + 1, important + 2, chatty + 2];
        let (samples, messages) = read(worked(&order), senders).unwrap();
        let Samples::OpenLoop(deliveries) = samples else { panic!("{samples:?}") };
        assert_eq!((messages, deliveries.due_ps), (6, vec![25, 35]));
        assert_eq!(deliveries.received_ps, [29, 38]);
        assert_eq!(deliveries.chatty, Some(vec![vec![2, 10]]));
        let overtaken = [chatty, important, chatty + 1, important + 2, important + 1, chatty + 2];
        assert!(read(worked(&overtaken), senders).is_none());
        assert!(read(worked(&order[..5]), senders).is_none());
    }

    #[test]
    fn senders_go_from_the_important_ones_to_twice_the_cpus() {
        let of = |important, cpus| {
            let load =
                super::super::LoadChoice { important: Some(important), ..Default::default() };
            senders(&Overrides { load, ..Overrides::default() }, cpus)
        };
        assert_eq!(of(1, 2), [1, 2, 4]);
        assert_eq!(of(3, 4), [3, 4, 8]);
        assert_eq!(of(1, 3), [1, 2, 4, 6]);
        assert_eq!(of(9, 2), [9]);
    }

    #[test]
    fn one_sender_more_is_stalled() {
        let load = super::super::LoadChoice { stall_ns: Some(5_000_000), ..Default::default() };
        let overrides = Overrides { load, ..Overrides::default() };
        assert_eq!(senders(&overrides, 2), [2, 4]);
        assert_eq!(check(&overrides), Ok(()));
        let alone = Overrides { senders: Some(vec![2, 1]), ..overrides.clone() };
        assert!(check(&alone).unwrap_err().why.contains("none can be stalled"));
        let short = super::super::LoadChoice { stall_ns: Some(999_999), ..Default::default() };
        assert!(check(&Overrides { load: short, ..Overrides::default() }).is_err());
    }

    #[test]
    fn a_lone_sender_has_room_for_its_messages() {
        let load = Load { rate_per_s: Some(1000.into()), important: Some(1.into()), ..Load::NONE };
        let shift = Shift { length_ns: 1e9, seed: 1 };
        assert!(Senders::of(1, &load).most(shift) > 1500);
        let stalled = Load { stall_ns: Some(1_000_000.into()), ..load };
        assert!(Senders::of(2, &stalled).most(shift) > 600 * MOST_SENT);
    }
}

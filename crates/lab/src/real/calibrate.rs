//! What is found out about a group of locks before any of its cells is measured: how long a unit of
//! work takes while all CPUs of a cell are busy, what sleeps really give, what a lock costs that
//! nobody else wants, and how long it takes from letting go of it until a thread that waits has it.
//!
//! It is measured with threads and locks of its own: no prediction may know anything of the cell
//! that it is about.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::Clock;
use threadtoll_model::{HandOff, Shape};
use threadtoll_record::{Cell, LockSubject, Placement, Share, Spread, Work, upper_median};

use crate::LabError;
use crate::contention::calibration_schedule::{
    MAX_ALONE, SLICE_NS, SLICES, sleeps, slowdown_rounds,
};
use crate::contention::contender::{Done, HandoffProbe, HandoffSample};
use crate::contention::lengths::{PICKS, TimeDistributions, quantiles};
use crate::contention::predict::{Calibration, HandoffModel, calibration};
use crate::lock::{GrantPolicy, LockSpec};

use super::crew::{LockThreads, Task, places};

/// How often a slice is tried for which not all threads were there in time, before the best of them
/// is taken.
const TRIES: u32 = 16;
/// A thread is up to speed after this.
const WARM_UP_NS: u64 = 100_000;
/// The units between two acquisitions of threads that meet now and then, at least: some hundred
/// nanoseconds.
const SHORT_UNITS: f64 = 200.0;
/// So many times as long as they have the lock they are without it, to wait rarely.
const RARELY: f64 = 20.0;
/// Units of a stretch that is as good as endless against a look at the clock.
const LONG_UNITS: f64 = 1000.0;
/// Times that a thread waits for the same time.
const REPEATS: usize = 9;
/// The shortest time that it does, and the longest, in nanoseconds.
const MIN_WAIT_NS: f64 = 250.0;
const MAX_WAIT_NS: f64 = 20_000_000.0;
/// A sleep that is so many times as late as the middle one was disturbed by the machine, like the
/// blocks that are marked.
const DISTURBED: f64 = 20.0;
/// What was found out for a cell.
#[derive(Clone, Debug)]
pub(super) struct Calibrated {
    /// In units.
    pub(super) lengths: TimeDistributions,
    pub(super) calibration: Option<Calibration>,
}

/// Finds things out once for all cells of a group that need them.
pub(super) struct Calibrator {
    clock: Clock,
    patience: Duration,
    units: Vec<(Vec<Vec<u32>>, f64)>,
    slower: Vec<(Vec<Vec<u32>>, f64)>,
    pairs: Vec<(Contest, Pair)>,
    met: Vec<(Contest, f64)>,
    handed: Vec<(String, Vec<(f64, f64)>)>,
    slept: Vec<(u32, u64, u64, Slept)>,
}

/// A lock, the share of readers, and threads.
type Contest = (String, Option<Share>, u32);

/// What an acquisition and a release take beside the loop around them, and what that loop takes, in
/// nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pair {
    lock_ns: f64,
    loop_ns: f64,
}

/// By how much sleeps were too long, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Slept {
    hold: Vec<f64>,
    think: Vec<f64>,
}

impl Calibrator {
    pub(super) fn new(clock: &Clock, patience: Duration) -> Self {
        Calibrator {
            clock: *clock,
            patience,
            units: Vec::new(),
            slower: Vec::new(),
            pairs: Vec::new(),
            met: Vec::new(),
            handed: Vec::new(),
            slept: Vec::new(),
        }
    }

    /// Finds out what the cell needs. Of the thread alone no model speaks.
    pub(super) fn calibrate(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        named: &LockSpec,
    ) -> Result<Calibrated, LabError> {
        let read_share = subject.read_share.map_or(0.0, |share| share.value());
        // Alone, whatever else is done: the same work for all cells of a group.
        let unit_ns = match subject.work {
            Work::Spin => self.unit_ns(&places(cell.placement, &cell.cpus[..1], 1))?,
            Work::Sleep => 1.0,
        };
        let lengths = TimeDistributions {
            spread: [subject.spread; 2],
            hold: subject.hold_ns as f64 / unit_ns,
            think: subject.think_ns as f64 / unit_ns,
            stripes: named.stripes,
            read_share,
        };
        if subject.is_alone() {
            return Ok(Calibrated { lengths, calibration: None });
        }
        let cpus = if cell.placement == Placement::SameCpu { 1 } else { cell.cpus.len() as u32 };
        let alone = self.pair(subject, named, cell.placement, &cell.cpus[..1], 1)?;
        let (hold, think, alone_ns) = match subject.work {
            Work::Spin => {
                let busy = places(cell.placement, &cell.cpus, subject.threads.min(cpus));
                let slower = self.slower(&busy)?;
                let shape = |ns: f64| shape(subject.spread, ns * slower);
                let (hold_ns, think_ns) = (subject.hold_ns as f64, subject.think_ns as f64);
                // At nanoseconds a cycle the loop is work too, with a lock and without it.
                (
                    shape(hold_ns),
                    shape(think_ns + alone.loop_ns),
                    hold_ns + think_ns + alone.loop_ns,
                )
            }
            Work::Sleep => {
                let slept = self.slept(cell, subject, 1)?;
                let mean = |over: &[f64]| over.iter().sum::<f64>() / over.len().max(1) as f64;
                let alone_ns = subject.cycle_ns() as f64 + mean(&slept.hold) + mean(&slept.think);
                // Where a lock is never free, no more threads than this ever sleep at a time.
                let unhindered = subject.cycle_ns().div_ceil(subject.hold_ns.max(1)).max(1);
                let shared = read_share > 0.0 || named.policy() == GrantPolicy::NeverWaits;
                let most =
                    if shared { u64::MAX } else { unhindered.saturating_mul(named.stripes.into()) };
                let asleep = u64::from(subject.threads).min(most) as u32;
                let together = self.slept(cell, subject, asleep)?;
                let shape = |ns: u64, over: &[f64]| slept_shape(subject.spread, ns as f64, over);
                (
                    shape(subject.hold_ns, &together.hold),
                    shape(subject.think_ns, &together.think),
                    alone_ns,
                )
            }
        };
        let (Some(mut hold), Some(mut think)) = (hold, think) else {
            return Ok(Calibrated { lengths, calibration: None });
        };
        let mut pair_ns = alone.lock_ns;
        let counts = named.policy() == GrantPolicy::NeverWaits;
        if counts && subject.threads > 1 && cpus > 1 {
            // Nothing is handed over, but the line has to travel: what all of them get done
            // together is its service time.
            let busy = subject.threads.min(cpus);
            let service_ns = self.pair(subject, named, cell.placement, &cell.cpus, busy)?.lock_ns;
            hold = Shape::fixed(service_ns.max(0.0)).unwrap_or(hold);
            pair_ns = 0.0;
        }
        if subject.work == Work::Spin && !counts && subject.threads > 1 && cpus > 1 {
            // Whoever takes a lock that another one had last waits for its line, and is as good as
            // thinking until it is there.
            let busy = subject.threads.min(cpus);
            let apart = SHORT_UNITS.max(RARELY * pair_ns / unit_ns);
            let met_ns = self.pair_met(subject, named, cell.placement, &cell.cpus, busy, apart)?;
            let travels_ns = (met_ns - pair_ns).max(0.0);
            think = think.with_mean(think.mean_ns() + travels_ns).unwrap_or(think);
        }
        let handed = if counts || subject.threads == 1 {
            Vec::new()
        } else {
            self.handed(cell, subject, named)?
        };
        let calibration = HandoffModel::of(named.policy(), &handed).and_then(|passing| {
            calibration(subject, cpus, named.stripes, (hold, think), alone_ns, pair_ns, &passing)
        });
        Ok(Calibrated { lengths, calibration: calibration.ok() })
    }

    fn crew(
        &self,
        name: &str,
        named: &LockSpec,
        work: Work,
        places: &[Vec<u32>],
    ) -> Result<LockThreads, LabError> {
        LockThreads::start(&self.clock, name, named, work, places, self.patience)
    }

    /// How long a unit takes of a thread that is alone, in nanoseconds.
    fn unit_ns(&mut self, place: &[Vec<u32>]) -> Result<f64, LabError> {
        if let Some((_, known)) = self.units.iter().find(|(at, _)| at == place) {
            return Ok(*known);
        }
        let mut crew = self.units_of_work(place)?;
        let rates = (0..SLICES).map(|_| self.slice(&mut crew, 1, |done| done.units));
        let unit_ns = 1.0 / median_or_nan(rates.collect::<Result<_, _>>()?);
        self.units.push((place.to_vec(), unit_ns));
        Ok(unit_ns)
    }

    /// How many times as long a unit takes of threads that are busy at all these places at once as
    /// of one that is alone at each of them: the middle one of rounds of slices, because the speed
    /// of a machine wanders from second to second by more than that.
    fn slower(&mut self, busy: &[Vec<u32>]) -> Result<f64, LabError> {
        if busy.len() == 1 {
            return Ok(1.0);
        }
        if let Some((_, known)) = self.slower.iter().find(|(at, _)| at == busy) {
            return Ok(*known);
        }
        let mut crew = self.units_of_work(busy)?;
        let alone_on = busy.len().min(MAX_ALONE);
        let mut ratios = Vec::with_capacity(slowdown_rounds(alone_on));
        for _ in 0..slowdown_rounds(alone_on) {
            let mut alone = 0.0;
            for turn in 0..alone_on {
                let hand = turn * busy.len() / alone_on;
                alone += self.slice_on(&mut crew, hand..hand + 1, 1, |done| done.units)?;
            }
            let all = self.slice(&mut crew, 1, |done| done.units)?;
            ratios.push(alone / alone_on as f64 * busy.len() as f64 / all);
        }
        let slower = median_or_nan(ratios);
        self.slower.push((busy.to_vec(), slower));
        Ok(slower)
    }

    fn units_of_work(&self, places: &[Vec<u32>]) -> Result<LockThreads, LabError> {
        let mut crew = self.crew("units of work", &LockSpec::NO_LOCK, Work::Spin, places)?;
        let lengths = TimeDistributions {
            spread: [Spread::Fixed; 2],
            hold: 0.0,
            think: LONG_UNITS,
            stripes: 1,
            read_share: 0.0,
        };
        crew.prepare(lengths, 1)?;
        Ok(crew)
    }

    /// How long an acquisition and a release take with nothing in between, in nanoseconds: of one
    /// thread, or of several at once, all together.
    fn pair(
        &mut self,
        subject: &LockSubject,
        named: &LockSpec,
        placement: Placement,
        cpus: &[u32],
        threads: u32,
    ) -> Result<Pair, LabError> {
        let key = (subject.lock.clone(), subject.read_share, threads);
        if let Some((_, known)) = self.pairs.iter().find(|(of, _)| *of == key) {
            return Ok(*known);
        }
        let places = places(placement, cpus, threads);
        let nothing = stretches_between(0.0, subject, named);
        let mut crew = self.crew(&subject.lock, named, Work::Spin, &places)?;
        let with = self.rate(&mut crew, nothing, |done| done.acquisitions)?;
        drop(crew);
        let mut crew = self.crew(&subject.lock, &named.without_lock(), Work::Spin, &places)?;
        let without = self.rate(&mut crew, nothing, |done| done.acquisitions)?;
        // What the bare loop takes is not the lock's.
        let pair = Pair { lock_ns: (1.0 / with - 1.0 / without).max(0.0), loop_ns: 1.0 / without };
        self.pairs.push((key, pair));
        Ok(pair)
    }

    /// The same of threads that work for so many units in between, so that they hardly wait for
    /// each other, but find the lock's line where another one had it last.
    fn pair_met(
        &mut self,
        subject: &LockSubject,
        named: &LockSpec,
        placement: Placement,
        cpus: &[u32],
        threads: u32,
        apart: f64,
    ) -> Result<f64, LabError> {
        let key = (subject.lock.clone(), subject.read_share, threads);
        if let Some((_, known)) = self.met.iter().find(|(of, _)| *of == key) {
            return Ok(*known);
        }
        let places = places(placement, cpus, threads);
        let lengths = stretches_between(apart, subject, named);
        let mut with = self.crew(&subject.lock, named, Work::Spin, &places)?;
        let mut without = self.crew(&subject.lock, &named.without_lock(), Work::Spin, &places)?;
        with.prepare(lengths, 1)?;
        without.prepare(lengths, 1)?;
        let mut more = Vec::with_capacity(SLICES);
        for _ in 0..SLICES {
            let with = self.slice(&mut with, 16, |done| done.acquisitions)?;
            let without = self.slice(&mut without, 16, |done| done.acquisitions)?;
            more.push(f64::from(threads) * (1.0 / with - 1.0 / without));
        }
        let pair_ns = median_or_nan(more).max(0.0);
        self.met.push((key, pair_ns));
        Ok(pair_ns)
    }

    /// What all threads together do in a nanosecond: the middle one of some slices.
    fn rate(
        &self,
        crew: &mut LockThreads,
        lengths: TimeDistributions,
        of: impl Fn(&Done) -> f64,
    ) -> Result<f64, LabError> {
        crew.prepare(lengths, 1)?;
        let rates = (0..SLICES).map(|_| self.slice(crew, 64, &of));
        Ok(median_or_nan(rates.collect::<Result<_, _>>()?))
    }

    /// What all threads together do in a nanosecond of one slice.
    fn slice(
        &self,
        crew: &mut LockThreads,
        batch: u32,
        of: impl Fn(&Done) -> f64,
    ) -> Result<f64, LabError> {
        self.slice_on(crew, 0..crew.threads(), batch, of)
    }

    /// The same of some of the threads.
    fn slice_on(
        &self,
        crew: &mut LockThreads,
        hands: Range<usize>,
        batch: u32,
        of: impl Fn(&Done) -> f64,
    ) -> Result<f64, LabError> {
        let tasks = vec![Task::Counted(batch); hands.len()];
        let deadline = Instant::now() + self.patience;
        let mut best: Option<(usize, f64)> = None;
        for tried in 1.. {
            let window = crew.window_for(hands.len(), WARM_UP_NS, SLICE_NS);
            let parts = crew.run_on(hands.clone(), tasks.clone(), window, Duration::ZERO)?;
            // Of threads that the machine kept from their CPUs a slice says nothing.
            let late = parts.iter().filter(|part| part.late).count();
            let done: f64 = parts.iter().map(|part| of(&part.done)).sum();
            if done > 0.0 && best.is_none_or(|(least, _)| late < least) {
                best = Some((late, done / self.clock.ns(window.until - window.from)));
            }
            let over = Instant::now() >= deadline;
            match best {
                Some((0, rate)) => return Ok(rate),
                Some((_, rate)) if over || tried >= TRIES || !crew.may_retry() => return Ok(rate),
                None if over => break,
                _ => {}
            }
        }
        Err(crew.stuck())
    }

    /// How long hand-offs take by how long a thread has waited, in nanoseconds; nothing where two
    /// threads cannot meet.
    fn handed(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        named: &LockSpec,
    ) -> Result<Vec<(f64, f64)>, LabError> {
        if cell.cpus.len() < 2 && named.policy().spins() {
            // One would spin for a whole slice of the scheduler while the other one cannot let go.
            return Ok(Vec::new());
        }
        let meetings = meetings(cell, subject);
        let mut mixed: Vec<(f64, f64)> = Vec::new();
        for (two, weight) in &meetings {
            let handed = self.handed_between(two, subject, named)?;
            mixed.resize(handed.len(), (0.0, 0.0));
            for (sum, (waited, took)) in mixed.iter_mut().zip(handed) {
                *sum = (sum.0 + weight * waited, sum.1 + weight * took);
            }
        }
        if let Some(idle_ns) = idle_ns(cell, subject) {
            // However long a thread has waited, its CPU has not idled for longer.
            let last = HandOff::curve(&mixed).map_or(0.0, |curve| curve.after(idle_ns));
            mixed.retain(|(waited, _)| *waited < idle_ns);
            mixed.push((idle_ns, last));
        }
        Ok(mixed)
    }

    /// The same between two threads on these CPUs: medians, by how long the thread was to wait.
    fn handed_between(
        &mut self,
        two: &[Vec<u32>],
        subject: &LockSubject,
        named: &LockSpec,
    ) -> Result<Vec<(f64, f64)>, LabError> {
        let plain = LockSpec { stripes: 1, ..named.clone() };
        let lock = named.lock.as_ref().map_or("", |lock| &lock.name);
        let name = format!("{lock} {} {} {two:?}", subject.work, subject.hold_ns);
        if let Some((_, known)) = self.handed.iter().find(|(of, _)| *of == name) {
            return Ok(known.clone());
        }
        let longest_ns = (5.0 * subject.hold_ns as f64).clamp(4e4, MAX_WAIT_NS);
        let sleeps = subject.work == Work::Sleep;
        let factor = if sleeps { 4.0 } else { 2.0 };
        let mut waits = vec![MIN_WAIT_NS];
        while waits[waits.len() - 1] * factor <= longest_ns {
            waits.push(waits[waits.len() - 1] * factor);
        }
        let rounds: Vec<f64> = (0..REPEATS).flat_map(|_| waits.iter().copied()).collect();
        let ticks: Arc<[u64]> = rounds.iter().map(|ns| self.clock.ticks(*ns)).collect();
        let mut crew = self.crew(&subject.lock, &plain, subject.work, two)?;
        let meeting = Arc::new(HandoffProbe::default());
        let tasks = vec![
            Task::HoldForWaiter(Arc::clone(&meeting), ticks, sleeps),
            Task::MeasureHandoffs(Arc::clone(&meeting), rounds.len()),
        ];
        let window = crew.window(0, rounds.iter().sum::<f64>() as u64);
        let mut parts = crew.run(tasks, window, Duration::from_secs(5))?;
        let passed = parts.pop().map(|part| part.passed).unwrap_or_default();
        let median = |wait: f64, of: fn(&HandoffSample) -> i64| {
            let mut all: Vec<i64> = rounds
                .iter()
                .zip(&passed)
                .filter(|(round, _)| **round == wait)
                .map(|(_, one)| of(one))
                .collect();
            all.sort_unstable();
            all.get(all.len() / 2).map(|middle| {
                let ns = self.clock.ns(middle.unsigned_abs());
                if *middle < 0 { -ns } else { ns }
            })
        };
        let found: Vec<(f64, f64)> = waits
            .iter()
            .filter_map(|wait| {
                Some((median(*wait, |one| one.waited)?.max(0.0), median(*wait, |one| one.took)?))
            })
            .collect();
        self.handed.push((name, found.clone()));
        Ok(found)
    }

    /// By how much the sleeps of so many threads are too long that share no lock.
    fn slept(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        threads: u32,
    ) -> Result<Slept, LabError> {
        let (hold_ns, think_ns) = (subject.hold_ns, subject.think_ns);
        let known = self.slept.iter().find(|(count, hold, think, _)| {
            (*count, *hold, *think) == (threads, hold_ns, think_ns)
        });
        if let Some((.., known)) = known {
            return Ok(known.clone());
        }
        let places = places(cell.placement, &cell.cpus, threads);
        let mut crew = self.crew("sleeps", &LockSpec::NO_LOCK, Work::Sleep, &places)?;
        let lengths = TimeDistributions {
            // In the cell the lock keeps threads from waking all at once; here nothing else would.
            spread: [subject.spread, Spread::Exponential],
            hold: hold_ns as f64,
            think: think_ns as f64,
            stripes: 1,
            read_share: 0.0,
        };
        crew.prepare(lengths, 2)?;
        let (cycles, length_ns) = sleeps(subject, threads);
        let window = crew.window(0, length_ns);
        let tasks = vec![Task::Stamped(64 * cycles as usize); crew.threads()];
        let parts = crew.run(
            tasks,
            window,
            Duration::from_nanos(subject.cycle_ns().saturating_mul(20).min(1 << 60)),
        )?;
        let over = |begin: u64, end: u64, meant: u64| {
            (meant > 0).then(|| self.clock.ns(end.saturating_sub(begin)) - meant as f64)
        };
        let mut slept = Slept::default();
        for one in parts.into_iter().flat_map(|part| part.taken) {
            slept.hold.extend(over(one.acquired_at, one.released_at, one.hold_units));
            slept.think.extend(over(one.idle_at, one.requested_at, one.think_units));
        }
        let slept = Slept { hold: undisturbed(slept.hold), think: undisturbed(slept.think) };
        self.slept.push((threads, hold_ns, think_ns, slept.clone()));
        Ok(slept)
    }
}

/// Acquisitions with nothing done under the lock, and so many units in between.
fn stretches_between(think: f64, subject: &LockSubject, named: &LockSpec) -> TimeDistributions {
    TimeDistributions {
        spread: [Spread::Fixed, Spread::Exponential],
        hold: 0.0,
        think,
        stripes: named.stripes,
        read_share: subject.read_share.map_or(0.0, |share| share.value()),
    }
}

/// Where two threads that hand the lock over run, and how often they do: on any two of the CPUs, of
/// which a few stand for all; and on the same one, where threads that sleep share them.
fn meetings(cell: &Cell, subject: &LockSubject) -> Vec<(Vec<Vec<u32>>, f64)> {
    let cpus = &cell.cpus;
    if cell.placement != Placement::Pinned || cpus.len() < 2 {
        return vec![(places(cell.placement, cpus, 2), 1.0)];
    }
    let last = cpus.len() - 1;
    let mut others: Vec<usize> = vec![1, cpus.len() / 2, last];
    others.sort_unstable();
    others.dedup();
    let together = match subject.work {
        Work::Sleep => together(subject.threads, cpus.len()),
        Work::Spin => 0.0,
    };
    let each = (1.0 - together) / others.len() as f64;
    let apart = others.into_iter().map(|other| (vec![vec![cpus[0]], vec![cpus[other]]], each));
    let same = (together > 0.0).then(|| (vec![vec![cpus[0]], vec![cpus[0]]], together));
    apart.chain(same).collect()
}

/// How many of all pairs of threads share a CPU, where they are dealt out in turns.
fn together(threads: u32, cpus: usize) -> f64 {
    let (threads, cpus) = (f64::from(threads), cpus as f64);
    let (whole, more) = ((threads / cpus).floor(), threads % cpus);
    let pairs = |count: f64| count * (count - 1.0).max(0.0);
    (more * pairs(whole + 1.0) + (cpus - more) * pairs(whole)) / pairs(threads).max(1.0)
}

/// For how long the CPU of a thread that gets the lock from another CPU has idled on average, where
/// more threads sleep than there are CPUs; where each has a CPU of its own, it is as long as the
/// thread has waited.
///
/// While another CPU's thread holds the lock, this CPU is only woken by threads that have finished
/// thinking, at random, one in `cpus` tasks. It was one of its own threads that held the lock
/// before with a chance of one in `cpus`, and then it was awake at the end of that; or else the
/// same goes for the task before that, and so on.
fn idle_ns(cell: &Cell, subject: &LockSubject) -> Option<f64> {
    let cpus = cell.cpus.len() as f64;
    let threads = f64::from(subject.threads);
    if subject.work == Work::Spin || threads <= cpus {
        return None;
    }
    let task_ns = (subject.cycle_ns() as f64 / threads).max(subject.hold_ns as f64);
    let undisturbed = (-1.0 / cpus).exp();
    Some(cpus * task_ns * (1.0 - undisturbed) / (1.0 - undisturbed * (1.0 - 1.0 / cpus)))
}

/// The median, the larger of two in the middle; NaN without any.
fn median_or_nan(mut figures: Vec<f64>) -> f64 {
    upper_median(&mut figures, f64::total_cmp).unwrap_or(f64::NAN)
}

/// The sleeps that nothing disturbed.
fn undisturbed(mut over: Vec<f64>) -> Vec<f64> {
    let median = median_or_nan(over.clone());
    over.retain(|late| *late <= DISTURBED * median.max(1e3));
    over
}

fn shape(spread: Spread, mean_ns: f64) -> Option<Shape> {
    match spread {
        Spread::Fixed => Shape::fixed(mean_ns).ok(),
        Spread::Exponential => Shape::exponential(mean_ns).ok(),
    }
}

/// Intended lengths, each longer by as much as some sleep was.
fn slept_shape(spread: Spread, mean_ns: f64, over: &[f64]) -> Option<Shape> {
    if mean_ns == 0.0 || over.is_empty() {
        return shape(spread, mean_ns);
    }
    let lengths = quantiles(spread, mean_ns, PICKS);
    // Neighbouring lengths get different overshoots, and every overshoot is used as often as the
    // others.
    let longer: Vec<f64> = lengths
        .iter()
        .enumerate()
        .map(|(at, length)| (length + over[(at * 7919) % over.len()]).max(0.0))
        .collect();
    Shape::sampled(&longer).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use threadtoll_machine::place::{allowed_cpus, pin_to};

    use super::*;

    /// A program that is busy on the same CPU takes half of it, not all the slices in which a unit
    /// is measured: with no slice the cells would get lengths of nothing.
    #[test]
    fn a_unit_is_as_long_beside_a_busy_program() {
        let clock = Clock::gate().unwrap().0;
        let place = vec![vec![allowed_cpus()[0]]];
        let unit_ns = || Calibrator::new(&clock, Duration::from_secs(20)).unit_ns(&place);
        let over = AtomicBool::new(false);
        let (alone, beside) = std::thread::scope(|scope| {
            let alone = unit_ns();
            for _ in 0..3 {
                scope.spawn(|| {
                    pin_to(&place[0]).unwrap();
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let beside = unit_ns();
            over.store(true, Ordering::Relaxed);
            (alone, beside)
        });
        let (alone, beside) = (alone.unwrap(), beside.unwrap());
        assert!(beside < 100.0 * alone, "{beside} ns beside others, {alone} ns alone");
    }

    #[test]
    fn threads_that_are_dealt_out_in_turns_share_cpus_as_often_as_counted_by_hand() {
        assert_eq!((together(2, 2), together(1, 2), together(64, 64)), (0.0, 0.0, 0.0));
        // Two of three on one CPU: one pair of three.
        assert!((together(3, 2) - 1.0 / 3.0).abs() < 1e-12);
        // 13 and 12: 13 × 12 + 12 × 11 of 25 × 24.
        assert!((together(25, 2) - 288.0 / 600.0).abs() < 1e-12);
        assert_eq!(together(9, 1), 1.0);
    }

    #[test]
    fn what_is_twenty_times_as_late_as_the_middle_one_is_left_out() {
        assert_eq!(undisturbed(vec![50e3, 1e6, 40e3, 60e3, 1.1e6]), [50e3, 1e6, 40e3, 60e3, 1.1e6]);
        assert_eq!(undisturbed(vec![50e3, 1e6, 40e3, 60e3, 1.3e6]), [50e3, 1e6, 40e3, 60e3]);
        assert!(undisturbed(Vec::new()).is_empty());
    }
}

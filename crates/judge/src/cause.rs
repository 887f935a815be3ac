//! Causes of waiting, from counts of samples.
//!
//! Each sample in which a thread waited for the lock shows the holder's activity at that instant.
//! Patterns over several samples (a herd, a hog, a starved writer) are counted separately, so the
//! shares of causes need not add up to one.
//!
//! Only samples on time count. A late sampler got its CPU when the holder released the lock, so it
//! would see a free lock with waiters (a convoy) in every program that computes while holding a
//! lock.

use std::collections::BTreeMap;

use threadtoll_stats::interval::{self, Estimate};

/// Minimum number of samples with waiters for naming causes.
pub const MIN_SAMPLES: u64 = 8;

/// Minimum share of the waiting that a cause must explain to be worth removing.
const WORTH_MENDING: f64 = 0.1;

/// If most holders are unknown, a cause that can be seen without knowing the holder is reported
/// only if its share is larger than this.
const WITHOUT_HOLDERS: f64 = 0.25;

/// Maximum share of samples in which the holder either computes or waits for a CPU, but it is
/// unknown which. Above this share, the two are reported as one cause.
const MOST_UNCLEAR: f64 = 0.2;

/// Maximum number of system calls that are counted separately. The same limit applies to locks, and
/// to other wait targets.
const MAX_KINDS: usize = 64;

/// Kind of wait target, other than a lock, through which a thread waits for other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Awaited {
    /// A condition variable.
    Condvar,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// The end of a thread.
    Join,
    /// An initialisation that another thread is running.
    Once,
    /// A futex word of an unknown kind.
    Unknown,
}

/// State of a lock's holder in a sample in which a thread waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HolderState {
    /// Asleep in this system call, but not to wait for other threads.
    Asleep(u32),
    /// Waiting for other threads through a wait target of this kind, with the target's number if it
    /// has one.
    WaitsFor(Awaited, Option<u32>),
    /// On a CPU.
    Running,
    /// On a CPU or waiting for one; it is unknown which, because switch records are missing.
    OnCpu,
    /// Ready to run, without a CPU.
    Preempted,
    /// Kept from running by its cgroup's quota.
    Throttled,
    /// Waiting for the lock with this number.
    Waiting(u32),
    /// No thread holds the lock, or its holder has just been woken and does not run yet.
    HandedOver,
    /// Readers share the lock.
    Readers,
    /// The holder released the lock between the read of the word and the read of the holder's
    /// state, some microseconds later.
    LetGo,
    /// Without a CPU. The thread ran again before it was known whether it slept, and in which call.
    OffCpu,
    /// Unknown.
    NotSeen,
}

/// Counts of what holders were doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderCounts {
    /// Number of samples, without late ones, in which a thread waited.
    pub samples: u64,
    asleep: BTreeMap<u32, u64>,
    waits_for: BTreeMap<(Awaited, Option<u32>), u64>,
    waiting: BTreeMap<u32, u64>,
    running: u64,
    on_cpu: u64,
    preempted: u64,
    throttled: u64,
    handed_over: u64,
    readers: u64,
    let_go: u64,
    off_cpu: u64,
    not_seen: u64,
}

/// Ignores further kinds once there are too many.
fn count<K: Ord>(kinds: &mut BTreeMap<K, u64>, kind: K) {
    if kinds.len() < MAX_KINDS || kinds.contains_key(&kind) {
        *kinds.entry(kind).or_default() += 1;
    }
}

impl HolderCounts {
    /// Counts the holder's state in a sample in which a thread waited. Leave out late samples.
    pub fn add(&mut self, holder: HolderState) {
        self.samples += 1;
        match holder {
            HolderState::Asleep(call) => count(&mut self.asleep, call),
            HolderState::WaitsFor(kind, target) => count(&mut self.waits_for, (kind, target)),
            HolderState::Waiting(lock) => count(&mut self.waiting, lock),
            HolderState::Running => self.running += 1,
            HolderState::OnCpu => self.on_cpu += 1,
            HolderState::Preempted => self.preempted += 1,
            HolderState::Throttled => self.throttled += 1,
            HolderState::HandedOver => self.handed_over += 1,
            HolderState::Readers => self.readers += 1,
            HolderState::LetGo => self.let_go += 1,
            HolderState::OffCpu => self.off_cpu += 1,
            HolderState::NotSeen => self.not_seen += 1,
        }
    }

    /// Share of the samples with waiters in which the holder released the lock before the holder's
    /// state was read.
    pub fn let_go(&self) -> Option<Estimate> {
        interval::share(self.let_go, self.samples)
    }

    /// Share of the samples with waiters in which the holder is unknown.
    pub fn not_seen(&self) -> Option<Estimate> {
        interval::share(self.not_seen, self.samples)
    }

    /// Share of the samples with waiters in which the holder slept, in any system call.
    pub fn slept(&self) -> Option<Estimate> {
        let asleep: u64 = self.asleep.values().chain(self.waits_for.values()).sum();
        self.share_off_cpu(asleep)
    }

    /// Share of the samples with waiters in which the holder was without a CPU for one reason,
    /// which is known of `count` samples. Samples in which the reason is unknown count in
    /// proportion. The interval includes the cases that none of them, or all, had this reason.
    fn share_off_cpu(&self, count: u64) -> Option<Estimate> {
        let part = if count == 0 { 0.0 } else { count as f64 / self.known_off_cpu() as f64 };
        let in_proportion = (self.off_cpu as f64 * part).round() as u64;
        let value = interval::share(count + in_proportion, self.samples)?.value;
        Some(Estimate {
            value,
            low: interval::share(count, self.samples)?.low,
            high: interval::share(count + self.off_cpu, self.samples)?.high,
        })
    }

    /// Number of samples in which the holder was without a CPU for a known reason.
    fn known_off_cpu(&self) -> u64 {
        let sleeping = self.asleep.values().chain(self.waits_for.values());
        sleeping.chain(self.waiting.values()).sum::<u64>() + self.preempted
    }

    /// Returns `true` if the holder sleeps mostly in calls for which `which` returns `true`.
    pub fn sleeps_mostly_in(&self, which: impl Fn(u32) -> bool) -> bool {
        let all: u64 = self.asleep.values().chain(self.waits_for.values()).sum();
        let some: u64 =
            self.asleep.iter().filter(|&(&call, _)| which(call)).map(|(_, count)| count).sum();
        2 * some > all.max(self.samples.saturating_sub(self.off_cpu) / 2)
    }

    /// Share of the samples with waiters in which no thread held the lock, or its holder had just
    /// been woken.
    pub fn handed_over(&self) -> Option<Estimate> {
        interval::share(self.handed_over, self.samples)
    }

    /// Counts of waits for other threads. The wait targets of a kind are merged unless one of them
    /// has at least half of the waits, because a channel may wake each receiver through a word of
    /// its own.
    fn waits_for_threads(&self) -> BTreeMap<(Awaited, Option<u32>), u64> {
        let mut of_kinds: BTreeMap<Awaited, (u64, u64)> = BTreeMap::new();
        for (&(kind, _), &count) in &self.waits_for {
            let (all, most) = of_kinds.entry(kind).or_default();
            (*all, *most) = (*all + count, count.max(*most));
        }
        let mut waits = BTreeMap::new();
        for (&(kind, of), &count) in &self.waits_for {
            let spread = of_kinds.get(&kind).is_some_and(|&(all, most)| 2 * most < all);
            *waits.entry((kind, of.filter(|_| !spread))).or_default() += count;
        }
        waits
    }

    /// Locks that the holder was waiting for, the most frequent first.
    pub fn waits_for(&self) -> Vec<(u32, Estimate)> {
        let mut chains: Vec<_> = self
            .waiting
            .iter()
            .filter_map(|(&lock, &count)| Some((lock, self.share_off_cpu(count)?)))
            .collect();
        chains.sort_by(|one, other| other.1.value.total_cmp(&one.1.value));
        chains
    }
}

/// Counts of patterns over several samples, without late ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternCounts {
    /// Number of threads seen just after they began to wait.
    pub arrivals: u64,
    /// Number of `arrivals` in a herd: between two samples, at least three threads stopped waiting
    /// for one other wait target and queued for this lock.
    pub herd_arrivals: u64,
    /// Number of samples just after a release that woke a waiter, if the next holder is known: the
    /// waiter, or a thread that took the lock before the waiter ran.
    pub turns: u64,
    /// Number of `turns` in which a thread took the lock before the woken waiter ran; counted for
    /// the thread that does so most often.
    pub hogged_turns: u64,
    /// Number of samples in which a writer waited for a readers-writer lock.
    pub writer_waited: u64,
    /// Number of `writer_waited` samples in which readers held the lock, at least one of whom came
    /// after the writer.
    pub readers_overtook: u64,
}

/// A cause of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The holder sleeps in this system call.
    SleptHolding(u32),
    /// The holder waits for the lock with this number.
    WaitsForLock(u32),
    /// The holder waits for other threads through a wait target of this kind, with the target's
    /// number if it has one.
    WaitsForThreads(Awaited, Option<u32>),
    /// The holder computes.
    Computing,
    /// The holder computes or waits for a CPU; it is unknown which.
    OnCpu,
    /// The holder waits for a CPU.
    Preempted,
    /// The holder waits for its cgroup's quota.
    Throttled,
    /// Threads wait while no thread holds the lock, or while its holder is being woken.
    Convoy,
    /// Several threads are woken at once to queue for the lock.
    Herd,
    /// One thread takes the lock again and again while others wait.
    Hog,
    /// Readers keep coming while a writer waits.
    StarvedWriter,
    /// Readers hold the lock.
    HeldByReaders,
}

impl Cause {
    /// Returns `true` for a pattern, which explains the waiting regardless of the holder's state.
    fn is_pattern(self) -> bool {
        matches!(self, Self::Herd | Self::Hog | Self::StarvedWriter)
    }
}

/// A cause and its share of the samples with waiters. Patterns have shares of other totals: of the
/// threads that began to wait (herd), of [`PatternCounts::turns`] (hog), and of the samples in
/// which a writer waited (starved writer).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseShare {
    /// The cause.
    pub cause: Cause,
    /// Share of the cause.
    pub share: Estimate,
}

/// If the holder sleeps in one system call for at least this share of the waiting, it may also be
/// in that call while on a CPU.
const OFTEN_IN_CALL: f64 = 0.15;

impl CauseShare {
    /// Value of removing the cause; the most valuable cause comes first. Waiting for a free lock
    /// can be ended altogether, unless a single CPU keeps the next holder waiting. Work under a
    /// lock can seldom be more than halved. A finding that covers two causes helps less than one
    /// that names the cause.
    ///
    /// A holder that sleeps in a call may also be on a CPU in that call: writing to a disk takes
    /// both. So if it is unknown whether the holder computed or waited for a CPU, the call weighs
    /// more.
    fn worth(&self, cpus: u32, sleeps: bool) -> f64 {
        match self.cause {
            cause if cause.is_pattern() => f64::INFINITY,
            Cause::Convoy if cpus > 1 => 2.0 * self.share.value,
            Cause::OnCpu if sleeps => 0.3 * self.share.value,
            Cause::OnCpu => 0.6 * self.share.value,
            _ => self.share.value,
        }
    }
}

/// Causes of waiting, in the order in which to remove them. Each explains at least a tenth of the
/// waiting. Empty if too few samples saw a thread wait.
///
/// A pattern that explains more than half of the waiting ranks first: a herd may wait for a holder
/// that computes, but shorter holds would not cure the herd. A pattern that explains less is not
/// reported, because on any busy lock, a thread sometimes overtakes, and several sometimes arrive
/// at once.
///
/// If most holders are unknown, causes that depend on the holder's state are not reported: all
/// unknown holders may have done one other thing, which would then rank first. A convoy can be seen
/// without knowing the holders.
///
/// `cpus` is the number of CPUs that the program may use.
pub fn causes(holders: &HolderCounts, patterns: PatternCounts, cpus: u32) -> Vec<CauseShare> {
    if holders.samples < MIN_SAMPLES {
        return Vec::new();
    }
    // If a holder released the lock just after a sample, it was on a CPU when it did so. But it may
    // still have been waiting for one when the sample was taken.
    let unclear = holders.on_cpu + holders.let_go;
    // If many samples do not tell computing from waiting for a CPU, neither share is known.
    let mixed = unclear as f64 > MOST_UNCLEAR * holders.samples as f64;
    let (running, preempted) = (holders.running, holders.preempted);
    let plain = [
        (Cause::Computing, if mixed { 0 } else { running }),
        (Cause::OnCpu, if mixed { unclear + running + preempted } else { unclear }),
        (Cause::Preempted, if mixed { 0 } else { preempted }),
        (Cause::Throttled, holders.throttled),
        (Cause::Convoy, holders.handed_over),
        (Cause::HeldByReaders, holders.readers),
    ];
    let asleep = holders.asleep.iter().map(|(&call, &count)| (Cause::SleptHolding(call), count));
    let waiting = holders.waiting.iter().map(|(&lock, &count)| (Cause::WaitsForLock(lock), count));
    let waits_for = holders.waits_for_threads();
    let waits_for =
        waits_for.into_iter().map(|((kind, of), count)| (Cause::WaitsForThreads(kind, of), count));
    let of_holders = plain.into_iter().chain(asleep).chain(waiting).chain(waits_for);
    let of_holders = of_holders.map(|(cause, count)| (cause, count, holders.samples));
    let untold = if holders.known_off_cpu() == 0 { holders.off_cpu } else { 0 };
    let not_seen = holders.not_seen + untold;
    let most_seen = 2 * not_seen <= holders.samples;
    let often = |share: Estimate| share.value > WITHOUT_HOLDERS && share.low > WORTH_MENDING;
    let of_patterns = [
        (Cause::Herd, patterns.herd_arrivals, patterns.arrivals),
        (Cause::Hog, patterns.hogged_turns, patterns.turns),
        (Cause::StarvedWriter, patterns.readers_overtook, patterns.writer_waited),
    ];
    let mut found: Vec<CauseShare> = of_holders
        .chain(of_patterns.into_iter().filter(|&(_, _, of)| of >= MIN_SAMPLES))
        .filter(|&(_, count, _)| count > 0)
        .filter_map(|(cause, count, of)| {
            let share = match cause {
                Cause::SleptHolding(_)
                | Cause::WaitsForLock(_)
                | Cause::WaitsForThreads(..)
                | Cause::Preempted => holders.share_off_cpu(count)?,
                _ => interval::share(count, of)?,
            };
            Some(CauseShare { cause, share })
        })
        .filter(|each| match each.cause {
            cause if cause.is_pattern() => each.share.low > 0.5,
            _ if each.share.value < WORTH_MENDING => false,
            // Seen without knowing the holder.
            Cause::Convoy | Cause::HeldByReaders => most_seen || often(each.share),
            _ => most_seen,
        })
        .collect();
    let in_call = |each: &CauseShare| matches!(each.cause, Cause::SleptHolding(_));
    let sleeps = found.iter().any(|each| in_call(each) && each.share.value >= OFTEN_IN_CALL);
    found.sort_by(|one, other| {
        let worth = other.worth(cpus, sleeps).total_cmp(&one.worth(cpus, sleeps));
        worth.then(other.share.value.total_cmp(&one.share.value))
    });
    // `OnCpu` covers two causes, so it comes first only if its share is certainly larger than the
    // next.
    if let [CauseShare { cause: Cause::OnCpu, share }, next, ..] = &found[..]
        && share.low < next.share.high
    {
        found.swap(0, 1);
    }
    found
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::simulated::{Program, Times, at, rng};

    fn causes(holders: &HolderCounts, patterns: PatternCounts) -> Vec<CauseShare> {
        super::causes(holders, patterns, 8)
    }

    fn counts(holders: &[(HolderState, u64)]) -> HolderCounts {
        let mut counts = HolderCounts::default();
        for &(holder, times) in holders {
            for _ in 0..times {
                counts.add(holder);
            }
        }
        counts
    }

    #[test]
    fn time_off_the_cpu_for_unknown_reasons_is_divided_among_the_known() {
        let state = HolderState::Asleep(74);
        let known = [(state, 30), (HolderState::Preempted, 10), (HolderState::Running, 40)];
        let all = counts(&[&known[..], &[(HolderState::OffCpu, 20)]].concat());
        let found = causes(&all, PatternCounts::default());
        let of = |cause| found.iter().find(|each| each.cause == cause).unwrap().share;
        let slept = of(Cause::SleptHolding(74));
        assert_eq!(slept.value, 0.45);
        assert!(slept.low < 0.3 && slept.high > 0.5);
        assert_eq!(of(Cause::Preempted).value, 0.15);
        assert_eq!(of(Cause::Computing).value, 0.4);
        assert_eq!(all.slept().unwrap(), slept);

        // Nothing tells why the holder is off its CPU, which it is most of the time.
        let unknown = counts(&[(HolderState::OffCpu, 60), (HolderState::Running, 40)]);
        assert_eq!(causes(&unknown, PatternCounts::default()), []);
    }

    #[test]
    fn the_most_frequent_state_is_the_cause() {
        let holders = counts(&[
            (HolderState::Asleep(230), 90),
            (HolderState::Running, 5),
            (HolderState::Waiting(7), 3),
            (HolderState::NotSeen, 2),
        ]);
        let causes = causes(&holders, PatternCounts::default());
        assert_eq!(causes[0].cause, Cause::SleptHolding(230));
        assert!(causes[0].share.holds(0.9) && causes[0].share.low > 0.8);
        assert_eq!(holders.waits_for()[0].0, 7);
        assert!(holders.not_seen().unwrap().holds(0.02));
    }

    #[test]
    fn a_pattern_comes_before_the_holders_state() {
        let holders = counts(&[(HolderState::Running, 95), (HolderState::HandedOver, 5)]);
        let herd = PatternCounts { arrivals: 100, herd_arrivals: 90, ..PatternCounts::default() };
        assert_eq!(causes(&holders, herd)[0].cause, Cause::Herd);
        let few = PatternCounts { arrivals: 100, herd_arrivals: 40, ..PatternCounts::default() };
        assert_eq!(causes(&holders, few)[0].cause, Cause::Computing);
        let unsure = PatternCounts { turns: 4, hogged_turns: 4, ..PatternCounts::default() };
        assert_eq!(causes(&holders, unsure)[0].cause, Cause::Computing);
    }

    #[test]
    fn one_thread_that_keeps_a_lock_from_the_others_hogs_it() {
        let holders = counts(&[(HolderState::Running, 95), (HolderState::HandedOver, 5)]);
        let first = |turns, hogged_turns| {
            let patterns = PatternCounts { turns, hogged_turns, ..PatternCounts::default() };
            causes(&holders, patterns)[0].cause
        };
        assert_eq!(first(100, 90), Cause::Hog);
        assert_eq!(first(12, 12), Cause::Hog);
        // A fair lock is passed on. If two threads overtake in turn, neither hogs the lock.
        assert_eq!(first(100, 2), Cause::Computing);
        assert_eq!(first(100, 50), Cause::Computing);
        assert_eq!(first(6, 6), Cause::Computing);
    }

    #[test]
    fn few_samples_name_no_cause() {
        assert!(causes(&counts(&[(HolderState::Running, 3)]), PatternCounts::default()).is_empty());
    }

    #[test]
    fn holders_that_were_not_seen_leave_the_cause_open() {
        let seen = |computing, not_seen| {
            let rest = (HolderState::HandedOver, 10);
            counts(&[(HolderState::Running, computing), (HolderState::NotSeen, not_seen), rest])
        };
        let first = |holders, patterns| causes(&holders, patterns).first().map(|it| it.cause);
        assert_eq!(first(seen(40, 45), PatternCounts::default()), Some(Cause::Computing));
        assert_eq!(first(seen(40, 55), PatternCounts::default()), None);
        let few_free = counts(&[(HolderState::NotSeen, 90), (HolderState::HandedOver, 10)]);
        assert_eq!(first(few_free, PatternCounts::default()), None);
        let often_free = counts(&[(HolderState::NotSeen, 60), (HolderState::HandedOver, 40)]);
        assert_eq!(first(often_free, PatternCounts::default()), Some(Cause::Convoy));
        // A pattern is seen without knowing the holder.
        let herd = PatternCounts { arrivals: 100, herd_arrivals: 90, ..PatternCounts::default() };
        assert_eq!(first(seen(40, 55), herd), Some(Cause::Herd));
    }

    #[test]
    fn a_holder_that_may_wait_for_a_cpu_is_not_said_to_compute() {
        let holders = counts(&[
            (HolderState::OnCpu, 60),
            (HolderState::LetGo, 30),
            (HolderState::Running, 10),
        ]);
        let found = causes(&holders, PatternCounts::default());
        assert_eq!(found.iter().map(|it| it.cause).collect::<Vec<_>>(), [Cause::OnCpu]);
        assert!(found[0].share.high > 0.99 && holders.let_go().unwrap().holds(0.3));
        let holders = counts(&[(HolderState::OnCpu, 15), (HolderState::Running, 85)]);
        let found = causes(&holders, PatternCounts::default());
        assert_eq!([found[0].cause, found[1].cause], [Cause::Computing, Cause::OnCpu]);
    }

    #[test]
    fn a_holder_that_syncs_a_file_is_not_said_to_compute() {
        // Writing to a disk takes a CPU, too.
        let holders = counts(&[
            (HolderState::OnCpu, 58),
            (HolderState::Asleep(74), 22),
            (HolderState::NotSeen, 20),
        ]);
        let first = causes(&holders, PatternCounts::default())[0].cause;
        assert_eq!(first, Cause::SleptHolding(74));
        let in_call = |call| holders.sleeps_mostly_in(|other| other == call);
        assert!(!in_call(74) && !in_call(1));
        let holders = counts(&[(HolderState::Asleep(1), 70), (HolderState::Asleep(74), 30)]);
        assert!(holders.sleeps_mostly_in(|call| call == 1));
    }

    #[test]
    fn what_can_be_mended_comes_before_what_is_not_told_apart() {
        let order = |holders: &[(HolderState, u64)]| {
            let found = causes(&counts(holders), PatternCounts::default());
            found.iter().map(|it| it.cause).collect::<Vec<_>>()
        };
        let (sleeps, on_cpu) = (Cause::SleptHolding(74), Cause::OnCpu);
        assert_eq!(
            order(&[(HolderState::OnCpu, 30), (HolderState::Asleep(74), 25)]),
            [sleeps, on_cpu]
        );
        assert_eq!(
            order(&[(HolderState::OnCpu, 500), (HolderState::Asleep(74), 100)]),
            [on_cpu, sleeps]
        );
        let (free, computes) = (Cause::Convoy, Cause::Computing);
        assert_eq!(
            order(&[(HolderState::Running, 60), (HolderState::HandedOver, 40)]),
            [free, computes]
        );
        assert_eq!(
            order(&[(HolderState::Running, 75), (HolderState::HandedOver, 25)]),
            [computes, free]
        );
        assert_eq!(
            order(&[(HolderState::OnCpu, 200), (HolderState::HandedOver, 90)]),
            [free, on_cpu]
        );
    }

    #[test]
    fn a_holder_that_waits_for_other_threads_does_not_sleep_in_a_system_call() {
        let reply = HolderState::WaitsFor(Awaited::Condvar, Some(4));
        let holders = counts(&[(reply, 90), (HolderState::Asleep(1), 10)]);
        let found = causes(&holders, PatternCounts::default());
        assert_eq!(found[0].cause, Cause::WaitsForThreads(Awaited::Condvar, Some(4)));
        assert!(holders.slept().unwrap().holds(1.0));
    }

    #[test]
    fn holders_that_each_wait_for_a_word_of_their_own_have_one_cause() {
        let waits = |of| HolderState::WaitsFor(Awaited::Unknown, Some(of));
        let holders: Vec<(HolderState, u64)> = (0..5).map(|of| (waits(of), 20)).collect();
        let found = causes(&counts(&holders), PatternCounts::default());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].cause, Cause::WaitsForThreads(Awaited::Unknown, None));
        assert!(found[0].share.holds(1.0));
        // One of two wait targets has most of the waits.
        let found = causes(&counts(&[(waits(1), 80), (waits(2), 20)]), PatternCounts::default());
        assert_eq!(found[0].cause, Cause::WaitsForThreads(Awaited::Unknown, Some(1)));
    }

    #[test]
    fn readers_that_hold_a_lock_are_told_although_none_of_them_is_its_holder() {
        let holders = counts(&[(HolderState::Readers, 90), (HolderState::NotSeen, 10)]);
        let found = causes(&holders, PatternCounts::default());
        assert_eq!(found.iter().map(|it| it.cause).collect::<Vec<_>>(), [Cause::HeldByReaders]);
    }

    #[test]
    fn hostile_calls_are_bounded() {
        let mut holders = HolderCounts::default();
        for call in 0..10_000 {
            holders.add(HolderState::Asleep(call));
        }
        assert_eq!(holders.asleep.len(), MAX_KINDS);
        assert_eq!(holders.samples, 10_000);
    }

    /// The way in which holders spend most of their hold is the first cause.
    #[test]
    fn simulated_holders_show_their_cause() {
        const SLEEP: u32 = 230;
        let program = Program {
            threads: 6,
            hold: 1e-3,
            think: 6e-3,
            hold_times: Times::Exponential,
            think_times: Times::Exponential,
            hand_off: 0.05e-3,
        };
        let cases = [
            (HolderState::Asleep(SLEEP), Cause::SleptHolding(SLEEP), 0.05e-3),
            (HolderState::Running, Cause::Computing, 0.05e-3),
            (HolderState::Preempted, Cause::Preempted, 0.05e-3),
            (HolderState::Throttled, Cause::Throttled, 0.05e-3),
            (HolderState::LetGo, Cause::OnCpu, 0.05e-3),
            (HolderState::Running, Cause::Convoy, 4e-3),
        ];
        for (state, cause, hand_off) in cases {
            let mut right = 0;
            for seed in 0..100 {
                let run = Program { hand_off, ..program }.run(2.0, seed);
                let mut rng = rng(seed + 7);
                let mut holders = HolderCounts::default();
                for time in run.instants(300.0, seed) {
                    if !(0..program.threads).any(|id| run.waiting(id, time)) {
                        continue;
                    }
                    // In a quarter of the samples, the holder does something else, or is not seen.
                    let others = [HolderState::Asleep(0), HolderState::NotSeen, HolderState::OnCpu];
                    holders.add(match at(&run.holds, time) {
                        None => HolderState::HandedOver,
                        Some(_) if rng.random::<f64>() < 0.75 => state,
                        Some(_) => others[rng.random_range(0..others.len())],
                    });
                }
                let causes = causes(&holders, PatternCounts::default());
                right += u32::from(causes.first().is_some_and(|first| first.cause == cause));
            }
            assert!(right >= 95, "{cause:?} in {right} of 100");
        }
    }

    #[test]
    fn waiters_of_a_free_lock_have_to_wait_for_the_only_cpu() {
        let mut holders = HolderCounts::default();
        for (holder, samples) in [(HolderState::HandedOver, 40), (HolderState::Running, 49)] {
            (0..samples).for_each(|_| holders.add(holder));
        }
        let first = |cpus| super::causes(&holders, PatternCounts::default(), cpus)[0].cause;
        assert_eq!((first(2), first(1)), (Cause::Convoy, Cause::Computing));
    }
}

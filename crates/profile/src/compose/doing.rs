//! Time of threads, by activity.

use std::collections::{BTreeMap, HashMap};

use threadtoll_judge::gain::Locking;
use threadtoll_record::Fraction;
use threadtoll_record::profile::{IoKind, ThreadTime, TimeIntervals};

use super::cpus::CpusOfProcess;
use super::idle::Reasons;
use super::locking::CpuOfLocks;
use super::threads::MeanThreads;
use crate::account::{ProcessAccount, Time};
use crate::occupation::Device;
use crate::primitive::{Kind, Role};
use crate::stacks::Stacks;

/// Maximum part of CPU time that may be known only as "on a CPU or waiting for one". Above it,
/// running and waiting are not reported separately.
const MOST_UNCLEAR: f64 = 0.05;

/// Time of threads by activity: mean numbers of threads for one process, thread-seconds for several
/// processes together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doing {
    times: BTreeMap<Time, MeanThreads>,
    spinning: MeanThreads,
    /// Threads that spin in loops of the program's own code.
    in_spin_loops: MeanThreads,
    /// Threads that yield, according to the kernel's counts of switches.
    yielding: MeanThreads,
    /// Threads in code that takes or frees locks, according to samples of running threads.
    in_locking: MeanThreads,
    locking: Locking,
    /// Threads that spin for locks that are known. They are on a CPU.
    spinners: MeanThreads,
    lock: MeanThreads,
    /// Threads that wait on a futex for other threads, but not for a lock.
    others: MeanThreads,
    /// Threads that have been in one wait since the profile began and would otherwise count as
    /// working.
    still: f64,
    working_error: f64,
    all: f64,
}

impl Doing {
    pub(crate) fn of(process: &ProcessAccount, stacks: &mut Stacks) -> Doing {
        let mut times: BTreeMap<Time, MeanThreads> =
            Time::ALL.iter().map(|&kind| (kind, MeanThreads::of(process.time(kind)))).collect();
        let paging = times.insert(Time::Paging, MeanThreads::default()).unwrap_or_default();
        let from = if process.pages_from_disk() { Time::Io(Device::Disk) } else { Time::Other };
        let sum = times.entry(from).or_default();
        *sum = sum.and(paging);
        let [mut lock, mut others, mut spinners] = [MeanThreads::default(); 3];
        for target in &process.targets {
            let waiters = MeanThreads::of(process.waiters(target));
            match target.identity.role() {
                Role::Lock if target.identity.kind() == Kind::Spinlock => {
                    spinners = spinners.and(waiters);
                }
                Role::Lock => lock = lock.and(waiters),
                Role::Idle | Role::Unknown => others = others.and(waiters),
                Role::Parked => {
                    let reasons = Reasons::of(target, stacks);
                    lock = lock.and(waiters.part(reasons.lock));
                    others = others.and(waiters.part(reasons.idle + reasons.untold));
                    let asleep = times.entry(Time::Sleep).or_default();
                    *asleep = asleep.and(waiters.part(reasons.asleep));
                }
            }
        }
        let waits = lock.and(others);
        let all = times.values().fold(waits, |sum, &time| sum.and(time)).mean;
        let running_in = |seen: &HashMap<u32, u64>| {
            MeanThreads::of(process.running_in(seen.values().sum()).filter(|it| it.mean > 0.0))
        };
        let spinning = running_in(&spins(process, stacks));
        let in_spin_loops = running_in(&spin_loops(process, stacks));
        let locking = CpuOfLocks::of(process, stacks);
        let in_locking = running_in(&locking.at);
        let (locking, still) = (locking.share, process.still_all_along());
        let working_error = process.working_error();
        let doing = Doing {
            times,
            spinning,
            in_spin_loops,
            yielding: MeanThreads::default(),
            in_locking,
            locking,
            spinners,
            lock,
            others,
            still,
            working_error,
            all,
        };
        Doing { yielding: doing.on_cpu().part(process.yielding()), ..doing }
    }

    pub(crate) fn add(&mut self, other: &Doing, seconds: f64) {
        for (&kind, threads) in &other.times {
            let sum = self.times.entry(kind).or_default();
            *sum = sum.and(threads.part(seconds));
        }
        for (sum, threads) in [
            (&mut self.spinning, other.spinning),
            (&mut self.in_spin_loops, other.in_spin_loops),
            (&mut self.yielding, other.yielding),
            (&mut self.in_locking, other.in_locking),
            (&mut self.lock, other.lock),
            (&mut self.others, other.others),
        ] {
            *sum = sum.and(threads.part(seconds));
        }
        self.all += other.all * seconds;
    }

    fn time(&self, kind: Time) -> MeanThreads {
        self.times.get(&kind).copied().unwrap_or_default()
    }

    fn for_threads(&self) -> MeanThreads {
        self.time(Time::Threads).and(self.time(Time::OwnPipe))
    }

    pub(super) fn on_cpu(&self) -> MeanThreads {
        self.time(Time::OnCpu).and(self.time(Time::Running)).and(self.time(Time::Runnable))
    }

    /// Mean number of running threads. Without records of switches, it is the number of threads on
    /// a CPU or waiting for one, limited to the number of busy CPUs.
    pub(super) fn running(&self, perf_event: bool, cpus: CpusOfProcess) -> f64 {
        let on_cpu = self.on_cpu().mean;
        let seen = self.time(Time::Running).and(self.time(Time::OnCpu)).mean;
        let running = if perf_event { seen } else { on_cpu };
        running.min(cpus.idle.map_or(on_cpu, |idle| f64::from(cpus.number) - idle))
    }

    /// Mean number of threads that wait neither for a lock, nor for work, nor for other threads,
    /// and have not been in one wait all the time.
    pub(super) fn working(&self) -> f64 {
        let working = self.times.iter().filter(|(kind, _)| kind.is_work());
        let working = working.map(|(_, time)| time.mean).sum::<f64>();
        (working - self.spinners.mean - self.still).max(0.0)
    }

    /// Mean number of threads on a CPU that spin for locks that are known.
    pub(super) fn spinners(&self) -> f64 {
        self.spinners.mean
    }

    pub(super) fn working_error(&self) -> f64 {
        self.working_error
    }

    pub(super) fn waiting_for_locks(&self) -> f64 {
        self.lock.mean + self.spinners.mean
    }

    pub(super) fn locking(&self) -> Locking {
        self.locking
    }

    pub(super) fn record(&self, perf_event: bool) -> Option<ThreadTime> {
        if self.all <= 0.0 {
            return None;
        }
        let all = self.all;
        let idle = self.time(Time::Idle);
        let others = self.others.and(self.for_threads());
        let unknown = self.time(Time::Other);
        let mut io: BTreeMap<IoKind, MeanThreads> = BTreeMap::new();
        for (&kind, &threads) in self.times.iter().filter(|(_, threads)| threads.mean > 0.0) {
            if let Time::Io(device) = kind {
                io.insert(io_kind(device), threads);
            }
        }
        let (running, runnable) = (self.time(Time::Running), self.time(Time::Runnable));
        let sleep = self.time(Time::Sleep);
        // Records of switches may be missing, or may not have begun.
        let unclear = self.time(Time::OnCpu);
        let told = perf_event && unclear.mean <= MOST_UNCLEAR * self.on_cpu().mean;
        let running = running.and(unclear);
        let told_interval = |threads: MeanThreads| if told { threads.interval(all) } else { None };
        let told = |threads: MeanThreads| told.then(|| threads.share(all));
        Some(ThreadTime {
            on_cpu: self.on_cpu().share(all),
            running: told(running),
            spinning: if perf_event { self.spinning.share(all) } else { Fraction::default() },
            in_locking: if perf_event { self.in_locking.share(all) } else { Fraction::default() },
            in_spin_loops: match perf_event {
                true => self.in_spin_loops.share(all),
                false => Fraction::default(),
            },
            yielding: self.yielding.share(all),
            runnable: told(runnable),
            lock_wait: self.lock.share(all),
            thread_wait: others.share(all),
            idle: idle.share(all),
            io: io.iter().map(|(&kind, threads)| (kind, threads.share(all))).collect(),
            sleep: sleep.share(all),
            unknown: unknown.share(all),
            interval95: TimeIntervals {
                on_cpu: self.on_cpu().interval(all),
                running: told_interval(running),
                spinning: match self.spinning.mean > 0.0 {
                    true => told_interval(self.spinning),
                    false => None,
                },
                runnable: told_interval(runnable),
                lock_wait: self.lock.interval(all),
                thread_wait: others.interval(all),
                idle: idle.interval(all),
                io: io
                    .iter()
                    .filter_map(|(&kind, threads)| Some((kind, threads.interval(all)?)))
                    .collect(),
                sleep: sleep.interval(all),
                unknown: unknown.interval(all),
            },
        })
    }
}

pub(super) fn io_kind(device: Device) -> IoKind {
    match device {
        Device::Disk => IoKind::Disk,
        Device::Socket => IoKind::Socket,
        Device::Pipe => IoKind::Pipe,
        Device::Terminal => IoKind::Terminal,
        Device::Child => IoKind::Child,
        _ => IoKind::Other,
    }
}

/// Number of samples that saw threads spin for a lock, by stack.
pub(super) fn spins(process: &ProcessAccount, stacks: &mut Stacks) -> HashMap<u32, u64> {
    let all = process.ran_at.iter();
    all.filter(|(stack, _)| stacks.spins(**stack)).map(|(&stack, &seen)| (stack, seen)).collect()
}

/// Number of samples that saw threads spin in the program's own code, by stack.
pub(super) fn spin_loops(process: &ProcessAccount, stacks: &mut Stacks) -> HashMap<u32, u64> {
    let all = process.ran_at.iter().map(|(&stack, &seen)| (stack, seen));
    all.filter(|&(stack, _)| stacks.spins_in_loop(stack)).collect()
}

#[cfg(test)]
mod tests {
    use threadtoll_stats::Z95;

    use super::*;

    #[test]
    fn processes_count_by_the_time_that_their_threads_spent() {
        let doing = |running: f64, lock: f64| {
            let threads = |mean: f64| MeanThreads { mean, variance: 1e-4 };
            Doing {
                times: [(Time::Running, threads(running))].into(),
                lock: threads(lock),
                all: running + lock,
                ..Doing::default()
            }
        };
        let mut all = Doing::default();
        all.add(&doing(0.0, 4.0), 10.0);
        all.add(&doing(60.0, 0.0), 1.0);
        let time = all.record(true).unwrap();
        assert_eq!((time.lock_wait.get(), time.running.unwrap().get()), (0.4, 0.6));
        let half = Z95 * (0.1_f64.powi(2) + 0.01_f64.powi(2)).sqrt() / 100.0;
        let interval = time.interval95.lock_wait.unwrap();
        assert!((interval.low().get() - (0.4 - half)).abs() < 1e-9, "{interval:?} {half}");
        assert!(Doing::default().record(true).is_none());
    }

    #[test]
    fn running_threads_are_told_from_runnable_ones_if_switches_tell() {
        let doing = |unclear: f64| {
            let threads = |mean: f64| MeanThreads { mean, ..MeanThreads::default() };
            let times =
                [(Time::OnCpu, unclear), (Time::Running, 1.0), (Time::Runnable, 1.0 - unclear)];
            let times = times.map(|(kind, mean)| (kind, threads(mean)));
            Doing { times: times.into(), all: 4.0, ..Doing::default() }.record(true)
        };
        let (clear, unclear) = (doing(0.02).unwrap(), doing(0.5).unwrap());
        let shares = |time: &ThreadTime| [Some(time.on_cpu), time.running, time.runnable];
        let share = |value: f64| Some(Fraction::new(value));
        assert_eq!(shares(&clear), [share(0.5), share(1.02 / 4.0), share(0.98 / 4.0)]);
        assert_eq!(shares(&unclear), [share(0.5), None, None]);
    }
}

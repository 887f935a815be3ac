//! Overloaded locks: plans, predictions against simulated machines, and callers on the real one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use threadtoll_lab::Registry;
use threadtoll_lab::backend::{Backend, OpenCell};
use threadtoll_lab::contention::{Overrides, overload, scenario};
use threadtoll_lab::lock::{GrantPolicy, Lock, Locks, RawLock};
use threadtoll_lab::plan::{CpuSelection, LockChoice, contention, estimate_ns, validate};
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::samples::{Acquisitions, Samples};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_machine::clock::Clock;
use threadtoll_machine::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_record::{
    BlockKind, Count, LockSubject, Overload, OverloadBlock, OverloadFigures, Placement,
    PlannedCell, PredictedOverload, Record, Refusal, Scale, Subject, Work,
};

use super::OURS;
use super::contention::{measured, plan, planned};

fn scales(arrivals: &[f64]) -> Vec<Scale> {
    arrivals.iter().map(|factor| Scale::new(*factor).unwrap()).collect()
}

fn at(work: Option<Work>, arrivals: &[f64], bounds: &[u32]) -> Overrides {
    let arrivals = scales(arrivals);
    let loads = overload::loads(work, None, Some(&arrivals), Some(bounds), None);
    Overrides { loads: Some(loads), time_ns: Some(1), ..Overrides::default() }
}

/// The figures of a record, and its prediction.
fn figures(record: &Record) -> Option<(LockSubject, OverloadFigures, PredictedOverload, [f64; 2])> {
    let contention = record.figures.contention()?;
    let told = contention.predicted.clone()?;
    let queue_mean = told.queue_mean_interval95?.map(f64::from);
    let (found, told) = (*contention.overload.clone()?, *told.overload?);
    Some((record.cell.lock()?.clone(), found, told, queue_mean))
}

#[test]
fn groups_have_no_thread_alone_and_keep_the_rules_of_a_rate_together() {
    let (groups, refused) = planned("overload", &[], Overrides::default());
    assert!(refused.is_empty());
    let topology = SimulatedBackend::topology();
    assert_eq!(validate(&plan(groups.clone()), &topology, &OURS), Ok(()));
    let mut cells = 0;
    for group in &groups {
        assert!(group.len() <= 8 && group[0].cell.lock().is_none());
        assert!(group.iter().all(|cell| cell.budget.rounds == group[0].budget.rounds));
        let locks: Vec<&LockSubject> =
            group[1..].iter().map(|planned| planned.cell.lock().unwrap()).collect();
        assert!(locks.iter().all(|lock| !lock.is_alone() && lock.work == locks[0].work));
        for rules in locks.chunks(3) {
            let of = |lock: &&LockSubject| lock.overload.unwrap();
            assert!(rules.iter().all(|lock| of(lock).arrivals == of(&rules[0]).arrivals));
            assert_eq!(rules.iter().filter(|lock| of(lock).gives_up).count(), 1);
            assert_eq!(rules.iter().filter(|lock| of(lock).bound.is_some()).count(), 1);
        }
        cells += locks.len();
    }
    assert_eq!(cells, 2 * 5 * 3, "both works, five rates, three rules");
    let minutes = estimate_ns(groups.iter().map(Vec::as_slice), 1) as f64 / 60e9;
    assert!((1.0..4.0).contains(&minutes), "{minutes}");
}

#[test]
fn what_is_no_single_queue_is_left_out_with_its_reason() {
    let (groups, refused) =
        planned("overload", &["counter-atomic", "striped/4:mcs", "ticket"], Overrides::default());
    let why: Vec<&str> = refused.iter().map(|refused| &*refused.why).collect();
    assert!(why.iter().any(|why| why.contains("counter")), "{why:?}");
    assert!(why.iter().any(|why| why.contains("several locks")), "{why:?}");
    // Its waiters spin, so there are as many threads as CPUs, and others wait in front.
    assert!(why.iter().any(|why| why.contains("could keep the holder off its CPU")), "{why:?}");
    let locks = groups.iter().flatten().filter_map(|planned| planned.cell.lock());
    assert!(locks.clone().count() == 15 && locks.clone().all(|lock| lock.threads == 2));
    let readers = planned("overload", &["std-rwlock"], Overrides::default()).0;
    let mut locks = readers.iter().flatten().filter_map(|planned| planned.cell.lock());
    assert!(locks.all(|lock| lock.read_share.is_some_and(|share| share.value() == 0.0)));
}

#[test]
fn overloads_that_were_tampered_with_are_not_measured() {
    let spoilt = |change: &dyn Fn(&mut LockSubject, &mut Overload)| {
        let (mut groups, _) = planned("overload", &["std-mutex"], Overrides::default());
        let Subject::Lock(lock) = &mut groups[0][1].cell.subject else { unreachable!() };
        let mut overload = lock.overload.unwrap();
        change(lock, &mut overload);
        lock.overload = Some(overload);
        validate(&plan(groups), &SimulatedBackend::topology(), &OURS)
    };
    assert_eq!(spoilt(&|_, _| ()), Ok(()));
    assert!(spoilt(&|lock, _| lock.tasks = Some(5)).is_err());
    assert!(spoilt(&|lock, _| lock.think_ns = 5).is_err());
    assert!(spoilt(&|lock, _| lock.hold_ns = 1000).is_err());
    assert!(spoilt(&|_, overload| overload.arrivals = Scale::new(11.0).unwrap()).is_err());
    assert!(spoilt(&|_, overload| overload.bound = Some(1_000_000)).is_err());
    assert!(spoilt(&|_, overload| overload.deadline_ns = 1).is_err());
}

/// Numbers of figures that were predicted, and of those that lie in their intervals.
fn coverage(seeds: std::ops::Range<u64>) -> [u32; 2] {
    let mut counts = [0; 2];
    for seed in seeds {
        for lock in ["std-mutex", "parking-lot-fair"] {
            let overrides = at(None, &[0.5, 1.5, 3.0], &[2, 8]);
            let results = measured("overload", &[lock], overrides, seed, 0.01);
            for (subject, found, told, queue) in results.records().iter().filter_map(figures) {
                let mut judge = |what: &str, value: f64, [low, high]: [f64; 2]| {
                    counts[0] += 1;
                    counts[1] += u32::from((low..=high).contains(&value));
                    let off = value / ((low + high) / 2.0).max(1e-9) - 1.0;
                    // Below the capacity, a queue of a fraction of a caller is off by chance.
                    let small = value < 1.0 || what == "recovery" && value < 50e6;
                    assert!(
                        small || off.abs() < 0.1,
                        "{subject:?}: {what} {value}, {low} to {high}"
                    );
                };
                judge("in time", found.in_time_share.get(), told.in_time_interval95.map(f64::from));
                judge("queue", found.queue_mean.get(), queue);
                if let (Some(ns), Some(ends)) = (found.recovery_ns, told.recovery_interval95) {
                    judge("recovery", ns.get(), ends.map(f64::from));
                }
            }
        }
    }
    counts
}

#[test]
fn measured_figures_lie_in_the_predicted_intervals() {
    let [figures, inside] = coverage(0..2);
    assert!(figures > 100, "{figures}");
    assert!(10 * inside >= 9 * figures, "{inside} of {figures}");
}

#[test]
fn bounds_and_deadlines_keep_waits_and_recovery_short() {
    // A lock that serves in order starves nobody.
    let results = measured("overload", &["parking-lot-fair"], at(None, &[2.0], &[8]), 1, 0.0);
    let records = results.records();
    let all: Vec<_> = records.iter().filter_map(figures).collect();
    assert_eq!(all.len(), 6);
    for rules in all.chunks(3) {
        let [(_, waits, ..), (_, bounded, ..), (_, gives_up, ..)] = rules else { unreachable!() };
        assert!(waits.in_time_share.get() < 0.3 && waits.refused_share == 0.0, "{waits:?}");
        assert!(waits.wasted_share.unwrap().get() > 0.7, "{waits:?}");
        assert!(bounded.in_time_share.get() > 0.45, "{bounded:?}");
        // While callers wait in front, the thread that serves them may overtake the other one.
        assert!(bounded.late_share.get() < 0.1, "{bounded:?}");
        assert!(gives_up.in_time_share.get() > 0.45 && gives_up.late_share == 0.0, "{gives_up:?}");
        let recovery = |of: &OverloadFigures| of.recovery_ns.unwrap().get();
        assert!(recovery(bounded) < recovery(waits) / 3.0);
        assert!(recovery(gives_up) < recovery(waits) / 2.0);
        assert!(waits.queue_mean.get() > 3.0 * bounded.queue_mean.get());
        assert_eq!(waits.arrived, bounded.arrived, "all rules see the same callers");
    }
}

#[test]
fn more_computing_threads_than_cpus_are_not_predicted() {
    let topology = SimulatedBackend::topology();
    let choice = LockChoice {
        locks: vec!["std-mutex".into()],
        placements: vec![Placement::SameCpu],
        overrides: at(Some(Work::Spin), &[2.0], &[8]),
    };
    let site = CpuSelection::named(&topology, &[0]);
    let (groups, refused) = contention(&site, scenario("overload").unwrap(), &OURS.locks, &choice);
    assert!(refused.is_empty() && !groups.is_empty());
    let machine = || SimulatedBackend::new(1).with_registry(OURS.clone());
    let run = SimulatedBackend::new(1).machine().run;
    let plan = threadtoll_record::Plan { run, ..plan(groups) };
    let results = super::run_simulated(&machine, &plan);
    let records = results.records();
    let told = records.iter().filter_map(|record| record.figures.contention()?.predicted.clone());
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|told| told.refused == Some(Refusal::OversubscribedSpin)));
    assert!(told.iter().all(|told| told.overload.is_none()));
}

/// Callers of one block on the real machine, at three times the capacity of a lock that is held for
/// 200 µs.
fn real_block(rule: usize, work: Work, lock: &str) -> OverloadBlock {
    let clock = Clock::gate().unwrap();
    let topology = SimulatedBackend::topology();
    let loads = overload::loads(
        Some(work),
        Some(200_000),
        Some(&scales(&[3.0])),
        Some(&[2]),
        Some(&[1_000_000]),
    );
    let choice = LockChoice {
        locks: vec![lock.into()],
        placements: vec![Placement::SameCpu],
        overrides: Overrides { loads: Some(vec![loads[rule]]), ..Overrides::default() },
    };
    let site = CpuSelection::named(&topology, &[0]);
    let (groups, _) = contention(&site, scenario("overload").unwrap(), &OURS.locks, &choice);
    let mut planned: PlannedCell = groups[0][1].clone();
    planned.cell.cpus = allowed_cpus()[..1].to_vec();
    let machine = SimulatedBackend::new(1).machine();
    let mut backend = RealBackend::new(clock.0, clock.1).with_registry(OURS.clone());
    let mut open: Vec<Box<dyn OpenCell>> =
        backend.open(&machine, &[planned], &mut |_| Ok(())).unwrap();
    assert!(open[0].overload_calibration().is_some());
    let Samples::Contention(Acquisitions { block, waits, .. }) =
        open[0].block(BlockKind::Stamped).unwrap().samples
    else {
        unreachable!()
    };
    let acquired: Count = block.acquisitions.iter().copied().sum();
    assert!(acquired.get() >= waits.len() as u64 && !waits.is_empty());
    *block.overload.unwrap()
}

/// However slow the machine is, callers who arrive at three times the capacity are served, refused
/// or give up, and none is forgotten.
#[test]
fn callers_on_the_real_machine_are_all_accounted_for() {
    let _alone = machine_lock().unwrap();
    for (work, lock) in [(Work::Sleep, "std-mutex"), (Work::Spin, "parking-lot-fair")] {
        let blocks: Vec<OverloadBlock> = (0..3).map(|rule| real_block(rule, work, lock)).collect();
        for block in &blocks {
            // 60 hold times, in each of which three callers arrive.
            assert_eq!(block.arrived, 180, "{block:?}");
            let fates = [block.in_time, block.late, block.refused, block.gave_up];
            assert_eq!(fates.into_iter().sum::<Count>(), block.arrived, "{block:?}");
            assert!(block.hold_ns.get() >= 200_000.0 || work == Work::Spin, "{block:?}");
            assert!(block.lateness.count() > 0 && block.queue.len() == 60, "{block:?}");
        }
        let [waits, bounded, gives_up] = &blocks[..] else { unreachable!() };
        assert!(waits.late > 0 && waits.refused == 0 && waits.gave_up == 0, "{waits:?}");
        assert!(bounded.refused > 0 && bounded.gave_up == 0, "{bounded:?}");
        assert!(gives_up.gave_up > 0 && gives_up.refused == 0, "{gives_up:?}");
        assert_eq!(gives_up.late, 0, "who gives up is never served late");
        assert!(bounded.queue_max < waits.queue_max, "{bounded:?}");
    }
}

/// A lock that refuses while too many threads wait. Counts those who are inside or wait.
#[derive(Default)]
struct Refusing {
    mutex: Mutex<()>,
    inside: AtomicU32,
}

impl RawLock for Refusing {
    type ThreadState = ();

    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let done = {
            let _held = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            section()
        };
        self.inside.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn hold_bounded<R>(
        &self,
        state: &mut (),
        bound: u32,
        section: impl FnOnce() -> R,
    ) -> Option<R> {
        (self.inside.load(Ordering::SeqCst) <= bound).then(|| self.hold(state, section))
    }
}

#[test]
fn a_lock_with_a_bound_of_its_own_keeps_it_with_enough_threads() {
    let _alone = machine_lock().unwrap();
    let sentence = "a mutex that refuses";
    let lock = Lock::new("refusing", GrantPolicy::Barging, sentence, |count| {
        Ok((0..count).map(|_| Refusing::default()).collect::<Vec<_>>())
    });
    let registry = Registry { locks: Locks::with([lock.with_own_bound()]), ..OURS.clone() };
    let hold_ns = 200_000;
    let loads = overload::loads(
        Some(Work::Spin),
        Some(hold_ns),
        Some(&scales(&[3.0])),
        Some(&[20]),
        Some(&[100 * hold_ns]),
    );
    let choice = LockChoice {
        locks: vec!["refusing".into()],
        placements: vec![Placement::SameCpu],
        overrides: Overrides { loads: Some(loads), ..Overrides::default() },
    };
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0]);
    let (groups, _) = contention(&site, scenario("overload").unwrap(), &registry.locks, &choice);
    assert_eq!(validate(&plan(groups.clone()), &topology, &registry), Ok(()));
    let locks: Vec<&LockSubject> =
        groups[0][1..].iter().map(|planned| planned.cell.lock().unwrap()).collect();
    let by_lock: Vec<bool> = locks.iter().map(|lock| lock.overload.unwrap().by_lock).collect();
    assert_eq!(by_lock, [false, true, false], "only the bound is kept by the lock");
    assert_eq!(locks[1].threads, 22, "one holds it, 20 wait, and one is refused");
    let mut planned = groups[0][2].clone();
    planned.cell.cpus = allowed_cpus()[..1].to_vec();
    let (clock, facts) = Clock::gate().unwrap();
    let mut backend = RealBackend::new(clock, facts).with_registry(registry);
    let machine = SimulatedBackend::new(1).machine();
    let mut open = backend.open(&machine, &[planned], &mut |_| Ok(())).unwrap();
    let Samples::Contention(Acquisitions { block, .. }) =
        open[0].block(BlockKind::Stamped).unwrap().samples
    else {
        unreachable!()
    };
    let block = block.overload.unwrap();
    assert!(block.refused > 0 && block.in_time > 0, "{block:?}");
    assert!(block.queue_max >= 15, "{block:?}");
}

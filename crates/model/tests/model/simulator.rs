//! The simulator beyond the closed forms.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_model::simulate::{self, Cores, Locks, Report, System};
use threadtoll_model::{HandOff, Load, ModelError, Policy, Shape, cores, mva, repairman};

fn exponential(threads: u32, hold_ns: f64, think_ns: f64) -> System {
    System {
        threads,
        think: Shape::exponential(think_ns).unwrap(),
        locks: vec![Locks::one(Shape::exponential(hold_ns).unwrap())],
        cores: None,
    }
}

fn long_run(system: &System) -> Report {
    simulate::long_run(system, 100_000, 1).unwrap()
}

#[test]
fn a_seed_gives_the_same_figures_again() {
    let system = exponential(8, 100.0, 700.0);
    let first = simulate::long_run(&system, 20_000, 7).unwrap();
    assert_eq!(first, simulate::long_run(&system, 20_000, 7).unwrap());
    assert_ne!(first, simulate::long_run(&system, 20_000, 8).unwrap());
    let pool = simulate::tasks(&system, 500, 3, 7).unwrap();
    assert_eq!(pool, simulate::tasks(&system, 500, 3, 7).unwrap());
}

#[test]
fn waiting_obeys_littles_law() {
    let mut system = exponential(12, 100.0, 600.0);
    system.locks[0].policy = Policy::Barging;
    system.locks[0].hand_off = HandOff::fixed(80.0).unwrap();
    let report = long_run(&system);
    let by_law = report.throughput_per_s.value / 1e9 * report.wait_ns.value;
    assert!((report.queue_mean.value / by_law - 1.0).abs() < 1e-3);
    assert!((report.wait_share.value - report.queue_mean.value / 12.0).abs() < 1e-12);
}

#[test]
fn a_saturated_lock_is_taken_during_hand_offs_if_it_is_fair() {
    let mut system = exponential(50, 100.0, 400.0);
    system.locks[0].hand_off = HandOff::fixed(25.0).unwrap();
    let fair = long_run(&system);
    assert!((fair.throughput_per_s.value / 1e9 * 125.0 - 1.0).abs() < 0.01);
    assert!((fair.locks[0].utilisation - 0.8).abs() < 0.01);
    // Threads leave at intervals of 25 plus an exponential 100, and think for an exponential 400:
    // as one leaves, 1/(1−φ) think, where φ is the transform of the intervals at 1/400; as the next
    // one enters, the hand-off has reduced their number.
    let transform = (-25.0f64 / 400.0).exp() / 1.25;
    let on_entry = 49.0 - (-25.0f64 / 400.0).exp() / (1.0 - transform);
    assert!(fair.queue_on_entry.holds(on_entry), "{:?} {on_entry}", fair.queue_on_entry);
    // Barging uses the hand-off, and woken threads wait longer than the average.
    system.locks[0].policy = Policy::Barging;
    let barging = long_run(&system);
    assert!(barging.throughput_per_s.value > 1.02 * fair.throughput_per_s.value);
}

#[test]
fn the_hand_off_depends_on_how_long_the_cpu_idled() {
    let with = |hand_off: HandOff, threads: u32| {
        let mut system = exponential(threads, 100.0, 900.0);
        system.locks[0].hand_off = hand_off;
        long_run(&system).speedup.value
    };
    let curve = || HandOff::curve(&[(1e3, 10.0), (1e4, 500.0)]).unwrap();
    let (short, long) = (HandOff::fixed(10.0).unwrap(), HandOff::fixed(500.0).unwrap());
    // A short queue has cheap wake-ups; a long queue idles long and has expensive ones.
    assert!((with(curve(), 3) / with(short, 3) - 1.0).abs() < 0.01);
    let crowded = with(curve(), 200);
    assert!((crowded / with(long, 200) - 1.0).abs() < 0.01, "{crowded}");
}

#[test]
fn the_releasing_thread_pays_for_the_wake_up() {
    let system = |policy: Policy, hold: f64, think: f64, hand_off: HandOff| System {
        threads: 2,
        think: Shape::fixed(think).unwrap(),
        locks: vec![Locks { policy, hand_off, ..Locks::one(Shape::fixed(hold).unwrap()) }],
        cores: None,
    };
    let cost = |ns: f64| HandOff::fixed(10.0).unwrap().with_wake_cost(&[(0.0, ns)]).unwrap();
    for policy in [Policy::Fifo, Policy::Barging] {
        // While a thread pays 40 and thinks 50, the other one is woken and holds the lock: hidden.
        let hidden = long_run(&system(policy, 100.0, 50.0, cost(40.0)));
        assert!((hidden.throughput_per_s.value / 1e9 * 110.0 - 1.0).abs() < 1e-3, "{hidden:?}");
    }
    // A release that wakes nobody costs nothing.
    let alone = System { threads: 1, ..system(Policy::Barging, 100.0, 50.0, cost(40.0)) };
    let alone = long_run(&alone);
    assert!((alone.throughput_per_s.value / 1e9 * 150.0 - 1.0).abs() < 1e-3, "{alone:?}");
    for policy in [Policy::Fifo, Policy::Barging] {
        // A thread that pays 200 and thinks 5 asks again 205 after its release. By then the other
        // one has held the lock from 10 to 110, paid nothing, as nobody waited, and holds it again
        // from 115 to 215, when the next turn begins: two tasks.
        let paid = long_run(&system(policy, 100.0, 5.0, cost(200.0)));
        assert!((paid.throughput_per_s.value / 1e9 * 107.5 - 1.0).abs() < 1e-3, "{paid:?}");
        assert!((paid.queue_mean.value - 20.0 / 215.0).abs() < 1e-3, "{paid:?}");
    }
}

#[test]
fn spinning_long_enough_spares_the_hand_off() {
    let mut system = exponential(4, 100.0, 300.0);
    system.locks[0].hand_off = HandOff::fixed(5_000.0).unwrap();
    let asleep = long_run(&system);
    system.locks[0].policy = Policy::SpinThenPark { spin_ns: 1e9, takeover_ns: 0.0 };
    let spinning = long_run(&system);
    let free = repairman::solve(Load::new(100.0, 300.0).unwrap(), 4).unwrap();
    assert!(spinning.speedup.holds(free.speedup));
    assert!(spinning.queue_on_entry.holds(free.queue_on_entry));
    assert!(asleep.speedup.value < 0.5 * spinning.speedup.value);
    // Without spinning it is barging.
    system.locks[0].policy = Policy::SpinThenPark { spin_ns: 0.0, takeover_ns: 0.0 };
    let not_at_all = long_run(&system);
    system.locks[0].policy = Policy::Barging;
    let barging = long_run(&system);
    assert!(
        (not_at_all.speedup.value - barging.speedup.value).abs()
            < not_at_all.speedup.half_width + barging.speedup.half_width
    );
}

#[test]
fn a_full_queue_refuses() {
    // Without a queue: Engset's loss system, in which the lock is held for N r / (1 + N r) of the
    // time for any distribution.
    for hold in [Shape::exponential(100.0).unwrap(), Shape::fixed(100.0).unwrap()] {
        let mut system = exponential(5, 100.0, 400.0);
        system.locks[0] = Locks { queue_limit: Some(0), ..Locks::one(hold) };
        let report = long_run(&system);
        let r = 100.0 / 400.0;
        let held: f64 = 5.0 * r / (1.0 + 5.0 * r);
        assert!((report.throughput_per_s * 1e-7).holds(held));
        // Attempts see the lock with one thread fewer.
        assert!((report.locks[0].refused_share - 4.0 * r / (1.0 + 4.0 * r)).abs() < 0.01);
        assert_eq!(report.locks[0].queue_max, 0);
        assert_eq!(report.queue_mean.value, 0.0);
    }
    let mut system = exponential(50, 100.0, 400.0);
    system.locks[0].queue_limit = Some(3);
    assert_eq!(long_run(&system).locks[0].queue_max, 3);
}

#[test]
fn cores_are_shared() {
    for (threads, count, hold, think) in
        [(8, 4, 100.0, 900.0), (16, 4, 300.0, 700.0), (5, 1, 100.0, 100.0), (12, 6, 100.0, 300.0)]
    {
        let mut system = exponential(threads, hold, think);
        // Slices that rarely end within a hold.
        system.cores = Some(Cores { count, slice_ns: 1e10, wake_preempts: true });
        let report = long_run(&system);
        let exact = cores::solve(Load::new(hold, think).unwrap(), count, threads).unwrap();
        assert!(
            report.speedup.holds(exact.speedup),
            "{threads}/{count}: {:?} {}",
            report.speedup,
            exact.speedup
        );
        assert!(
            report.queue_mean.holds(exact.queue_mean),
            "{threads}/{count}: {:?} {}",
            report.queue_mean,
            exact.queue_mean
        );
        assert!(report.speedup.value <= f64::from(count) + report.speedup.half_width);
    }
}

#[test]
fn a_holder_without_a_core_makes_others_wait() {
    let mut system = exponential(16, 100.0, 900.0);
    let mut with = |slice_ns, wake_preempts| {
        system.cores = Some(Cores { count: 4, slice_ns, wake_preempts });
        long_run(&system)
    };
    let preempting = with(1e5, true);
    let waiting = with(1e5, false);
    let short_slices = with(50.0, false);
    assert!(waiting.queue_mean.value > 1.1 * preempting.queue_mean.value);
    for report in [preempting, waiting, short_slices] {
        assert!(report.speedup.value <= 4.0 + report.speedup.half_width);
        assert!(report.queue_mean.value < 16.0);
    }
}

#[test]
fn many_threads_on_many_locks() {
    let mut system = exponential(20_000, 1_000.0, 99_000.0);
    system.locks[0].count = 200;
    let report = simulate::long_run(&system, 400_000, 1).unwrap();
    let exact = mva::striped(Load::new(1_000.0, 99_000.0).unwrap(), 200, 20_000).unwrap();
    // Batches have one task per thread: the intervals are rough.
    assert!(
        (report.speedup.value / exact.speedup - 1.0).abs() < 0.01,
        "{:?} {}",
        report.speedup,
        exact.speedup
    );
}

#[test]
fn kinds_of_locks_are_reported_apart() {
    let mut system = exponential(6, 100.0, 1_000.0);
    system.locks.push(Locks { share: 3.0, count: 2, ..Locks::one(Shape::fixed(50.0).unwrap()) });
    let report = long_run(&system);
    // A quarter of the tasks holds the first for 100, three eighths each of the others for 50.
    let [first, second] = &*report.locks else { panic!("two kinds") };
    assert!((first.utilisation / second.utilisation - 25.0 / 18.75).abs() < 0.05);
    assert!(report.fairness > 0.999);
}

#[test]
fn all_tasks_are_done() {
    for threads in [1, 3, 100] {
        let report = simulate::tasks(&exponential(threads, 10.0, 10.0), 50, 2, 1).unwrap();
        assert_eq!(report.acquisitions, 100);
        assert!(
            (report.throughput_per_s.value * report.total_s.unwrap().value - 50.0).abs() < 1e-9
        );
    }
}

#[test]
fn measured_times_are_drawn_as_they_are() {
    let values: Vec<f64> = (1..=100).map(|i| f64::from(i * i)).collect();
    let buckets: Vec<(f64, u64)> = values.iter().map(|&value| (value, 3)).collect();
    let sampled = Shape::sampled(&values).unwrap();
    let counted = Shape::counted(&buckets).unwrap();
    assert!((sampled.mean_ns() - counted.mean_ns()).abs() < 1e-9);
    assert!((sampled.variation() - counted.variation()).abs() < 1e-9);
    let speedup = |hold: Shape| {
        let system = System { locks: vec![Locks::one(hold)], ..exponential(4, 1.0, 9_000.0) };
        long_run(&system).speedup
    };
    let exact =
        threadtoll_model::takacs::Takacs::new(&sampled, 9_000.0, 4).unwrap().solve(4).unwrap();
    assert!(speedup(sampled).holds(exact.speedup));
    assert!(speedup(counted).holds(exact.speedup));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let good = exponential(2, 1.0, 1.0);
    let refused = |system: &System| simulate::long_run(system, 1000, 1).unwrap_err();
    assert!(matches!(refused(&System { threads: 0, ..good.clone() }), ModelError::Number { .. }));
    assert!(matches!(
        refused(&System { locks: vec![], ..good.clone() }),
        ModelError::TooFew { .. }
    ));
    let cores = |count, slice_ns| System {
        cores: Some(Cores { count, slice_ns, wake_preempts: true }),
        ..good.clone()
    };
    assert!(matches!(refused(&cores(0, 1.0)), ModelError::Number { .. }));
    assert!(matches!(refused(&cores(1, 1e-6)), ModelError::Figure { .. }));
    let mut bad = good.clone();
    bad.locks[0].share = f64::NAN;
    assert!(matches!(refused(&bad), ModelError::Figure { .. }));
    bad.locks[0].share = 1.0;
    bad.locks[0].policy = Policy::SpinThenPark { spin_ns: -1.0, takeover_ns: 0.0 };
    assert!(matches!(refused(&bad), ModelError::Time { .. }));
    let nothing = exponential(2, 0.0, 0.0);
    assert_eq!(refused(&nothing), ModelError::NoTime);
    assert!(simulate::long_run(&good, 0, 1).is_err());
    assert!(simulate::tasks(&good, 0, 1, 1).is_err());
    assert!(simulate::tasks(&good, 1, 0, 1).is_err());
}

/// Any valid system of moderate size.
fn any_system(rng: &mut Xoshiro256PlusPlus) -> System {
    let shape = |rng: &mut Xoshiro256PlusPlus, mean: f64| {
        match rng.random_range(0..6) {
            0 => Shape::fixed(mean),
            1 => Shape::exponential(mean),
            2 => Shape::uniform(0.0, 2.0 * mean),
            3 => Shape::hyperexponential(mean, 5.0),
            4 => Shape::sampled(&[0.0, mean, 2.0 * mean]),
            _ => Shape::fixed(0.0),
        }
        .unwrap()
    };
    let locks = (0..rng.random_range(1..=3))
        .map(|_| Locks {
            count: rng.random_range(1..=4),
            share: rng.random_range(0.1..1.0),
            hold: shape(rng, 100.0),
            policy: match rng.random_range(0..4) {
                0 => Policy::Fifo,
                1 => Policy::Barging,
                2 => Policy::SpinThenPark { spin_ns: 60.0, takeover_ns: 0.0 },
                _ => Policy::SpinThenPark { spin_ns: 500.0, takeover_ns: 7.0 },
            },
            hand_off: match rng.random_range(0..3) {
                0 => HandOff::free(),
                1 => HandOff::fixed(40.0).unwrap(),
                _ => HandOff::curve(&[(100.0, 20.0), (10_000.0, 300.0)]).unwrap(),
            },
            read_share: if rng.random_range(0..3) == 0 { rng.random() } else { 0.0 },
            queue_limit: (rng.random_range(0..4) == 0).then(|| rng.random_range(0..4)),
        })
        .collect();
    let think = 10f64.powf(rng.random_range(0.0..4.0));
    let cores = (rng.random_range(0..2) == 0).then(|| Cores {
        count: rng.random_range(1..=6),
        slice_ns: 10f64.powf(rng.random_range(1.0..6.0)),
        wake_preempts: rng.random(),
    });
    System { threads: rng.random_range(1..=30), think: shape(rng, think), locks, cores }
}

/// Tasks per nanosecond of two threads at a lock for readers and a writer, hold and think times
/// exponential, by the balance of the chain's eight states: nobody, a reader, a writer, two
/// readers, a writer behind a reader, a reader or a writer behind a writer.
fn two_with_readers(hold: f64, think: f64, read_share: f64) -> f64 {
    let (ends, comes) = (1.0 / hold, 1.0 / think);
    let (reads, writes) = (comes * read_share, comes * (1.0 - read_share));
    // From, to, rate.
    let moves = [
        (0, 1, 2.0 * reads),
        (0, 2, 2.0 * writes),
        (1, 0, ends),
        (1, 3, reads),
        (1, 4, writes),
        (2, 0, ends),
        (2, 5, reads),
        (2, 6, writes),
        (3, 1, 2.0 * ends),
        (4, 2, ends),
        (5, 1, ends),
        (6, 2, ends),
    ];
    let step = 0.2 / (ends + comes);
    let mut chances = [1.0 / 7.0; 7];
    for _ in 0..200_000 {
        let mut next = chances;
        for (from, to, rate) in moves {
            let moved = chances[from] * rate * step;
            next[from] -= moved;
            next[to] += moved;
        }
        chances = next;
    }
    ends * (1.0 - chances[0] + chances[3])
}

#[test]
fn readers_share_and_writers_do_not() {
    for (seed, (hold, think, read_share)) in (1..).zip([
        (100.0, 100.0, 0.5),
        (100.0, 300.0, 0.9),
        (300.0, 100.0, 0.2),
        (100.0, 50.0, 0.97),
        (100.0, 100.0, 0.0),
    ]) {
        let mut system = exponential(2, hold, think);
        system.locks[0].read_share = read_share;
        let report = simulate::long_run(&system, 400_000, seed).unwrap();
        let exact = two_with_readers(hold, think, read_share) * 1e9;
        let found = report.throughput_per_s;
        // Five cases at 99% each fail one run in twenty; intervals half as wide again almost never
        // fail.
        assert!(
            (found.value - exact).abs() < 1.5 * found.half_width,
            "{read_share}: {exact} {found:?}"
        );
    }
    let mut system = exponential(8, 1000.0, 10.0);
    system.locks[0].read_share = 1.0;
    let report = long_run(&system);
    assert!(
        (report.speedup.value - 8.0).abs() < 0.1 && report.wait_share.value == 0.0,
        "{report:?}"
    );
}

#[test]
fn who_does_not_think_keeps_a_lock_that_lets_her_barge_in() {
    let mut system = System { think: Shape::fixed(0.0).unwrap(), ..exponential(4, 100.0, 1.0) };
    system.locks[0].hand_off = HandOff::fixed(10.0).unwrap();
    assert!(long_run(&system).fairness > 0.999);
    system.locks[0].policy = Policy::Barging;
    let barging = long_run(&system);
    assert_eq!(barging.fairness, 0.25);
    assert!((barging.locks[0].utilisation - 1.0).abs() < 1e-9);
}

#[test]
fn no_system_loses_a_thread_or_a_wake_up() {
    for seed in 1..=200 {
        let system = any_system(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let report = match simulate::long_run(&system, 2_000, seed) {
            Ok(report) => report,
            // All its times came out as zero.
            Err(ModelError::NoTime) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let refuses = system.locks.iter().any(|locks| locks.queue_limit.is_some());
        // A lost wake-up would end the run early.
        assert!(refuses || report.acquisitions == 2_000, "seed {seed}: {system:?} {report:?}");
        let n = f64::from(system.threads);
        let held: f64 = report
            .locks
            .iter()
            .zip(&system.locks)
            .map(|(each, locks)| {
                let most = if locks.read_share > 0.0 { n } else { 1.0 };
                assert!(
                    each.utilisation <= most + 1e-9 && each.queue_max <= system.threads,
                    "seed {seed}"
                );
                each.utilisation * f64::from(locks.count)
            })
            .sum();
        assert!(report.queue_mean.value + held <= n + 1e-9, "seed {seed}: {system:?} {report:?}");
        let work = system.cores.map_or(n, |cores| n.min(f64::from(cores.count)));
        assert!(
            refuses || report.speedup.value <= work * 1.3,
            "seed {seed}: {system:?} {report:?}"
        );
        let pool = simulate::tasks(&system, 300, 1, seed).unwrap();
        assert!(refuses || pool.acquisitions == 300, "seed {seed}: {system:?} {pool:?}");
        // No thread waits at the end: Little's law is exact.
        let queued = pool.queue_mean.value * pool.total_s.unwrap().value * 1e9;
        let waited = pool.wait_ns.value * pool.acquisitions as f64;
        assert!(
            (queued - waited).abs() <= 1e-6 * (queued + 1.0),
            "seed {seed}: {system:?} {pool:?}"
        );
    }
}

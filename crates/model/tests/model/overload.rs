//! Overload of a lock, against the models of a steady queue, and against what the rates give.

use threadtoll_model::overload::{
    Caller, Outcome, OverloadedLock, Phases, Rules, outcome, simulate,
};
use threadtoll_model::pool::{self, Rows};
use threadtoll_model::{HandOff, Pool, Shape};

const HOLD_NS: f64 = 1e6;
const DEADLINE_NS: f64 = 10.0 * HOLD_NS;
const WAITS: Rules = Rules { bound: None, deadline_ns: DEADLINE_NS, gives_up: false };

/// A lock without hand-offs, in front of which callers queue for this number of threads.
fn lock(threads: u32) -> OverloadedLock {
    OverloadedLock {
        hold_ns: HOLD_NS,
        hand_off: HandOff::free(),
        overtaken_share: 0.0,
        late_ns: 0.0,
        threads,
    }
}

/// A long time at this share of the lock's capacity.
fn steady(load: f64) -> Phases {
    Phases {
        capacity_per_s: 1e9 / HOLD_NS,
        usual: load,
        overload: load,
        before_ns: 1e3 * HOLD_NS,
        overload_ns: 4e5 * HOLD_NS,
        after_ns: 0.0,
    }
}

/// An overload that lasts for 100 holds.
fn short(overload: f64) -> Phases {
    Phases {
        usual: 0.5,
        overload,
        before_ns: 20.0 * HOLD_NS,
        overload_ns: 100.0 * HOLD_NS,
        after_ns: 1e3 * HOLD_NS,
        ..steady(0.5)
    }
}

fn simulated(lock: &OverloadedLock, rules: &Rules, phases: &Phases, seed: u64) -> Outcome {
    let callers: Vec<Caller> = simulate(lock, rules, &phases.due_ns(seed), seed).unwrap();
    outcome(&callers, phases, rules.deadline_ns)
}

/// Means over some seeds.
fn mean(figure: impl Fn(u64) -> f64) -> f64 {
    (0..20).map(figure).sum::<f64>() / 20.0
}

#[track_caller]
fn near(found: f64, expected: f64, off: f64) {
    assert!((found / expected - 1.0).abs() <= off, "{found} is not {expected}");
}

#[test]
fn a_steady_queue_is_that_of_one_server_with_fixed_hold_times() {
    for load in [0.3, 0.5, 0.8] {
        let found = simulated(&lock(4), &WAITS, &steady(load), 1);
        near(found.queue_mean, load * load / (2.0 * (1.0 - load)), 0.03);
        let pool = Pool::new(load * 1e9 / HOLD_NS, Shape::fixed(HOLD_NS).unwrap());
        let row = Rows::new(&pool, false, 1).unwrap().row(1).unwrap();
        let wait_ns = found.queue_mean / pool.arrivals_per_s * 1e9;
        near(wait_ns, row.wait_mean_ns.unwrap().value, 0.03);
    }
}

#[test]
fn a_bound_refuses_as_many_as_a_pool_of_one_server_with_as_many_places() {
    for (load, places) in [(0.9, 2), (1.5, 4), (3.0, 8), (1.2, 0)] {
        let rules = Rules { bound: Some(places), ..WAITS };
        let shape = Shape::fixed(HOLD_NS).unwrap();
        let pool = Pool { places: Some(places), ..Pool::new(load * 1e9 / HOLD_NS, shape) };
        let exact = pool::simulate(&pool, 1, 1_000_000, 1).unwrap().refused_share.value;
        // The number of threads decides where callers wait, and not who is refused.
        for threads in [1, 2, places + 2] {
            let found = simulated(&lock(threads), &rules, &steady(load), 2);
            near(f64::from(found.refused) / f64::from(found.arrived), exact, 0.02);
            assert!(found.queue_max <= places.max(1), "{found:?}");
        }
    }
}

#[test]
fn an_unbounded_queue_grows_and_drains_as_the_rates_say() {
    for overload in [1.5, 2.0, 3.0] {
        let phases = short(overload);
        let of = |figure: fn(&Outcome) -> f64| {
            mean(|seed| figure(&simulated(&lock(8), &WAITS, &phases, seed)))
        };
        // It grows by one hold's share of callers per hold, and drains at half the capacity.
        let grown = (overload - 1.0) * 100.0;
        near(of(|found| found.queue_max.into()), grown, 0.1);
        near(of(|found| found.queue_mean), grown / 2.0, 0.1);
        near(of(|found| found.recovery_ns.unwrap()), 2.0 * grown * HOLD_NS, 0.1);
        // The first callers are in time, until ten wait.
        let in_time = 10.0 * overload / (overload - 1.0);
        near(of(|found| found.in_time.into()), in_time, 0.25);
        let found = simulated(&lock(8), &WAITS, &phases, 1);
        assert_eq!(found.in_time + found.late, found.arrived);
    }
}

#[test]
fn a_bound_and_a_deadline_keep_the_lock_for_callers_in_time() {
    for overload in [1.5, 2.0, 3.0] {
        let phases = short(overload);
        for rules in [Rules { bound: Some(8), ..WAITS }, Rules { gives_up: true, ..WAITS }] {
            let found = simulated(&lock(16), &rules, &phases, 1);
            assert_eq!((found.late, found.in_time > 95), (0, true), "{rules:?}: {found:?}");
            let turned_away = found.refused + found.gave_up;
            assert_eq!(found.in_time + turned_away, found.arrived);
            assert!(found.recovery_ns.unwrap() < 60.0 * HOLD_NS, "{rules:?}: {found:?}");
        }
    }
}

#[test]
fn hand_offs_take_capacity_and_late_threads_lengthen_each_wait() {
    let hand_off = HandOff::fixed(0.1 * HOLD_NS).unwrap();
    let slow = OverloadedLock { hand_off, ..lock(16) };
    let rules = Rules { bound: Some(8), ..WAITS };
    let served = |lock: &OverloadedLock| {
        mean(|seed| {
            let found = simulated(lock, &rules, &short(3.0), seed);
            f64::from(found.in_time)
        })
    };
    near(served(&lock(16)) / served(&slow), 1.1, 0.03);
    // A single thread hands the lock to itself.
    near(served(&OverloadedLock { threads: 1, ..slow.clone() }), served(&lock(16)), 0.01);
    // So do threads that overtake those whom they have woken.
    let overtaking = OverloadedLock { overtaken_share: 1.0, threads: 2, ..slow };
    near(served(&overtaking), served(&lock(16)), 0.02);
    let late = OverloadedLock { late_ns: 0.2 * HOLD_NS, ..lock(4) };
    let queue = |lock: &OverloadedLock| simulated(lock, &WAITS, &steady(0.2), 1).queue_mean;
    assert!(queue(&late) > queue(&lock(4)) + 0.03, "a fifth of a hold, at a fifth of the capacity");
}

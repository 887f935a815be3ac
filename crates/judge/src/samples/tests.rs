use rand::RngExt;

use super::stretches::MAX_STRETCHES;
use super::*;
use crate::simulated::{Program, Run, Times, at, rng};

/// Samples a run, reading `threads_read` random threads each time.
fn sampled(run: &Run, per_s: f64, threads_read: usize, seed: u64) -> LockSamples {
    let mut rng = rng(seed ^ 0xA5);
    let mut samples = LockSamples::default();
    let mut threads: Vec<u32> = (0..run.waits.len() as u32).collect();
    for time in run.instants(per_s, seed) {
        for i in 0..threads_read {
            threads.swap(i, rng.random_range(i..run.waits.len()));
        }
        let weight = run.waits.len() as f64 / threads_read as f64;
        let seen = threads[..threads_read].iter().filter(|&&thread| run.waiting(thread, time));
        let queue = seen.count() as f64 * weight;
        let held = at(&run.holds, time).is_some();
        samples.add(
            time as u64,
            LockSample {
                held: Some(held),
                queue: Some(queue),
                waking: None,
                waiter: weight,
                time: 1.0,
                late: false,
            },
            1,
        );
    }
    samples
}

#[test]
fn intervals_hold_the_figures_of_the_run() {
    let crowded = Program {
        threads: 8,
        hold: 2e-3,
        think: 8e-3,
        hold_times: Times::Exponential,
        think_times: Times::Exponential,
        hand_off: 0.0,
    };
    // Each program, with the numbers of threads that a sample reads.
    let programs: [(Program, &[usize]); 5] = [
        (crowded, &[8, 3, 1]),
        (Program { threads: 64, think: 60e-3, ..crowded }, &[5]),
        (Program { threads: 2, hold: 0.2e-3, hold_times: Times::Fixed, ..crowded }, &[2]),
        (Program { threads: 3, hold: 0.5e-3, think: 50e-3, ..crowded }, &[2]),
        (Program { threads: 16, hold: 10e-3, hold_times: Times::Fixed, ..crowded }, &[4]),
    ];
    for (program, numbers_read) in programs {
        let runs: Vec<Run> = (0..200).map(|seed| program.run(10.0, seed)).collect();
        for threads_read in numbers_read {
            for per_s in [150.0, 1000.0] {
                let (mut held, mut queue) = (0, 0);
                for (seed, run) in (1000..).zip(&runs) {
                    let samples = sampled(run, per_s, *threads_read, seed);
                    held += u64::from(samples.held().known().unwrap().holds(run.held()));
                    queue += u64::from(samples.queue().known().unwrap().holds(run.queue()));
                }
                let of = format!("of 200 at {per_s}/s, {threads_read} read: {program:?}");
                assert!((180..=200).contains(&held), "held in {held} {of}");
                assert!((180..=200).contains(&queue), "queue in {queue} {of}");
            }
        }
    }
}

/// Samples of a lock that becomes known with the first sample that sees a waiter.
fn found_late(
    per_s: f64,
    seconds: f64,
    seed: u64,
    see: impl Fn(f64) -> (bool, f64),
) -> LockSamples {
    let mut rng = rng(seed);
    let (mut own, mut all) = (LockSamples::default(), LockSamples::default());
    let mut found = None;
    for span in 0..(seconds * per_s) as u32 {
        let time = (f64::from(span) + rng.random::<f64>()) / per_s;
        let (held, queue) = see(time);
        found = found.or((queue > 0.0).then_some(time));
        let sample = LockSample {
            held: None,
            queue: Some(0.0),
            waking: None,
            waiter: 1.0,
            time: 1.0 / per_s,
            late: false,
        };
        all.add(time as u64, sample, 1);
        if found.is_some() {
            own.add(time as u64, LockSample { held: Some(held), queue: Some(queue), ..sample }, 1);
        }
    }
    own.among(&all, found.unwrap_or(0.0), seconds)
}

#[test]
fn locks_that_are_found_when_threads_wait_are_not_overrated() {
    // Every 1.1 s, a crowd uses the lock for 0.4 s, and one sample in five shows waiters. Then the
    // last thread of the crowd holds the lock for 0.1 s.
    let (cycle, crowd, last) = (1.1, 0.4, 0.1);
    let (mut inside, mut off, mut naive) = (0, 0.0, 0.0);
    for seed in 0..200 {
        let start = cycle * seed as f64 / 200.0;
        let held = |time: f64| (time + start) % cycle < crowd + last;
        let crowded = |time: f64| (time + start) % cycle < crowd && time * 1e5 % 5.0 < 1.0;
        let queue = |time: f64| if crowded(time) { 15.0 } else { 0.0 };
        let samples = found_late(1000.0, 10.0, seed, |time| (held(time), queue(time)));
        let truth = (0..100_000).filter(|at| held(f64::from(*at) * 1e-4)).count() as f64 / 1e5;
        let read = samples.held().known().unwrap();
        inside += u64::from(read.holds(truth));
        off += (read.value - truth) / 200.0;
        naive += (samples.figure(HELD).known().unwrap().value - truth) / 200.0;
    }
    assert!(naive > 0.008, "the samples with its word alone are off by {naive}");
    assert!(off.abs() < 0.003, "{off}");
    assert!(inside >= 190, "{inside} of 200");
}

#[test]
fn locks_that_are_seldom_waited_for_are_right_about_the_time_before() {
    let rare = Program {
        threads: 3,
        hold: 1e-3,
        think: 50e-3,
        hold_times: Times::Exponential,
        think_times: Times::Exponential,
        hand_off: 0.0,
    };
    let (mut inside, mut runs) = (0, 0);
    for seed in 0..200 {
        let run = rare.run(10.0, seed);
        let queue = |time: f64| (0..3).filter(|&id| run.waiting(id, time)).count() as f64;
        let see = |time: f64| (at(&run.holds, time).is_some(), queue(time));
        let samples = found_late(100.0, 10.0, seed, see);
        let Some(read) = samples.held().known() else { continue };
        runs += 1;
        inside += u64::from(read.holds(run.held()));
    }
    assert!(runs > 150 && inside * 100 >= runs * 94, "{inside} of {runs}");
}

#[test]
fn samples_count_by_the_time_that_they_stand_for() {
    let program = Program {
        threads: 4,
        hold: 2e-3,
        think: 4e-3,
        hold_times: Times::Exponential,
        think_times: Times::Exponential,
        hand_off: 0.0,
    };
    let (mut held, mut queue) = (0, 0);
    for seed in 0..200 {
        // The lock is busy only in the first half; the sampler is slower in the second.
        let run = program.run(5.0, seed);
        let mut samples = LockSamples::default();
        let mut sample = |time: f64, busy: bool, weight: f64| {
            let waiting = (0..4).filter(|&id| busy && run.waiting(id, time)).count();
            let sample = LockSample {
                held: Some(busy && at(&run.holds, time).is_some()),
                queue: Some(waiting as f64),
                waking: None,
                waiter: 1.0,
                time: weight,
                late: false,
            };
            samples.add(time as u64 + if busy { 0 } else { 5 }, sample, 1);
        };
        run.instants(1000.0, seed).into_iter().for_each(|time| sample(time, true, 1e-3));
        run.instants(200.0, seed + 1).into_iter().for_each(|time| sample(time, false, 5e-3));
        held += u32::from(samples.held().known().unwrap().holds(run.held() / 2.0));
        queue += u32::from(samples.queue().known().unwrap().holds(run.queue() / 2.0));
    }
    assert!(held >= 170 && queue >= 170, "held in {held}, queue in {queue} of 200");
}

#[test]
fn a_sample_for_many_instants_tells_no_more_than_one() {
    let (mut each, mut many) = (LockSamples::default(), LockSamples::default());
    for tick in 0..1000 {
        let sample = LockSample {
            held: Some(tick % 3 == 0),
            queue: Some(f64::from(tick % 2)),
            waking: None,
            waiter: 1.0,
            time: 1.0,
            late: false,
        };
        each.add(0, sample, 1);
        many.add(0, LockSample { time: 7.0, ..sample }, 1);
    }
    assert_eq!(each.held(), many.held());
    let (Figure::Known(one), Figure::Known(other)) = (each.queue(), many.queue()) else { panic!() };
    assert!((one.low - other.low).abs() < 1e-12 && (one.high - other.high).abs() < 1e-12);
    let mut batch = LockSamples::default();
    let idle = LockSample {
        held: Some(false),
        queue: Some(0.0),
        waking: None,
        waiter: 1.0,
        time: 1.0,
        late: false,
    };
    batch.add(0, idle, 1000);
    assert!((0.002..0.005).contains(&batch.queue().known().unwrap().high));
}

/// With the probability `kept_waiting`, the sampler gets no CPU until the holder releases the lock.
fn late_samples(run: &Run, kept_waiting: f64, seed: u64) -> LockSamples {
    let mut rng = rng(seed ^ 0x5A);
    let mut samples = LockSamples::default();
    for instant in run.instants(1000.0, seed) {
        let mut time = instant;
        let mut late = false;
        if let Some(hold) = at(&run.holds, instant)
            && rng.random::<f64>() < kept_waiting
        {
            time = hold.end + 1e-6;
            late = true;
        }
        let held = at(&run.holds, time).is_some();
        let waiting = (0..run.waits.len() as u32).filter(|&id| run.waiting(id, time)).count();
        samples.add(
            time as u64,
            LockSample {
                held: Some(held),
                queue: Some(waiting as f64),
                waking: None,
                waiter: 1.0,
                time: 1.0,
                late,
            },
            1,
        );
    }
    samples
}

#[test]
fn late_samples_widen_the_interval_or_withhold_the_figure() {
    let program = Program {
        threads: 8,
        hold: 1e-3,
        think: 10e-3,
        hold_times: Times::Fixed,
        think_times: Times::Exponential,
        // While a waiter is being woken, the lock is free.
        hand_off: 0.1e-3,
    };
    let (mut held, mut queue) = (0, 0);
    for seed in 0..100 {
        let run = program.run(10.0, seed);
        let samples = late_samples(&run, 0.05, seed);
        held += u32::from(samples.held().known().unwrap().holds(run.held()));
        queue += u32::from(samples.queue().known().unwrap().holds(run.queue()));
        let many = late_samples(&run, 0.5, seed);
        assert!(matches!(many.held(), Figure::Withheld(bias) if bias > MAX_BIAS));
        assert_eq!(many.means(), None);
    }
    assert!(held >= 90 && queue >= 90, "held in {held}, queue in {queue} of 100");
}

#[test]
fn samples_without_waiters_need_not_be_added_one_by_one() {
    let (mut each, mut some) = (LockSamples::default(), LockSamples::default());
    let mut all = LockSamples::default();
    for tick in 0..20_000u32 {
        let second = tick / 200;
        let nobody = LockSample {
            held: None,
            queue: Some(0.0),
            waking: Some(0.0),
            waiter: 2.0,
            time: f64::from(tick % 3 + 1),
            late: tick % 11 == 0,
        };
        let mut of_second = LockSamples::default();
        of_second.add(second.into(), nobody, 1);
        all.extend(&of_second);
        // The lock is used for 20 s, which one sample in seven shows.
        if (30..50).contains(&second) && tick % 7 == 0 {
            let queue = Some(f64::from(tick % 3));
            let sample = LockSample { held: Some(tick % 2 == 0), queue, ..nobody };
            each.add(second.into(), sample, 1);
            some.add(second.into(), sample, 1);
        } else {
            each.add(second.into(), nobody, 1);
        }
    }
    let some = some.among(&all, 0.0, 100.0);
    assert_eq!(some.held(), each.held());
    let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    let [one, other] = [&some, &each].map(|samples| samples.queue().known().unwrap());
    assert!(near(one.value, other.value) && near(one.low, other.low), "{one:?} {other:?}");
    let [one, other] = [&some, &each].map(|samples| samples.means().unwrap());
    let parts = |means: Means| means.covariance.into_iter().flatten().chain([means.factor]);
    assert!(parts(one).zip(parts(other)).all(|(one, other)| near(one, other)));
}

#[test]
fn stretches_are_bounded() {
    let mut samples = LockSamples::default();
    let sample = LockSample {
        held: Some(true),
        queue: Some(1.0),
        waking: None,
        waiter: 1.0,
        time: 1.0,
        late: false,
    };
    for second in (0..100_000).step_by(7) {
        samples.add(second, sample, 10);
    }
    assert!(samples.stretches.all.len() <= MAX_STRETCHES);
    let kept: f64 = samples.stretches.all.iter().map(|stretch| stretch.weights[HELD]).sum();
    assert_eq!(kept, samples.on_time.weights[HELD]);
    assert_eq!(samples.held().known().unwrap().value, 1.0);
    samples.add(u64::MAX, sample, 1);
    assert!(samples.stretches.all.len() <= MAX_STRETCHES);
}

#[test]
fn means_follow_the_variance_between_stretches() {
    let mut steady = LockSamples::default();
    let mut phases = LockSamples::default();
    for second in 0..10 {
        for tick in 0..1000 {
            let sample = |held: bool| LockSample {
                held: Some(held),
                queue: Some(f64::from(u8::from(held))),
                waking: None,
                waiter: 1.0,
                time: 1.0,
                late: false,
            };
            steady.add(second, sample(tick % 2 == 0), 1);
            phases.add(second, sample(second % 2 == 0), 1);
        }
    }
    let (steady, phases) = (steady.means().unwrap(), phases.means().unwrap());
    assert!((steady.values[0] - phases.values[0]).abs() < 1e-9);
    assert!(phases.covariance[0][0] > 100.0 * steady.covariance[0][0]);
    assert!(phases.factor > Z95);
}

#[test]
fn a_queue_may_be_given() {
    let mut held = LockSamples::default();
    for nth in 0..1000 {
        let sample = LockSample {
            held: Some(nth % 2 == 0),
            queue: None,
            waking: None,
            waiter: 1.0,
            time: 1.0,
            late: false,
        };
        held.add(nth / 100, sample, 1);
    }
    let unknown = held.with_queue(None, 0.0, 10.0);
    assert_eq!((unknown.queue(), unknown.means()), (Figure::Unknown, None));
    let queue = Estimate { value: 0.8, low: 0.7, high: 0.9 };
    let given = held.with_queue(Some(queue), 0.0, 10.0);
    assert_eq!(given.queue().known(), Some(queue));
    let means = given.means().unwrap();
    assert_eq!(means.values, [0.5, 0.8, 0.0]);
    let error = means.factor * means.covariance[1][1].sqrt();
    assert!((error - 0.1).abs() < 1e-9, "{error}");
}

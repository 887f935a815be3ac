//! Edge cases: huge and tiny numbers, zeros, NaN.

use threadtoll_model::takacs::Takacs;
use threadtoll_model::{
    HandOff, Load, MAX_THREADS, ModelError, Performance, Shape, amdahl, bounds, cores, mva,
    repairman, usl,
};

/// Checks every answer of every model.
#[track_caller]
fn sound(load: Load, threads: u32, locks: u32, answer: Performance) {
    let n = f64::from(threads);
    let limits = bounds::Limits { locks, ..bounds::Limits::default() };
    let bound = bounds::speedup(load, threads, limits).unwrap();
    let Performance { speedup, queue_mean, queue_on_entry, wait_share, throughput_per_s, .. } =
        answer;
    assert!(
        speedup > 0.0 && speedup <= bound * (1.0 + 1e-9),
        "{speedup} over {bound}: {load:?} {threads}"
    );
    assert!((throughput_per_s / 1e9 * load.cycle_ns() / speedup - 1.0).abs() < 1e-9);
    assert!((0.0..=n).contains(&queue_mean), "{queue_mean} of {threads}: {load:?}");
    assert!((0.0..=n - 1.0).contains(&queue_on_entry), "{queue_on_entry} of {threads}: {load:?}");
    assert!((0.0..=1.0).contains(&wait_share));
    // Each thread thinks, holds or waits.
    let all = speedup + queue_mean;
    assert!((all / n - 1.0).abs() < 1e-9, "{all} of {threads}: {load:?}");
}

#[test]
fn every_model_holds_over_50_orders_of_magnitude() {
    for exponent in -25..=25 {
        let ratio = 10f64.powi(exponent);
        let (hold, think) = if ratio < 1.0 { (1e17 * ratio, 1e17) } else { (1e17, 1e17 / ratio) };
        let load = Load::new(hold, think).unwrap();
        for threads in [1, 2, 3, 10, 1000, 100_000] {
            let exponential = repairman::solve(load, threads).unwrap();
            sound(load, threads, 1, exponential);
            assert!(
                exponential.speedup >= amdahl::speedup(load, threads, 1).unwrap() * (1.0 - 1e-12)
            );
            for shape in [
                Shape::fixed(hold),
                Shape::uniform(0.0, 2.0 * hold * 0.5),
                Shape::hyperexponential(hold, 9.0),
                Shape::sampled(&[hold * 0.5, hold * 1.5]),
            ] {
                let shape = shape.unwrap().with_mean(hold).unwrap();
                let model = Takacs::new(&shape, think, threads).unwrap();
                sound(load, threads, 1, model.solve(threads).unwrap());
            }
            sound(load, threads, 1, bounds::fixed_times(load, threads).unwrap());
            sound(load, threads, 7, mva::striped(load, 7, threads).unwrap());
            let few = cores::solve(load, 5, threads).unwrap();
            assert!(few.speedup > 0.0 && few.speedup <= 5.0 * (1.0 + 1e-9));
            assert!(few.queue_mean >= 0.0 && few.queue_on_entry >= 0.0);
        }
    }
}

#[test]
fn two_ways_to_the_same_answer() {
    for threads in [1, 2, 3, 7, 30, 300, 3000] {
        for hold_share in [1e-9, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.9999] {
            let load = crate::share(hold_share);
            let one = repairman::solve(load, threads).unwrap();
            let exponential = Shape::exponential(load.hold_ns()).unwrap();
            let general = Takacs::new(&exponential, load.think_ns(), threads)
                .unwrap()
                .solve(threads)
                .unwrap();
            let striped = mva::striped(load, 1, threads).unwrap();
            let station = mva::Station { visits: 1.0, hold_ns: load.hold_ns() };
            let (solved, _) = mva::solve(&[station], load.think_ns(), threads).unwrap();
            let many_cores = cores::solve(load, threads, threads).unwrap();
            for other in [general, striped, solved, many_cores] {
                let near = |a: f64, b: f64, what: &str| {
                    // In some models queues are differences of nearly equal numbers.
                    let digits = 1e-10 * a.abs() + 1e-12 * f64::from(threads);
                    assert!(
                        (a - b).abs() <= digits,
                        "{what} {a} {b}: {threads} threads, {hold_share} held"
                    );
                };
                near(one.speedup, other.speedup, "speed-up");
                near(one.queue_mean, other.queue_mean, "queue");
                near(one.queue_on_entry, other.queue_on_entry, "queue on entry");
            }
        }
    }
}

#[test]
fn a_tiny_queue_keeps_its_digits() {
    // Two threads meet once in a billion: Lq = 2r²/(1+2r+2r²).
    let r = 1e-9;
    let two = repairman::solve(Load::new(1.0, 1e9).unwrap(), 2).unwrap();
    let exact = 2.0 * r * r / (1.0 + 2.0 * r + 2.0 * r * r);
    assert!((two.queue_mean / exact - 1.0).abs() < 1e-14);
}

#[test]
fn millions_of_threads() {
    let load = Load::new(1.0, 1e6).unwrap();
    let answer = repairman::solve(load, MAX_THREADS).unwrap();
    assert!((answer.speedup - 1_000_001.0).abs() < 1e-6);
    assert!((answer.queue_mean - 8_999_999.0).abs() < 1e-3);
    sound(load, MAX_THREADS, 1, answer);
    let striped = mva::striped(load, 10, MAX_THREADS).unwrap();
    sound(load, MAX_THREADS, 10, striped);
}

#[test]
fn one_of_the_times_may_be_zero() {
    let no_lock = Load::new(0.0, 5.0).unwrap();
    let always = Load::new(5.0, 0.0).unwrap();
    for threads in [1, 2, 50] {
        let n = f64::from(threads);
        for answer in [
            repairman::solve(no_lock, threads),
            Takacs::new(&Shape::fixed(0.0).unwrap(), 5.0, threads).unwrap().solve(threads),
            mva::striped(no_lock, 3, threads),
            mva::striped_by_variation(no_lock, 3, threads, 0.0),
            cores::solve(no_lock, 50, threads),
            bounds::fixed_times(no_lock, threads),
        ] {
            let answer = answer.unwrap();
            assert!((answer.speedup / n - 1.0).abs() < 1e-12 && answer.queue_mean == 0.0);
        }
        for answer in [
            repairman::solve(always, threads),
            Takacs::new(&Shape::fixed(5.0).unwrap(), 0.0, threads).unwrap().solve(threads),
            mva::striped(always, 1, threads),
            mva::striped_by_variation(always, 1, threads, 0.0),
            cores::solve(always, 50, threads),
            bounds::fixed_times(always, threads),
        ] {
            let answer = answer.unwrap();
            assert!((answer.speedup - 1.0).abs() < 1e-12);
            assert!((answer.queue_mean - (n - 1.0)).abs() < 1e-12 * n);
            assert!((answer.queue_on_entry - (n - 2.0).max(0.0)).abs() < 1e-12 * n);
        }
    }
    assert_eq!(bounds::knee(no_lock, bounds::Limits::default()).unwrap(), f64::INFINITY);
}

#[test]
fn what_is_no_time_is_refused() {
    for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e19, 1e-10, f64::MIN_POSITIVE] {
        assert!(matches!(Load::new(bad, 1.0), Err(ModelError::Time { .. })), "{bad}");
        assert!(Load::new(1.0, bad).is_err());
        assert!(Shape::fixed(bad).is_err());
        assert!(Shape::exponential(bad).is_err());
        assert!(Shape::uniform(0.0, bad).is_err());
        assert!(Shape::hyperexponential(bad, 2.0).is_err());
        assert!(Shape::sampled(&[1.0, bad]).is_err());
        assert!(Shape::counted(&[(1.0, 1), (bad, 1)]).is_err());
        assert!(Shape::sampled(&[1.0]).unwrap().with_mean(bad).is_err());
        assert!(HandOff::fixed(bad).is_err());
        assert!(HandOff::curve(&[(1.0, bad)]).is_err());
    }
    assert_eq!(Load::new(0.0, -0.0), Err(ModelError::NoTime));
    assert!(Shape::uniform(2.0, 1.0).is_err());
    assert!(Shape::hyperexponential(1.0, 0.5).is_err());
    assert!(Shape::hyperexponential(1.0, f64::NAN).is_err());
    assert!(Shape::sampled(&[]).is_err());
    assert!(Shape::counted(&[(1.0, 0)]).is_err());
    assert!(Shape::fixed(0.0).unwrap().with_mean(1.0).is_err());
    assert!(HandOff::curve(&[]).is_err());
}

#[test]
fn what_is_no_number_of_threads_is_refused() {
    let load = Load::new(1.0, 1.0).unwrap();
    for threads in [0, MAX_THREADS + 1, u32::MAX] {
        assert!(repairman::solve(load, threads).is_err());
        assert!(amdahl::speedup(load, threads, 1).is_err());
        assert!(bounds::speedup(load, threads, bounds::Limits::default()).is_err());
        assert!(bounds::fixed_times(load, threads).is_err());
        assert!(cores::solve(load, 1, threads).is_err());
        assert!(mva::striped(load, 1, threads).is_err());
        assert!(mva::striped_by_variation(load, 1, threads, 1.0).is_err());
        assert!(Takacs::new(&Shape::fixed(1.0).unwrap(), 1.0, threads).is_err());
    }
    assert!(mva::striped(load, 0, 1).is_err());
    assert!(mva::striped_by_variation(load, 0, 1, 1.0).is_err());
    assert!(mva::striped_by_variation(load, 1, 1, -1.0).is_err());
    assert!(cores::solve(load, 0, 1).is_err());
    assert!(amdahl::speedup(load, 1, 0).is_err());
    assert!(mva::solve(&[], 1.0, 1).is_err());
    assert!(mva::solve(&[mva::Station { visits: -1.0, hold_ns: 1.0 }], 1.0, 1).is_err());
    let model = Takacs::new(&Shape::fixed(1.0).unwrap(), 1.0, 4).unwrap();
    assert!(model.solve(5).is_err());
}

#[test]
fn errors_say_what_was_wrong() {
    assert_eq!(
        Load::new(-3.0, 1.0).unwrap_err().to_string(),
        "the hold time must be 0 or between 1e-9 and 1e18 ns, not -3"
    );
    assert_eq!(
        repairman::solve(Load::new(1.0, 1.0).unwrap(), 0).unwrap_err().to_string(),
        "the number of threads must be from 1 to 10000000, not 0"
    );
}

#[test]
fn a_curve_needs_points_to_go_through() {
    assert!(matches!(usl::fit(&[(1, 1.0), (2, 2.0), (2, 2.1)]), Err(ModelError::TooFew { .. })));
    assert!(usl::fit(&[(1, 1.0), (2, f64::NAN), (3, 1.0)]).is_err());
    assert!(usl::fit(&[(1, 1.0), (2, -1.0), (3, 1.0)]).is_err());
    assert!(usl::fit(&[(0, 1.0), (2, 1.0), (3, 1.0)]).is_err());
}

#[test]
fn a_curve_finds_its_own_coefficients_again() {
    for (gamma, alpha, beta) in [
        (995.6, 0.02671, 0.000769),
        (1.0, 0.0, 0.0),
        (1e9, 0.5, 0.01),
        (3.0, 0.1, 0.0),
        (7.0, 0.0, 0.02),
    ] {
        let curve = |n: f64| gamma * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
        let points: Vec<(u32, f64)> = (1..=40).map(|n| (n, curve(f64::from(n)))).collect();
        let fit = usl::fit(&points).unwrap();
        assert!((fit.gamma / gamma - 1.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.alpha - alpha).abs() < 1e-6 && (fit.beta - beta).abs() < 1e-7, "{fit:?}");
        assert!(fit.relative_rms < 1e-6);
    }
}

#[test]
fn a_curve_is_highest_where_no_other_number_of_threads_does_more() {
    for alpha in [0.0, 0.01, 0.5, 0.999, 1.0, 1.5] {
        for beta in [0.0, 1e-6, 0.001, 0.01, 0.3, 2.0] {
            let fit = usl::Fit {
                gamma: 10.0,
                alpha,
                beta,
                relative_rms: 0.0,
                peak_threads: None,
                trusted_up_to: 64,
            };
            let highest = (1..=65u32)
                .rev()
                .max_by(|one, other| fit.throughput(*one).total_cmp(&fit.throughput(*other)));
            assert_eq!(fit.highest(), highest.filter(|best| *best <= 64), "{fit:?}");
        }
    }
}

#[test]
fn a_peak_is_claimed_only_if_the_points_beyond_it_show_a_fall() {
    let threads = [1u32, 2, 4, 6, 8, 12, 16];
    let peak = |throughputs: &[f64]| {
        let points: Vec<(u32, f64)> =
            threads.into_iter().zip(throughputs.iter().copied()).collect();
        usl::fit(&points).unwrap().peak_threads
    };
    let real = peak(&[100.0, 190.0, 340.0, 400.0, 395.0, 330.0, 270.0]);
    assert!((6..=8).contains(&real.unwrap()), "{real:?}");
    for level in [
        // The curve falls after about 7 threads, but by less than it misses the points.
        &[100.0, 190.0, 350.0, 360.0, 355.0][..],
        // It is highest beyond all points.
        &[100.0, 190.0, 340.0],
        // It runs through all points, so nothing is known about their errors.
        &[100.0, 150.0, 145.0],
        // The last point is as high as any.
        &[100.0, 190.0, 350.0, 360.0, 340.0, 362.0],
    ] {
        assert_eq!(peak(level), None, "{level:?}");
    }
}

#[test]
fn mean_numbers_of_busy_threads_are_fitted_like_others() {
    let curve = |n: f64| 1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.01 * n * (n - 1.0));
    let points: Vec<(f64, f64)> =
        [0.5, 1.7, 3.9, 8.2, 15.1, 29.6].into_iter().map(|n| (n, curve(n))).collect();
    let fit = usl::fit(&points).unwrap();
    assert!((fit.alpha - 0.05).abs() < 1e-6 && (fit.beta - 0.01).abs() < 1e-7, "{fit:?}");
    assert_eq!((fit.peak_threads, fit.trusted_up_to), (Some(10), 59));
    for threads in [0.0, -1.0, 2e7, f64::NAN, f64::INFINITY] {
        assert!(usl::fit(&[(threads, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]).is_err());
    }
}

#[test]
fn a_hand_off_curve_is_read_between_its_points() {
    let curve = HandOff::curve(&[(1e6, 30.0), (1e3, 10.0), (0.0, 5.0)]).unwrap();
    for (idle, hand_off) in [
        (0.0, 5.0),
        (500.0, 7.5),
        (1e3, 10.0),
        (31_622.776_601_683_795, 20.0),
        (1e6, 30.0),
        (1e12, 30.0),
    ] {
        assert!((curve.after(idle) - hand_off).abs() < 1e-9, "{idle}");
    }
    assert_eq!(HandOff::curve(&[(1e3, 10.0)]).unwrap().after(1.0), 10.0);
    assert_eq!(HandOff::free().after(0.0), 0.0);
    assert!(HandOff::free().is_free() && !curve.is_free());
    let with_cost = HandOff::free().with_wake_cost(&[(1e3, 2.0), (1e6, 8.0)]).unwrap();
    assert!(!with_cost.is_free());
    assert!((with_cost.wake_cost(31_622.776_601_683_795) - 5.0).abs() < 1e-9);
    assert_eq!(curve.wake_cost(1e3), 0.0);
}

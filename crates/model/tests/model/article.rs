//! A pool of threads behind a fair lock, as published (A. Sukhovitsky): 1,000 tasks, each 5 ms of
//! sleep under the lock and 95 ms outside it. Two published figures, the time per task at
//! saturation and the time of one thread, give the hold time (6.25 ms: sleeps overshoot, hand-offs
//! cost) and the think time (99.45 ms). The others are predicted.

use threadtoll_model::choose::{Model, Options};
use threadtoll_model::simulate::{self, Locks, System};
use threadtoll_model::{Shape, Workload, predict};

/// Threads, total time in ms, mean queue as read by each task just after it acquired the lock.
const PUBLISHED: [(u32, f64, f64); 7] = [
    (1, 105_729.0, 0.0),
    (5, 21_047.0, 0.0),
    (10, 10_605.0, 0.0),
    (16, 6_718.0, 0.0),
    (20, 6_252.0, 2.63),
    (25, 6_259.0, 7.5),
    (32, 6_259.0, 14.36),
];

const MS: f64 = 1e6;

fn pool(threads: u32, hold: Shape, think: Shape) -> System {
    System { threads, think, locks: vec![Locks::one(hold)], cores: None }
}

/// Think times uniform within 3 ms of the mean.
fn jittered() -> Shape {
    Shape::uniform(96.45 * MS, 102.45 * MS).unwrap()
}

#[test]
fn fixed_times_give_total_and_queue() {
    let workload =
        Workload::new(Shape::fixed(6.25 * MS).unwrap(), Shape::fixed(99.45 * MS).unwrap());
    let threads: Vec<u32> = PUBLISHED.iter().map(|row| row.0).collect();
    let options = Options { tasks: Some(1000), ..Options::default() };
    let prediction = predict(&workload, &threads, options).unwrap();
    for (row, (threads, total_ms, queue)) in prediction.rows.iter().zip(PUBLISHED) {
        let off = row.total_s.unwrap() * 1000.0 / total_ms - 1.0;
        assert!(off.abs() < 0.03, "{threads} threads: total off by {:.1}%", off * 100.0);
        assert!(
            (row.queue_on_entry - queue).abs() < 0.75,
            "{threads} threads: {} against {queue}",
            row.queue_on_entry
        );
    }
    assert!((prediction.knee.unwrap() - 16.9).abs() < 0.05);
}

#[test]
fn jitter_of_the_think_time_gives_the_queue() {
    for (threads, total_ms, queue) in PUBLISHED {
        let system = pool(threads, Shape::fixed(6.25 * MS).unwrap(), jittered());
        let report = simulate::tasks(&system, 1000, 100, 1).unwrap();
        let off = report.total_s.unwrap().value * 1000.0 / total_ms - 1.0;
        assert!(off.abs() < 0.03, "{threads} threads: total off by {:.1}%", off * 100.0);
        let found = report.queue_on_entry;
        assert!((found.value - queue).abs() < 0.3, "{threads} threads: {found:?} against {queue}");
    }
}

#[test]
fn jitter_as_simulated_by_another_program() {
    for (threads, on_entry, mean) in [(20, 2.71, 3.15), (25, 7.67, 8.06), (32, 14.60, 14.85)] {
        let system = pool(threads, Shape::fixed(6.25 * MS).unwrap(), jittered());
        let runs = 100u32;
        let report = simulate::tasks(&system, 1000, runs, 1).unwrap();
        // The article has a single run, with two digits: use the interval of one run.
        let single = f64::from(runs).sqrt();
        for (found, printed) in [(report.queue_on_entry, on_entry), (report.queue_mean, mean)] {
            let off = (found.value - printed).abs();
            assert!(
                off <= found.half_width * single + 0.005,
                "{threads} threads: {found:?} against {printed}"
            );
        }
    }
}

#[test]
fn nominal_times_are_those_of_busy_work() {
    // With busy work instead of sleep the article read 0.17 at 20 threads: the start, when all
    // request the lock at once.
    let system = pool(20, Shape::fixed(5.0 * MS).unwrap(), Shape::fixed(95.0 * MS).unwrap());
    let report = simulate::tasks(&system, 1000, 1, 1).unwrap();
    crate::rounds_to(report.queue_on_entry.value, 0.17, 2);
}

#[test]
fn totals_of_nominal_times_simulated_elsewhere() {
    let table = [
        (1, 100.0, 0.0),
        (5, 20.02, 0.0),
        (10, 10.045, 0.0),
        (16, 6.335, 0.1),
        (20, 5.095, 0.2),
        (25, 5.095, 5.1),
        (32, 5.095, 11.9),
    ];
    for (threads, total_s, queue) in table {
        let system =
            pool(threads, Shape::fixed(5.0 * MS).unwrap(), Shape::fixed(95.0 * MS).unwrap());
        let report = simulate::tasks(&system, 1000, 1, 1).unwrap();
        assert!((report.total_s.unwrap().value - total_s).abs() < 1e-9);
        crate::rounds_to(report.queue_mean.value, queue, 1);
    }
}

#[test]
fn the_answer_names_its_model() {
    let workload = Workload::new(Shape::fixed(5.0 * MS).unwrap(), Shape::fixed(95.0 * MS).unwrap());
    let options = Options { tasks: Some(1000), ..Options::default() };
    let row = &predict(&workload, &[16], options).unwrap().rows[0];
    assert_eq!(row.model, Model::Simulation);
    crate::rounds_to(row.speedup, 15.8, 1);
    crate::rounds_to(row.throughput_per_s, 158.0, 0);
    crate::rounds_to(row.queue_mean, 0.1, 1);
    crate::rounds_to(row.queue_on_entry, 0.1, 1);
    crate::rounds_to(row.wait_share, 0.01, 2);
    crate::rounds_to(row.total_s.unwrap(), 6.33, 2);
    crate::rounds_to(row.bound, 16.0, 1);
    crate::rounds_to(row.amdahl, 9.14, 2);
}

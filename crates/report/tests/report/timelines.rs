//! Timelines of locks on a page.

use threadtoll_record::file::{GroupState, Results};
use threadtoll_record::*;
use threadtoll_report::html::page;

use crate::fixture;
use crate::locks::{COMPUTING, Measured};

/// Time for which a thread of a timeline holds its lock, and works after that.
const HOLD_NS: u64 = 10_000;
const WORK_NS: u64 = 5_000;

/// Threads that hold the lock in turn, each waiting for it most of the time.
fn in_turn(cell: usize, threads: u64, holds: u64) -> Timeline {
    let mut acquisitions = vec![Vec::new(); threads as usize];
    for nth in 0..holds {
        let before = nth.checked_sub(threads).map_or(0, |nth| (nth + 1) * HOLD_NS + WORK_NS);
        let moments = [before, nth * HOLD_NS, (nth + 1) * HOLD_NS].map(Count::from);
        acquisitions[(nth % threads) as usize].push(moments);
    }
    Timeline {
        run: "7".into(),
        group: 0,
        attempt: 1,
        cell,
        seq: 0,
        clean: true,
        elapsed_ns: (holds * HOLD_NS).into(),
        acquisitions,
    }
}

/// Cells with these hold shares and numbers of threads on four CPUs, each with a timeline.
fn contended(cells: &[(f64, u32)]) -> Results {
    let survey = fixture::survey();
    let template = survey.records().remove(0);
    let records: Vec<Record> = cells
        .iter()
        .map(|(hold_share, threads)| {
            let cell = Measured { hold_share: *hold_share, threads: *threads, ..COMPUTING };
            Record { group: 0, ..cell.record(&template) }
        })
        .collect();
    let budget = survey.plan.groups[0][0].budget;
    let planned =
        |record: &Record| PlannedCell::new(record.experiment.clone(), record.cell.clone(), budget);
    let plan = Plan { groups: vec![records.iter().map(planned).collect()], ..survey.plan };
    let mut results = Results::empty(survey.machine, plan);
    let timelines = cells.iter().enumerate();
    results.groups[0] = GroupState {
        attempts: 1,
        records: Some(records),
        timelines: timelines
            .map(|(cell, (_, threads))| in_turn(cell, (*threads).into(), 300))
            .collect(),
        ..GroupState::default()
    };
    results
}

#[test]
fn a_row_for_each_thread_and_a_sentence_from_the_same_events() {
    let results = contended(&[(0.5, 8)]);
    let page = page(&[results], &[]);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("timeline.html");
    std::fs::write(path, &page).unwrap();
    let sentence = "8 threads, one lock, the first 330 µs of one measurement: at each moment one thread holds it, 6.5 wait and 0.5 work.";
    assert!(page.contains(&format!("<p>{sentence}</p>")), "{page}");
    assert_eq!(page.matches(" holds, 10.0 µs<").count(), 33);
    assert_eq!(page.matches(" works, 5.00 µs<").count(), 32);
    assert!(page.contains("<title>thread 8 waits, 70.0 µs<"), "{page}");
    assert!(page.contains(">thread 8</text>") && !page.contains("thread 9"));
}

#[test]
fn the_lock_held_half_of_the_time_comes_first_and_two_others_are_folded() {
    let results =
        contended(&[(0.05, 2), (0.1, 4), (0.5, 2), (0.5, 4), (0.5, 9), (0.8, 4), (0.9, 4)]);
    let whole = page(std::slice::from_ref(&results), &[]);
    assert!(whole.contains("<h2>Timeline: std-mutex, 4 threads, hold 33.3 µs, think 33.3 µs</h2>"));
    let folded: Vec<&str> = whole.split("<summary>std-mutex, ").skip(1).collect();
    assert!(folded[0].starts_with("4 threads, hold 60.0 µs, think 6.67 µs<"), "{}", folded[0]);
    assert!(folded[1].starts_with("2 threads, hold 3.33 µs, think 63.3 µs<"), "{}", folded[1]);
    assert_eq!(folded.len(), 2);
    assert!(whole.len() < 150_000, "{}", whole.len());

    let mut disturbed = results.clone();
    disturbed.groups[0].timelines.retain(|timeline| timeline.cell == 3);
    disturbed.groups[0].timelines[0].clean = false;
    let of_one = page(&[disturbed.clone()], &[]);
    assert!(of_one.contains("work. The measurement was disturbed.</p>"), "{of_one}");
    disturbed.groups[0].timelines.clear();
    assert!(!page(&[disturbed], &[]).contains("<h2>Timeline"));
}

#[test]
fn no_timeline_makes_a_page_fail_or_explode() {
    let mut results = contended(&[(0.5, 4), (0.4, 64)]);
    let [first, second] = &mut results.groups[0].timelines[..] else { unreachable!() };
    let odd = [u64::MAX, 0, 7, u64::MAX - 1].map(Count::from);
    for thread in &mut first.acquisitions {
        *thread = odd.iter().map(|at| [*at, odd[1], odd[3]]).collect();
    }
    first.elapsed_ns = u64::MAX.into();
    second.acquisitions = vec![vec![[0, 0, u64::MAX].map(Count::from)]; 1 << 16];
    let mut nothing = in_turn(7, 2, 0);
    nothing.elapsed_ns = 0.into();
    results.groups[0].timelines.push(nothing.clone());
    let evil = page(&[results.clone()], &[]);
    assert!(
        evil.len() < 400_000 && !evil.contains("NaN") && !evil.contains("inf%"),
        "{}",
        evil.len()
    );
    assert!(evil.contains("Only the first 64 threads are drawn."));
    results.groups[0].timelines = vec![Timeline { cell: 0, ..nothing }];
    page(&[results], &[]);
}

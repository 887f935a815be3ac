//! First screens of machines of any size: within 24 lines of 80 columns.

use threadtoll_record::comparison::compare;
use threadtoll_record::file::Results;
use threadtoll_record::profile::Lock;
use threadtoll_record::{Placement, Record, Subject};
use threadtoll_report::text::{self, Style};

use crate::fixture;
use crate::locks::{COMPUTING, Measured};
use crate::profiles;

const MACHINES: [u32; 3] = [1, 16, 500];
const STYLE: Style = Style { color: false, width: Some(80) };

/// Returns its lines, after checking their number and length.
fn fits(text: &str, cpus: u32) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    assert!((4..=24).contains(&lines.len()), "{cpus} CPUs: {} lines\n{text}", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{cpus} CPUs:\n{text}");
    lines
}

/// The screen of records as if they had been measured on a machine with this number of CPUs.
fn screen(mut results: Results, records: &[Record], cpus: u32) -> String {
    results.machine = fixture::machine(cpus);
    let text = text::screen(&results, records, &STYLE);
    assert!(fits(&text, cpus)[0].contains(" · machine grade B of A–D"), "{text}");
    text
}

fn powers_of_two_below(limit: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|power| 1u32 << power).take_while(move |number| *number < limit)
}

/// The records as if the ends of each had also been pinned to farther CPUs of such a machine.
fn on_more_pairs(records: &[Record], cpus: u32) -> Vec<Record> {
    let machine = fixture::machine(cpus);
    let mut all = Vec::new();
    for record in records {
        if record.cell.placement != Placement::Pinned || record.cell.cpus.len() != 2 {
            all.push(record.clone());
            continue;
        }
        for other in powers_of_two_below(cpus) {
            let mut record = record.clone();
            record.cell.cpus = vec![0, other];
            record.cell.relation = fixture::relation(&machine, 0, other);
            all.push(record);
        }
    }
    all
}

#[test]
fn hand_offs_on_any_machine() {
    for cpus in MACHINES {
        let results = fixture::survey();
        let mut records = results.records();
        records.retain(|record| cpus > 1 || record.cell.cpus.len() == 1);
        let records = on_more_pairs(&records, cpus);
        let text = screen(results, &records, cpus);
        assert_eq!(text.contains("Only one CPU is allowed"), cpus == 1, "{text}");
        assert_eq!(text.contains("Passing a cache line takes 50.9 ns, waking"), cpus > 1, "{text}");
    }
}

#[test]
fn pairs_of_cpus_on_any_machine() {
    for (cpus, shaded) in [(2, false), (16, true), (500, true)] {
        let results = fixture::matrix(cpus);
        let records = results.records();
        let text = screen(results, &records, cpus);
        assert_eq!(text.contains("██"), shaded, "{text}");
    }
}

#[test]
fn queues_on_any_machine() {
    for cpus in MACHINES {
        let results = fixture::queues();
        let mut records = results.records();
        for record in records.iter_mut().filter(|_| cpus == 1) {
            record.cell.placement = Placement::SameCpu;
            record.cell.cpus = vec![0];
        }
        let text = screen(results, &records, cpus);
        assert!(text.contains("If the receiver may sleep, take pipe, adaptive"), "{text}");
    }
}

#[test]
fn streams_of_many_senders() {
    for cpus in [16, 500] {
        let results = fixture::queues();
        let mut records = results.records();
        records.retain(|record| record.experiment.to_string() == "queue/stream");
        let senders = |record: &Record| record.cell.queue().map(|queue| queue.senders);
        let mut more = Vec::new();
        for record in records.iter().filter(|record| senders(record) == Some(2)) {
            for number in powers_of_two_below(cpus).filter(|number| *number > 2) {
                let mut record = record.clone();
                if let Subject::Queue(queue) = &mut record.cell.subject {
                    queue.senders = number;
                }
                more.push(record);
            }
        }
        records.extend(more);
        let text = screen(results, &records, cpus);
        assert!(text.contains("take crossbeam-unbounded, poll: not beaten"), "{text}");
    }
}

#[test]
fn locks_on_any_machine() {
    for cpus in MACHINES {
        let results = fixture::survey();
        let template = results.records().remove(0);
        let threads: Vec<u32> = (0..12).map(|power| 1 << power).collect();
        let threads = threads.into_iter().filter(|threads| *threads <= 2 * cpus.max(2));
        let shares = (1..=12).map(|twelfths| f64::from(twelfths) / 12.0);
        let cells = threads.flat_map(|threads| shares.clone().map(move |share| (threads, share)));
        let cell = |(threads, hold_share): (u32, f64)| {
            let speedup = f64::from(threads.min(cpus)).min(1.0 / hold_share);
            let cell = Measured { threads, hold_share, speedup, ..COMPUTING };
            Record { group: 0, ..cell.record(&template) }
        };
        let records: Vec<Record> = cells.map(cell).collect();
        let text = screen(results, &records, cpus);
        assert!(text.contains("threads × hold share"), "{text}");
    }
}

#[test]
fn comparisons_on_any_machine() {
    for cpus in MACHINES {
        let mut runs = [fixture::survey(), fixture::survey()];
        for (nth, run) in runs.iter_mut().enumerate() {
            run.machine = fixture::machine(cpus);
            run.machine.run = format!("run-{nth}").into();
            run.machine.at = format!("2026-11-21T1{nth}:00:00.000Z").into();
        }
        let [base, new] = &runs;
        let compared = compare(base, new, 5.0).unwrap();
        let text = text::comparison_screen(&compared, &STYLE);
        assert!(fits(&text, cpus)[1].starts_with("Of "), "{text}");
    }
}

#[test]
fn checks_of_any_machine() {
    for cpus in MACHINES {
        let text = text::machine_screen(&fixture::machine(cpus), &STYLE);
        assert!(fits(&text, cpus)[1].starts_with("Grade B of A–D: "), "{text}");
    }
}

#[test]
fn profiles_on_any_machine() {
    for cpus in MACHINES {
        let locks = (0..cpus).map(|id| {
            let name = format!("shard_lock_{id} of a cache with a long name");
            Lock { id, name: name.into(), ..profiles::saturated() }
        });
        let time = profiles::time([0.2, 0.0, 0.8, 0.0, 0.0], &[]);
        let mut profile = profiles::profile(&["cached", "--shards"], time, locks.collect());
        profile.machine = Some(Box::new(fixture::machine(cpus)));
        let text = text::first_screen(&profile, "", &STYLE);
        assert!(fits(&text, cpus).len() > 6, "{text}");
    }
}

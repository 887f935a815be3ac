//! First screens of machines of any size: within 24 lines of 80 columns.

use threadtoll_record::file::Results;
use threadtoll_record::{Placement, Record};
use threadtoll_report::text::{self, Style};

use crate::fixture;
use crate::locks::{COMPUTING, Measured};

const MACHINES: [u32; 3] = [1, 16, 500];

/// The screen of records as if they had been measured on a machine with this number of CPUs.
fn screen(mut results: Results, records: &[Record], cpus: u32) -> String {
    results.machine = fixture::machine(cpus);
    let text = text::screen(&results, records, &Style { color: false, width: Some(80) });
    let lines: Vec<&str> = text.lines().collect();
    assert!((4..=24).contains(&lines.len()), "{cpus} CPUs: {} lines\n{text}", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{cpus} CPUs:\n{text}");
    let title = format!(" · grade B · {cpus} CPU");
    assert!(lines[0].contains(&title), "the title has one line: {text}");
    text
}

#[test]
fn hand_offs_on_any_machine() {
    for cpus in MACHINES {
        let results = fixture::survey();
        let mut records = results.records();
        records.retain(|record| cpus > 1 || record.cell.cpus.len() == 1);
        let text = screen(results, &records, cpus);
        assert_eq!(text.contains("Only one CPU is allowed"), cpus == 1, "{text}");
        assert_eq!(text.contains("A cache line takes 50.9 ns, waking"), cpus > 1, "{text}");
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

//! Findings on locks.

use threadtoll_record::*;
use threadtoll_report::text::{self, Style};

use crate::fixture;

const WIDE: Style = Style { color: false, width: None };

/// The cycle of a thread that takes its lock 15,000 times per second of work.
const CYCLE_NS: u64 = 66_667;

pub(crate) struct Measured {
    pub(crate) scenario: &'static str,
    pub(crate) threads: u32,
    pub(crate) hold_share: f64,
    pub(crate) cycle_ns: u64,
    pub(crate) work: Work,
    pub(crate) speedup: f64,
}

pub(crate) const COMPUTING: Measured = Measured {
    scenario: "hold-sweep",
    threads: 2,
    hold_share: 0.1,
    cycle_ns: CYCLE_NS,
    work: Work::Spin,
    speedup: 1.0,
};

impl Measured {
    /// Measured on four CPUs, with an interval of ±1%.
    pub(crate) fn record(&self, template: &Record) -> Record {
        let hold_ns = (self.cycle_ns as f64 * self.hold_share).round() as u64;
        let subject = LockSubject {
            lock: "std-mutex".into(),
            threads: self.threads,
            work: self.work,
            spread: Spread::Exponential,
            hold_ns,
            think_ns: self.cycle_ns - hold_ns,
            read_share: None,
            tasks: None,
            overload: None,
        };
        let contention = Contention {
            threads: self.threads,
            hold_share: Some(self.hold_share.into()),
            locks_per_s: (1e9 / self.cycle_ns as f64).into(),
            speedup: Some(self.speedup.into()),
            speedup_interval95: Some([0.99, 1.01].map(|off| (off * self.speedup).into())),
            without_lock: None,
            without_lock_interval95: None,
            wait_share: None,
            queue_mean: None,
            queue_on_entry: None,
            queue_told: None,
            queue_max: None,
            fairness: None,
            starved_ns: None,
            handoff_ns: None,
            hold_ns: None,
            hold_ns_interval95: None,
            think_ns: None,
            think_ns_interval95: None,
            total_s: None,
            total_s_interval95: None,
            overload: None,
            predicted: None,
        };
        let total = |off: f64| (off * 1000.0 / self.speedup).into();
        let contention = match self.scenario {
            "pool" => Contention {
                total_s: Some(total(1.0)),
                total_s_interval95: Some([0.99, 1.01].map(total)),
                ..contention
            },
            _ => contention,
        };
        Record {
            experiment: Experiment::Contention(self.scenario.into()),
            cell: Cell {
                subject: Subject::Lock(subject),
                cpus: vec![0, 1, 2, 3],
                ..template.cell.clone()
            },
            kind: RecordKind::Wait,
            one_way: None,
            against: Vec::new(),
            figures: Figures::Contention { contention },
            ..template.clone()
        }
    }
}

fn findings(cells: &[Measured]) -> String {
    let results = fixture::survey();
    let template = results.records().remove(0);
    let records: Vec<Record> = cells.iter().map(|cell| cell.record(&template)).collect();
    text::findings(&results, &records, &WIDE)
}

#[test]
fn a_number_of_threads_is_enough_up_to_the_most_measured() {
    let pool = |threads, speedup| Measured { scenario: "pool", threads, speedup, ..COMPUTING };
    let text = findings(&[pool(1, 1.0), pool(2, 1.9), pool(4, 3.0), pool(8, 3.01)]);
    assert!(text.contains("std-mutex: 4 threads do all tasks in"), "{text}");
    assert!(text.contains("more threads (up to 8 were measured) gain less than 5%."), "{text}");
}

#[test]
fn claims_are_judged_where_their_article_measured() {
    let says = |cell: Measured, claim: &str| findings(&[cell]).contains(claim);
    let below_1 = "J. Preshing (2011), speed-up below 1 if more than 90% of the work is done with the lock held";
    let long = |hold_share| Measured { hold_share, speedup: 0.9, ..COMPUTING };
    assert!(says(long(0.95), below_1));
    assert!(!says(long(0.9), below_1), "90% is not above 90%");
    assert!(!says(Measured { threads: 5, ..long(0.95) }, below_1), "on four CPUs");
    assert!(!says(Measured { work: Work::Sleep, ..long(0.95) }, below_1));
    let perfect = "J. Preshing (2011), almost perfect speed-up";
    assert!(says(Measured { threads: 4, ..COMPUTING }, perfect));
    assert!(!says(Measured { cycle_ns: 10_000, ..COMPUTING }, perfect), "100,000 per second");
    for threads in [2, 64] {
        let sleeping = Measured { threads, work: Work::Sleep, ..COMPUTING };
        assert!(!says(sleeping, perfect), "{threads} that sleep");
    }
}

#[test]
fn predictions_are_judged_by_cells_that_were_not_disturbed() {
    let results = fixture::survey();
    let template = results.records().remove(0);
    let predicted = |speedup: f64, disturbed: bool| {
        let mut record = COMPUTING.record(&template);
        record.disturbance.disturbed = u32::from(disturbed) * record.disturbance.blocks;
        let Figures::Contention { contention } = &mut record.figures else { unreachable!() };
        contention.predicted = Some(CellPrediction {
            run: "7".into(),
            group: 0,
            attempt: 1,
            cell: 0,
            at: "2026-11-21T10:00:00.000Z".into(),
            refused: None,
            model: Some("repairman".into()),
            why: None,
            speedup: Some(speedup.into()),
            speedup_interval95: Some([0.9.into(), 1.1.into()]),
            wait_share: None,
            queue_mean: None,
            queue_mean_interval95: None,
            queue_on_entry: None,
            total_s: None,
            from: None,
            overload: None,
        });
        record
    };
    let told = |records: [Record; 2]| text::findings(&results, &records, &WIDE);
    let text = told([predicted(1.1, false), predicted(2.0, true)]);
    assert!(
        text.contains(
            "predicted 1 undisturbed figure; they were off by 10% on average, 10% at worst."
        ),
        "{text}"
    );
    let text = told([predicted(1.1, true), predicted(2.0, true)]);
    assert!(
        text.contains("predicted 2 figures; they were off by 55% on average, 100% at worst."),
        "{text}"
    );
}

//! Overloaded locks: figures worked out by hand, and blocks that do not match their cells.

use threadtoll_record::{
    Block, BlockFigures, BlockKind, Budget, Cell, ContentionBlock, Experiment, Figures, Histogram,
    LockSubject, LoopKind, Overload, OverloadBlock, OverloadFigures, Plan, PlannedCell, Record,
    Scale, Spread, Subject, Work, fold,
};

use crate::fixture::{AT, cell, machine, plan, stretches};

fn subject(overload: Option<Overload>) -> LockSubject {
    LockSubject {
        lock: "std-mutex".into(),
        threads: 2,
        work: Work::Sleep,
        spread: Spread::Fixed,
        hold_ns: 5_000_000,
        think_ns: 0,
        read_share: None,
        tasks: None,
        overload,
    }
}

fn overload() -> Overload {
    Overload {
        arrivals: Scale::new(2.0).unwrap(),
        bound: None,
        deadline_ns: 50_000_000,
        gives_up: false,
        by_lock: false,
    }
}

/// A reference and an overloaded lock.
fn plan_of(rounds: u32) -> Plan {
    let mut plan = plan(rounds, &[&["atomic-store"]]);
    let budget = Budget { rounds, stretch_ns: 0, stamped_ns: 300_000_000, stamped_count: None };
    let subject = Subject::Lock(subject(Some(overload())));
    let cell = Cell { subject, payload_bytes: 0, ..cell("none") };
    let experiment = Experiment::contention("overload");
    plan.groups[0].push(PlannedCell::new(experiment, cell, budget));
    plan
}

/// A block with this share of 100 callers in time, and this recovery.
fn block(seq: u32, in_time: u64, recovery_ns: Option<f64>) -> Block {
    let mut lateness = Histogram::new();
    (0..50).for_each(|nth| lateness.record_ps(nth * 1_000_000));
    let overload = OverloadBlock {
        arrived: 100.into(),
        in_time: in_time.into(),
        late: (90 - in_time).into(),
        refused: 10.into(),
        gave_up: 0.into(),
        in_front: 20.into(),
        queue_mean: (f64::from(seq) + 4.0).into(),
        queue_max: 30 + seq,
        recovery_ns: recovery_ns.map(Into::into),
        hold_ns: 5_100_000.0.into(),
        overload_ns: [50_000_000.into(), 150_000_000.into()],
        length_ns: 300_000_000.into(),
        queue: vec![0.0.into(), f64::from(seq).into(), 1.0.into()],
        lateness,
    };
    let contention = ContentionBlock {
        work: 1e6.into(),
        acquisitions: vec![60.into(), 40.into()],
        overload: Some(Box::new(overload)),
        ..ContentionBlock::default()
    };
    Block {
        kind: BlockKind::Stamped,
        count: 100.into(),
        elapsed_ns: 300_000_000.into(),
        figures: BlockFigures::Contention { contention },
        ..stretches(1, seq, &[100.0])
    }
}

fn folded(blocks: impl IntoIterator<Item = (u64, Option<f64>)>) -> Record {
    let blocks: Vec<Block> = (0..)
        .zip(blocks)
        .flat_map(|(seq, (in_time, recovery_ns))| {
            [stretches(0, seq, &[100.0]), block(seq, in_time, recovery_ns)]
        })
        .collect();
    let plan = plan_of(blocks.len() as u32 / 2);
    fold(&machine(), &plan, 0, 1, &blocks, &[], AT).pop().unwrap()
}

fn figures(record: &Record) -> OverloadFigures {
    let Figures::Contention { contention } = &record.figures else { panic!("{record:?}") };
    assert_eq!((contention.speedup, contention.queue_mean), (None, None));
    *contention.overload.clone().unwrap()
}

#[test]
fn shares_and_recovery_are_those_worked_out_by_hand() {
    let recovered = |ms: f64| Some(ms * 1e6);
    let record = folded([(60, recovered(40.0)), (50, recovered(10.0)), (40, recovered(90.0))]);
    assert_eq!(record.loop_kind, LoopKind::Open);
    assert!(record.against.is_empty(), "arrivals do not depend on the machine's speed");
    let found = figures(&record);
    assert_eq!((found.arrived.get(), found.arrived_per_s.get()), (300, 1000.0));
    let shares = [found.in_time_share, found.late_share, found.refused_share, found.gave_up_share];
    assert_eq!(shares.map(f64::from), [0.5, 0.4, 0.1, 0.0]);
    assert_eq!(found.wasted_share.map(f64::from), Some(0.4444));
    assert_eq!((found.in_front_share.get(), found.queue_max), (0.2, 32));
    assert_eq!((found.queue_mean.get(), found.recovery_ns.map(f64::from)), (5.0, Some(40e6)));
    let queue: Vec<f64> = found.queue.iter().map(|mean| mean.get()).collect();
    assert_eq!(queue, [0.0, 1.0, 1.0]);
    assert_eq!(found.lateness.histogram.unwrap().count(), 150);
    let [low, high] = found.in_time_interval95.unwrap().map(f64::from);
    assert!((0.0..0.5).contains(&low) && high > 0.5 && high <= 1.0, "{low} {high}");
}

#[test]
fn a_queue_that_mostly_lasts_to_the_end_has_no_recovery() {
    let recovery = |blocks: [Option<f64>; 3]| {
        figures(&folded(blocks.map(|recovery_ns| (50, recovery_ns)))).recovery_ns.map(f64::from)
    };
    assert_eq!(recovery([Some(10e6), Some(30e6), None]), Some(30e6));
    assert_eq!(recovery([Some(10e6), None, None]), None);
}

#[test]
fn the_figures_compared_between_runs_are_callers_in_time_per_second() {
    let found = figures(&folded([(60, None), (40, None), (50, None)]));
    let (per_s, interval) = found.in_time_per_s();
    assert!((per_s - 500.0).abs() < 1e-6, "{per_s}");
    assert!(interval.unwrap()[0] < 500.0 && interval.unwrap()[1] > 500.0);
}

#[test]
fn cells_are_written_with_their_overload_and_others_as_ever() {
    let text = serde_json::to_string(&subject(None)).unwrap();
    assert!(!text.contains("overload"), "{text}");
    assert_eq!(serde_json::from_str::<LockSubject>(&text).unwrap(), subject(None));
    let text = serde_json::to_string(&subject(Some(overload()))).unwrap();
    let written =
        r#""overload":{"arrivals":2.0,"bound":null,"deadline_ns":50000000,"gives_up":false}"#;
    assert!(text.contains(written), "{text}");
    assert_eq!(serde_json::from_str::<LockSubject>(&text).unwrap(), subject(Some(overload())));
    let both = text.replace("\"bound\":null", "\"bound\":1").replace("false", "true");
    assert!(serde_json::from_str::<Subject>(&both).is_err(), "refused, and gives up");
    let negative = text.replace("2.0", "-2.0");
    assert!(serde_json::from_str::<Subject>(&negative).is_err());
}

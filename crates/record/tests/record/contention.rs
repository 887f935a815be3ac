//! Speed-ups worked out by hand.

use threadtoll_record::{
    Block, BlockFigures, BlockKind, Calibrated, Cause, Cell, CellPrediction, ContentionBlock,
    ContentionSeen, Experiment, LockSubject, NO_LOCK, Plan, PlannedCell, Record, Spread, Subject,
    Work, fold,
};

use crate::fixture::{AT, cell, machine, plan, stretches};

fn lock(name: &str, threads: u32, work: Work, cpus: &[u32]) -> Cell {
    let subject = LockSubject {
        lock: name.into(),
        threads,
        work,
        spread: Spread::Fixed,
        hold_ns: 10_000,
        think_ns: 10_000,
        read_share: None,
        tasks: None,
        overload: None,
    };
    Cell { subject: Subject::Lock(subject), cpus: cpus.to_vec(), payload_bytes: 0, ..cell("none") }
}

/// A reference, one thread alone on two CPUs, one thread on one of them with a lock, and two
/// threads.
pub(crate) fn plan_of(work: Work, rounds: u32) -> Plan {
    let mut plan = plan(rounds, &[&["atomic-store"]]);
    let first = plan.groups[0][0].clone();
    let experiment = Experiment::contention("hold-think");
    let planned = |cell: Cell| PlannedCell::new(experiment.clone(), cell, first.budget);
    plan.groups[0].extend([
        planned(lock(NO_LOCK, 1, work, &[0, 1])),
        planned(lock("std-mutex", 1, work, &[0])),
        planned(lock("std-mutex", 2, work, &[0, 1])),
    ]);
    plan
}

/// A block of a microsecond with this much work.
pub(crate) fn worked(index: usize, seq: u32, work: f64, by_cpu: &[f64]) -> Block {
    let contention = ContentionBlock {
        work: work.into(),
        acquisitions: vec![10.into()],
        work_by_cpu: by_cpu.iter().map(|rate| (*rate).into()).collect(),
        ..ContentionBlock::default()
    };
    Block {
        elapsed_ns: 1000.into(),
        figures: BlockFigures::Contention { contention },
        ..stretches(index, seq, &[100.0])
    }
}

fn folded(work: Work, references_ns: &[f64], by_cpu: &[f64]) -> Vec<Record> {
    let blocks: Vec<Block> = (0..)
        .zip(references_ns)
        .flat_map(|(seq, ns)| {
            [
                stretches(0, seq, &[*ns]),
                worked(1, seq, 1500.0, by_cpu),
                worked(2, seq, 1000.0, &[]),
                worked(3, seq, 2400.0, &[]),
            ]
        })
        .collect();
    fold(&machine(), &plan_of(work, references_ns.len() as u32), 0, 1, &blocks, &[], AT)
}

fn speedup(record: &Record) -> Option<f64> {
    record.figures.contention().unwrap().speedup.map(f64::from)
}

#[test]
fn the_thread_alone_counts_on_the_cpus_that_the_others_have() {
    // One CPU does 1 unit per nanosecond, the other 2: alone on both in turn 1.5.
    let records = folded(Work::Spin, &[100.0; 3], &[1.0, 2.0]);
    assert_eq!(speedup(&records[2]), Some(1.0), "both on the slow CPU");
    assert_eq!(speedup(&records[3]), Some(1.6));
    let records = folded(Work::Spin, &[100.0; 3], &[]);
    assert_eq!(speedup(&records[3]), Some(1.6), "without work by CPU, relative to the total");
    assert!((speedup(&records[2]).unwrap() - 2.0 / 3.0).abs() < 1e-3);
}

#[test]
fn mean_hold_and_think_times_have_intervals() {
    let holds = [900.0, 1100.0, 1000.0, 950.0, 1050.0, 990.0, 1010.0, 1020.0];
    let blocks: Vec<Block> = (0..)
        .zip(holds)
        .flat_map(|(seq, hold)| {
            let mut stamped = worked(3, seq, 2400.0, &[]);
            if let BlockFigures::Contention { contention } = &mut stamped.figures {
                contention.seen = Some(ContentionSeen {
                    hold_ns: hold.into(),
                    think_ns: (2.0 * hold).into(),
                    ..ContentionSeen::default()
                });
            }
            [
                stretches(0, seq, &[100.0]),
                worked(1, seq, 1500.0, &[]),
                worked(2, seq, 1000.0, &[]),
                stamped,
            ]
        })
        .collect();
    let plan = plan_of(Work::Sleep, holds.len() as u32);
    let records = fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    let contention = records[3].figures.contention().unwrap();
    let hold = contention.hold_ns.unwrap().get();
    let [low, high] = contention.hold_ns_interval95.unwrap().map(f64::from);
    assert!(low < hold && hold < high && high < 1.2 * low, "{low} {hold} {high}");
    let think = contention.think_ns_interval95.unwrap().map(f64::from);
    assert!(think[0] < 2.0 * hold && 2.0 * hold < think[1], "{think:?} {hold}");
    // Without stamps, nothing is known.
    let contention = records[2].figures.contention().unwrap();
    assert_eq!((contention.hold_ns, contention.hold_ns_interval95), (None, None));
}

#[test]
fn a_reference_that_moves_is_nothing_to_threads_that_sleep() {
    // One round is left between references that agree, too few for a ratio.
    for (work, disturbed, expected) in [(Work::Spin, 3, None), (Work::Sleep, 0, Some(1.6))] {
        let records = folded(work, &[100.0, 200.0, 100.0, 200.0], &[]);
        let record = &records[3];
        assert_eq!(record.disturbance.disturbed, disturbed, "{work}");
        assert_eq!(
            record.disturbance.causes.contains_key(&Cause::ReferenceDrift),
            disturbed > 0,
            "{work}"
        );
        assert_eq!(speedup(record), expected, "{work}");
    }
}

/// Two threads that share nothing do 1.9 times the work of one in the calibration; later the host
/// gives both CPUs the power of one.
#[test]
fn cells_that_were_measured_at_another_pace_than_predicted_are_disturbed() {
    let plan = plan_of(Work::Spin, 9);
    let together = |seq: u32| match seq {
        1 => 1.0,
        4.. => 1.1,
        _ => 1.9,
    };
    let blocks: Vec<Block> = (0..9)
        .flat_map(|seq| {
            let mut alone = worked(1, seq, 1000.0, &[1.0, 1.0]);
            if let BlockFigures::Contention { contention } = &mut alone.figures {
                contention.work_together = Some(together(seq).into());
            }
            let others = [(2, 1000.0), (3, 1000.0 * together(seq))];
            let others = others.map(|(index, work)| worked(index, seq, work, &[]));
            [stretches(0, seq, &[100.0]), alone].into_iter().chain(others)
        })
        .collect();
    let predicted = |threads: usize, slowdown: Option<f64>| CellPrediction {
        cell: 1 + threads,
        from: Some(Calibrated { slowdown: slowdown.map(Into::into), ..Calibrated::default() }),
        run: plan.run.clone(),
        group: 0,
        attempt: 1,
        at: AT.into(),
        refused: None,
        model: None,
        why: None,
        speedup: None,
        speedup_interval95: None,
        wait_share: None,
        queue_mean: None,
        queue_mean_interval95: None,
        queue_on_entry: None,
        total_s: None,
        overload: None,
    };
    let drift = |predictions: &[CellPrediction]| -> Vec<u32> {
        let records = fold(&machine(), &plan, 0, 1, &blocks, predictions, AT);
        let marked = |record: &Record| record.disturbance.causes.get(&Cause::WorkDrift).copied();
        records.iter().map(|record| marked(record).unwrap_or(0)).collect()
    };
    let expected = 2.0 / 1.9;
    // A single block of 1.0 is an accident; from the fifth round on it is the machine.
    assert_eq!(drift(&[predicted(1, Some(1.0)), predicted(2, Some(expected))]), [0, 0, 0, 5]);
    assert_eq!(drift(&[predicted(2, Some(2.0 / 1.1))]), [0, 0, 0, 4], "it was faster then");
    assert_eq!(drift(&[predicted(1, Some(1.0))]), [0; 4], "of one thread alone");
    assert_eq!(drift(&[predicted(2, None)]), [0; 4], "threads that sleep");
    let records = fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    let limit = |record: &Record| {
        let contention = record.figures.contention()?;
        let [low, high] = contention.without_lock_interval95?.map(f64::from);
        Some((contention.without_lock?.get(), low <= 1.1 && high >= 1.9))
    };
    assert_eq!(limit(&records[1]), Some((1.1, true)));
    assert_eq!(limit(&records[3]), None);
}

/// A program of another language tells only how long its pool took, and the queue.
#[test]
fn a_pool_that_was_measured_elsewhere_has_a_speed_up_and_a_queue_and_no_waits() {
    let blocks: Vec<Block> = (0..2)
        .flat_map(|seq| {
            let mut pool = worked(3, seq, 2400.0, &[]);
            pool.kind = BlockKind::Stamped;
            pool.histogram = None;
            pool.over = None;
            if let BlockFigures::Contention { contention } = &mut pool.figures {
                contention.acquisitions.clear();
                contention.queue_on_entry_mean = Some((1.0 + f64::from(seq)).into());
            }
            [stretches(0, seq, &[100.0]), worked(1, seq, 1500.0, &[]), pool]
        })
        .collect();
    let mut plan = plan_of(Work::Sleep, 2);
    plan.groups[0][3].budget.stretch_ns = 0;
    let records = fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    let of_pool = |record: &&Record| record.cell.lock().is_some_and(|lock| lock.threads == 2);
    let record = records.iter().find(of_pool).unwrap();
    let contention = record.figures.contention().unwrap();
    assert_eq!(contention.queue_on_entry, Some(1.5.into()));
    assert_eq!((contention.fairness, contention.wait_share), (None, None));
    assert_eq!((record.mean, record.max, record.over.share), (None, None, None));
}

//! Plausible figures on the real machine. One test covers a little of everything; closer ones, here
//! and in other files, are ignored unless `ci/long/real.sh` runs them.

use tempfile::TempDir;
use threadtoll_machine::allowed_cpus;
use threadtoll_machine::lock::machine_lock;
use threadtoll_record::{
    BlockKind, Count, Experiment, LoopKind, Placement, RecordKind, Relation, Unit,
};

use crate::contention::measures_locks;
use crate::lines::{blocks, line, lines, plan, records};
use crate::program::{threadtoll, words};

#[test]
fn the_real_machine_is_measured() {
    let _alone = machine_lock().unwrap();
    measures_hand_offs();
    measures_locks("std-mutex");
}

fn measures_hand_offs() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let ended =
        threadtoll(words("latency futex function-call --time 5ms --json --out", &[&path])).done();
    let printed: Vec<_> = ended.out.lines().map(line).collect();
    let lines = lines(&path);
    assert_eq!(records(&printed), records(&lines));
    let two = allowed_cpus().len() > 1;
    if !two {
        println!("skipped: pinned and free placement, which need two CPUs");
    }
    for record in records(&lines) {
        let name = (record.cell.name(), record.cell.placement);
        assert!(!record.simulated && record.experiment == Experiment::Latency);
        assert_eq!(
            (record.loop_kind, record.kind, record.unit),
            (LoopKind::Closed, RecordKind::RoundTrip, Unit::Ns)
        );
        assert!(
            record.count > 0 && record.one_way.as_ref().unwrap().mean.unwrap() > 0.0,
            "{name:?}"
        );
        assert!(
            record.min.unwrap() <= record.mean.unwrap()
                && record.mean.unwrap() <= record.max.unwrap(),
            "{name:?}"
        );
        if let (Some(p50), Some([low, high])) = (record.quantiles.p50, record.interval95.p50) {
            assert!(low <= p50 && p50 <= high, "{name:?}: {low} {p50} {high}");
        }
        assert_eq!(record.histogram.as_ref().unwrap().count(), record.count.get(), "{name:?}");
        assert_eq!(record.disturbance.blocks, 42, "{name:?}");
        assert!(record.resolution_ns > 0.0);
        let relation = match (record.cell.name(), record.cell.placement) {
            ("function-call", _) => record.cell.relation == Relation::SameThread,
            (_, Placement::SameCpu) => record.cell.relation == Relation::SameCpu,
            (_, Placement::Free) => record.cell.relation == Relation::Free,
            (_, Placement::Pinned) => record.cell.relation >= Relation::Smt,
        };
        assert!(relation, "{name:?}: {}", record.cell.relation);
        assert_eq!(
            record.figures.hand_offs().unwrap().same_cpu_share.is_some(),
            record.cell.placement == Placement::Free,
            "{name:?}"
        );
        let reference = &plan(&lines).groups[record.group][0].cell;
        if record.cell != *reference {
            assert_eq!(
                &record.against[0].cell, reference,
                "{name:?} is compared with its reference"
            );
        }
    }
    let find = |mechanism: &str, placement: Placement| {
        let all = records(&lines);
        all.into_iter()
            .find(|record| record.cell.name() == mechanism && record.cell.placement == placement)
            .unwrap()
    };
    let call = find("function-call", Placement::Pinned);
    let woken = find("futex", Placement::SameCpu);
    // Minima: a median is missing where the neighbours disturbed too many blocks.
    assert!(call.min < woken.min, "a call is cheaper than a wake-up on any machine");
    assert!(
        woken.cost.voluntary_switches_per_op.unwrap() > 0.5,
        "each hand-off puts an end to sleep"
    );
    assert!(call.cost.voluntary_switches_per_op.unwrap() < 0.1);
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn samples_and_payloads_are_what_was_asked_for() {
    let _alone = machine_lock().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let options = "latency os-pipe std-mpsc --placement same-cpu --payload 4096 --samples 1050 --time 2ms --out";
    threadtoll(words(options, &[&path])).done();
    let lines = lines(&path);
    let mut asked = 0;
    for (group, cells) in plan(&lines).groups.iter().enumerate() {
        for (cell, planned) in cells.iter().enumerate() {
            if planned.cell.payload_bytes != 4096 {
                continue;
            }
            asked += 1;
            // Blocks, not records: those have the figures of the main regime only.
            let samples: Count = blocks(&lines)
                .iter()
                .filter(|block| (block.group, block.cell) == (group, cell))
                .filter(|block| block.kind == BlockKind::Stamped)
                .map(|block| block.count)
                .sum();
            assert_eq!(samples, 1050, "{}", planned.cell.name());
        }
    }
    // With futex, which stands for those that sleep.
    assert_eq!(asked, 3);
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn an_interrupted_run_on_the_real_machine_is_completed() {
    let _alone = machine_lock().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    threadtoll(words("latency futex park --placement same-cpu --time 4ms --quiet --out", &[&path]))
        .done();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
    threadtoll(words("report", &[&path])).done().says("incomplete");
    threadtoll(words("latency --resume", &[&path])).done();
    let lines = lines(&path);
    assert!(blocks(&lines).iter().any(|block| block.attempt == 2));
    assert!(records(&lines).iter().all(|record| record.attempt == 2));
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn neighbours_and_kept_awake_cpus_are_measured_beside() {
    let _alone = machine_lock().unwrap();
    let ended =
        threadtoll(words("latency futex --keep-awake --neighbour churn --time 2ms --json", &[]))
            .done();
    let printed: Vec<_> = ended.out.lines().map(line).collect();
    assert!(records(&printed).iter().any(|record| record.cell.keep_awake && record.count > 0));
    assert!(
        records(&printed).iter().any(|record| record.cell.neighbour.is_some() && record.count > 0)
    );
}

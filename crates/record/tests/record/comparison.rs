//! Comparisons of two runs with figures that can be checked by hand.

use serde_json::{Value, json};
use threadtoll_record::comparison::{ComparedCell, Incompatible, Outcome, Unjudged, compare};
use threadtoll_record::file::Results;
use threadtoll_record::{
    Block, Comparison, Document, Load, Machine, Origin, Plan, QueueSubject, Subject, Wait, fold,
};

use crate::fixture::{self, AT, stamped, stretches};

const ROUNDS: u32 = 30;

/// A run: the round trip of each cell of each group, in nanoseconds.
struct Run {
    machine: Machine,
    plan: Plan,
    groups: Vec<Vec<f64>>,
}

impl Run {
    fn new(number: u32, cells: &[&str], groups: &[&[f64]]) -> Self {
        let run = format!("run-{number}");
        let machine = Machine { run: run.as_str().into(), ..fixture::machine() };
        let plan = fixture::plan(ROUNDS, &vec![cells; groups.len()]);
        let plan = Plan { run: run.as_str().into(), ..plan };
        Run { machine, plan, groups: groups.iter().map(|group| group.to_vec()).collect() }
    }

    /// Turns the second cell of each group into a queue of this version.
    fn with_queue(mut self, version: &str, origin: Origin) -> Self {
        for group in &mut self.plan.groups {
            group[1].cell.subject = Subject::Queue(QueueSubject {
                queue: "rtrb".into(),
                origin,
                wait: Wait::Poll,
                capacity: None,
                ring_bytes: None,
                batch: 1,
                version: version.into(),
                senders: 1,
                load: Load::NONE,
            });
        }
        self
    }

    /// Blocks with a noise of 1%, in as many processes.
    fn blocks(&self, group: usize, processes: u32) -> Vec<Block> {
        let mut blocks = Vec::new();
        for seq in 0..ROUNDS {
            for (cell, ns) in self.groups[group].iter().enumerate() {
                let noise = f64::from((seq * 7 + cell as u32 * 3) % 11) / 10.0 - 0.5;
                let ns = ns * (1.0 + 0.01 * noise);
                for block in [stretches(cell, seq, &[ns, ns]), stamped(cell, seq, &[ns, ns])] {
                    let process = seq * processes / ROUNDS;
                    let run = self.machine.run.clone();
                    blocks.push(Block { group, run, process, ..block });
                }
            }
        }
        blocks
    }

    fn results(&self, processes: u32) -> Results {
        let mut results = Results::empty(self.machine.clone(), self.plan.clone());
        for group in 0..self.groups.len() {
            let blocks = self.blocks(group, processes);
            let records = fold(&self.machine, &self.plan, group, 1, &blocks, &[], AT);
            results.groups[group].records = Some(records);
        }
        results
    }
}

const CELLS: [&str; 3] = ["atomic-store", "atomic-rmw", "spin-yield"];

fn compared(base: &[&[f64]], new: &[&[f64]]) -> Comparison {
    let run = |number, groups| Run::new(number, &CELLS, groups).results(3);
    compare(&run(1, base), &run(2, new), 5.0).unwrap()
}

#[track_caller]
fn of<'a>(comparison: &'a Comparison, name: &str) -> &'a ComparedCell {
    comparison.cells.iter().find(|one| one.cell.name() == name).unwrap()
}

/// Equal but for the three digits of a histogram.
fn near(figure: f64, expected: f64) -> bool {
    (figure / expected - 1.0).abs() < 0.002
}

#[test]
fn a_slower_cell_is_a_regression_and_the_others_are_not() {
    let comparison = compared(&[&[100.0, 200.0, 400.0]], &[&[100.0, 300.0, 400.0]]);
    let slower = of(&comparison, "atomic-rmw");
    assert_eq!(slower.outcome, Outcome::Regression, "{slower:#?}");
    assert!(near(slower.base.get(), 100.0) && near(slower.new.get(), 150.0), "half a round trip");
    let [low, high] = slower.interval95.unwrap().map(f64::from);
    assert!(1.3 < low && low < 1.5 && 1.5 < high && high < 1.7, "{low} to {high}");
    assert!(!of(&comparison, "spin-yield").outcome.changed());
    assert_eq!(of(&comparison, "atomic-store").unjudged, Some(Unjudged::Reference));
    assert_eq!((comparison.judged, comparison.cells.len()), (2, 3));

    let back = compared(&[&[100.0, 300.0, 400.0]], &[&[100.0, 200.0, 400.0]]);
    assert_eq!(of(&back, "atomic-rmw").outcome, Outcome::Improvement);
}

#[test]
fn a_machine_that_became_slower_decides_nothing() {
    let comparison = compared(&[&[100.0, 200.0, 400.0]], &[&[125.0, 250.0, 500.0]]);
    let slower = of(&comparison, "atomic-rmw");
    assert_eq!((slower.outcome, slower.unjudged), (Outcome::Open, None));
    assert!(near(slower.control.as_ref().unwrap().ratio.get(), 1.25));
    let [low, high] = slower.interval95.unwrap().map(f64::from);
    assert!(low < 1.0 && high > 1.25);
}

#[test]
fn repetitions_of_a_run_tell_how_noisy_it_is() {
    let steady: [&[f64]; 4] = [&[100.0, 200.0, 400.0]; 4];
    let noisy: [&[f64]; 4] = [
        &[100.0, 200.0, 400.0],
        &[100.0, 230.0, 400.0],
        &[100.0, 175.0, 400.0],
        &[100.0, 200.0, 400.0],
    ];
    let noise =
        |runs: [&[f64]; 4]| of(&compared(&runs, &runs), "atomic-rmw").noise_percent.unwrap().get();
    let once = of(&compared(&steady[..1], &steady[..1]), "atomic-rmw").noise_percent.unwrap();
    assert!(noise(steady) < once.get() && noise(noisy) > 3.0 * noise(steady));
    assert_eq!(of(&compared(&steady, &steady), "atomic-rmw").groups, [4, 4]);
}

#[test]
fn figures_of_different_regimes_are_not_compared() {
    let comparison = compared(&[&[100.0, 200.0, 400.0]], &[&[500.0, 900.0, 500.0]]);
    for one in &comparison.cells {
        assert_eq!((one.unjudged, one.ratio), (Some(Unjudged::OtherRegime), None));
        let [base, new] = one.reference_ns.unwrap().map(f64::from);
        assert!(near(base, 50.0) && near(new, 250.0));
    }
    assert_eq!(comparison.judged, 0);
    // The base run saw both regimes, minutes apart.
    let both: [&[f64]; 2] = [&[100.0, 200.0, 400.0], &[500.0, 900.0, 500.0]];
    let comparison = compared(&both, &both[1..]);
    let one = of(&comparison, "atomic-rmw");
    assert!(near(one.base.get(), 450.0) && near(one.new.get(), 450.0));
    assert_eq!(one.groups, [1, 1]);
}

#[test]
fn a_cell_of_one_process_gets_no_verdict() {
    let run = |number: u32, version: &str, ns: f64, processes: u32| {
        let groups: [&[f64]; 1] = [&[100.0, ns, 400.0]];
        Run::new(number, &CELLS, &groups).with_queue(version, Origin::Rust).results(processes)
    };
    let once = compare(&run(1, "1.0", 200.0, 1), &run(2, "1.1", 400.0, 3), 5.0).unwrap();
    let queue = of(&once, "rtrb");
    assert_eq!((queue.unjudged, queue.outcome), (Some(Unjudged::OneProcess), Outcome::Open));
    assert!(near(queue.ratio.unwrap().get(), 2.0));
    assert_eq!(queue.processes, [1, 3]);
    let several = compare(&run(1, "1.0", 200.0, 3), &run(2, "1.1", 400.0, 3), 5.0).unwrap();
    assert_eq!(of(&several, "rtrb").outcome, Outcome::Regression, "whatever the version");
    assert_eq!(of(&several, "rtrb").cell.queue().unwrap().version, "1.1");
}

#[test]
fn the_limit_decides_what_a_regression_is() {
    let groups: [&[f64]; 1] = [&[100.0, 200.0, 400.0]];
    let slower: [&[f64]; 1] = [&[100.0, 240.0, 400.0]];
    let outcome = |limit| {
        let [base, new] = [(1, &groups), (2, &slower)]
            .map(|(number, groups)| Run::new(number, &CELLS, groups).results(3));
        of(&compare(&base, &new, limit).unwrap(), "atomic-rmw").outcome
    };
    assert_eq!(outcome(0.0), Outcome::Regression);
    assert_eq!(outcome(5.0), Outcome::Regression);
    assert_eq!(outcome(19.0), Outcome::Worse);
    assert_eq!(outcome(100.0), Outcome::Worse);
}

#[test]
fn cells_of_one_file_are_listed() {
    let groups: [&[f64]; 1] = [&[100.0, 200.0, 400.0]];
    let base = Run::new(1, &CELLS, &groups).results(3);
    let new = Run::new(2, &["atomic-store", "atomic-rmw", "futex"], &groups).results(3);
    let comparison = compare(&base, &new, 5.0).unwrap();
    assert_eq!(comparison.only_in_base[0].cell.name(), "spin-yield");
    assert_eq!(comparison.only_in_new[0].cell.name(), "futex");
    assert_eq!(comparison.cells.len(), 2);
}

#[test]
fn what_forbids_a_comparison_is_said() {
    let groups: [&[f64]; 1] = [&[100.0, 200.0, 400.0]];
    let refused = |change: fn(&mut Run)| {
        let mut new = Run::new(2, &CELLS, &groups);
        change(&mut new);
        compare(&Run::new(1, &CELLS, &groups).results(3), &new.results(3), 5.0).map(|_| ())
    };
    assert_eq!(refused(|_| {}), Ok(()));
    assert_eq!(refused(|new| new.machine.kernel = "7.0".into()), Ok(()));
    let says = |change: fn(&mut Run), part: &str, bad_input: bool| {
        let refusal = refused(change).unwrap_err();
        assert!(refusal.to_string().contains(part), "{refusal}");
        assert_eq!(refusal.is_bad_input(), bad_input, "{refusal}");
    };
    says(|new| new.machine.run = "run-1".into(), "both files hold the run run-1", true);
    says(|new| new.machine.simulated = true, "simulated", false);
    says(|new| new.machine.cpu = "another CPU".into(), "CPU a CPU and another CPU", false);
    says(|new| new.machine.virtualised = Some("kvm".into()), "virtual machine (kvm)", false);
    says(|new| new.machine.topology[1].llc = Some(1), "share caches", false);
    says(
        |new| new.machine.clock.source = threadtoll_record::ClockSource::MonotonicRaw,
        "tsc and CLOCK_MONOTONIC_RAW",
        false,
    );
    says(|new| new.machine.grade = threadtoll_record::Grade::D, "grade D in NEW", false);
    let other = |new: &mut Run| {
        for planned in new.plan.groups.iter_mut().flatten() {
            planned.experiment = threadtoll_record::Experiment::Matrix;
        }
    };
    assert_eq!(refused(other), Err(Incompatible::NothingInCommon));
}

#[test]
fn differences_of_machine_tool_and_options_are_listed() {
    let groups: [&[f64]; 1] = [&[100.0, 200.0, 400.0]];
    let mut new = Run::new(2, &CELLS, &groups);
    new.machine.kernel = "7.0".into();
    new.machine.governor = Some("performance".into());
    new.plan.options.insert("time_ns".into(), json!(5_000_000));
    new.plan.options.insert("seed".into(), json!(7));
    let base = Run::new(1, &CELLS, &groups).results(3);
    let comparison = compare(&base, &new.results(3), 5.0).unwrap();
    let found: Vec<(&str, Option<&str>, Option<&str>)> = comparison
        .differences
        .iter()
        .map(|one| (one.property.as_str(), one.base.as_deref(), one.new.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            ("kernel", Some("6.1"), Some("7.0")),
            ("governor", None, Some("performance")),
            ("time_ns", None, Some("5000000")),
        ]
    );
}

#[test]
fn a_comparison_keeps_to_its_schema_however_odd_its_figures() {
    let says = |comparison: Comparison| {
        let document = Document::Comparison(Box::new(comparison));
        let value: Value = serde_json::to_value(&document).unwrap();
        crate::schemas::says("comparison", &value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(serde_json::from_value::<Document>(value).unwrap(), document);
    };
    says(compared(&[&[100.0, 200.0, 400.0]], &[&[100.0, 200.0, 400.0]]));
    let groups: [&[f64]; 1] = [&[100.0, 200.0, 400.0]];
    let [mut base, mut new] = [1, 2].map(|number| Run::new(number, &CELLS, &groups).results(3));
    let set = |results: &mut Results, p50: f64, interval: [f64; 2]| {
        let records = results.groups[0].records.as_mut().unwrap();
        let one_way = records[1].one_way.as_mut().unwrap();
        (one_way.p50, one_way.p50_interval95) = (Some(p50.into()), Some(interval.map(Into::into)));
    };
    set(&mut base, 1e-9, [1e-300, 1e18]);
    set(&mut new, 1e18, [1e-300, 1e18]);
    says(compare(&base, &new, 5.0).unwrap());
    set(&mut base, 1.0, [0.0, 0.0]);
    let comparison = compare(&base, &new, 5.0).unwrap();
    assert_eq!(comparison.cells.len(), 2, "a cell without an interval is not compared");
    says(comparison);
}

#[test]
fn stamped_medians_are_not_compared_with_halves() {
    let groups: [&[f64]; 1] = [&[100.0, 200.0, 400.0]];
    let [base, mut new] = [1, 2].map(|number| Run::new(number, &CELLS, &groups).results(3));
    let records = new.groups[0].records.as_mut().unwrap();
    records[1].one_way.as_mut().unwrap().method = threadtoll_record::OneWayMethod::Stamped;
    let comparison = compare(&base, &new, 5.0).unwrap();
    let one = of(&comparison, "atomic-rmw");
    assert_eq!((one.unjudged, one.ratio), (Some(Unjudged::OtherMethod), None));
}

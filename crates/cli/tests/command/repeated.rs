//! Runs that measure their first group again at the end, and say how far the two differ.

use std::path::Path;

use tempfile::TempDir;
use threadtoll_lab::simulated::{Regimes, SimulatedBackend, Variation};
use threadtoll_lab::{Observer, run};
use threadtoll_record::file::{Results, read};
use threadtoll_record::{Line, PlannedCell, Record};
use threadtoll_report::text::{Style, findings, tables};

use crate::lines::{lines, plan, records};
use crate::program::{Kept, kept, plain, ran, run_in, threadtoll, words};

const WIDE: Style = Style { color: false, width: None };
const QUEUE: &str = "queue stream pipe --wait spin --time 20ms --relaunch 1 --simulated-machine 5";

/// A run whose first group is measured again after this time.
fn repeated(time: &str) -> &'static Kept {
    kept(&format!("{QUEUE} --repeat {time} --quiet"))
}

const AGAIN: &str = "Measured again ";

#[test]
fn default_queues_and_full_surveys_measure_their_first_group_again() {
    for (line, repeated) in [
        ("queue ask-reply", true),
        ("queue ask-reply --seed 3 --relaunch 1", true),
        ("queue ask-reply --repeat 0s", false),
        ("queue ask-reply --repeat 5s", true),
        ("queue ask-reply pipe", false),
        ("queue ask-reply --wait spin", false),
        ("queue ask-reply --time 10ms", false),
        ("survey --full", true),
        ("survey", false),
        ("survey --repeat 1ms", true),
        ("latency futex", false),
        ("latency futex --repeat 500ms", true),
    ] {
        let planned = format!("{line} --simulated-machine 5 --plan");
        let text = threadtoll(words(&planned, &[])).done().out;
        assert_eq!(text.contains("group 0 again"), repeated, "{line}: {text}");
    }
    for (time, repeat, again) in [("0s", None, 0), ("60s", Some(60_000_000_000), 1)] {
        let lines = lines(&repeated(time).file);
        let plan = plan(&lines);
        assert_eq!(plan.repeat.map(|repeat| repeat.after_ns), repeat);
        let last = plan.groups.len() - 1;
        for record in records(&lines) {
            let repeats = (again == 1 && record.group == last).then_some(0);
            assert_eq!(record.repeats, repeats, "{record:?}");
        }
    }
}

#[test]
fn times_that_cannot_be_are_refused() {
    for time in ["-1s", "soon", "5", "2d", "90000s", "0.1ns", ""] {
        let arguments = ["latency", "futex", "--simulated-machine", "5", "--repeat", time];
        threadtoll(arguments).bad().says("--repeat");
    }
    let resume = |run: &Kept, time: &str| {
        let directory = TempDir::new().unwrap();
        run.copied_to(directory.path());
        run_in(directory.path(), &format!("queue --resume run.jsonl --repeat {time}"))
    };
    let twice = repeated("5s");
    resume(twice, "6s").bad().says("contradicts");
    resume(twice, "0").bad().says("contradicts");
    resume(twice, "5s").done();
    // Without the option, its default is no contradiction either.
    let once = kept(QUEUE);
    resume(once, "0").done();
    resume(once, "5s").bad().says("contradicts");
}

/// A line for each place at which a run can be cut off.
fn lengths(text: &[u8]) -> Vec<usize> {
    text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len).collect()
}

#[test]
fn a_run_that_was_cut_off_before_or_in_the_repetition_completes_it() {
    let directory = TempDir::new().unwrap();
    let path = repeated("5s").copied_to(directory.path());
    let whole = std::fs::read(&path).unwrap();
    let all = lines(&path);
    let last = plan(&all).groups.len() - 1;
    let of_last = |line: &Line| matches!(line, Line::Block(block) if block.group == last);
    let first_block = all.iter().position(of_last).unwrap();
    for kept in [first_block, first_block + 9, all.len() - 1] {
        let length: usize = lengths(&whole)[..kept].iter().sum();
        std::fs::write(&path, &whole[..length]).unwrap();
        let cut = threadtoll(words("report --details", &[&path])).done();
        assert!(!cut.out.contains(AGAIN), "{kept}: {}", cut.out);
        assert!(cut.out.contains("The run is not finished"), "{kept}: {}", cut.out);
        let ended = run_in(directory.path(), "queue --resume run.jsonl --details").done();
        assert!(ended.out.contains(AGAIN), "{kept}: {ended:?}");
        assert!(read(&path).unwrap().repetition().is_some());
    }
}

#[test]
fn tables_folded_files_and_comparisons_see_the_first_measurement_only() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path();
    let (one_file, two_file) = (&repeated("0s").file, &repeated("5s").file);
    let fold = words("report --fold folded.jsonl.gz", &[two_file]);
    let mut command = plain();
    command.current_dir(folder).args(fold);
    ran(command).done();
    let (once, twice) = (read(one_file).unwrap(), read(two_file).unwrap());
    let folded = read(&folder.join("folded.jsonl.gz")).unwrap();
    let shown = |results: &Results| tables(results, &results.records(), &WIDE);
    assert_eq!(shown(&once), shown(&twice));
    assert_eq!(shown(&twice), shown(&folded));
    assert_eq!(once.records(), twice.records());
    assert!(twice.repetition().is_some() && twice.repetition() == folded.repetition());
    let said = |results: &Results| findings(results, &results.records(), &WIDE);
    assert_eq!(said(&twice), said(&folded));

    let base = &kept(&QUEUE.replace("machine 5", "machine 6")).file;
    let compared = |new: &Path| {
        let ended = threadtoll(words("compare --json", &[base, new]));
        let object: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        object["cells"].clone()
    };
    assert_eq!(compared(one_file), compared(two_file));
}

struct Nobody;

impl Observer for Nobody {
    fn group(&mut self, _: usize, _: usize, _: &[PlannedCell], _: u64) {}

    fn block(&mut self, _: &PlannedCell, _: u64, _: u64) {}

    fn record(&mut self, _: &Record) {}
}

/// Measures the plan of a file on a simulated machine.
fn measured(file: &Results, mut machine: SimulatedBackend) -> Results {
    let mut results = Results::empty(file.machine.clone(), file.plan.clone());
    let mut launch = |_: &_, _: &_, _: &threadtoll_lab::Share, _: &mut threadtoll_lab::Take<'_>| {
        unreachable!("no other process measures anything")
    };
    let stop = Default::default();
    run(&mut machine, &mut launch, &mut results, &mut None, &mut Nobody, &stop).unwrap();
    results
}

/// Names of rows, each with a figure of both measurements.
type Pairs = Vec<(String, [f64; 2])>;

/// Figures and ratios.
fn pairs(first: &[Record], again: &[Record]) -> [Pairs; 2] {
    let (mut figures, mut ratios) = (Vec::new(), Vec::new());
    for first in first {
        let again = again.iter().find(|again| again.cell == first.cell).unwrap();
        let figure = |record: &Record| {
            record.rate_per_s.map(f64::from).or_else(|| record.one_way_p50()).unwrap()
        };
        figures.push((first.cell.label(), [figure(first), figure(again)]));
        for against in &first.against {
            let other = again.against.iter().find(|other| other.cell == against.cell).unwrap();
            let name = format!("{} to {}", first.cell.label(), against.cell.label());
            ratios.push((name, [against.ratio.get(), other.ratio.get()]));
        }
    }
    [figures, ratios]
}

/// Checks “… differed by up to X% (ROW: A and B).” against the figures.
#[track_caller]
fn tells_the_largest(sentence: &str, pairs: &[(String, [f64; 2])]) {
    let apart = |pair: &(String, [f64; 2])| (pair.1[0] / pair.1[1]).max(pair.1[1] / pair.1[0]);
    let most = pairs.iter().max_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap();
    let (_, told) = sentence.split_once("differed by up to ").unwrap();
    let (percent, row) = told.split_once("% (").unwrap();
    let (percent, truth) = (percent.parse::<f64>().unwrap(), (apart(most) - 1.0) * 100.0);
    // Two digits are printed.
    assert!((percent - truth).abs() <= 0.05 * truth + 1e-9, "{sentence}: {truth}");
    assert!(row.starts_with(&format!("{}: ", most.0)), "{sentence}: {most:?}");
}

#[test]
fn the_sentence_is_true_of_the_records() {
    let file = read(&repeated("60s").file).unwrap();
    let machine = |seed: u64| {
        let variation = Variation { cell: 0.03, ..Variation::default() };
        SimulatedBackend::new(seed).with_variation(variation)
    };
    let drifting = Regimes::Drifting { wave_ns: 120_000_000_000 };
    let mut compared = 0;
    for seed in 0..4 {
        for regimes in [Regimes::One, drifting] {
            let results = measured(&file, machine(seed).with_regimes(regimes));
            let [first, again] = results.repetition().unwrap();
            let [figures, ratios] = pairs(first, again);
            let text = findings(&results, &results.records(), &WIDE);
            let said = text.lines().find(|line| line.contains(AGAIN)).unwrap();
            let later = said.split(AGAIN).nth(1).unwrap().split(" s later").next().unwrap();
            assert!((60.0..80.0).contains(&later.parse::<f64>().unwrap()), "{said}");
            if said.contains("at another speed") {
                assert_eq!(regimes, drifting, "{said}");
                continue;
            }
            compared += 1;
            let (of_figures, of_ratios) = said.split_once("). ").unwrap();
            tells_the_largest(of_figures, &figures);
            tells_the_largest(of_ratios, &ratios);
            if regimes == drifting {
                let off: f64 = of_figures.split(" up to ").nth(1).unwrap()[..2].parse().unwrap();
                assert!(off > 40.0, "the machine was slower by about 60%: {said}");
            }
        }
    }
    assert!(compared >= 4, "{compared}");
}

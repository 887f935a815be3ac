//! Checks sentences, verdicts and intervals of simulated runs against the simulator's truth.
//!
//! Each run is one of the program, with the sentences it prints and the file it writes. A sentence
//! is false if a figure's interval in it does not hold the truth, if the difference that it claims
//! goes the other way, or if its figures are not those of the file's records.

mod figures;
mod machine;
mod sentence;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

use tempfile::TempDir;
use threadtoll_lab::simulated::{Kind, Regimes};

use crate::program::{each, plain, ran, words};

use machine::Measured;

/// Commands whose sentences and ratios are judged.
const LINES: [&str; 7] = [
    "latency function-call atomic-store futex std-condvar std-condvar-after",
    "latency atomic-store futex --keep-awake --payload 1024 --placement pinned",
    "queue stream pipe rtrb crossbeam-bounded --wait spin --batch 1 --relaunch 1",
    "queue ask-reply pipe crossbeam-bounded --wait spin --wait adaptive --relaunch 1",
    "contention hold-sweep std-mutex --threads 2,3 --hold-share 10%,50%,95%",
    "contention hold-sweep spin --threads 1,2,3 --hold-share 10%,50%,95%",
    "contention pool std-mutex",
];

/// Statements of one kind.
#[derive(Clone, Debug, Default)]
struct Score {
    made: u32,
    held: u32,
    /// Some of those that did not hold.
    broken: Vec<String>,
}

/// Statements by kind.
#[derive(Debug, Default)]
struct Scores(BTreeMap<String, Score>);

impl Scores {
    fn add(&mut self, what: &str, held: bool, told: impl fmt::Display) {
        const EXAMPLES: usize = 5;
        let score = self.0.entry(what.into()).or_default();
        score.made += 1;
        score.held += u32::from(held);
        if !held && score.broken.len() < EXAMPLES {
            score.broken.push(told.to_string());
        }
    }

    fn merge(&mut self, other: Scores) {
        for (what, score) in other.0 {
            let all = self.0.entry(what).or_default();
            all.made += score.made;
            all.held += score.held;
            all.broken.extend(score.broken);
        }
    }

    fn add_counts(&mut self, other: &Scores) {
        for (what, score) in &other.0 {
            let all = self.0.entry(what.clone()).or_default();
            all.made += score.made;
            all.held += score.held;
        }
    }
}

/// Runs every line on machines of one kind with these seeds.
fn scores_of(kind: Kind, seeds: Range<u32>) -> Scores {
    scores_of_runs(kind, &seeds.flat_map(|seed| LINES.map(|line| (seed, line))).collect::<Vec<_>>())
}

fn scores_of_runs(kind: Kind, runs: &[(u32, &str)]) -> Scores {
    let all = Mutex::new(Scores::default());
    each(runs, |_, (seed, line)| {
        let of_run = of_run(kind, *seed, line);
        all.lock().unwrap().merge(of_run);
    });
    let scores = all.into_inner().unwrap();
    print(kind, &scores);
    scores
}

fn of_run(kind: Kind, seed: u32, line: &str) -> Scores {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("run.jsonl");
    let seed = kind.seed(seed);
    let words = words(line, &[]).into_iter().map(|word| word.to_os_string());
    let mut command = plain();
    command.args(words).args(["--details", "--simulated-machine", &seed.to_string(), "--out"]);
    command.arg(&file);
    let out = ran(command).done().out;
    let mut measured = Measured::read(&file, seed);
    let mut scores = Scores::default();
    measured.judge_records(&mut scores);
    let bullets = || out.lines().filter_map(|line| line.strip_prefix("• "));
    if let Some((_, main)) = bullets().find_map(sentence::changed_speed) {
        measured.state(main.value);
    }
    for told in out.lines() {
        let tell = &mut |what: &str, held| {
            scores.add(what, held, format_args!("{line} --simulated-machine {seed}: {told}"));
        };
        match told.strip_prefix("• ") {
            Some(told) => sentence::judge(told, &measured, tell),
            None => sentence::compared(told, &measured, tell),
        }
    }
    scores
}

fn print(kind: Kind, scores: &Scores) {
    println!("{kind:?}");
    for (what, Score { made, held, broken }) in &scores.0 {
        println!("  {what}: {held} of {made}");
        broken.iter().take(3).for_each(|told| println!("    not: {told}"));
    }
}

#[test]
fn sentences_and_intervals_of_simulated_machines_hold() {
    let mut total = Scores::default();
    // Every third line on each, in turn.
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        let runs: Vec<(u32, &str)> =
            LINES.iter().skip(at % 3).step_by(3).map(|line| (1, *line)).collect();
        total.merge(scores_of_runs(kind, &runs));
    }
    for what in ["a line and a wake-up", "verdict: better", "interval: ratio", "interval: speed-up"]
    {
        assert!(total.0.get(what).is_some_and(|score| score.made > 0), "{what}: {total:?}");
    }
    for (what, Score { made, held, broken }) in &total.0 {
        // A few of the 95% intervals, by chance.
        assert!(made - held <= 2 + made / 10, "{what}: {held} of {made}, not: {broken:#?}");
    }
}

/// 200 machines of each kind, or of the kinds at the positions that `KINDS` lists.
#[test]
#[ignore = "takes minutes: ci/long/sentences.sh"]
fn sentences_and_intervals_of_many_simulated_machines_hold() {
    let listed = std::env::var("KINDS").unwrap_or_default();
    let is_listed = |at: usize| {
        listed.is_empty() || listed.split(' ').any(|number| number.parse() == Ok(at + 1))
    };
    let kinds = Kind::ALL.into_iter().enumerate().filter(|&(at, _)| is_listed(at));
    let scores: Vec<(Kind, Scores)> =
        kinds.map(|(_, kind)| (kind, scores_of(kind, 0..200))).collect();
    assert!(!scores.is_empty(), "KINDS: {listed}");
    let share = |what: &str| if what.starts_with("interval") { 0.08 } else { 0.025 };
    for (kind, scores) in &scores {
        for (what, Score { made, held, broken }) in &scores.0 {
            // On one kind of machine, there are few enough for chance: two standard deviations.
            let most = share(what) * f64::from(*made);
            let false_ones = f64::from(made - held);
            let told = format!("{kind:?}, {what}: {held} of {made}, not: {broken:#?}");
            assert!(false_ones <= most + 2.0 * most.sqrt(), "{told}");
        }
    }
    let mut of_all = Scores::default();
    scores.iter().for_each(|(_, scores)| of_all.add_counts(scores));
    for (what, Score { made, held, .. }) in &of_all.0 {
        println!("all: {what}: {held} of {made}");
        assert!(
            f64::from(made - held) <= share(what) * f64::from(*made),
            "{what}: {held} of {made}"
        );
    }
    let several = |(kind, scores): &&(Kind, Scores)| {
        matches!(kind.regimes, Regimes::Two { .. }) && scores.0.contains_key("several regimes")
    };
    assert!(!listed.is_empty() || scores.iter().filter(several).count() > 0);
}

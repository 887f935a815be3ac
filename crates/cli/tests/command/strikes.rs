//! Rows that fail on the simulated machine: each costs itself and a line, and whatever shows the
//! run agrees on what is missing.

use std::path::Path;

use tempfile::TempDir;
use threadtoll_record::file::{Results, read};
use threadtoll_record::{Line, Strike};
use threadtoll_report::text::{Style, tables};

use crate::lines::{blocks, lines, plan, records};
use crate::peers::PATIENCE;
use crate::program::{Ended, Held, each, plain, ran, threadtoll, words};

const RUN: &str =
    "latency eventfd park --placement pinned --time 5ms --simulated-machine 5 --quiet";

fn run_in(directory: &Path, line: &str) -> Ended {
    let mut command = plain();
    command.current_dir(directory).env(PATIENCE.0, PATIENCE.1).args(words(line, &[]));
    ran(command)
}

fn strikes(lines: &[Line]) -> Vec<&Strike> {
    lines
        .iter()
        .filter_map(|line| if let Line::Strike(strike) = line { Some(&**strike) } else { None })
        .collect()
}

fn names(lines: &[Line]) -> Vec<String> {
    records(lines).iter().map(|record| record.cell.label()).collect()
}

fn shown(results: &Results) -> String {
    tables(results, &results.records(), &Style { color: false, width: None })
}

#[test]
fn every_failure_costs_its_row_and_a_line() {
    let kinds = [
        ("refused", "it cannot be measured here: memory: out of memory"),
        ("wrong-message", "a message was wrong, lost, repeated or out of order"),
        ("hung", "it made no progress for 20 s"),
        ("silent", "it made no progress for 2 s"),
        ("aborts", "it ended its process (signal: 6 (SIGABRT))"),
    ];
    each(&kinds, |_, (fault, why)| {
        let directory = TempDir::new().unwrap();
        let folder = directory.path();
        let line = format!("{RUN} --simulated-faults eventfd={fault} --out run.jsonl");
        let ended = run_in(folder, &line).done();
        let warning =
            format!("warning: eventfd was left out: {why}; continuing with the other rows.\n");
        assert_eq!(ended.err, warning);
        assert!(ended.out.contains("futex") && !ended.out.contains("eventfd"), "{}", ended.out);

        let path = folder.join("run.jsonl");
        let written = lines(&path);
        let [strike] = strikes(&written)[..] else { panic!("{fault}") };
        assert_eq!((strike.name(plan(&written)).as_str(), strike.what.as_str()), ("eventfd", *why));
        assert_eq!(names(&written), ["atomic-store", "futex", "park"]);
        assert!(records(&written).iter().all(|record| record.attempt == 2));

        // The row is named wherever the run is shown, and only there.
        let missing = format!("eventfd ({why})");
        let report = run_in(folder, "report run.jsonl --details --html page.html").done();
        assert!(report.out.contains(&missing), "{fault}: {}", report.out);
        assert!(!report.out.contains("not finished"), "{fault}: {}", report.out);
        let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
        assert!(page.contains(*why), "{fault}");
        run_in(folder, "report run.jsonl --fold folded.jsonl.gz").done();
        let [raw, folded] = ["run.jsonl", "folded.jsonl.gz"].map(|name| read(&folder.join(name)));
        let (raw, folded) = (raw.unwrap(), folded.unwrap());
        assert_eq!(shown(&raw), shown(&folded));
        assert_eq!(raw.strikes, folded.strikes);
        let report = run_in(folder, "report folded.jsonl.gz --details").done();
        assert!(report.out.contains(&missing), "{fault}: {}", report.out);

        // Nothing is left to measure.
        let held = Held::of(&path);
        let again = run_in(folder, "latency --quiet --resume run.jsonl").done();
        assert_eq!((again.out, again.err.as_str()), (ended.out, ""));
        let told = run_in(folder, "latency --details --resume run.jsonl").done();
        assert!(told.out.contains(&missing), "{fault}: {}", told.out);
        held.unchanged();
    });
}

#[test]
fn a_row_stays_given_up_if_the_run_is_killed_after_its_line() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let line = format!("{RUN} --simulated-faults eventfd=hung --out run.jsonl");
    let warned = run_in(directory.path(), &line).done().err;
    let whole = std::fs::read(&path).unwrap();
    let text: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let all = lines(&path);
    let at = all.iter().position(|line| matches!(line, Line::Strike(_))).unwrap();
    // Just before the line, just after it, and within the next attempt.
    for (kept, attempts, told) in [(at, 3, warned.as_str()), (at + 1, 2, ""), (at + 9, 3, "")] {
        std::fs::write(&path, text[..kept].concat()).unwrap();
        let report = run_in(directory.path(), "report run.jsonl --details").done();
        assert!(report.out.contains("not finished"), "{kept}: {}", report.out);
        assert_eq!(
            report.out.contains("eventfd (it made no progress"),
            kept > at,
            "{kept}: {}",
            report.out
        );
        let resumed = run_in(directory.path(), "latency --quiet --resume run.jsonl").done();
        assert_eq!(resumed.err, told, "{kept}");
        let written = lines(&path);
        assert_eq!(strikes(&written).len(), 1);
        assert_eq!(names(&written), names(&all));
        assert!(records(&written).iter().all(|record| record.attempt == attempts), "{kept}");
        let struck = strikes(&written)[0].cell;
        let mut last = blocks(&written).into_iter().filter(|block| block.attempt == attempts);
        assert!(last.all(|block| block.cell != struck), "{kept}");
    }
}

#[test]
fn tables_and_pages_are_made_without_the_rows_that_all_others_are_compared_with() {
    let spin = "--wait spin --batch 1 --time 4ms";
    let runs = [
        (format!("queue stream pipe rtrb {spin}"), "pipe"),
        (format!("queue stream pipe rtrb {spin} --relaunch 1 --repeat 1s"), "rtrb"),
        ("queue ask-reply pipe crossbeam-unbounded --wait park --time 4ms".into(), "pipe"),
        ("queue open-loop pipe rtrb --wait spin --time 20ms".into(), "rtrb"),
        ("queue workers pipe crossbeam-unbounded --wait park --time 20ms".into(), "pipe"),
        ("contention hold-think std-mutex spin --threads 1,2 --time 20ms".into(), "std-mutex"),
        ("survey --quick".into(), "futex"),
    ];
    each(&runs, |_, (line, failing)| {
        let directory = TempDir::new().unwrap();
        let line = format!(
            "{line} --simulated-machine 5 --quiet --out run.jsonl --html page.html \
             --simulated-faults {failing}=wrong-message"
        );
        let ended = run_in(directory.path(), &line).done();
        assert!(ended.err.lines().all(|line| line.starts_with("warning: ")), "{line}: {ended:#?}");
        assert!(ended.err.contains(&format!("warning: {failing}")), "{line}: {ended:#?}");
        let path = directory.path().join("run.jsonl");
        let results = read(&path).unwrap();
        assert!(results.complete() && !results.nothing_left(), "{line}");
        let all = results.records();
        assert!(all.iter().any(|record| record.cell.name() != *failing), "{line}");
        // Other rows of the queue fail in blocks of their own.
        for strike in &results.strikes {
            let struck = &results.plan.groups[strike.group][strike.cell].cell;
            assert_eq!(struck.name(), *failing, "{line}");
        }
        threadtoll(words("report --text", &[&path])).done();
        run_in(directory.path(), "report run.jsonl --fold folded.jsonl").done();
        let folded = read(&directory.path().join("folded.jsonl")).unwrap();
        assert_eq!((folded.records(), &folded.strikes), (all, &results.strikes), "{line}");
    });
}

#[test]
fn a_run_fails_if_its_reference_fails_or_nothing_is_left() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path();
    for (faults, code, why) in [
        ("atomic-store=aborts", 1, "atomic-store (pinned) ended its process (signal: 6 (SIGABRT))"),
        ("eventfd=hung,futex=aborts", 1, "nothing was measured: every row was left out, "),
    ] {
        let line = format!(
            "latency eventfd --placement pinned --time 1ms --simulated-machine 5 --quiet \
             --simulated-faults {faults} --out {code}{faults}.jsonl"
        );
        run_in(folder, &line).failed(code).says(why);
        let resume = format!("latency --quiet --resume {code}{faults}.jsonl");
        run_in(folder, &resume).failed(code).says(why);
        run_in(folder, &format!("report {code}{faults}.jsonl --html page.html")).done();
    }
    let line = "latency eventfd --simulated-machine 5 --simulated-faults eventfd=bored";
    run_in(folder, line).bad().says("is not NAME=FAULT");
}

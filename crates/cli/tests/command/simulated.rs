//! On the simulated machine every figure is known beforehand, so output can be tested to the
//! letter.

use std::path::Path;

use tempfile::TempDir;
use threadtoll_record::Line;

use crate::contention::{OVERLOAD, SWEEP};
use crate::lines::{line, lines, plan, records};
use crate::program::{kept, printed_in, run_in, threadtoll, words};

pub(crate) const QUICK: &str = "survey --quick --simulated-machine 7";

#[test]
fn two_runs_give_the_same_files_pages_and_tables_byte_for_byte() {
    for line in [
        QUICK,
        "latency --time 1ms --simulated-machine 7",
        "matrix --simulated-machine 7",
        "queue stream pipe raw-copy --time 4ms --simulated-machine 5",
        SWEEP,
        OVERLOAD,
    ] {
        let (one, other) = (kept(line), TempDir::new().unwrap());
        let printed = printed_in(other.path(), &format!("{line} --out run.jsonl"));
        assert!(one.ended.out == printed, "{line}: the tables differ");
        for (path, name) in [(&one.file, "run.jsonl"), (&one.page, "run.html")] {
            let again = std::fs::read(other.path().join(name)).unwrap();
            assert!(std::fs::read(path).unwrap() == again, "{line}: {name} differs");
        }
    }
}

#[test]
fn seeds_of_machine_and_order_make_other_figures() {
    let directory = TempDir::new().unwrap();
    let of = |options: &str| {
        printed_in(directory.path(), &format!("latency futex --time 5ms {options}"))
    };
    assert_ne!(of("--simulated-machine 7"), of("--simulated-machine 8"));
    assert_eq!(
        of("--simulated-machine 7 --seed 1"),
        of("--simulated-machine 7"),
        "1 is the default"
    );
}

/// A mechanism declares how it waits, and the findings use that.
#[test]
fn the_futex_stands_for_all_that_sleeps() {
    let directory = TempDir::new().unwrap();
    // On these CPUs the channel is cheaper.
    let line = "latency atomic-store std-mpsc --time 20ms --simulated-machine 7 --placement pinned \
                --cpus 1,3";
    let found = printed_in(directory.path(), line);
    assert!(found.contains("waking a sleeper") && found.contains("futex"), "{found}");
}

/// The first result that every user sees. `INSTA_UPDATE=always cargo test -p threadtoll-cli`
/// accepts a new one.
#[test]
fn the_card_of_a_machine() {
    insta::assert_snapshot!(threadtoll(words("report --details", &[&kept(QUICK).file])).done().out);
}

#[test]
fn every_line_keeps_to_its_schema_and_comes_back_as_it_was_written() {
    for line in [
        QUICK,
        "latency futex atomic-rmw --keep-awake --payload 64 --neighbour churn --time 1ms --simulated-machine 2",
        "matrix --simulated-machine 7",
        "queue ask-reply rtrb --neighbour churn --time 4ms --simulated-machine 3",
        "queue stream funnel crossbeam-bounded --wait spin --senders 1,9 --time 4ms --simulated-machine 3",
        SWEEP,
        OVERLOAD,
    ] {
        let lines = lines(&kept(line).file);
        assert!(matches!(lines[..2], [Line::Machine(_), Line::Plan(_)]));
        let cells: usize = plan(&lines).groups.iter().map(Vec::len).sum();
        assert_eq!(
            records(&lines).len(),
            cells,
            "a record for every cell, the references included"
        );
        assert!(records(&lines).iter().all(|record| record.simulated));
    }
}

#[test]
fn json_gives_the_records_a_line_each_and_everything_else_to_standard_error() {
    let run = kept(&format!("{QUICK} --json"));
    let printed: Vec<Line> = run.ended.out.lines().map(line).collect();
    let lines = lines(&run.file);
    assert_eq!(records(&printed), records(&lines), "the file has what was printed");
    assert_eq!(records(&printed).len(), printed.len());
    for (index, group) in plan(&lines).groups.iter().enumerate() {
        let first = records(&printed).into_iter().find(|record| record.group == index).unwrap();
        assert_eq!(first.cell, group[0].cell, "the reference leads its group");
        assert!(first.against.is_empty());
        assert!(
            records(&printed).iter().filter(|record| record.group == index).count() == group.len()
        );
    }
    for part in ["What a hand-off costs", "run.jsonl", "run.html"] {
        assert!(run.ended.err.contains(part), "{part} is not in {}", run.ended.err);
    }
}

#[test]
fn quiet_leaves_only_results() {
    let ended = &kept("latency futex --time 1ms --simulated-machine 7 --quiet").ended;
    assert!(ended.err.is_empty() && ended.out.contains("futex"), "{ended:?}");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_measuring_command_keeps_its_run_and_page() {
    for line in
        ["survey --quick", "latency futex", "matrix", "queue ask-reply rtrb", "contention pool"]
    {
        let directory = TempDir::new().unwrap();
        let ended =
            run_in(directory.path(), &format!("{line} --time 4ms --simulated-machine 7")).done();
        let kept = names(&directory.path().join("threadtoll-results"));
        assert_eq!(kept.len(), 2, "{line}: {kept:?}");
        assert!(kept[0].ends_with(".html") && kept[1].ends_with(".jsonl"), "{kept:?}");
        for name in kept {
            assert!(ended.err.contains(&name), "{}", ended.err);
        }
    }
}

#[test]
fn a_run_is_not_kept_if_nobody_wants_it() {
    let directory = TempDir::new().unwrap();
    let line = "latency futex --time 1ms --simulated-machine 7 --out -";
    printed_in(directory.path(), line);
    assert!(names(directory.path()).is_empty());
    printed_in(directory.path(), &format!("{line} --html page.html"));
    assert_eq!(names(directory.path()), ["page.html"]);
}

#[test]
fn without_a_folder_to_keep_it_nothing_is_measured() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("threadtoll-results"), "mine").unwrap();
    let ended = run_in(directory.path(), "latency futex --simulated-machine 7 --quiet");
    ended.bad().says("cannot make the folder threadtoll-results").says("--out");
}

#[test]
fn pairs_of_a_matrix_are_written_as_csv() {
    let directory = TempDir::new().unwrap();
    let line = "matrix --time 1ms --simulated-machine 7 --csv pairs.csv";
    printed_in(directory.path(), line);
    let csv = std::fs::read_to_string(directory.path().join("pairs.csv")).unwrap();
    let fields: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    // A line for each of the 28 pairs of 8 CPUs, and for the reference of each further group.
    assert!(fields.len() > 28 && fields.iter().all(|count| *count == 10), "{csv}");
    run_in(directory.path(), line).bad().says("exists and is not empty");
}

#[test]
fn what_was_asked_for_stands_in_the_plan() {
    let directory = TempDir::new().unwrap();
    let planned = |options: &str| {
        let path = directory.path().join("run.jsonl");
        let _ = std::fs::remove_file(&path);
        printed_in(
            directory.path(),
            &format!("latency {options} --simulated-machine 7 --quiet --out run.jsonl"),
        );
        plan(&lines(&path)).clone()
    };
    let plan = planned("futex --payload 256 --over 5us --placement free --seed 9 --cpus 6,2,4");
    assert_eq!((plan.over_ns, plan.seed), (5000, 9));
    assert_eq!(plan.groups.len(), 1);
    let cell = &plan.groups[0][1].cell;
    assert_eq!((cell.payload_bytes, cell.cpus.as_slice()), (256, [6, 2, 4].as_slice()));
    assert_eq!(plan.groups[0][0].cell.cpus, [6, 2], "the reference takes the first two");
    assert_eq!(plan.command[..2], ["latency", "futex"]);

    let plan = planned("atomic-rmw --placement pinned");
    let labels: Vec<String> = plan.groups[0].iter().map(|planned| planned.cell.label()).collect();
    assert_eq!(labels[0], "atomic-store");
    assert_eq!(labels.len(), 5, "both lines, with and without pause");
    let plan = planned("atomic-rmw --line shared --pause off --placement pinned");
    assert_eq!(plan.groups[0].len(), 2);
    let plan = planned("futex --keep-awake --placement pinned");
    let awake: Vec<bool> = plan.groups[0].iter().map(|planned| planned.cell.keep_awake).collect();
    assert_eq!(awake, [false, false, true], "with the plain wake-up");
    let plan = planned("futex --samples 6300 --placement pinned");
    assert_eq!(plan.groups[0][1].budget.stamped_count, Some(300), "in 21 rounds");
    let plan = planned("futex --time 420ms --placement pinned");
    let budget = plan.groups[0][1].budget;
    assert_eq!((budget.rounds, budget.stretch_ns, budget.stamped_ns), (21, 10_000_000, 10_000_000));
    let plan = planned("futex --time 10s --placement pinned");
    assert!(plan.groups[0][1].budget.rounds > 100, "more time makes more blocks, not endless ones");
}

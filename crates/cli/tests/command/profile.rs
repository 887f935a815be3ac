//! `profile`: everything but the sampler, which a replayed file stands for.

mod attach;
mod bad_usage;
mod ending;
mod launched;
mod live;
mod metrics;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;
use threadtoll_record::{Line, Profile};

use crate::lines::{line, lines, plan};
use crate::program::{Ended, command, ran, threadtoll, words};

const ONE_LOCK: &str = include_str!("../../../record/tests/record/profile.json");

/// A directory with a file `replay.jsonl` of three profiles, in which the command runs.
pub(crate) struct Stage {
    directory: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let lines: String = (1..=3).map(|samples| replayed(samples).to_string() + "\n").collect();
        std::fs::write(directory.path().join("replay.jsonl"), lines).unwrap();
        Stage { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `threadtoll profile --replay replay.jsonl` with these words and a program to launch.
    pub(crate) fn command(&self, line: &str, program: &[&str]) -> std::process::Command {
        let mut command = command();
        command.current_dir(self.directory.path());
        command.args(words(&format!("profile --replay replay.jsonl {line}"), &[]));
        if !program.is_empty() {
            command.arg("--").args(program);
        }
        command
    }

    pub(crate) fn profile(&self, line: &str, program: &[&str]) -> Ended {
        ran(self.command(line, program))
    }

    /// A profile of what is replayed here, kept in the file `new.jsonl`.
    fn newly_kept(&self) -> PathBuf {
        self.profile("-p 1 --seconds 50ms --quiet --out new.jsonl", &[]).done();
        self.path("new.jsonl")
    }

    /// A profile that is kept in the file `kept.jsonl`.
    pub(crate) fn kept(&self) -> PathBuf {
        static KEPT: LazyLock<Vec<u8>> =
            LazyLock::new(|| std::fs::read(Stage::new().newly_kept()).unwrap());
        std::fs::write(self.path("kept.jsonl"), &*KEPT).unwrap();
        self.path("kept.jsonl")
    }
}

fn replayed(samples: u64) -> Value {
    let mut profile: Value = serde_json::from_str(ONE_LOCK).unwrap();
    profile["samples"] = samples.into();
    profile["exit_code"] = Value::Null;
    profile
}

#[track_caller]
pub(crate) fn profiles(path: &Path) -> Vec<Profile> {
    let lines = lines(path).into_iter();
    lines.filter_map(|line| if let Line::Profile(it) = line { Some(*it) } else { None }).collect()
}

/// The latest profile of a file that is being written: its last line may be incomplete.
fn latest(path: &Path) -> Option<Profile> {
    let text = std::fs::read_to_string(path).ok()?;
    let complete = text.split_inclusive('\n').rfind(|line| line.ends_with('\n'))?;
    if let Line::Profile(profile) = line(complete.trim_end()) { Some(*profile) } else { None }
}

fn show(path: &Path, options: &str) -> Ended {
    let mut arguments = words("profile show", &[path]);
    arguments.extend(words(options, &[]));
    threadtoll(arguments)
}

#[test]
fn a_profile_is_reported_and_kept() {
    let stage = Stage::new();
    let ended = stage.profile("-p 1 --seconds 100ms --rate 500 --budget 2% --seed 7", &[]).done();
    assert!(ended.out.contains("cache_lock"), "{ended:?}");
    assert!(ended.err.contains("results  threadtoll-results/profile-"), "{ended:?}");
    let kept = std::fs::read_dir(stage.path("threadtoll-results")).unwrap();
    let mut kept: Vec<PathBuf> = kept.map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(kept[0], kept[1].with_extension("html"));
    let page = std::fs::read_to_string(&kept[0]).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("cache_lock"));

    let kept = &kept[1];
    let all = profiles(kept);
    let (last, earlier) = all.split_last().unwrap();
    assert!(last.finished && !earlier.is_empty() && earlier.iter().all(|it| !it.finished));
    assert_eq!((earlier[0].samples.get(), last.samples.get()), (1, 3));
    let lines = lines(kept);
    let plan = plan(&lines);
    assert_eq!(plan.command[0], "profile");
    assert_eq!(
        serde_json::to_value(&plan.options).unwrap(),
        serde_json::json!({"pid": 1, "seconds": 0.1, "rate": 500, "budget": 0.02, "seed": 7})
    );
    assert!(matches!(&lines[0], Line::Machine(machine) if machine.simulated));
}

#[test]
fn json_is_one_object_that_keeps_to_its_schema() {
    let stage = Stage::new();
    let ended = stage.profile("-p 1 --seconds 50ms --json", &[]).done();
    assert!(ended.err.contains("cache_lock"), "the report is for people: {ended:?}");
    let Line::Profile(printed) = line(ended.out.trim_end()) else { panic!("{ended:?}") };
    assert!(printed.machine.is_some() && printed.finished);

    let shown = show(&stage.kept(), "--json").done();
    let Line::Profile(shown) = line(shown.out.trim_end()) else { panic!("{shown:?}") };
    assert!(shown.machine.is_some());
    assert_eq!(shown.processes, printed.processes);
}

#[test]
fn a_kept_profile_is_shown_again_however_it_ended() {
    let stage = Stage::new();
    let kept = stage.kept();
    assert!(show(&kept, "").done().out.contains("cache_lock"));
    let whole = std::fs::read(&kept).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in [last, last + 1, whole.len() - 1] {
        std::fs::write(&kept, &whole[..end]).unwrap();
        let shown = show(&kept, "").done();
        assert!(shown.out.contains("cache_lock"), "{end}");
        assert_eq!(shown.err.contains("is incomplete"), end != last, "{end}: {shown:?}");
        assert!(std::fs::read(&kept).unwrap() == whole[..end], "the file is not changed");
    }
}

#[test]
fn states_over_time_are_kept_before_the_profile_and_drawn() {
    let stage = Stage::new();
    let trace = |samples: u64| {
        serde_json::json!({
            "schema": "threadtoll.trace/1", "run": "", "start_ns": 0.0, "column_ns": 1e9, "columns": 2,
            "states": [{"state": "lock", "pid": 4711, "lock": 3, "name": "cache_lock"}],
            "threads": [{"pid": 4711, "tid": 4712, "name": "worker", "samples": [[samples, 9]]}],
            "others": [], "holders": null
        })
    };
    let replay = [trace(1), replayed(1), replayed(2), trace(3), replayed(3)];
    let replay: String = replay.iter().map(|line| line.to_string() + "\n").collect();
    std::fs::write(stage.path("replay.jsonl"), replay).unwrap();
    let kept = stage.newly_kept();
    let kinds: Vec<bool> =
        lines(&kept).iter().map(|line| matches!(line, Line::Trace(_))).skip(2).collect();
    // The second profile came too soon, and the last one is written once more when it is finished.
    assert_eq!(kinds, [true, false, true, false, false]);
    assert!(std::fs::read_to_string(kept.with_extension("html")).unwrap().contains("over time"));
    let page = stage.path("page.html");
    show(&kept, &format!("--html {}", page.display())).done();
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("worker (TID 4712), 0 ns–2.00 s: waits for cache_lock 100%"), "{page}");
}

#[test]
fn reports_render_profiles() {
    let stage = Stage::new();
    let kept = stage.kept();
    assert!(threadtoll(words("report", &[&kept])).done().out.contains("cache_lock"));
    let measured = stage.path("measured.jsonl");
    let line = "latency function-call --time 1ms --simulated-machine 1 --quiet --out";
    threadtoll(words(line, &[&measured])).done();
    let page = stage.path("page.html");
    for files in [vec![&*kept], vec![&*measured, &*kept]] {
        let mut arguments = words("report", &files);
        arguments.extend(words("--html", &[&page]));
        threadtoll(arguments).done();
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("cache_lock"), "{files:?}");
        assert_eq!(text.contains("function-call"), files.len() == 2);
    }
    let folded = stage.path("folded.jsonl");
    let mut arguments = words("report", &[&kept]);
    arguments.extend(words("--fold", &[&folded]));
    threadtoll(arguments).bad().says("--fold applies only to measurements").says("gzip");
}

#[test]
fn other_outputs_are_written() {
    let stage = Stage::new();
    let kept = stage.kept();
    let folded = stage.path("stacks.folded");
    let folded_name = folded.to_str().unwrap();
    show(&kept, &format!("--folded {folded_name}")).done();
    let text = std::fs::read_to_string(&folded).unwrap();
    assert!(!text.is_empty());
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        assert!(!stack.is_empty() && count.parse::<u64>().is_ok(), "{line}");
    }
    show(&kept, &format!("--folded {folded_name}")).bad().says("is not empty");
    let page = stage.path("page.html");
    show(&kept, &format!("--html {}", page.display())).done();
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn fail_if_ends_with_5_if_one_lock_meets_all_of_it() {
    let stage = Stage::new();
    let kept = stage.kept();
    let judge = |expression: &str| {
        let mut arguments = words("profile show", &[&kept]);
        arguments.extend(["--fail-if".as_ref(), expression.as_ref()] as [&std::ffi::OsStr; 2]);
        threadtoll(arguments)
    };
    for holds in ["queue_mean > 0.4", "name = cache_* and held_share >= 30%", "efficiency < 0.96"] {
        let ended = judge(holds);
        assert_eq!(ended.code, Some(5), "{holds}: {ended:?}");
        assert!(ended.out.contains("cache_lock"), "the report is there all the same");
        ended.says("--fail-if holds: cache_lock");
    }
    for fails in ["queue_mean > 0.5", "name = jobs", "queue_mean > 0.4 and queue_max > 100"] {
        assert!(judge(fails).done().err.is_empty(), "{fails}");
    }
    let ended = stage.profile("-p 1 --seconds 50ms --fail-if queue_mean>0.4", &[]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
}

#[test]
fn a_figure_that_is_not_known_at_the_end_is_said() {
    let stage = Stage::new();
    let mut profile = replayed(1);
    profile["processes"][0]["locks"][0]["held_share"] = Value::Null;
    std::fs::write(stage.path("replay.jsonl"), profile.to_string() + "\n").unwrap();
    let ended = stage.profile("-p 1 --seconds 50ms --quiet --fail-if held_share>0.1", &[]).done();
    assert_eq!(
        ended.err,
        "note: --fail-if: held_share is unknown, so it was not compared, for cache_lock.\n"
    );
}

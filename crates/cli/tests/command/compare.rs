//! `compare`: what it prints, its exit codes, and what it refuses.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use threadtoll_record::{Line, Profile};

use crate::lines::keeps_to_its_schema;
use crate::program::{Ended, Held, kept, threadtoll, words};
use crate::sentences::{fills, forms};

pub(crate) const LATENCY: &str =
    "latency atomic-rmw futex --placement pinned --line own --pause off";

/// A raw file of the machine with this seed, which tests share.
fn measured(line: &str, seed: u64) -> PathBuf {
    kept(&format!("{line} --simulated-machine {seed} --quiet")).file.clone()
}

/// A folder for files that differ from those of simulated runs.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Files(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A raw file of the machine with this seed, as if measured by three processes.
    pub(crate) fn relaunched(&self, line: &str, seed: u64) -> PathBuf {
        self.edited(&measured(line, seed), &format!("relaunched-{seed}.jsonl"), |line| {
            if line["schema"] == "threadtoll.record/1" {
                line["processes"] = 3.into();
            }
        })
    }

    /// A copy whose lines are edited.
    fn edited(&self, file: &Path, name: &str, edit: impl Fn(&mut Value)) -> PathBuf {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            edit(&mut line);
            format!("{line}\n")
        });
        let path = self.path(name);
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        path
    }

    /// A copy with records of a mechanism that takes `factor` times as long.
    pub(crate) fn slower(&self, file: &Path, mechanism: &str, factor: f64) -> PathBuf {
        self.edited(file, &format!("{mechanism}-{factor}.jsonl"), |line| {
            if line["schema"] != "threadtoll.record/1" || line["cell"]["mechanism"] != mechanism {
                return;
            }
            let times = |value: &mut Value| *value = (value.as_f64().unwrap() * factor).into();
            times(&mut line["one_way"]["p50"]);
            line["one_way"]["p50_interval95"].as_array_mut().unwrap().iter_mut().for_each(times);
        })
    }
}

fn compare(base: &Path, new: &Path, options: &str) -> Ended {
    let mut arguments = words("compare", &[base, new]);
    arguments.extend(words(options, &[]));
    threadtoll(arguments)
}

#[test]
fn unchanged_runs_end_with_0_and_slower_ones_with_4() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let held = Held::of(&base);
    let same = compare(&base, &new, "").done();
    assert!(same.out.contains("Of 3 rows, 2 show no change, 1 is not compared."), "{same:#?}");
    assert!(same.out.contains("SIMULATED") && same.err.is_empty(), "{same:#?}");
    let slower = files.slower(&new, "futex", 1.4);
    let worse = compare(&base, &slower, "");
    assert_eq!(worse.code, Some(4), "{worse:#?}");
    assert!(worse.out.contains("Worse by more than 5%: futex"), "{worse:#?}");
    assert_eq!(compare(&base, &slower, "--fail-above 200").code, Some(0));
    assert_eq!(compare(&base, &slower, "--fail-above 10%").code, Some(4));
    let faster = compare(&slower, &base, "").done();
    assert!(faster.out.contains("Better by more than 5%: futex"), "{faster:#?}");
    held.unchanged();
}

#[test]
fn folded_and_packed_files_compare_as_raw_ones_do() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let folded = files.path("base.jsonl.gz");
    let mut fold = words("report", &[&base]);
    fold.extend(words("--without-histograms --fold", &[&folded]));
    threadtoll(fold).done();
    for options in ["", "--json", "--markdown"] {
        let raw = compare(&base, &new, options).done();
        let packed = compare(&folded, &new, options).done();
        assert_eq!(raw.out, packed.out, "{options}");
    }
}

#[test]
fn json_is_one_object_of_its_schema_and_markdown_has_no_colours() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let slower = files.slower(&new, "futex", 1.4);
    let printed = compare(&base, &slower, "--json --color always");
    assert_eq!((printed.code, printed.out.lines().count()), (Some(4), 1), "{printed:#?}");
    let object: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(object["schema"], "threadtoll.comparison/1");
    keeps_to_its_schema(&object);
    let outcomes: Vec<&Value> =
        object["cells"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes.iter().filter(|outcome| ***outcome == "regression").count(), 1);

    let comment = compare(&base, &slower, "--markdown --color always");
    assert!(comment.out.starts_with("### threadtoll: Of 3 rows, 1 is worse by more than 5%, "));
    assert!(comment.out.contains("| `futex` |") && !comment.out.contains('\u{1b}'), "{comment:#?}");
    compare(&base, &new, "--json --markdown").bad().says("cannot be used with");
}

#[test]
fn everything_said_is_in_the_document() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let other_kernel = files.edited(&new, "kernel.jsonl", |line| {
        if line["schema"] == "threadtoll.machine/1" {
            line["kernel"] = "7.0".into();
        }
    });
    let queues = ["rtrb", "rtrb gil"]
        .map(|names| format!("queue stream {names} --wait spin --time 20ms --relaunch 1"));
    let pairs = [
        (base.clone(), files.slower(&new, "futex", 1.4)),
        (base.clone(), files.slower(&new, "futex", 0.6)),
        (base.clone(), files.slower(&new, "atomic-store", 8.0)),
        (base, other_kernel),
        (measured(&queues[0], 1), measured(&queues[1], 2)),
    ];
    let forms = forms();
    let mut seen = String::new();
    for (base, new) in &pairs {
        let out = compare(base, new, "").out;
        let lines = out.lines();
        for sentence in lines.filter_map(|line| line.strip_prefix("• ")) {
            assert!(forms.iter().any(|form| fills(sentence, form)), "{sentence}");
        }
        seen.push_str(&out);
    }
    for part in [
        "kernel: simulated → 7.0",
        "Worse by more than",
        "Better by more than",
        "because the machine ran at another speed",
        "of only one process",
        "found only in NEW, so not compared: gil",
    ] {
        assert!(seen.contains(part), "“{part}” is not in {seen}");
    }
}

#[test]
fn what_cannot_be_compared_costs_a_sentence() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let held = Held::of(&base);
    let empty = files.path("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    let folder = files.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let contention = measured("contention pool --threads 1,4 --time 20ms", 2);
    for (base, new, what, hint) in [
        (&base, &base, "both files hold the run", "measure the new code"),
        (&base, &contention, "no measurement in common", "the same command"),
        (&base, &empty, "empty.jsonl", "hint: "),
        (&folder, &new, "not a regular file", "measuring command"),
        (&base, &files.path("nowhere.jsonl"), "No such file", "measuring command"),
    ] {
        compare(base, new, "").bad().says(what).says(hint);
    }
    for (options, what) in [
        ("--fail-above -1", "--fail-above -1 is not a percentage"),
        ("--fail-above much", "not a percentage"),
        ("--fail-above nan", "not a percentage"),
        ("--fail-above=", "not a percentage"),
    ] {
        compare(&base, &new, options).bad().says(what);
    }
    threadtoll(words("compare", &[&base])).bad().says("<NEW> is missing");
    held.unchanged();
}

#[test]
fn profiles_are_not_compared() {
    let files = Files::new();
    let base = files.relaunched(LATENCY, 1);
    let text = std::fs::read_to_string(&base).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let (machine, mut plan): (Value, Value) = (lines.next().unwrap(), lines.next().unwrap());
    plan["command"] = json!(["profile"]);
    plan["groups"] = json!([]);
    let fixture = include_str!("../../../record/tests/record/profile.json");
    let mut profile: Profile = serde_json::from_str(fixture).unwrap();
    profile.run = machine["run"].as_str().unwrap().into();
    let profile = Line::Profile(Box::new(profile));
    let profile = serde_json::to_string(&profile).unwrap();
    let text = format!("{machine}\n{plan}\n{profile}\n");
    let profile = files.path("profile.jsonl");
    std::fs::write(&profile, text).unwrap();
    compare(&base, &profile, "").bad().says("is a profile, and profiles cannot be compared");
}

#[test]
fn machines_clocks_and_grades_can_forbid_it() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let changed = |name: &str, member: &str, value: Value| {
        files.edited(&new, name, |line| {
            if line["schema"] == "threadtoll.machine/1" {
                line[member] = value.clone();
            }
        })
    };
    let refused = |new: &Path, what: &str| {
        let ended = compare(&base, new, "");
        ended.failed(3).says(what).says("hint: ");
        assert!(ended.out.is_empty(), "{ended:#?}");
    };
    refused(&changed("d.jsonl", "grade", json!("D")), "grade D in NEW");
    refused(&changed("kvm.jsonl", "virtualised", json!("kvm")), "bare metal and a virtual machine");
    refused(&changed("arch.jsonl", "arch", json!("riscv64")), "different machines");
    let real = files.edited(&new, "real.jsonl", |line| match line["schema"].as_str() {
        Some("threadtoll.machine/1") => line["simulated"] = false.into(),
        Some("threadtoll.record/1") => {
            line.as_object_mut().unwrap().remove("simulated");
        }
        _ => {}
    });
    refused(&real, "one of the two runs is simulated");
}

#[test]
fn a_truncated_file_is_compared_as_far_as_it_goes_or_refused() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let text = std::fs::read_to_string(&new).unwrap();
    let lines = text.lines().count();
    for keep in [1, 2, 3, lines / 2, lines - 1] {
        let cut: String = text.split_inclusive('\n').take(keep).collect();
        let path = files.path("cut.jsonl");
        std::fs::write(&path, &cut[..cut.len() - 3]).unwrap();
        let ended = compare(&base, &path, "");
        assert!(matches!(ended.code, Some(0 | 2)), "{keep}: {ended:#?}");
        assert!(!ended.err.contains("panicked"), "{keep}: {ended:#?}");
    }
}

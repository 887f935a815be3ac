//! A profile's file: the last complete line counts, and nothing else passes for a profile.

use serde_json::{Value, json};
use tempfile::TempDir;
use threadtoll_record::file::{
    Appender, Contents, Fault, Profiled, WriteFault, read, read_any, read_profile,
};
use threadtoll_record::profile::{CauseKind, Change, IoKind, Trace, Verdict};
use threadtoll_record::{Line, Plan};

use crate::fixture;

fn plan() -> Plan {
    Plan { command: vec!["profile".into()], groups: Vec::new(), ..fixture::plan(1, &[]) }
}

/// Machine, plan, and profiles with these numbers of samples.
fn lines(samples: &[u64]) -> Vec<Value> {
    let machine = Line::Machine(Box::new(fixture::machine()));
    let mut lines = vec![
        serde_json::to_value(machine).unwrap(),
        serde_json::to_value(Line::Plan(Box::new(plan()))).unwrap(),
    ];
    lines.extend(samples.iter().map(|samples| {
        let mut profile = fixture::profile();
        profile["samples"] = (*samples).into();
        profile
    }));
    lines
}

/// Writes lines as the writer does, `schema` first.
fn text(lines: &[Value]) -> String {
    let line = |value: &Value| {
        let line: Line = serde_json::from_value(value.clone()).unwrap();
        serde_json::to_string(&line).unwrap() + "\n"
    };
    lines.iter().map(line).collect()
}

fn read_text(text: &str) -> Result<Profiled, Fault> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("profile.jsonl");
    std::fs::write(&path, text).unwrap();
    read_profile(&path)
}

fn refused(text: &str) -> String {
    let refused = read_text(text).unwrap_err().to_string();
    refused.split_once("profile.jsonl ").unwrap().1.to_string()
}

#[test]
fn stand_stills_come_back_and_older_files_have_none() {
    let mut profile = fixture::profile();
    let stuck = json!({
        "kind": "self-deadlock", "seconds": 9.5, "locks": [3], "more_threads": 2,
        "threads": [{
            "tid": 4712, "name": "worker", "holds": 3, "waits_for": 3, "joins": null,
            "frames": ["futex_wait", "flush"]
        }],
        "text": "Deadlock for at least 9.5 s: worker (TID 4712) waits for cache_lock."
    });
    profile["processes"][0]["stuck"] = stuck.clone();
    profile["processes"][0]["also_stuck"] = json!([stuck]);
    let line: Line = serde_json::from_value(profile.clone()).unwrap();
    assert_eq!(serde_json::to_value(&line).unwrap(), profile);
    let Line::Profile(read) = line else { panic!() };
    assert_eq!(read.processes[0].stand_stills().count(), 2);
    assert!(read.processes[0].stand_stills().all(|it| it.kind.is_deadlock()));
    profile["processes"][0].as_object_mut().unwrap().remove("stuck");
    profile["processes"][0].as_object_mut().unwrap().remove("also_stuck");
    let Line::Profile(read) = serde_json::from_value(profile).unwrap() else { panic!() };
    assert_eq!(read.processes[0].stuck, None);
}

#[test]
fn a_profile_comes_back_as_it_was_written() {
    let line: Line = serde_json::from_value(fixture::profile()).unwrap();
    assert_eq!(serde_json::to_value(&line).unwrap(), fixture::profile());
    let Line::Profile(profile) = line else { panic!() };
    let process = &profile.processes[0];
    assert_eq!(process.time.as_ref().unwrap().io[&IoKind::Read], 0.125);
    let lock = &process.locks[0];
    assert_eq!(lock.verdict, Some(Verdict::Comfortable));
    assert_eq!(lock.causes[0].cause, CauseKind::SleptHolding);
    assert_eq!(lock.what_if[0].change, Change::HalveHold);
}

#[test]
fn the_last_complete_line_counts_wherever_the_file_is_cut() {
    let whole = text(&lines(&[1, 2, 3]));
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for at in (0..=whole.len()).step_by(23).chain(ends.iter().copied()) {
        let complete = ends.iter().filter(|end| **end <= at).count();
        match read_text(&whole[..at]) {
            Ok(read) => {
                assert_eq!(read.profile.samples, complete as u64 - 2, "cut at {at}");
                assert_eq!(read.notes.len(), usize::from(!ends.contains(&at)), "cut at {at}");
                assert_eq!(read.profile.machine.as_deref(), Some(&fixture::machine()));
            }
            Err(Fault::NothingYet(_)) => assert_eq!(complete, 2, "cut at {at}"),
            Err(Fault::Line { .. }) => assert!(complete < 2, "cut at {at}"),
            Err(other) => panic!("cut at {at}: {other}"),
        }
    }
}

#[test]
fn a_profile_is_appended_to_while_it_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("profile.jsonl");
    let mut file = Appender::create(&path, &fixture::machine(), &plan()).unwrap();
    assert!(matches!(read_profile(&path), Err(Fault::NothingYet(_))));
    for samples in 1..3 {
        let line = serde_json::from_value(lines(&[samples])[2].clone()).unwrap();
        file.append(&[line]).unwrap();
        let Ok(Contents::Profile(read)) = read_any(&path) else { panic!() };
        assert_eq!(read.profile.samples, samples);
    }
    assert!(matches!(read(&path), Err(Fault::Profile(_))), "not a measurement");
}

#[test]
fn a_file_that_begins_anew_keeps_its_last_line_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("profile.jsonl");
    let mut file = Appender::create(&path, &fixture::machine(), &plan()).unwrap();
    let line = |samples| serde_json::from_value(lines(&[samples])[2].clone()).unwrap();
    file.append(&[line(1), line(2)]).unwrap();
    let before = std::fs::File::open(&path).unwrap();
    let length = file.length();
    file.begin_anew(&fixture::machine(), &plan(), &[line(3)]).unwrap();
    assert!(file.length() < length);
    assert_eq!(file.length(), std::fs::metadata(&path).unwrap().len());
    assert_eq!(read_profile(&path).unwrap().profile.samples, 3);
    assert_eq!(before.metadata().unwrap().len(), length, "a reader keeps what it had opened");
    let other = Appender::resume(&path, file.length(), file.length());
    assert!(matches!(other, Err(WriteFault::Busy(_))));

    file.append(&[line(4)]).unwrap();
    assert_eq!(read_profile(&path).unwrap().profile.samples, 4);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);

    std::fs::remove_dir_all(directory.path()).unwrap();
    assert!(file.begin_anew(&fixture::machine(), &plan(), &[line(5)]).is_err());
}

#[test]
fn states_over_time_come_back_with_the_profile() {
    let line: Line = serde_json::from_value(fixture::trace()).unwrap();
    assert_eq!(serde_json::to_value(&line).unwrap(), fixture::trace());
    let Line::Trace(trace) = line else { panic!() };
    // Some lines without it come later.
    let mut all = lines(&[1, 2, 3]);
    all.insert(3, fixture::trace());
    let mut earlier = fixture::trace();
    earlier["columns"] = json!(2);
    all.insert(2, earlier);
    let read = read_text(&text(&all)).unwrap();
    assert_eq!((read.profile.samples.get(), read.notes), (3, vec![]));
    assert_eq!(read.profile.trace, Some(trace));
    assert_eq!(read_text(&text(&lines(&[1]))).unwrap().profile.trace, None);
    let whole = text(&all);
    let cut = read_text(&whole[..whole.len() - 9]).unwrap();
    assert!(cut.profile.samples == 2 && cut.profile.trace.is_some());
    // A profile is printed without them.
    let printed = serde_json::to_value(Line::Profile(Box::new(read.profile))).unwrap();
    assert!(printed.get("trace").is_none(), "{printed}");
}

#[test]
fn states_over_time_that_are_wrong_are_left_out() {
    let spoilt = |path: &str, value: Value| {
        let mut trace = fixture::trace();
        *trace.pointer_mut(path).unwrap() = value;
        let trace = trace.to_string();
        let schema = "\"schema\":\"threadtoll.trace/1\"";
        let rest = trace.replacen(&format!("{schema},"), "", 1);
        format!(
            "{{{schema},{}\n",
            rest.replacen(&format!(",{schema}"), "", 1).trim_start_matches('{')
        )
    };
    let thread = fixture::trace()["threads"][0].clone();
    let long = Value::from("x".repeat(Trace::MAX_BYTES));
    let wrong: [(&str, Value, &str); 11] = [
        ("/run", json!("another"), "it belongs to another run"),
        ("/columns", json!(601), "601 columns, but at most 600 are allowed"),
        ("/columns", json!(3), "4 numbers in a row, but at most 3 are allowed"),
        ("/columns", json!(-1), "invalid value"),
        ("/column_ns", json!(-1.0), "out of range"),
        ("/threads", json!(vec![thread; 65]), "65 threads, but at most 64 are allowed"),
        (
            "/threads/0/samples",
            json!([[], [], [], []]),
            "4 rows of a thread, but at most 3 are allowed",
        ),
        ("/threads/0/samples/1/1", json!(4_294_967_296_u64), "invalid value"),
        ("/states/0/state", json!("\u{1b}[31m"), "unknown variant"),
        ("/states/1/name", json!("x".repeat(10_001)), "too long"),
        ("/holders/name", long, "it is longer than any"),
    ];
    for (path, value, why) in wrong {
        let mut all = text(&lines(&[1]));
        all.push_str(&spoilt(path, value));
        let read = read_text(&all).unwrap();
        assert_eq!((read.profile.samples.get(), read.profile.trace), (1, None), "{path}");
        let [note] = &read.notes[..] else { panic!("{path}: {:?}", read.notes) };
        assert!(note.starts_with("Line 4 of ") && note.contains(why), "{path}: {note}");
        assert!(!note.contains('\u{1b}'), "{note:?}");
    }
    let Err(fault) =
        read_text(&text(&[lines(&[])[0].clone(), lines(&[])[1].clone(), fixture::trace()]))
    else {
        panic!()
    };
    assert!(matches!(fault, Fault::NothingYet(_)));
}

#[test]
fn profiles_of_the_former_version_say_that_idle_time_was_not_told_apart() {
    let mut former = fixture::profile();
    former["schema"] = "threadtoll.profile/1".into();
    for time in ["/time", "/processes/0/time"] {
        let time = former.pointer_mut(time).unwrap().as_object_mut().unwrap();
        time.retain(|name, _| !["thread_wait", "idle"].contains(&name.as_str()));
        time.insert("idle_wait".into(), json!(0.125));
        time.insert("parked".into(), json!(0.0625));
        let within = json!({"idle_wait": [0.1, 0.15], "parked": [0.06, 0.07]});
        time.insert("interval95".into(), within);
    }
    let process = former["processes"][0].as_object_mut().unwrap();
    process.retain(|name, _| !["waits", "runtime"].contains(&name.as_str()));
    let former = former.to_string();
    // As the writer had it, `schema` first.
    let schema = "\"schema\":\"threadtoll.profile/1\"";
    let rest = former.replacen(&format!(",{schema}"), "", 1);
    let former = format!("{{{schema},{}\n", rest.trim_start_matches('{'));
    let read = read_text(&(text(&lines(&[1])) + &former)).unwrap();
    assert!(read.notes[0].contains("an older version"), "{:?}", read.notes);
    let time = read.profile.processes[0].time.as_ref().unwrap();
    assert_eq!((time.idle.get(), time.thread_wait.get(), time.unknown.get()), (0.0, 0.0625, 0.125));
    assert_eq!(time.interval95.thread_wait.unwrap().high().get(), 0.07);
    assert!(time.interval95.idle.is_none() && read.profile.processes[0].waits.is_empty());
}

#[test]
fn files_that_are_not_profiles_are_refused_in_a_sentence() {
    assert_eq!(refused(""), "is not a threadtoll file: line 1: the file is empty");
    let measured = [
        Line::Machine(Box::new(fixture::machine())),
        Line::Plan(Box::new(fixture::plan(3, &[&["atomic-store"]]))),
    ]
    .map(|line| serde_json::to_value(line).unwrap());
    assert_eq!(refused(&text(&measured)), "is a measurement, not a profile");
    assert!(refused("\u{7f}ELF\u{2}\u{1}\n").starts_with("is not a threadtoll file: line 1"));
    assert_eq!(
        refused(&(text(&lines(&[1])) + "{\"schema\":\"threadtoll.profile/3\"}\n")),
        "is not a threadtoll file: line 4: it is not a profile"
    );

    let mut foreign = lines(&[1]);
    foreign[2]["run"] = "another".into();
    assert!(refused(&text(&foreign)).ends_with("line 3: the profile belongs to another run"));
    let mut repeated = lines(&[1]);
    let lock = repeated[2]["processes"][0]["locks"][0].clone();
    repeated[2]["processes"][0]["locks"].as_array_mut().unwrap().push(lock);
    assert!(refused(&text(&repeated)).contains("process 4711 has two locks with number 3"));
}

#[test]
fn figures_out_of_their_range_are_refused() {
    let spoils: [(&str, Value, &str); 6] = [
        ("held_share", json!(1.5), "out of range"),
        ("queue_mean", json!(-1), "out of range"),
        ("held_share_interval95", json!([0.4, 0.3]), "out of order"),
        ("address", json!("55"), "an address must be"),
        ("verdict", json!("fine"), "unknown variant"),
        ("threads", json!(-1), "invalid value"),
    ];
    for (member, value, why) in spoils {
        let mut profile = fixture::profile();
        profile["processes"][0]["locks"][0][member] = value;
        let error = serde_json::from_value::<Line>(profile).unwrap_err().to_string();
        assert!(error.contains(why), "{member}: {error}");
    }
}

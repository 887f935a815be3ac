//! `predict --from`: times of a lock that a profile or a contention record measured.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use threadtoll_record::{Line, MeasuredBy, MeasuredLock, Prediction};

use super::answered;
use crate::contention::{POOL, SWEEP};
use crate::profile::Stage;
use crate::program::{Ended, each, kept, threadtoll, words};
use crate::screens::screen;

/// `predict --from`, with this suffix of the file's name.
fn predict_from(path: &Path, chosen: &str, options: &str) -> Ended {
    let mut arguments = words("predict --from", &[]);
    let file = format!("{}{chosen}", path.display());
    arguments.push(file.as_ref());
    arguments.extend(words(options, &[]));
    threadtoll(arguments)
}

fn from(path: &Path, chosen: &str) -> Prediction {
    super::checked(&predict_from(path, chosen, "--json").done().out)
}

fn measured(prediction: &Prediction) -> &MeasuredLock {
    prediction.from.as_ref().unwrap()
}

/// A copy of a profile with other locks; `lock` is the one that it has.
fn with_locks(stage: &Stage, locks: impl FnOnce(&Value) -> Vec<Value>) -> PathBuf {
    let text = std::fs::read_to_string(stage.kept()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rfind(|line| line.contains("threadtoll.profile/2")).unwrap();
    let mut profile: Value = serde_json::from_str(last).unwrap();
    let listed = &mut profile["processes"][0]["locks"];
    *listed = locks(&listed[0]).into();
    // As the program writes it, which begins with the schema.
    let line: Line = serde_json::from_value(profile).unwrap();
    let profile = serde_json::to_string(&line).unwrap();
    let path = stage.path("locks.jsonl");
    std::fs::write(&path, format!("{}\n{}\n{profile}\n", lines[0], lines[1])).unwrap();
    path
}

fn other(lock: &Value, members: Value) -> Value {
    let mut lock = lock.clone();
    for (name, value) in members.as_object().unwrap() {
        lock[name] = value.clone();
    }
    lock
}

#[test]
fn a_profile_gives_the_ratio_of_the_times_with_its_interval() {
    let stage = Stage::new();
    let path = stage.kept();
    let prediction = from(&path, "");
    let lock = measured(&prediction);
    assert_eq!((lock.source, lock.lock.as_str()), (MeasuredBy::Profile, "cache_lock"));
    assert_eq!((lock.threads, lock.held_share, lock.queue_mean), (9, Some(0.31), Some(0.42)));
    // Of nine threads, 0.31 hold the lock, 0.42 wait for it, and 8.27 do neither.
    let share = |held: f64, queue: f64| held / (9.0 - queue);
    assert!((prediction.hold_share - share(0.31, 0.42)).abs() < 1e-12, "{prediction:?}");
    let [low, high] = prediction.hold_share_interval95.unwrap();
    assert!((low - share(0.3, 0.4)).abs() < 1e-12 && (high - share(0.32, 0.44)).abs() < 1e-12);
    assert_eq!((prediction.hold_ns, prediction.think_ns), (None, None));
    let [low, high] = prediction.knee_interval95.unwrap();
    let knee = prediction.knee.unwrap();
    assert!((knee - 1.0 / prediction.hold_share).abs() < 1e-9 && low < knee && knee < high);
    let [low, high] = prediction.recommended_threads_interval95.unwrap();
    assert!(low < high && (low..=high).contains(&prediction.recommended_threads.unwrap()));
    assert!(prediction.rows.iter().any(|row| row.threads == 9), "the threads that were measured");
    for row in &prediction.rows {
        let figures = [
            (row.speedup, row.speedup_interval95.unwrap()),
            (row.queue_mean, row.queue_mean_interval95.unwrap()),
        ];
        for (figure, [low, high]) in figures {
            assert!(low <= figure && figure <= high, "{row:?}");
            assert!(row.threads == 1 || low < high, "{row:?}");
        }
        assert_eq!((row.throughput_per_s, row.speedup_interval99), (None, None));
    }
    for change in &prediction.what_if {
        let [low, high] = change.gain_interval95.unwrap();
        assert!(low <= change.gain && change.gain <= high, "{change:?}");
    }
}

#[test]
fn the_screen_begins_with_what_was_taken() {
    let stage = Stage::new();
    let path = stage.kept();
    let shown = screen("predict --from", &predict_from(&path, "", "").done().out);
    let taken =
        "From kept.jsonl: cache_lock, 9 threads, held 31% (30–32%), queue 0.42 (0.40–0.44).";
    let text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(taken), "{shown}");
    assert!(text.find(taken) < text.find("are worth having:"), "{shown}");
    assert!(!text.contains("tasks per s"), "{shown}");
    assert!(text.contains("For 9 threads this predicts a queue of 0.1"), "{shown}");
    assert!(text.contains("but 0.42 (0.40–0.44) was measured: the times vary more"), "{shown}");
    let details = predict_from(&path, "", "--details --tasks 100").done().out;
    let text = details.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Hold times exponential, think times exponential"), "{details}");
    assert!(text.contains("throughput is unknown"), "{details}");
}

#[test]
fn the_queue_of_a_profile_tells_how_much_the_times_vary() {
    let stage = Stage::new();
    let cases = [
        (0.42, ["exponential", "exponential"]),
        (0.06, ["fixed", "exponential"]),
        (0.0, ["fixed", "fixed"]),
    ];
    for (queue, shapes) in cases {
        let members = json!({"queue_mean": queue, "queue_mean_interval95": [queue, queue + 0.01]});
        let path = with_locks(&stage, |lock| vec![other(lock, members)]);
        let prediction = from(&path, "");
        assert_eq!([&*prediction.hold_shape, &*prediction.think_shape], shapes, "{queue}");
        let given = predict_from(&path, "", "--hold-shape exponential --json").done().out;
        let given = super::checked(&given);
        assert_eq!([&*given.hold_shape, &*given.think_shape], ["exponential"; 2], "{queue}");
    }
}

#[test]
fn options_add_to_what_a_file_says() {
    let stage = Stage::new();
    let path = stage.kept();
    let plain = from(&path, "");
    let ended = predict_from(&path, "", "--stripes 4 --hold-shape fixed --threads 8,16 --json");
    let striped = super::checked(&ended.done().out);
    assert_eq!((striped.stripes, striped.hold_shape.as_str()), (4, "fixed"));
    assert_eq!(striped.hold_share, plain.hold_share);
    assert_eq!(striped.rows.iter().map(|row| row.threads).collect::<Vec<_>>(), [8, 16]);
    // A simulation's own interval is part of that of the times.
    let row = &striped.rows[1];
    let ([low, high], [least, most]) =
        (row.speedup_interval99.unwrap(), row.speedup_interval95.unwrap());
    assert!(least <= low && high <= most, "{row:?}");
    predict_from(&path, "", "--handoff 2us").bad().says("a profile has only shares of time");
    predict_from(&path, "", "--hold 5ms").bad().says("--from").says("--hold");
    predict_from(&path, "", "--fit -").bad().says("--from").says("--fit");
}

#[test]
fn one_of_several_locks_is_chosen_by_name_or_number() {
    let stage = Stage::new();
    let path = with_locks(&stage, |lock| {
        vec![
            lock.clone(),
            other(lock, json!({"id": 4, "name": "log_lock", "held_share": null})),
            other(lock, json!({"id": 5, "name": "tree", "kind": "rwlock-write"})),
            other(
                lock,
                json!({"id": 6, "name": "index_lock", "queue_mean": 0.5,
                               "queue_mean_interval95": [0.4, 0.6]}),
            ),
            other(lock, json!({"id": 7, "name": "queue_lock", "takes_turns": true})),
        ]
    });
    predict_from(&path, "", "")
        .bad()
        .says("holds 2 locks")
        .says("#N or")
        .says("#1 cache_lock; #2 index_lock");
    for chosen in ["#index_lock", "#2"] {
        let prediction = from(&path, chosen);
        assert_eq!((measured(&prediction).lock.as_str()), "index_lock");
        assert_eq!(measured(&prediction).queue_mean, Some(0.5));
    }
    let cases = [
        ("#3", "has no lock #3; it has 2", "#1 cache_lock; #2 index_lock"),
        ("#0", "has no lock #0; it has 2", "#1 cache_lock; #2 index_lock"),
        ("#index_lok", "has no lock index_lok", "did you mean index_lock?"),
        ("#", "has no lock ", "#1 cache_lock; #2 index_lock"),
        ("#log_lock", "from log_lock", "could not tell how long it was held"),
        ("#tree", "from tree", "readers can hold it together"),
        ("#queue_lock", "from queue_lock", "something other than the end of a hold"),
    ];
    each(&cases, |_, (chosen, what, more)| {
        predict_from(&path, chosen, "").bad().says(what).says(more);
    });
    let path = with_locks(&stage, |lock| vec![lock.clone(), other(lock, json!({"id": 4}))]);
    predict_from(&path, "#cache_lock", "").bad().says("several locks with the name cache_lock");
    assert_eq!(measured(&from(&path, "#2")).lock, "cache_lock");
}

#[test]
fn what_a_profile_doubts_is_said() {
    let stage = Stage::new();
    let path = with_locks(&stage, |lock| {
        vec![other(lock, json!({"predicted": [], "queue_is_lower_bound": true}))]
    });
    let shown = predict_from(&path, "", "").done().out;
    let text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("queue at least 0.42"), "{shown}");
    assert!(text.contains("more than this lock sets the pace of its threads"), "{shown}");
    assert!(!text.contains("was measured"), "{shown}");
    let without = json!({"held_share_interval95": null, "held_share": 1.0, "queue_mean": 8.0});
    let path = with_locks(&stage, |lock| vec![other(lock, without)]);
    let prediction = from(&path, "");
    assert_eq!((prediction.hold_share, prediction.knee), (1.0, Some(1.0)));
    assert!(prediction.rows.iter().all(|row| row.speedup_interval95.is_none()));
}

#[test]
fn a_cell_of_contention_gives_both_times_and_what_it_did() {
    let file = &kept(POOL).file;
    let chosen = predict_from(file, "", "").bad().says("choose one with").err.clone();
    assert!(chosen.contains("#1 "), "{chosen}");
    let prediction = (1..)
        .map(|number| from(file, &format!("#{number}")))
        .find(|prediction| measured(prediction).threads == 20)
        .unwrap();
    let lock = measured(&prediction);
    assert_eq!((lock.source, lock.simulated), (MeasuredBy::Contention, true));
    assert_eq!((prediction.hold_shape.as_str(), prediction.cores), ("fixed", None));
    let hold_ns = prediction.hold_ns.unwrap();
    let [low, high] = lock.hold_ns_interval95.unwrap();
    assert!((4e5..6e5).contains(&hold_ns) && low <= hold_ns && hold_ns <= high, "{lock:?}");
    assert!(lock.acquisitions_per_s.unwrap() > 100.0 && lock.handoff_ns.unwrap() > 0.0);
    let row = prediction.rows.iter().find(|row| row.threads == 20).unwrap();
    assert!(row.throughput_per_s.is_some() && row.speedup_interval95.is_some(), "{row:?}");
    let speedup = lock.speedup.unwrap();
    assert!((row.speedup / speedup - 1.0).abs() < 0.1, "{speedup}: {row:?}");
}

#[test]
fn threads_that_compute_have_the_cores_of_their_cell() {
    let path = &kept(SWEEP).file;
    let prediction = from(path, "#2");
    assert!(prediction.cores.is_some(), "{prediction:?}");
    let text = predict_from(path, "#2", "").done().out;
    assert!(text.contains("SIMULATED"), "{text}");
    assert!(text.contains("a speed-up of"), "{text}");
    let free = super::checked(&predict_from(path, "#2", "--cores 64 --json").done().out);
    assert_eq!(free.cores, Some(64));
}

#[test]
fn files_without_locks_are_refused() {
    let stage = Stage::new();
    let none = with_locks(&stage, |_| Vec::new());
    for chosen in ["#1", "#cache_lock"] {
        predict_from(&none, chosen, "").bad().says("holds no locks");
    }
    let latency = stage.path("latency.jsonl");
    let line = "latency futex --placement pinned --time 20ms --simulated-machine 7 --quiet --out";
    threadtoll(words(line, &[&latency])).done();
    let text = stage.path("text.txt");
    std::fs::write(&text, "5ms\n").unwrap();
    let cases = [
        (none, "holds no locks"),
        (latency, "holds no locks"),
        (text, "is not a threadtoll file"),
        (stage.path("absent"), "cannot read"),
        (stage.path("absent#cache_lock"), "cannot read"),
    ];
    each(&cases, |_, (path, what)| {
        predict_from(path, "", "").bad().says(what).says("hint: ");
    });
    let line = "predict --json --from";
    let odd = stage.path("kept#1.jsonl");
    std::fs::copy(stage.kept(), &odd).unwrap();
    assert_eq!(answered(line, &[&odd]).from.unwrap().file, "kept#1.jsonl");
}

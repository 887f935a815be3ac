//! `threadtoll contention`: predictions and their time, output, refusals, and plausible figures of
//! the real machine.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use threadtoll_machine::allowed_cpus;
use threadtoll_machine::lock::machine_lock;
use threadtoll_machine::synthetic::Synthetic;
use threadtoll_record::file::{self, Results};
use threadtoll_record::{Contention, LockSubject, NO_LOCK, Record, RecordKind, Refusal};

use crate::program::{each, kept, run_in, threadtoll, words};
use crate::queue::tables;

/// The lines of a run's file.
fn measured(directory: &Path, line: &str) -> Results {
    run_in(directory, &format!("{line} --out results.jsonl --quiet")).done();
    file::read(&directory.join("results.jsonl")).unwrap()
}

/// The records of locks, without the baseline.
fn of_locks(results: &Results) -> Vec<(LockSubject, Contention, Record)> {
    let of = |record: Record| {
        let contention = record.figures.contention()?.clone();
        Some((record.cell.lock()?.clone(), contention, record))
    };
    results
        .records()
        .into_iter()
        .filter_map(of)
        .filter(|(subject, ..)| !subject.is_alone())
        .collect()
}

#[test]
fn what_cannot_be_had_is_one_clear_sentence() {
    let cases = [
        ("", "contention needs a scenario", "hold-sweep"),
        ("hold-swep", "no scenario is called “hold-swep”", "did you mean hold-sweep"),
        ("spin", "no scenario is called “spin”", "that is a lock"),
        ("hold-sweep std-mutx", "no lock is called “std-mutx”", "did you mean std-mutex"),
        ("hold-sweep none", "no lock is called “none”", "list locks"),
        ("hold-sweep spin spin", "given twice", "once"),
        ("hold-sweep striped/1:spin", "2 to 1024, not 1", "striped/8:std-mutex"),
        ("hold-sweep striped/99999:spin", "2 to 1024, not 99999", "striped/8:std-mutex"),
        ("hold-sweep striped/4:counter-atomic", "cannot be striped", "add a lock"),
        ("hold-think --hold 0", "longer than zero", "2.5us"),
        ("hold-think --hold -5us", "negative", "2.5us"),
        ("hold-think --think soon", "not a duration", "2.5us"),
        ("hold-sweep --hold 5us", "argument “--hold”", "hold-sweep --help"),
        ("hold-sweep --tasks 5", "argument “--tasks”", "hold-sweep --help"),
        ("pool --read-share 0.5", "argument “--read-share”", "pool --help"),
        ("pool --tasks 0", "at least 1", "whole number"),
        ("hold-sweep --hold-share -0.1", "“-0.1” is not a share", "0% to 100%"),
        ("hold-sweep --hold-share 50", "“50” is not a share", "0% to 100%"),
        ("hold-sweep --hold-share 101%", "“101%” is not a share", "0% to 100%"),
        ("hold-sweep --hold-share half", "“half” is not a number", "0% to 100%"),
        ("hold-sweep --hold-share 0.5,50%", "contains 50% twice", "once"),
        ("hold-sweep --threads 0", "at least 1", "whole number"),
        ("hold-sweep --threads 4..1", "counts down", "1..32"),
        ("hold-sweep --threads 5000", "too many", "1024"),
        ("hold-sweep --rate 0", "at least 1", "whole number"),
        ("hold-sweep --rate 100000 --work sleep", "sleeps are not that short", "10000"),
        ("hold-sweep --work idle", "--work idle", "spin, sleep"),
        ("hold-sweep spin --read-share 0.5", "only to reader-writer locks", "std-rwlock"),
        ("overload --arrivals 0", "“0” is less than 0.1 times the capacity", "0.5,2 or 150%"),
        ("overload --arrivals -1", "“-1” is negative", "0.5,2 or 150%"),
        ("overload --arrivals 11", "“11” is more than 10 times the capacity", "0.5,2 or 150%"),
        ("overload --arrivals many", "“many” is not a number", "0.5,2 or 150%"),
        ("overload --arrivals 2,2", "contains 2 twice", "each rate once"),
        ("overload --bound -1", "cannot be negative", "whole number"),
        ("overload --bound 1001", "at most 1000", "smaller"),
        ("overload --bound some", "not a whole number", "from 0"),
        ("overload --bound 4,4", "contains 4 twice", "each bound once"),
        ("overload --deadline 0", "longer than zero", "2.5us"),
        ("overload --deadline soon", "not a duration", "2.5us"),
        ("overload --deadline 2h", "unknown unit", "2.5us"),
        ("overload --deadline 4000s", "at most 3600 s", "shorter time"),
        ("overload --deadline 4ms", "4ms is shorter than the hold time, 5ms", "shorter --hold"),
        ("overload --hold 1s --deadline 9s,900ms", "900ms is shorter than the hold time", "longer"),
        ("overload --hold 5us", "it must be at least 100us", "--hold 5ms"),
        ("overload --hold 2s", "it must be at most 1s", "--hold 5ms"),
        ("overload --think 1ms", "argument “--think”", "overload --help"),
        ("overload --read-share 0.5", "argument “--read-share”", "overload --help"),
        ("overload std-mutx", "no lock is called “std-mutx”", "did you mean std-mutex"),
        ("hold-sweep --bound 8", "argument “--bound”", "hold-sweep --help"),
        ("hold-sweep --samples 10", "argument “--samples”", "hold-sweep --help"),
    ];
    each(&cases, |_, (arguments, what, hint)| {
        let ended = threadtoll(words(&format!("contention {arguments}"), &[]));
        ended.bad().says(what).says(hint);
    });
}

/// A lock with several queues or none has none to overload.
#[test]
fn what_is_not_one_queue_is_not_overloaded() {
    for (lock, why) in
        [("counter-atomic", "it is a counter"), ("striped/4:std-mutex", "it is several locks")]
    {
        let line = format!("contention overload {lock} --simulated-machine 1");
        let ended = threadtoll(words(&line, &[]));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.err.contains(why), "{ended:?}");
    }
}

/// Locks that never sleep are left out where they could block themselves.
#[test]
fn what_would_stand_still_is_left_out_with_a_line() {
    let line = "contention hold-sweep spin --simulated-machine 1 --threads 9";
    let ended = threadtoll(words(line, &[]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains("could keep the holder off its CPU"), "{ended:?}");
}

#[test]
fn every_cell_is_predicted_before_it_is_measured_and_its_record_repeats_it() {
    let directory = TempDir::new().unwrap();
    let line = "contention hold-sweep std-mutex striped/2:ticket std-rwlock --simulated-machine 3 --threads 1,2,8 --hold-share 10%,50% --time 250ms";
    let results = measured(directory.path(), line);
    assert!(results.plan.groups.iter().all(|group| group.len() <= 8));
    let text = std::fs::read_to_string(directory.path().join("results.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is = |line: &Value, kind: &str| line["schema"] == format!("threadtoll.{kind}/1");
    let mut prediction = 0;
    for record in lines.iter().filter(|line| is(line, "record") && line["cell"]["lock"].is_string())
    {
        let predicted = &record["contention"]["predicted"];
        if predicted.is_null() {
            let reads = record["cell"]["read_share"].as_f64().unwrap_or(0.0);
            assert!(record["cell"]["lock"] == "none" || reads > 0.0, "{record}");
            continue;
        }
        prediction += 1;
        let said = lines.iter().position(|line| {
            is(line, "foretold")
                && (&line["group"], &line["cell"]) == (&predicted["group"], &predicted["cell"])
        });
        let first =
            lines.iter().position(|line| is(line, "block") && line["group"] == predicted["group"]);
        assert!(said < first, "the prediction comes after the first block");
        let mut told = lines[said.unwrap()].clone();
        told.as_object_mut().unwrap().remove("schema");
        assert_eq!(*predicted, told);
    }
    assert!(prediction >= 18, "{prediction}");
    for (subject, contention, record) in of_locks(&results) {
        assert_eq!(record.kind, RecordKind::Wait);
        let speedup = contention.speedup.unwrap();
        // The simulated machine follows the models, with 1% of noise.
        if let Some(told) = contention.predicted.as_ref().filter(|told| told.refused.is_none()) {
            let predicted = told.speedup.unwrap();
            assert!(
                (predicted.get() / speedup.get() - 1.0).abs() < 0.02,
                "{subject:?}: {predicted} {speedup}"
            );
            let queue = told.queue_mean.unwrap().get() - contention.queue_mean.unwrap().get();
            assert!(queue.abs() < 0.05 * f64::from(subject.threads));
        }
        assert_eq!(record.against.len(), 2, "the reference, and the thread alone");
        assert!(record.against[1..].iter().all(|against| against.of == "work_per_s"));
    }
}

#[test]
fn tables_maps_and_the_page() {
    insta::assert_snapshot!("hold_sweep", tables(SWEEP));
    insta::assert_snapshot!("pool", tables(POOL));
    // This lock tells its queue.
    insta::assert_snapshot!("pool_told", tables(POOL_TOLD));
    let page = std::fs::read_to_string(&kept(SWEEP).page).unwrap();
    assert!(page.contains("<h2>Locks</h2>") && page.contains("<figure class=\"chart cells\""));
    assert!(page.contains("<h2>Timeline: std-mutex, 2 threads, hold "), "the timeline");
}

pub(crate) const SWEEP: &str = "contention hold-sweep std-mutex --threads 1,2,9 \
                                --hold-share 0,50%,100% --time 20ms --simulated-machine 7";
pub(crate) const POOL: &str = "contention pool --threads 1,20,32 --time 20ms --simulated-machine 7";
const POOL_TOLD: &str =
    "contention pool threadtoll-fair --threads 1,20,32 --time 20ms --simulated-machine 7";
const HOLD_THINK: &str =
    "contention hold-think std-mutex --threads 1,2,3 --time 250ms --simulated-machine 5 --quiet";

/// Files of versions whose predictions had a 99% interval of the simulation, and refused nothing.
#[test]
fn predictions_of_older_files_still_render() {
    let directory = TempDir::new().unwrap();
    let text = std::fs::read_to_string(&kept(HOLD_THINK).file).unwrap();
    let older = |told: &mut Value| {
        let told = told.as_object_mut().unwrap();
        for added in ["refused", "speedup_interval95", "queue_mean_interval95"] {
            assert!(told.remove(added).is_some());
        }
        told.insert("speedup_interval99".into(), serde_json::json!([1.5, 1.6]));
    };
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["schema"] == "threadtoll.foretold/1" {
                older(&mut line);
            } else if line["contention"]["predicted"].is_object() {
                older(&mut line["contention"]["predicted"]);
            }
            line.to_string()
        })
        .collect();
    std::fs::write(directory.path().join("older.jsonl"), lines.join("\n") + "\n").unwrap();
    let shown = run_in(directory.path(), "report older.jsonl --details").done().out;
    assert!(shown.contains("they were off by"), "{shown}");
}

/// A run that ended after its predictions, or after some blocks, is completed with new predictions.
#[test]
fn an_interrupted_run_is_completed() {
    let directory = TempDir::new().unwrap();
    let run = kept(HOLD_THINK);
    let whole = file::read(&run.file).unwrap();
    let text = std::fs::read_to_string(&run.file).unwrap();
    let all: Vec<&str> = text.lines().collect();
    for lines in [3, 4, 6, 12] {
        let path = directory.path().join(format!("cut-{lines}.jsonl"));
        std::fs::write(&path, all[..lines].join("\n") + "\n").unwrap();
        file::read(&path).unwrap();
        threadtoll(words("contention --quiet --resume", &[&path])).done();
        let results = file::read(&path).unwrap();
        assert!(results.complete());
        for ((_, before, _), (_, after, _)) in of_locks(&whole).iter().zip(of_locks(&results)) {
            let told =
                |contention: &Contention| contention.predicted.as_ref().map(|told| told.speedup);
            assert_eq!(told(before), told(&after));
        }
    }
    let contradicted = threadtoll(words("contention hold-think spin --resume", &[&run.file]));
    contradicted.bad().says("contradicts");
}

/// Predictions that are late, repeated, or altered are rejected.
#[test]
fn predictions_out_of_place_are_refused() {
    let directory = TempDir::new().unwrap();
    let text = std::fs::read_to_string(&kept(HOLD_THINK).file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let spoilt = directory.path().join("spoilt.jsonl");
    let refused = |lines: Vec<String>, what: &str| {
        std::fs::write(&spoilt, lines.join("\n") + "\n").unwrap();
        threadtoll(words("report", &[&spoilt])).bad().says(what);
    };
    let owned = || lines.iter().map(|line| (*line).to_string()).collect::<Vec<String>>();
    assert!(lines[4].contains("foretold") && lines[5].contains("threadtoll.block"), "{}", lines[5]);
    let mut late = owned();
    late.swap(4, 5);
    refused(late, "was being measured before this prediction");
    let mut twice = owned();
    twice.insert(3, lines[2].to_string());
    refused(twice, "predicted twice");
    let mut without = owned();
    without.remove(2);
    refused(without, "differs from the one made before");
}

/// True on any machine, however busy: the clock cannot be beaten, and queues are no longer than the
/// number of threads.
pub(crate) fn measures_locks(locks: &str) {
    let cpus = allowed_cpus().len();
    let directory = TempDir::new().unwrap();
    let threads = if cpus > 1 { "1,2" } else { "1" };
    let line =
        format!("contention hold-sweep {locks} --threads {threads} --hold-share 50% --time 100ms");
    let results = measured(directory.path(), &line);
    let limits = results.records().into_iter().filter(|record| record.cell.name() == NO_LOCK);
    for alone in limits {
        let limit = alone.figures.contention().unwrap().without_lock.map(f64::from);
        // The second CPU may have been taken away, but does not make two of one.
        assert_eq!(limit.is_some(), alone.cell.cpus.len() > 1);
        assert!(limit.is_none_or(|limit| limit > 0.1 && limit < 1.5 * cpus as f64), "{limit:?}");
    }
    for (subject, contention, record) in of_locks(&results) {
        let threads = f64::from(subject.threads);
        // On a machine that kept changing speed, there may be no ratio.
        assert!(contention.speedup.is_none_or(|speedup| speedup > 0.0), "{subject:?}");
        assert!(
            contention.queue_mean.unwrap() <= threads
                && contention.queue_on_entry.unwrap() <= threads - 1.0
        );
        assert!(contention.queue_max.unwrap() < subject.threads, "{contention:?}");
        assert!(
            (1.0 / threads - 0.01..=1.0).contains(&contention.fairness.unwrap().get()),
            "{contention:?}"
        );
        let told = contention.predicted.unwrap();
        // Counters hold nothing.
        let refused = (subject.hold_ns == 0).then_some(Refusal::Below1us);
        assert_eq!(told.refused, refused, "{subject:?}");
        assert!(refused.is_some() || told.speedup.is_some_and(|it| it > 0.0), "{subject:?}");
        assert!(record.count > 0 && record.histogram.is_some());
    }
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn figures_of_the_real_machine_make_sense() {
    let _alone = machine_lock().unwrap();
    measures_locks("std-mutex mcs counter-atomic striped/4:std-mutex std-rwlock");
}

/// Sleeping threads are not short of CPUs: eight of them share one CPU or two and still queue as
/// predicted.
#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn a_pool_of_sleeping_threads_cannot_be_faster_than_its_lock() {
    let _alone = machine_lock().unwrap();
    let directory = TempDir::new().unwrap();
    let line = "contention pool parking-lot-fair --tasks 40 --hold 2ms --think 6ms --threads 1,8 --time 1ms";
    for (subject, contention, _) in of_locks(&measured(directory.path(), line)) {
        // 40 times 2 ms in sequence, and the last task's 6 ms.
        assert!(contention.total_s.unwrap() >= 0.086, "{subject:?}: {contention:?}");
        let told = contention.predicted.as_ref().unwrap();
        assert!(told.total_s.unwrap() >= 0.086, "{told:?}");
        if subject.threads == 8 {
            // The lock is never free: at least four of the eight wait for it.
            assert!(contention.queue_on_entry.unwrap() > 1.0, "{contention:?}");
            assert!(contention.wait_share.unwrap() > 0.2, "{contention:?}");
        } else {
            assert!(
                contention.total_s.unwrap() >= 0.32 && contention.queue_max == Some(0),
                "{contention:?}"
            );
        }
    }
}

pub(crate) const HOLD_SWEEP: &str = "contention hold-sweep --threads 1,2,4,5,6,8 \
                                     --hold-share 0%,20%,50% --simulated-machine 7";
pub(crate) const FREQUENCY_SWEEP: &str =
    "contention frequency-sweep ticket counter-atomic std-mutex mcs spin --simulated-machine 7";

pub(crate) const OVERLOAD: &str =
    "contention overload std-mutex --arrivals 0.5,2,3 --time 1ms --simulated-machine 7";

/// An overload that is measured with sleeping threads only.
const ASLEEP: &str = "contention overload parking-lot-fair --arrivals 2 --bound 0,8 --work sleep \
                      --deadline 40ms --time 1ms --simulated-machine 7";

#[test]
fn an_overload_shows_who_is_in_time_and_the_queue_over_time() {
    let run = kept(OVERLOAD);
    let screen = run.ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "std-mutex held for 5 ms, asleep, with 3× the callers it can serve:",
        "get it within 50 ms without a bound, ",
        "with a bound of 8 and ",
        "if they give up after 50 ms; while they come, it can serve 33% of them.",
        "of the callers who get the lock get it too late, and after an overload of 300 ms the queue",
        "std-mutex: callers were counted in front of the lock, which has no bound of its own.",
        "computing, 0.5×",
    ] {
        assert!(screen.contains(part), "{part}: {}", run.ended.out);
    }
    let page = std::fs::read_to_string(&run.page).unwrap();
    for part in [
        "<title>What overload does to a lock on ",
        "Queue over time: std-mutex held for 5 ms, asleep, 3× the callers it can serve",
        "no bound, predicted",
        "bound 8, measured",
        "give up, measured",
        "The overload lasts from 100 ms to 400 ms",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
    assert_eq!(page.matches("callers who wait<").count(), 4, "two works, two rates above 1");
    insta::assert_snapshot!(
        "overload",
        threadtoll(words("report --details", &[&kept(ASLEEP).file])).done().out
    );
}

#[test]
fn overloads_are_predicted_and_compared_by_callers_in_time() {
    let results = file::read(&kept(OVERLOAD).file).unwrap();
    let records = results.records();
    let locks: Vec<_> = records.iter().filter(|record| record.cell.lock().is_some()).collect();
    assert_eq!(locks.len(), 2 * 3 * 3);
    for record in &locks {
        assert_eq!(record.kind, RecordKind::Wait);
        let contention = record.figures.contention().unwrap();
        let told = contention.predicted.as_ref().unwrap();
        let (found, told) = (contention.overload.as_ref(), told.overload.as_ref());
        let off = told.unwrap().in_time_share.get() / found.unwrap().in_time_share.get();
        assert!((0.9..1.1).contains(&off), "{}: {off}", record.cell.label());
    }
    let directory = TempDir::new().unwrap();
    let line = format!("{OVERLOAD} --out other.jsonl --quiet").replace("machine 7", "machine 8");
    run_in(directory.path(), &line).done();
    let other = directory.path().join("other.jsonl");
    let out = threadtoll(words("compare --json", &[&kept(OVERLOAD).file, &other])).out;
    let value: Value = serde_json::from_str(&out).unwrap();
    let cells = value["cells"].as_array().unwrap();
    let compared = cells.iter().filter(|cell| cell["cell"]["lock"].is_string());
    assert_eq!(compared.clone().count(), locks.len(), "{out}");
    assert!(compared.clone().all(|cell| cell["figure"] == "rate_per_s"), "{out}");
}

#[test]
fn an_interrupted_overload_is_completed_with_the_same_callers() {
    let whole = &kept(OVERLOAD).file;
    let text = std::fs::read_to_string(whole).unwrap();
    let directory = TempDir::new().unwrap();
    let cut = directory.path().join("cut.jsonl");
    for part in [5, 8] {
        std::fs::write(&cut, &text[..text.floor_char_boundary(text.len() * part / 10)]).unwrap();
        threadtoll(words("contention --quiet --resume", &[&cut])).done();
        let of = |path: &Path| {
            let records = file::read(path).unwrap().records();
            let figures = |record: &Record| record.figures.contention()?.overload.clone();
            records.iter().filter_map(figures).collect::<Vec<_>>()
        };
        assert_eq!(of(&cut), of(whole), "{part}");
    }
}

#[test]
fn overloads_are_planned_for_one_cpu_and_for_five_hundred() {
    let line = "contention overload std-mutex ticket --plan --simulated-machine 7 --cpus 3";
    let ended = threadtoll(words(line, &[])).done();
    assert!(ended.out.contains("std-mutex, 2 threads, hold 1000000 ns"), "{ended:?}");
    assert!(
        !ended.out.contains("ticket,"),
        "its waiters would spin on the holder's CPU: {ended:?}"
    );
    let tree = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    Synthetic::FiveHundred.write(tree.path()).unwrap();
    let ended = threadtoll(words("contention overload --plan --sysfs", &[tree.path()])).done();
    assert!(ended.out.contains("std-mutex, 16 threads, hold 5000000 ns"), "{ended:?}");
}

#[test]
fn the_page_of_a_hold_sweep_has_the_threads_worth_having() {
    let page = std::fs::read_to_string(&kept(HOLD_SWEEP).page).unwrap();
    for part in [
        "held 20% of the time: use up to ",
        "two threads do more work than one if one alone holds it for up to 50% of the time",
        "they were off by",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("class=\"note\">–  No prediction for 6 cells with holds below"));
    assert!(page.contains("<label class=\"all\">"), "a wide table can be narrowed");
}

#[test]
fn the_page_of_a_sweep_of_frequencies_begins_with_its_first_lock() {
    let page = std::fs::read_to_string(&kept(FREQUENCY_SWEEP).page).unwrap();
    let (before, _) = page.split_once("<figure class=\"chart cells\"").unwrap();
    let (_, heading) = before.rsplit_once("<h2>").unwrap();
    assert!(heading.starts_with("frequency-sweep: ticket"), "{heading}");
}

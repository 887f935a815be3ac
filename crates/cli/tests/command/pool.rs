//! `threadtoll predict --arrivals`: output, refusals, and models by case.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use threadtoll_record::{Document, PoolPrediction};

use crate::lines::keeps_to_its_schema;
use crate::profile::Stage;
use crate::program::{each, kept, threadtoll, words};
use crate::screens::screen;

const POOL: &str = "predict --arrivals 20/s --hold 300ms";

/// The pool that a command line predicts with `--json`, which matches its schema.
fn answered(options: &str, paths: &[&Path]) -> PoolPrediction {
    let out = threadtoll(words(&format!("{POOL} --json {options}"), paths)).done().out;
    let value: Value = serde_json::from_str(&out).unwrap();
    keeps_to_its_schema(&value);
    let Document::Pool(pool) = serde_json::from_value(value).unwrap() else { panic!("{out}") };
    *pool
}

fn printed(options: &str) -> String {
    let line = format!("{POOL} {options}");
    threadtoll(words(&line, &[])).done().out
}

#[test]
fn a_pool_needs_more_servers_than_are_busy() {
    insta::assert_snapshot!("exponential", printed("--servers 5..16 --details"));
    let pool = answered("--servers 6..24", &[]);
    assert_eq!((pool.offered_load, pool.enough_servers), (6.0, Some(9)));
    let servers: Vec<u32> = pool.rows.iter().map(|row| row.servers).collect();
    assert_eq!(servers, (6..=24).collect::<Vec<u32>>());
    let growing = &pool.rows[0];
    assert_eq!((&*growing.model, growing.queue_growth_per_s), ("fluid", Some(0.0)));
    assert_eq!((growing.wait_p99_ns, growing.in_use_mean), (None, Some(6.0)));
    // From the definition of Erlang's delay formula, in rational numbers.
    let nine = &pool.rows[3];
    assert_eq!(nine.model, "M/M/c");
    let waiting = nine.wait_probability.unwrap();
    assert!((waiting / 0.195_980_912_695_745_7 - 1.0).abs() < 1e-9, "{waiting}");
    assert!((nine.wait_mean_ns.unwrap() / (waiting * 300e6 / 3.0) - 1.0).abs() < 1e-9);
    assert!((nine.wait_p99_ns.unwrap() / ((waiting * 100.0).ln() * 100e6) - 1.0).abs() < 1e-9);
    assert_eq!((nine.wait_p50_ns, nine.refused_share), (Some(0.0), Some(0.0)));
    assert_eq!(nine.wait_p99_ns_interval99, None);
}

#[test]
fn each_row_names_its_model() {
    for (options, model) in [
        ("", "M/M/c"),
        ("--queue 10", "M/M/c/K"),
        ("--queue 0", "M/G/c/c"),
        ("--queue 0 --hold-shape fixed", "M/G/c/c"),
        ("--queue 0 --patience 1s", "M/G/c/c"),
        ("--hold-shape fixed", "simulation"),
        ("--patience 200ms", "simulation"),
        ("--queue 10 --patience 200ms", "simulation"),
        ("--simulate", "simulation"),
    ] {
        let pool = answered(&format!("--servers 8 {options}"), &[]);
        let row = &pool.rows[0];
        assert_eq!(row.model, model, "{options}");
        assert_eq!(row.refused_share.unwrap() > 0.0, options.contains("--queue"), "{options}");
        let gives_up = options.contains("200ms");
        assert_eq!(row.gave_up_share.unwrap() > 0.0, gives_up, "{options}");
        let simulated = model == "simulation";
        assert_eq!(row.wait_p99_ns_interval99.is_some(), simulated, "{options}");
        assert_eq!(row.wait_probability_interval99.is_some(), simulated, "{options}");
    }
    let line = "predict --arrivals 2/s --hold 300ms --hold-shape fixed --servers 1 --details";
    let text = threadtoll(words(line, &[])).done().out;
    assert!(text.contains("M/D/1: it is exact for one server and fixed hold times"), "{text}");
}

#[test]
fn simulated_rows_have_intervals_that_hold_the_exact_figures() {
    let simulated = answered("--servers 8 --simulate --seed 7", &[]);
    let exact = answered("--servers 8", &[]);
    let (found, exact) = (&simulated.rows[0], &exact.rows[0]);
    for (interval, exact) in [
        (found.wait_p99_ns_interval99, exact.wait_p99_ns),
        (found.wait_mean_ns_interval99, exact.wait_mean_ns),
        (found.wait_probability_interval99, exact.wait_probability),
    ] {
        let [low, high] = interval.unwrap();
        assert!((low..=high).contains(&exact.unwrap()), "{low} to {high}: {exact:?}");
    }
    assert_eq!(simulated, answered("--servers 8 --simulate --seed 7", &[]));
    assert!(simulated != answered("--servers 8 --simulate --seed 8", &[]));
}

#[test]
fn a_pool_that_is_too_small_is_an_answer() {
    let text = printed("--servers 3..5");
    screen("--servers 3..5", &text);
    let flowing = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = flowing(&text);
    assert!(said.contains("With 5 servers the queue grows by 3.33 a second."), "{text}");
    assert!(said.contains("6 or fewer are not enough"), "{text}");
    let crowd = "predict --arrivals 700000/s --hold 1s --hold-shape fixed";
    let text = threadtoll(words(crowd, &[])).done().out;
    assert!(flowing(&text).contains("is not known, because so large a pool"), "{text}");
    let text = printed("--servers 3..5 --queue 4 --patience 1s");
    screen("--queue 4 --patience 1s", &text);
    assert!(!text.contains("grows") && text.contains("refused"), "{text}");
    let text = printed("--queue 0");
    screen("--queue 0", &text);
    assert!(flowing(&text).contains("turn away at most 1% of the callers"), "{text}");
}

#[test]
fn default_rows_hold_the_answer() {
    for line in [
        POOL,
        "predict --arrivals 20/s --hold 300ms --target 1ms",
        "predict --arrivals 20/s --hold 300ms --queue 0",
        "predict --arrivals 1000/s --hold 2s",
        "predict --arrivals 20/s --hold 1us",
    ] {
        let out = threadtoll(words(&format!("{line} --json"), &[])).done().out;
        let Document::Pool(pool) = serde_json::from_str(&out).unwrap() else { panic!("{out}") };
        let enough = pool.enough_servers.unwrap();
        let row = pool.rows.iter().find(|row| row.servers == enough).unwrap();
        assert!(row.wait_p99_ns.unwrap() < pool.target_ns, "{line}: {row:?}");
        assert!(pool.rows.len() <= 20 && pool.rows.last().unwrap().servers > enough, "{line}");
        screen(line, &threadtoll(words(line, &[])).done().out);
    }
}

#[test]
fn measured_hold_times_are_simulated() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("holds.txt");
    std::fs::write(&path, "100ms\n100ms\n200ms\n800ms # slow\n").unwrap();
    let line = "predict --arrivals 20/s --servers 5,8,10 --json --hold-shape";
    let out = threadtoll(words(line, &[&path])).done().out;
    let Document::Pool(pool) = serde_json::from_str(&out).unwrap() else { panic!("{out}") };
    assert!((pool.offered_load - 6.0).abs() < 1e-9 && pool.hold_variation > 0.8, "{pool:?}");
    let models: Vec<&str> = pool.rows.iter().map(|row| &*row.model).collect();
    assert_eq!(models, ["fluid", "simulation", "simulation"]);
    let empty = directory.path().join("empty.txt");
    std::fs::write(&empty, "# none\n").unwrap();
    threadtoll(words(line, &[&empty])).bad().says("holds no durations");
}

/// A lock of this record was held for 1 ms, about 100 times a second.
const HELD: &str = "contention hold-think std-mutex --hold 1ms --think 9ms --threads 1 --work sleep \
                    --time 20ms --simulated-machine 7";

#[test]
fn hold_times_and_arrivals_are_taken_from_a_record_with_their_intervals() {
    let file = &kept(HELD).file;
    let predicted = |options: &str| {
        let line = format!("predict --json {options} --from");
        let out = threadtoll(words(&line, &[file])).done().out;
        let value: Value = serde_json::from_str(&out).unwrap();
        keeps_to_its_schema(&value);
        let Document::Pool(pool) = serde_json::from_value(value).unwrap() else { panic!("{out}") };
        *pool
    };
    let pool = predicted("--arrivals measured --servers 1..3");
    let from = pool.from.as_ref().unwrap();
    assert_eq!((&*from.lock, pool.hold_shape.as_str()), ("std-mutex", "fixed"));
    assert_eq!(Some(pool.arrivals_per_s), from.acquisitions_per_s);
    let [low, high] = pool.arrivals_per_s_interval95.unwrap();
    assert!(low < pool.arrivals_per_s && pool.arrivals_per_s < high, "{pool:?}");
    let [low, high] = pool.hold_ns_interval95.unwrap();
    assert!(low <= pool.hold_ns && pool.hold_ns <= high && high < 1.1e6, "{pool:?}");
    for row in &pool.rows {
        let [low, high] = row.wait_p99_ns_interval95.unwrap();
        assert!(low <= row.wait_p99_ns.unwrap() && row.wait_p99_ns.unwrap() <= high, "{row:?}");
    }
    let [least, most] = pool.enough_servers_interval95.unwrap();
    assert!((least..=most).contains(&pool.enough_servers.unwrap()));

    let given = predicted("--arrivals 3000/s --hold-shape exponential");
    assert_eq!((given.arrivals_per_s, given.arrivals_per_s_interval95), (3000.0, None));
    assert_eq!((given.hold_shape.as_str(), given.hold_ns), ("exponential", pool.hold_ns));
    assert!(given.enough_servers.unwrap() > 3, "three servers would be busy");
    let line = "predict --arrivals measured --details --from";
    let text = threadtoll(words(line, &[file])).done().out;
    assert!(text.contains("SIMULATED") && text.contains("taken"), "{text}");
    screen(line, &threadtoll(words("predict --arrivals measured --from", &[file])).done().out);
    threadtoll(words("predict --hold 1ms --arrivals 3/s --from", &[file]))
        .bad()
        .says("cannot be used with");
}

#[test]
fn a_profile_gives_hold_times_for_a_given_rate() {
    let stage = Stage::new();
    let kept = stage.kept();
    let out = threadtoll(words("predict --arrivals 20/s --json --from", &[&kept])).done().out;
    let value: Value = serde_json::from_str(&out).unwrap();
    keeps_to_its_schema(&value);
    let Document::Pool(pool) = serde_json::from_value(value).unwrap() else { panic!("{out}") };
    assert_eq!((pool.arrivals_per_s, pool.arrivals_per_s_interval95), (20.0, None));
    // The lock was held 31% (30–32%) of the time.
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
    let [low, high] = pool.hold_ns_interval95.unwrap();
    assert!(near(pool.hold_ns, 15.5e6) && near(low, 15e6) && near(high, 16e6), "{pool:?}");
    assert!((pool.offered_load - 0.31).abs() < 1e-9, "{pool:?}");
    for row in &pool.rows {
        let [low, high] = row.wait_p99_ns_interval95.unwrap();
        assert!(low <= row.wait_p99_ns.unwrap() && row.wait_p99_ns.unwrap() <= high, "{row:?}");
    }
    let line = "predict --arrivals 20/s --from";
    let shown = screen(line, &threadtoll(words(line, &[&kept])).done().out);
    let text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let taken = "cache_lock, 9 threads, held 31 ±1% of the time, which is 15.5 ms (15.0–16.0 ms) \
                 each at 20 acquisitions a second.";
    assert!(text.contains(taken), "{shown}");
    let fixed = "predict --arrivals 20/s --hold-shape fixed --details --from";
    let text = threadtoll(words(fixed, &[&kept])).done().out;
    assert!(text.contains("(fixed)"), "{text}");
}

#[test]
fn a_profile_does_not_tell_the_rate_of_arrivals() {
    let stage = Stage::new();
    threadtoll(words("predict --arrivals measured --from", &[&stage.kept()]))
        .bad()
        .says("kept.jsonl is a profile, which tells shares of time but not how often cache_lock")
        .says("--arrivals 20/s");
}

#[test]
fn the_page_of_a_pool_marks_the_recommended_number() {
    let directory = TempDir::new().unwrap();
    let page = directory.path().join("pool.html");
    let drawn = |line: &str| {
        let line = format!("predict --arrivals 20/s --hold 300ms {line} --html");
        threadtoll(words(&line, &[&page])).done();
        std::fs::read_to_string(&page).unwrap()
    };
    let text = drawn("");
    for part in [
        "<title>How many servers?</title>",
        "Waits by number of servers",
        "9 servers enough",
        "target, 300 ms",
        "p99 298 ms",
    ] {
        assert!(text.contains(part), "{part} is not on the page: {text}");
    }
    assert!(!text.contains("turned away"));
    let text = drawn("--queue 0");
    assert!(text.contains("Callers who are turned away") && !text.contains("Waits by number"));
    let text = drawn("--queue 4 --patience 1s");
    assert!(text.contains("refused") && text.contains("give up"), "{text}");
    std::fs::write(&page, "mine").unwrap();
    let line = "predict --arrivals 20/s --hold 300ms --html";
    threadtoll(words(line, &[&page])).bad().says("not a threadtoll page");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
    threadtoll(words("predict --hold 1s --html", &[&page])).bad().says("is missing");
    let closed = "predict --hold 1s --think 1s --html";
    threadtoll(words(closed, &[&page])).bad().says("cannot be used with");
    let nowhere = directory.path().join("nowhere/pool.html");
    threadtoll(words(line, &[&nowhere])).bad().says("there is no folder");
}

#[test]
fn bad_input_is_one_clear_sentence() {
    let cases = [
        ("--arrivals measured --hold 1s", "measured needs a measured lock", "add --from"),
        ("--arrivals measured --from nowhere", "cannot read nowhere", "measuring command"),
        ("--arrivals 20/s --hold 1s --queue some", "not a whole number", "from 0"),
        ("--arrivals 20/s --hold 1s --patience soon", "not a duration", "2.5us"),
        ("--arrivals 20/s --hold 1s --target 0", "longer than zero", "2.5us"),
        ("--arrivals 20/s --hold 1s --servers many", "not a whole number", "from 1"),
        ("--arrivals 20/s --hold 1s --servers 2,2", "contains 2 twice", "each number once"),
        ("--hold 1s --think 1s --servers 4", "cannot be used with", "one of them"),
        ("--hold 1s --think 1s --target 4s", "cannot be used with", "one of them"),
        ("--hold 1s --queue 4", "--arrivals <RATE> is missing", "--help"),
        ("--hold 1s --patience 4s", "--arrivals <RATE> is missing", "--help"),
        ("--hold 1s --target 4s", "--arrivals <RATE> is missing", "--help"),
        ("--arrivals 20", "--arrivals 20: the unit is missing", "20/s"),
        ("--arrivals 20/min --hold 1s", "unknown unit", "20/s"),
        ("--arrivals 0/s --hold 1s", "above zero", "20/s"),
        ("--arrivals -3/s --hold 1s", "cannot be negative", "20/s"),
        ("--arrivals many --hold 1s", "not a rate", "20/s"),
        ("--arrivals 20/s", "needs --hold", "--hold 5ms"),
        ("--arrivals 20/s --hold 0", "the hold time is zero", "longer than zero"),
        ("--arrivals 20/s --hold 1s --servers 0", "--servers 0: it must be at least 1", "number"),
        ("--arrivals 20/s --hold 1s --servers 9..6", "counts down", "numbers of servers"),
        ("--arrivals 20/s --hold 1s --servers 1000001", "at most 1000000", "smaller"),
        ("--arrivals 20/s --hold 1s --queue -1", "cannot be negative", "whole number"),
        ("--arrivals 20/s --hold 1s --queue 1000001", "at most 1000000", "smaller"),
        ("--arrivals 20/s --hold 1s --patience 0", "longer than zero", "2.5us"),
        ("--arrivals 20/s --hold 1s --target soon", "--target soon: not a duration", "2.5us"),
        ("--arrivals 20/s --hold 1s --think 1s", "cannot be used with", "one of them"),
        ("--arrivals 20/s --hold 1s --threads 4", "cannot be used with", "one of them"),
        ("--arrivals 20/s --fit points", "cannot be used with", "one of them"),
        ("--hold 1s --servers 4", "--arrivals <RATE> is missing", "--help"),
        ("--arrivals 9000000/s --hold 1s", "9000000 servers would be busy", "lower rate"),
        ("--arrivals 20/s --hold 1s --hold-shape nonsense", "neither a distribution", "fixed"),
    ];
    each(&cases, |_, (arguments, what, hint)| {
        threadtoll(words(&format!("predict {arguments}"), &[])).bad().says(what).says(hint);
    });
}

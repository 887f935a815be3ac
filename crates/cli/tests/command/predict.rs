//! `threadtoll predict`: output, refusals, and reproducible answers.

mod from;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use threadtoll_record::{Document, Fit, Prediction};

use crate::lines::keeps_to_its_schema;
use crate::program::{Ended, command, each, ran, threadtoll, words};

const ARTICLE: &str =
    "predict --hold 5ms --think 95ms --hold-shape fixed --threads 1,5,10,16,20,25,32 --tasks 1000";

fn predict(line: &str) -> Ended {
    threadtoll(words(line, &[]))
}

/// The prediction that a command line prints with `--json`, which matches its schema.
fn answered(line: &str, paths: &[&Path]) -> Prediction {
    checked(&threadtoll(words(line, paths)).done().out)
}

fn checked(out: &str) -> Prediction {
    assert_eq!(out.lines().count(), 1, "one object on one line");
    let Document::Prediction(prediction) = document(out) else { panic!("no prediction: {out}") };
    *prediction
}

/// The printed object, which matches its schema.
fn document(out: &str) -> Document {
    let value: Value = serde_json::from_str(out).unwrap();
    keeps_to_its_schema(&value);
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_pool_of_the_article() {
    insta::assert_snapshot!("article", predict(&format!("{ARTICLE} --details")).done().out);
    let prediction = answered(&format!("{ARTICLE} --json"), &[]);
    assert_eq!(prediction.knee, Some(20.0));
    assert_eq!(prediction.recommended_threads, Some(20));
    assert_eq!(
        (prediction.hold_shape.as_str(), prediction.think_shape.as_str()),
        ("fixed", "fixed")
    );
    let row = &prediction.rows[3];
    assert_eq!((row.threads, row.model.as_str()), (16, "simulation"));
    for (found, expected, slack) in [
        (row.speedup, 15.8, 0.05),
        (row.throughput_per_s.unwrap(), 158.0, 0.5),
        (row.queue_on_entry, 0.1, 0.05),
        (row.total_s.unwrap(), 6.33, 0.01),
        (row.bound, 16.0, 1e-9),
        (row.amdahl, 9.14, 0.005),
    ] {
        assert!((found - expected).abs() <= slack, "{found} is not {expected}: {row:?}");
    }
}

#[test]
fn closed_forms_are_printed_where_they_are_exact() {
    insta::assert_snapshot!(
        "exponential",
        predict("predict --hold 1us --think 9us --threads 1,2,4..6,16 --details").done().out
    );
    for (options, model) in [
        ("", "repairman"),
        ("--hold-shape fixed", "bounds"),
        ("--hold-shape fixed --think-shape exponential", "takacs"),
        ("--stripes 4", "mva"),
        ("--cores 2", "cores"),
        ("--policy barging", "repairman"),
        ("--policy barging --handoff 2us", "simulation"),
        ("--tasks 100", "simulation"),
        ("--tasks 1000000", "repairman"),
        ("--simulate", "simulation"),
    ] {
        let prediction =
            answered(&format!("predict --hold 1us --think 9us --threads 8 --json {options}"), &[]);
        assert_eq!(prediction.rows[0].model, model, "{options}");
        assert_eq!(prediction.rows[0].total_s.is_some(), options.contains("--tasks"), "{options}");
    }
}

#[test]
fn without_numbers_of_threads_they_go_beyond_the_knee_and_the_advice() {
    for (hold, think, every) in
        [("1us", "9us", true), ("5ms", "995ms", false), ("9us", "1us", true)]
    {
        let line = format!("predict --hold {hold} --think {think} --json");
        let prediction = answered(&line, &[]);
        let threads: Vec<u32> = prediction.rows.iter().map(|row| row.threads).collect();
        let last = *threads.last().unwrap();
        let advice = prediction.recommended_threads.unwrap();
        assert!(f64::from(last) > prediction.knee.unwrap() && last > advice, "{threads:?}");
        assert!(threads.contains(&advice) && threads.len() < 40, "{threads:?}");
        assert_eq!(threads.len() == last as usize, every, "{threads:?}");
    }
}

#[test]
fn a_lock_that_is_never_held_limits_nobody() {
    let ended = predict("predict --hold 0 --think 5ms --threads 1..8").done();
    assert!(ended.out.contains("it limits nothing"), "{}", ended.out);
    let none = answered("predict --hold 0s --think 5ms --threads 1..8 --json", &[]);
    assert_eq!((none.knee, none.recommended_threads, none.what_if.len()), (None, None, 0));
    let always = answered("predict --hold 5ms --think 0 --threads 1..8 --json", &[]);
    assert_eq!((always.knee, always.recommended_threads), (Some(1.0), Some(1)));
}

#[test]
fn a_seed_has_one_answer() {
    let line =
        "predict --hold 1us --think 5us --handoff 3us --policy barging --threads 2,6 --json --seed";
    let first = predict(&format!("{line} 7")).done().out;
    assert_eq!(first, predict(&format!("{line} 7")).done().out);
    let (seven, eight) = (checked(&first), answered(&format!("{line} 8"), &[]));
    assert_eq!((seven.seed, eight.seed), (7, 8));
    assert!(seven.rows[1].speedup != eight.rows[1].speedup);
    let [low, high] = seven.rows[1].speedup_interval99.unwrap();
    assert!(low < seven.rows[1].speedup && seven.rows[1].speedup < high);
}

#[test]
fn bad_input_is_one_clear_sentence() {
    let cases = [
        ("", "needs --hold", "--hold 5ms"),
        ("--hold 5ms", "needs --think", "--think-shape"),
        ("--hold 0 --think 0", "nothing to predict", "at least one"),
        ("--hold 0ns --think 0s", "nothing to predict", "at least one"),
        ("--hold -5ms --think 1ms", "--hold -5ms: a duration cannot be negative", "2.5us"),
        ("--hold 5 --think 1ms", "the unit is missing", "2.5us"),
        ("--hold 5parsecs --think 1ms", "unknown unit", "2.5us"),
        ("--hold NaN --think 1ms", "not a duration", "2.5us"),
        ("--hold 1e9s --think 1ms", "unknown unit", "2.5us"),
        ("--hold 99999999999s --think 1ms", "longer than a day", "2.5us"),
        ("--hold 0.0000001ns --think 1ms", "shorter than a picosecond", "2.5us"),
        ("--hold 5ms --think 5ms --handoff soon", "--handoff soon: not a duration", "2.5us"),
        ("--hold 5ms --think 5ms --threads 0", "at least 1", "whole number"),
        ("--hold 5ms --think 5ms --threads 0..4", "at least 1", "whole number"),
        ("--hold 5ms --think 5ms --threads 4..1", "counts down", "1..32"),
        ("--hold 5ms --think 5ms --threads 1,2,2", "contains 2 twice", "once"),
        ("--hold 5ms --think 5ms --threads many", "not a whole number", "whole number"),
        ("--hold 5ms --think 5ms --threads 1000001", "at most 1000000", "smaller"),
        ("--hold 5ms --think 5ms --threads 1..100000", "more than 1000 rows", "fewer"),
        ("--hold 5ms --think 5ms --stripes 0", "at least 1", "whole number"),
        ("--hold 5ms --think 5ms --stripes 100001", "at most 100000", "smaller"),
        ("--hold 5ms --think 5ms --stripes -1", "negative", "whole number"),
        ("--hold 5ms --think 5ms --cores 0", "at least 1", "whole number"),
        ("--hold 5ms --think 5ms --tasks 0", "at least 1", "whole number"),
        ("--hold 5ms --think 5ms --tasks 1.5", "not a whole number", "whole number"),
        ("--hold 5ms --think 5ms --seed x", "not a whole number", "whole number"),
        ("--hold 5ms --think 5ms --policy fair", "--policy fair is unknown", "fifo, barging"),
        (
            "--hold 5ms --think 5ms --hold-shape expnential",
            "is neither a distribution nor a file",
            "exponential",
        ),
        (
            "--hold 5ms --think 5ms --think-shape /no/such",
            "is neither a distribution nor a file",
            "file of durations",
        ),
        ("--hold 5ms --think 5ms --hold-shape /", "not a regular file", "one duration per line"),
        (
            "--hold 5ms --think 5ms --hold-shape /dev/zero",
            "not a regular file",
            "one duration per line",
        ),
        ("--hold 5ms --think 5ms --hold 6ms", "given twice", "once"),
        ("--hold 5ms --think 5ms --thread 2", "--thread", "did you mean --threads"),
        (
            "--hold 1us --think 1ms --handoff 1us --threads 999000..999900",
            "would take many minutes",
            "fewer threads",
        ),
    ];
    each(&cases, |_, (arguments, what, hint)| {
        predict(&format!("predict {arguments}")).bad().says(what).says(hint);
    });
}

fn file(directory: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn files_that_hold_no_distribution_are_refused() {
    let directory = TempDir::new().unwrap();
    let huge = directory.path().join("huge");
    std::fs::File::create(&huge).unwrap().set_len(100_000_001).unwrap();
    let cases = [
        (file(&directory, "empty", b""), "holds no durations"),
        (file(&directory, "comments", b"# nothing\n\n  # here\n"), "holds no durations"),
        (file(&directory, "binary", b"\x7fELF\xff\xfe\x00\x01"), "is not a text file"),
        (file(&directory, "zeros", &[0; 4096]), "line 1: “"),
        (file(&directory, "nan", b"5ms\nNaN\n"), "line 2: “NaN”: not a duration"),
        (file(&directory, "infinite", b"inf\n"), "line 1: “inf”: not a duration"),
        (file(&directory, "bare", b"1us\n\n17\n"), "line 3: “17”: the unit is missing"),
        (file(&directory, "negative", b"-3us\n"), "cannot be negative"),
        (file(&directory, "nothing", b"0ns\n0ns\n"), "all zero"),
        (file(&directory, "endless", &[b'7'; 1_000_000]), "…”: "),
        (file(&directory, "object", b"{\"hold\": 5}\n"), "is not a threadtoll file: line 1"),
        (huge, "larger than 100 MB"),
    ];
    each(&cases, |_, (path, what)| {
        for option in ["--hold-shape", "--think-shape"] {
            let ended =
                threadtoll(words(&format!("predict --hold 5ms --think 95ms {option}"), &[path]));
            ended.bad().says(what).says("hint: ");
            assert!(ended.err.len() < 1000, "{}", ended.err);
        }
    });
}

#[test]
fn times_from_a_file_are_taken_as_they_are() {
    let directory = TempDir::new().unwrap();
    let path = file(
        &directory,
        "times.txt",
        "# measured\n10us\n\n30us # a slow one\n  20µs\r\n0ns\n".as_bytes(),
    );
    let line =
        "predict --think 135us --think-shape exponential --threads 1,2,8 --json --hold-shape";
    let own = answered(line, &[&path]);
    assert!(
        (own.hold_ns.unwrap() - 15_000.0).abs() < 1e-6 && own.rows[1].model == "takacs",
        "{own:?}"
    );
    assert_eq!(
        (own.hold_shape.as_str(), own.think_shape.as_str()),
        (path.to_str().unwrap(), "exponential")
    );
    // Variance over squared mean of 0, 10, 20 and 30.
    assert!((own.hold_variation - 125.0 / 225.0).abs() < 1e-9);
    let stretched = answered(&line.replace("--json", "--hold 30us --json"), &[&path]);
    assert_eq!(stretched.hold_ns, Some(30_000.0));
    assert!((stretched.hold_variation - own.hold_variation).abs() < 1e-9);
    assert!((stretched.knee.unwrap() - 5.5).abs() < 1e-9);
    let text =
        threadtoll(words("predict --think 135us --details --hold-shape", &[&path])).done().out;
    assert!(text.contains("distributed as in"), "{text}");
}

#[test]
fn a_million_lines_are_read() {
    let directory = TempDir::new().unwrap();
    let mut text = String::new();
    for number in 0u32..1_000_000 {
        writeln!(text, "{}ns", 500 + number.wrapping_mul(2_654_435_761) % 1000).unwrap();
    }
    let path = file(&directory, "million.txt", text.as_bytes());
    let found = answered(
        "predict --think 9us --think-shape exponential --threads 1..20 --json --hold-shape",
        &[&path],
    );
    assert!((found.hold_ns.unwrap() - 999.5).abs() < 2.0, "{found:?}");
    assert_eq!(found.rows[19].model, "takacs");
}

#[test]
fn the_histogram_of_a_record_is_a_distribution() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let measure = |what: &str| {
        let _ = std::fs::remove_file(&path);
        let line = format!("latency {what} --time 20ms --simulated-machine 7 --quiet --out");
        threadtoll(words(&line, &[&path])).done();
    };
    let line = "predict --think 100us --think-shape exponential --threads 1..4 --json --hold-shape";
    measure("futex --placement pinned");
    let ended = threadtoll(words(line, &[&path])).done();
    ended.says("round trips of latency futex, pinned of a simulated machine");
    let found = checked(&ended.out);
    assert!(found.hold_ns.unwrap() > 0.0 && found.hold_variation > 0.0, "{found:?}");
    measure("futex park --placement pinned");
    let ended = threadtoll(words(line, &[&path]));
    ended.bad().says("records").says("#2 latency");
    let named = |number: &str| format!("{}#{number}", path.display());
    let with = |name: &str| {
        let mut command = command();
        command.args(words(line, &[])).arg(OsStr::new(name));
        ran(command)
    };
    with(&named("2")).done().says("using the");
    with(&named("99")).bad().says("has no record #99");
    with(&named("0")).bad().says("at least 1");
    with(&named("x")).bad().says("not a whole number");
}

const THROUGHPUT: &[u8] = b"# threads, requests per s
1 995
2 1880
4 3400
8 5500

16 7100  # two sockets
32 6900
";

#[test]
fn measured_throughput_is_fitted() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "throughput.txt", THROUGHPUT);
    let text = threadtoll(words("predict --details --fit", &[&path])).done().out;
    insta::assert_snapshot!("fit", text);
    let out = threadtoll(words("predict --threads 1,24,64 --json --fit", &[&path])).done().out;
    let Document::Fit(fit) = document(&out) else { panic!("no fit: {out}") };
    let threads: Vec<u32> = fit.rows.iter().filter_map(|row| row.threads).collect();
    assert_eq!(threads, [1, 2, 4, 8, 16, 24, 32, 64]);
    assert_eq!((fit.rows[5].measured, fit.rows[6].measured), (None, Some(6900.0)));
    assert_eq!((fit.measured_up_to, fit.trusted_up_to), (32, 64));
    assert!((20..=26).contains(&fit.peak_threads.unwrap()), "{fit:?}");
    let mut from_stdin = command();
    from_stdin
        .args(["predict", "--details", "--fit", "-"])
        .stdin(std::fs::File::open(&path).unwrap());
    assert_eq!(String::from_utf8(from_stdin.output().unwrap().stdout).unwrap(), text);
}

#[test]
fn a_curve_promises_nothing_beyond_twice_the_measured_threads() {
    let directory = TempDir::new().unwrap();
    let straight = file(&directory, "straight", b"1 100\n2 200\n3 300\n4 400\n");
    let text = threadtoll(words("predict --details --fit", &[&straight])).done().out;
    assert!(text.contains("does not clearly fall up to 8 threads"), "{text}");
    let bent = file(&directory, "bent", b"1 100\n2 193\n4 346\n8 504\n");
    let text = threadtoll(words("predict --details --fit", &[&bent])).done().out;
    assert!(text.contains("at most 8 were measured"), "{text}");
    let falling = file(&directory, "falling", b"1 100\n2 60\n4 40\n");
    let text = threadtoll(words("predict --details --fit", &[&falling])).done().out;
    assert!(text.contains("highest with one thread"), "{text}");
    let level = file(&directory, "level", b"1 100\n2 100\n3 100\n9 100\n");
    let text = threadtoll(words("predict --details --fit", &[&level])).done().out;
    assert!(text.contains("No gain was seen beyond 1 thread: measure 13 and 17"), "{text}");
    let wild = file(&directory, "wild", b"1 5e6\n2 300\n3 9e6\n");
    let text = threadtoll(words("predict --details --fit", &[&wild])).done().out;
    assert!(text.contains("do not rely on it"), "{text}");
    threadtoll(words("predict --threads 4,9 --fit", &[&straight]))
        .bad()
        .says("--threads 9: the curve ends at twice")
        .says("here 8");
}

#[test]
fn a_fall_within_the_error_of_the_fit_is_no_peak() {
    let directory = TempDir::new().unwrap();
    let level = file(&directory, "level", b"1 100\n2 190\n4 350\n6 360\n8 355\n");
    let screen = threadtoll(words("predict --fit", &[&level])).done().out;
    let said = "No gain was seen beyond 6 threads: measure 10 and 12";
    assert!(screen.contains(said) && !screen.contains("peaks"), "{screen}");
    let details = threadtoll(words("predict --details --fit", &[&level])).done().out;
    assert!(details.contains("7 threads on the curve, not shown by the points"), "{details}");
    let fit = fitted(&level);
    assert_eq!((fit.peak_threads, fit.curve_peak_threads), (None, Some(7)));
    let points = b"1 100\n2 190\n4 340\n6 400\n8 395\n12 330\n16 270\n";
    let falling = file(&directory, "falling", points);
    let screen = threadtoll(words("predict --fit", &[&falling])).done().out;
    assert!(screen.contains("Throughput peaks at about 7 threads; more threads reduce it."));
    // A curve through three points has no error of its own.
    let three = file(&directory, "three", b"1 100\n2 150\n4 145\n");
    let screen = threadtoll(words("predict --fit", &[&three])).done().out;
    assert!(screen.contains("No gain was seen beyond 2 threads: measure 6 and 8"), "{screen}");
}

fn fitted(path: &Path) -> Fit {
    let out = threadtoll(words("predict --json --fit", &[path])).done().out;
    let Document::Fit(fit) = document(&out) else { panic!("no fit: {out}") };
    fit
}

#[test]
fn latencies_stand_for_unknown_numbers_of_threads() {
    let directory = TempDir::new().unwrap();
    let curve = |n: f64| 1000.0 * n / (1.0 + 0.04 * (n - 1.0) + 0.002 * n * (n - 1.0));
    let (mut given, mut unknown) = (String::new(), String::new());
    for threads in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
        let (throughput, latency_us) = (curve(threads), threads / curve(threads) * 1e6);
        writeln!(given, "{threads} {throughput} {latency_us}us").unwrap();
        writeln!(unknown, "- {throughput} {latency_us}us").unwrap();
    }
    let given = fitted(&file(&directory, "given", given.as_bytes()));
    let path = file(&directory, "unknown", unknown.as_bytes());
    let unknown = fitted(&path);
    for fit in [&given, &unknown] {
        assert!((fit.alpha - 0.04).abs() < 1e-6 && (fit.beta - 0.002).abs() < 1e-7, "{fit:?}");
        assert_eq!((fit.peak_threads, fit.measured_up_to), (Some(22), 32));
        assert!(fit.rows.iter().all(|row| (row.number() - row.in_flight.unwrap()).abs() < 1e-6));
    }
    assert!(unknown.rows.iter().all(|row| row.threads.is_none()), "{unknown:?}");
    let screen = threadtoll(words("predict --fit", &[&path])).done().out;
    assert!(screen.contains("latency") && screen.contains("~16.0"), "{screen}");
    assert!(screen.contains("throughput × latency, by Little’s law"), "{screen}");
    // Known numbers of threads stay what they are, whatever the latency.
    let queued = file(&directory, "queued", b"1 100 10ms\n2 190 80ms\n- 340 12ms\n");
    let fit = fitted(&queued);
    let numbers: Vec<f64> = fit.rows.iter().map(|row| row.number()).collect();
    assert_eq!(numbers, [1.0, 2.0, 4.08]);
    assert_eq!(fit.rows[1].in_flight, Some(15.2));
}

#[test]
fn files_that_hold_no_curve_are_refused() {
    let directory = TempDir::new().unwrap();
    let huge = directory.path().join("huge");
    std::fs::File::create(&huge).unwrap().set_len(1_000_001).unwrap();
    let many: String = (0..10_001).map(|_| "1 100\n").collect();
    let cases = [
        (directory.path().join("absent"), "cannot read"),
        (directory.path().to_path_buf(), "not a regular file"),
        (file(&directory, "empty", b""), "holds no points; a curve needs at least 3"),
        (file(&directory, "comments", b"# 1 2\n\n"), "holds no points"),
        (file(&directory, "one", b"4 100\n4 101\n"), "has lines for only one number of threads"),
        (
            file(&directory, "two", b"1 100\n2 190\n2 191\n"),
            "has lines for only 2 numbers of threads",
        ),
        (file(&directory, "negative", b"1 100\n2 -190\n"), "line 2: “2 -190”: the throughput"),
        (file(&directory, "nan", b"1 100\n2 NaN\n"), "line 2: “2 NaN”: the throughput"),
        (file(&directory, "infinite", b"1 inf\n"), "line 1: “1 inf”: the throughput"),
        (file(&directory, "nobody", b"0 100\n"), "line 1: “0 100”: the number of threads"),
        (file(&directory, "lone", b"1 100\n2\n"), "line 2: “2”: a line must hold two numbers"),
        (file(&directory, "unknown", b"- 100\n"), "line 1: “- 100”: without a latency"),
        (file(&directory, "bare", b"2 100 3\n"), "“2 100 3”: the latency is wrong: the unit is"),
        (file(&directory, "instant", b"- 100 0s\n"), "the latency must be longer than zero"),
        (file(&directory, "per ms", b"- 1e9 1s\n"), "latency is 1e9, which cannot be a number"),
        (file(&directory, "four", b"1 2 3ms 4\n"), "line 1: “1 2 3ms 4”: a line must hold two"),
        (file(&directory, "binary", b"\x7fELF\xff\xfe\x00\x01"), "is not text"),
        (file(&directory, "zeros", &[0; 4096]), "line 1: “"),
        (file(&directory, "endless", &[b'7'; 900_000]), "…”: "),
        (file(&directory, "object", b"{\"schema\": 5}\n"), "line 1: “{"),
        (file(&directory, "many", many.as_bytes()), "more than 10000 points"),
        (huge, "larger than 1 MB"),
    ];
    each(&cases, |_, (path, what)| {
        let ended = threadtoll(words("predict --json --fit", &[path]));
        ended.bad().says(what).says("hint: ");
        assert!(ended.err.len() < 1000, "{}", ended.err);
    });
}

#[test]
fn a_curve_has_no_workload() {
    for option in ["--hold 5ms", "--think-shape fixed", "--cores 4", "--simulate", "--seed 1"] {
        let name = option.split(' ').next().unwrap();
        predict(&format!("predict --fit - {option}")).bad().says("--fit").says(name);
    }
}

#[test]
fn default_rows_reach_past_the_knee_and_the_recommendation() {
    for line in ["--hold 1us --think 100ms", "--hold 5ms --think 95ms", "--hold 1us --think 1s"] {
        let prediction = answered(&format!("predict {line} --json"), &[]);
        let last = prediction.rows.last().unwrap().threads;
        assert!(f64::from(last) > prediction.knee.unwrap(), "{line}: {last}");
        assert!(last > prediction.recommended_threads.unwrap(), "{line}: {last}");
    }
    let text = predict("predict --hold 1us --think 100ms").done().out;
    assert!(text.contains("100\u{202F}001") && text.contains("100\u{202F}173"), "{text}");
    assert!(!text.contains("100001") && !text.contains("e6"), "{text}");
}

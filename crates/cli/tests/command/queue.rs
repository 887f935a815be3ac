//! `threadtoll queue`: output, refusals, and plausible figures of the real machine.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use threadtoll_machine::allowed_cpus;
use threadtoll_machine::lock::machine_lock;
use threadtoll_record::{
    Cell, DepthFigures, LoopKind, Lose, Lost, Ns, OpenLoopFigures, PerSecond, RecordKind, Wait,
};

use crate::lines::{blocks, line, lines, plan, records};
use crate::program::{Held, each, kept, printed_in, threadtoll, words};

pub(crate) const ASK_REPLY: &str =
    "queue ask-reply pipe rtrb crossbeam-bounded --time 4ms --relaunch 1 --simulated-machine 7";
pub(crate) const STREAM: &str = "queue stream pipe rtrb crossbeam-bounded raw-copy --time 4ms \
                                 --relaunch 1 --simulated-machine 7";

/// The tables of a run, without the versions of peers, which change with the lock file.
pub(crate) fn tables(line: &str) -> String {
    plain(&threadtoll(words("report --details", &[&kept(line).file])).done().out)
}

#[test]
fn the_tables_of_queues() {
    insta::assert_snapshot!("stream", tables(STREAM));
    insta::assert_snapshot!("ask_reply", tables(ASK_REPLY));
    let several = "queue stream crossbeam-bounded --senders 9 --wait poll --time 4ms --relaunch 1 \
                   --simulated-machine 7";
    insta::assert_snapshot!("senders", tables(several));
}

/// The charts of a page match its tables.
#[test]
fn a_page_draws_each_table() {
    let page = std::fs::read_to_string(&kept(STREAM).page).unwrap();
    let charts: Vec<&str> = page.split("<figure class=\"chart list\"").skip(1).collect();
    // The first chart has a heading of its own, and each table one more.
    assert_eq!(2 * charts.len() - 1, page.matches("<h3>Stream").count());
    assert!(charts.len() >= 2, "one by one, and in batches");
    for chart in charts {
        let (chart, _) = chart.split_once("</figure>").unwrap();
        // Down the page and to the left: fewer messages per second.
        let mut places = Vec::new();
        for mark in chart.split("<use class=\"mark\" ").skip(1) {
            let (mark, _) = mark.split_once("</title>").unwrap();
            let (place, title) = mark.split_once("><title>").unwrap();
            let number = |name: &str| -> f64 {
                let (_, rest) = place.split_once(&format!(" {name}=\"")).unwrap();
                rest.split(['%', '"']).next().unwrap().parse().unwrap()
            };
            places.push((number("y"), number("x")));
            let kind = match title.split(' ').next().unwrap().trim_end_matches(',') {
                "raw-copy" => "bare copy",
                "pipe" => "threadtoll",
                _ => "peer",
            };
            let (head, figures) = title.split_once('\n').unwrap();
            assert!(head.ends_with(&format!(", {kind}")), "{title}");
            assert!(figures.contains("million messages per s: "), "{title}");
        }
        assert!(!places.is_empty());
        assert_eq!(chart.matches("class=\"interval\"").count(), places.len());
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(places.is_sorted_by(|a, b| a.1 >= b.1), "the most messages first: {places:?}");
    }
}

/// The text without versions and without alignment.
fn plain(text: &str) -> String {
    let is_version = |word: &str| {
        word.split('.').count() == 3
            && word.split('.').all(|part| part.chars().all(|c| c.is_ascii_digit()))
    };
    let word =
        |word: &'_ str| if is_version(word) { "VERSION".to_string() } else { word.to_string() };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_cannot_be_had_is_one_clear_sentence() {
    let cases = [
        ("", "queue needs a scenario", "ask-reply, stream"),
        ("strem", "no scenario is called “strem”", "stream"),
        ("rtrb", "no scenario is called “rtrb”", "that is a queue"),
        ("stream rtrbb", "no queue is called “rtrbb”", "rtrb"),
        ("stream rtrb rtrb", "given twice", "once"),
        ("stream rtrb --senders 2", "rtrb allows one sender, not 2", "omit the queue"),
        ("stream rtrb --wait block", "rtrb cannot be measured", "--wait"),
        (
            "stream rtrb --wait block",
            "--wait block is not supported, only poll, poll-backoff",
            "--wait",
        ),
        ("stream pipe rtrb --wait block", "pipe, rtrb cannot be measured", "--wait"),
        ("stream rtrb --wait poll --wait poll", "--wait poll is given twice", "once"),
        ("stream --wait idly", "--wait idly is unknown", "adaptive"),
        ("stream crossbeam-bounded --batch 16", "no batch calls", "--batch 1"),
        ("stream raw-copy --batch 1", "copies whole blocks", "--batch"),
        ("stream --batch 0", "at least 1", "whole number"),
        ("stream --senders 0", "at least 1", "whole number"),
        ("stream --senders 65", "at most 64", "smaller"),
        ("stream rtrb --capacity 0", "at least 1", "whole number"),
        ("stream rtrb --capacity 64,64", "contains 64 twice", "once"),
        (
            "stream crossbeam-unbounded --capacity 64",
            "does not apply to crossbeam-unbounded",
            "bounded queue",
        ),
        ("stream --senders 2,2", "contains 2 twice", "once"),
        ("stream --senders two", "not a whole number", "whole number"),
        ("stream --samples 10", "argument “--samples”", "queue stream --help"),
        ("ask-reply --senders 2", "argument “--senders”", "queue ask-reply --help"),
        ("ask-reply --batch 2", "argument “--batch”", "queue ask-reply --help"),
        ("ask-reply raw-copy", "raw-copy cannot run ask-reply", "list queues"),
        ("stream --neighbour spin,spin", "contains spin twice", "once"),
        ("stream --neighbour noisy", "--neighbour noisy is unknown", "churn"),
        ("stream --rate 1000", "argument “--rate”", "queue stream --help"),
        ("open-loop --burst 8", "argument “--burst”", "queue open-loop --help"),
        ("depth --gap 1ms", "argument “--gap”", "queue depth --help"),
        ("open-loop raw-copy", "raw-copy cannot run open-loop", "list queues"),
        ("open-loop call", "call cannot run open-loop", "list queues"),
        ("open-loop --batch 16", "argument “--batch”", "queue open-loop --help"),
        ("open-loop --senders 2", "argument “--senders”", "queue open-loop --help"),
        ("open-loop --rate 0", "at least 1", "whole number"),
        ("open-loop --rate 1000,1000", "contains 1000 twice", "once"),
        ("open-loop --rate 100000001", "at most 100000000", "smaller"),
        ("open-loop --rate fast", "not a whole number", "whole number"),
        ("open-loop --scale 2", "none is given", "--arrivals FILE"),
        ("open-loop --scale 0", "not a factor", "0.5 doubles"),
        (
            "open-loop --arrivals nowhere.txt",
            "--arrivals nowhere.txt: No such file",
            "one time per line",
        ),
        ("burst --burst 1000000", "at most", "smaller"),
        ("burst --gap 2h", "--gap 2h", "durations"),
        ("burst --gap 1us,1us", "contains 1us twice", "once"),
        ("depth --depth 100000000", "--depth 100000000: it must be at most", "smaller"),
        ("depth --capacity 64", "argument “--capacity”", "queue depth --help"),
        ("depth --samples 10", "argument “--samples”", "queue depth --help"),
        ("workers --receivers 0", "at least 1", "whole number"),
        ("workers --receivers 65", "at most 64", "smaller"),
        ("workers --receivers 4,4", "contains 4 twice", "once"),
        ("workers --senders 2", "argument “--senders”", "queue workers --help"),
        ("workers --samples 10", "argument “--samples”", "queue workers --help"),
        ("workers call", "call cannot run workers", "list queues"),
        ("broadcast --receivers 65", "at most 64", "smaller"),
        ("broadcast --graph star", "star", "fan-out"),
        ("broadcast --graph diamond --receivers 1,2", "3 receivers or more", "--receivers 3"),
        ("broadcast call", "call cannot run broadcast", "list queues"),
        ("flood pipe", "pipe cannot run flood", "list queues"),
        ("flood --senders 3", "argument “--senders”", "queue flood --help"),
        ("flood --depth 10", "argument “--depth”", "queue flood --help"),
        ("funnel pipe --senders 2", "pipe allows one sender, not 2", "omit the queue"),
        ("funnel --senders 65", "at most 64", "smaller"),
        ("funnel --important 0", "at least 1", "whole number"),
        ("funnel --important 3 --senders 2,4", "more than --senders 2", "more senders"),
        ("flood --important 1", "argument “--important”", "queue flood --help"),
        ("night-watch --gap 2h", "--gap 2h", "durations"),
        ("night-watch --gap 61s", "--gap 61s: it must be at most 60 s", "shorter"),
        ("night-watch --burst 8", "argument “--burst”", "queue night-watch --help"),
        ("for-me pipe", "has no default traffic: give --rate or --arrivals", "--rate 50000"),
        ("for-me --rate 1000 --lose some", "not one of never, newest and oldest", "refuses"),
        ("for-me --rate 1000 --budget-cpu 0", "not a positive share of a CPU", "20%"),
        ("for-me --rate 1000 --payload 128", "messages have 8, 64,", "use one of these sizes"),
        ("for-me --rate 5000000 --payload 64KiB", "more than 512 MiB", "smaller payload or rate"),
        ("for-me --rate 1000 --capacity 16,64", "one capacity", "once for each"),
        ("for-me --rate 1000 --batch 8", "argument “--batch”", "queue for-me --help"),
        ("open-loop --lose newest", "argument “--lose”", "queue open-loop --help"),
        ("burst --budget-cpu 1", "argument “--budget-cpu”", "queue burst --help"),
        ("burst --receivers 2", "argument “--receivers”", "queue burst --help"),
        ("open-loop --rate 100000001", "at most 100000000", "smaller"),
        ("burst raw-copy", "raw-copy cannot run burst", "list queues"),
        ("payload --payload 100", "--payload 100: messages have 8, 64,", "one of these sizes"),
        ("payload --payload 2MiB", "--payload 2097152: messages have 8, 64,", "one of these sizes"),
        ("payload --payload 4k", "--payload 4k is not a number of bytes", "4KiB"),
        ("payload --payload 64,64B", "contains 64B twice", "once"),
        ("payload --carry words", "--carry words is unknown", "moved, in-place"),
        ("payload --capacity 4096", "at most 2048 messages of 65536 bytes", "smaller capacity"),
        ("payload --batch 16", "argument “--batch”", "queue payload --help"),
        ("payload --senders 2", "argument “--senders”", "queue payload --help"),
        ("payload --samples 10", "argument “--samples”", "queue payload --help"),
        ("payload call", "call cannot run payload", "list queues"),
        ("stream --payload 64", "argument “--payload”", "queue stream --help"),
    ];
    each(&cases, |_, (arguments, what, hint)| {
        let ended = threadtoll(words(&format!("queue {arguments}"), &[]));
        ended.bad().says(what).says(hint);
    });
}

#[test]
fn arrivals_that_cannot_be_played_are_one_clear_sentence() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("arrivals");
    for (arrivals, options, what, hint) in [
        ("", "", "has no arrivals", "one time per line"),
        ("# only this\n", "", "has no arrivals", "one time per line"),
        ("1ms\n", "", "fewer than two arrivals", "one time per line"),
        ("2ms\n1ms\n", "", "line 2: the time “1ms” is before", "one time per line"),
        ("1ms\nlater\n", "", "line 2: “later” is not a time", "one time per line"),
        ("0\n1ms\n2h\n", "", "line 3: “2h” is not a time", "one time per line"),
        ("0\n1ms\n100s\n", "", "a gap of 99.999 s", "--time"),
        ("0\n1ms\n5s\n", "--time 1s", "measured for only 1.000 s", "--time"),
        ("0\n1ns\n2ns\n", "", "clocks can time at most", "--scale"),
        ("0\n1ms\n", "--rate 10", "--rate does not apply to arrivals from a file", "--scale"),
    ] {
        std::fs::write(&path, arrivals).unwrap();
        let line = format!("queue open-loop pipe {options} --arrivals");
        threadtoll(words(&line, &[&path])).bad().says(what).says(hint);
    }
}

/// Nothing of a file of arrivals is kept but its name and checksum.
#[test]
fn a_run_with_arrivals_from_a_file_is_resumed_only_with_that_file() {
    let directory = TempDir::new().unwrap();
    let (path, arrivals) = (directory.path().join("run.jsonl"), directory.path().join("arrivals"));
    let gaps: String = (1..200).map(|nth| format!("+{}us\n", 50 + nth % 7)).collect();
    std::fs::write(&arrivals, &gaps).unwrap();
    let line = "queue open-loop pipe --wait spin --time 40ms --simulated-machine 7 --quiet --scale 2 \
                --out";
    threadtoll(words(&format!("{line} {} --arrivals", path.display()), &[&arrivals])).done();
    let whole = std::fs::read(&path).unwrap();
    let all = lines(&path);
    let is_queue = |record: &&&threadtoll_record::Record| record.cell.queue().is_some();
    let queues = records(&all);
    let figures = &queues.iter().find(is_queue).unwrap().figures;
    let rate = figures.open_loop().unwrap().open_loop.rate_per_s.unwrap().get();
    assert!((rate / 9434.0 - 1.0).abs() < 0.02, "scaled by 2: {rate}");
    let cut = |path: &Path| std::fs::write(path, &whole[..whole.len() / 2]).unwrap();
    cut(&path);
    std::fs::write(&arrivals, "1ms\n2ms\n").unwrap();
    threadtoll(words("queue --quiet --resume", &[&path])).bad().says("has changed");
    std::fs::write(&arrivals, &gaps).unwrap();
    threadtoll(words("queue --quiet --resume", &[&path])).done();
    assert_eq!(records(&lines(&path)).len(), 2, "the reference and the queue");
}

#[test]
fn the_tables_of_loads() {
    let lines = [
        "open-loop rtrb pipe --rate 64000,4096000,16384000 --time 20ms",
        "burst rtrb pipe --wait spin --gap 10us --time 20ms",
        "depth rtrb pipe --wait spin --depth 1,1000 --time 4ms",
        "workers crossbeam-bounded pipe --wait spin --receivers 4,9 --time 4ms",
        "flood funnel crossbeam-array-queue --wait spin --time 100ms",
        "funnel funnel crossbeam-bounded --wait spin --senders 1,4 --time 20ms",
        "night-watch pipe rtrb --wait spin --wait park --gap 1us,100us --time 20ms",
        "payload rtrb pipe --wait spin --payload 8,4KiB --time 4ms",
    ];
    for line in lines {
        let name = line.split(' ').next().unwrap().replace('-', "_");
        let line = format!("queue {line} --relaunch 1 --simulated-machine 7");
        insta::assert_snapshot!(name, tables(&line));
    }
}

/// Rates of the records of queues in a file, in their order.
fn rates(path: &Path) -> Vec<u64> {
    let written = lines(path);
    let load = |cell: &Cell| Some(cell.queue()?.load.rate_per_s?.get());
    let mut rates: Vec<u64> =
        records(&written).iter().filter_map(|record| load(&record.cell)).collect();
    rates.dedup();
    rates
}

#[test]
fn a_sweep_of_rates_ends_where_it_saturates() {
    let directory = TempDir::new().unwrap();
    let [path, folded] = ["run.jsonl", "folded.jsonl"].map(|name| directory.path().join(name));
    let sweep =
        "queue open-loop pipe --wait park --repeat 1s --details --simulated-machine 7 --time 20ms";
    let ended = threadtoll(words(&format!("{sweep} --relaunch 2 --out"), &[&path])).done();
    let measured = rates(&path);
    assert!(measured.len() > 2 && measured.len() < 9 + 1, "{measured:?}");
    let (first, again) = (measured[0], measured[measured.len() - 1]);
    assert_eq!((first, again), (1_000, 1_000), "the repetition is the last");
    let highest = measured[measured.len() - 2];
    assert!(highest < 65_536_000);
    let said = |out: &str| {
        let line = out.lines().find(|line| line.contains("so not measured at higher ones"));
        line.unwrap_or_else(|| panic!("{out}")).to_string()
    };
    assert!(said(&ended.out).ends_with(": pipe with park."), "{}", ended.out);
    assert!(ended.err.contains("at most about"), "{}", ended.err);
    assert!(!ended.out.contains("not finished"), "{}", ended.out);

    // Interrupted in the middle, and completed.
    let whole = std::fs::read(&path).unwrap();
    for share in [4, 8] {
        std::fs::write(&path, &whole[..whole.len() * share / 10]).unwrap();
        let report = threadtoll(words("report --details", &[&path])).done();
        assert!(report.out.contains("The run is not finished"), "{share}: {}", report.out);
        let resumed = threadtoll(words("queue --quiet --resume", &[&path])).done();
        assert!(resumed.err.is_empty(), "{}", resumed.err);
        assert_eq!(rates(&path), measured, "{share}");
    }
    let report = threadtoll(words("report --details", &[&path])).done();
    assert_eq!(said(&report.out), said(&ended.out));
    assert!(!report.out.contains("not finished"), "{}", report.out);
    // Nothing is left, and nothing is measured again.
    let held = Held::of(&path);
    threadtoll(words("queue --quiet --resume", &[&path])).done();
    held.unchanged();
    threadtoll(words("report", &[&path]).into_iter().chain(words("--fold", &[&folded]))).done();
    let report = threadtoll(words("report --details", &[&folded])).done();
    assert_eq!(said(&report.out), said(&ended.out));
    assert!(!report.out.contains("not finished"), "{}", report.out);
    let other = directory.path().join("other.jsonl");
    let line = sweep.replace("machine 7", "machine 8");
    threadtoll(words(&format!("{line} --quiet --out"), &[&other])).done();
    let compared = threadtoll(words("compare", &[&folded, &other])).done();
    assert!(!compared.err.contains("incomplete"), "{}", compared.err);

    // Rates that were named are all measured.
    std::fs::remove_file(&path).unwrap();
    let named = "1000,4000,16000,64000,256000,1024000,4096000,16384000,65536000";
    let line = format!("{sweep} --rate {named} --out").replace("--repeat 1s", "--repeat 0s");
    let ended = threadtoll(words(&line, &[&path])).done();
    assert_eq!(rates(&path).len(), 9);
    assert!(!ended.out.contains("so not measured at higher ones"), "{}", ended.out);
}

#[test]
fn idle_states_are_shown_where_the_kernel_counts_them() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let line = "queue night-watch pipe --wait spin --wait park --gap 1ms --relaunch 1 \
                --time 40ms --details --simulated-machine 7 --out";
    let ended = threadtoll(words(line, &[&path])).done();
    let states = |text: &str| text.matches("C6").count();
    assert!(states(&ended.out) > 0 && !ended.out.contains("no idle-state counters"));
    let whole = std::fs::read_to_string(&path).unwrap();

    // The same on a machine whose kernel has no counters.
    let without = directory.path().join("without.jsonl");
    let mut lines = Vec::new();
    for line in whole.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(states) = line.pointer_mut("/idle/states") {
            *states = serde_json::json!([]);
        }
        lines.push(line.to_string());
    }
    std::fs::write(&without, lines.join("\n") + "\n").unwrap();
    let ended = threadtoll(words("report --details", &[&without])).done();
    assert!(ended.out.contains("This kernel has no idle-state counters"), "{}", ended.out);
    assert_eq!(states(&ended.out), 0, "{}", ended.out);
}

/// On the simulated machine, sleeping receivers take microseconds and little CPU time.
#[test]
fn one_queue_is_recommended_for_the_traffic() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let queues = "pipe crossbeam-bounded crossbeam-array-queue";
    let line = format!(
        "queue for-me {queues} --rate 50000 --lose oldest --budget-cpu 30% --simulated-machine 7 \
         --time 250ms --details --relaunch 1 --out"
    );
    let ended = threadtoll(words(&line, &[&path])).done();
    insta::assert_snapshot!("for_me", plain(&ended.out));
    let answer = |out: &str| {
        let line = out.lines().find(|line| line.starts_with("• Take ")).unwrap();
        line.to_string()
    };
    assert!(answer(&ended.out).contains("pipe with adaptive: p99"), "{}", ended.out);
    let again = threadtoll(words("report --details", &[&path])).done();
    assert_eq!(answer(&again.out), answer(&ended.out));
    // An interrupted run has the same answer in the end.
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let resumed = threadtoll(words("queue --quiet --resume", &[&path])).done();
    assert!(resumed.err.is_empty(), "{}", resumed.err);
    let again = threadtoll(words("report --details", &[&path])).done();
    assert_eq!(answer(&again.out), answer(&ended.out));
}

#[test]
fn traffic_that_no_queue_suits_is_refused_with_the_reason() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let for_me = |options: &str| {
        let line = format!(
            "queue for-me {options} --time 250ms --simulated-machine 7 --relaunch 1 --quiet --out"
        );
        threadtoll(words(&line, &[&path]))
    };
    let ended = for_me("pipe --wait spin --rate 50000 --budget-cpu 10%");
    ended.failed(3).says("1 may take more than 10% of a CPU (pipe with spin least,");
    assert!(path.exists() && ended.out.contains("CPU is too much"), "{ended:?}");
    std::fs::remove_file(&path).unwrap();
    for_me("pipe --wait spin --rate 100000000").failed(3).says("1 cannot keep up");
    std::fs::remove_file(&path).unwrap();
    for_me("pipe funnel --wait park --rate 50000").done();
    let mut written = std::fs::read_to_string(&path).unwrap();
    while let Some(at) = written.find(r#""p99":["#) {
        let end = at + written[at..].find(']').unwrap();
        written.replace_range(at..=end, r#""p99": [100.0,1001.0]"#);
    }
    let vague = directory.path().join("vague.jsonl");
    std::fs::write(&vague, written).unwrap();
    let ended = threadtoll(words("report", &[&vague])).done();
    let said = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("no queue can be recommended: of 2 rows, the p99 of 2 is hardly known"));
    std::fs::remove_file(&path).unwrap();
    let ended = for_me("pipe funnel --rate 1000 --lose oldest");
    ended.failed(3).says("--lose oldest: none of the queues can drop the oldest message");
    let ended = for_me("pipe funnel --rate 1000 --lose newest");
    ended.failed(3).says("--lose newest: none of the queues can refuse messages");
    assert!(!path.exists(), "nothing was measured");
}

#[test]
fn an_open_loop_has_a_cpu_for_its_sender_or_is_left_out() {
    let line = "queue open-loop pipe --wait park --placement same-cpu --simulated-machine 7";
    let ended = threadtoll(words(line, &[]));
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.err.contains("keeps the receiver off the CPU"), "{}", ended.err);
}

#[test]
fn a_queue_that_cannot_wait_as_asked_is_left_out_with_a_line() {
    let plan = |line: &str| {
        threadtoll(words(&format!("queue {line} --simulated-machine 7 --plan"), &[])).done()
    };
    let ended = plan("stream rtrb std-mpsc-bounded --wait block --batch 1");
    assert!(
        ended.err.contains(
            "note: left out: rtrb (--wait block is not supported, only poll, poll-backoff)"
        ),
        "{}",
        ended.err
    );
    assert!(
        ended.out.contains("std-mpsc-bounded, block") && !ended.out.contains("rtrb"),
        "{}",
        ended.out
    );
    let ended = plan("stream pipe rtrb --wait spin --batch 1 --capacity 64,1000");
    assert_eq!(ended.err, "");
    for row in ["pipe, spin", "rtrb, poll, capacity 64", "rtrb, poll-backoff, capacity 1000"] {
        assert!(ended.out.contains(row), "{row} in {}", ended.out);
    }
    assert!(!ended.out.contains("adaptive"), "{}", ended.out);
}

#[test]
fn neighbours_are_measured_in_turn_and_have_tables_of_their_own() {
    let directory = TempDir::new().unwrap();
    let line = "queue ask-reply pipe --wait spin --neighbour none,churn --time 4ms --details \
                --relaunch 1 --simulated-machine 7";
    let tables = printed_in(directory.path(), line);
    let headings: Vec<&str> =
        tables.lines().filter(|line| line.starts_with("Ask-reply: receivers")).collect();
    assert_eq!(
        headings,
        ["Ask-reply: receivers that spin", "Ask-reply: receivers that spin, beside churn"]
    );
}

#[test]
fn queues_that_cannot_take_part_are_named_in_a_line() {
    let plan = |line: &str| {
        threadtoll(words(&format!("queue {line} --simulated-machine 7 --plan"), &[])).done().err
    };
    let left_out = plan("workers --receivers 2");
    let named = "left out: call, oneshot, owned, owned-socket, owned-ready-socket, ring, ring-singly, bundle, raw-copy, tokio-broadcast, disruptor-crate, oneshot-crate (cannot run workers)";
    assert!(left_out.contains(named), "{left_out}");
    let left_out = plan("stream --senders 1,2");
    assert!(
        left_out.contains("left out: call, oneshot, ring-singly, bundle, tokio-broadcast, disruptor-crate, oneshot-crate (cannot run stream)"),
        "{left_out}"
    );
    assert!(left_out.contains("rtrb"), "{left_out}");
    assert!(
        left_out.contains("(rows with several senders, because only one may send)"),
        "{left_out}"
    );
    let left_out = plan("funnel pipe funnel");
    assert!(left_out.contains("left out: pipe (rows with several senders"), "{left_out}");
    let left_out = plan("flood");
    assert!(
        left_out.contains(
            "left out: pipe, pipe-bounded, call, oneshot, owned, owned-socket, owned-ready-socket, ring, ring-singly, bundle, raw-copy"
        ),
        "{left_out}"
    );
    assert_eq!(plan("workers pipe --receivers 2"), "");
}

#[test]
fn a_run_of_queues_is_completed_from_its_file_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let begin =
        "queue stream rtrb gil raw-copy --time 4ms --simulated-machine 7 --quiet --out run.jsonl";
    printed_in(directory.path(), begin);
    let whole = std::fs::read(&path).unwrap();
    let before = lines(&path);
    std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
    threadtoll(words("report --details", &[&path])).done().says("queue --resume");
    threadtoll(words("queue --quiet --resume", &[&path])).done();
    let after = lines(&path);
    let figures = |all: &[threadtoll_record::Line]| -> Vec<(Cell, Option<PerSecond>)> {
        let mut found: Vec<_> =
            records(all).iter().map(|record| (record.cell.clone(), record.rate_per_s)).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        // The cut may have left some records of a group that was then measured again.
        found.dedup();
        found
    };
    assert_eq!(figures(&after), figures(&before), "the simulated machine repeats its figures");
    let contradicted = threadtoll(words("queue ask-reply --resume", &[&path]));
    contradicted.bad().says("contradicts");
    threadtoll(words("latency --resume", &[&path])).bad().says("was started by `threadtoll queue`");
}

/// The figures of a stream through these queues are plausible and equal to those in its file.
pub(crate) fn measures_streams(queues: &str) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let command = format!("queue stream {queues} --time 1ms --json --out");
    let ended = threadtoll(words(&command, &[&path])).done();
    let printed: Vec<_> = ended.out.lines().map(line).collect();
    let written = lines(&path);
    assert_eq!(records(&printed), records(&written));
    assert!(blocks(&written).iter().all(|block| block.over.is_none() && block.count > 0));
    for record in records(&written) {
        let Some(queue) = record.cell.queue() else {
            assert!(record.one_way.is_some() && record.rate_per_s.is_none(), "the reference");
            continue;
        };
        let name = record.cell.label();
        assert_eq!(
            (record.kind, record.loop_kind),
            (RecordKind::Stream, LoopKind::Streaming),
            "{name}"
        );
        let (rate, [low, high]) =
            (record.rate_per_s.unwrap(), record.interval95.rate_per_s.unwrap());
        assert!(low <= rate && rate <= high && rate > 0.0, "{name}: {low} {rate} {high}");
        assert!(
            record.one_way.is_none() && record.histogram.is_none() && record.count > 0,
            "{name}"
        );
        assert_eq!(record.disturbance.blocks, 31, "{name}");
        assert_eq!(&record.against[0].cell, &plan(&written).groups[record.group][0].cell);
        assert_eq!(queue.senders, 1, "the default");
    }
}

/// Open loops, bursts and depths.
pub(crate) fn measures_loads(queues: &str) {
    let loads = [
        ("open-loop --rate 20000,50000000 --time 30ms", RecordKind::Delivery),
        ("burst --burst 1,64 --gap 20us --time 10ms", RecordKind::Delivery),
        ("depth --depth 1,1000 --time 1ms", RecordKind::Calls),
        ("night-watch --gap 10us,1ms --time 40ms", RecordKind::Delivery),
    ];
    measures(queues, &loads);
    let sizes = "payload --payload 8,64KiB --wait spin --time 1ms";
    measures("pipe pipe-bounded gil crossbeam-unbounded", &[(sizes, RecordKind::Stream)]);
}

/// Scenarios of more than two threads, with receivers that sleep.
fn measures_crews(queues: &str) {
    measures(queues, &[("workers --receivers 2 --time 1ms --wait park", RecordKind::Stream)]);
    let every = "broadcast --receivers 1,3 --batch 16 --time 1ms --wait park";
    measures("ring bundle", &[(every, RecordKind::Stream)]);
    let lossy = "funnel crossbeam-bounded crossbeam-array-queue";
    measures(lossy, &[("flood --time 300ms --wait park", RecordKind::SendCall)]);
    let mine = "for-me --rate 20000 --time 400ms --wait park --senders 2 --lose newest";
    measures("funnel crossbeam-bounded", &[(mine, RecordKind::Delivery)]);
    let mine = "for-me --rate 20000 --time 400ms --wait spin --lose oldest";
    measures("pipe crossbeam-array-queue", &[(mine, RecordKind::Delivery)]);
    let many = "funnel --senders 1,3 --rate 20000 --time 300ms --wait park";
    measures("funnel crossbeam-unbounded", &[(many, RecordKind::Delivery)]);
}

/// What is certain whatever the machine.
fn measures(queues: &str, scenarios: &[(&str, RecordKind)]) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    for (options, kind) in scenarios.iter().copied() {
        let (scenario, rest) = options.split_once(' ').unwrap();
        let line = format!("queue {scenario} {queues} {rest} --relaunch 1 --quiet --out");
        let ended = threadtoll(words(&line, &[&path]));
        // A machine that others use may leave too few messages for a recommendation, or tails of
        // which little is known.
        let says = |words| scenario == "for-me" && ended.err.contains(words);
        if says("is hardly known") {
            assert_eq!(ended.code, Some(3), "{ended:?}");
        } else if says("too few messages for a p99") {
            assert_eq!(ended.code, Some(3), "{ended:?}");
            let written = lines(&path);
            // Half of those that were due are enough, whatever else was measured beside them.
            let few = records(&written)
                .into_iter()
                .filter(|record| record.cell.queue().is_some() && record.interval95.p99.is_none())
                .all(|record| record.count < 4000);
            assert!(few, "there were enough messages: {ended:?}");
        } else {
            ended.done();
        }
        let written = lines(&path);
        let queues = records(&written).into_iter().filter(|record| record.cell.queue().is_some());
        for record in queues {
            let name = format!("{scenario}: {}", record.cell.label());
            let rounds = plan(&written).groups[record.group][0].budget.rounds;
            assert_eq!((record.kind, record.disturbance.blocks), (kind, rounds), "{name}");
            let load = &record.cell.queue().unwrap().load;
            let of_loop = record.figures.open_loop();
            if let Some(OpenLoopFigures { open_loop, burst, funnel, .. }) = of_loop {
                assert_eq!(record.loop_kind, LoopKind::Open);
                let max = record.max.unwrap();
                // A machine that others use may leave too few messages for a median.
                let known =
                    |p50: Option<Ns>| p50.or_else(|| (record.count.get() < 40).then_some(max));
                let p50 = known(record.quantiles.p50).unwrap();
                assert!(p50 <= max, "{name}: {p50} to {max}");
                // No message is received before it was sent.
                let late = known(open_loop.lateness.quantiles.p50).unwrap();
                assert!(late <= max, "{name}: {late} of {max}");
                // A funnel's rate is that of its chatty senders; these figures are the others'.
                if let Some(rate) = load.rate_per_s.filter(|_| funnel.is_none()) {
                    let due = open_loop.rate_per_s.unwrap().get();
                    let off = due / rate.as_f64();
                    assert!((0.5..2.0).contains(&off), "{name}: {due}");
                }
                if let Some(burst) = burst {
                    assert!(burst.first_ns <= burst.last_ns, "{name}: {burst:?}");
                }
                if let Some(funnel) = funnel {
                    let chatty = record.cell.queue().unwrap().senders > 1;
                    assert_eq!(funnel.chatty.p50.is_some(), chatty, "{name}");
                    assert_eq!(funnel.fairness.is_some(), chatty, "{name}");
                }
            }
            if let Some(workers) = record.figures.workers() {
                assert!(record.rate_per_s.unwrap() > 0.0, "{name}");
                assert!(workers.fairness.unwrap() > 0.0, "{name}: {workers:?}");
                let alone = record.cell.queue().unwrap().load.base().is_none();
                assert!(!alone || workers.fairness == Some(1.0.into()), "{name}: {workers:?}");
            }
            if load.carry.is_some() {
                let bytes = record.cell.payload_bytes as f64;
                // No core moves a terabyte a second.
                assert!(record.rate_per_s.unwrap().get() * bytes < 1e12, "{name}");
            }
            if let Some(Lost { refused, dropped }) = record.figures.lost() {
                let lost = [refused > 0, dropped > 0];
                match load.lose.unwrap() {
                    Lose::Never => assert_eq!(lost, [false, false], "{name}"),
                    Lose::Newest => assert!(!lost[1], "{name}: {dropped:?}"),
                    Lose::Oldest => assert!(!lost[0], "{name}: {refused:?}"),
                }
            }
            if let Some(DepthFigures { calls, resident_bytes }) = record.figures.depth() {
                assert!(calls.send_ns.unwrap() > 0.0 && calls.receive_ns.unwrap() > 0.0, "{name}");
                assert!(resident_bytes.unwrap().before > 0, "{name}");
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn queues_of_the_real_machine_give_figures_that_make_sense() {
    let _alone = machine_lock().unwrap();
    if allowed_cpus().len() < 2 {
        println!("skipped: queues between two CPUs, of which there is one");
        return;
    }
    let queues = "rtrb crossbeam-unbounded std-mpsc-bounded gil";
    measures_streams(&format!("{queues} raw-copy"));
    measures_loads(&format!("pipe pipe-bounded funnel {queues}"));
    measures_crews("pipe funnel crossbeam-unbounded");
    let command =
        "queue stream crossbeam-unbounded --wait block --senders 1,2 --cpus 0,1 --time 1ms --json";
    if allowed_cpus().starts_with(&[0, 1]) {
        let ended = threadtoll(words(command, &[])).done();
        let printed: Vec<_> = ended.out.lines().map(line).collect();
        for record in records(&printed) {
            let several = record.cell.queue().is_some_and(|queue| queue.senders > 1);
            let crowded = record.warnings.iter().any(|warning| warning.code == "oversubscribed");
            assert_eq!(crowded, several, "{}", record.cell.label());
        }
    }

    let ended =
        threadtoll(words(&format!("queue ask-reply {queues} --time 1ms --json"), &[])).done();
    let printed: Vec<_> = ended.out.lines().map(line).collect();
    let asked: Vec<_> =
        records(&printed).into_iter().filter(|record| record.cell.queue().is_some()).collect();
    assert!(asked.iter().any(|record| record.cell.queue().unwrap().wait == Wait::Block));
    for record in asked {
        assert_eq!((record.kind, record.rate_per_s), (RecordKind::RoundTrip, None));
        assert!(record.count > 0 && record.one_way.as_ref().unwrap().mean.unwrap() > 0.0);
    }
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn other_placements_and_neighbours_are_measured_on_request() {
    let _alone = machine_lock().unwrap();
    let command = "queue stream std-mpsc-unbounded flume-bounded --wait block --placement same-cpu --placement free --neighbour churn --time 1ms --json";
    if allowed_cpus().len() < 2 {
        println!("skipped: free placement, which needs two CPUs");
        return;
    }
    let ended = threadtoll(words(command, &[])).done();
    let printed: Vec<_> = ended.out.lines().map(line).collect();
    let queues: Vec<_> =
        records(&printed).into_iter().filter(|record| record.cell.queue().is_some()).collect();
    assert_eq!(
        queues.len(),
        6,
        "two placements of two queues one at a time, and of one in batches"
    );
    assert!(
        queues
            .iter()
            .all(|record| record.rate_per_s.unwrap() > 0.0 && record.cell.neighbour.is_some())
    );
}

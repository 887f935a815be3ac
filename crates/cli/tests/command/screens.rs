//! Each command answers on one screen: 24 lines of 80 columns.

use std::fs;

use crate::program::{each, kept, run_in, threadtoll, words};
use crate::queue::{ASK_REPLY, STREAM};
use crate::simulated::QUICK;

const LINES: usize = 24;
const COLUMNS: usize = 80;

/// Commands on simulated machines with eight CPUs, one of which changes its speed.
const COMMANDS: [&str; 19] = [
    QUICK,
    "survey --quick --simulated-machine 17179869185",
    "latency --time 1ms --simulated-machine 7",
    "matrix --simulated-machine 7",
    ASK_REPLY,
    STREAM,
    "queue open-loop pipe rtrb --time 20ms --relaunch 1 --simulated-machine 7",
    "queue burst pipe rtrb --gap 100us,1ms --time 4ms --relaunch 1 --simulated-machine 7",
    "queue depth pipe rtrb --time 4ms --relaunch 1 --simulated-machine 7",
    "queue flood funnel crossbeam-array-queue --time 100ms --relaunch 1 --simulated-machine 7",
    "queue funnel funnel crossbeam-unbounded --wait spin --time 20ms --relaunch 1 \
     --simulated-machine 7",
    "queue night-watch pipe --time 20ms --relaunch 1 --simulated-machine 7",
    "queue payload pipe rtrb --time 4ms --relaunch 1 --simulated-machine 7",
    "queue workers pipe crossbeam-bounded --time 4ms --relaunch 1 --simulated-machine 7",
    "queue for-me pipe rtrb --rate 50000 --time 250ms --relaunch 1 --simulated-machine 7",
    "contention hold-sweep std-mutex --hold-share 10%,50%,90% --time 20ms --simulated-machine 7",
    "contention pool std-mutex --time 20ms --simulated-machine 7",
    "contention frequency-sweep --threads 1,2 --time 20ms --simulated-machine 7",
    "predict --hold 5ms --think 95ms --tasks 1000",
];

/// Returns what was printed, after checking its size.
fn screen(line: &str, out: &str) -> String {
    let shown = out.trim_matches('\n');
    let lines = shown.lines().count();
    assert!(lines <= LINES && lines > 2, "{line}: {lines} lines\n{shown}");
    for row in shown.lines() {
        let columns = row.chars().count();
        assert!(columns <= COLUMNS, "{line}: {columns} columns: {row}");
    }
    shown.to_owned()
}

#[test]
fn each_command_answers_on_one_screen() {
    each(&COMMANDS, |_, line| {
        let predicts = line.starts_with("predict");
        let run = if predicts { None } else { Some(kept(line)) };
        let shown = match run {
            Some(run) => screen(line, &run.ended.out),
            None => screen(line, &threadtoll(words(line, &[])).done().out),
        };
        let answer = shown.lines().take(6).any(|row| row.ends_with('.') || row.contains(". "));
        assert!(answer, "{line} has no sentence at its top\n{shown}");
        ratios_are_of_the_figures_on_the_screen(line, &shown);
        if let Some(run) = run {
            let again = run_in(run.file.parent().unwrap(), "report run.jsonl").done().out;
            assert_eq!(screen(line, &again), shown, "{line}");
            let page = fs::metadata(&run.page).unwrap().len();
            assert!(page <= 150_000, "{line}: {page} bytes");
            assert!(shown.lines().next().unwrap().contains(" · grade "), "{line}\n{shown}");
        }
    });
}

/// `57.0 ns … 20.9 µs: 367 times as long` must be true of the two figures as they stand there.
fn ratios_are_of_the_figures_on_the_screen(line: &str, shown: &str) {
    let text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let told: Vec<&str> = text.split(" times as long").collect();
    for sentence in &told[..told.len() - 1] {
        let words: Vec<&str> = sentence.split(' ').collect();
        let times: f64 = words[words.len() - 1].replace(',', "").parse().unwrap();
        let unit = |word: &str| match word.trim_end_matches([',', ':', ';']) {
            "ns" => Some(1.0),
            "µs" => Some(1e3),
            "ms" => Some(1e6),
            _ => None,
        };
        let figures: Vec<f64> = words
            .windows(2)
            .filter_map(|pair| Some(pair[0].parse::<f64>().ok()? * unit(pair[1])?))
            .collect();
        let [.., low, high] = figures[..] else { panic!("{line}: {sentence}") };
        let ratio = high / low;
        assert!((times / ratio - 1.0).abs() < 0.006, "{line}: {times}, not {ratio}: {sentence}");
    }
}

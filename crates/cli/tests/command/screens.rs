//! Each command answers on one screen: 24 lines of 80 columns.

use std::fs;
use std::path::Path;

use threadtoll_machine::synthetic::Synthetic;

use crate::compare::{Files, LATENCY};
use crate::contention::{FREQUENCY_SWEEP, HOLD_SWEEP, OVERLOAD};
use crate::profile::Stage;
use crate::program::{each, kept, run_in, threadtoll, words};
use crate::queue::{ASK_REPLY, STREAM};
use crate::simulated::QUICK;
use crate::synthetic::tree;

const LINES: usize = 24;
const COLUMNS: usize = 80;

const OTHER_SPEED: &str = "survey --quick --simulated-machine 17179869185";

const MATRIX: &str = "matrix --simulated-machine 7";

/// Commands on simulated machines with eight CPUs, one of which changes its speed.
const COMMANDS: [&str; 23] = [
    QUICK,
    OTHER_SPEED,
    "latency --time 1ms --simulated-machine 7",
    MATRIX,
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
    "queue broadcast ring bundle --time 4ms --relaunch 1 --simulated-machine 7",
    "queue workers pipe crossbeam-bounded --time 4ms --relaunch 1 --simulated-machine 7",
    "queue for-me pipe rtrb --rate 50000 --time 250ms --relaunch 1 --simulated-machine 7",
    HOLD_SWEEP,
    "contention pool std-mutex --time 20ms --simulated-machine 7",
    FREQUENCY_SWEEP,
    OVERLOAD,
    "predict --hold 5ms --think 95ms --tasks 1000",
    "predict --arrivals 20/s --hold 300ms",
    "predict --arrivals 20/s --hold 300ms --hold-shape fixed --servers 4..9 --queue 5 --patience 1s",
];

/// Pages in bytes.
const PAGE: u64 = 150_000;

/// Returns what was printed, after checking its size.
pub(crate) fn screen(line: &str, out: &str) -> String {
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
        for (mark, meaning) in [(" ! ", "!  more than a quarter"), (" * ", "*  oversubscribed")] {
            assert!(!shown.contains(mark) || shown.contains(meaning), "{line}\n{shown}");
        }
        if let Some(run) = run {
            let again = run_in(run.file.parent().unwrap(), "report run.jsonl").done().out;
            assert_eq!(screen(line, &again), shown, "{line}");
            is_a_small_page(&run.page);
            assert!(shown.lines().next().unwrap().contains(" · machine grade "), "{line}\n{shown}");
        }
    });
}

#[test]
fn a_matrix_names_the_cpus_that_share_a_cache() {
    let shown = &kept(MATRIX).ended.out;
    let advice = "Keep threads that talk on CPUs that share a cache: CPUs 0-3; CPUs 4-7.";
    assert!(shown.contains(advice), "{shown}");
}

#[test]
fn machines_of_one_cpu_and_of_five_hundred_answer_on_one_screen() {
    const LINES: [&str; 6] = [
        "survey --quick",
        "latency --time 1ms",
        "queue for-me pipe rtrb --rate 50000 --time 250ms --relaunch 1",
        "contention hold-sweep std-mutex --threads 1,2,4 --time 1ms",
        "contention overload std-mutex --arrivals 0.5,2 --work sleep --time 1ms",
        "matrix --level smt",
    ];
    for machine in [Synthetic::OneCpu, Synthetic::FiveHundred] {
        let tree = tree(machine);
        for line in LINES {
            if (machine, line) == (Synthetic::OneCpu, "matrix --level smt") {
                continue;
            }
            let line = format!("{line} --out - --simulated-machine 7 --sysfs");
            let ended = threadtoll(words(&line, &[tree.path()]));
            if machine == Synthetic::OneCpu && ended.code == Some(3) {
                ended.says("need two CPUs, and only one is allowed");
                continue;
            }
            let shown = screen(&line, &ended.done().out);
            let answer = match (machine, line.starts_with("survey")) {
                (Synthetic::OneCpu, true) => "With both threads on one CPU, a wake-up takes ",
                _ => ".",
            };
            assert!(shown.contains(answer), "{machine} {line}\n{shown}");
        }
    }
}

fn is_a_small_page(page: &Path) {
    let bytes = fs::metadata(page).unwrap().len();
    assert!(bytes <= PAGE, "{}: {bytes} bytes", page.display());
}

#[test]
fn comparisons_answer_on_one_screen_with_numbers_that_add_up() {
    let files = Files::new();
    let (base, new) = (files.relaunched(LATENCY, 1), files.relaunched(LATENCY, 2));
    let slower = files.slower(&new, "futex", 1.4);
    let [one, other] = [QUICK, OTHER_SPEED].map(|line| &*kept(line).file);
    for [base, new] in [[&*base, &*new], [&*base, &*slower], [&*slower, &*base], [one, other]] {
        let line = format!("compare {} {}", base.display(), new.display());
        let shown = screen(&line, &threadtoll(words("compare", &[base, new])).out);
        let answer = shown.lines().find(|line| line.starts_with("Of ")).unwrap();
        let numbers: Vec<u32> = answer
            .split([' ', ','])
            .filter(|word| !word.ends_with('%'))
            .filter_map(|word| word.parse().ok())
            .collect();
        let (all, parts) = numbers.split_first().unwrap();
        assert_eq!(*all, parts.iter().sum::<u32>(), "{shown}");
    }
}

#[test]
fn profiles_answer_on_one_screen() {
    let stage = Stage::new();
    let kept = stage.kept();
    let shown = screen("profile", &threadtoll(words("report", &[&kept])).done().out);
    assert!(shown.contains("cache_lock"), "{shown}");
    let page = stage.path("page.html");
    threadtoll(words("report", &[&kept, Path::new("--html"), &page])).done();
    is_a_small_page(&page);
}

/// `57.0 ns … 20.9 µs: 367× as long` must be true of the two figures as they stand there.
fn ratios_are_of_the_figures_on_the_screen(line: &str, shown: &str) {
    let text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let told: Vec<&str> = text.split("× as long").collect();
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

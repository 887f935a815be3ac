//! An interrupted run keeps all that it measured, and is completed without measuring it again.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;
use threadtoll_record::{Line, Record, file};

use crate::bad_input::{SHORT, short};
use crate::lines::{blocks, lines, plan, records};
use crate::program::{Held, Seeded, command, each, kept, run_in, threadtoll, wait_until, words};

/// The survey that is interrupted here, without `--out` and its file. Two processes share each
/// group, so the second one is interrupted as often as the first.
const SURVEY: &str = "survey --quick --relaunch 2 --simulated-machine 9 --quiet";

/// The survey without interruption.
struct Whole {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

impl Whole {
    fn of_survey() -> &'static Self {
        static WHOLE: OnceLock<Whole> = OnceLock::new();
        WHOLE.get_or_init(|| {
            let path = &kept(SURVEY).file;
            Whole { bytes: std::fs::read(path).unwrap(), lines: lines(path) }
        })
    }

    /// The end of machine and plan.
    fn header(&self) -> usize {
        lengths(&self.bytes).take(2).sum()
    }
}

/// The lengths of the lines.
fn lengths(text: &[u8]) -> impl Iterator<Item = usize> {
    text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len)
}

/// Group and attempt of each block, by position: hundreds of files are searched.
fn places(text: &str) -> Vec<(usize, u32)> {
    let number = |line: &str, name: &str| {
        let at = line.find(name).unwrap() + name.len();
        line[at..].split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u32>().unwrap()
    };
    let blocks = text.lines().filter(|line| line.starts_with("{\"schema\":\"threadtoll.block/1\""));
    blocks.map(|line| (number(line, "\"group\":") as usize, number(line, "\"attempt\":"))).collect()
}

/// The contents of a record except its time.
///
/// The simulated machine draws each block of a cell from the cell, the loop, the process and the
/// number of its blocks so far, so an attempt that measures in another order (which depends on the
/// attempt) finds the same values in the same round. Anything that depends on neighbouring blocks
/// may differ: the changes of the reference, and so the marks of blocks, the undisturbed quantiles,
/// the ratios, and the share of the variance between processes.
fn figures(record: &Record) -> Record {
    let mut figures = record.clone();
    figures.run = "".into();
    figures.at = "".into();
    figures.worst.iter_mut().for_each(|worst| worst.at_s = 0.0.into());
    if record.attempt > 1 {
        figures.attempt = 1;
        figures.against.clear();
        figures.between_processes_share = None;
        figures.clean_quantiles = Default::default();
        figures.disturbance = Default::default();
        figures.warnings.clear();
    }
    figures
}

/// The same contents of an uninterrupted run's record, for comparison.
fn expected(whole: &Record, found: &Record) -> Record {
    figures(&Record { attempt: found.attempt, ..whole.clone() })
}

/// Renders the file, completes it, and checks the result: `before` are its contents, `whole` those
/// of an uninterrupted run.
#[track_caller]
fn completes(path: &Path, before: &[u8], whole: &Whole, name: &str) {
    let held = Held::of(path);
    let ended = threadtoll(words("report --text", &[path]));
    assert_eq!(ended.code, Some(0), "{name}: {ended:#?}");
    held.unchanged();
    let ended = threadtoll(words("survey --quiet --resume", &[path]));
    assert_eq!(ended.code, Some(0), "{name}: {ended:#?}");

    // Complete groups are there to the letter, and equal to those of an uninterrupted run.
    let kept = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let after = std::fs::read(path).unwrap();
    assert!(after.starts_with(&before[..kept]), "{name}: lines were changed");
    let header: usize = lengths(before).take(2).sum();
    assert!(
        whole.bytes[whole.header()..].starts_with(&before[header..kept]),
        "{name}: other lines"
    );

    // Finished groups were not measured again, and unfinished ones were restarted.
    let old = &whole.lines[..lengths(&before[..kept]).count()];
    let groups = &plan(&whole.lines).groups;
    let begun = |group: usize| blocks(old).iter().any(|block| block.group == group);
    let of = |lines: &[Line], group: usize| -> Vec<Record> {
        records(lines).into_iter().filter(|record| record.group == group).cloned().collect()
    };
    let finished = |group: usize| of(old, group).len() == groups[group].len();
    for (group, attempt) in places(std::str::from_utf8(&after[kept..]).unwrap()) {
        assert!(!finished(group), "{name}: group {group} was measured twice");
        assert_eq!(attempt, 1 + u32::from(begun(group)), "{name}: group {group}");
    }

    // The figures are those of an uninterrupted run.
    let results = file::read(path).unwrap();
    assert!(results.complete() && results.notes.is_empty(), "{name}");
    for (group, state) in results.groups.iter().enumerate() {
        assert_eq!(
            state.attempts,
            1 + u32::from(begun(group) && !finished(group)),
            "{name}: group {group}"
        );
        for (found, whole) in state.records.iter().flatten().zip(of(&whole.lines, group)) {
            assert_eq!(figures(found), expected(&whole, found), "{name}: group {group}");
        }
    }
}

#[test]
fn a_file_that_was_cut_anywhere_is_rendered_and_completed() {
    let directory = TempDir::new().unwrap();
    let whole = Whole::of_survey();
    let (header, length) = (whole.header(), whole.bytes.len());
    let mut random = Seeded::new(2026);
    let mut cuts: Vec<usize> = (0..2).map(|_| header + random.below(length - header)).collect();
    // The critical places: only the header, after the first line, before the last line feed,
    // nothing missing.
    let first: usize = lengths(&whole.bytes).take(3).sum();
    cuts.extend([header, first, length - 1, length]);
    each(&cuts, |index, cut| {
        let path = directory.path().join(format!("{index}.jsonl"));
        std::fs::write(&path, &whole.bytes[..*cut]).unwrap();
        completes(&path, &whole.bytes[..*cut], whole, &format!("cut at {cut}"));
    });
}

/// Kills the child, however the test ends.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn new(mut command: Command) -> Self {
        Started(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: plain numbers; the child was not waited for, so its id is still valid.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }

    /// The processes that measure for it, each of which has a guardian for a parent.
    pub(crate) fn measuring(&self) -> Vec<i32> {
        children(self.0.id() as i32).into_iter().flat_map(children).collect()
    }

    /// Its code and output, once it has ended.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        use std::io::Read;
        let mut err = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.0.wait().unwrap().code(), err)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `ci/long/kill.sh` kills more often, on the real machine.
#[test]
fn a_kill_at_any_instant_leaves_nothing_or_a_file_that_can_be_completed() {
    let directory = TempDir::new().unwrap();
    let whole = Whole::of_survey();
    let mut random = Seeded::new(9);
    // One is killed as it starts, the others when their files have these lengths.
    let start = Duration::from_micros(random.below(20_000) as u64);
    let quarter = whole.bytes.len() / 4;
    let mut lengths = vec![0];
    lengths.extend((1..3).map(|at| (at * quarter + 1 + random.below(quarter)) as u64));
    let left = std::sync::Mutex::new([0; 3]);
    each(&lengths, |index, length| {
        let path = directory.path().join(format!("{index}.jsonl"));
        let mut survey = command();
        survey.args(words(&format!("{SURVEY} --out"), &[&path]));
        let mut child = Started::new(survey);
        match length {
            0 => sleep(start),
            _ => wait_until("the file", || {
                let grown = std::fs::metadata(&path).is_ok_and(|file| file.len() >= *length);
                grown || child.0.try_wait().unwrap().is_some()
            }),
        }
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        if !path.exists() {
            left.lock().unwrap()[0] += 1;
            return;
        }
        let before = std::fs::read(&path).unwrap();
        let complete = file::read(&path).unwrap().complete();
        left.lock().unwrap()[1 + usize::from(complete)] += 1;
        completes(&path, &before, whole, &format!("killed at {length} bytes"));
    });
    let [nothing, part, everything] = *left.lock().unwrap();
    println!(
        "killed before the file was there: {nothing}; in the middle: {part}; after the end: {everything}"
    );
    assert!(part > 0, "no kill came in the middle");
}

/// A run that lasts as long as a test needs.
fn endless(path: &Path) -> Started {
    let mut latency = command();
    latency.args(words("latency futex --samples 1000000000 --simulated-machine 1 --out", &[path]));
    Started::new(latency)
}

fn holds_blocks(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.iter().filter(|byte| **byte == b'\n').count() > 10)
}

#[test]
fn an_interrupt_ends_with_130_and_says_how_to_go_on() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let started = endless(&path);
        wait_until("the first blocks", || holds_blocks(&path));
        started.signal(signal);
        let (code, err) = started.ended();
        assert_eq!(code, Some(130), "{err}");
        assert!(err.contains(&format!("threadtoll latency --resume {}", path.display())), "{err}");
        assert!(
            !blocks(&lines(&path)).is_empty(),
            "blocks are kept, and the last line is complete"
        );
        threadtoll(words("report", &[&path])).done().says("incomplete");
    }
}

/// For every command that writes files.
#[test]
fn a_report_says_how_to_complete_a_file() {
    each(&SHORT, |_, line| {
        let directory = TempDir::new().unwrap();
        let path = short(line).copied_to(directory.path());
        let bytes = std::fs::read(&path).unwrap();
        let kept: usize = lengths(&bytes).take(3).sum();
        std::fs::write(&path, &bytes[..kept]).unwrap();
        let name = line.split(' ').next().unwrap();
        let completes =
            format!("complete them with `threadtoll {name} --resume {}`", path.display());
        threadtoll(words("report", &[&path])).done().says(&completes);
        threadtoll(words(&format!("{name} --quiet --resume"), &[&path])).done();
        assert!(file::read(&path).unwrap().complete(), "{line}");
    });
}

#[test]
fn a_file_has_one_writer() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let busy = "is being written by another process";
    let first = endless(&path);
    wait_until("the first blocks", || holds_blocks(&path));
    threadtoll(words("latency --resume", &[&path])).bad().says(busy);
    threadtoll(words("latency --simulated-machine 1 --out", &[&path]))
        .bad()
        .says("exists and is not empty");
    threadtoll(words("report", &[&path])).done();
    drop(first);
    let length = || std::fs::metadata(&path).unwrap().len();
    let before = length();
    let mut resume = command();
    resume.args(words("latency --resume", &[&path]));
    let second = Started::new(resume);
    wait_until("more blocks", || length() > before + 10_000);
    threadtoll(words("latency --resume", &[&path])).bad().says(busy);
    second.signal(libc::SIGINT);
    assert_eq!(second.ended().0, Some(130));
    assert!(blocks(&lines(&path)).iter().any(|block| block.attempt == 2));
}

#[test]
fn a_finished_file_is_resumed_by_showing_it() {
    let directory = TempDir::new().unwrap();
    let whole = kept(SURVEY);
    let path = whole.copied_to(directory.path());
    let held = Held::of(&path);
    let again = run_in(directory.path(), "survey --quiet --resume run.jsonl").done();
    assert_eq!(again.out, whole.ended.out);
    held.unchanged();
    assert!(path.with_extension("html").exists(), "the page is made again");
}

/// The children of a process's first thread.
fn children(process: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let words = list.unwrap_or_default();
    words.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

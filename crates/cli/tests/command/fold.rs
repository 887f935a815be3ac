//! `report --fold`: a folded file renders like the raw one.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;
use threadtoll_record::file;
use threadtoll_record::{Line, NO_LOCK, Record};

use crate::contention::{OVERLOAD, SWEEP};
use crate::lines::{blocks, lines, plan, records};
use crate::program::{Ended, Held, each, kept, threadtoll, words};
use crate::simulated::QUICK;

/// A run of each kind that has tables of its own.
const RUNS: [&str; 6] = [
    QUICK,
    "matrix --simulated-machine 7",
    "queue ask-reply pipe rtrb call --wait spin --time 4ms --simulated-machine 5",
    "queue stream pipe raw-copy --time 4ms --simulated-machine 5",
    SWEEP,
    OVERLOAD,
];
const FUTEX: &str = "latency futex --placement pinned --time 1ms --simulated-machine 5";

fn fold(raw: &Path, out: &Path, options: &str) -> Ended {
    let mut arguments = words("report", &[raw]);
    arguments.extend(words("--fold", &[out]));
    arguments.extend(words(options, &[]));
    threadtoll(arguments)
}

/// The tables and the page of a file.
fn rendered(path: &Path) -> (String, String) {
    let page = path.with_extension("page.html");
    let mut arguments = words("report --details", &[path]);
    arguments.extend(words("--html", &[&page]));
    let text = threadtoll(arguments).done().out;
    (text, std::fs::read_to_string(&page).unwrap())
}

#[test]
fn a_folded_file_renders_like_the_raw_one() {
    each(&RUNS, |_, line| {
        let directory = TempDir::new().unwrap();
        let raw = kept(line).copied_to(directory.path());
        let held = Held::of(&raw);
        let [packed, plain, bare] = ["folded.jsonl.gz", "folded.jsonl", "bare.jsonl.gz"]
            .map(|name| directory.path().join(name));
        let ended = fold(&raw, &packed, "").done();
        assert_eq!(ended.out, "", "{line}: only the file was requested");
        assert!(ended.err.contains(&packed.display().to_string()), "{line}: {ended:#?}");
        fold(&raw, &plain, "").done();
        fold(&packed, &bare, "--without-histograms").done();
        held.unchanged();

        let (text, page) = rendered(&raw);
        let (folded_text, folded_page) = rendered(&packed);
        assert_eq!(folded_text, text, "{line}");
        assert!(folded_page == page, "{line}: the page differs");
        // Quantiles of a row over several groups come from its histograms. Without them, its
        // figures may be shorter, which moves the columns.
        let others = |text: &str| -> Vec<String> {
            let rows = text
                .lines()
                .filter(|row| !row.starts_with("atomic-store") && !row.starts_with("futex "));
            rows.map(|row| row.replace([' ', '─'], "")).collect()
        };
        let bare_text = threadtoll(words("report --details", &[&bare])).done().out;
        assert_eq!(others(&bare_text), others(&text), "{line}");

        let (raw, folded) = (lines(&raw), lines(&plain));
        assert_eq!(records(&folded), records(&raw), "{line}");
        assert!(blocks(&folded).is_empty());
        let from = plan(&folded).folded.clone().unwrap();
        assert_eq!(from.blocks, blocks(&raw).len() as u64, "{line}");
        assert_eq!(from.raw_bytes, held.len(), "{line}");
        assert!(plan(&raw).folded.is_none());
        let predictions = |lines: &[Line]| {
            lines.iter().filter(|line| matches!(line, Line::CellPrediction(_))).count()
        };
        assert_eq!(predictions(&folded), predictions(&raw), "{line}");
        assert_eq!(predictions(&raw) > 0, line.starts_with("contention"));
        assert!(file::read(&bare).unwrap().records().iter().all(|it| it.histogram.is_none()));
    });
}

#[test]
fn the_checksum_is_that_of_the_file_as_it_was_given() {
    let directory = TempDir::new().unwrap();
    let raw = kept(FUTEX).copied_to(directory.path());
    let out = directory.path().join("folded.jsonl");
    fold(&raw, &out, "").done();
    let sum = std::process::Command::new("sha256sum").arg(&raw).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap();
    let sha256 = String::from(plan(&lines(&out)).folded.clone().unwrap().sha256);
    assert_eq!(Some(sha256.as_str()), sum.split(' ').next());
}

#[test]
fn neither_a_folded_nor_a_compressed_file_is_resumed() {
    let directory = TempDir::new().unwrap();
    let raw = kept(FUTEX).copied_to(directory.path());
    let (folded, packed) =
        (directory.path().join("folded.jsonl"), directory.path().join("raw.jsonl.gz"));
    fold(&raw, &folded, "").done();
    let mut packer =
        GzEncoder::new(std::fs::File::create(&packed).unwrap(), Compression::default());
    packer.write_all(&std::fs::read(&raw).unwrap()).unwrap();
    packer.finish().unwrap();
    for (file, why, hint) in
        [(&folded, "it is folded", "resume the raw file"), (&packed, "it is compressed", "gunzip")]
    {
        let held = Held::of(file);
        threadtoll(words("latency --resume", &[file])).bad().says(why).says(hint);
        held.unchanged();
        threadtoll(words("report", &[file])).done();
    }
}

#[test]
fn what_an_interrupted_run_did_not_complete_is_left_out_and_said() {
    let directory = TempDir::new().unwrap();
    let raw = kept(QUICK).copied_to(directory.path());
    let text = std::fs::read_to_string(&raw).unwrap();
    let count = text.lines().count();
    let cut: String = text.split_inclusive('\n').take(count * 2 / 3).collect();
    std::fs::write(&raw, cut).unwrap();
    let out = directory.path().join("folded.jsonl");
    let ended = fold(&raw, &out, "").done();
    ended.says("are incomplete and left out of the folded file");
    let ended = threadtoll(words("report", &[&out])).done();
    ended.says("are incomplete.");
    assert!(!ended.err.contains("--resume") && !ended.out.contains("--resume"), "{ended:#?}");
    assert!(ended.out.contains("not finished"), "{ended:#?}");

    let header: String = text.split_inclusive('\n').take(3).collect();
    std::fs::write(&raw, header).unwrap();
    let out = directory.path().join("nothing.jsonl");
    let ended = fold(&raw, &out, "");
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    ended.says("nothing to fold");
    assert!(!out.exists());
}

#[test]
fn what_cannot_be_folded_costs_a_sentence() {
    let directory = TempDir::new().unwrap();
    let raw = kept(FUTEX).copied_to(directory.path());
    let out = directory.path().join("folded.jsonl.gz");
    let mut several = words("report", &[&raw, &raw]);
    several.extend(words("--fold", &[&out]));
    threadtoll(several).bad().says("--fold takes one file, not 2").says("fold each");
    threadtoll(words("report --without-histograms", &[&raw])).bad().says("--fold <OUT> is missing");
    threadtoll(words("report --fold", &[&out])).bad().says("missing");
    let mut page = words("report --html", &[&out, &raw]);
    page.extend(words("--fold", &[&out]));
    threadtoll(page).bad().says("both the page and the folded file");
    fold(&out, &directory.path().join("x"), "").bad().says("No such file");
    assert!(!out.exists());

    let held = Held::of(&raw);
    fold(&raw, &raw, "").bad().says("exists and is not empty").says("choose a new file");
    fold(&raw, directory.path(), "").bad().says("not a regular file");
    held.unchanged();
    fold(&raw, &out, "").done();
    let held = Held::of(&out);
    fold(&raw, &out, "").bad().says("exists and is not empty");
    held.unchanged();
    let names = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(names, 2, "no draft is left beside the run and the folded file");
}

/// The result files below a directory.
fn kept_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(kept_below(&path));
        } else if path.to_string_lossy().ends_with(".jsonl.gz") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_kept_file_in_docs_renders() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    // One of each name: other machines have the same tables.
    let mut files = kept_below(&results);
    files.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    files.dedup_by(|one, other| one.file_name() == other.file_name());
    assert!(files.len() >= 10, "{files:?}");
    each(&files, |_, path| {
        let name = path.display();
        let directory = TempDir::new().unwrap();
        let copy = directory.path().join("run.jsonl.gz");
        std::fs::copy(path, &copy).unwrap();
        let results = file::read(path).unwrap();
        let (text, page) = rendered(&copy);
        assert!(results.plan.folded.is_some(), "{name} is not folded");
        // The reference, and threads without a lock, are not rows of every table.
        let shown = |record: &Record| !["atomic-store", NO_LOCK].contains(&record.cell.name());
        for record in results.records().iter().filter(|record| shown(record)) {
            let row = record.cell.name();
            assert!(text.contains(row), "{name}: {row} is not in the tables");
            assert!(page.contains(row), "{name}: {row} is not in the page");
        }
    });
}

//! Folded and compressed files: equal to the raw ones except for the blocks, and validated as
//! strictly.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use threadtoll_record::file::{Fault, FoldFault, Results, WriteFault, fold, read};
use threadtoll_record::{Block, Line};

use crate::fixture::{AT, group, machine, plan};

/// A run of two groups of two cells.
struct Run {
    directory: TempDir,
    lines: Vec<Line>,
}

impl Run {
    /// Both groups are complete, the second at its second attempt.
    fn new() -> Self {
        let (machine, plan) =
            (machine(), plan(3, &[&["atomic-store", "futex"], &["atomic-store", "park"]]));
        let mut lines =
            vec![Line::Machine(Box::new(machine.clone())), Line::Plan(Box::new(plan.clone()))];
        let blocks_of = |blocks: &[Block]| -> Vec<Line> {
            blocks.iter().map(|block| Line::Block(Box::new(block.clone()))).collect()
        };
        for (index, attempt) in [(0, 1), (1, 2)] {
            if attempt == 2 {
                lines.extend(blocks_of(&group(index, 2, 3, 1)[..5]));
            }
            let blocks = group(index, 2, 3, attempt);
            lines.extend(blocks_of(&blocks));
            let records =
                threadtoll_record::fold(&machine, &plan, index, attempt, &blocks, &[], AT);
            lines.extend(records.into_iter().map(|record| Line::Record(Box::new(record))));
        }
        Run { directory: TempDir::new().unwrap(), lines }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A raw file of the first lines.
    fn raw(&self, lines: usize) -> PathBuf {
        let text: String = self.lines[..lines]
            .iter()
            .map(|line| serde_json::to_string(line).unwrap() + "\n")
            .collect();
        let path = self.at(&format!("raw-{lines}.jsonl"));
        std::fs::write(&path, text).unwrap();
        path
    }

    fn whole(&self) -> PathBuf {
        self.raw(self.lines.len())
    }

    /// The lines of the folded file of the whole run: machine, plan, and four records.
    fn folded(&self) -> Vec<Value> {
        let (raw, out) = (self.whole(), self.at("folded.jsonl"));
        fold(&raw, &read(&raw).unwrap(), &out).unwrap();
        let text = std::fs::read_to_string(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The line and the reason with which they are rejected.
    #[track_caller]
    fn rejected(&self, lines: &[Value]) -> (u64, String) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.rejected_text(&text)
    }

    #[track_caller]
    fn rejected_text(&self, text: &str) -> (u64, String) {
        let path = self.at("bad.jsonl");
        std::fs::write(&path, text).unwrap();
        match read(&path) {
            Err(Fault::Line { line, what, .. }) => (line, what),
            other => panic!("{other:?}"),
        }
    }
}

const PLAN: usize = 1;
const FIRST: usize = 2;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(std::fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Contents of a file, compressed or not.
fn contents(mut results: Results) -> Results {
    (results.length, results.read_length, results.packed) = (0, 0, false);
    results.plan.folded = None;
    results
}

#[test]
fn a_folded_file_has_the_same_records_and_names_the_raw_one() {
    let run = Run::new();
    let raw = run.whole();
    let before = std::fs::read(&raw).unwrap();
    let results = read(&raw).unwrap();
    for (name, is_packed) in [("folded.jsonl.gz", true), ("folded.jsonl", false)] {
        let out = run.at(name);
        fold(&raw, &results, &out).unwrap();
        assert_eq!(std::fs::read(&out).unwrap().starts_with(&[0x1f, 0x8b]), is_packed);
        let folded = read(&out).unwrap();
        assert_eq!(folded.packed, is_packed);
        let from = folded.plan.folded.clone().unwrap();
        assert_eq!(
            (from.blocks.get(), from.raw_bytes.get(), String::from(from.sha256)),
            (24, before.len() as u64, sha256(&raw)),
            "the five blocks of the abandoned attempt are in no record"
        );
        assert_eq!(folded.records().len(), 4);
        assert_eq!(contents(folded), contents(results.clone()));
    }
    assert_eq!(std::fs::read(&raw).unwrap(), before);
}

#[test]
fn groups_that_are_not_complete_are_left_out() {
    let run = Run::new();
    // One record of the second group is missing.
    let raw = run.raw(run.lines.len() - 1);
    let results = read(&raw).unwrap();
    assert_eq!(results.records().len(), 4, "the raw file still has the blocks");
    let out = run.at("folded.jsonl.gz");
    fold(&raw, &results, &out).unwrap();
    let folded = read(&out).unwrap();
    assert_eq!(folded.groups[0], results.groups[0]);
    assert_eq!(folded.groups[1], Default::default());
    assert_eq!(folded.plan.folded.unwrap().blocks, 12);

    let raw = run.raw(10);
    let nothing = fold(&raw, &read(&raw).unwrap(), &run.at("nothing.jsonl.gz"));
    assert!(matches!(nothing, Err(FoldFault::Nothing(_))), "{nothing:?}");
    assert!(!run.at("nothing.jsonl.gz").exists());
}

#[test]
fn folding_replaces_nothing_and_does_not_race_with_a_run() {
    let run = Run::new();
    let raw = run.whole();
    let results = read(&raw).unwrap();
    let out = run.at("folded.jsonl.gz");
    std::fs::write(&out, "mine").unwrap();
    let exists = fold(&raw, &results, &out);
    assert!(matches!(exists, Err(FoldFault::Write(WriteFault::Exists(_)))), "{exists:?}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");

    let shorter = run.raw(run.lines.len() - 1);
    let results = read(&shorter).unwrap();
    std::fs::copy(&raw, &shorter).unwrap();
    let growing = fold(&shorter, &results, &run.at("other.jsonl.gz"));
    assert!(matches!(growing, Err(FoldFault::Growing(_))), "{growing:?}");
    assert!(!run.at("other.jsonl.gz").exists());
}

#[test]
fn folding_again_still_names_the_raw_file() {
    let run = Run::new();
    let raw = run.whole();
    let (once, twice) = (run.at("once.jsonl.gz"), run.at("twice.jsonl.gz"));
    fold(&raw, &read(&raw).unwrap(), &once).unwrap();
    let mut results = read(&once).unwrap();
    results.drop_samples();
    fold(&once, &results, &twice).unwrap();
    let folded = read(&twice).unwrap();
    assert_eq!(folded.plan, results.plan);
    assert_eq!(String::from(folded.plan.folded.clone().unwrap().sha256), sha256(&raw));
    let records = folded.records();
    assert!(records.iter().all(|record| record.histogram.is_none() && record.worst.is_empty()));
    assert_eq!(folded.records(), results.records());
}

#[test]
fn a_compressed_raw_file_is_read_like_the_plain_one() {
    let run = Run::new();
    let raw = run.whole();
    let bytes = std::fs::read(&raw).unwrap();
    let cut = bytes.len() - 10;
    let path = run.at("raw.jsonl.gz");
    std::fs::write(&path, packed(&bytes)).unwrap();
    let results = read(&path).unwrap();
    assert!(results.packed && results.not_resumable().is_some());
    assert_eq!(results.read_length, std::fs::metadata(&path).unwrap().len());
    let plain = read(&raw).unwrap();
    assert!(plain.not_resumable().is_none());
    assert_eq!(contents(results), contents(plain));

    // Two gzip members in one file, and an interrupted file.
    let (one, two) = bytes.split_at(bytes.len() / 2);
    std::fs::write(&path, [packed(one), packed(two)].concat()).unwrap();
    assert_eq!(read(&path).unwrap().records().len(), 4);
    std::fs::write(&path, packed(&bytes[..cut])).unwrap();
    assert_eq!(read(&path).unwrap().notes.len(), 1);
}

#[track_caller]
fn unreadable(path: &Path, part: &str) {
    match read(path) {
        Err(Fault::System { error, .. }) => assert!(error.to_string().contains(part), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cut_and_damaged_compressed_files_are_rejected() {
    let run = Run::new();
    let raw = run.whole();
    let out = run.at("folded.jsonl.gz");
    fold(&raw, &read(&raw).unwrap(), &out).unwrap();
    let whole = std::fs::read(&out).unwrap();
    let path = run.at("damaged.jsonl.gz");
    for cut in (3..whole.len()).step_by(37).chain([whole.len() - 1]) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        unreadable(&path, "damaged or cut off");
    }
    // The checksum at the end, and trailing data.
    let mut damaged = whole.clone();
    damaged[whole.len() - 6] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    unreadable(&path, "damaged or cut off");
    std::fs::write(&path, [whole, b"more".to_vec()].concat()).unwrap();
    unreadable(&path, "damaged or cut off");
}

#[test]
fn a_file_that_unpacks_to_far_more_than_it_holds_is_not_unpacked() {
    let run = Run::new();
    let mut lines: Vec<String> =
        run.lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    // A valid plan padded to 64 MiB, the limit for a plan.
    lines[PLAN].push_str(&" ".repeat(64 << 20));
    let text = lines.join("\n") + "\n";
    let (plain, bomb) = (run.at("plain.jsonl"), run.at("bomb.jsonl.gz"));
    std::fs::write(&plain, &text).unwrap();
    assert_eq!(read(&plain).unwrap().records().len(), 4);
    std::fs::write(&bomb, packed(text.as_bytes())).unwrap();
    unreadable(&bomb, "200 times its size");
    // Limits of single lines apply after decompression.
    std::fs::write(&bomb, packed(&vec![b' '; 17 << 20])).unwrap();
    assert!(read(&bomb).is_err());
}

#[test]
fn a_folded_file_holds_each_group_completely_or_not_at_all_and_no_blocks() {
    let run = Run::new();
    let whole = run.folded();
    assert_eq!(whole.len(), 6);
    let block = run.lines.iter().find(|line| matches!(line, Line::Block(_))).unwrap();
    let block = serde_json::to_value(block).unwrap();
    let prediction = json!({"schema": "threadtoll.foretold/1"});
    let said = |change: &dyn Fn(&mut Vec<Value>), at: usize, part: &str| {
        let mut lines = whole.clone();
        change(&mut lines);
        let (line, what) = run.rejected(&lines);
        assert!(what.contains(part), "{what}");
        assert_eq!(line, at as u64 + 1, "{what}");
    };
    said(&|lines| lines.insert(FIRST, block.clone()), FIRST, "a folded file cannot have blocks");
    said(&|lines| lines.push(block.clone()), 6, "a folded file cannot have blocks");
    said(&|lines| lines.truncate(5), 4, "records of group 1 are missing");
    said(&|lines| drop(lines.remove(FIRST)), 4, "records of group 0 are missing");
    said(&|lines| lines.insert(FIRST + 1, lines[FIRST].clone()), FIRST + 1, "already has");
    said(&|lines| lines.push(lines[FIRST].clone()), 6, "complete before this record");
    said(&|lines| lines[FIRST + 1]["attempt"] = 2.into(), FIRST + 1, "does not follow");
    said(&|lines| lines[FIRST]["attempt"] = 0.into(), FIRST, "does not follow");
    said(&|lines| lines[FIRST]["group"] = 2.into(), FIRST, "no group 2");
    said(&|lines| lines.insert(FIRST, prediction.clone()), FIRST, "missing field");
    said(&|lines| lines[PLAN]["folded"] = json!({}), PLAN, "missing field");
    for sha256 in ["", "abc", &"g".repeat(64), &"A".repeat(64), &"a".repeat(65)] {
        said(&|lines| lines[PLAN]["folded"]["sha256"] = sha256.into(), PLAN, "64 lower-case");
    }
    said(&|lines| lines[PLAN]["folded"]["raw_bytes"] = (-1).into(), PLAN, "invalid value");

    // A folded file appears complete, so an incomplete line is damage, not an interruption.
    let text: String = whole.iter().map(|line| format!("{line}\n")).collect();
    let (line, what) = run.rejected_text(text.trim_end());
    assert_eq!((line, what.as_str()), (6, "the last line of a folded file is incomplete"));
    // Records without blocks mean a folded file, or an edited one.
    let (_, what) = run.rejected_text(&text.replace("\"folded\"", "\"other\""));
    assert!(what.contains("no blocks of attempt 1"), "{what}");
}

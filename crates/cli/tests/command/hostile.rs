//! Files from anywhere: foreign, edited, deep, enormous. They give a one-line error, and are not
//! changed.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::listing::strip;
use crate::program::{Held, Seeded, each, threadtoll, words};

/// A finished run of one group: the machine, the plan, 126 blocks of three cells in 21 rounds, and
/// their records.
fn finished() -> Vec<Value> {
    finished_text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn finished_text() -> &'static str {
    static FINISHED: OnceLock<String> = OnceLock::new();
    FINISHED.get_or_init(|| {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        threadtoll(words(
            "latency futex park --time 5ms --simulated-machine 3 --placement pinned --quiet --out",
            &[&path],
        ))
        .done();
        std::fs::read_to_string(&path).unwrap()
    })
}

const MACHINE: usize = 0;
const PLAN: usize = 1;
const BLOCK: usize = 2;
const RECORD: usize = 128;

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// `report` and `--resume` both reject the file with this reason and do not change it.
#[track_caller]
fn rejected(name: &str, content: &[u8], reason: &str) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("file.jsonl");
    std::fs::write(&path, content).unwrap();
    let held = Held::of(&path);
    for line in ["report", "latency --resume"] {
        let ended = threadtoll(words(line, &[&path]));
        assert!(ended.err.contains(reason), "{name}: {line}: {ended:#?}");
        assert!(ended.err.len() < 2000, "{name}: {line}: {} bytes of error", ended.err.len());
        ended.bad();
        held.unchanged();
    }
}

/// `report` renders it, `--resume` rejects it with this reason, and neither changes it.
#[track_caller]
fn rendered_but_not_resumed(name: &str, content: &str, reason: &str) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("file.jsonl");
    std::fs::write(&path, content).unwrap();
    let held = Held::of(&path);
    let ended = threadtoll(words("report", &[&path]));
    assert_eq!(ended.code, Some(0), "{name}: {ended:#?}");
    held.unchanged();
    let ended = threadtoll(words("latency --resume", &[&path]));
    assert!(ended.err.contains(reason), "{name}: {ended:#?}");
    ended.bad();
    held.unchanged();
}

#[test]
fn foreign_files_are_rejected_at_once() {
    let cases: [(&str, &[u8], &str); 10] = [
        ("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0", "line 1"),
        (
            "accounts",
            b"root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n",
            "line 1",
        ),
        ("an array", b"[{\"schema\":\"threadtoll.machine/1\"}]\n", "line 1"),
        ("a number", b"7\n", "line 1"),
        ("an empty object", b"{}\n", "line 1"),
        ("another tool's lines", b"{\"schema\":\"othertool/1\",\"run\":\"x\"}\n", "line 1"),
        ("a later version", b"{\"schema\":\"threadtoll.machine/2\",\"run\":\"x\"}\n", "line 1"),
        ("nothing", b"", "the file is empty"),
        ("a line feed", b"\n", "line 1"),
        ("no text", &[0xff; 4096], "line 1"),
    ];
    each(&cases, |_, (name, content, reason)| rejected(name, content, reason));
}

#[test]
fn files_whose_lines_are_missing_or_swapped_are_rejected() {
    let whole = finished();
    let changed = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        text(&lines)
    };
    rejected(
        "only the machine",
        changed(&|lines| lines.truncate(1)).as_bytes(),
        "the plan is missing",
    );
    rejected("plan first", changed(&|lines| lines.swap(MACHINE, PLAN)).as_bytes(), "line 1");
    rejected(
        "no plan",
        changed(&|lines| drop(lines.remove(PLAN))).as_bytes(),
        "line 2: it is not the plan",
    );
    rejected("no machine", changed(&|lines| drop(lines.remove(MACHINE))).as_bytes(), "line 1");
    rejected(
        "two machines",
        changed(&|lines| lines.push(lines[MACHINE].clone())).as_bytes(),
        "a second machine or a second plan",
    );
    rejected(
        "a block twice",
        changed(&|lines| lines.insert(9, lines[8].clone())).as_bytes(),
        "line 10",
    );
    rejected(
        "a record twice",
        changed(&|lines| lines.push(lines[RECORD].clone())).as_bytes(),
        "complete before",
    );
    rejected(
        "records first",
        changed(&|lines| lines.swap(BLOCK, RECORD)).as_bytes(),
        "no blocks of attempt 1",
    );
    let blank = text(&whole).replacen("\n", "\n\n", 5);
    rejected("a blank line", blank.as_bytes(), "line 2");
}

#[test]
fn edited_files_are_rejected() {
    let edits: [(usize, &str, Value, &str); 17] = [
        (PLAN, "run", json!("another"), "another run"),
        (BLOCK, "run", json!("another"), "another run"),
        (RECORD, "run", json!("another"), "another run"),
        (BLOCK, "group", json!(1), "no group 1"),
        (BLOCK, "cell", json!(3), "no cell 3"),
        (BLOCK, "seq", json!(21), "no round 21"),
        (BLOCK, "attempt", json!(3), "does not follow"),
        (BLOCK, "mean", json!(-12.5), "-12.5 is out of range"),
        (BLOCK, "mean", json!("NaN"), "line 3"),
        (BLOCK, "count", json!(u64::MAX), "out of range"),
        (BLOCK, "kind", json!("guessed"), "line 3"),
        (RECORD, "group", json!(1), "no group 1"),
        (RECORD, "mean", json!(-1), "out of range"),
        (RECORD, "count", json!(u64::MAX), "out of range"),
        (RECORD, "experiment", json!("matrix"), "different experiments"),
        (RECORD, "cell", finished()[RECORD + 1]["cell"].clone(), "line 130"),
        (MACHINE, "cpus", json!(2), "topology"),
    ];
    each(&edits, |_, (line, member, value, reason)| {
        let mut lines = finished();
        lines[*line][*member] = value.clone();
        rejected(member, text(&lines).as_bytes(), reason);
    });
    let mut out_of_range = text(&finished());
    let at = out_of_range.find("\"mean\":").unwrap() + 7;
    out_of_range.insert_str(at, "1e999,\"x\":");
    rejected("a number beyond all", out_of_range.as_bytes(), "line 3");
}

/// A plan may contain only cells that this version can measure here.
#[test]
fn edited_plans_are_not_measured() {
    let edits: [(&str, Value, &str); 13] = [
        ("/groups/0/1/cell/mechanism", json!("telepathy"), "no such mechanism"),
        ("/groups/0/1/cell/payload_bytes", json!(0), "size is out of range"),
        ("/groups/0/1/cell/payload_bytes", json!(12), "size is out of range"),
        ("/groups/0/1/cell/payload_bytes", json!(u64::MAX), "size is out of range"),
        ("/groups/0/1/cell/cpus", json!([4]), "cannot be placed as planned"),
        ("/groups/0/1/cell/cpus", json!([4, 4]), "a CPU is given twice"),
        ("/groups/0/1/cell/relation", json!("smt"), "cannot be placed as planned"),
        ("/groups/0/0/cell/placement", json!("same-cpu"), "cannot be placed as planned"),
        ("/groups/0/0/cell/line", Value::Null, "does not apply to this mechanism"),
        ("/groups/0/1/cell/pause", json!("on"), "does not apply to this mechanism"),
        ("/groups/0/1/budget/stretch_ns", json!(u64::MAX), "too long"),
        ("/options/simulated_machine", json!(4), "cannot be resumed here"),
        ("/command/0", json!("survey"), "started by `threadtoll survey`"),
    ];
    each(&edits, |_, (pointer, value, reason)| {
        let mut lines = finished();
        lines.truncate(BLOCK);
        // Absent members are inserted.
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        match (lines[PLAN].pointer_mut(parent).unwrap(), member.parse::<usize>()) {
            (Value::Array(values), Ok(index)) => values[index] = value.clone(),
            (parent, _) => parent[member] = value.clone(),
        }
        rendered_but_not_resumed(pointer, &text(&lines), reason);
    });
    let mut lines = finished();
    lines.truncate(BLOCK);
    lines[PLAN]["groups"][0][1]["cell"]["cpus"] = json!([4, 99]);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("file.jsonl");
    std::fs::write(&path, text(&lines)).unwrap();
    threadtoll(words("latency --resume", &[&path])).failed(3).says("CPU 99");
}

#[test]
fn files_of_another_machine_are_rendered_and_not_resumed() {
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut lines = finished();
        edit(&mut lines[MACHINE]);
        // Unfinished, so that it can be resumed.
        lines.truncate(20);
        text(&lines)
    };
    let reason = "cannot be resumed here";
    rendered_but_not_resumed("cpu", &edited(&|machine| machine["cpu"] = json!("Z80")), reason);
    rendered_but_not_resumed(
        "cpus",
        &edited(&|machine| {
            machine["cpus"] = json!(7);
            drop(machine["topology"].as_array_mut().unwrap().pop());
        }),
        reason,
    );
    rendered_but_not_resumed(
        "topology",
        &edited(&|machine| machine["topology"][7]["node"] = json!(1)),
        reason,
    );
    rendered_but_not_resumed(
        "real",
        &edited(&|machine| machine["simulated"] = json!(false)),
        reason,
    );
}

#[test]
fn simulated_figures_never_stand_beside_measured_ones() {
    let directory = TempDir::new().unwrap();
    let simulated = directory.path().join("simulated.jsonl");
    std::fs::write(&simulated, text(&finished())).unwrap();
    let real = directory.path().join("real.jsonl");
    let mut lines = finished();
    lines.truncate(RECORD);
    lines[MACHINE]["simulated"] = json!(false);
    std::fs::write(&real, text(&lines)).unwrap();
    threadtoll(words("report", &[&simulated, &simulated])).done();
    threadtoll(words("report", &[&simulated, &real])).bad().says("simulated");
    // Nor does a real file accept a simulated record.
    let mut lines = finished();
    lines[MACHINE]["simulated"] = json!(false);
    rejected("simulated records", text(&lines).as_bytes(), "simulated");
}

#[test]
fn deep_files_are_rejected() {
    let deep = "[".repeat(100_000);
    rejected("deep from the start", format!("{deep}\n").as_bytes(), "line 1");
    let nested = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let mut lines = finished();
    lines.truncate(PLAN + 1);
    lines[PLAN]["options"] = json!({"deep": "HERE"});
    rejected("deep in the plan", text(&lines).replace("\"HERE\"", &nested).as_bytes(), "line 2");
    let mut lines = finished();
    lines[BLOCK]["disturbance"] = json!("HERE");
    rejected("deep in a block", text(&lines).replace("\"HERE\"", &deep).as_bytes(), "line 3");
}

#[test]
fn enormous_lines_are_not_read_into_memory() {
    let mut lines = finished();
    lines[BLOCK]["at"] = json!("x".repeat(5 << 20));
    rejected(
        "a long block",
        text(&lines).as_bytes(),
        "line 3: it is longer than any line that threadtoll writes",
    );
    let mut lines = finished();
    lines[MACHINE]["cpu"] = json!("x".repeat(20_000));
    rejected("a long name", text(&lines).as_bytes(), "too long");

    // Sparse files: gigabytes to the reader, nothing on the disk.
    let directory = TempDir::new().unwrap();
    let mut header = finished();
    header.truncate(PLAN + 1);
    for (name, start) in [("holes", String::new()), ("holes after the header", text(&header))] {
        let path = directory.path().join(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(start.as_bytes()).unwrap();
        if let Err(error) = file.set_len(6 << 30) {
            println!("skipped: no file of 6 GiB can be made here: {error}");
            return;
        }
        let before = file.metadata().unwrap();
        for line in ["report", "latency --resume"] {
            threadtoll(words(line, &[&path]))
                .bad()
                .says("longer than any line that threadtoll writes");
        }
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(
            (before.len(), before.modified().unwrap()),
            (after.len(), after.modified().unwrap())
        );
    }
}

#[test]
fn histograms_that_unpack_to_gigabytes_are_rejected() {
    use base64::Engine;
    let zeroes = vec![0u8; 64 << 20];
    let mut bomb = vec![0u8; 8];
    let mut zlib = flate2::write::ZlibEncoder::new(&mut bomb, flate2::Compression::best());
    zlib.write_all(&zeroes).unwrap();
    zlib.finish().unwrap();
    let data = base64::engine::general_purpose::STANDARD.encode(bomb);
    let mut lines = finished();
    lines[BLOCK]["histogram"]["data"] = json!(data);
    rejected(
        "a swollen histogram",
        text(&lines).as_bytes(),
        "line 3: the histogram's data is damaged (too large)",
    );
}

#[test]
fn a_cut_last_line_is_left_out_with_a_note_and_cut_off_only_to_go_on() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cut.jsonl");
    let whole = finished_text();
    std::fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    let held = Held::of(&path);
    threadtoll(words("report", &[&path])).done().says("incomplete").says("1 of 1 groups");
    held.unchanged();
    threadtoll(words("latency --resume", &[&path])).done().says("incomplete");
    let ended = threadtoll(words("report", &[&path])).done();
    assert!(ended.err.is_empty(), "{}", ended.err);
    assert!(crate::lines::lines(&path).len() > RECORD);
}

/// Escapes that would clear the screen, set its title, blink, or inject input.
const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[5;7mloud\u{9b}31m\u{1b}P\u{8}\u{202e}";

#[test]
fn texts_of_a_file_cannot_steer_the_terminal() {
    let mut lines = finished();
    for member in ["cpu", "tool", "kernel", "arch", "governor", "virtualised", "idle_driver", "at"]
    {
        lines[MACHINE][member] = json!(format!("{member}{ESCAPES}"));
    }
    lines[MACHINE]["warnings"] = json!([{"code": ESCAPES, "text": ESCAPES}]);
    lines[MACHINE]["topology"][0]["kind"] = json!(ESCAPES);
    lines[PLAN]["command"] = json!([ESCAPES, ESCAPES]);
    lines[PLAN]["options"][ESCAPES] = json!(ESCAPES);
    lines[PLAN]["refused"] = json!([{"what": ESCAPES, "why": ESCAPES}]);
    lines[PLAN]["groups"][0][1]["cell"]["mechanism"] = json!(format!("futex{ESCAPES}"));
    for line in &mut lines[RECORD..] {
        if line["cell"]["mechanism"] == json!("futex") {
            line["cell"]["mechanism"] = json!(format!("futex{ESCAPES}"));
        }
        line["at"] = json!(ESCAPES);
        line["warnings"] = json!([{"code": ESCAPES, "text": ESCAPES}]);
    }
    let directory = TempDir::new().unwrap();
    let page = directory.path().join("page.html");
    for (name, kept) in [("whole", lines.len()), ("unfinished", RECORD), ("begun", BLOCK)] {
        let path = directory.path().join(name);
        std::fs::write(&path, text(&lines[..kept])).unwrap();
        let mut arguments = words("report --color always --text", &[&path]);
        arguments.extend(words("--html", &[&page]));
        let shown = threadtoll(arguments).done();
        let resumed = threadtoll(words("latency --color always --resume", &[&path]));
        resumed.bad();
        for text in [
            &shown.out,
            &shown.err,
            &resumed.out,
            &resumed.err,
            &std::fs::read_to_string(&page).unwrap(),
        ] {
            assert!(!text.contains("\u{1b}[5;7m"), "{name}: {text}");
            let steering = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
            let plain = strip(text);
            let found: Vec<char> = plain.chars().filter(steering).collect();
            assert!(found.is_empty(), "{name}: {found:?} in {plain}");
        }
    }
}

/// Any mutation of a file is either rendered or rejected in a sentence.
#[test]
fn no_damage_makes_a_report_crash() {
    let seeds: Vec<u64> = (0..60).collect();
    let directory = TempDir::new().unwrap();
    each(&seeds, |index, seed| {
        let mut random = Seeded::new(*seed);
        let content =
            if index % 3 == 0 { damaged_bytes(&mut random) } else { damaged_values(&mut random) };
        let path = directory.path().join(format!("{seed}.jsonl"));
        std::fs::write(&path, content).unwrap();
        let page = directory.path().join(format!("{seed}.html"));
        report_survives(&path, &page, *seed);
    });
}

#[track_caller]
fn report_survives(path: &Path, page: &Path, seed: u64) {
    let held = Held::of(path);
    let mut arguments = words("report --text", &[path]);
    arguments.extend(words("--html", &[page]));
    let ended = threadtoll(arguments);
    match ended.code {
        Some(0) => assert!(!ended.err.contains("panicked"), "seed {seed}: {ended:#?}"),
        _ => drop(ended.bad()),
    }
    held.unchanged();
}

fn damaged_bytes(random: &mut Seeded) -> Vec<u8> {
    let mut bytes = text(&finished()).into_bytes();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.next() as u8),
        }
    }
    bytes
}

/// Replaces a few values in a few lines; now and then the same value in all lines of a kind.
fn damaged_values(random: &mut Seeded) -> Vec<u8> {
    let mut lines = finished();
    lines.truncate([BLOCK, 40, RECORD, RECORD + 1, RECORD + 3][random.below(5)]);
    for _ in 0..=random.below(3) {
        let at = [MACHINE, PLAN, random.below(lines.len()), lines.len() - 1][random.below(4)];
        let mut places = Vec::new();
        pointers(&lines[at], String::new(), &mut places);
        let place = places.swap_remove(random.below(places.len()));
        let value = odd(random);
        let all = random.below(2) == 0;
        for line in &mut lines[at.min(BLOCK)..] {
            if let (true, Some(found)) = (all, line.pointer_mut(&place)) {
                *found = value.clone();
            }
        }
        if let Some(found) = lines[at].pointer_mut(&place) {
            *found = value;
        }
    }
    text(&lines).into_bytes()
}

/// Every nested value, by its JSON pointer.
fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| pointers(value, format!("{at}/{name}"), found));
        }
        Value::Array(values) => {
            let few = values.iter().take(4).enumerate();
            few.for_each(|(index, value)| pointers(value, format!("{at}/{index}"), found));
        }
        _ => {}
    }
    if !at.is_empty() {
        found.push(at);
    }
}

fn odd(random: &mut Seeded) -> Value {
    let odd = [
        Value::Null,
        json!(0),
        json!(1),
        json!(-1),
        json!(1e-300),
        json!(1e17),
        json!(1e300),
        json!(u64::MAX),
        json!(u32::MAX),
        json!(0.5),
        json!(true),
        json!(""),
        json!("\u{1b}[2J"),
        json!("free"),
        json!("x".repeat(3000)),
        json!([]),
        json!({}),
        json!([0, 1, 2, 3, 4, 5, 6, 7]),
        json!([1e17, 0.0]),
    ];
    odd[random.below(odd.len())].clone()
}

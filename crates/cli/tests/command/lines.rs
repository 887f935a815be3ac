//! Result files line by line: each matches its schema and survives a round trip.

use std::path::Path;
use std::sync::OnceLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use threadtoll_record::{Block, Line, Plan, Record, schema};

struct Committed {
    schemas: Schemas,
    by_name: Vec<(String, SchemaIndex)>,
}

fn committed() -> &'static Committed {
    static COMMITTED: OnceLock<Committed> = OnceLock::new();
    COMMITTED.get_or_init(|| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let mut by_name = Vec::new();
        for (file, _) in schema::all() {
            let index =
                compiler.compile(&directory.join(file).to_string_lossy(), &mut schemas).unwrap();
            by_name.push((format!("threadtoll.{}/1", file.trim_end_matches(".json")), index));
        }
        Committed { schemas, by_name }
    })
}

/// Reads a line that matches its schema and loses nothing when read.
#[track_caller]
pub(crate) fn line(text: &str) -> Line {
    let value: Value = serde_json::from_str(text).unwrap();
    let name = value["schema"].as_str().unwrap();
    let (_, index) = committed().by_name.iter().find(|(known, _)| known == name).unwrap();
    if let Err(error) = committed().schemas.validate(&value, *index) {
        panic!("{error:#}\n{text}");
    }
    let line: Line = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&line).unwrap(), text, "it does not survive a round trip");
    line
}

/// All lines of a complete file.
#[track_caller]
pub(crate) fn lines(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(line).collect()
}

pub(crate) fn plan(lines: &[Line]) -> &Plan {
    lines
        .iter()
        .find_map(|line| if let Line::Plan(plan) = line { Some(plan) } else { None })
        .unwrap()
}

pub(crate) fn blocks(lines: &[Line]) -> Vec<&Block> {
    lines
        .iter()
        .filter_map(|line| if let Line::Block(block) = line { Some(&**block) } else { None })
        .collect()
}

pub(crate) fn records(lines: &[Line]) -> Vec<&Record> {
    lines
        .iter()
        .filter_map(|line| if let Line::Record(record) = line { Some(&**record) } else { None })
        .collect()
}

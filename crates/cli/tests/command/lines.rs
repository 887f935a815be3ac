//! Result files line by line: each matches its schema and survives a round trip.

use std::path::Path;
use std::sync::OnceLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use threadtoll_record::{Block, Line, Plan, Record, schema};

struct Compiled {
    schemas: Schemas,
    by_name: Vec<(String, SchemaIndex)>,
}

fn compiled() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let mut by_name = Vec::new();
        for one in schema::ALL {
            compiler.add_resource(one.name, one.schema().to_value()).unwrap();
            let index = compiler.compile(one.name, &mut schemas).unwrap();
            by_name.push((one.full_name(), index));
        }
        Compiled { schemas, by_name }
    })
}

/// Asserts that an object matches the schema that it names.
#[track_caller]
pub(crate) fn keeps_to_its_schema(value: &Value) {
    let name = value["schema"].as_str().unwrap();
    let (_, index) = compiled().by_name.iter().find(|(known, _)| known == name).unwrap();
    if let Err(error) = compiled().schemas.validate(value, *index) {
        panic!("{error:#}\n{value}");
    }
}

/// Reads a line that matches its schema and loses nothing when read.
#[track_caller]
pub(crate) fn line(text: &str) -> Line {
    let value: Value = serde_json::from_str(text).unwrap();
    keeps_to_its_schema(&value);
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

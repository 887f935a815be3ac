//! The committed schemas match the types, and lines match the schemas.

use std::path::PathBuf;

use serde_json::{Value, json};
use threadtoll_record::file::Results;
use threadtoll_record::{Line, fold, schema};

use crate::fixture;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema")
}

/// With `UPDATE_SCHEMA=1`, writes the schemas instead.
#[test]
fn the_committed_schemas_are_those_of_the_types() {
    let mut names = Vec::new();
    for (name, schema) in schema::all() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = directory().join(name);
        names.push(name.to_string());
        if std::env::var_os("UPDATE_SCHEMA").is_some_and(|value| value == "1") {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "{} does not match the types; `UPDATE_SCHEMA=1 cargo test -p threadtoll-record` updates it",
            path.display()
        );
    }
    let mut found: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    names.sort();
    assert_eq!(found, names, "a schema without a type is one that nobody checks");
}

/// Whole numbers without a range: seeds, and numbers that are only compared or shown.
const ANY: &[&str] = &[
    "seed",
    "over_ns",
    "after_ns",
    "limit_ns",
    "payload_bytes",
    "capacity",
    "ring_bytes",
    "hold_ns",
    "think_ns",
    "tasks",
    "batch",
    "stretch_ns",
    "stamped_ns",
    "stamped_count",
];

/// Texts that are validated when they are read.
const TEXTS: &[&str] = &["experiment", "data", "encoding", "value_unit"];

/// A plain number or text in a line would be accepted whatever its value.
#[test]
fn every_number_and_text_of_a_line_has_a_range() {
    fn visit(schema: &str, name: &str, value: &Value) {
        let is = |kind: &str| match &value["type"] {
            Value::Array(kinds) => kinds.iter().any(|one| one == kind),
            one => one == kind,
        };
        let has = |member: &str| value.get(member).is_some();
        let known = ["const", "enum", "pattern", "maxLength"].into_iter().any(has);
        assert!(!is("string") || known || TEXTS.contains(&name), "{schema}: a text in {name}");
        let bounded = has("minimum") && has("maximum");
        assert!(!is("number") || bounded, "{schema}: a number in {name}");
        let small = [json!("uint32"), json!("uint")].contains(&value["format"]);
        assert!(
            !is("integer") || bounded || small || ANY.contains(&name),
            "{schema}: a whole number in {name}"
        );
        match value {
            Value::Object(members) => members.iter().for_each(|(member, value)| {
                let keyword = ["items", "anyOf", "oneOf", "prefixItems"].contains(&member.as_str());
                visit(schema, if keyword { name } else { member }, value);
            }),
            Value::Array(values) => values.iter().for_each(|value| visit(schema, name, value)),
            _ => {}
        }
    }
    for (name, schema) in
        schema::all().iter().filter(|(name, _)| !["prediction.json", "fit.json"].contains(name))
    {
        visit(name, "", schema.as_value());
    }
}

fn says(schema: &str, value: &Value) -> Result<(), String> {
    let path = directory().join(schema);
    let mut schemas = boon::Schemas::new();
    let index = boon::Compiler::new().compile(&path.to_string_lossy(), &mut schemas).unwrap();
    schemas.validate(value, index).map_err(|error| format!("{error:#}"))
}

#[test]
fn lines_keep_to_their_schemas_and_spoilt_ones_do_not() {
    let mut results =
        Results::empty(fixture::machine(), fixture::plan(3, &[&["atomic-store", "futex"]]));
    let blocks = fixture::group(0, 2, 3, 1);
    let records = fold(&results.machine, &results.plan, 0, 1, &blocks, &[], fixture::AT);
    results.groups[0].records = Some(records.clone());
    let lines = [
        ("machine.json", Line::Machine(Box::new(results.machine))),
        ("plan.json", Line::Plan(Box::new(results.plan))),
        ("block.json", Line::Block(Box::new(blocks[0].clone()))),
        ("record.json", Line::Record(Box::new(records[1].clone()))),
        ("struck.json", Line::Strike(Box::new(fixture::strike(0, 1, 1)))),
        ("profile.json", serde_json::from_value(fixture::profile()).unwrap()),
    ];
    for (schema, line) in &lines {
        let value = serde_json::to_value(line).unwrap();
        says(schema, &value).unwrap_or_else(|error| panic!("{error}"));
        for (other, _) in lines.iter().filter(|(other, _)| other != schema) {
            assert!(says(other, &value).is_err(), "a line of {schema} passes for one of {other}");
        }
        let mut nameless = value.clone();
        nameless.as_object_mut().unwrap().remove("run");
        assert!(says(schema, &nameless).is_err(), "{schema} asks for no run");
        let mut numbered = value;
        numbered["run"] = 7.into();
        assert!(says(schema, &numbered).is_err(), "{schema} takes a number for a run");
    }
}

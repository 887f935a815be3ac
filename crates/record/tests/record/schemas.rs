//! Lines match the schemas of their types.

use serde_json::{Value, json};
use threadtoll_record::file::Results;
use threadtoll_record::schema::ALL;
use threadtoll_record::{Line, fold};

use crate::{fixture, timelines};

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
    "deadline_ns",
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
    for one in ALL.iter().filter(|one| !["prediction", "pool", "fit"].contains(&one.name)) {
        visit(one.name, "", one.schema().as_value());
    }
}

/// Validates a value against the schema with this short name.
pub(crate) fn says(name: &str, value: &Value) -> Result<(), String> {
    let schema = ALL.iter().find(|one| one.name == name).unwrap().schema();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource(name, schema.to_value()).unwrap();
    let index = compiler.compile(name, &mut schemas).unwrap();
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
        ("machine", Line::Machine(Box::new(results.machine))),
        ("plan", Line::Plan(Box::new(results.plan))),
        ("block", Line::Block(Box::new(blocks[0].clone()))),
        ("record", Line::Record(Box::new(records[1].clone()))),
        ("timeline", Line::Timeline(Box::new(timelines::timeline(0, true)))),
        ("struck", Line::Strike(Box::new(fixture::strike(0, 1, 1)))),
        ("profile", serde_json::from_value(fixture::profile()).unwrap()),
        ("trace", serde_json::from_value(fixture::trace()).unwrap()),
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

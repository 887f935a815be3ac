//! JSON Schemas of each line, and of whole printed objects, generated from the types.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};

use crate::{
    Block, CellPrediction, Comparison, Fit, Machine, Plan, Prediction, Profile, Record, Strike,
};

/// The schemas by file name under `schema/`.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("machine.json", of::<Machine>("threadtoll.machine/1")),
        ("plan.json", of::<Plan>("threadtoll.plan/1")),
        ("foretold.json", of::<CellPrediction>("threadtoll.foretold/1")),
        ("block.json", of::<Block>("threadtoll.block/1")),
        ("struck.json", of::<Strike>("threadtoll.struck/1")),
        ("record.json", of::<Record>("threadtoll.record/1")),
        ("profile.json", of::<Profile>("threadtoll.profile/1")),
        ("prediction.json", of::<Prediction>("threadtoll.prediction/1")),
        ("fit.json", of::<Fit>("threadtoll.fit/1")),
        ("comparison.json", of::<Comparison>("threadtoll.comparison/1")),
    ]
}

fn of<T: JsonSchema>(name: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let object = schema.ensure_object();
    if let Some(properties) = object.get_mut("properties").and_then(|value| value.as_object_mut()) {
        properties.insert("schema".into(), serde_json::json!({ "const": name }));
    }
    if let Some(required) = object.get_mut("required").and_then(|value| value.as_array_mut()) {
        required.insert(0, "schema".into());
    }
    schema
}

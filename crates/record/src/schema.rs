//! JSON Schemas of each line, and of whole printed objects, generated from the types.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};

use crate::profile::Trace;
use crate::{
    Block, CellPrediction, Comparison, Fit, Machine, Plan, PoolPrediction, Prediction, Profile,
    Record, Strike, Timeline,
};

/// A type that has a JSON Schema: a line of a file, or an object that is printed as a whole.
#[derive(Debug)]
pub struct Described {
    /// Short name of the type, such as `record`.
    pub name: &'static str,
    version: u32,
    /// Short description of the lines or objects of this type.
    pub sentence: &'static str,
    schema: fn(&str) -> Schema,
}

impl Described {
    const fn new<T: JsonSchema>(name: &'static str, sentence: &'static str) -> Self {
        Described { name, version: 1, sentence, schema: of::<T> }
    }

    const fn version(self, version: u32) -> Self {
        Described { version, ..self }
    }

    /// Value of the member `schema`, such as `threadtoll.record/1`.
    pub fn full_name(&self) -> String {
        format!("threadtoll.{}/{}", self.name, self.version)
    }

    /// JSON Schema (draft 2020-12) of the type.
    pub fn schema(&self) -> Schema {
        (self.schema)(&self.full_name())
    }
}

/// All types that have a schema: first the lines of files, then printed objects.
pub static ALL: &[Described] = &[
    Described::new::<Machine>("machine", "line 1 of a file: the machine"),
    Described::new::<Plan>("plan", "line 2 of a file: command, options and groups of cells"),
    Described::new::<CellPrediction>(
        "foretold",
        "line of a contention file: the prediction for a cell, made before its first block",
    ),
    Described::new::<Block>("block", "line of a file: a measured stretch of a cell"),
    Described::new::<Timeline>(
        "timeline",
        "line of a contention file: what the threads of a cell did at the beginning of a block",
    ),
    Described::new::<Strike>("struck", "line of a file: a cell that failed"),
    Described::new::<Record>("record", "line of a file: the result of a cell"),
    Described::new::<Profile>("profile", "line of a profile, and `profile --json`").version(2),
    Described::new::<Trace>("trace", "line of a profile: states of its threads over time"),
    Described::new::<Prediction>("prediction", "`predict --json`"),
    Described::new::<PoolPrediction>("pool", "`predict --arrivals --json`"),
    Described::new::<Fit>("fit", "`predict --fit --json`"),
    Described::new::<Comparison>("comparison", "`compare --json`"),
];

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

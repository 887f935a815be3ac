//! `validate FILE...`: does every line of these files of results keep to the committed schemas, and can the files be read?
//!
//! Says what is wrong by file and line, and exits with 1 if anything is.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use threadtoll_record::{file, schema};

/// The compiled schemas by the name that a line bears.
struct Committed {
    schemas: Schemas,
    by_name: Vec<(String, SchemaIndex)>,
}

impl Committed {
    fn compile() -> Result<Self, Box<dyn Error>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let mut by_name = Vec::new();
        for (file, _) in schema::all() {
            let index = compiler.compile(&directory.join(file).to_string_lossy(), &mut schemas)?;
            let name = file.strip_suffix(".json").unwrap_or(file);
            by_name.push((format!("threadtoll.{name}/1"), index));
        }
        Ok(Committed { schemas, by_name })
    }

    fn check(&self, line: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let name = value.get("schema").and_then(Value::as_str).ok_or("it names no schema")?;
        let known = self.by_name.iter().find(|(known, _)| known == name);
        let (_, index) = known.ok_or_else(|| format!("there is no schema “{name}”"))?;
        self.schemas.validate(&value, *index).map_err(|error| format!("{error:#}"))
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("error: no file was named; use: validate FILE...");
        return Ok(ExitCode::from(2));
    }
    let committed = Committed::compile()?;
    let mut faults = 0;
    for path in &files {
        let mut lines = 0;
        for line in BufReader::new(std::fs::File::open(path)?).lines() {
            lines += 1;
            if let Err(what) = committed.check(&line?) {
                eprintln!("{path}: line {lines}: {what}");
                faults += 1;
            }
        }
        match file::read(Path::new(path)) {
            Ok(results) => {
                results.notes.iter().for_each(|note| eprintln!("{path}: {note}"));
                let groups = results.groups.len();
                let complete = results.groups.iter().filter(|group| group.records.is_some()).count();
                println!("{path}: {lines} lines, {complete} of {groups} groups complete");
            }
            Err(fault) => {
                eprintln!("{fault}");
                faults += 1;
            }
        }
    }
    Ok(ExitCode::from(u8::from(faults > 0)))
}

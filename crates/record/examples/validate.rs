//! `validate [--finished] FILE...`: checks that result files can be read, that their lines match
//! the schemas of their types, and that no complete group was measured again.
//!
//! A last line without a line feed, left by a kill, is accepted; with `--finished` it is an error,
//! and so is an incomplete group or profile. Prints errors by file and line, and exits with 1 if
//! there are any.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use threadtoll_record::file::{self, Contents, Results};
use threadtoll_record::{Line, Plan, schema};

/// The compiled schemas by the name in a line.
struct Compiled {
    schemas: Schemas,
    by_name: Vec<(String, SchemaIndex)>,
}

impl Compiled {
    fn compile() -> Result<Self, Box<dyn Error>> {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let mut by_name = Vec::new();
        for one in schema::ALL {
            compiler.add_resource(one.name, one.schema().to_value())?;
            by_name.push((one.full_name(), compiler.compile(one.name, &mut schemas)?));
        }
        Ok(Compiled { schemas, by_name })
    }

    fn check(&self, line: &[u8]) -> Result<(), String> {
        let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let name = value.get("schema").and_then(Value::as_str).ok_or("it names no schema")?;
        let known = self.by_name.iter().find(|(known, _)| known == name);
        let (_, index) = known.ok_or_else(|| format!("there is no schema “{name}”"))?;
        self.schemas.validate(&value, *index).map_err(|error| format!("{error:#}"))
    }
}

/// The groups that are complete so far.
#[derive(Default)]
struct Seen {
    plan: Option<Plan>,
    records: HashMap<(usize, u32), usize>,
}

impl Seen {
    /// Prints an error in a line.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        match serde_json::from_slice(line).map_err(|error| error.to_string())? {
            Line::Plan(plan) => self.plan = Some(*plan),
            Line::Record(record) => {
                *self.records.entry((record.group, record.attempt)).or_default() += 1
            }
            Line::Block(block) if self.complete(block.group, block.attempt.saturating_sub(1)) => {
                return Err(format!(
                    "group {} is measured again although it was complete",
                    block.group
                ));
            }
            Line::CellPrediction(_)
            | Line::Block(_)
            | Line::Timeline(_)
            | Line::Strike(_)
            | Line::Machine(_)
            | Line::Profile(_)
            | Line::Trace(_) => {}
        }
        Ok(())
    }

    fn complete(&self, group: usize, attempt: u32) -> bool {
        let cells = self.plan.as_ref().and_then(|plan| plan.groups.get(group)).map(Vec::len);
        cells.is_some() && self.records.get(&(group, attempt)).copied() == cells
    }
}

/// Prints the errors in a file and returns their number.
fn validate(path: &str, finished: bool, compiled: &Compiled) -> Result<u64, Box<dyn Error>> {
    let mut reader = BufReader::new(std::fs::File::open(path)?);
    let mut seen = Seen::default();
    let (mut lines, mut faults) = (0, 0);
    let mut fault = |what: String| {
        eprintln!("{path}: {what}");
        faults += 1;
    };
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") {
            lines += 1;
            if let Err(what) = compiled.check(&line).and_then(|()| seen.take(&line)) {
                fault(format!("line {lines}: {what}"));
            }
        } else if finished {
            fault("its last line is incomplete".into());
        }
        line.clear();
    }
    match file::read_any(Path::new(path)) {
        Ok(Contents::Profile(profiled)) => {
            if finished && !profiled.profile.finished {
                fault("the profile is not finished".into());
            }
            println!("{path}: {lines} lines of a profile");
        }
        Ok(Contents::Results(results)) => {
            let (complete, groups) = complete(&results);
            if finished && complete < groups {
                fault(format!("{complete} of {groups} groups are complete"));
            }
            println!("{path}: {lines} lines, {complete} of {groups} groups complete");
        }
        Err(error) => fault(error.to_string()),
    }
    Ok(faults)
}

fn complete(results: &Results) -> (usize, usize) {
    (results.groups.iter().filter(|group| group.records.is_some()).count(), results.groups.len())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let finished = files.first().is_some_and(|first| first == "--finished");
    if finished {
        files.remove(0);
    }
    if files.is_empty() {
        eprintln!("error: no file was named; use: validate [--finished] FILE...");
        return Ok(ExitCode::from(2));
    }
    let compiled = Compiled::compile()?;
    let mut faults = 0;
    for path in &files {
        faults += validate(path, finished, &compiled)?;
    }
    Ok(ExitCode::from(u8::from(faults > 0)))
}

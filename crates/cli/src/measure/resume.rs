use std::path::Path;

use serde_json::Value;
use threadtoll_lab::plan;
use threadtoll_record::file::{self, Results};
use threadtoll_record::{Machine, Plan};
use threadtoll_report::cpus;

use super::command::{Checked, MeasureCommand};
use super::options::peers;
use super::testbed::Testbed;
use crate::failure::Failure;
use crate::registry::registry;

pub(super) fn read<C: MeasureCommand>(path: &Path) -> Result<Results, Failure> {
    let results = file::read(path)?;
    if let Some((why, hint)) = results.not_resumable() {
        return Err(
            Failure::usage(format!("{} cannot be resumed: {why}", path.display())).hint(hint)
        );
    }
    let made_by = results.plan.command.first().map_or("", |name| name);
    if made_by != C::NAME {
        return Err(Failure::usage(format!(
            "{} was started by `threadtoll {made_by}`, not by `{}`",
            path.display(),
            C::NAME
        ))
        .hint("resume it with that command"));
    }
    Ok(results)
}

pub(super) fn refuse_contradictions<C: MeasureCommand>(
    path: &Path,
    results: &Results,
    checked: &Checked<'_, C>,
) -> Result<(), Failure> {
    for (name, value) in &checked.options {
        // An option may repeat what the run used by default.
        let default = match name.as_str() {
            "seed" => Some(results.plan.seed.into()),
            "over_ns" => Some(results.plan.over_ns.into()),
            "repeat_ns" => Some(results.plan.repeat.map_or(0, |repeat| repeat.after_ns).into()),
            "relaunch" => Some(results.plan.processes.into()),
            _ => None,
        };
        let theirs = results.plan.options.get(name).or(default.as_ref());
        if theirs != Some(value) {
            let theirs = theirs.map_or_else(
                || "without it".to_string(),
                |value| format!("with {}", format_value(name, value)),
            );
            return Err(Failure::usage(format!(
                "{} contradicts {}, which was started {theirs}",
                format_option::<C>(name, value),
                path.display()
            ))
            .hint("omit the option: a resumed run takes all options from its file"));
        }
    }
    Ok(())
}

pub(super) fn validate(path: &Path, results: &Results, testbed: &Testbed) -> Result<(), Failure> {
    if let Some(why) = testbed.machine.differs_from(&results.machine) {
        return Err(Failure::usage(format!("{} cannot be resumed here: {why}", path.display()))
            .hint("resume it on the machine that started it"));
    }
    validate_cpus(&results.plan, &testbed.machine)?;
    if let Err(why) = plan::validate(&results.plan, &testbed.topology, registry()) {
        let hint = match peers(&results.plan) {
            Some(folder) => format!("restore the peers in {folder}, or start a new run"),
            None => "only unmodified threadtoll files can be completed".into(),
        };
        return Err(
            Failure::usage(format!("{} cannot be resumed: {why}", path.display())).hint(hint)
        );
    }
    Ok(())
}

fn validate_cpus(plan: &Plan, machine: &Machine) -> Result<(), Failure> {
    let missing = plan
        .groups
        .iter()
        .flatten()
        .flat_map(|planned| &planned.cell.cpus)
        .find(|cpu| !machine.allowed.contains(cpu));
    match missing {
        Some(cpu) => Err(Failure::refused(format!(
            "the run used CPU {cpu}, which this process may no longer use"
        ))
        .hint(format!("usable CPUs: {}", cpus(&machine.allowed)))),
        None => Ok(()),
    }
}

/// The option as a user types it, given its name and value in a plan.
fn format_option<C: MeasureCommand>(name: &str, value: &Value) -> String {
    let value = format_value(name, value);
    let id = name.trim_end_matches("_ns").trim_end_matches("_bytes");
    let declaration = C::augment_args(clap::Command::new(C::NAME));
    let commands = std::iter::once(&declaration).chain(declaration.get_subcommands());
    let mut declared = commands.flat_map(clap::Command::get_arguments);
    let declared = declared.find(|arg| arg.get_id() == id || arg.get_id() == name);
    match declared.map(|arg| (arg, arg.get_long())) {
        // A positional argument.
        Some((_, None)) => value,
        Some((arg, Some(long))) if !arg.get_action().takes_values() => format!("--{long}"),
        Some((_, Some(long))) => format!("--{long} {value}"),
        None if declaration.find_subcommand(&value).is_some() => value,
        // The value is the name of one of several flags, such as `--quick` and `--full`.
        None => format!("--{value}"),
    }
}

fn format_value(name: &str, value: &Value) -> String {
    let unit = if name.ends_with("_ns") { "ns" } else { "" };
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            values.iter().map(|value| format_value(name, value)).collect::<Vec<_>>().join(",")
        }
        other => format!("{other}{unit}"),
    }
}

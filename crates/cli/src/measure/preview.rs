//! Shows the cells and the duration of a run before the run starts.

use std::borrow::Cow;

use threadtoll_lab::plan::remaining_ns;
use threadtoll_record::file::Results;
use threadtoll_record::{Machine, PlannedCell, Warning};
use threadtoll_report::{clean, cpus, plural};

use super::testbed::ANOTHER;
use crate::console::{self, program};

pub(super) fn announce(machine: &Machine, results: &Results, now_ns: i128) {
    let groups: Vec<Cow<'_, [PlannedCell]>> = remaining(results).map(|(_, group)| group).collect();
    let cells: usize = groups.iter().map(|group| group.len()).sum();
    let size = if cells == 0 {
        "nothing is left to measure".to_string()
    } else {
        let forecast = forecast(results, now_ns);
        format!("{} · {forecast}", extent(&groups))
    };
    let of_machine = |warning: &&Warning| warning.code != ANOTHER;
    let cpus = plural(machine.cpus.into(), "CPU");
    let state = state(machine, machine.warnings.iter().filter(of_machine));
    console::err_text(&format!("{} · {cpus} · {state} · {size}", clean(&machine.cpu).trim()));
    for warning in machine.warnings.iter().filter(|warning| !of_machine(warning)) {
        console::err_text(&format!("warning: {}", warning.text));
    }
}

/// Such as `grade C: noise, virtual machine; threadtoll check explains`.
fn state<'w>(machine: &Machine, warnings: impl Iterator<Item = &'w Warning>) -> String {
    // Warnings are sorted, the most severe first.
    let causes: Vec<String> =
        warnings.map(|warning| clean(&warning.code).replace('-', " ")).collect();
    let grade = format!("grade {}", machine.grade);
    if machine.simulated || causes.is_empty() {
        return grade;
    }
    format!("{grade}: {}; `{} check` explains", shortened(&causes), program())
}

/// Such as `noise, busy, clock step and 2 more`.
fn shortened(causes: &[String]) -> String {
    const MAX_CAUSES: usize = 3;
    let named = causes[..causes.len().min(MAX_CAUSES)].join(", ");
    match causes.len().saturating_sub(MAX_CAUSES) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Such as `44 cells in 8 groups`.
fn extent(groups: &[Cow<'_, [PlannedCell]>]) -> String {
    let cells: usize = groups.iter().map(|group| group.len()).sum();
    format!("{} in {}", plural(cells as u64, "cell"), plural(groups.len() as u64, "group"))
}

pub(super) fn print_plan(results: &Results, now_ns: i128) {
    let mut text = String::new();
    for (index, group) in remaining(results) {
        let rounds = group.first().map_or(0, |planned| planned.budget.rounds);
        let again = results.plan.repeated_by(index);
        let again = again.map_or_else(String::new, |first| format!(", group {first} again"));
        text.push_str(&format!("group {index}: {}{again}\n", plural(rounds.into(), "round")));
        for planned in group.iter() {
            let cell = &planned.cell;
            text.push_str(&format!(
                "  {:10} {:40} {:9} {:12} {}\n",
                planned.experiment,
                cell.label(),
                cell.placement,
                cell.relation,
                cpus(&cell.cpus)
            ));
        }
    }
    let groups: Vec<Cow<'_, [PlannedCell]>> = remaining(results).map(|(_, group)| group).collect();
    let forecast = forecast(results, now_ns);
    let processes = match results.plan.processes {
        1 => String::new(),
        several => format!(", each in {several} processes"),
    };
    text.push_str(&format!("{}{processes}, {forecast}", extent(&groups)));
    console::out(&text);
}

fn remaining(results: &Results) -> impl Iterator<Item = (usize, Cow<'_, [PlannedCell]>)> {
    let unfinished = results.complete_groups().into_iter().enumerate();
    unfinished
        .filter(|(_, complete)| !complete)
        .map(|(index, _)| (index, results.remaining_cells(index)))
}

/// Such as `about 50 s`; for a sweep that ends at saturation, `at most about 12 min`.
fn forecast(results: &Results, now_ns: i128) -> String {
    let most = if results.plan.until_saturated { "at most " } else { "" };
    format!("{most}{}", format_forecast(remaining_ns(results, now_ns)))
}

/// Such as `about 50 s` or `about 12 min`.
fn format_forecast(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match seconds {
        0..=119 => format!("about {seconds} s"),
        120..=7199 => format!("about {} min", seconds.div_ceil(60)),
        _ => format!("about {} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_warnings_are_counted() {
        let causes = ["noise", "busy", "clock step", "boost", "smt"].map(String::from);
        assert_eq!(shortened(&causes), "noise, busy, clock step and 2 more");
        assert_eq!(shortened(&causes[..3]), "noise, busy, clock step");
    }

    #[test]
    fn forecasts_have_a_unit_that_fits() {
        assert_eq!(format_forecast(50_000_000_001), "about 51 s");
        assert_eq!(format_forecast(600_000_000_000), "about 10 min");
        assert_eq!(format_forecast(36_000_000_000_000), "about 10 h");
    }
}

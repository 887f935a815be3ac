//! The cells of a run, and its duration, before it starts.

use threadtoll_lab::plan::estimate_ns;
use threadtoll_record::file::Results;
use threadtoll_record::{Machine, PlannedCell};
use threadtoll_report::{clean, cpus};

use crate::console;

pub(super) fn announce(machine: &Machine, results: &Results) {
    let groups: Vec<&[PlannedCell]> = remaining(results).map(|(_, group)| group).collect();
    let cells: usize = groups.iter().map(|group| group.len()).sum();
    console::err(&format!(
        "{} · {} CPUs · grade {} · {cells} cells in {} groups · {}",
        clean(&machine.cpu),
        machine.cpus,
        machine.grade,
        groups.len(),
        format_forecast(estimate_ns(groups.iter().copied(), results.plan.processes)),
    ));
    for warning in &machine.warnings {
        console::err(&format!("warning: {}", warning.text));
    }
}

pub(super) fn print_plan(results: &Results) {
    let mut text = String::new();
    for (index, group) in remaining(results) {
        let rounds = group.first().map_or(0, |planned| planned.budget.rounds);
        text.push_str(&format!("group {index}: {rounds} rounds\n"));
        for planned in group {
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
    let groups: Vec<&[PlannedCell]> = remaining(results).map(|(_, group)| group).collect();
    let cells: usize = groups.iter().map(|group| group.len()).sum();
    let forecast = format_forecast(estimate_ns(groups.iter().copied(), results.plan.processes));
    let processes = match results.plan.processes {
        1 => String::new(),
        several => format!(", each in {several} processes"),
    };
    text.push_str(&format!("{cells} cells in {} groups{processes}, {forecast}", groups.len()));
    console::out(&text);
}

fn remaining(results: &Results) -> impl Iterator<Item = (usize, &[PlannedCell])> {
    let states = results.plan.groups.iter().zip(&results.groups).enumerate();
    states
        .filter(|(_, (_, state))| state.records.is_none())
        .map(|(index, (group, _))| (index, group.as_slice()))
}

/// `about 50 s`, `about 12 min`.
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
    fn forecasts_have_a_unit_that_fits() {
        assert_eq!(format_forecast(50_000_000_001), "about 51 s");
        assert_eq!(format_forecast(600_000_000_000), "about 10 min");
        assert_eq!(format_forecast(36_000_000_000_000), "about 10 h");
    }
}

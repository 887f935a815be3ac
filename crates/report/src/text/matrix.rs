//! Pairs of CPUs: a square of one-way medians, and their summary by how the CPUs are related.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::AnsiColor;
use threadtoll_record::{CpuPlace, Machine, Record, file::Results};

use super::table::{Column, Table, pad_left, pad_right};
use super::{BOLD, DIM, PLAIN, Style};
use crate::label::{plural, relation};
use crate::matrix::{Pairs, pairs};
use crate::merge::median;
use crate::units::time;

/// A square is not drawn for more CPUs than this, however wide it may be: nobody reads it.
const MOST_CPUS: usize = 64;

/// Draws the one-way medians of the experiment `matrix`: a square where the width takes it, and a
/// summary by relation.
///
/// Empty where no pairs were measured.
pub fn matrix(results: &Results, records: &[Record], style: &Style) -> String {
    let mut text = String::new();
    for pairs in pairs(&results.machine, records) {
        if text.is_empty() {
            text.push_str(&style.simulated(results.machine.simulated));
        } else {
            text.push('\n');
        }
        let title =
            format!("Between pairs of CPUs: {}, one way (half a round trip), p50", pairs.label);
        text.push_str(&style.paragraph(BOLD, &title));
        text.push('\n');
        let square = [1, 0]
            .into_iter()
            .find_map(|decimals| square(&results.machine, &pairs, decimals, style));
        match square {
            Some(square) => {
                text.push_str(&square);
                text.push('\n');
            }
            None => {
                let cpus = plural(pairs.cpus.len() as u64, "CPU");
                let said = format!(
                    "The square of {cpus} is too wide to be drawn here: the HTML page has it."
                );
                text.push_str(&style.paragraph(DIM, &said));
                text.push('\n');
            }
        }
        text.push_str(&summary(&pairs, style));
    }
    text
}

/// What sets a CPU apart from its neighbours on this machine: node, cache and core, as far as there
/// are several.
fn seat(place: Option<&&CpuPlace>, nodes: bool, caches: bool, threads: bool) -> String {
    let Some(place) = place else { return String::new() };
    let mut parts = Vec::new();
    if nodes {
        parts.push(format!("node {}", place.node));
    }
    if caches {
        parts.push(place.llc.map_or_else(|| "cache ?".into(), |llc| format!("cache {llc}")));
    }
    if threads {
        parts.push(format!("core {}", place.core));
    }
    parts.join(" ")
}

/// The square with so many decimals, or nothing where it is too wide.
fn square(machine: &Machine, pairs: &Pairs<'_>, decimals: usize, style: &Style) -> Option<String> {
    let cpus = &pairs.cpus;
    if cpus.len() > MOST_CPUS {
        return None;
    }
    let seats: BTreeMap<u32, &CpuPlace> =
        machine.topology.iter().map(|place| (place.cpu, place)).collect();
    let differ = |of: &dyn Fn(&CpuPlace) -> Option<u32>| {
        let found: BTreeSet<Option<u32>> =
            cpus.iter().filter_map(|cpu| seats.get(cpu)).map(|place| of(place)).collect();
        found.len() > 1
    };
    let nodes = differ(&|place| Some(place.node));
    let caches = differ(&|place| place.llc);
    let threads = cpus.iter().filter_map(|cpu| seats.get(cpu)).any(|place| place.smt.len() > 1);
    let labels: Vec<String> =
        cpus.iter().map(|cpu| seat(seats.get(cpu), nodes, caches, threads)).collect();
    // One unit for the whole square, so that the eye can compare.
    let median = median(pairs.values.values().copied())?;
    let (scale, unit) = if median < 2000.0 { (1.0, "ns") } else { (1000.0, "µs") };
    let drawn = |value: f64| {
        let value = value / scale;
        if value < 1e6 { format!("{value:.decimals$}") } else { format!("{value:.0e}") }
    };
    let text_of = |a: u32, b: u32| pairs.value(a, b).map_or_else(|| "–".into(), drawn);
    let name_width = cpus.iter().map(|cpu| cpu.to_string().len()).max().unwrap_or(1);
    let figure_width = pairs
        .values
        .values()
        .map(|value| drawn(*value).chars().count())
        .max()
        .unwrap_or(1)
        .max(name_width);
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let side = label_width + usize::from(label_width > 0) * 2 + name_width.max(3);
    let gap = |from: u32, to: u32| {
        let of = |cpu: u32| seats.get(&cpu).map(|place| (place.node, place.llc));
        of(from) != of(to)
    };
    let gaps = cpus.windows(2).filter(|pair| gap(pair[0], pair[1])).count();
    if style.width.is_some_and(|width| side + cpus.len() * (figure_width + 1) + gaps * 2 > width) {
        return None;
    }
    let shades = Shades::of(pairs.values.values().copied());
    let mut text = String::new();
    let mut head =
        format!("{}{}", " ".repeat(side - name_width.max(3)), pad_left(unit, name_width.max(3)));
    for (index, cpu) in cpus.iter().enumerate() {
        if index > 0 && gap(cpus[index - 1], *cpu) {
            head.push_str("  ");
        }
        head.push(' ');
        head.push_str(&pad_left(&cpu.to_string(), figure_width));
    }
    text.push_str(&style.paint(BOLD, &head));
    text.push('\n');
    for (row, a) in cpus.iter().enumerate() {
        if row > 0 && gap(cpus[row - 1], *a) {
            text.push('\n');
        }
        let label = pad_right(&labels[row], label_width);
        text.push_str(&style.paint(DIM, &label));
        text.push_str(if label_width > 0 { "  " } else { "" });
        text.push_str(&style.paint(BOLD, &pad_left(&a.to_string(), name_width.max(3))));
        for (column, b) in cpus.iter().enumerate() {
            if column > 0 && gap(cpus[column - 1], *b) {
                text.push_str("  ");
            }
            let (figure, with) = match (a == b, pairs.value(*a, *b)) {
                (true, _) => ("·".into(), DIM),
                (false, None) => ("–".into(), DIM),
                (false, Some(value)) => (text_of(*a, *b), shades.shade(value)),
            };
            text.push(' ');
            text.push_str(&" ".repeat(figure_width.saturating_sub(figure.chars().count())));
            text.push_str(&style.paint(with, &figure));
        }
        text.push('\n');
    }
    Some(text)
}

/// Thirds of the logarithmic range between the smallest and the largest value.
struct Shades {
    low: f64,
    step: f64,
}

impl Shades {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let logs = values.filter(|value| *value > 0.0).map(f64::ln);
        let low = logs.clone().fold(f64::INFINITY, f64::min);
        let high = logs.fold(f64::NEG_INFINITY, f64::max);
        // A tenth between the fastest and the slowest pair is not worth a colour.
        let spread = if high - low > 0.1 { high - low } else { f64::INFINITY };
        Shades { low, step: spread / 3.0 }
    }

    fn shade(&self, value: f64) -> anstyle::Style {
        match (value.max(f64::MIN_POSITIVE).ln() - self.low) / self.step {
            _ if !self.step.is_finite() => PLAIN,
            third if third < 1.0 => AnsiColor::Green.on_default(),
            third if third < 2.0 => AnsiColor::Yellow.on_default(),
            _ => AnsiColor::Red.on_default(),
        }
    }
}

fn summary(pairs: &Pairs<'_>, style: &Style) -> String {
    let found = pairs.by_relation();
    let column = |head: &str, cell: &dyn Fn(&[f64]) -> String| Column {
        group: String::new(),
        head: head.into(),
        rank: 0,
        cells: found.values().map(|values| (cell(values), PLAIN)).collect(),
    };
    let table = Table {
        head: "between".into(),
        labels: found.keys().map(|of| relation(*of).to_string()).collect(),
        columns: vec![
            column("pairs", &|values| values.len().to_string()),
            column("median", &|values| {
                median(values.iter().copied()).map_or_else(String::new, time)
            }),
            column("fastest", &|values| values.first().copied().map_or_else(String::new, time)),
            column("slowest", &|values| values.last().copied().map_or_else(String::new, time)),
        ],
    };
    table.draw(style).0
}

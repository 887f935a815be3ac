use std::collections::{BTreeMap, BTreeSet};

use anstyle::AnsiColor;
use threadtoll_record::CpuPlace;
use threadtoll_stats::median;

use super::table::{pad_left, pad_right};
use super::{BOLD, DIM, PLAIN, Style};
use crate::figure::Pairs;
use crate::label::plural;
use crate::units::{UNKNOWN, range};

/// Maximum number of CPUs of a square. A larger one is unreadable, however wide the terminal.
const MAX_CPUS: usize = 64;
/// Maximum number of rows on a screen.
const MOST_ON_A_SCREEN: usize = 14;
const GAP: &str = "  ";

/// Draws the medians with as many decimals as fit, then the widths of their intervals. Empty lines
/// are before and after them.
pub(super) fn draw(pairs: &Pairs, style: &Style) -> String {
    let values: BTreeMap<(u32, u32), f64> = grid(pairs, |a, b| pairs.value(a, b));
    // A single unit for the whole square makes figures comparable at a glance.
    let (scale, unit) = match median(values.values().copied()) {
        Some(median) if median >= 2000.0 => (1000.0, "µs"),
        _ => (1.0, "ns"),
    };
    let values = values.into_iter().map(|(pair, ns)| (pair, ns / scale)).collect();
    let Some(medians) =
        [1, 0].into_iter().find_map(|decimals| square(pairs, &values, unit, decimals, style))
    else {
        let cpus = plural(pairs.cpus.len() as u64, "CPU");
        let note = format!("A square of {cpus} is too wide for this terminal; see the HTML page.");
        return format!("\n{}\n", style.paragraph(DIM, &note));
    };
    let spreads = grid(pairs, |a, b| Some(100.0 * pairs.spread(a, b)?));
    let spreads = square(pairs, &spreads, "%", 0, style).filter(|_| !spreads.is_empty());
    let spreads = spreads.map_or_else(String::new, |square| {
        let heading = "Width of the 95% interval of each, in percent of the median:";
        format!("\n{}{square}", style.paragraph(DIM, heading))
    });
    format!("\n{medians}{spreads}\n")
}

/// Draws the medians in the lines of a screen. Those of many CPUs become shades.
pub(super) fn on_a_screen(pairs: &Pairs, style: &Style) -> String {
    let values = grid(pairs, |a, b| pairs.value(a, b));
    let drawn =
        || [1, 0].into_iter().find_map(|digits| square(pairs, &values, "ns", digits, style));
    match pairs.cpus.len() {
        0..=MOST_ON_A_SCREEN => drawn().unwrap_or_default(),
        _ => shaded(pairs, style),
    }
}

/// Draws medians over neighbouring CPUs as shades; the darkest shade is the slowest. Each shade
/// stands for a quarter of the logarithmic range.
fn shaded(pairs: &Pairs, style: &Style) -> String {
    const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
    let each = pairs.cpus.len().div_ceil(MOST_ON_A_SCREEN);
    let groups: Vec<&[u32]> = pairs.cpus.chunks(each).collect();
    let cell = |rows: &[u32], columns: &[u32]| {
        let all = rows.iter().flat_map(|a| columns.iter().map(move |b| (*a, *b)));
        median(all.filter(|(a, b)| a != b).filter_map(|(a, b)| pairs.value(a, b)))
    };
    let cells: Vec<Vec<Option<f64>>> = groups
        .iter()
        .map(|rows| groups.iter().map(|columns| cell(rows, columns)).collect())
        .collect();
    let known = || cells.iter().flatten().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let shade = |value: f64| {
        let part = (value / low).ln() / (high / low).ln().max(f64::MIN_POSITIVE);
        ((part * SHADES.len() as f64) as usize).min(SHADES.len() - 1)
    };
    let names: Vec<String> = groups.iter().map(|cpus| numbers(cpus)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, row) in names.iter().zip(&cells) {
        let shades = row.iter().map(|cell| cell.map_or(' ', |value| SHADES[shade(value)]));
        let row: String = shades.flat_map(|shade| [shade, shade]).collect();
        text.push_str(&format!("{}  {row}\n", pad_left(name, width)));
    }
    let meaning = SHADES.iter().enumerate().filter_map(|(nth, glyph)| {
        let of_shade = || known().filter(|value| shade(*value) == nth);
        let least = of_shade().min_by(f64::total_cmp)?;
        Some(format!("{glyph} {}", range(least, of_shade().fold(least, f64::max))))
    });
    let meaning: Vec<String> = meaning.collect();
    if meaning.is_empty() {
        return String::new();
    }
    let legend = format!(
        "{}: the median of pairs of these CPUs; columns are in the order of rows.",
        meaning.join("  ")
    );
    text + &style.paragraph(DIM, &legend)
}

/// Such as `0–17, 250–267`.
fn numbers(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}–{last}"),
        _ => run.iter().map(u32::to_string).collect(),
    });
    let runs: Vec<String> = runs.collect();
    match runs.as_slice() {
        [first, _, _, .., last] => format!("{first}, …, {last}"),
        _ => runs.join(", "),
    }
}

fn grid(pairs: &Pairs, figure: impl Fn(u32, u32) -> Option<f64>) -> BTreeMap<(u32, u32), f64> {
    let cpus = || pairs.cpus.iter().copied();
    cpus()
        .flat_map(|a| cpus().filter(move |b| a != *b).map(move |b| (a, b)))
        .filter_map(|(a, b)| Some(((a, b), figure(a, b)?)))
        .collect()
}

/// Labels contain the node and the cache if there are several, and the core if cores have several
/// hardware threads.
fn labels(pairs: &Pairs) -> Vec<String> {
    let places = || pairs.cpus.iter().filter_map(|cpu| pairs.places.get(cpu));
    let several = |of: fn(&CpuPlace) -> Option<u32>| {
        places().map(of).collect::<BTreeSet<Option<u32>>>().len() > 1
    };
    let nodes = several(|place| Some(place.node));
    let caches = several(|place| place.llc);
    let threads = places().any(|place| place.smt.len() > 1);
    let label = |place: &CpuPlace| {
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
    };
    pairs.cpus.iter().map(|cpu| pairs.places.get(cpu).map_or_else(String::new, label)).collect()
}

/// Returns `None` if the square is too wide.
fn square(
    pairs: &Pairs,
    values: &BTreeMap<(u32, u32), f64>,
    unit: &str,
    decimals: usize,
    style: &Style,
) -> Option<String> {
    let cpus = &pairs.cpus;
    if cpus.len() > MAX_CPUS {
        return None;
    }
    let labels = labels(pairs);
    let figure = |value: f64| {
        if value < 1e6 { format!("{value:.decimals$}") } else { format!("{value:.0e}") }
    };
    let name_width = cpus.iter().map(|cpu| cpu.to_string().len()).max().unwrap_or(1);
    let figure_widths = values.values().map(|value| figure(*value).chars().count());
    let figure_width = figure_widths.max().unwrap_or(1).max(name_width);
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let head_width = name_width.max(3);
    let side_width = label_width + if label_width > 0 { GAP.len() } else { 0 };
    // Nodes and caches are separated by gaps.
    let cache = |index: usize| pairs.places.get(&cpus[index]).map(|place| (place.node, place.llc));
    let parted = |index: usize| index > 0 && cache(index - 1) != cache(index);
    let gaps = (0..cpus.len()).filter(|index| parted(*index)).count();
    let width = side_width + head_width + cpus.len() * (figure_width + 1) + gaps * GAP.len();
    if style.width.is_some_and(|most| width > most) {
        return None;
    }
    let shades = Shades::of(values.values().copied());
    let mut head = format!("{}{}", " ".repeat(side_width), pad_left(unit, head_width));
    for (column, cpu) in cpus.iter().enumerate() {
        head.push_str(if parted(column) { GAP } else { "" });
        head.push(' ');
        head.push_str(&pad_left(&cpu.to_string(), figure_width));
    }
    let mut text = style.paint(BOLD, &head) + "\n";
    for (row, a) in cpus.iter().enumerate() {
        text.push_str(if parted(row) { "\n" } else { "" });
        text.push_str(&style.paint(DIM, &pad_right(&labels[row], label_width)));
        text.push_str(if label_width > 0 { GAP } else { "" });
        text.push_str(&style.paint(BOLD, &pad_left(&a.to_string(), head_width)));
        for (column, b) in cpus.iter().enumerate() {
            text.push_str(if parted(column) { GAP } else { "" });
            let (figure, with) = match (a == b, values.get(&(*a, *b)).copied()) {
                (true, _) => ("·".into(), DIM),
                (false, None) => (UNKNOWN.into(), DIM),
                (false, Some(value)) => (figure(value), shades.shade(value)),
            };
            text.push(' ');
            text.push_str(&" ".repeat(figure_width.saturating_sub(figure.chars().count())));
            text.push_str(&style.paint(with, &figure));
        }
        text.push('\n');
    }
    Some(text)
}

/// Colours for the thirds of the logarithmic range of the values.
struct Shades {
    low: f64,
    step: f64,
}

impl Shades {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let logs = values.filter(|value| *value > 0.0).map(f64::ln);
        let low = logs.clone().fold(f64::INFINITY, f64::min);
        let high = logs.fold(f64::NEG_INFINITY, f64::max);
        // A difference of a tenth between the fastest and the slowest pair does not deserve
        // colours.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_a_range() {
        assert_eq!(numbers(&[1, 251, 2, 252, 3, 253]), "1–3, 251–253");
        assert_eq!(numbers(&[7]), "7");
        assert_eq!(numbers(&[0, 2, 4, 6]), "0, …, 6");
    }
}

use maud::{Markup, html};
use threadtoll_record::{Placement, Record};
use threadtoll_stats::median;

use super::chart::{
    Axis, Cell, Dot, Dots, Edge, Grid, Key, Line, Lines, Point, Row as ChartRow, Shades, Shape,
    colour, scale_of_colours,
};
use crate::claims::published;
use crate::figure::{Map, Pairs, QueueCurve, QueueOverTime};
use crate::label::{plural, relation};
use crate::ladder::Row as LadderRow;
use crate::queues::{ChartRow as QueueRow, Comparison};
use crate::screen::{Curve, Curves};
use crate::table::{Heading, Row, Section};
use crate::units::{digits, maybe_time, range, ratio, round_digits, round_time, time, time_within};

/// Factor by which an axis extends beyond its smallest and its largest figure.
const MARGIN: f64 = 1.3;
/// Maximum number of cells in all matrices of a page. A cell takes about 8 bytes.
const MAX_CELLS: usize = 300_000;
/// A colour scale is shown if the slowest pair takes at least this many times the fastest pair's
/// time.
const SPREAD: f64 = 1.6;
/// A matrix with more columns than this has no figures, and no lines between cores.
const MANY: usize = 32;

/// A mark's title contains the figures of the columns up to this rank.
const MAX_RANK: u8 = 5;

/// Indices of two legend entries of the ladder. The entries of the three placements precede them.
const PUBLISHED: usize = 3;
const ANOTHER_SPEED: usize = 4;

pub(super) fn class_of(placement: Placement) -> &'static str {
    match placement {
        Placement::Pinned => "c0",
        Placement::SameCpu => "c2",
        Placement::Free => "c1",
    }
}

/// One-way medians by placement, and published figures. Rows with `true` were measured at another
/// speed of the machine.
pub(super) fn ladder(rows: &[(LadderRow<'static>, bool)], max_rows: usize) -> Markup {
    let shape = |placement| match placement {
        Placement::Pinned => Shape::Circle,
        Placement::SameCpu => Shape::Square,
        Placement::Free => Shape::Triangle,
    };
    let placements = Placement::ALL.iter().copied();
    let mut keys: Vec<Key> = placements
        .map(|placement| Key::new(placement.name(), shape(placement), class_of(placement)))
        .collect();
    keys.push(Key::new("published", Shape::Diamond, "hollow"));
    keys.push(Key::new("at another speed of the machine", Shape::Circle, "faint"));
    let mut charted = Vec::new();
    let mut dots = Vec::new();
    for (row, faint) in rows.iter().take(max_rows) {
        let records = Placement::ALL.iter().enumerate();
        let known: Vec<(usize, &Record, f64)> = records
            .filter_map(|(key, placement)| {
                let record = row.record(*placement)?;
                let p50 = record.one_way_p50().filter(|p50| p50.is_finite() && *p50 > 0.0)?;
                Some((key, record, p50))
            })
            .collect();
        let Some((_, _, first)) = known.first() else { continue };
        let at = charted.len();
        charted.push(ChartRow { label: row.label.clone(), figure: time(*first) });
        for (key, record, value) in known {
            let placement = record.cell.placement.name();
            let title = format!("{}, {placement}\n{}", row.label, lines(record).join("\n"));
            let interval = record.one_way_p50_interval95();
            let key = if *faint { ANOTHER_SPEED } else { key };
            dots.push(Dot { row: at, key, value, interval, title });
            for figure in published(record) {
                let source = format!("published: {}", time(figure.ns));
                let title =
                    format!("{}, {source}\n{}\n{}", row.label, figure.source, figure.machine);
                let known = |dot: &Dot| dot.row == at && dot.key == PUBLISHED && dot.title == title;
                if !dots.iter().any(known) {
                    dots.push(Dot {
                        row: at,
                        key: PUBLISHED,
                        value: figure.ns,
                        interval: None,
                        title,
                    });
                }
            }
        }
    }
    let values = dots.iter().map(|dot| dot.value);
    let Some(axis) = Axis::log(values, MARGIN, round_time) else { return html! {} };
    let label = "One-way medians of all mechanisms on a logarithmic axis; the table below has the same figures";
    Dots { label, axis, keys: &keys, rows: &charted, dots: &dots }.draw()
}

fn lines(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(p50) = record.one_way_p50() {
        lines.push(format!("one way p50 {}", time_within(p50, record.one_way_p50_interval95())));
    }
    let quantiles = &record.quantiles;
    lines.push(format!(
        "round trip p50 {}, p99 {}, p99.9 {}",
        maybe_time(quantiles.p50),
        maybe_time(quantiles.p99),
        maybe_time(quantiles.p999)
    ));
    lines
}

/// The main figures of comparable queues, best first. `section` contains the table rows of the
/// queues.
pub(super) fn queue(comparison: &Comparison<'_>, section: &Section, max_rows: usize) -> Markup {
    let keys = [
        Key::new("threadtoll", Shape::Circle, "c0"),
        Key::new("peer", Shape::Square, "c1"),
        Key::new("mechanism", Shape::Diamond, "c2"),
        Key::new("bare copy", Shape::Triangle, "c3"),
    ];
    let (mut rows, mut dots) = (Vec::new(), Vec::new());
    let drawn = comparison.chart_rows().zip(&section.rows).take(max_rows);
    for (QueueRow { label, kind, figure, text, interval }, row) in
        drawn.filter_map(|(drawn, row)| Some((drawn?, row)))
    {
        let key = keys.iter().position(|key| key.name == kind).unwrap_or(0);
        let title = format!("{label}, {kind}\n{}", figures(section, row).join("\n"));
        dots.push(Dot { row: rows.len(), key, value: figure, interval, title });
        rows.push(ChartRow { label, figure: text });
    }
    // Lower ends near zero would leave no room for the rest of a logarithmic axis.
    let values = dots.iter().flat_map(|dot| {
        let ends = dot.interval.unwrap_or([dot.value; 2]);
        [dot.value].into_iter().chain(ends.into_iter().filter(|end| *end > dot.value / 10.0))
    });
    let rate = |value: f64| format!("{} M/s", round_digits(value));
    let text: fn(f64) -> String = if comparison.streams() { rate } else { round_time };
    let Some(axis) = Axis::log(values, MARGIN, text) else { return html! {} };
    let view = comparison.view();
    let label = format!("{} by queue, best first; the table below has the figures", view.caption);
    Dots { label: &label, axis: axis.titled(view.axis), keys: &keys, rows: &rows, dots: &dots }
        .draw()
}

fn figures(section: &Section, row: &Row) -> Vec<String> {
    let cells = section.columns.iter().zip(&row.cells);
    let known = cells.filter(|(heading, cell)| {
        heading.rank.is_some_and(|rank| rank <= MAX_RANK) && cell.value.is_some()
    });
    known
        .map(|(Heading { group, text, .. }, cell)| format!("{group} {text}: {}", cell.text))
        .map(|line| line.trim_start().to_string())
        .collect()
}

pub(super) fn curves(of: &Curves) -> Markup {
    let [text_x, text_y] = of.texts;
    let line = |(nth, curve): (usize, &Curve)| Line {
        class: colour(nth),
        title: curve.name.clone(),
        points: curve
            .points
            .iter()
            .map(|(x, y)| Point {
                x: *x,
                y: *y,
                interval: None,
                title: format!("{}\n{}, {}", curve.name, text_x(*x), text_y(*y)),
            })
            .collect(),
        band: false,
    };
    let lines: Vec<Line> = of.curves.iter().enumerate().map(line).collect();
    let key = |(nth, curve): (usize, &Curve)| Key::new(&curve.name, Shape::Line, colour(nth));
    let keys: Vec<Key> = of.curves.iter().enumerate().map(key).collect();
    Lines {
        label: &format!("{} by {}; the tables below have the figures", of.y.title, of.x.title),
        x: of.x.clone(),
        y: of.y.clone(),
        height: 300.0,
        keys: &keys,
        lines: &lines,
        now: None,
    }
    .draw()
}

/// Measured and predicted numbers of waiting callers, over time.
pub(super) fn over_time(queue: &QueueOverTime) -> Markup {
    let points =
        || queue.curves.iter().flat_map(|curve| curve.measured.iter().chain(&curve.predicted));
    let axes = (
        Axis::from_zero(points().map(|point| point.0), 1.0, round_time),
        Axis::from_zero(points().map(|point| point.1), 1.1, round_digits),
    );
    let (Some(x), Some(y)) = axes else { return html! {} };
    let line = |class: String, title: String, points: &[(f64, f64)]| {
        let point =
            |(x, y): &(f64, f64)| Point { x: *x, y: *y, interval: None, title: String::new() };
        Line { class, title, points: points.iter().map(point).collect(), band: false }
    };
    let both = |(nth, curve): (usize, &QueueCurve)| {
        let name = &curve.name;
        let predicted = format!("{} dashes", colour(nth));
        [
            line(predicted, format!("{name}, predicted"), &curve.predicted),
            line(colour(nth), format!("{name}, measured"), &curve.measured),
        ]
    };
    let edge = |at_ns: f64| {
        line("ideal dashes".into(), "overload".into(), &[(at_ns, 0.0), (at_ns, y.high())])
    };
    let mut lines: Vec<Line> = queue.overload_ns.into_iter().map(edge).collect();
    lines.extend(queue.curves.iter().enumerate().flat_map(both));
    lines.retain(|line| !line.points.is_empty());
    let mut keys: Vec<Key> = Vec::new();
    for (nth, curve) in queue.curves.iter().enumerate() {
        keys.push(Key::new(&format!("{}, measured", curve.name), Shape::Line, colour(nth)));
        if !curve.predicted.is_empty() {
            keys.push(Key::new(&format!("{}, predicted", curve.name), Shape::Dashes, colour(nth)));
        }
    }
    Lines {
        label: "Waiting callers over time, measured and predicted; the table below has the figures",
        x: x.titled("time"),
        y: y.titled("callers who wait"),
        height: 280.0,
        keys: &keys,
        lines: &lines,
        now: None,
    }
    .draw()
}

/// Measured and predicted speed-ups of a lock, by number of threads and by hold share or time
/// between acquisitions. A map with a single column becomes curves over the number of threads.
pub(super) fn surface(heading: &str, map: &Map) -> Markup {
    let told = map.predicted.iter().flatten().any(|value| value.is_some_and(|value| value > 0.0));
    let halves = [("measured", &map.measured), ("predicted", &map.predicted)];
    let halves = &halves[..if told { 2 } else { 1 }];
    if map.columns.len() == 1 {
        return curve(heading, map, halves);
    }
    let known = |value: &Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0);
    let all = map.measured.iter().chain(&map.predicted).flatten().filter_map(known);
    let most = all.fold(1.2, f64::max);
    let threads: Vec<String> = map.threads.iter().map(u32::to_string).collect();
    let decimals = if map.columns.len() > 12 { 1 } else { 2 };
    let figure = |value: f64| {
        if value < 99.0 { format!("{value:.decimals$}") } else { digits(value) }
    };
    let grid = |name: &str, values: &[Vec<Option<f64>>]| {
        let value = |grid: &[Vec<Option<f64>>], row: usize, column: usize| {
            known(grid.get(row)?.get(column)?)
        };
        let cell = |row: usize, column: usize| match value(values, row, column) {
            Some(value) => Some(Cell { value, text: figure(value) }),
            None => value(&map.measured, row, column)
                .map(|_| Cell { value: f64::NAN, text: "–".into() }),
        };
        let label = format!(
            "Speed-up by threads and {}, {name}; the table below has the figures",
            map.across
        );
        Grid {
            label: &label,
            rows: &threads,
            columns: &map.columns,
            axes: ["threads", map.across],
            shades: Shades::SpeedUp { most },
            cells: &cell,
            title: &|_, _| String::new(),
            area: &|_, _| String::new(),
            edges: &[],
            size: (if map.columns.len() > 8 { 54.0 } else { 72.0 }, 34.0),
        }
        .draw()
    };
    html! {
        div class="pair" { "\n"
            @for (name, values) in halves {
                div {
                    h4 { "Speed-up, " (name) } "\n"
                    (grid(name, values))
                }
            }
        } "\n"
        (scale_of_colours("slower than one thread", &ratio(most), true))
    }
}

/// `measured` or `predicted`, and the figures by threads and column.
type Half<'m> = (&'static str, &'m Vec<Vec<Option<f64>>>);

fn curve(heading: &str, map: &Map, halves: &[Half<'_>]) -> Markup {
    let values = halves.iter().flat_map(|(_, values)| values.iter().flatten().flatten().copied());
    let threads = map.threads.iter().map(|threads| f64::from(*threads));
    let (Some(x), Some(y)) =
        (Axis::from_zero(threads, 1.04, round_digits), Axis::from_zero(values, 1.1, round_digits))
    else {
        return html! {};
    };
    let line = |(nth, (name, values)): (usize, &Half<'_>)| {
        let point = |(threads, values): (&u32, &Vec<Option<f64>>)| {
            let value = values.first().copied().flatten().unwrap_or(f64::NAN);
            let title = format!(
                "{heading}, {name}\n{}: {}",
                plural(u64::from(*threads), "thread"),
                ratio(value)
            );
            Point { x: f64::from(*threads), y: value, interval: None, title }
        };
        Line {
            class: if nth == 0 { colour(0) } else { format!("{} dashes", colour(1)) },
            title: name.to_string(),
            points: map.threads.iter().zip(values.iter()).map(point).collect(),
            band: false,
        }
    };
    let lines: Vec<Line> = halves.iter().enumerate().rev().map(line).collect();
    let shapes = [Shape::Line, Shape::Dashes];
    let keys: Vec<Key> = halves
        .iter()
        .enumerate()
        .map(|(nth, (name, _))| Key::new(name, shapes[nth], colour(nth)))
        .collect();
    Lines {
        label: "Speed-up by threads, measured and predicted; the table below has the figures",
        x: x.whole().titled("threads"),
        y: y.titled("speed-up"),
        height: 260.0,
        keys: &keys,
        lines: &lines,
        now: None,
    }
    .draw()
}

pub(super) fn pairs(pairs: &Pairs, matrices: usize) -> Markup {
    let cpus = &pairs.cpus;
    if cpus.len() * cpus.len() > MAX_CELLS / matrices.max(1) {
        return html! { p class="note" { "There are too many pairs to draw; the table sums them up." } "\n" };
    }
    let known = |row: usize, column: usize| {
        let value = pairs.value(cpus[row], cpus[column]).filter(|_| row != column)?;
        (value.is_finite() && value > 0.0).then_some(value)
    };
    let all = (0..cpus.len()).flat_map(|row| (0..cpus.len()).map(move |column| (row, column)));
    let all: Vec<f64> = all.filter_map(|(row, column)| known(row, column)).collect();
    let low = all.iter().copied().fold(f64::MAX, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    if low > high {
        return html! {};
    }
    // Small differences must not look large, so the scale extends by at least a factor of 1.25 to
    // either side of the middle.
    let middle = (low.ln() / 2.0 + high.ln() / 2.0).exp();
    let shades = Shades::Log { low: low.min(middle / 1.25), high: high.max(middle * 1.25) };
    let (unit, scale) = if high >= 999.5 { ("µs", 1e3) } else { ("ns", 1.0) };
    let decimals = if high < 99.5 || unit == "µs" { 1 } else { 0 };
    let cell = |row: usize, column: usize| {
        let value = known(row, column)?;
        let text = match value / scale {
            _ if cpus.len() > MANY => String::new(),
            figure if figure >= 99.5 => digits(figure),
            figure => format!("{figure:.decimals$}"),
        };
        Some(Cell { value, text })
    };
    let title = |row: usize, column: usize| {
        let (a, b) = (cpus[row], cpus[column]);
        let pair = if pairs.values.contains_key(&(a, b)) { (a, b) } else { (b, a) };
        let of = pairs.relations.get(&pair).map(|of| format!(", {}", relation(*of)));
        let value =
            known(row, column).map(|value| time_within(value, pairs.intervals.get(&pair).copied()));
        format!("CPUs {a} and {b}{}: {}", of.unwrap_or_default(), value.unwrap_or_default())
    };
    let area = |rows: [usize; 2], columns: [usize; 2]| {
        let inside = (rows[0]..rows[1])
            .flat_map(|row| (columns[0]..columns[1]).filter_map(move |column| known(row, column)));
        let values: Vec<f64> = inside.collect();
        let Some(middle) = median(values.iter().copied()) else { return String::new() };
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let names = |[from, to]: [usize; 2]| match to - from {
            1 => cpus[from].to_string(),
            _ => format!("{} to {}", cpus[from], cpus[to - 1]),
        };
        format!(
            "CPUs {} with CPUs {}\nmedian {}, {} in {}",
            names(rows),
            names(columns),
            time(middle),
            range(low, high),
            plural(values.len() as u64, "pair")
        )
    };
    let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let size = match cpus.len() {
        0..=4 => (84.0, 56.0),
        5..=8 => (64.0, 44.0),
        9..=MANY => (36.0, 30.0),
        many => (900.0 / many as f64, 900.0 / many as f64),
    };
    let label = "One-way medians for pairs of CPUs as a heat map; the table below sums them up";
    html! {
        (Grid {
            label,
            rows: &names,
            columns: &names,
            axes: ["CPU", &if cpus.len() > MANY { "CPU".into() } else { format!("CPU; figures in {unit}") }],
            shades,
            cells: &cell,
            title: &title,
            area: &area,
            edges: &edges(pairs),
            size,
        }.draw())
        @if high / low >= SPREAD { (scale_of_colours(&time(low), &time(high), false)) }
    }
}

/// Lines between nodes, between last-level caches, and between cores that have several hardware
/// threads.
fn edges(pairs: &Pairs) -> Vec<(usize, Edge)> {
    let seats: Vec<_> = pairs.cpus.iter().map(|cpu| pairs.places.get(cpu)).collect();
    let neighbours = || {
        seats
            .windows(2)
            .enumerate()
            .filter_map(|(index, pair)| Some((index + 1, pair[0]?, pair[1]?)))
    };
    let threads = neighbours().any(|(_, before, after)| before.core == after.core);
    neighbours()
        .filter_map(|(index, before, after)| {
            let edge = if before.node != after.node {
                Edge::Heavy
            } else if before.llc != after.llc {
                Edge::Medium
            } else if before.core != after.core && threads && seats.len() <= MANY {
                Edge::Light
            } else {
                return None;
            };
            Some((index, edge))
        })
        .collect()
}

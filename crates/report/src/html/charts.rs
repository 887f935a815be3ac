//! Data of the charts, as compact JSON.

use maud::PreEscaped;
use serde::Serialize;
use threadtoll_record::{Placement, Record};

use super::distribution::{BINS_PER_DECADE, Distribution, short, three_digits};
use super::run::{MAX_QUEUE_ROWS, Run};
use crate::claims::published;
use crate::cost::{cpu_ns, switches};
use crate::figure::{Map, Pairs};
use crate::ladder::Row;
use crate::queues::ChartRow;
use crate::units::{maybe_time, per_op, round_time, share, time, time_within};

/// Maximum number of distributions on a page; each takes about 3 kB.
const MAX_DISTRIBUTIONS: usize = 300;
/// Maximum number of matrix figures on a page; each takes about 5 bytes.
const MAX_PAIRS: usize = 300_000;

#[derive(Serialize)]
struct Data {
    per_decade: f64,
    runs: Vec<RunData>,
}

#[derive(Serialize)]
struct RunData {
    over_ns: u64,
    rows: Vec<RowData>,
    matrices: Vec<MatrixData>,
    surfaces: Vec<SurfaceData>,
    queues: Vec<QueuesData>,
}

/// Queues that can be compared, best first.
#[derive(Serialize)]
struct QueuesData {
    streams: bool,
    axis: &'static str,
    marks: Vec<ChartRowData>,
}

#[derive(Serialize)]
struct ChartRowData {
    label: String,
    kind: &'static str,
    figure: f64,
    interval: Option<[f64; 2]>,
    lines: Vec<String>,
}

/// Speed-ups of a lock by threads and hold share or interval.
#[derive(Serialize)]
struct SurfaceData {
    label: String,
    across: &'static str,
    threads: Vec<u32>,
    columns: Vec<String>,
    measured: Vec<Vec<Option<f64>>>,
    predicted: Vec<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct RowData {
    label: String,
    /// `true` if its distribution is shown at first.
    shown: bool,
    /// By placement.
    sides: Vec<SideData>,
    /// Published one-way times, each with its source.
    published: Vec<(f64, String)>,
}

#[derive(Serialize)]
struct SideData {
    placement: &'static str,
    p50: Option<f64>,
    interval: Option<[f64; 2]>,
    /// All known figures, one per line.
    lines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<Distribution>,
}

#[derive(Serialize)]
struct MatrixData {
    label: String,
    cpus: Vec<u32>,
    /// Node, last-level cache and core of each; `None` where the machine does not say.
    seats: Vec<Option<(u32, Option<u32>, u32)>>,
    /// `true` if `values` is the whole square, `false` if it is the part above the diagonal, row by
    /// row.
    square: bool,
    values: Vec<Option<f64>>,
}

pub(super) fn json(runs: &[Run<'_>]) -> PreEscaped<String> {
    let mut distributions = MAX_DISTRIBUTIONS;
    let mut pairs = MAX_PAIRS;
    let data = Data {
        per_decade: BINS_PER_DECADE,
        runs: runs.iter().map(|run| run_data(run, &mut distributions, &mut pairs)).collect(),
    };
    match serde_json::to_string(&data) {
        Ok(json) => PreEscaped(inert(&json)),
        Err(error) => unreachable!("the data is made of structs and numbers: {error}"),
    }
}

/// Escapes JSON for a script element, so that nothing in it ends the element or starts a comment.
fn inert(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn run_data(run: &Run<'_>, distributions: &mut usize, pairs: &mut usize) -> RunData {
    let charted: Vec<&Row<'_>> = run.rows().iter().collect();
    let shown = first_shown(&charted);
    let step_ns = run.results().machine.clock.step_ns;
    let rows = charted.iter().enumerate().map(|(index, row)| RowData {
        label: row.label.clone(),
        shown: shown.contains(&index),
        sides: Placement::ALL
            .iter()
            .filter_map(|placement| row.record(*placement))
            .map(|record| side(record, step_ns.get(), distributions))
            .collect(),
        published: Placement::ALL
            .iter()
            .filter_map(|placement| row.record(*placement))
            .flat_map(|record| published(record))
            .map(|figure| (figure.ns, format!("{}\n{}", figure.machine, figure.source)))
            .fold(Vec::new(), |mut all, figure| {
                if !all.contains(&figure) {
                    all.push(figure);
                }
                all
            }),
    });
    RunData {
        over_ns: run.results().plan.over_ns,
        rows: rows.collect(),
        matrices: run.pairs().filter_map(|matrix| matrix_data(matrix, pairs)).collect(),
        surfaces: run
            .maps()
            .filter_map(|(heading, map)| surface_data(heading, map, pairs))
            .collect(),
        queues: queues_data(run),
    }
}

fn queues_data(run: &Run<'_>) -> Vec<QueuesData> {
    let mut left = MAX_QUEUE_ROWS;
    let mut all = Vec::new();
    for comparison in &run.comparisons {
        if left == 0 {
            break;
        }
        let marks = comparison.chart_rows(left);
        left -= comparison.rows().min(left);
        let marks = marks.into_iter().map(|ChartRow { label, kind, figure, interval, lines }| {
            ChartRowData {
                label,
                kind,
                figure: short(figure),
                interval: interval.map(|interval| interval.map(short)),
                lines,
            }
        });
        let axis = comparison.view().axis;
        all.push(QueuesData { streams: comparison.streams(), axis, marks: marks.collect() });
    }
    all
}

/// Five rows spread over the ladder, including the cheapest between threads: more would hide each
/// other.
fn first_shown(rows: &[&Row<'_>]) -> Vec<usize> {
    let plain: Vec<usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| {
            row.main().is_some_and(|main| main.histogram.is_some() && !main.cell.keep_awake)
        })
        .filter(|(_, row)| row.main().is_some_and(|main| main.cell.cpus.len() > 1))
        .map(|(index, _)| index)
        .collect();
    let most = plain.len().min(5);
    (0..most).map(|nth| plain[nth * (plain.len() - 1) / (most - 1).max(1)]).collect()
}

fn side(record: &Record, step_ns: f64, distributions: &mut usize) -> SideData {
    let distribution =
        record.histogram.as_ref().filter(|histogram| histogram.count() > 0 && *distributions > 0);
    if distribution.is_some() {
        *distributions -= 1;
    }
    SideData {
        placement: record.cell.placement.name(),
        p50: record.one_way_p50().filter(|p50| *p50 > 0.0).map(short),
        interval: record.one_way_p50_interval95().map(|interval| interval.map(short)),
        lines: lines(record),
        distribution: distribution.map(|histogram| Distribution::new(histogram, step_ns)),
    }
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
    lines.push(format!("round trip max {}", maybe_time(record.max)));
    if let Some(over) = record.over.share {
        lines.push(format!(
            "over {}: {}",
            round_time(record.over.limit_ns as f64),
            share(over.get())
        ));
    }
    if let (Some(cpu_ns), Some(switches)) = (cpu_ns(&record.cost), switches(&record.cost)) {
        lines.push(format!("per hand-off: CPU {}, {} switches", time(cpu_ns), per_op(switches)));
    }
    if let Some(same) = record.same_cpu_share {
        lines.push(format!("{} began on one CPU", share(same.get())));
    }
    lines
}

fn surface_data(heading: &str, map: &Map, budget: &mut usize) -> Option<SurfaceData> {
    *budget = budget.checked_sub(2 * map.threads.len() * map.columns.len())?;
    let rounded = |grid: &[Vec<Option<f64>>]| {
        grid.iter().map(|row| row.iter().map(|value| value.map(short)).collect()).collect()
    };
    Some(SurfaceData {
        label: heading.to_string(),
        across: map.across,
        threads: map.threads.clone(),
        columns: map.columns.clone(),
        measured: rounded(&map.measured),
        predicted: rounded(&map.predicted),
    })
}

fn matrix_data(pairs: &Pairs, budget: &mut usize) -> Option<MatrixData> {
    let cpus = &pairs.cpus;
    let square = cpus.len() <= 200
        && pairs.values.keys().any(|(a, b)| a != b && pairs.values.contains_key(&(*b, *a)));
    let columns = |row: usize| if square { &cpus[..] } else { &cpus[row + 1..] };
    let needed: usize = (0..cpus.len()).map(|row| columns(row).len()).sum();
    *budget = budget.checked_sub(needed)?;
    let values = cpus.iter().enumerate().flat_map(|(row, a)| {
        columns(row).iter().map(move |b| pairs.value(*a, *b).map(three_digits))
    });
    let seat = |cpu: &u32| {
        let place = pairs.places.get(cpu)?;
        Some((place.node, place.llc, place.core))
    };
    Some(MatrixData {
        label: pairs.label.clone(),
        seats: cpus.iter().map(seat).collect(),
        cpus: cpus.clone(),
        square,
        values: values.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_end_its_element() {
        let json = inert(r#"{"a":"</script><!--\u2028 & "}"#);
        assert!(!json.contains(['<', '>', '&']));
    }
}

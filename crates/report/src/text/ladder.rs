//! The ladder: what each mechanism costs, cheapest first.

use threadtoll_record::{Machine, Placement, Record, file::Results};

use super::table::{Column, Table};
use super::{ACCENT, BOLD, DIM, PLAIN, Style};
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::disturbance::too_disturbed;
use crate::label::{cpus, plural, relation};
use crate::published::{Published, published, shown};
use crate::rows::{Row, cheapest, rows, times};
use crate::units::{UNKNOWN, digits, maybe_time, per_op, plus_minus, round_time, share, time};

/// Draws the ladder: a row for each variant of a mechanism, cheapest first, its placements side by
/// side.
///
/// Everything but the one-way medians is of the row's first placement, pinned before the others. A
/// cell measured in several groups, as the reference is, stands here once: with the median of its
/// medians, the interval that holds all their intervals, and the distribution of all its round
/// trips. Records of the experiment `matrix` are left to [`matrix`](super::matrix()). Where `style`
/// has a width, columns are dropped until the others fit, and named below.
pub fn ladder(results: &Results, records: &[Record], style: &Style) -> String {
    let rows = rows(records);
    let mut text = style.simulated(results.machine.simulated);
    if rows.is_empty() {
        text.push_str("No hand-off has been measured yet.\n");
        return text;
    }
    text.push_str(&heading(&results.machine, style));
    text.push_str(&style.paragraph(DIM, &explanation(&rows)));
    text.push('\n');
    let (table, left_out) = table(results, &rows).draw(style);
    text.push_str(&table);
    let notes = notes(&rows, &left_out);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&style.paragraph(DIM, &note));
    }
    text
}

fn heading(machine: &Machine, style: &Style) -> String {
    let cpu = clean(&machine.cpu);
    let on = format!(
        "on {}, {}, grade {}",
        cpu.trim(),
        plural(machine.cpus.into(), "CPU"),
        machine.grade
    );
    let lines = style.wrap(&format!("What a hand-off costs {on}"), 0);
    lines.iter().map(|line| style.paint(BOLD, line) + "\n").collect()
}

fn explanation(rows: &[Row<'_>]) -> String {
    let mut text = String::from(
        "One way is half a round trip; p50 is the median. Round trips are there and back, never halved.",
    );
    let pair = rows
        .iter()
        .filter_map(|row| row.record(Placement::Pinned))
        .find(|record| record.cell.cpus.len() == 2);
    if let Some(record) = pair {
        text.push_str(&format!(
            " Pinned: {} ({}).",
            cpus(&record.cell.cpus),
            relation(record.cell.relation)
        ));
    }
    text
}

fn table(results: &Results, rows: &[Row<'_>]) -> Table {
    let base = cheapest(rows).and_then(Row::main);
    let mut labels: Vec<String> = Vec::new();
    let pinned_anywhere = rows.iter().any(|row| row.record(Placement::Pinned).is_some());
    for row in rows {
        let mut label = row.label.clone();
        if let Some(main) =
            row.main().filter(|main| pinned_anywhere && main.cell.placement != Placement::Pinned)
        {
            label.push_str(&format!(" ({})", main.cell.placement));
        }
        if row.main().is_some_and(|main| too_disturbed(&main.disturbance)) {
            label.push_str(" !");
        }
        labels.push(label);
    }
    let mut columns = Vec::new();
    let mut first = true;
    for (placement, head, rank) in [
        (Placement::Pinned, "pinned", 2),
        (Placement::SameCpu, "same CPU", 4),
        (Placement::Free, "free", 3),
    ] {
        if rows.iter().all(|row| row.record(placement).is_none()) {
            continue;
        }
        let cells = rows.iter().map(|row| one_way(row, placement)).collect();
        columns.push(Column {
            group: "one way, p50".into(),
            head: head.into(),
            rank: if first { 0 } else { rank },
            cells,
        });
        first = false;
    }
    let mut add = |group: &str, head: &str, rank: u8, cell: &dyn Fn(&Record) -> String| {
        let cells =
            rows.iter().map(|row| (row.main().map_or_else(String::new, cell), PLAIN)).collect();
        columns.push(Column { group: group.into(), head: head.into(), rank, cells });
    };
    add("one way, p50", "95%", 12, &|record| match (
        record.one_way_p50(),
        record.one_way_p50_interval95(),
    ) {
        (Some(p50), Some(interval)) => plus_minus(p50, interval),
        _ => UNKNOWN.into(),
    });
    add("times", "cheapest", 1, &|record| {
        let times = base.and_then(|base| times(record, base));
        times.map_or_else(|| UNKNOWN.into(), |times| format!("{}×", digits(times)))
    });
    add("round trip", "p99", 5, &|record| maybe_time(record.quantiles.p99));
    add("round trip", "p99.9", 11, &|record| maybe_time(record.quantiles.p999));
    add("round trip", "max", 8, &|record| maybe_time(record.max));
    add("round trip", &format!(">{}", round_time(results.plan.over_ns as f64)), 6, &|record| {
        record.over.share.map_or_else(|| UNKNOWN.into(), share)
    });
    add("per hand-off", "CPU", 7, &|record| maybe_time(cpu_ns(&record.cost)));
    add("per hand-off", "switches", 10, &|record| {
        switches(&record.cost).map_or_else(|| UNKNOWN.into(), per_op)
    });
    for column in &mut columns {
        for (cell, with) in &mut column.cells {
            if cell == UNKNOWN {
                *with = DIM;
            } else if column.head == "cheapest" {
                *with = ACCENT;
            }
        }
    }
    let figures: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.main().and_then(|main| shown(&published(&main.cell))).unwrap_or_default(), DIM)
        })
        .collect();
    if figures.iter().any(|(figure, _)| !figure.is_empty()) {
        columns.push(Column {
            group: String::new(),
            head: "published".into(),
            rank: 9,
            cells: figures,
        });
    }
    Table { head: "mechanism".into(), labels, columns }
}

fn one_way(row: &Row<'_>, placement: Placement) -> (String, anstyle::Style) {
    let Some(record) = row.record(placement) else { return (String::new(), PLAIN) };
    let main = row.main().is_some_and(|main| main.cell.placement == placement);
    match record.one_way_p50() {
        Some(p50) => (time(p50), if main { BOLD } else { PLAIN }),
        None => (UNKNOWN.into(), DIM),
    }
}

fn notes(rows: &[Row<'_>], left_out: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(format!(
            "Left out for lack of width: {}. A wider terminal, --json and the HTML page have them.",
            left_out.join(", ")
        ));
    }
    let main = || rows.iter().filter_map(Row::main);
    if main().any(|record| record.quantiles.p99.is_none() || record.quantiles.p999.is_none()) {
        notes.push(format!(
            "{UNKNOWN}  not known; a quantile is only given with 20 samples beyond it."
        ));
    }
    if main().any(|record| too_disturbed(&record.disturbance)) {
        notes.push("!  over a quarter of the blocks was disturbed.".into());
    }
    if !left_out.iter().any(|head| head == "published") {
        let mut sources: Vec<&Published> =
            main().flat_map(|record| published(&record.cell)).collect();
        sources.sort_by(|a, b| (a.year, a.source).cmp(&(b.year, b.source)));
        sources.dedup_by_key(|figure| figure.source);
        if !sources.is_empty() {
            let named: Vec<&str> = sources.iter().map(|figure| figure.source).collect();
            notes.push(format!("Published: {}.", named.join("; ")));
        }
    }
    notes
}

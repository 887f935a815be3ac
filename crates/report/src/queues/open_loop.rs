//! Open loops: delivery times, lateness and saturation.

use threadtoll_record::{Load, Ns, OpenLoop, Quantiles, Record, file::Results};

use super::columns::{Column, over, time_of, times_of};
use super::pairs;
use super::screen::{Case, by_case};
use super::view::{Shown, View};
use super::{Comparison, Criteria};
use crate::screen::{CURVES, Curve, Curves, Rows};
use crate::sentences as say;
use crate::table::{self, Cell, Label, Section};
use crate::units::{maybe_time, per_second, range_per_second, time};

pub(super) const VIEW: View = View {
    scenario: "open-loop",
    question: "Which rate each queue keeps up with",
    sentence: "messages are sent when they are due, and a delivery lasts from then until the receiver has the message. CPU is that of the receiver and of send calls.",
    rates: false,
    ratios_decide: true,
    costs: false,
    axis: "delivery, p50 (lower is better)",
    caption: "Median delivery times",
    ns: |record| record.quantiles.p50.map(Ns::get),
    interval: |record| record.interval95.p50.map(|interval| interval.map(Ns::get)),
    text: |record| maybe_time(record.quantiles.p50),
    columns,
    summary,
    screen,
};

pub(super) fn open_loop(record: &Record) -> Option<&OpenLoop> {
    Some(&record.figures.open_loop()?.open_loop)
}

/// Such as `5.20 M/s (5.10–5.31 M/s)`, or `at least 5.20 M/s` if the generator was the limit.
fn saturation(open_loop: &OpenLoop) -> Option<String> {
    let rate = per_second(open_loop.saturated_at_per_s?.get());
    if open_loop.generator_was_limit {
        return Some(format!("at least {rate}/s"));
    }
    Some(match open_loop.saturated_at_interval95 {
        Some(interval) => format!("{rate}/s ({})", range_per_second(interval.map(f64::from))),
        None => format!("{rate}/s"),
    })
}

pub(super) fn limit(open_loop: &OpenLoop) -> String {
    let mut parts: Vec<String> = Vec::new();
    let at = if open_loop.generator_was_limit { "saturated," } else { "saturated at" };
    parts.extend(saturation(open_loop).map(|rate| format!("{at} {rate}")));
    if open_loop.generator_was_limit {
        parts.push("generator".into());
    }
    parts.join("; ")
}

fn columns<'c, 'a>(results: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        time_of("delivery", "p50", 0, VIEW.ns).main(),
        times_of("delivery", "95%", 10, VIEW.interval),
        time_of("delivery", "p99", 1, |record| record.quantiles.p99.map(Ns::get)),
        time_of("delivery", "p99.9", 7, |record| record.quantiles.p999.map(Ns::get)),
        time_of("delivery", "max", 6, |record| record.max.map(Ns::get)),
        over("delivery", 9, results),
        late("p50", 8, |late| late.p50),
        late("p99", 5, |late| late.p99),
        cpu(3),
        Column::new("", "received", 4, |row| {
            Cell::figure(open_loop(&row.record).and_then(|own| own.achieved_per_s), |rate| {
                format!("{}/s", per_second(rate))
            })
        }),
        limited(),
    ]
}

pub(super) fn late<'c, 'a>(
    heading: &'static str,
    rank: u8,
    of: fn(&Quantiles) -> Option<Ns>,
) -> Column<'c, 'a> {
    Column::new("sent late", heading, rank, move |row| {
        let quantiles = open_loop(&row.record).map(|own| &own.lateness.quantiles);
        Cell::figure(quantiles.and_then(of), time)
    })
}

pub(super) fn cpu<'c, 'a>(rank: u8) -> Column<'c, 'a> {
    time_of("per message", "CPU", rank, |record| open_loop(record)?.cpu_ns_per_message.map(Ns::get))
}

/// The rate at which the queue was saturated, or a note that the generator was late.
pub(super) fn limited<'c, 'a>() -> Column<'c, 'a> {
    Column::new("", "limit", 2, |row| {
        Cell::text(open_loop(&row.record).map_or_else(String::new, limit))
    })
}

struct Saturation<'r> {
    name: String,
    wait: &'static str,
    /// Conditions of the measurement, without the rate.
    case: Case,
    /// Rates and delivery times, in ascending order of rates.
    points: Vec<(f64, f64)>,
    /// The highest rate at which the queue kept up.
    kept_up: Option<&'r OpenLoop>,
    /// Measurements in which the queue did not keep up. In the end, only that with the lowest rate
    /// above `kept_up` remains.
    saturated: Vec<&'r OpenLoop>,
}

fn rate(own: &OpenLoop) -> f64 {
    own.rate_per_s.map_or(0.0, f64::from)
}

impl Saturation<'_> {
    fn saturated_at(&self) -> Option<f64> {
        self.saturated.first()?.saturated_at_per_s.map(f64::from)
    }
}

/// Conditions of a comparison, without the rate and without those in the names of its rows.
fn case(comparison: &Comparison<'_>) -> Case {
    let load = Load { rate_per_s: None, ..comparison.criteria.load.clone() };
    let criteria: Criteria<'_> = comparison.criteria;
    Case::of(&Criteria { load: &load, neighbour: None, ..criteria })
}

/// The queue that is saturated at the highest rate comes first.
fn saturations<'r>(comparisons: &[&'r Comparison<'_>]) -> Vec<Saturation<'r>> {
    let mut all: Vec<Saturation<'_>> = Vec::new();
    let rows = comparisons.iter().flat_map(|comparison| {
        let case = case(comparison);
        comparison.rows.iter().map(move |row| (case.clone(), row))
    });
    for (case, row) in rows {
        let (Some(queue), Some(own)) = (row.queue(), open_loop(&row.record)) else { continue };
        let (name, wait) = (pairs::name_without_wait(row), queue.wait.name());
        let is_known =
            |known: &Saturation<'_>| known.name == name && known.wait == wait && known.case == case;
        let place = all.iter().position(is_known).unwrap_or_else(|| {
            let (points, saturated) = (Vec::new(), Vec::new());
            all.push(Saturation { name, wait, case, points, kept_up: None, saturated });
            all.len() - 1
        });
        let known = &mut all[place];
        known.points.extend(row.ns().map(|ns| (rate(own), ns)));
        if own.saturated {
            known.saturated.push(own);
        } else {
            let higher = known.kept_up.is_none_or(|other| rate(own) > rate(other));
            known.kept_up = if higher { Some(own) } else { known.kept_up };
        }
    }
    let cases: Vec<Case> = all.iter().map(|known| known.case.clone()).collect();
    for known in &mut all {
        let case = known.case.name(&cases);
        if !case.is_empty() {
            known.name.push_str(&format!(", {case}"));
        }
        known.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A queue that fell behind at one rate but kept up with a higher one was disturbed, not
        // saturated.
        let kept_up = known.kept_up.map_or(0.0, rate);
        known.saturated.retain(|own| rate(own) > kept_up);
        known.saturated.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        known.saturated.truncate(1);
    }
    all.sort_by(|a, b| {
        let key = |row: &Saturation<'_>| row.saturated_at().unwrap_or(f64::INFINITY);
        key(b).total_cmp(&key(a)).then_with(|| (&a.name, a.wait).cmp(&(&b.name, b.wait)))
    });
    all
}

fn summary(_: &Results, comparisons: &[&Comparison<'_>]) -> Vec<Section> {
    type Column<'a> = table::Column<'static, Saturation<'a>>;
    let all = saturations(comparisons);
    let columns: Vec<Column<'_>> = vec![
        Column::new("", "wait", 1, |row| Cell::text(row.wait)).faint(),
        Column::new("", "kept up with", 2, |row| {
            let rate = row.kept_up.and_then(|own| own.rate_per_s);
            Cell::figure(rate, |rate| format!("{}/s", per_second(rate)))
        }),
        Column::new("", "saturated at", 0, |row| {
            match row.saturated.first().and_then(|own| saturation(own)) {
                Some(text) => Cell::new(row.saturated_at(), text),
                None => Cell::text("not reached"),
            }
        })
        .main(),
        Column::new("", "limit", 3, |row| {
            let generator = row.saturated.iter().any(|own| own.generator_was_limit);
            Cell::text(if generator { "generator" } else { "" })
        }),
    ];
    let rates = comparisons.iter().any(|comparison| comparison.criteria.load.rate_per_s.is_some());
    let section =
        || Section::new("Saturation", "queue", columns, &all, |row| Label::new(&row.name));
    (rates && !all.is_empty()).then(section).into_iter().collect()
}

/// Delivery times by rate, of the queues that keep up with the highest rates. If only one rate was
/// measured, each queue has a row.
fn screen(results: &Results, comparisons: &[&Comparison<'_>]) -> Shown {
    let Some(section) = summary(results, comparisons).into_iter().next() else {
        return by_case(results, comparisons);
    };
    let all = saturations(comparisons);
    let named = |row: &Saturation<'_>| format!("{}, {}", row.name, row.wait);
    let fastest = || all.iter().filter_map(|row| row.kept_up).map(rate).reduce(f64::max);
    let limit = |row: &Saturation<'_>| row.saturated.first().and_then(|own| saturation(own));
    let answer = match all.first() {
        Some(first) if first.saturated.is_empty() => {
            let unsaturated: Vec<_> = all.iter().filter(|row| row.saturated.is_empty()).collect();
            let queues = match unsaturated[..] {
                [one] => named(one),
                [one, other] => {
                    format!("{} ({}) and {} ({})", one.name, one.wait, other.name, other.wait)
                }
                _ => format!("{} queues, {} among them,", unsaturated.len(), named(first)),
            };
            fastest().map(|rate| say::kept_up_with_all(queues, per_second(rate)))
        }
        Some(first) => limit(first).map(|rate| say::saturated_last(named(first), rate)),
        None => None,
    };
    let curve = |of: &Saturation<'_>| {
        let limit = limit(of).map_or("not saturated".into(), |rate| format!("saturated at {rate}"));
        Curve { name: format!("{}: {limit}", named(of)), points: of.points.clone() }
    };
    let curves = all.iter().take(CURVES).map(curve).collect();
    let titles = ["messages per second", "delivery, p50"];
    let curves = Curves::of(titles, [per_second, time], curves);
    (answer.into_iter().collect(), curves.or_else(|| Rows::first(section, "queue")))
}

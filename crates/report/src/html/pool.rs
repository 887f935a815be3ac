//! The page of a pool: waits and refusals by number of servers, with the recommended number marked.

use maud::{Markup, html};
use threadtoll_record::{PoolPrediction, PoolRow};

use super::chart::{Axis, Key, Line, Lines, Point, Shape, colour};
use super::headline::{sentence_list, simulated};
use super::table::plain;
use super::{TITLES, page_of};
use crate::label::{plural, title};
use crate::pool::{about, answer, is_simulated, servers};
use crate::units::{round_digits, round_time, share, time};

/// Factor by which an axis of times extends beyond its smallest and its largest figure.
const MARGIN: f64 = 1.3;

/// A page that shows waits against servers, and works offline like that of [`page()`](super::page).
pub fn pool_page(pool: &PoolPrediction) -> String {
    let rows: Vec<&PoolRow> = pool.rows.iter().collect();
    let body = html! {
        section class="run" { "\n"
            header { "\n"
                h1 { (TITLES[7]) } "\n"
                p class="about" {
                    @for fact in about(pool) { span { (title(&fact)) } " " }
                } "\n"
                @if is_simulated(pool) { (simulated()) }
                (sentence_list(answer(pool).iter()))
            } "\n"
            @if pool.queue != Some(0) {
                h2 { "Waits by number of servers" } "\n"
                (waits(pool))
                p { "Waits of the callers who are served, on a logarithmic axis without zeros." } "\n"
            }
            @if pool.queue.is_some() || pool.patience_ns.is_some() {
                h2 { "Callers who are turned away" } "\n"
                (turned_away(pool))
            }
            h2 { "All figures" } "\n"
            (plain(&servers(pool, &rows)))
        } "\n"
    };
    page_of(TITLES[7], body).into_string()
}

type Figure = fn(&PoolRow) -> Option<f64>;
type Interval = fn(&PoolRow) -> Option<[f64; 2]>;

struct Curve {
    name: &'static str,
    figure: Figure,
    interval: Interval,
}

/// Zero has no place on a logarithmic axis.
fn above_zero(ns: &f64) -> bool {
    *ns > 0.0
}

fn waits(pool: &PoolPrediction) -> Markup {
    let curves = [
        Curve {
            name: "p99",
            figure: |row| row.wait_p99_ns.filter(above_zero),
            interval: |row| row.wait_p99_ns_interval95.or(row.wait_p99_ns_interval99),
        },
        Curve {
            name: "mean",
            figure: |row| row.wait_mean_ns.filter(above_zero),
            interval: |row| row.wait_mean_ns_interval95.or(row.wait_mean_ns_interval99),
        },
        Curve {
            name: "p50",
            figure: |row| row.wait_p50_ns.filter(above_zero),
            interval: |row| row.wait_p50_ns_interval95.or(row.wait_p50_ns_interval99),
        },
    ];
    let figures = curves.iter().flat_map(|curve| pool.rows.iter().filter_map(curve.figure));
    let Some(y) = Axis::log(figures.chain([pool.target_ns]), MARGIN, round_time) else {
        return html! {};
    };
    drawn(pool, &curves, y.titled("wait"), Some((pool.target_ns, "target")), time)
}

fn turned_away(pool: &PoolPrediction) -> Markup {
    let curves = [
        Curve {
            name: "refused",
            figure: |row| row.refused_share,
            interval: |row| row.refused_share_interval95.or(row.refused_share_interval99),
        },
        Curve {
            name: "give up",
            figure: |row| row.gave_up_share,
            interval: |row| row.gave_up_share_interval95.or(row.gave_up_share_interval99),
        },
    ];
    let curves = match (pool.queue, pool.patience_ns) {
        (Some(_), None) => &curves[..1],
        (None, Some(_)) => &curves[1..],
        _ => &curves[..],
    };
    let figures = curves.iter().flat_map(|curve| pool.rows.iter().filter_map(curve.figure));
    let Some(y) = Axis::from_zero(figures, 1.1, share) else { return html! {} };
    drawn(pool, curves, y.titled("share of the callers"), None, share)
}

fn drawn(
    pool: &PoolPrediction,
    curves: &[Curve],
    y: Axis,
    level: Option<(f64, &str)>,
    text: fn(f64) -> String,
) -> Markup {
    let of_servers = pool.rows.iter().map(|row| f64::from(row.servers));
    let Some(x) = Axis::log(of_servers, 1.02, round_digits) else { return html! {} };
    let point = |row: &PoolRow, curve: &Curve| {
        let value = (curve.figure)(row);
        let servers = plural(row.servers.into(), "server");
        Point {
            x: f64::from(row.servers),
            y: value.unwrap_or(f64::NAN),
            interval: (curve.interval)(row),
            title: value
                .map_or_else(String::new, |it| format!("{servers}\n{} {}", curve.name, text(it))),
        }
    };
    let line = |(nth, curve): (usize, &Curve)| Line {
        class: colour(nth),
        title: curve.name.into(),
        points: pool.rows.iter().map(|row| point(row, curve)).collect(),
        band: true,
    };
    let mut lines: Vec<Line> = curves.iter().enumerate().map(line).collect();
    let mut keys: Vec<Key> = curves
        .iter()
        .enumerate()
        .map(|(nth, curve)| Key::new(curve.name, Shape::Line, colour(nth)))
        .collect();
    if let Some((at, name)) = level {
        let ends = [pool.rows.first(), pool.rows.last()].into_iter().flatten();
        let points = ends.map(|row| Point {
            x: f64::from(row.servers),
            y: at,
            interval: None,
            title: String::new(),
        });
        lines.insert(
            0,
            Line {
                class: "ideal dashes".into(),
                title: name.into(),
                points: points.collect(),
                band: false,
            },
        );
        keys.push(Key::new(&format!("{name}, {}", text(at)), Shape::Dashes, "ideal"));
    }
    let enough = pool.rows.iter().find(|row| pool.enough_servers == Some(row.servers));
    let now = enough.zip(curves.first()).and_then(|(row, curve)| {
        let mark = point(row, curve);
        let name = format!("{} enough", plural(row.servers.into(), "server"));
        mark.y.is_finite().then_some((mark, name))
    });
    let label = format!("{} by number of servers; the table below has the figures", y.title);
    let x = x.whole().titled("servers");
    Lines { label: &label, x, y, height: 300.0, keys: &keys, lines: &lines, now }.draw()
}

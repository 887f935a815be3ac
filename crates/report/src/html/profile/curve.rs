//! The predicted speed-up by number of threads. The current number of threads is marked.

use maud::{Markup, html};
use threadtoll_record::profile::Lock;

use crate::html::chart::{Axis, Key, Line, Lines, Point, Shape};
use crate::label::plural;
use crate::units::{digits, digits_within, round_digits};

pub(super) fn curve(lock: &Lock) -> Markup {
    let mut points: Vec<Point> = lock
        .predicted
        .iter()
        .map(|point| {
            let speedup = point.speedup.get();
            let interval = point.interval95.map(|it| [it.low().get(), it.high().get()]);
            let threads = plural(u64::from(point.threads), "thread");
            let title = format!("predicted, {threads}: {}", digits_within(speedup, interval));
            Point { x: f64::from(point.threads), y: speedup, interval, title }
        })
        .collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    if points.len() < 2 {
        return html! {};
    }
    let threads = f64::from(lock.threads);
    let now = lock.efficiency.map(|efficiency| efficiency.get() * threads).map(|speedup| {
        let text = format!("now: {} with {}", digits(speedup), lock.threads);
        let title =
            format!("now, {}: {}", plural(u64::from(lock.threads), "thread"), digits(speedup));
        (Point { x: threads, y: speedup, interval: None, title }, text)
    });
    let ends = points.iter().flat_map(|point| point.interval.unwrap_or([point.y; 2]));
    let speedups = ends.chain(now.iter().map(|(now, _)| now.y));
    let all_threads = points.iter().map(|point| point.x).chain([threads]);
    let (Some(x), Some(y)) = (
        Axis::from_zero(all_threads, 1.0, round_digits),
        Axis::from_zero(speedups, 1.08, round_digits),
    ) else {
        return html! {};
    };
    let ideal = x.high().min(y.high());
    let at = |end: f64| Point { x: end, y: end, interval: None, title: String::new() };
    let lines = [
        Line {
            class: "ideal dashes".into(),
            title: "threads that never wait".into(),
            points: vec![at(0.0), at(ideal)],
            band: false,
        },
        Line { class: "c0".into(), title: "predicted".into(), points, band: true },
    ];
    let keys = [
        Key::new("predicted, with its 95% interval", Shape::Line, "c0"),
        Key::new("threads that never wait", Shape::Dashes, "ideal"),
    ];
    html! {
        h4 { "Speed-up by number of threads" } "\n"
        div class="small" {
            (Lines {
                label: "Predicted speed-up by number of threads, with the current point marked",
                x: x.whole().titled("threads"),
                y,
                height: 220.0,
                keys: &keys,
                lines: &lines,
                now,
            }.draw())
        } "\n"
        p class="note" { "Relative to one thread that never waits." } "\n"
    }
}

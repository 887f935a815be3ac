//! Holders, locks and waiters as a graph: an arrow leads from each thread to its waiters.

use maud::{Markup, html};

use super::verdict_class;
use crate::html::chart::px;
use crate::profile::Seen;
use crate::profile::locks::{Threads, by_name, shortened};
use crate::units::percent;

const MAX_LOCKS: usize = 5;
const MAX_NODES: usize = 4;
const WIDTH: f64 = 1000.0;
const NODE: (f64, f64) = (230.0, 28.0);
const GAP: f64 = 10.0;
const ROW_GAP: f64 = 34.0;
const MAX_CHARS: usize = 26;
const ARROW: f64 = 12.0;

struct Row<'a> {
    seen: &'a Seen<'a>,
    holders: Vec<Threads>,
    waiters: Vec<Threads>,
    top: f64,
    height: f64,
}

impl Row<'_> {
    fn middle(&self) -> f64 {
        self.top + self.height / 2.0
    }

    fn node(&self, nth: usize, count: usize) -> f64 {
        let height = count as f64 * (NODE.1 + GAP) - GAP;
        self.middle() - height / 2.0 + nth as f64 * (NODE.1 + GAP)
    }
}

pub(super) fn graph(index: usize, costs: &[Seen<'_>]) -> Markup {
    let tip = format!("arrow-{index}");
    let arrow = format!("url(#{tip})");
    let rows = rows(costs);
    let Some(last) = rows.last() else { return html! {} };
    let height = last.top + last.height + 4.0;
    html! {
        h2 { "Holders and waiters" } "\n"
        p { "Arrows lead from the holders of a lock (left) to the threads that wait for it (right); their width is the share of the waiting. A dashed arrow leads from a lock to another lock whose holder waits for the first." } "\n"
        div class="scroll drawing" {
            svg class="graph" viewBox={ "0 0 " (WIDTH) " " (px(height)) } role="img" aria-label="Holders, locks and waiters; the lists below have the figures" {
                defs {
                    marker id=(tip) viewBox="0 0 8 8" refX="0" refY="4" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse" orient="auto" {
                        path class="tip" d="M0 0 L8 4 L0 8 z" {}
                    }
                }
                @for (nth, row) in rows.iter().enumerate() { (edges(row, &arrow)) (chains(&rows, nth, &arrow)) }
                @for row in &rows { (nodes(row)) }
            }
        } "\n"
    }
}

fn rows<'a>(costs: &'a [Seen<'a>]) -> Vec<Row<'a>> {
    let mut top = 4.0;
    let mut rows = Vec::new();
    let waited = |seen: &&Seen<'_>| !seen.lock.waiters.is_empty() || !seen.lock.holders.is_empty();
    for seen in costs.iter().filter(waited).take(MAX_LOCKS) {
        let mut holders = by_name(&seen.lock.holders, MAX_NODES);
        let unseen = seen.lock.holder_not_seen_share.map_or(0.0, |share| share.get());
        if unseen >= 0.005 {
            holders.push(Threads { name: "not seen".into(), share: unseen, inferred: false });
        }
        let waiters = by_name(&seen.lock.waiters, MAX_NODES);
        let nodes = holders.len().max(waiters.len()).max(2) as f64;
        let height = nodes * (NODE.1 + GAP) - GAP;
        rows.push(Row { seen, holders, waiters, top, height });
        top += height + ROW_GAP;
    }
    rows
}

const LOCK: (f64, f64) = ((WIDTH - NODE.0) / 2.0, 48.0);
const WAITERS: f64 = WIDTH - NODE.0 - 1.0;

fn edges(row: &Row<'_>, arrow: &str) -> Markup {
    let middle = row.middle();
    let between = |from: (f64, f64), to: (f64, f64)| {
        let bend = (from.0 + to.0) / 2.0;
        format!(
            "M{} {} C{} {} {} {} {} {}",
            px(from.0),
            px(from.1),
            px(bend),
            px(from.1),
            px(bend),
            px(to.1),
            px(to.0),
            px(to.1)
        )
    };
    let center = |nth, count| row.node(nth, count) + NODE.1 / 2.0;
    let width = |threads: &Threads| px(1.0 + 7.0 * threads.share);
    html! {
        @for (nth, holder) in row.holders.iter().enumerate() {
            path class="edge" stroke-width=(width(holder)) d=(between((NODE.0 + 1.0, center(nth, row.holders.len())), (LOCK.0, middle))) {}
        }
        @for (nth, waiter) in row.waiters.iter().enumerate() {
            path class="edge" stroke-width=(width(waiter)) marker-end=(arrow) d=(between((LOCK.0 + NODE.0, middle), (WAITERS - ARROW, center(nth, row.waiters.len())))) {}
        }
    }
}

/// Draws arrows from the locks for which this lock's holder waits.
fn chains(rows: &[Row<'_>], nth: usize, arrow: &str) -> Markup {
    let row = &rows[nth];
    let others: Vec<(&Row<'_>, f64)> = row
        .seen
        .lock
        .waits_for
        .iter()
        .filter_map(|link| {
            let same = |other: &&Row<'_>| {
                other.seen.lock.id == link.lock
                    && std::ptr::eq(other.seen.process, row.seen.process)
                    && !std::ptr::eq(other.seen.lock, row.seen.lock)
            };
            Some((rows.iter().find(same)?, link.share.get()))
        })
        .collect();
    html! {
        @for (other, share) in others {
            @let down = other.top < row.top;
            @let end = |row: &Row<'_>, down: bool| row.middle() + if down { LOCK.1 } else { -LOCK.1 } / 2.0;
            @let x = LOCK.0 + NODE.0 / 2.0;
            @let (from, to) = (end(other, down), end(row, !down) - if down { ARROW } else { -ARROW });
            path class="chain" marker-end=(arrow) d={ "M" (px(x)) " " (px(from)) " L" (px(x)) " " (px(to)) } {}
            text x=(px(x + 10.0)) y=(px((from + to) / 2.0 + 4.0)) { "its holder waits, " (percent(share)) }
        }
    }
}

fn nodes(row: &Row<'_>) -> Markup {
    let seen = row.seen;
    let held = seen.lock.held_share.map_or_else(String::new, |held| percent(held.get()));
    let queue =
        seen.lock.queue_mean.map_or_else(String::new, |queue| format!("{:.2}", queue.get()));
    let thread = |x: f64, nth: usize, count: usize, threads: &Threads| {
        let y = row.node(nth, count);
        html! {
            g class="thread" {
                rect x=(px(x)) y=(px(y)) width=(px(NODE.0)) height=(px(NODE.1)) rx="7" {}
                text x=(px(x + 10.0)) y=(px(y + 19.0)) { (shortened(&threads.name, MAX_CHARS)) }
                text class="share" x=(px(x + NODE.0 - 10.0)) y=(px(y + 19.0)) { (percent(threads.share)) }
            }
        }
    };
    html! {
        @for (nth, holder) in row.holders.iter().enumerate() { (thread(1.0, nth, row.holders.len(), holder)) }
        @for (nth, waiter) in row.waiters.iter().enumerate() { (thread(WAITERS, nth, row.waiters.len(), waiter)) }
        g class={ "node " (verdict_class(seen.lock)) } {
            rect x=(px(LOCK.0)) y=(px(row.middle() - LOCK.1 / 2.0)) width=(px(NODE.0)) height=(px(LOCK.1)) rx="9" {}
            text x=(px(WIDTH / 2.0)) y=(px(row.middle() - 4.0)) { (shortened(&seen.name(), MAX_CHARS)) }
            text class="figures" x=(px(WIDTH / 2.0)) y=(px(row.middle() + 15.0)) {
                @if !held.is_empty() { "held " (held) }
                @if !held.is_empty() && !queue.is_empty() { " · " }
                @if !queue.is_empty() { "queue " (queue) }
            }
        }
    }
}

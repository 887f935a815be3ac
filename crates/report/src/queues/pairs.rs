//! Our queues, paired block by block with their rivals and with their own parts.

use threadtoll_record::{
    Against, Cell as RecordCell, Class, Origin, Placement, QueueSubject, Wait, WaitFamily,
};

use super::{Comparison, Row, decided};
use crate::clean::clean;
use crate::label::title;
use crate::table::{self, Cell, Label, Section};
use crate::units::{count, digits_range, ratio};

struct Pair<'a> {
    queue: String,
    case: String,
    other: String,
    against: &'a Against,
}

pub(super) fn section(comparisons: &[Comparison<'_>]) -> Option<Section> {
    type Column<'a> = table::Column<'static, Pair<'a>>;
    let peers = comparisons.iter().flat_map(against_peers);
    let pairs: Vec<Pair<'_>> = peers.chain(comparisons.iter().flat_map(against_own)).collect();
    // The verdict is in the first column, because a phone shows only that column without scrolling.
    let columns: Vec<Column<'_>> = vec![
        Column::new("", "ratio", 0, |pair| Cell {
            verdict: decided(pair.against),
            ..Cell::figure(Some(pair.against.ratio), ratio)
        })
        .main(),
        Column::new("", "95%", 1, |pair| {
            Cell::text(digits_range(pair.against.interval95.map(f64::from)))
        }),
        Column::new("", "case", 2, |pair| Cell::text(&pair.case)).faint(),
        Column::new("", "compared with", 0, |pair| Cell::text(&pair.other)),
        Column::new("", "figure", 4, |pair| {
            Cell::text(if pair.against.of == "rate_per_s" { "rate" } else { "time" })
        })
        .faint(),
        Column::new("", "pairs", 5, |pair| {
            Cell::new(Some(pair.against.blocks.into()), count(pair.against.blocks.into()))
        })
        .faint(),
    ];
    (!pairs.is_empty()).then(|| {
        Section::new(
            "Our queues compared, in pairs of blocks, with their best peers and with their parts",
            "queue",
            columns,
            &pairs,
            |pair| Label::new(&pair.queue),
        )
    })
}

pub(super) fn case(comparison: &Comparison<'_>, wait: Option<Wait>) -> String {
    let criteria = &comparison.criteria;
    let mut parts = vec![title(comparison.view().scenario).to_lowercase()];
    parts.push(
        match (criteria.family, wait) {
            (WaitFamily::Spinning, _) => "spinning",
            (WaitFamily::Blocking, Some(Wait::Adaptive)) => "adaptive",
            (WaitFamily::Blocking, _) => "parking",
        }
        .to_string(),
    );
    parts.extend(super::payload(criteria));
    parts.extend(super::load(criteria.load));
    if criteria.batched {
        parts.push("batches".into());
    }
    if criteria.senders != 1 {
        parts.push(format!("{} senders", criteria.senders));
    }
    if criteria.placement != Placement::Pinned {
        parts.push(criteria.placement.to_string());
    }
    parts.join(", ")
}

fn name(row: &Row<'_>) -> String {
    let own = name_without_wait(row);
    match row.queue().is_some_and(|queue| queue.wait == Wait::PollBackoff) {
        true => format!("{own} with poll-backoff"),
        false => own,
    }
}

/// The queue's name, with a description of neighbour threads if the cell has any.
pub(super) fn name_without_wait(row: &Row<'_>) -> String {
    let mut name = clean(row.record.cell.name());
    if let Some(neighbour) = row.record.cell.neighbour {
        name.push_str(&format!(", beside {}", neighbour.threads()));
    }
    name
}

fn pair<'a>(
    comparison: &Comparison<'_>,
    row: &Row<'_>,
    other: String,
    against: &'a Against,
) -> Pair<'a> {
    let wait = row.queue().map(|queue| queue.wait);
    Pair { queue: name(row), case: case(comparison, wait), other, against }
}

/// The best row of each of our queues, compared with its best rival.
fn against_peers<'a>(comparison: &'a Comparison<'_>) -> Vec<Pair<'a>> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.origin() == Some(Origin::Ours)) {
        let Some((peer, against)) = comparison.rival(row) else { continue };
        let new = pair(comparison, row, name(peer), against);
        if pairs.iter().all(|pair| pair.queue != new.queue) {
            pairs.push(new);
        }
    }
    pairs
}

/// Our queues compared with their parts: a bare copy, a mechanism that sleeps, a spinning wait.
fn against_own<'a>(comparison: &'a Comparison<'_>) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for row in &comparison.rows {
        let Some(queue) = row.queue().filter(|queue| queue.origin == Origin::Ours) else {
            continue;
        };
        let bare_copy = comparison.bare_copy().filter(|_| queue.wait == Wait::Spin);
        if let Some(against) = bare_copy.and_then(|copy| row.against(&copy.record.cell)) {
            pairs.push(pair(comparison, row, "a bare copy".into(), against));
        }
        let hardly_sleeps =
            queue.wait == Wait::Adaptive || queue.wait == Wait::Park && comparison.streams();
        if let Some(against) = find(row, |cell| hardly_sleeps && spins(cell, queue)) {
            pairs.push(pair(comparison, row, "itself, spinning".into(), against));
        }
        let sleeps = |cell: &RecordCell| {
            cell.queue().is_none() && cell.subject.class() == Some(Class::Sleep)
        };
        let parks = queue.wait == Wait::Park && !comparison.streams();
        if let Some(against) = find(row, |cell| parks && sleeps(cell)) {
            let mechanism = format!("a bare {}", clean(against.cell.name()));
            pairs.push(pair(comparison, row, mechanism, against));
        }
    }
    pairs
}

fn find<'r>(row: &'r Row<'_>, other: impl Fn(&RecordCell) -> bool) -> Option<&'r Against> {
    row.record.against.iter().find(|against| other(&against.cell))
}

fn spins(cell: &RecordCell, queue: &QueueSubject) -> bool {
    cell.queue().is_some_and(|other| {
        other.load == queue.load
            && (&other.queue, other.origin, other.wait) == (&queue.queue, queue.origin, Wait::Spin)
    })
}

//! Findings on queues.

use threadtoll_record::{
    Against, Cell, Class, Origin, Placement, QueueSubject, Record, Verdict, Wait, WaitFamily,
    compare,
};

use super::{Comparison, Row, comparisons};
use crate::clean::clean;
use crate::units::{digits, maybe_time, ratio};

pub(crate) fn findings(records: &[Record]) -> Vec<String> {
    let comparisons = comparisons(records);
    let peers = comparisons.iter().flat_map(|comparison| match against_peers(comparison) {
        none if none.is_empty() => best_of_peers(comparison).into_iter().collect(),
        findings => findings,
    });
    peers.chain(comparisons.iter().flat_map(against_own)).collect()
}

/// The conditions of a comparison, if unusual.
fn conditions(comparison: &Comparison<'_>, wait: Option<Wait>) -> String {
    let criteria = &comparison.criteria;
    let mut parts = vec![
        match (criteria.family, wait) {
            (WaitFamily::Spinning, _) => "spinning",
            (WaitFamily::Blocking, Some(Wait::Adaptive)) => "adapting its wait",
            (WaitFamily::Blocking, _) => "sleeping when empty",
        }
        .to_string(),
    ];
    if criteria.batched {
        parts.push("in batches".into());
    }
    if criteria.senders != 1 {
        parts.push(format!("with {} senders", criteria.senders));
    }
    if criteria.placement != Placement::Pinned {
        parts.push(criteria.placement.to_string());
    }
    parts.join(", ")
}

fn name(row: &Row<'_>) -> String {
    let mut name = clean(row.record.cell.name());
    if row.queue().is_some_and(|queue| queue.wait == Wait::PollBackoff) {
        name.push_str(" with poll-backoff");
    }
    name
}

/// Each of our queues, in its best row, compared with its best rival.
fn against_peers(comparison: &Comparison<'_>) -> Vec<String> {
    let mut findings: Vec<String> = Vec::new();
    let mut queues = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.origin() == Some(Origin::Ours)) {
        let Some((peer, against)) = comparison.rival(row) else { continue };
        let (queue, peer) = (name(row), name(peer));
        if queues.contains(&queue) {
            continue;
        }
        let conditions = conditions(comparison, row.queue().map(|queue| queue.wait));
        let times = times(against);
        let claim = if comparison.streams() {
            format!("streams {times} the messages of the best peer ({peer})")
        } else {
            format!("takes {times} the time of the best peer ({peer}) per message")
        };
        findings.push(with_verdict(format!("{queue}, {conditions}, {claim}"), against));
        queues.push(queue);
    }
    findings
}

/// The best of several peers, if none of our queues was in their groups.
fn best_of_peers(comparison: &Comparison<'_>) -> Option<String> {
    let best = comparison.best_peer()?;
    if comparison.rows.iter().filter(|row| row.is_peer()).count() < 2 {
        return None;
    }
    let ours = comparison.best(|row| row.origin() == Some(Origin::Ours));
    let conditions = conditions(comparison, ours.and_then(Row::queue).map(|queue| queue.wait));
    Some(match best.record.rate_per_s {
        Some(rate) => format!(
            "Fastest peer, {conditions}: {}, {} million messages per second.",
            name(best),
            digits(rate.get() / 1e6)
        ),
        None => format!(
            "Fastest peer, {conditions}: {}, {} one way.",
            name(best),
            maybe_time(best.record.one_way_p50())
        ),
    })
}

/// Our queues compared with their parts: a bare copy, a mechanism that sleeps, a spinning wait.
fn against_own(comparison: &Comparison<'_>) -> Vec<String> {
    let against = if comparison.streams() { stream_against_own } else { ask_reply_against_own };
    let mut findings = Vec::new();
    for row in &comparison.rows {
        if let Some(queue) = row.queue().filter(|queue| queue.origin == Origin::Ours) {
            findings.extend(against(comparison, row, queue));
        }
    }
    findings
}

fn stream_against_own(
    comparison: &Comparison<'_>,
    row: &Row<'_>,
    queue: &QueueSubject,
) -> Vec<String> {
    let mut findings = Vec::new();
    let bare_copy = comparison.bare_copy().filter(|_| queue.wait == Wait::Spin);
    if let Some(against) = bare_copy.and_then(|copy| row.against(&copy.record.cell)) {
        let claim =
            format!("{}, in batches, moves {} the data of a bare copy", name(row), times(against));
        findings.push(with_verdict(claim, against));
    }
    let waits = match queue.wait {
        Wait::Adaptive => "adapting its wait",
        Wait::Park => "parking",
        _ => return findings,
    };
    if let Some(against) = find(row, |cell| spins(cell, queue)) {
        let batches = if queue.batch > 1 { ", in batches" } else { "" };
        let claim = format!(
            "{}{batches}, {waits} when empty, moves {} the messages that it moves spinning",
            name(row),
            times(against)
        );
        findings.push(with_verdict(claim, against));
    }
    findings
}

fn ask_reply_against_own(_: &Comparison<'_>, row: &Row<'_>, queue: &QueueSubject) -> Vec<String> {
    let finding = match queue.wait {
        Wait::Adaptive => find(row, |cell| spins(cell, queue)).map(|against| {
            let times = times(against);
            (format!("adapting its wait, takes {times} its time spinning"), against)
        }),
        Wait::Park => {
            let sleeps =
                |cell: &Cell| cell.queue().is_none() && cell.subject.class() == Some(Class::Sleep);
            find(row, sleeps).map(|against| {
                let (times, mechanism) = (times(against), clean(against.cell.name()));
                (format!("parked, is woken in {times} the time of a bare {mechanism}"), against)
            })
        }
        _ => None,
    };
    let finding =
        finding.map(|(claim, against)| with_verdict(format!("{}, {claim}", name(row)), against));
    finding.into_iter().collect()
}

fn find<'r>(row: &'r Row<'_>, other: impl Fn(&Cell) -> bool) -> Option<&'r Against> {
    row.record.against.iter().find(|against| other(&against.cell))
}

fn spins(cell: &Cell, queue: &QueueSubject) -> bool {
    cell.queue().is_some_and(|other| {
        (&other.queue, other.origin, other.wait) == (&queue.queue, queue.origin, Wait::Spin)
    })
}

fn times(against: &Against) -> String {
    let [low, high] = against.interval95;
    format!("{} ({}–{})", ratio(against.ratio.get()), digits(low.get()), digits(high.get()))
}

fn with_verdict(claim: String, against: &Against) -> String {
    match against.verdict {
        Verdict::Open if (against.blocks as usize) < compare::PAIRS => format!(
            "{claim}; inconclusive: {} block pairs, {} needed.",
            against.blocks,
            compare::PAIRS
        ),
        Verdict::Open => format!("{claim}: undecided."),
        Verdict::Same => format!("{claim}: the same, within 5%."),
        Verdict::NoWorse => format!("{claim}: no worse, within 5%."),
        Verdict::NoBetter => format!("{claim}: no better, within 5%."),
        Verdict::Better | Verdict::Worse => format!("{claim}."),
    }
}

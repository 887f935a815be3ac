use threadtoll_record::{Record, Relation};
use threadtoll_stats::median;

use super::pairs;
use crate::figure::Pairs;
use crate::label::{cpus, relation};
use crate::screen::{Card, Picture, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::units::{count, digits, range, shown, time};

/// Maximum number of groups of CPUs that are named.
const MAX_GROUPS: usize = 4;

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let machine = &run.results.machine;
    // If no pair was measured in the main regime, the figures of other regimes are shown.
    let first = |records: &[Record]| pairs(machine, records).into_iter().next();
    let pairs = first(run.of_one).or_else(|| first(run.records))?;
    let kinds = kinds(&pairs);
    let card = |(kind, middle, _): &Kind| Card {
        figure: time(*middle),
        caption: format!("between {kind}"),
        detail: "one way, median of the pairs".into(),
    };
    Some(Screen {
        title: format!("A hand-off between CPUs, by {}", pairs.label),
        answer: answer(&kinds).into_iter().chain(keep_near(&pairs)).collect(),
        cards: kinds.iter().map(card).collect(),
        picture: Some(Picture::Pairs(pairs)),
        ..Screen::default()
    })
}

/// A relation with its median and all its values.
type Kind = (&'static str, f64, Vec<f64>);

fn kinds(pairs: &Pairs) -> Vec<Kind> {
    let of = |(kind, values): (Relation, Vec<f64>)| {
        Some((relation(kind), median(values.iter().copied())?, values))
    };
    let mut kinds: Vec<Kind> = pairs.by_relation().into_iter().filter_map(of).collect();
    kinds.sort_by(|a, b| a.1.total_cmp(&b.1));
    kinds
}

/// `None` unless every pair that shares a cache is faster than every pair that does not.
fn keep_near(pairs: &Pairs) -> Option<Sentence> {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for (relation, values) in pairs.by_relation() {
        match relation {
            Relation::Smt | Relation::SameLlc => near.extend(values),
            Relation::SameNode | Relation::OtherNode => far.extend(values),
            Relation::SameThread | Relation::SameCpu | Relation::Free => {}
        }
    }
    let slowest = near.into_iter().reduce(f64::max)?;
    let fastest = far.into_iter().reduce(f64::min)?;
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for chunk in pairs.cpus.chunk_by(|a, b| pairs.cache(*a) == pairs.cache(*b)) {
        groups.extend((chunk.len() > 1 && pairs.cache(chunk[0]).is_some()).then(|| chunk.to_vec()));
    }
    let named = groups.iter().take(MAX_GROUPS).map(|group| cpus(group));
    let more = groups.len().saturating_sub(MAX_GROUPS);
    let more = (more > 0).then(|| format!("{} more", count(more as u64)));
    let named: Vec<String> = named.chain(more).collect();
    (slowest < fastest && !named.is_empty()).then(|| say::keep_near(named.join("; ")))
}

fn answer(kinds: &[Kind]) -> Vec<Sentence> {
    match kinds {
        [] => Vec::new(),
        [(kind, middle, values)] => {
            let within = range(values[0], values[values.len() - 1]);
            let pairs = count(values.len() as u64);
            match values.len() {
                1 => vec![say::one_pair(kind, time(*middle))],
                _ => vec![say::pairs_of_one_kind(kind, time(*middle), within, pairs)],
            }
        }
        [(near, low, _), between @ .., (far, high, _)] => {
            let times = digits(shown(*high) / shown(*low));
            let mut answer = vec![say::near_and_far(near, time(*low), far, time(*high), times)];
            answer.extend(
                between.iter().map(|(kind, middle, _)| say::pairs_between(kind, time(*middle))),
            );
            answer
        }
    }
}

use std::collections::BTreeMap;

use threadtoll_record::{CpuPlace, Machine, Record, Relation};
use threadtoll_stats::median;

use super::pairs;
use crate::figure::Pairs;
use crate::label::{cpus, plural, relation};
use crate::screen::{Card, Picture, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::units::{count, digits, range, shown, time};

/// Maximum number of groups of CPUs that are named.
const MAX_GROUPS: usize = 4;

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let machine = &run.results.machine;
    // If no pair was measured in the main regime, the figures of other regimes are shown.
    let first = |records: &[Record]| pairs(machine, records).into_iter().next();
    let of_one = first(run.of_one);
    let advice = of_one.as_ref().and_then(|pairs| keep_near(machine, pairs));
    let pairs = of_one.or_else(|| first(run.records))?;
    let kinds = kinds(&pairs);
    let card = |(kind, middle, _): &Kind| Card {
        figure: time(*middle),
        caption: format!("between {kind}"),
        detail: "one way, median of the pairs".into(),
    };
    Some(Screen {
        title: format!("Hand-off times between CPUs, by {}", pairs.label),
        answer: answer(&kinds).into_iter().chain(advice).collect(),
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

/// `None` unless every pair that shares a cache is faster, by the intervals, than every pair that
/// does not.
fn keep_near(machine: &Machine, pairs: &Pairs) -> Option<Sentence> {
    let (mut slowest, mut fastest) = (None, None);
    for (pair, p50) in &pairs.values {
        let [low, high] = pairs.intervals.get(pair).copied().unwrap_or([*p50; 2]);
        match pairs.relations.get(pair)? {
            Relation::Smt | Relation::SameLlc => {
                slowest = Some(slowest.map_or(high, |slowest: f64| slowest.max(high)));
            }
            Relation::SameNode | Relation::OtherNode => {
                fastest = Some(fastest.map_or(low, |fastest: f64| fastest.min(low)));
            }
            Relation::SameThread | Relation::SameCpu | Relation::Free => {}
        }
    }
    if slowest? >= fastest? {
        return None;
    }
    let mut caches: BTreeMap<u32, Vec<&CpuPlace>> = BTreeMap::new();
    for place in &machine.topology {
        caches.entry(place.llc?).or_default().push(place);
    }
    // A cache of a single core is none to share.
    let shared =
        caches.into_values().filter(|group| group.iter().any(|of| of.core != group[0].core));
    let mut groups: Vec<String> = shared
        .map(|group| {
            let mut numbers: Vec<u32> = group.iter().map(|place| place.cpu).collect();
            numbers.sort_unstable();
            cpus(&numbers)
        })
        .collect();
    let more = groups.len().saturating_sub(MAX_GROUPS);
    groups.truncate(MAX_GROUPS);
    groups.extend((more > 0).then(|| format!("and {}", plural(more as u64, "more group"))));
    (!groups.is_empty()).then(|| say::keep_near(groups.join("; ")))
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

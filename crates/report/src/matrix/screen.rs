use threadtoll_record::{Record, Relation};
use threadtoll_stats::median;

use super::pairs;
use crate::figure::Pairs;
use crate::label::relation;
use crate::screen::{Card, Picture, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::units::{count, digits, range, shown, time};

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
        title: format!("What a hand-off costs between CPUs, by {}", pairs.label),
        answer: answer(&kinds),
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

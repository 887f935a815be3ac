//! The screen of pairs of CPUs: near and far ones.

use threadtoll_record::Record;
use threadtoll_stats::median;

use super::pairs;
use crate::figure::Pairs;
use crate::label::relation;
use crate::screen::{Picture, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::units::{count, digits, range, shown, time};

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let machine = &run.results.machine;
    // A pair is shown with the figure of the minute in which it was measured.
    let first = |records: &[Record]| pairs(machine, records).into_iter().next();
    let pairs = first(run.of_one).or_else(|| first(run.records))?;
    Some(Screen {
        title: format!("What a hand-off costs between CPUs, by {}", pairs.label),
        answer: answer(&pairs),
        picture: Some(Picture::Pairs(pairs)),
        ..Screen::default()
    })
}

fn answer(pairs: &Pairs) -> Vec<Sentence> {
    let by_relation = pairs.by_relation();
    let of = |(kind, values): (&threadtoll_record::Relation, &Vec<f64>)| {
        Some((relation(*kind), median(values.iter().copied())?, values.clone()))
    };
    let mut kinds: Vec<_> = by_relation.iter().filter_map(of).collect();
    kinds.sort_by(|a, b| a.1.total_cmp(&b.1));
    match kinds.as_slice() {
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

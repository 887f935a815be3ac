//! Differences between the figures of a group of cells that was measured twice.

use std::borrow::Cow;

use threadtoll_record::comparison::Figure;
use threadtoll_record::{Experiment, Record, RecordKind, Repeat, file::Results, unix_ns};

use crate::comparison::{figure_text, name};
use crate::label::{cpus, plural};
use crate::regimes::Regimes;
use crate::sentences::{self as say, Sentence};
use crate::units::{long_time, ratio, share};

struct Pair {
    row: String,
    values: [f64; 2],
    texts: [String; 2],
}

impl Pair {
    fn new(row: String, values: [f64; 2], text: impl Fn(f64) -> String) -> Option<Self> {
        let usable = values.iter().all(|value| value.is_finite() && *value > 0.0);
        usable.then(|| Pair { row, values, texts: values.map(text) })
    }

    fn apart(&self) -> f64 {
        let [first, again] = self.values;
        (first / again).max(again / first)
    }
}

pub(super) fn finding(results: &Results, regimes: &Regimes) -> Option<Sentence> {
    let [first, again] = results.repetition()?;
    let later = long_time(later_ns(results.plan.repeat?, first, again));
    let mut both = [first, again].map(|records| regimes.records(records));
    let at_another_speed = both.iter().any(|records| records.is_empty());
    if at_another_speed {
        both = [first, again].map(Cow::Borrowed);
    }
    let [first, again] = &both;
    let rows = || {
        first
            .iter()
            .filter_map(|first| Some((first, again.iter().find(|again| again.cell == first.cell)?)))
    };
    let figures: Vec<Pair> = rows().filter_map(|(first, again)| figures(first, again)).collect();
    let rows_compared = plural(figures.len() as u64, "row");
    let most = furthest(figures)?;
    let ratios = rows().flat_map(|(first, again)| ratios(first, again)).collect();
    let ratios = furthest(ratios).map(|most| {
        let off = share(most.apart() - 1.0);
        let [value, other] = most.texts;
        say::ratios_again(off, most.row, value, other)
    });
    let off = share(most.apart() - 1.0);
    let [value, other] = most.texts;
    let when = if at_another_speed { ", when the machine ran at another speed" } else { "" };
    let told = say::measured_again(later, when, rows_compared, off, most.row, value, other);
    Some(told.and(ratios))
}

fn furthest(pairs: Vec<Pair>) -> Option<Pair> {
    pairs.into_iter().max_by(|a, b| a.apart().total_cmp(&b.apart()))
}

fn later_ns(repeat: Repeat, first: &[Record], again: &[Record]) -> f64 {
    let end = |records: &[Record]| records.iter().filter_map(|record| unix_ns(&record.at)).max();
    let between_ns =
        end(again).zip(end(first)).map_or(0.0, |(again, first)| (again - first) as f64);
    // The system clock may have been set back, but at least the planned time has passed.
    between_ns.max(repeat.after_ns as f64)
}

fn row(record: &Record) -> String {
    match record.experiment {
        Experiment::Matrix => format!("{}, {}", name(&record.cell), cpus(&record.cell.cpus)),
        _ => name(&record.cell),
    }
}

fn figure(record: &Record) -> Option<(Figure, f64)> {
    Some(match record.kind {
        RecordKind::RoundTrip => (Figure::OneWayMedian, record.one_way_p50()?),
        RecordKind::Stream => (Figure::Rate, record.rate_per_s?.get()),
        RecordKind::Delivery => match record.figures.open_loop().and_then(|own| own.burst) {
            Some(burst) => (Figure::BurstTime, burst.last_ns?.get()),
            None => (Figure::DeliveryMedian, record.quantiles.p50?.get()),
        },
        RecordKind::Calls => (Figure::ReceiveTime, record.figures.depth()?.calls.receive_ns?.get()),
        RecordKind::SendCall => (Figure::SendCallMedian, record.quantiles.p50?.get()),
        RecordKind::Wait => (Figure::Speedup, record.figures.contention()?.speedup?.get()),
    })
}

fn figures(first: &Record, again: &Record) -> Option<Pair> {
    let ((kind, value), (_, other)) = (figure(first)?, figure(again)?);
    Pair::new(row(first), [value, other], |value| figure_text(kind, value))
}

fn ratios(first: &Record, again: &Record) -> impl Iterator<Item = Pair> {
    first.against.iter().filter_map(|against| {
        let mut others = again.against.iter();
        let other = others.find(|other| other.cell == against.cell && other.of == against.of)?;
        let row = format!("{} to {}", row(first), name(&against.cell));
        Pair::new(row, [against.ratio.get(), other.ratio.get()], ratio)
    })
}

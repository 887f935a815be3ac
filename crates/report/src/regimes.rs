//! Figures of several regimes side by side: `63.0 | 275 ns (75 | 21%)`.

use std::slice;

use threadtoll_record::{Against, Contention, OneWay, PerSecond, Record, Regime};

use crate::table::Cell;
use crate::units::{UNKNOWN, share};

/// The figures of a record in one regime.
#[derive(Clone, Copy)]
pub(crate) struct Figures<'a> {
    pub(crate) one_way: Option<&'a OneWay>,
    pub(crate) rate_per_s: Option<PerSecond>,
    pub(crate) rate_interval95: Option<[PerSecond; 2]>,
    pub(crate) contention: Option<&'a Contention>,
    pub(crate) against: &'a [Against],
}

impl<'a> Figures<'a> {
    fn whole(record: &'a Record) -> Self {
        Figures {
            one_way: record.one_way.as_ref(),
            rate_per_s: record.rate_per_s,
            rate_interval95: record.interval95.rate_per_s,
            contention: record.contention.as_ref(),
            against: &record.against,
        }
    }

    fn of(regime: &'a Regime) -> Self {
        Figures {
            one_way: regime.one_way.as_ref(),
            rate_per_s: regime.rate_per_s,
            rate_interval95: regime.interval95.rate_per_s,
            contention: regime.contention.as_ref(),
            against: &regime.against,
        }
    }

    pub(crate) fn one_way_p50(&self) -> Option<f64> {
        self.one_way?.p50.map(f64::from)
    }

    pub(crate) fn one_way_p50_interval95(&self) -> Option<[f64; 2]> {
        Some(self.one_way?.p50_interval95?.map(f64::from))
    }
}

/// Regimes of the record with the most, and of several such the first. `None` if no record has any.
pub(crate) fn of_run(records: &[Record]) -> Option<&[Regime]> {
    let most = records.iter().rev().max_by_key(|record| record.regimes.len())?;
    Some(most.regimes.as_slice()).filter(|regimes| !regimes.is_empty())
}

/// A figure of each regime, with the regimes' shares of the time; sorted by the main one.
pub(crate) fn figure(
    record: &Record,
    figure: impl Fn(&Figures<'_>) -> Option<f64>,
    format: impl Fn(f64) -> String,
) -> Cell {
    let text = |figures: &Figures<'_>| figure(figures).map(&format);
    let mut cell = each(record, text);
    cell.value = figure(&Figures::whole(record));
    if !record.regimes.is_empty() {
        let shares: Vec<String> =
            record.regimes.iter().map(|regime| share(regime.share.get())).collect();
        cell.text = format!("{} ({})", cell.text, joined(&shares, "%"));
    }
    cell
}

/// A text for each regime.
pub(crate) fn each(record: &Record, text: impl Fn(&Figures<'_>) -> Option<String>) -> Cell {
    let figures: Vec<Figures<'_>> = match record.regimes.as_slice() {
        [] => vec![Figures::whole(record)],
        regimes => regimes.iter().map(Figures::of).collect(),
    };
    let texts: Vec<String> =
        figures.iter().map(|figures| text(figures).unwrap_or_else(|| UNKNOWN.into())).collect();
    let unit = texts.first().and_then(|first| Some(&first[first.rfind(' ')?..])).unwrap_or("");
    Cell::text(joined(&texts, unit))
}

/// Texts with a bar between them, and the unit only at the end if it is that of all.
fn joined(texts: &[String], unit: &str) -> String {
    let [first @ .., last] = texts else { return String::new() };
    let alike = !unit.is_empty() && texts.iter().all(|text| text.ends_with(unit));
    let bare = |text: &'_ String| match text.strip_suffix(unit) {
        Some(bare) if alike => bare.to_string(),
        _ => text.clone(),
    };
    first
        .iter()
        .map(bare)
        .chain(slice::from_ref(last).iter().cloned())
        .collect::<Vec<_>>()
        .join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_all_stands_at_the_end() {
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect::<Vec<String>>();
        assert_eq!(joined(&texts(&["63.0 ns", "275 ns"]), " ns"), "63.0 | 275 ns");
        assert_eq!(joined(&texts(&["990 ns", "1.20 µs"]), " ns"), "990 ns | 1.20 µs");
        assert_eq!(joined(&texts(&["63.0 ns"]), " ns"), "63.0 ns");
        assert_eq!(joined(&texts(&["75%", "21%"]), "%"), "75 | 21%");
        assert_eq!(joined(&texts(&["1.20×", "–"]), ""), "1.20× | –");
    }
}

//! The screen of overloaded locks: who is in time under each rule, and how long recovery takes.

use std::collections::BTreeSet;

use threadtoll_stats::mean;

use super::{Rates, Row, rates, short_names};
use crate::clean::clean;
use crate::label::{list, plural};
use crate::screen::{Picture, Rows, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::table::{Cell, Column, Label, Section};
use crate::units::{round_time, share, time};

/// Maximum number of rules with columns of their own.
const MAX_RULES: usize = 3;

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let all = rates(run.all);
    let first = all.first()?;
    let highest = first.by_rate().pop()?;
    let mut answer = vec![in_time(first, &highest)];
    answer.extend(recovery(&highest));
    let mut remarks: Vec<Sentence> = predicted(&all).into_iter().collect();
    remarks.extend(bounds(&all));
    Some(Screen {
        title: "What overload does to a lock".into(),
        answer,
        picture: by_rule(&all),
        remarks,
        ..Screen::default()
    })
}

/// Such as `with a bound of 8`.
fn with_rule(row: &Row<'_>) -> String {
    match row.load.bound {
        Some(bound) => format!("with a bound of {bound}"),
        None if row.load.gives_up => {
            format!("if they give up after {}", round_time(row.load.deadline_ns as f64))
        }
        None => "without a bound".into(),
    }
}

fn in_time(rates: &Rates<'_>, rows: &[Row<'_>]) -> Sentence {
    let deadline = round_time(rates.criteria.deadline_ns as f64);
    let mut get_it = format!(" get it within {deadline}");
    let mut of_rule = |row: &Row<'_>| {
        let share = share(row.found.in_time_share.get());
        format!("{share}{} {}", std::mem::take(&mut get_it), with_rule(row))
    };
    let shares: Vec<String> = rows.iter().take(MAX_RULES).map(&mut of_rule).collect();
    let first = rows.first();
    let rate = first.map_or_else(String::new, Row::rate);
    let arrivals = first.map_or(0.0, |row| row.load.arrivals.value());
    let room = match arrivals > 1.0 {
        true => format!("; while they come, it can serve {} of them", share(1.0 / arrivals)),
        false => String::new(),
    };
    say::overloaded(rates.name(), rate, room, list(&shares))
}

fn recovery(rows: &[Row<'_>]) -> Option<Sentence> {
    let waits = rows.iter().find(|row| row.load.bound.is_none() && !row.load.gives_up)?;
    if waits.load.arrivals.value() <= 1.0 {
        return None;
    }
    let wasted = share(waits.found.wasted_share?.get());
    let [from_ns, until_ns] = waits.found.overload_ns.map(|ns| ns.as_f64());
    let lasted = round_time(until_ns - from_ns);
    let bounded = rows.iter().find(|row| row.load.bound.is_some()).and_then(|row| {
        let took_ns = row.found.recovery_ns.filter(|ns| *ns > 0.0)?;
        Some(say::recovers(row.load.bound?.to_string(), time(took_ns.get())))
    });
    Some(match waits.found.recovery_ns {
        Some(ns) => say::wasted(wasted, lasted, time(ns.get())).and(bounded),
        None => say::never_recovered(wasted, lasted).and(bounded),
    })
}

/// Says for each lock whether it keeps the bound itself or the tool counts its waiters.
fn bounds(all: &[Rates<'_>]) -> Vec<Sentence> {
    let bounded = || all.iter().flat_map(|rates| &rates.rows).filter(|it| it.load.bound.is_some());
    let locks = |by_lock: bool| {
        let rows = bounded().filter(|row| row.load.by_lock == by_lock);
        let locks: BTreeSet<String> = rows.map(|row| clean(&row.subject.lock)).collect();
        let locks: Vec<String> = locks.into_iter().collect();
        (!locks.is_empty()).then(|| list(&locks))
    };
    let counted = locks(false).map(say::counted_in_front);
    counted.into_iter().chain(locks(true).map(say::bound_of_lock)).collect()
}

/// Mean and largest error of the predictions. Disturbed cells count only if there are no others.
fn predicted(all: &[Rates<'_>]) -> Option<Sentence> {
    let rows = || all.iter().flat_map(|rates| &rates.rows);
    let errors = |row: &Row<'_>| row.errors().into_iter().map(f64::abs).collect::<Vec<_>>();
    let quiet = rows().filter(|row| !row.label().marks.disturbed);
    let mut off: Vec<f64> = quiet.flat_map(errors).collect();
    let mut one = "undisturbed figure";
    if off.is_empty() {
        off = rows().flat_map(errors).collect();
        one = "figure";
    }
    let worst = off.iter().copied().reduce(f64::max)?;
    Some(say::predicted(share(mean(&off)?), share(worst), plural(off.len() as u64, one)))
}

/// Rows of one rate, with the name of the lock if there are several.
struct Line<'a> {
    name: String,
    rows: Vec<Row<'a>>,
}

impl<'a> Line<'a> {
    fn of_rule(&self, rule: &str) -> Option<Row<'a>> {
        self.rows.iter().find(|row| row.rule() == rule).copied()
    }
}

/// A column for each rule: shares in time, then recoveries.
fn by_rule(all: &[Rates<'_>]) -> Option<Picture> {
    let mut lines = Vec::new();
    for (rates, name) in all.iter().zip(short_names(all)) {
        for rows in rates.by_rate() {
            let rate = rows.first().map_or_else(String::new, Row::rate);
            let name = if name.is_empty() { rate } else { format!("{name}, {rate}") };
            lines.push(Line { name, rows });
        }
    }
    let rules: Vec<String> = lines.first()?.rows.iter().take(MAX_RULES).map(Row::rule).collect();
    let in_time = |(nth, rule): (usize, &String)| {
        let rule = rule.clone();
        Column::new("in time", rule.clone(), 2 * nth as u8, move |line: &Line<'_>| {
            Cell::figure(line.of_rule(&rule).map(|row| row.found.in_time_share), share)
        })
        .main()
    };
    let recovery = |(nth, rule): (usize, &String)| {
        let rule = rule.clone();
        Column::new("recovery", rule.clone(), 2 * nth as u8 + 1, move |line: &Line<'_>| {
            Cell::figure(line.of_rule(&rule).and_then(|row| row.found.recovery_ns), |ns| match ns {
                0.0 => "at once".into(),
                ns => time(ns),
            })
        })
    };
    let columns = rules.iter().enumerate().map(in_time);
    let columns = columns.chain(rules.iter().enumerate().map(recovery)).collect();
    let heading = "Callers in time, and time until nobody waits after the overload";
    let section = Section::new(heading, "arrivals", columns, &lines, |line| Label::new(&line.name));
    Rows::first(section, "row")
}

//! Findings on mechanisms.

use std::collections::BTreeMap;

use threadtoll_record::{Cell, Class, Placement, Record, Subject};

use crate::class::{class, slept};
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::label::list;
use crate::ladder::{Row, rows, times};
use crate::published::{Published, published};
use crate::units::{per_op, ratio, round_time, share, time};

pub(super) fn findings(records: &[Record]) -> Vec<String> {
    let rows = rows(records);
    let findings = [
        costs(&rows),
        spin_or_sleep(&rows),
        fat_message(&rows),
        placement(&rows),
        idle(&rows),
        signal(&rows),
        against_published(&rows),
    ];
    findings.into_iter().flatten().collect()
}

/// The record of a class with the lowest pinned median.
pub(crate) fn cheapest_of<'r>(rows: &'r [Row<'_>], wanted: Class) -> Option<&'r Record> {
    let pinned = rows.iter().filter_map(|row| row.record(Placement::Pinned));
    pinned
        .filter(|record| {
            class(&record.cell) == Some(wanted) && plain(&record.cell) && p50(record).is_some()
        })
        .filter(|record| wanted != Class::Sleep || slept(record))
        .min_by(|a, b| p50(a).unwrap_or(f64::INFINITY).total_cmp(&p50(b).unwrap_or(f64::INFINITY)))
}

/// The one-way median, if it can be a divisor.
fn p50(record: &Record) -> Option<f64> {
    record.one_way_p50().filter(|p50| *p50 > 0.0 && p50.is_finite())
}

/// Returns `true` for a row of ours without payload, neighbours, or a spinner that keeps the CPU
/// awake.
fn plain(cell: &Cell) -> bool {
    !cell.is_twin() && cell.payload_bytes == 8 && cell.neighbour.is_none() && !cell.keep_awake
}

fn costs(rows: &[Row<'_>]) -> Option<String> {
    let one_thread: Vec<String> = [
        ("function-call", "a function call"),
        ("fiber-switch", "a fiber switch"),
        ("async-wake", "an async wake-up"),
    ]
    .into_iter()
    .filter_map(|(mechanism, operation)| {
        let row =
            rows.iter().find(|row| row.main().is_some_and(|main| main.cell.name() == mechanism))?;
        Some(format!("{} as {operation}", time(p50(row.main()?)?)))
    })
    .collect();
    let named = |record: &Record| clean(&record.cell.label());
    let line = cheapest_of(rows, Class::Spin).and_then(|record| Some((record, p50(record)?)));
    let sleep = cheapest_of(rows, Class::Sleep).and_then(|record| Some((record, p50(record)?)));
    let mut parts = Vec::new();
    if !one_thread.is_empty() {
        parts.push(format!("{} within one thread", list(&one_thread)));
    }
    parts.extend(
        line.map(|(record, p50)| format!("{} through a cache line ({})", time(p50), named(record))),
    );
    parts.extend(sleep.map(|(record, p50)| {
        format!("{} if a sleeping thread must be woken ({})", time(p50), named(record))
    }));
    if parts.is_empty() {
        return None;
    }
    Some(format!("One hand-off costs {}.", parts.join("; ")))
}

fn spin_or_sleep(rows: &[Row<'_>]) -> Option<String> {
    let sleeper = cheapest_of(rows, Class::Sleep)?;
    let burnt = cpu_ns(&sleeper.cost).filter(|burnt| *burnt > 0.0)?;
    let mut text = format!(
        "Waking a sleeper costs {} of CPU time ({}): spin if you expect to wait less than that, sleep if longer.",
        time(burnt),
        clean(&sleeper.cell.label())
    );
    let line = cheapest_of(rows, Class::Spin).filter(|line| differ(line, sleeper) == Some(true));
    if let Some((fast, slow, times)) = line
        .and_then(|line| Some((p50(line)?, p50(sleeper)?, times(sleeper, line)?)))
        .filter(|(fast, slow, _)| fast < slow)
    {
        text.push_str(&format!(
            " Sleeping adds {} of latency to each hand-off: {} that of a cache line.",
            time(slow - fast),
            ratio(times)
        ));
    }
    Some(text)
}

fn placement(rows: &[Row<'_>]) -> Option<String> {
    let pairs: Vec<(&Record, &Record, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.record(Placement::Pinned)?, row.record(Placement::Free)?)))
        .filter(|(pinned, _)| slept(pinned) && plain(&pinned.cell))
        .filter_map(|(pinned, free)| Some((pinned, free, times(free, pinned)?)))
        .collect();
    let shares: Vec<f64> =
        pairs.iter().filter_map(|(_, free, _)| free.same_cpu_share.map(f64::from)).collect();
    let (least, most) =
        (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max));
    let shared = match (least, most) {
        (Some(least), Some(most)) if share(least) == share(most) => {
            format!(
                " {} of the unpinned exchanges began with both threads on one CPU.",
                share(least)
            )
        }
        (Some(least), Some(most)) => {
            format!(
                " {} to {} of the unpinned exchanges began with both threads on one CPU.",
                share(least),
                share(most)
            )
        }
        _ => String::new(),
    };
    let mut different: Vec<&(&Record, &Record, f64)> =
        pairs.iter().filter(|(pinned, free, _)| differ(pinned, free) == Some(true)).collect();
    different.sort_by(|a, b| a.2.total_cmp(&b.2));
    let factor = |(pinned, _, times): &(&Record, &Record, f64)| {
        format!("{} ({})", ratio(*times), clean(&pinned.cell.label()))
    };
    let subject = "Unpinned, sleeping threads took";
    match (different.first(), different.last()) {
        (Some(low), Some(high)) if different.len() > 1 => Some(format!(
            "{subject} {} to {} the time of pinned ones.{shared}",
            factor(low),
            factor(high)
        )),
        (Some(only), _) => {
            Some(format!("{subject} {} the time of pinned ones.{shared}", factor(only)))
        }
        _ if pairs.iter().any(|(pinned, free, _)| differ(pinned, free) == Some(false)) => {
            Some(format!(
                "Too noisy to tell whether sleeping threads are faster pinned or unpinned.{shared}"
            ))
        }
        _ => None,
    }
}

/// Pairs of pinned records: one whose cell satisfies `first`, and the one whose cell is `second` of
/// it.
fn partners<'r>(
    rows: &'r [Row<'_>],
    first: impl Fn(&Cell) -> bool,
    second: impl Fn(&Cell) -> Cell,
) -> Vec<(&'r Record, &'r Record)> {
    let pinned = || rows.iter().filter_map(|row| row.record(Placement::Pinned));
    let by_cell: BTreeMap<&Cell, &Record> = pinned().map(|record| (&record.cell, record)).collect();
    pinned()
        .filter(|record| first(&record.cell))
        .filter_map(|record| Some((record, *by_cell.get(&second(&record.cell))?)))
        .collect()
}

/// Tests the claim of 2011 that passing a cache line costs latency, not bandwidth, so that larger
/// messages are nearly free.
fn fat_message(rows: &[Row<'_>]) -> Option<String> {
    let small = |cell: &Cell| Cell { payload_bytes: 8, ..cell.clone() };
    let fat = |cell: &Cell| cell.payload_bytes > 8 && class(cell) == Some(Class::Spin);
    let (fat, small) =
        partners(rows, fat, small).into_iter().max_by_key(|(fat, _)| fat.cell.payload_bytes)?;
    let (slow, fast) = (p50(fat)?, p50(small)?);
    let (bytes, name) = (fat.cell.payload_bytes, clean(&small.cell.label()));
    if differ(fat, small)? && slow > fast {
        let further_lines = (bytes.div_ceil(64) - 1).max(1) as f64;
        return Some(format!(
            "A message of {bytes} B takes {} the time of one of 8 B ({name}: {} against {}): {} for each further 64 B.",
            ratio(slow / fast),
            time(slow),
            time(fast),
            time((slow - fast) / further_lines)
        ));
    }
    Some(format!(
        "Too noisy to tell whether {bytes} B costs more than 8 B ({name}: {} against {}).",
        time(slow),
        time(fast)
    ))
}

fn idle(rows: &[Row<'_>]) -> Option<String> {
    let pairs =
        partners(rows, |cell| !cell.keep_awake, |cell| Cell { keep_awake: true, ..cell.clone() });
    let sleeping = || pairs.iter().filter(|(normal, _)| slept(normal));
    let visible = sleeping()
        .filter(|(normal, awake)| differ(normal, awake) == Some(true))
        .filter_map(|(normal, awake)| Some((*normal, p50(normal)?, p50(awake)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((record, normal, awake)) = visible {
        let name = clean(&record.cell.label());
        return Some(if awake < normal {
            format!(
                "Of {name}’s {}, {} ({}) is the CPU leaving idle: with the CPU kept awake by a spinner of the lowest priority, it takes {}.",
                time(normal),
                time(normal - awake),
                share((normal - awake) / normal),
                time(awake)
            )
        } else {
            format!(
                "Keeping the CPUs awake with a spinner makes {name} slower ({} instead of {}): the spinner costs more than it saves.",
                time(awake),
                time(normal)
            )
        });
    }
    let (normal, _) = sleeping().find(|(normal, awake)| differ(normal, awake) == Some(false))?;
    Some(format!(
        "Leaving idle costs too little to be seen: keeping the CPUs awake does not measurably change {}.",
        clean(&normal.cell.label())
    ))
}

fn signal(rows: &[Row<'_>]) -> Option<String> {
    let after = |cell: &Cell| Cell {
        subject: Subject::mechanism(format!("{}-after", cell.name()), Class::Sleep),
        ..cell.clone()
    };
    let pairs = partners(rows, |cell| plain(cell) && class(cell) == Some(Class::Sleep), after);
    let findings: Vec<String> = pairs
        .into_iter()
        .filter(|(inside, after)| differ(inside, after) == Some(true))
        .filter_map(|(inside, after)| {
            let (slow, fast) = (p50(inside)?, p50(after)?);
            let switches = match (switches(&inside.cost), switches(&after.cost)) {
                (Some(inside), Some(after)) => {
                    format!(
                        ", with {} instead of {} context switches per hand-off",
                        per_op(after),
                        per_op(inside)
                    )
                }
                _ => String::new(),
            };
            let name = clean(&inside.cell.label());
            let times = if fast < slow {
                format!("{} faster", ratio(slow / fast))
            } else {
                format!("{} slower", ratio(fast / slow))
            };
            Some(format!("{name} {times} ({} instead of {}{switches})", time(fast), time(slow)))
        })
        .collect();
    (!findings.is_empty())
        .then(|| format!("Signalling after unlocking, not before, makes {}.", list(&findings)))
}

fn against_published(rows: &[Row<'_>]) -> Option<String> {
    let parts: Vec<String> = by_record(rows)
        .into_iter()
        .filter_map(|(record, figures)| {
            let here_ns = p50(record)?;
            let ratios: Vec<String> = figures
                .iter()
                .map(|figure| {
                    let worse = if figure.or_worse { " (or worse)" } else { "" };
                    format!(
                        "{} the {}{worse} of {}",
                        ratio(here_ns / figure.ns),
                        round_time(figure.ns),
                        figure.year
                    )
                })
                .collect();
            let placement = match record.cell.placement {
                Placement::Pinned => String::new(),
                placement => format!(", {placement}"),
            };
            let label = clean(&record.cell.label());
            Some(format!("{label}{placement} took {}", list(&ratios)))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("Compared with published figures: {}.", parts.join("; ")))
}

/// The published figures by the record with which they are compared: the cheapest if several of our
/// mechanisms match.
fn by_record<'r>(rows: &'r [Row<'_>]) -> Vec<(&'r Record, Vec<&'static Published>)> {
    let mut by_record: Vec<(&Record, Vec<&Published>)> = Vec::new();
    let records = rows
        .iter()
        .flat_map(|row| Placement::ALL.into_iter().filter_map(|placement| row.record(placement)));
    for record in records.filter(|record| p50(record).is_some()) {
        for figure in published(&record.cell) {
            if by_record.iter().any(|(_, figures)| figures.contains(&figure)) {
                continue;
            }
            match by_record.iter_mut().find(|(other, _)| other.cell == record.cell) {
                Some((_, figures)) => figures.push(figure),
                None => by_record.push((record, vec![figure])),
            }
        }
    }
    by_record
}

/// Returns `true` if the 95% intervals of two one-way medians are disjoint, or `None` if one is
/// unknown.
fn differ(a: &Record, b: &Record) -> Option<bool> {
    let ([a_low, a_high], [b_low, b_high]) =
        (a.one_way_p50_interval95()?, b.one_way_p50_interval95()?);
    Some(a_high < b_low || b_high < a_low)
}

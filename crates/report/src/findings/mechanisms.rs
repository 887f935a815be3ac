//! Findings about mechanisms.

use std::collections::BTreeMap;

use threadtoll_record::{Cell, Class, Layout, Pause, Placement, Record, Subject, Verdict};

use super::{Findings, Undecided};
use crate::claims::{self, Published};
use crate::class::{class, slept};
use crate::clean::clean;
use crate::cost::switches;
use crate::label::list;
use crate::ladder::{Row, rows};
use crate::quotient::Quotient;
use crate::sentences::{self as say, Sentence};
use crate::units::{digits_range, per_op, ratio, round_time, share, time, time_within};

/// What the figures tell, and what they leave open.
pub(super) fn findings(records: &[Record]) -> Findings {
    let rows = rows(records);
    let mut findings = Findings::default();
    fat_message(&rows, &mut findings);
    placement(&rows, &mut findings);
    idle(&rows, &mut findings);
    signal(&rows, &mut findings);
    findings.told.extend(against_published(&rows));
    findings
}

/// The record that represents all mechanisms of a class. It is always that of `atomic-store` or
/// `futex`, so that it is not chosen by noise; if neither was measured, the only record of the
/// class.
pub(crate) fn representative<'r>(rows: &'r [Row<'_>], wanted: Class) -> Option<&'r Record> {
    let name = match wanted {
        Class::Spin => "atomic-store",
        Class::Sleep => "futex",
        _ => return None,
    };
    let eligible = |record: &&Record| {
        class(&record.cell) == Some(wanted)
            && is_plain(&record.cell)
            && record.cell.line.is_none_or(|line| line == Layout::Own)
            && record.cell.pause.is_none_or(|pause| pause == Pause::Off)
            && p50(record).is_some()
            && (wanted != Class::Sleep || slept(record))
    };
    let records: Vec<&Record> = pinned(rows).filter(eligible).collect();
    match (records.iter().find(|record| record.cell.name() == name), records.as_slice()) {
        (Some(named), _) => Some(named),
        (None, [only]) => Some(only),
        _ => None,
    }
}

fn pinned<'r>(rows: &'r [Row<'_>]) -> impl Iterator<Item = &'r Record> {
    rows.iter().filter_map(|row| row.record(Placement::Pinned))
}

/// The one-way median, if it can be used as a divisor.
fn p50(record: &Record) -> Option<f64> {
    record.one_way_p50().filter(|p50| *p50 > 0.0 && p50.is_finite())
}

/// The one-way median with its interval.
fn measured(record: &Record) -> Option<String> {
    Some(time_within(p50(record)?, record.one_way_p50_interval95()))
}

fn name(record: &Record) -> String {
    clean(&record.cell.label())
}

/// Returns `true` for one of our rows without payload, neighbours, or a spinner that keeps the CPU
/// awake.
pub(crate) fn is_plain(cell: &Cell) -> bool {
    cell.payload_bytes == 8 && cell.neighbour.is_none() && !cell.keep_awake
}

fn placement(rows: &[Row<'_>], findings: &mut Findings) {
    type Pair<'r> = (&'r Record, &'r Record, Quotient);
    let pairs: Vec<Pair<'_>> = rows
        .iter()
        .filter_map(|row| Some((row.record(Placement::Pinned)?, row.record(Placement::Free)?)))
        .filter(|(pinned, _)| slept(pinned) && is_plain(&pinned.cell))
        .filter_map(|(pinned, free)| Some((pinned, free, Quotient::of(free, pinned)?)))
        .collect();
    let same_cpu = |free: &Record| free.figures.hand_offs()?.same_cpu_share.map(f64::from);
    let shares = pairs.iter().filter_map(|(_, free, _)| same_cpu(free));
    let shares = shares.map(|share| [share; 2]);
    let shared = shares.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]).map(|[least, most]| {
        let (least, most) = (share(least), share(most));
        say::began_on_one_cpu(if least == most { least } else { format!("{least} to {most}") })
    });
    let verdict = |(_, _, times): &Pair<'_>| times.verdict();
    let (mut different, alike): (Vec<Pair<'_>>, Vec<Pair<'_>>) = pairs
        .into_iter()
        .partition(|pair| matches!(verdict(pair), Verdict::Better | Verdict::Worse));
    let (same, open): (Vec<Pair<'_>>, Vec<Pair<'_>>) =
        alike.into_iter().partition(|pair| verdict(pair) == Verdict::Same);
    different.sort_by(|a, b| a.2.ratio.total_cmp(&b.2.ratio));
    let factor = |(pinned, _, times): &Pair<'_>| {
        format!("{} ({}, {})", ratio(times.ratio), name(pinned), digits_range(times.interval95))
    };
    let ratios = match different.as_slice() {
        [] => None,
        [only] => Some(factor(only)),
        [low, .., high] => Some(format!("{} to {}", factor(low), factor(high))),
    };
    let both = |(pinned, free, times): &Pair<'_>| {
        let (slow, fast) = (measured(pinned)?, measured(free)?);
        Some(Undecided {
            question: format!("does pinning matter to {}?", name(pinned)),
            figures: format!("pinned {slow}, free {fast}, {}", times.doubt()),
        })
    };
    findings.undecided.extend(open.iter().filter_map(both));
    let same: Vec<String> =
        same.iter().map(|(pinned, _, times)| format!("{} {times}", name(pinned))).collect();
    let same = (!same.is_empty()).then(|| say::unpinned_same(list(&same)));
    let mut told = [ratios.map(say::unpinned), same].into_iter().flatten();
    // The share of exchanges alone says nothing.
    let first = told.next().map(|first| told.fold(first, |first, more| first.and(Some(more))));
    findings.told.extend(first.map(|first| first.and(shared)));
}

/// Pairs of pinned records: the cell of the first record satisfies `first`, and the cell of the
/// second is `second` of the first cell.
fn partners<'r>(
    rows: &'r [Row<'_>],
    first: impl Fn(&Cell) -> bool,
    second: impl Fn(&Cell) -> Cell,
) -> Vec<(&'r Record, &'r Record)> {
    let by_cell: BTreeMap<&Cell, &Record> =
        pinned(rows).map(|record| (&record.cell, record)).collect();
    pinned(rows)
        .filter(|record| first(&record.cell))
        .filter_map(|record| Some((record, *by_cell.get(&second(&record.cell))?)))
        .collect()
}

/// Tests the claim of 2011 that passing a cache line costs latency, not bandwidth, so that larger
/// messages are nearly free.
fn fat_message(rows: &[Row<'_>], findings: &mut Findings) {
    let small = |cell: &Cell| Cell { payload_bytes: 8, ..cell.clone() };
    let fat = |cell: &Cell| cell.payload_bytes > 8 && class(cell) == Some(Class::Spin);
    let largest = partners(rows, fat, small)
        .into_iter()
        .max_by_key(|(fat, _)| (fat.cell.payload_bytes, fat.cell.name() == "atomic-store"));
    let Some((fat, small)) = largest else { return };
    let (Some(slow), Some(fast)) = (p50(fat), p50(small)) else { return };
    let (bytes, mechanism) = (fat.cell.payload_bytes, name(small));
    let (Some(large), Some(little)) = (measured(fat), measured(small)) else { return };
    let Some(times) = Quotient::of(fat, small) else { return };
    if times.is_above_1() {
        let further_lines = (bytes.div_ceil(64) - 1).max(1) as f64;
        let each = time((slow - fast) / further_lines);
        findings.told.push(say::fat_message(bytes, times, mechanism, large, little, each));
    } else if times.is_below_1() {
        findings.told.push(say::fat_message_is_faster(bytes, times, mechanism, large, little));
    } else {
        findings.undecided.push(Undecided {
            question: format!("does a message of {bytes} B cost more than one of 8 B?"),
            figures: format!("{mechanism} {large} and {little}, {}", times.doubt()),
        });
    }
}

fn idle(rows: &[Row<'_>], findings: &mut Findings) {
    let mut pairs =
        partners(rows, |cell| !cell.keep_awake, |cell| Cell { keep_awake: true, ..cell.clone() });
    pairs.retain(|(normal, _)| slept(normal));
    let first =
        pairs.into_iter().min_by_key(|(normal, _)| (normal.cell.name() != "futex", name(normal)));
    let Some((normal, awake)) = first else { return };
    let Some(times) = Quotient::of(awake, normal) else { return };
    let (Some(usual), Some(kept)) = (measured(normal), measured(awake)) else { return };
    if times.is_above_1() {
        findings.told.push(say::awake_is_slower(name(normal), kept, usual));
    } else if !times.is_below_1() {
        findings.undecided.push(Undecided {
            question: format!("how much of {} is the CPU leaving idle?", name(normal)),
            figures: format!("{usual}, kept awake {kept}, {}", times.doubt()),
        });
    }
}

fn signal(rows: &[Row<'_>], findings: &mut Findings) {
    let after = |cell: &Cell| Cell {
        subject: Subject::mechanism(format!("{}-after", cell.name()), Class::Sleep),
        ..cell.clone()
    };
    let (mut decided, mut same) = (Vec::new(), Vec::new());
    for (inside, after) in
        partners(rows, |cell| is_plain(cell) && class(cell) == Some(Class::Sleep), after)
    {
        let (Some(times), Some(slow), Some(fast)) =
            (Quotient::of(after, inside), measured(inside), measured(after))
        else {
            continue;
        };
        let name = name(inside);
        let faster = match times.verdict() {
            Verdict::Better => true,
            Verdict::Worse => false,
            Verdict::Same => {
                same.push(format!("{name} {times}"));
                continue;
            }
            Verdict::NoWorse | Verdict::NoBetter | Verdict::Open => {
                findings.undecided.push(Undecided {
                    question: format!("does it matter to {name} if it signals after unlocking?"),
                    figures: format!("before {slow}, after {fast}, {}", times.doubt()),
                });
                continue;
            }
        };
        let [inside, after] =
            [inside, after].map(|record| switches(&record.cost).map(per_op).unwrap_or_default());
        let switches = if inside == after {
            String::new()
        } else {
            format!(", with {after} instead of {inside} context switches per hand-off")
        };
        let times =
            if faster { format!("{} faster", times.inverse()) } else { format!("{times} slower") };
        decided.push(format!("{name} {times}: {fast} instead of {slow}{switches}"));
    }
    let decided = (!decided.is_empty()).then(|| say::signal_after(decided.join("; ")));
    let same = (!same.is_empty()).then(|| say::signal_same(list(&same)));
    findings.told.extend([decided, same].into_iter().flatten());
}

/// Answers to published claims about mechanisms in other languages.
pub(super) fn claims(records: &[Record]) -> Vec<Sentence> {
    let rows = rows(records);
    let measured: Vec<&Record> = pinned(&rows).collect();
    claims::sentences(&claims::MECHANISMS, &measured)
}

/// Compares our figures with published ones. If several mechanisms match, the first in the
/// published figure's list represents all.
fn against_published(rows: &[Row<'_>]) -> Vec<Sentence> {
    let mut by_record: Vec<(&Record, Vec<&Published>)> = Vec::new();
    let claims = claims::MECHANISMS.iter();
    for (claim, figure) in claims.filter_map(|claim| Some((claim, claim.published.as_ref()?))) {
        let records = || {
            rows.iter().flat_map(|row| Placement::ALL.into_iter().filter_map(|at| row.record(at)))
        };
        let record = claim.names().iter().find_map(|mechanism| {
            records().find(|record| {
                record.cell.name() == *mechanism && claim.is_about(record) && p50(record).is_some()
            })
        });
        let Some(record) = record else { continue };
        match by_record.iter_mut().find(|(other, _)| other.cell == record.cell) {
            Some((_, figures)) => figures.push(figure),
            None => by_record.push((record, vec![figure])),
        }
    }
    let sentence = |(record, figures): &(&Record, Vec<&Published>)| {
        let figures: Vec<String> = figures
            .iter()
            .map(|figure| {
                let worse = if figure.or_worse { " or worse" } else { "" };
                let (time, source) = (round_time(figure.ns), figure.source);
                format!("{time}{worse} ({}, {}: {})", source.author, source.year, figure.machine)
            })
            .collect();
        let mechanism = format!("{}, {}", name(record), record.cell.placement);
        Some(say::published(mechanism, measured(record)?, list(&figures)))
    };
    by_record.iter().filter_map(sentence).collect()
}

//! What the figures mean, in a few plain sentences.
//!
//! A sentence is made only from figures that are there, and a difference is claimed only where the
//! 95% intervals of both medians lie apart.

use std::collections::BTreeMap;

use threadtoll_record::{Cell, Placement, Record, Subject, file::Results, fold};

use super::ladder::{cpu, plural, switches};
use crate::class::{Class, class, slept};
use crate::clean::clean;
use crate::locks;
use crate::published::{Published, published};
use crate::queues;
use crate::rows::{Row, apart, rows, summed, times};
use crate::units::{per_op, ratio, round_time, share, time};

/// Says in a few sentences what the figures mean.
pub fn verdict(results: &Results, records: &[Record]) -> Vec<String> {
    let rows = rows(records);
    let found = [
        costs(&rows),
        spin_or_sleep(&rows),
        fat_message(&rows),
        placement(&rows),
        idle(&rows),
        signal(&rows),
        beside_published(&rows),
    ];
    let rest =
        [disturbance(results, records), left_out(results), few_cpus(results), unfinished(results)];
    let found = found.into_iter().flatten();
    found
        .chain(queues::sentences(records))
        .chain(locks::sentences(records))
        .chain(rest.into_iter().flatten())
        .collect()
}

/// The cheapest row of a class, by its pinned median.
pub(crate) fn cheapest_of<'r>(rows: &'r [Row<'_>], wanted: Class) -> Option<&'r Record> {
    let pinned = rows.iter().filter_map(|row| row.side(Placement::Pinned));
    pinned
        .filter(|record| {
            class(&record.cell) == wanted && plain(&record.cell) && p50(record).is_some()
        })
        .filter(|record| wanted != Class::Sleep || slept(record))
        .min_by(|a, b| p50(a).unwrap_or(f64::INFINITY).total_cmp(&p50(b).unwrap_or(f64::INFINITY)))
}

/// A median that something can be compared with.
fn p50(record: &Record) -> Option<f64> {
    record.one_way_p50().filter(|p50| *p50 > 0.0 && p50.is_finite())
}

/// Measured as such: without payload, neighbours or a spinner beside it.
fn plain(cell: &Cell) -> bool {
    cell.payload_bytes == 8 && cell.neighbour.is_none() && !cell.keep_awake
}

fn costs(rows: &[Row<'_>]) -> Option<String> {
    let one_thread: Vec<String> = [
        ("function-call", "a function call"),
        ("fiber-switch", "a switch of fibers"),
        ("async-wake", "a wake-up of an async task"),
    ]
    .into_iter()
    .filter_map(|(mechanism, what)| {
        let row =
            rows.iter().find(|row| row.main().is_some_and(|main| main.cell.name() == mechanism))?;
        Some(format!("{} as {what}", time(p50(row.main()?)?)))
    })
    .collect();
    let named = |record: &Record| clean(&record.cell.label());
    let line = cheapest_of(rows, Class::Line).and_then(|record| Some((record, p50(record)?)));
    let sleep = cheapest_of(rows, Class::Sleep).and_then(|record| Some((record, p50(record)?)));
    let mut parts = Vec::new();
    if !one_thread.is_empty() {
        parts.push(format!("{} within one thread", listed(&one_thread, "and")));
    }
    parts.extend(
        line.map(|(record, p50)| format!("{} through a cache line ({})", time(p50), named(record))),
    );
    parts.extend(sleep.map(|(record, p50)| {
        format!("{} where a sleeping thread must be woken ({})", time(p50), named(record))
    }));
    if parts.is_empty() {
        return None;
    }
    Some(format!("One hand-off costs {}.", parts.join("; ")))
}

fn spin_or_sleep(rows: &[Row<'_>]) -> Option<String> {
    let sleeper = cheapest_of(rows, Class::Sleep)?;
    let burnt = cpu(&sleeper.cost).filter(|burnt| *burnt > 0.0)?;
    let mut text = format!(
        "Spinning burns the wait itself, sleeping a fixed {} of CPU time per hand-off ({}): here spinning is the cheaper one for waits up to about that long, sleeping beyond.",
        time(burnt),
        clean(&sleeper.cell.label())
    );
    let line = cheapest_of(rows, Class::Line).filter(|line| apart(line, sleeper) == Some(true));
    if let Some((fast, slow, times)) = line
        .and_then(|line| Some((p50(line)?, p50(sleeper)?, times(sleeper, line)?)))
        .filter(|(fast, slow, _)| fast < slow)
    {
        text.push_str(&format!(
            " Sleeping adds {} to the latency of each hand-off, which makes it {} that of the cache line.",
            time(slow - fast),
            ratio(times)
        ));
    }
    Some(text)
}

fn placement(rows: &[Row<'_>]) -> Option<String> {
    let pairs: Vec<(&Record, &Record, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.side(Placement::Pinned)?, row.side(Placement::Free)?)))
        .filter(|(pinned, _)| slept(pinned) && plain(&pinned.cell))
        .filter_map(|(pinned, free)| Some((pinned, free, times(free, pinned)?)))
        .collect();
    let shares: Vec<f64> = pairs.iter().filter_map(|(_, free, _)| free.same_cpu_share).collect();
    let (least, most) =
        (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max));
    let shared = match (least, most) {
        (Some(least), Some(most)) if share(least) == share(most) => {
            format!(" {} of the free exchanges began with both threads on one CPU.", share(least))
        }
        (Some(least), Some(most)) => {
            format!(
                " {} to {} of the free exchanges began with both threads on one CPU.",
                share(least),
                share(most)
            )
        }
        _ => String::new(),
    };
    let mut sure: Vec<&(&Record, &Record, f64)> =
        pairs.iter().filter(|(pinned, free, _)| apart(pinned, free) == Some(true)).collect();
    sure.sort_by(|a, b| a.2.total_cmp(&b.2));
    let said = |(pinned, _, times): &(&Record, &Record, f64)| {
        format!("{} ({})", ratio(*times), clean(&pinned.cell.label()))
    };
    let what = "Left to the scheduler, sleeping threads take";
    match (sure.first(), sure.last()) {
        (Some(low), Some(high)) if sure.len() > 1 => {
            Some(format!("{what} {} to {} the time of pinned ones.{shared}", said(low), said(high)))
        }
        (Some(only), _) => Some(format!("{what} {} the time of pinned ones.{shared}", said(only))),
        _ if pairs.iter().any(|(pinned, free, _)| apart(pinned, free) == Some(false)) => {
            Some(format!(
                "Left to the scheduler, sleeping threads take no longer or shorter than pinned ones, as far as these figures can tell.{shared}"
            ))
        }
        _ => None,
    }
}

/// The pinned records that are alike in everything but what `same` makes alike.
fn partners<'r>(
    rows: &'r [Row<'_>],
    first: impl Fn(&Cell) -> bool,
    second: impl Fn(&Cell) -> Cell,
) -> Vec<(&'r Record, &'r Record)> {
    let pinned = || rows.iter().filter_map(|row| row.side(Placement::Pinned));
    let by_cell: BTreeMap<&Cell, &Record> = pinned().map(|record| (&record.cell, record)).collect();
    pinned()
        .filter(|record| first(&record.cell))
        .filter_map(|record| Some((record, *by_cell.get(&second(&record.cell))?)))
        .collect()
}

/// The claim of 2011 that a line going back and forth is latency and not bandwidth, so that larger
/// messages are nearly free.
fn fat_message(rows: &[Row<'_>]) -> Option<String> {
    let small = |cell: &Cell| Cell { payload_bytes: 8, ..cell.clone() };
    let fat = |cell: &Cell| cell.payload_bytes > 8 && class(cell) == Class::Line;
    let (fat, small) =
        partners(rows, fat, small).into_iter().max_by_key(|(fat, _)| fat.cell.payload_bytes)?;
    let (slow, fast) = (p50(fat)?, p50(small)?);
    let (bytes, name) = (fat.cell.payload_bytes, clean(&small.cell.label()));
    if apart(fat, small)? && slow > fast {
        let further_lines = (bytes.div_ceil(64) - 1).max(1) as f64;
        return Some(format!(
            "A message of {bytes} B takes {} one of 8 B ({name}: {} instead of {}): {} for each further 64 B, written and read.",
            ratio(slow / fast),
            time(slow),
            time(fast),
            time((slow - fast) / further_lines)
        ));
    }
    Some(format!(
        "A message of {bytes} B takes no longer than one of 8 B ({name}), as far as these figures can tell."
    ))
}

fn idle(rows: &[Row<'_>]) -> Option<String> {
    let pairs =
        partners(rows, |cell| !cell.keep_awake, |cell| Cell { keep_awake: true, ..cell.clone() });
    let sleeping = || pairs.iter().filter(|(normal, _)| slept(normal));
    let visible = sleeping()
        .filter(|(normal, awake)| apart(normal, awake) == Some(true))
        .filter_map(|(normal, awake)| Some((*normal, p50(normal)?, p50(awake)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((record, normal, awake)) = visible {
        let name = clean(&record.cell.label());
        return Some(if awake < normal {
            format!(
                "Of {name}’s {}, {} ({}) is the CPU leaving idle: kept awake by a spinner of the lowest priority, it takes {}.",
                time(normal),
                time(normal - awake),
                share((normal - awake) / normal),
                time(awake)
            )
        } else {
            format!(
                "Keeping the CPUs awake with a spinner makes {name} slower ({} instead of {}): the spinner costs more than leaving idle does.",
                time(awake),
                time(normal)
            )
        });
    }
    let (normal, _) = sleeping().find(|(normal, awake)| apart(normal, awake) == Some(false))?;
    Some(format!(
        "Leaving idle is not visible here: keeping the CPUs awake does not change {} beyond its interval.",
        clean(&normal.cell.label())
    ))
}

fn signal(rows: &[Row<'_>]) -> Option<String> {
    let after = |cell: &Cell| Cell {
        subject: Subject::mechanism(format!("{}-after", cell.name())),
        ..cell.clone()
    };
    let pairs = partners(rows, |cell| plain(cell) && class(cell) == Class::Sleep, after);
    let said: Vec<String> = pairs
        .into_iter()
        .filter(|(inside, after)| apart(inside, after) == Some(true))
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
    (!said.is_empty())
        .then(|| format!("Signalling after unlocking, not before, makes {}.", listed(&said, "and")))
}

fn beside_published(rows: &[Row<'_>]) -> Option<String> {
    // Where two of our mechanisms do what was published once, the cheaper one, which comes first,
    // stands for it.
    let mut said: Vec<(&Published, &Record)> = Vec::new();
    for row in rows {
        for record in Placement::ALL.iter().filter_map(|placement| row.side(*placement)) {
            for figure in published(&record.cell) {
                let known = said.iter().any(|(other, _)| *other == figure);
                if !known && p50(record).is_some() {
                    said.push((figure, record));
                }
            }
        }
    }
    let mut parts = Vec::new();
    let mut by_record: Vec<(&Record, Vec<&Published>)> = Vec::new();
    for (figure, record) in said {
        match by_record.iter_mut().find(|(known, _)| known.cell == record.cell) {
            Some((_, figures)) => figures.push(figure),
            None => by_record.push((record, vec![figure])),
        }
    }
    for (record, figures) in by_record {
        let here = p50(record)?;
        let beside: Vec<String> = figures
            .iter()
            .map(|figure| {
                let worse = if figure.or_worse { " (or worse)" } else { "" };
                format!(
                    "{} the {}{worse} of {}",
                    ratio(here / figure.ns),
                    round_time(figure.ns),
                    figure.year
                )
            })
            .collect();
        let free = if record.cell.placement == Placement::Pinned {
            String::new()
        } else {
            format!(", {}", record.cell.placement)
        };
        parts.push(format!(
            "{}{free} takes {}",
            clean(&record.cell.label()),
            listed(&beside, "and")
        ));
    }
    (!parts.is_empty()).then(|| format!("Beside the published figures: {}.", parts.join("; ")))
}

fn disturbance(results: &Results, records: &[Record]) -> Option<String> {
    let all = summed(records.iter().map(|record| &record.disturbance));
    if all.disturbed == 0 || all.blocks == 0 {
        return None;
    }
    let mut causes: Vec<_> = all.causes.iter().filter(|(_, blocks)| **blocks > 0).collect();
    causes.sort_by(|a, b| b.1.cmp(a.1));
    let causes: Vec<String> =
        causes.into_iter().map(|(cause, blocks)| format!("{cause} {blocks}")).collect();
    let of = share(f64::from(all.disturbed) / f64::from(all.blocks));
    let causes =
        if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
    let what = format!("{} of {} blocks ({of}) were disturbed{causes}.", all.disturbed, all.blocks);
    Some(if f64::from(all.disturbed) > fold::DISTURBED_SHARE * f64::from(all.blocks) {
        format!(
            "{what} That is over a quarter: measure again when the machine is quieter, with `{}`.",
            again(results)
        )
    } else {
        what
    })
}

/// The command that measures the same again.
pub(crate) fn again(results: &Results) -> String {
    let mut words = vec!["threadtoll".to_string()];
    let command = &results.plan.command;
    let mut skip = false;
    for word in command {
        // A file that exists is refused as a target, a resumed one would not be measured again, and
        // colours are taste.
        if matches!(word.as_str(), "--out" | "--resume" | "--html" | "--color") {
            skip = true;
        } else if skip {
            skip = false;
        } else if !["--out=", "--resume=", "--html=", "--color="]
            .iter()
            .any(|option| word.starts_with(option))
        {
            words.push(quoted(&clean(word)));
        }
    }
    if !command.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed {}", results.plan.seed));
    }
    words.join(" ")
}

/// A word as a shell takes it literally.
fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@%".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn left_out(results: &Results) -> Option<String> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for refused in &results.plan.refused {
        by_reason.entry(&refused.why).or_default().push(&refused.what);
    }
    let said: Vec<String> = by_reason
        .iter()
        .take(4)
        .map(|(why, whats)| {
            let mut names: Vec<String> = whats.iter().take(4).map(|what| clean(what)).collect();
            if whats.len() > names.len() {
                names.push(format!("{} more", whats.len() - names.len()));
            }
            format!("{} ({})", listed(&names, "and"), clean(why).trim_end_matches('.'))
        })
        .collect();
    let more = if by_reason.len() > 4 { "; and more" } else { "" };
    (!said.is_empty()).then(|| format!("Left out: {}{more}.", said.join("; ")))
}

fn few_cpus(results: &Results) -> Option<String> {
    let machine = &results.machine;
    if machine.allowed.len() == 1 {
        return Some(
            "Only one CPU may be used here, so nothing was handed over between CPUs.".into(),
        );
    }
    let quota = machine.quota_cpus.filter(|quota| *quota < 2.0)?;
    Some(format!(
        "The control group grants {} CPUs’ worth of time, less than two spinning threads take: they are stopped in between.",
        per_op(quota)
    ))
}

fn unfinished(results: &Results) -> Option<String> {
    let complete = results.groups.iter().filter(|group| group.records.is_some()).count();
    (complete < results.groups.len() && results.groups.iter().any(|group| group.attempts > 0)).then(
        || {
            let how = match results.not_resumable() {
                Some(_) => "",
                None => "; --resume with the file completes it",
            };
            format!(
                "The run is not finished, with {complete} of {} complete{how}.",
                plural(results.groups.len() as u64, "group")
            )
        },
    )
}

/// `a`, `a and b`, `a, b and c`.
fn listed(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(quoted("--cpus=0,1"), "--cpus=0,1");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("$(rm)'x"), r"'$(rm)'\''x'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn lists_read_as_a_person_writes_them() {
        let words = ["a".to_string(), "b".to_string(), "c".to_string()];
        assert_eq!(listed(&words, "and"), "a, b and c");
        assert_eq!(listed(&words[..2], "and"), "a and b");
        assert_eq!(listed(&words[..1], "and"), "a");
    }
}

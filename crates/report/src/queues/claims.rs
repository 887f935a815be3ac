//! Published claims about queues, tested against the rows that can confirm or refute them.
//!
//! Those about queues of other languages are in `peer_claims`.

use std::collections::BTreeMap;

use threadtoll_record::{Ns, Placement, WaitFamily};

use super::{Comparison, Row};
use crate::claim::{ClaimStatus, counts};
use crate::class::slept;
use crate::clean::clean;
use crate::quotient::Quotient;
use crate::sentences::{self as say, Sentence};
use crate::units::{count, digits_range, long_time, per_second, ratio, round_time, time};

pub(super) const HABR: &str = "An article on Habr (2016)";

pub(super) const ASK_REPLY: &str = "ask-reply";
const BURST: &str = "burst";
const OPEN_LOOP: &str = "open-loop";

/// A message takes abnormally long if it takes over this many times the median.
const ABNORMAL: f64 = 10.0;
/// A part of a time dominates it if the whole is less than this many times the part.
const DOMINATED: f64 = 2.0;
/// Rates at which about a billion messages come in a day.
const BILLION_A_DAY: std::ops::RangeInclusive<f64> = 5_000.0..=25_000.0;
/// Peers whose messages are under a lock.
const LOCKED: [&str; 2] = ["flume-", "kanal-"];

/// A sentence for each claim with a measured row.
pub(super) fn claims(comparisons: &[Comparison<'_>]) -> Vec<Sentence> {
    let sentences = [tail(comparisons), wake_up(comparisons), bursts(comparisons)];
    sentences.into_iter().flatten().collect()
}

/// Rows of the article’s kind: one sender, two pinned threads, small messages, nobody else.
fn rows<'c, 'a>(
    comparisons: &'c [Comparison<'a>],
    scenario: &'static str,
) -> impl Iterator<Item = &'c Row<'a>> {
    plain_rows(comparisons, scenario)
        .filter(|row| row.queue().is_some_and(|queue| queue.senders == 1 && queue.batch == 1))
}

/// Rows between pinned threads with small messages and no neighbours, from any number of senders,
/// one message at a time or in batches.
pub(super) fn plain_rows<'c, 'a>(
    comparisons: &'c [Comparison<'a>],
    scenario: &'static str,
) -> impl Iterator<Item = &'c Row<'a>> {
    comparisons
        .iter()
        .filter(move |comparison| {
            let criteria = &comparison.criteria;
            criteria.scenario.name == scenario
                && criteria.placement == Placement::Pinned
                && criteria.neighbour.is_none()
                && criteria.payload_bytes == 8
        })
        .flat_map(|comparison| &comparison.rows)
        .filter(|row| row.queue().is_some())
}

pub(super) fn name(row: &Row<'_>) -> String {
    let name = clean(row.record.cell.name());
    row.queue().map_or_else(|| name.clone(), |queue| format!("{name} ({})", queue.wait.name()))
}

pub(super) struct Answer {
    pub(super) status: ClaimStatus,
    pub(super) row: String,
    pub(super) figures: String,
}

impl Answer {
    /// `pipe (spin) yes (p99 312 ns, p99.9 4.1 µs, median 180 ns)`.
    fn text(&self) -> String {
        format!("{} {} ({})", self.row, self.status.label(), self.figures)
    }
}

/// Most rows that are named one by one.
const MAX_ANSWERS: usize = 3;

pub(super) fn joined(answers: &[Answer], what: &str) -> Option<String> {
    if answers.len() <= MAX_ANSWERS {
        let all: Vec<String> = answers.iter().map(Answer::text).collect();
        return (!all.is_empty()).then(|| all.join("; "));
    }
    let statuses: Vec<ClaimStatus> = answers.iter().map(|answer| answer.status).collect();
    // An example of each answer.
    let examples = [ClaimStatus::Confirmed, ClaimStatus::Refuted, ClaimStatus::Open]
        .into_iter()
        .filter_map(|status| answers.iter().find(|answer| answer.status == status));
    let examples: Vec<String> = examples.map(Answer::text).collect();
    Some(format!(
        "{} of {} {what}, for example {}",
        counts(&statuses),
        answers.len(),
        examples.join("; ")
    ))
}

fn tail(comparisons: &[Comparison<'_>]) -> Option<Sentence> {
    let answers: Vec<Answer> = rows(comparisons, ASK_REPLY)
        .filter_map(|row| {
            let (found, within) = (&row.record.quantiles, &row.record.interval95);
            let of = |interval: Option<[Ns; 2]>| Some(interval?.map(Ns::get));
            let (median, p99) = (of(within.p50)?, of(within.p99)?);
            let status = tail_status(median, p99, of(within.p999))?;
            let mut figures = vec![format!("p99 {}", time(found.p99?.get()))];
            figures.extend(found.p999.map(|ns| format!("p99.9 {}", time(ns.get()))));
            figures.push(format!("median {}", time(found.p50?.get())));
            Some(Answer { status, row: name(row), figures: figures.join(", ") })
        })
        .collect();
    Some(say::tail_claim(HABR, joined(&answers, "rows")?))
}

/// `None` if too few messages were measured.
fn tail_status(median: [f64; 2], p99: [f64; 2], p999: Option<[f64; 2]>) -> Option<ClaimStatus> {
    let limit = median.map(|ns| ABNORMAL * ns);
    if p99[0] > limit[1] {
        return Some(ClaimStatus::Refuted);
    }
    let p999 = p999?;
    Some(if p999[1] <= limit[0] {
        ClaimStatus::Refuted
    } else if p99[1] <= limit[0] && p999[0] > limit[1] {
        ClaimStatus::Confirmed
    } else {
        ClaimStatus::Open
    })
}

fn wake_up(comparisons: &[Comparison<'_>]) -> Option<Sentence> {
    let futex = comparisons
        .iter()
        .filter(|comparison| comparison.criteria.scenario.name == ASK_REPLY)
        .filter(|comparison| comparison.criteria.placement == Placement::Pinned)
        .flat_map(|comparison| &comparison.rows)
        .find(|row| row.queue().is_none() && row.record.cell.name() == "futex")?;
    let answers: Vec<Answer> = rows(comparisons, ASK_REPLY)
        .filter(|row| slept(&row.record))
        .filter_map(|row| {
            let times = Quotient::of(&row.record, &futex.record)?;
            let status = ClaimStatus::of(times.interval95, [0.0, DOMINATED]);
            let figures = format!(
                "{} of futex’s time, {}",
                ratio(times.ratio),
                digits_range(times.interval95)
            );
            Some(Answer { status, row: name(row), figures })
        })
        .collect();
    Some(say::wake_up_claim(HABR, joined(&answers, "rows")?))
}

/// `8 messages yes in 12; 512 messages yes in 1, no in 11 of 12`.
fn bursts(comparisons: &[Comparison<'_>]) -> Option<Sentence> {
    let mut last_ns: BTreeMap<(String, u64), BTreeMap<u64, [f64; 2]>> = BTreeMap::new();
    for row in rows(comparisons, BURST) {
        let load = &row.queue()?.load;
        let found = row.record.burst.and_then(|burst| burst.last_interval95);
        if let (Some(size), Some(gap), Some(interval)) = (load.burst, load.gap_ns, found) {
            let sizes = last_ns.entry((name(row), gap.get())).or_default();
            sizes.insert(size.get(), interval.map(Ns::get));
        }
    }
    let mut statuses: BTreeMap<u64, Vec<ClaimStatus>> = BTreeMap::new();
    for sizes in last_ns.values() {
        let Some(one) = sizes.get(&1) else { continue };
        for (size, many) in sizes.range(2..) {
            let factor = [many[0] / one[1], many[1] / one[0]];
            statuses.entry(*size).or_default().push(ClaimStatus::of(factor, [0.0, DOMINATED]));
        }
    }
    let answers: Vec<String> = statuses
        .iter()
        .map(|(size, all)| format!("{} messages {} of {}", count(*size), counts(all), all.len()))
        .collect();
    let gaps: Vec<u64> = {
        let mut gaps: Vec<u64> = last_ns.keys().map(|(_, gap)| *gap).collect();
        gaps.sort_unstable();
        gaps.dedup();
        gaps
    };
    let gaps = match gaps.as_slice() {
        [] => return None,
        [only] => format!("every {}", round_time(*only as f64)),
        [first, .., last] => {
            format!("every {} to {}", round_time(*first as f64), round_time(*last as f64))
        }
    };
    (!answers.is_empty())
        .then(|| say::burst_claim(HABR, format!("{} queues and gaps, {gaps}", answers.join("; "))))
}

/// A receiver that may sleep, at a rate of about a billion messages a day.
struct Spender {
    name: String,
    locked: bool,
    /// CPU time of a message, and its interval.
    cpu_ns: f64,
    within: [f64; 2],
}

pub(super) fn billion(comparisons: &[Comparison<'_>]) -> Option<Sentence> {
    let mut by_rate: BTreeMap<u64, Vec<Spender>> = BTreeMap::new();
    for row in rows(comparisons, OPEN_LOOP) {
        let (Some(queue), Some(found)) = (row.queue(), &row.record.open_loop) else { continue };
        let rate = queue.load.rate_per_s.map(|rate| rate.get());
        let rate = rate.filter(|rate| BILLION_A_DAY.contains(&(*rate as f64)));
        let may_sleep = queue.wait.family() == WaitFamily::Blocking;
        let locked = LOCKED.iter().any(|name| queue.queue.starts_with(name));
        // One that spins for longer than the gaps pays for that, not for its lock.
        let spun = locked && !slept(&row.record);
        if let (Some(rate), Some(cpu), Some(within)) =
            (rate, found.cpu_ns_per_message, found.cpu_interval95)
            && may_sleep
            && !spun
            && !found.saturated
        {
            by_rate.entry(rate).or_default().push(Spender {
                name: name(row),
                locked,
                cpu_ns: cpu.get(),
                within: within.map(Ns::get),
            });
        }
    }
    by_rate.into_iter().find_map(|(rate, spenders)| {
        let answers: Vec<Answer> = spenders
            .iter()
            .filter(|spender| !spender.locked)
            .flat_map(|free| {
                spenders.iter().filter(|other| other.locked).map(|other| saving(free, other))
            })
            .collect();
        Some(say::billion_claim(HABR, per_second(rate as f64), joined(&answers, "pairs")?))
    })
}

fn saving(free: &Spender, locked: &Spender) -> Answer {
    let billion =
        |spender: &Spender| format!("{} {}", spender.name, long_time(spender.cpu_ns * 1e9));
    let saved = [locked.within[0] - free.within[1], locked.within[1] - free.within[0]];
    Answer {
        status: ClaimStatus::of(saved, [f64::MIN_POSITIVE, f64::INFINITY]),
        row: format!("{} against {}", billion(free), billion(locked)),
        figures: format!("{} to {} a message", signed(saved[0]), signed(saved[1])),
    }
}

/// `+1.2 µs` saved, or `-0.3 µs`.
fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { '-' } else { '+' }, time(ns.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_judged_by_the_intervals_of_its_quantiles() {
        let median = [95.0, 105.0];
        let judged = |p99, p999| tail_status(median, p99, p999);
        assert_eq!(judged([200.0, 300.0], Some([400.0, 900.0])), Some(ClaimStatus::Refuted));
        assert_eq!(judged([1_100.0, 1_200.0], None), Some(ClaimStatus::Refuted));
        assert_eq!(judged([200.0, 300.0], Some([1_100.0, 9e3])), Some(ClaimStatus::Confirmed));
        assert_eq!(judged([200.0, 300.0], Some([900.0, 9e3])), Some(ClaimStatus::Open));
        assert_eq!(judged([900.0, 1_100.0], Some([2e3, 9e3])), Some(ClaimStatus::Open));
        assert_eq!(judged([200.0, 300.0], None), None, "too few messages");
    }

    #[test]
    fn many_rows_are_counted_with_an_example_of_each_answer() {
        let answer = |status, row: &str| Answer { status, row: row.into(), figures: "1".into() };
        let few = [answer(ClaimStatus::Confirmed, "a")];
        assert_eq!(joined(&few, "rows").as_deref(), Some("a yes (1)"));
        let many = [
            answer(ClaimStatus::Refuted, "a"),
            answer(ClaimStatus::Confirmed, "b"),
            answer(ClaimStatus::Refuted, "c"),
            answer(ClaimStatus::Refuted, "d"),
        ];
        assert_eq!(
            joined(&many, "rows").as_deref(),
            Some("yes in 1, no in 3 of 4 rows, for example b yes (1); a no (1)")
        );
        assert_eq!(joined(&[], "rows"), None);
    }
}

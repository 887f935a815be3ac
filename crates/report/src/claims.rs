//! What the articles say of locks, each sentence held against the cells that can confirm or refute
//! it.

use threadtoll_record::Work;

use crate::experiment::{FREQUENCY_SWEEP, HOLD_SWEEP, POOL};
use crate::locks::{Row, Section};
use crate::units::{digits, ratio, share, time};

const PRESHING: &str = "J. Preshing (2011)";
const SUKHOVITSKY: &str = "A. Sukhovitsky";

/// How a cell stands to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Confirms,
    Refutes,
    /// Its interval reaches over the limit.
    Open,
}

impl Stand {
    /// A figure that is to be at least the one limit and below the other.
    fn between([low, high]: [f64; 2], [least, most]: [f64; 2]) -> Stand {
        if low >= least && high < most {
            Stand::Confirms
        } else if high < least || low >= most {
            Stand::Refutes
        } else {
            Stand::Open
        }
    }
}

/// A sentence of an article, and the cells that speak of it.
struct Claim {
    sentence: &'static str,
    source: &'static str,
    scenario: &'static str,
    about: fn(&Row<'_>) -> bool,
    /// The limits between which the speed-up is to lie.
    limits: fn(&Row<'_>) -> [f64; 2],
}

/// "Almost perfect" is so much of a speed-up by the number of threads.
const ALMOST_PERFECT: f64 = 0.95;
/// An interval of 3.1 µs, give or take what rounding to whole units makes of it.
const SHORT_NS: std::ops::Range<u64> = 3_000..3_300;

const CLAIMS: &[Claim] = &[
    Claim {
        sentence: "two threads that hold the lock for half of their time do 1.5 times as much as one (to within 0.1)",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        about: |row| row.subject.threads == 2 && near(row.subject.hold_share(), 0.5),
        limits: |_| [1.4, 1.6],
    },
    Claim {
        sentence: "up to a hold share of 10% threads work almost perfectly side by side (at least 0.95 of their number)",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        about: |row| row.subject.threads > 1 && short(row.subject.hold_share()) && row.fits(),
        limits: |row| [ALMOST_PERFECT * f64::from(row.subject.threads), f64::INFINITY],
    },
    Claim {
        sentence: "from a hold share of 90% on one thread does better alone",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        about: |row| row.subject.threads > 1 && long(row.subject.hold_share()),
        limits: |_| [0.0, 1.0],
    },
    Claim {
        sentence: "with short holds two threads still do 1.5 times as much as one where each takes the lock every 3.1 µs",
        source: PRESHING,
        scenario: FREQUENCY_SWEEP,
        about: |row| row.subject.threads == 2 && SHORT_NS.contains(&row.subject.cycle_ns()),
        limits: |_| [1.5, f64::INFINITY],
    },
    Claim {
        sentence: "10 to 11 threads are enough for ten times as much (at least 9.5 times), at a hold share for which Amdahl’s law asks for 20",
        source: SUKHOVITSKY,
        scenario: POOL,
        about: |row| {
            (10..=11).contains(&row.subject.threads) && near(row.subject.hold_share(), 0.05)
        },
        limits: |_| [9.5, f64::INFINITY],
    },
];

/// Shares are kept in whole nanoseconds: they are what was asked for to within this.
const NEAR: f64 = 0.005;

fn near(share: f64, wanted: f64) -> bool {
    (share - wanted).abs() < NEAR
}

/// Up to a tenth of the time, and more than never.
fn short(share: f64) -> bool {
    share > 0.0 && share < 0.1 + NEAR
}

/// From nine tenths of the time on.
fn long(share: f64) -> bool {
    share > 0.9 - NEAR
}

/// A sentence for each claim of which cells speak that were measured.
pub(crate) fn claims(sections: &[Section<'_>]) -> Vec<String> {
    let mut said: Vec<String> = CLAIMS.iter().filter_map(|claim| judged(claim, sections)).collect();
    said.extend(pair(sections));
    said
}

fn judged(claim: &Claim, sections: &[Section<'_>]) -> Option<String> {
    let mut parts: [Vec<String>; 3] = Default::default();
    for section in
        sections.iter().filter(|section| section.scenario() == claim.scenario && section.excludes())
    {
        for row in section.rows.iter().filter(|row| (claim.about)(row)) {
            let Some((speedup, interval)) =
                row.contention.speedup.zip(row.contention.speedup_interval95)
            else {
                continue;
            };
            let part = match Stand::between(interval, (claim.limits)(row)) {
                Stand::Confirms => 0,
                Stand::Refutes => 1,
                Stand::Open => 2,
            };
            let asleep = if row.subject.work == Work::Sleep { ", asleep" } else { "" };
            let [low, high] = interval;
            let disturbed = if row.disturbed() { " !" } else { "" };
            parts[part].push(format!(
                "{}{asleep}, {} threads, {}: {} ({}–{}){disturbed}",
                section.name(),
                row.subject.threads,
                match claim.scenario {
                    FREQUENCY_SWEEP => time(row.subject.cycle_ns() as f64),
                    _ => share(row.subject.hold_share()),
                },
                ratio(speedup),
                digits(low),
                digits(high)
            ));
        }
    }
    let words = ["confirmed by", "refuted by", "left open by"];
    let found: Vec<String> = words
        .iter()
        .zip(&parts)
        .filter(|(_, cells)| !cells.is_empty())
        .map(|(word, cells)| format!("{word} {}", cells.join("; ")))
        .collect();
    (!found.is_empty())
        .then(|| format!("{} has it that {}: {}.", claim.source, claim.sentence, found.join(", ")))
}

/// What a lock cost in the article that nobody else wanted, and what one costs here.
fn pair(sections: &[Section<'_>]) -> Option<String> {
    const THERE_NS: f64 = 23.5;
    let section = sections
        .iter()
        .find(|section| section.scenario() == FREQUENCY_SWEEP && section.name() == "std-mutex")?;
    let here = section.rows.iter().filter_map(Row::predicted).map(|told| told.from.pair_ns);
    let mut here: Vec<f64> = here.filter(|ns| *ns > 0.0).collect();
    here.sort_by(f64::total_cmp);
    let here = *here.get(here.len() / 2)?;
    let of_that_order = (THERE_NS / 2.0..THERE_NS * 2.0).contains(&here);
    Some(format!(
        "{PRESHING} has it that a lock that nobody else wants costs 23.5 ns to take and leave, on another machine: {}, std-mutex takes {} here.",
        if of_that_order { "confirmed to within a factor of two" } else { "not so here" },
        time(here)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_in_whole_nanoseconds_are_what_was_asked_for() {
        let of = |hold_ns: f64| hold_ns / 66_667.0;
        assert!(short(of(6_667.0)) && short(of(3_333.0)) && !short(0.0) && !short(of(13_333.0)));
        assert!(long(of(60_000.0)) && long(of(66_667.0)) && !long(of(53_333.0)));
        assert!(near(of(33_333.0), 0.5) && !near(of(40_000.0), 0.5));
    }

    #[test]
    fn an_interval_confirms_refutes_or_leaves_open() {
        assert_eq!(Stand::between([1.45, 1.55], [1.4, 1.6]), Stand::Confirms);
        assert_eq!(Stand::between([1.2, 1.39], [1.4, 1.6]), Stand::Refutes);
        assert_eq!(Stand::between([1.61, 1.7], [1.4, 1.6]), Stand::Refutes);
        assert_eq!(Stand::between([1.3, 1.5], [1.4, 1.6]), Stand::Open);
        assert_eq!(Stand::between([0.8, 0.999], [0.0, 1.0]), Stand::Confirms);
        assert_eq!(
            Stand::between([0.8, 1.0], [0.0, 1.0]),
            Stand::Open,
            "as good as alone is not worse"
        );
        assert_eq!(Stand::between([1.0, 1.1], [0.0, 1.0]), Stand::Refutes);
        assert_eq!(Stand::between([1.6, 2.0], [1.5, f64::INFINITY]), Stand::Confirms);
    }
}

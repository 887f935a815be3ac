//! What the articles say of locks, each sentence held against the cells that can confirm or refute it.

use threadtoll_record::Work;

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
    /// A figure that is to lie between two limits.
    fn between([low, high]: [f64; 2], [least, most]: [f64; 2]) -> Stand {
        if low >= least && high <= most {
            Stand::Confirms
        } else if high < least || low > most {
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
    experiment: &'static str,
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
        experiment: "contention/hold-sweep",
        about: |row| row.subject.threads == 2 && near(row.subject.hold_share(), 0.5),
        limits: |_| [1.4, 1.6],
    },
    Claim {
        sentence: "up to a hold share of 10% threads work almost perfectly side by side (at least 0.95 of their number)",
        source: PRESHING,
        experiment: "contention/hold-sweep",
        about: |row| {
            row.subject.threads > 1
                && row.subject.hold_ns > 0
                && row.subject.hold_share() <= 0.1
                && row.fits()
        },
        limits: |row| [ALMOST_PERFECT * f64::from(row.subject.threads), f64::INFINITY],
    },
    Claim {
        sentence: "from a hold share of 90% on one thread does better alone",
        source: PRESHING,
        experiment: "contention/hold-sweep",
        about: |row| row.subject.threads > 1 && row.subject.hold_share() >= 0.9,
        limits: |_| [0.0, 1.0],
    },
    Claim {
        sentence: "with short holds two threads still do 1.5 times as much as one where each takes the lock every 3.1 µs",
        source: PRESHING,
        experiment: "contention/frequency-sweep",
        about: |row| row.subject.threads == 2 && SHORT_NS.contains(&row.subject.cycle_ns()),
        limits: |_| [1.5, f64::INFINITY],
    },
    Claim {
        sentence: "10 to 11 threads are enough for ten times as much (at least 9.5 times), at a hold share for which Amdahl’s law asks for 20",
        source: SUKHOVITSKY,
        experiment: "contention/pool",
        about: |row| (10..=11).contains(&row.subject.threads) && near(row.subject.hold_share(), 0.05),
        limits: |_| [9.5, f64::INFINITY],
    },
];

fn near(share: f64, wanted: f64) -> bool {
    (share - wanted).abs() < 0.005
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
        sections.iter().filter(|section| section.experiment() == claim.experiment && section.excludes())
    {
        for row in section.rows.iter().filter(|row| (claim.about)(row)) {
            let Some((speedup, interval)) = row.contention.speedup.zip(row.contention.speedup_interval95)
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
            parts[part].push(format!(
                "{}{asleep}, {} threads, {}: {} ({}–{})",
                section.name(),
                row.subject.threads,
                match claim.experiment {
                    "contention/frequency-sweep" => time(row.subject.cycle_ns() as f64),
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
    let section = sections.iter().find(|section| {
        section.experiment() == "contention/frequency-sweep" && section.name() == "std-mutex"
    })?;
    let here = section.rows.iter().filter_map(Row::predicted).map(|told| told.from.pair_ns);
    let here = here.filter(|ns| *ns > 0.0).min_by(f64::total_cmp)?;
    let of_that_order = (THERE_NS / 2.0..THERE_NS * 2.0).contains(&here);
    Some(format!(
        "{PRESHING} has it that a lock that nobody else wants costs 23.5 ns to take and leave, on another machine: {}, std-mutex takes {} here.",
        if of_that_order { "confirmed in its order of magnitude" } else { "not so here" },
        time(here)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_confirms_refutes_or_leaves_open() {
        assert_eq!(Stand::between([1.45, 1.55], [1.4, 1.6]), Stand::Confirms);
        assert_eq!(Stand::between([1.2, 1.39], [1.4, 1.6]), Stand::Refutes);
        assert_eq!(Stand::between([1.61, 1.7], [1.4, 1.6]), Stand::Refutes);
        assert_eq!(Stand::between([1.3, 1.5], [1.4, 1.6]), Stand::Open);
        assert_eq!(Stand::between([0.8, 1.0], [0.0, 1.0]), Stand::Confirms);
        assert_eq!(Stand::between([1.6, 2.0], [1.5, f64::INFINITY]), Stand::Confirms);
    }
}

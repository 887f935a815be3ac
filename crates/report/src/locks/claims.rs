//! Published claims about locks, tested against the cells that can confirm or refute them.
//!
//! Each claim names its experiment. No other file of this crate knows a scenario or a lock by name.

use std::collections::BTreeMap;

use threadtoll_record::{LockSubject, Work, upper_median};

use super::{Criteria, Row, Sweep};
use crate::units::{digits, ratio, share, time};

const PRESHING: &str = "J. Preshing (2011)";
const SUKHOVITSKY: &str = "A. Sukhovitsky";

const HOLD_SWEEP: &str = "hold-sweep";
const FREQUENCY_SWEEP: &str = "frequency-sweep";
const POOL: &str = "pool";

/// Result of testing a claim against one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimStatus {
    Confirmed,
    Refuted,
    /// The interval contains a limit.
    Open,
}

impl ClaimStatus {
    const ALL: [ClaimStatus; 3] = [ClaimStatus::Confirmed, ClaimStatus::Refuted, ClaimStatus::Open];

    /// Tests a figure that should be at least the first limit and below the second.
    fn of([low, high]: [f64; 2], [least, limit]: [f64; 2]) -> ClaimStatus {
        if low >= least && high < limit {
            ClaimStatus::Confirmed
        } else if high < least || low >= limit {
            ClaimStatus::Refuted
        } else {
            ClaimStatus::Open
        }
    }

    fn label(self) -> &'static str {
        match self {
            ClaimStatus::Confirmed => "confirmed by",
            ClaimStatus::Refuted => "refuted by",
            ClaimStatus::Open => "undecided for",
        }
    }
}

struct Claim {
    sentence: &'static str,
    source: &'static str,
    scenario: &'static str,
    /// Returns `true` for the cells to which the claim applies.
    applies: fn(&Row<'_>) -> bool,
    /// The limits between which the speed-up should lie.
    limits: fn(&Row<'_>) -> [f64; 2],
    /// The cell's property that the claim names.
    property: fn(&LockSubject) -> String,
}

fn hold_share(subject: &LockSubject) -> String {
    share(subject.hold_share())
}

fn interval(subject: &LockSubject) -> String {
    time(subject.cycle_ns() as f64)
}

/// "Almost perfect", as speed-up per thread.
const ALMOST_PERFECT: f64 = 0.95;
/// 3.1 µs, with tolerance for rounding to whole work units.
const SHORT_NS: std::ops::Range<u64> = 3_000..3_300;

const CLAIMS: &[Claim] = &[
    Claim {
        sentence: "two threads that hold the lock half of the time do 1.5 times the work of one (±0.1)",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| row.subject.threads == 2 && near(row.subject.hold_share(), 0.5),
        limits: |_| [1.4, 1.6],
        property: hold_share,
    },
    Claim {
        sentence: "up to a hold share of 10%, threads scale almost perfectly (speed-up at least 0.95 of their number)",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| {
            row.subject.threads > 1
                && short(row.subject.hold_share())
                && !row.marks().oversubscribed
        },
        limits: |row| [ALMOST_PERFECT * f64::from(row.subject.threads), f64::INFINITY],
        property: hold_share,
    },
    Claim {
        sentence: "above a hold share of 90%, one thread alone does better",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| row.subject.threads > 1 && long(row.subject.hold_share()),
        limits: |_| [0.0, 1.0],
        property: hold_share,
    },
    Claim {
        sentence: "with short holds, two threads that each take the lock every 3.1 µs do 1.5 times the work of one",
        source: PRESHING,
        scenario: FREQUENCY_SWEEP,
        applies: |row| row.subject.threads == 2 && SHORT_NS.contains(&row.subject.cycle_ns()),
        limits: |_| [1.5, f64::INFINITY],
        property: interval,
    },
    Claim {
        sentence: "10 to 11 threads give a speed-up of ten (at least 9.5), at a hold share for which Amdahl’s law asks for 20",
        source: SUKHOVITSKY,
        scenario: POOL,
        applies: |row| {
            (10..=11).contains(&row.subject.threads) && near(row.subject.hold_share(), 0.05)
        },
        limits: |_| [9.5, f64::INFINITY],
        property: hold_share,
    },
];

/// Tolerance of shares, which are kept in whole nanoseconds.
const TOLERANCE: f64 = 0.005;

fn near(share: f64, wanted: f64) -> bool {
    (share - wanted).abs() < TOLERANCE
}

fn short(share: f64) -> bool {
    share > 0.0 && share < 0.1 + TOLERANCE
}

fn long(share: f64) -> bool {
    share > 0.9 - TOLERANCE
}

/// The cost of locks in its experiment, and a sentence for each claim with a measured cell.
pub(super) fn claims(sweeps: &[Sweep<'_>]) -> Vec<String> {
    let mut findings: Vec<String> = uncontended(sweeps).into_iter().collect();
    findings.extend(CLAIMS.iter().filter_map(|claim| finding(claim, sweeps)));
    findings.extend(uncontended_claim(sweeps));
    findings
}

/// Returns `true` for one lock that admits one thread at a time: no counter, no stripes, no
/// readers.
fn is_exclusive(sweep: &Sweep<'_>) -> bool {
    let Criteria { lock, read_share, .. } = sweep.criteria;
    read_share.is_none() && !lock.starts_with("counter-") && !lock.starts_with("striped")
}

fn finding(claim: &Claim, sweeps: &[Sweep<'_>]) -> Option<String> {
    let mut cells: Vec<(ClaimStatus, String)> = Vec::new();
    for sweep in sweeps
        .iter()
        .filter(|sweep| sweep.criteria.scenario == claim.scenario && is_exclusive(sweep))
    {
        for row in sweep.rows.iter().filter(|row| (claim.applies)(row)) {
            let contention = row.contention;
            let Some((speedup, interval)) = contention.speedup.zip(contention.speedup_interval95)
            else {
                continue;
            };
            let status = ClaimStatus::of(interval.map(f64::from), (claim.limits)(row));
            cells.push((status, cell(claim, sweep, row, speedup.get(), interval.map(f64::from))));
        }
    }
    let statuses: Vec<String> = ClaimStatus::ALL
        .into_iter()
        .filter_map(|status| {
            let cells: Vec<&str> = cells
                .iter()
                .filter(|(other, _)| *other == status)
                .map(|(_, cell)| cell.as_str())
                .collect();
            (!cells.is_empty()).then(|| format!("{} {}", status.label(), cells.join("; ")))
        })
        .collect();
    (!statuses.is_empty()).then(|| {
        format!("{} claims: {}. Here: {}.", claim.source, claim.sentence, statuses.join(", "))
    })
}

fn cell(
    claim: &Claim,
    sweep: &Sweep<'_>,
    row: &Row<'_>,
    speedup: f64,
    [low, high]: [f64; 2],
) -> String {
    format!(
        "{}{}, {} threads, {}: {} ({}–{}){}",
        sweep.lock(),
        if row.subject.work == Work::Sleep { ", sleeping" } else { "" },
        row.subject.threads,
        (claim.property)(row.subject),
        ratio(speedup),
        digits(low),
        digits(high),
        if row.marks().disturbed { " !" } else { "" }
    )
}

fn pairs_ns<'s>(sweep: &'s Sweep<'_>) -> impl Iterator<Item = f64> + 's {
    let predictions = sweep.rows.iter().filter_map(Row::predicted);
    predictions.map(|prediction| prediction.from.pair_ns.get()).filter(|ns| *ns > 0.0)
}

fn uncontended(sweeps: &[Sweep<'_>]) -> Option<String> {
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    for sweep in sweeps.iter().filter(|sweep| sweep.criteria.scenario == FREQUENCY_SWEEP) {
        if let Some(pair_ns) = pairs_ns(sweep).min_by(f64::total_cmp) {
            costs.insert(sweep.lock(), pair_ns);
        }
    }
    if costs.is_empty() {
        return None;
    }
    let mut costs: Vec<(String, f64)> = costs.into_iter().collect();
    costs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let costs: Vec<String> =
        costs.iter().map(|(lock, ns)| format!("{lock} {}", time(*ns))).collect();
    Some(format!("Uncontended lock and unlock: {}.", costs.join(", ")))
}

fn uncontended_claim(sweeps: &[Sweep<'_>]) -> Option<String> {
    const CLAIMED_NS: f64 = 23.5;
    let sweep = sweeps.iter().find(|sweep| {
        sweep.criteria.scenario == FREQUENCY_SWEEP && sweep.criteria.lock == "std-mutex"
    })?;
    let mut calibrated: Vec<f64> = pairs_ns(sweep).collect();
    let here_ns = upper_median(&mut calibrated, f64::total_cmp)?;
    let confirmed = (CLAIMED_NS / 2.0..CLAIMED_NS * 2.0).contains(&here_ns);
    Some(format!(
        "{PRESHING} measured 23.5 ns for an uncontended lock and unlock on another machine; std-mutex takes {} here, {}.",
        time(here_ns),
        if confirmed { "within a factor of two" } else { "not within a factor of two" }
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
        assert_eq!(ClaimStatus::of([1.45, 1.55], [1.4, 1.6]), ClaimStatus::Confirmed);
        assert_eq!(ClaimStatus::of([1.2, 1.39], [1.4, 1.6]), ClaimStatus::Refuted);
        assert_eq!(ClaimStatus::of([1.61, 1.7], [1.4, 1.6]), ClaimStatus::Refuted);
        assert_eq!(ClaimStatus::of([1.3, 1.5], [1.4, 1.6]), ClaimStatus::Open);
        assert_eq!(ClaimStatus::of([0.8, 0.999], [0.0, 1.0]), ClaimStatus::Confirmed);
        assert_eq!(
            ClaimStatus::of([0.8, 1.0], [0.0, 1.0]),
            ClaimStatus::Open,
            "equal to one thread is not worse"
        );
        assert_eq!(ClaimStatus::of([1.0, 1.1], [0.0, 1.0]), ClaimStatus::Refuted);
        assert_eq!(ClaimStatus::of([1.6, 2.0], [1.5, f64::INFINITY]), ClaimStatus::Confirmed);
    }
}

//! Claims that articles make about locks, each held against the cells that can confirm or refute
//! it.

use threadtoll_record::{Work, upper_median};

use super::{Row, Sweep};
use crate::experiment::{FREQUENCY_SWEEP, HOLD_SWEEP, POOL};
use crate::units::{digits, ratio, share, time};

const PRESHING: &str = "J. Preshing (2011)";
const SUKHOVITSKY: &str = "A. Sukhovitsky";

/// Result of holding a claim against one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Confirmed,
    Refuted,
    /// The interval reaches over a limit.
    Open,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Confirmed, Verdict::Refuted, Verdict::Open];

    /// Judges a figure that should be at least the first limit and below the second.
    fn of([low, high]: [f64; 2], [least, limit]: [f64; 2]) -> Verdict {
        if low >= least && high < limit {
            Verdict::Confirmed
        } else if high < least || low >= limit {
            Verdict::Refuted
        } else {
            Verdict::Open
        }
    }

    fn label(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed by",
            Verdict::Refuted => "refuted by",
            Verdict::Open => "left open by",
        }
    }
}

struct Claim {
    sentence: &'static str,
    source: &'static str,
    scenario: &'static str,
    /// Returns `true` for the cells that the claim is about.
    applies: fn(&Row<'_>) -> bool,
    /// The limits between which the speed-up should lie.
    limits: fn(&Row<'_>) -> [f64; 2],
}

/// "Almost perfect", as a speed-up by the number of threads.
const ALMOST_PERFECT: f64 = 0.95;
/// An interval of 3.1 µs, give or take rounding to whole units.
const SHORT_NS: std::ops::Range<u64> = 3_000..3_300;

const CLAIMS: &[Claim] = &[
    Claim {
        sentence: "two threads that hold the lock for half of their time do 1.5 times as much as one (to within 0.1)",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| row.subject.threads == 2 && near(row.subject.hold_share(), 0.5),
        limits: |_| [1.4, 1.6],
    },
    Claim {
        sentence: "up to a hold share of 10% threads work almost perfectly side by side (at least 0.95 of their number)",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| {
            row.subject.threads > 1
                && short(row.subject.hold_share())
                && !row.marks().oversubscribed
        },
        limits: |row| [ALMOST_PERFECT * f64::from(row.subject.threads), f64::INFINITY],
    },
    Claim {
        sentence: "from a hold share of 90% on one thread does better alone",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| row.subject.threads > 1 && long(row.subject.hold_share()),
        limits: |_| [0.0, 1.0],
    },
    Claim {
        sentence: "with short holds two threads still do 1.5 times as much as one where each takes the lock every 3.1 µs",
        source: PRESHING,
        scenario: FREQUENCY_SWEEP,
        applies: |row| row.subject.threads == 2 && SHORT_NS.contains(&row.subject.cycle_ns()),
        limits: |_| [1.5, f64::INFINITY],
    },
    Claim {
        sentence: "10 to 11 threads are enough for ten times as much (at least 9.5 times), at a hold share for which Amdahl’s law asks for 20",
        source: SUKHOVITSKY,
        scenario: POOL,
        applies: |row| {
            (10..=11).contains(&row.subject.threads) && near(row.subject.hold_share(), 0.05)
        },
        limits: |_| [9.5, f64::INFINITY],
    },
];

/// Shares are kept in whole nanoseconds, and so differ by up to this from those asked for.
const TOLERANCE: f64 = 0.005;

fn near(share: f64, wanted: f64) -> bool {
    (share - wanted).abs() < TOLERANCE
}

/// Up to a tenth of the time, and more than never.
fn short(share: f64) -> bool {
    share > 0.0 && share < 0.1 + TOLERANCE
}

/// From nine tenths of the time on.
fn long(share: f64) -> bool {
    share > 0.9 - TOLERANCE
}

/// A sentence for each claim that any measured cell is about.
pub(super) fn claims(sweeps: &[Sweep<'_>]) -> Vec<String> {
    let mut findings: Vec<String> =
        CLAIMS.iter().filter_map(|claim| finding(claim, sweeps)).collect();
    findings.extend(uncontended(sweeps));
    findings
}

fn finding(claim: &Claim, sweeps: &[Sweep<'_>]) -> Option<String> {
    let mut cells: Vec<(Verdict, String)> = Vec::new();
    for sweep in
        sweeps.iter().filter(|sweep| sweep.scenario() == claim.scenario && sweep.is_exclusive())
    {
        for row in sweep.rows.iter().filter(|row| (claim.applies)(row)) {
            let contention = row.contention;
            let Some((speedup, interval)) = contention.speedup.zip(contention.speedup_interval95)
            else {
                continue;
            };
            let verdict = Verdict::of(interval.map(f64::from), (claim.limits)(row));
            cells.push((verdict, cell(claim, sweep, row, speedup.get(), interval.map(f64::from))));
        }
    }
    let verdicts: Vec<String> = Verdict::ALL
        .into_iter()
        .filter_map(|verdict| {
            let cells: Vec<&str> = cells
                .iter()
                .filter(|(other, _)| *other == verdict)
                .map(|(_, cell)| cell.as_str())
                .collect();
            (!cells.is_empty()).then(|| format!("{} {}", verdict.label(), cells.join("; ")))
        })
        .collect();
    (!verdicts.is_empty()).then(|| {
        format!("{} has it that {}: {}.", claim.source, claim.sentence, verdicts.join(", "))
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
        if row.subject.work == Work::Sleep { ", asleep" } else { "" },
        row.subject.threads,
        match claim.scenario {
            FREQUENCY_SWEEP => time(row.subject.cycle_ns() as f64),
            _ => share(row.subject.hold_share()),
        },
        ratio(speedup),
        digits(low),
        digits(high),
        if row.marks().disturbed { " !" } else { "" }
    )
}

/// The cost of an uncontended lock in the article, against the cost here.
fn uncontended(sweeps: &[Sweep<'_>]) -> Option<String> {
    const CLAIMED_NS: f64 = 23.5;
    let sweep = sweeps
        .iter()
        .find(|sweep| sweep.scenario() == FREQUENCY_SWEEP && sweep.lock() == "std-mutex")?;
    let calibrated = sweep
        .rows
        .iter()
        .filter_map(Row::predicted)
        .map(|prediction| prediction.from.pair_ns.get());
    let mut calibrated: Vec<f64> = calibrated.filter(|ns| *ns > 0.0).collect();
    let here_ns = upper_median(&mut calibrated, f64::total_cmp)?;
    let confirmed = (CLAIMED_NS / 2.0..CLAIMED_NS * 2.0).contains(&here_ns);
    Some(format!(
        "{PRESHING} has it that a lock that nobody else wants costs 23.5 ns to take and leave, on another machine: {}, std-mutex takes {} here.",
        if confirmed { "confirmed to within a factor of two" } else { "not so here" },
        time(here_ns)
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
        assert_eq!(Verdict::of([1.45, 1.55], [1.4, 1.6]), Verdict::Confirmed);
        assert_eq!(Verdict::of([1.2, 1.39], [1.4, 1.6]), Verdict::Refuted);
        assert_eq!(Verdict::of([1.61, 1.7], [1.4, 1.6]), Verdict::Refuted);
        assert_eq!(Verdict::of([1.3, 1.5], [1.4, 1.6]), Verdict::Open);
        assert_eq!(Verdict::of([0.8, 0.999], [0.0, 1.0]), Verdict::Confirmed);
        assert_eq!(
            Verdict::of([0.8, 1.0], [0.0, 1.0]),
            Verdict::Open,
            "as good as alone is not worse"
        );
        assert_eq!(Verdict::of([1.0, 1.1], [0.0, 1.0]), Verdict::Refuted);
        assert_eq!(Verdict::of([1.6, 2.0], [1.5, f64::INFINITY]), Verdict::Confirmed);
    }
}

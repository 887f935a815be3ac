//! A run on a simulated machine, with the truth about its cells.

use std::ops::Range;
use std::path::Path;

use threadtoll_lab::Registry;
use threadtoll_lab::queue::Queues;
use threadtoll_lab::simulated::{Kind, Regimes, SimulatedBackend};
use threadtoll_peers_rust::peers;
use threadtoll_record::compare::PAIRS;
use threadtoll_record::file::{self, Results};
use threadtoll_record::{
    Against, Cell, Contention, OneWay, OneWayMethod, Placement, PlannedCell, Record, RecordKind,
    Verdict,
};

use super::Scores;

/// A ratio this close to a limit is at the limit: no figure that is printed tells the two apart.
const AT_LIMIT: f64 = 0.0005;

/// Largest factor of a drifting machine.
const CREST: f64 = 1.6;

pub(super) struct Measured {
    results: Results,
    pub(super) records: Vec<Record>,
    backend: SimulatedBackend,
    pub(super) kind: Kind,
    /// Median of the noise of its blocks.
    noise: f64,
    /// The regime of which the findings are, if they say so.
    stated: Option<usize>,
}

/// Least and largest truth that a figure may show, in each regime: stamps may lengthen it by 1%,
/// and a drift by more.
#[derive(Clone, Debug)]
pub(super) struct Truths(pub(super) Vec<[f64; 2]>);

impl Truths {
    /// The interval holds one of them.
    pub(super) fn any_in(&self, [low, high]: [f64; 2]) -> bool {
        self.0.iter().any(|[least, most]| low <= *most && *least <= high)
    }
}

impl Measured {
    pub(super) fn read(path: &Path, seed: u64) -> Self {
        let results = file::read(path).unwrap();
        let registry = Registry { queues: Queues::with(peers()), ..Registry::default() };
        let kind = Kind::of(seed);
        Measured {
            records: results.records(),
            results,
            backend: SimulatedBackend::new(seed).with_registry(registry),
            kind,
            noise: kind.regimes.median_noise(),
            stated: None,
        }
    }

    /// Notes the reference's time in the regime of which the findings say they are.
    pub(super) fn state(&mut self, reference_ns: f64) {
        let truths = self.reference().map(|of| self.one_way(of, OneWayMethod::HalfRoundTrip));
        let off = |truth: &[f64; 2]| (truth[0] / reference_ns).ln().abs();
        let nearest = truths.and_then(|truths| {
            let all = truths.0.iter().enumerate();
            all.min_by(|a, b| off(a.1).total_cmp(&off(b.1))).map(|(regime, _)| regime)
        });
        self.stated = nearest;
    }

    /// The regimes of which findings may be.
    pub(super) fn stated(&self) -> Vec<usize> {
        self.stated.map_or_else(|| self.regimes().collect(), |regime| vec![regime])
    }

    pub(super) fn planned(&self, cell: &Cell) -> Option<&PlannedCell> {
        self.results.plan.groups.iter().flatten().find(|planned| planned.cell == *cell)
    }

    /// The record with this label at this placement.
    pub(super) fn named(&self, label: &str, placement: Placement) -> Option<&Record> {
        let named =
            |record: &&Record| record.cell.placement == placement && record.cell.label() == label;
        self.records.iter().find(named)
    }

    fn regimes(&self) -> Range<usize> {
        0..if matches!(self.kind.regimes, Regimes::Two { .. }) { 2 } else { 1 }
    }

    /// Time of a cell in a regime.
    fn truth(&self, cell: &Cell, regime: usize) -> f64 {
        self.backend.truth_ns(self.planned(cell).unwrap(), regime).unwrap()
    }

    /// One-way medians of a cell.
    pub(super) fn one_way(&self, cell: &Cell, method: OneWayMethod) -> Truths {
        let stamps = if method == OneWayMethod::Stamped { 1.01 } else { 1.0 };
        let truth = |regime| self.noise * self.truth(cell, regime) / 2.0;
        let range = |regime| [truth(regime), self.crest() * stamps * truth(regime)];
        Truths(self.regimes().map(range).collect())
    }

    /// Ratios of one cell's time to another's.
    pub(super) fn ratios(&self, cell: &Cell, base: &Cell) -> Vec<f64> {
        self.regimes().map(|regime| self.ratio(cell, base, regime)).collect()
    }

    fn ratio(&self, cell: &Cell, base: &Cell, regime: usize) -> f64 {
        self.truth(cell, regime) / self.truth(base, regime)
    }

    /// Work per second divided by that of another cell.
    fn work(&self, cell: &Cell, base: &Cell, regime: usize) -> f64 {
        let cycle = |cell: &Cell| cell.lock().map_or(1.0, |lock| lock.cycle_ns() as f64);
        cycle(cell) / cycle(base) / self.ratio(cell, base, regime)
    }

    /// Speed-ups of a lock's cell.
    pub(super) fn speedups(&self, cell: &Cell) -> Vec<f64> {
        let group = self.results.plan.groups.iter();
        let group = group.clone().find(|group| group.iter().any(|planned| planned.cell == *cell));
        let alone = group
            .into_iter()
            .flatten()
            .find(|planned| planned.cell.lock().is_some_and(|lock| lock.is_alone()));
        let Some(alone) = alone else { return Vec::new() };
        self.regimes().map(|regime| self.work(cell, &alone.cell, regime)).collect()
    }

    /// Factor by which the machine can be slower than its truth.
    pub(super) fn crest(&self) -> f64 {
        if matches!(self.kind.regimes, Regimes::Drifting { .. }) { CREST } else { 1.0 }
    }

    /// The reference of the first group that has one.
    pub(super) fn reference(&self) -> Option<&Cell> {
        let group = self.results.plan.groups.first()?;
        group.first().map(|planned| &planned.cell)
    }

    /// Times for all tasks of a pool, in nanoseconds.
    pub(super) fn totals(&self, cell: &Cell) -> Vec<f64> {
        let tasks = cell.lock().and_then(|lock| lock.tasks).unwrap_or(1) as f64;
        self.regimes().map(|regime| tasks * self.truth(cell, regime)).collect()
    }

    /// Judges the intervals and verdicts of all records.
    pub(super) fn judge_records(&self, scores: &mut Scores) {
        for record in &self.records {
            if record.regimes.is_empty() {
                let every: Vec<usize> = self.regimes().collect();
                let figures = (record.one_way.as_ref(), record.figures.contention());
                self.judge(record, figures, &record.against, &every, scores);
            }
            for (at, regime) in record.regimes.iter().enumerate() {
                let figures = (regime.one_way.as_ref(), regime.figures.contention());
                self.judge(record, figures, &regime.against, &[at.min(1)], scores);
            }
        }
    }

    /// Judges figures that are of one of these regimes.
    fn judge(
        &self,
        record: &Record,
        (one_way, contention): (Option<&OneWay>, Option<&Contention>),
        against: &[Against],
        regimes: &[usize],
        scores: &mut Scores,
    ) {
        let cell = &record.cell;
        let label = cell.label();
        let drifts = matches!(self.kind.regimes, Regimes::Drifting { .. });
        let told = |what: &str, interval: [f64; 2], truths: &[f64]| {
            let seed = &self.results.machine.cpu;
            format!("{seed}: {what} of {label}: {interval:?}, truth {truths:?}")
        };
        let interval = |what: &str, interval: [f64; 2], truths: Vec<f64>, scores: &mut Scores| {
            let [low, high] = interval;
            let held = truths.iter().any(|truth| low <= *truth && *truth <= high);
            scores.add(&format!("interval: {what}"), held, told(what, interval, &truths));
        };
        if let Some(found) = one_way.and_then(|one_way| one_way.p50_interval95)
            && !drifts
        {
            let all =
                self.one_way(cell, one_way.map_or(OneWayMethod::HalfRoundTrip, |of| of.method));
            let truths = Truths(regimes.iter().map(|regime| all.0[*regime]).collect());
            let found = found.map(f64::from);
            let told = told("one-way median", found, truths.0.as_flattened());
            scores.add("interval: one-way median", truths.any_in(found), told);
        }
        if let Some(found) = contention.and_then(|contention| contention.speedup_interval95) {
            let speedups = self.speedups(cell);
            let truth = |regime: &usize| speedups[*regime];
            let truths = regimes.iter().map(truth).collect();
            interval("speed-up", found.map(f64::from), truths, scores);
        }
        for against in against {
            let base = &against.cell;
            let of_times = match &*against.of {
                "one_way.p50" => true,
                "rate_per_s" if self.is_stream(base) => false,
                "work_per_s" => false,
                _ => continue,
            };
            let truth = |regime: &usize| match &*against.of {
                "one_way.p50" => self.ratio(cell, base, *regime),
                _ => self.work(cell, base, *regime),
            };
            let truths: Vec<f64> = regimes.iter().map(truth).collect();
            let found = against.interval95.map(f64::from);
            interval("ratio", found, truths.clone(), scores);
            if (against.blocks as usize) < PAIRS || against.verdict == Verdict::Open {
                continue;
            }
            let times = |truth: &f64| if of_times { *truth } else { 1.0 / truth };
            let (least, most) = (1.0 / 1.05, 1.05);
            let is_below = |times: f64, limit: f64| times < limit + AT_LIMIT;
            let is_above = |times: f64, limit: f64| times > limit - AT_LIMIT;
            let true_of = |times: f64| match against.verdict {
                Verdict::Better => is_below(times, least),
                Verdict::Worse => is_above(times, most),
                Verdict::Same => is_above(times, least) && is_below(times, most),
                Verdict::NoWorse => is_below(times, most),
                Verdict::NoBetter => is_above(times, least),
                Verdict::Open => true,
            };
            let held = truths.iter().map(times).any(true_of);
            let what = format!("verdict: {}", against.verdict);
            scores.add(&what, held, told(&format!("ratio to {}", base.label()), found, &truths));
        }
    }

    fn is_stream(&self, cell: &Cell) -> bool {
        let of_cell = |record: &&Record| record.cell == *cell;
        self.records.iter().find(of_cell).is_some_and(|record| record.kind == RecordKind::Stream)
    }
}

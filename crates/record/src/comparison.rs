//! Compares two runs cell by cell, and finds changes beyond noise.
//!
//! Figures of two runs differ even if nothing was changed. A record's intervals include the noise
//! between blocks and processes, but not the noise between runs. The intervals here include both
//! (see `noise`). They also cover the ratio relative to a control from the same groups, so that a
//! machine that has become slower as a whole does not count as a change. They widen with the number
//! of ratios (C. E. Bonferroni, 1936): if the code is unchanged, at most one comparison in twenty
//! reports a change of any cell.
//!
//! Figures are compared within one regime (a lasting state of the machine). The regimes of the two
//! runs are matched by the reference's times.

mod compatible;
mod noise;
mod observed;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::PAIRS;
use crate::file::Results;
use crate::{Cell, Experiment, Ns, Ratio, Text};

pub use compatible::Incompatible;

use noise::{Family, Noise};
use observed::{Key, Observation, Observed, Regimes};

const MAX_RATIO: f64 = 1e16;

/// The comparison of two runs, `base` and `new`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The run with which `new` is compared.
    pub base: ComparedRun,
    /// The run that is judged.
    pub new: ComparedRun,
    /// Limit in percent. A cell that is certainly worse by more than the limit is a regression.
    pub fail_above_percent: Ratio,
    /// Differences in the machine, the tool and the plan.
    pub differences: Vec<Difference>,
    /// Number of judged ratios. The more there are, the wider the intervals.
    pub judged: u32,
    /// Cells that are in both files, once per regime, in the order in which `new` was measured.
    pub cells: Vec<ComparedCell>,
    /// Cells that are only in `base`.
    pub only_in_base: Vec<LoneCell>,
    /// Cells that are only in `new`.
    pub only_in_new: Vec<LoneCell>,
}

/// One of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Id of the run.
    pub run: Text,
    /// Start of the run, RFC 3339 UTC.
    pub at: Text,
    /// Command line of the run, without the program's name.
    pub command: Vec<Text>,
    /// True if the run's machine is simulated.
    pub simulated: bool,
}

/// A property in which the two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name of the property: `kernel`, `governor`, `tool`, `--time`, …
    pub property: Text,
    /// The property's value in `base`; null if unknown or not given.
    pub base: Option<Text>,
    /// The property's value in `new`; null if unknown or not given.
    pub new: Option<Text>,
}

/// A cell that is in only one of the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoneCell {
    /// Experiment of the cell.
    pub experiment: Experiment,
    /// The cell.
    pub cell: Cell,
}

/// A cell that is in both runs, in one regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCell {
    /// Experiment of the cell.
    pub experiment: Experiment,
    /// The cell, as in `new`.
    pub cell: Cell,
    /// The compared figure.
    pub figure: Figure,
    /// One-way medians of the reference in both runs, in nanoseconds; null if the cell's threads
    /// only sleep.
    pub reference_ns: Option<[Ns; 2]>,
    /// The figure in `base`: the geometric mean over the groups that contain the cell.
    pub base: Ratio,
    /// The figure in `new`.
    pub new: Ratio,
    /// `new` divided by `base`; null if the figures cannot be compared.
    pub ratio: Option<Ratio>,
    /// Interval that covers the ratio, both as it is and relative to the control's change. With 95%
    /// confidence, the intervals of all judged ratios contain the true ratios.
    pub interval95: Option<[Ratio; 2]>,
    /// Control, whose change the interval takes into account; null if there is none.
    pub control: Option<Control>,
    /// Half the width of the interval, in percent; null if there is no verdict.
    pub noise_percent: Option<Ratio>,
    /// Number of groups that contain the cell, in `base` and in `new`.
    pub groups: [u32; 2],
    /// Number of processes that measured the cell in `base` and in `new`.
    pub processes: [u32; 2],
    /// Verdict on the interval.
    pub outcome: Outcome,
    /// Reason why there is no verdict; null if there is one.
    pub unjudged: Option<Unjudged>,
}

/// A cell whose change shows by how much the machine changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// Name of the control.
    pub name: Text,
    /// Figure of the control in `new`, divided by that in `base`.
    pub ratio: Ratio,
}

/// A compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Figure {
    /// One-way median in nanoseconds: less is better.
    #[serde(rename = "one_way.p50")]
    OneWayMedian,
    /// Messages per second, or callers per second who get an overloaded lock in time: more is
    /// better.
    #[serde(rename = "rate_per_s")]
    Rate,
    /// Median time in nanoseconds from when a message was due until it was received: less is
    /// better.
    #[serde(rename = "quantiles.p50")]
    DeliveryMedian,
    /// Time in nanoseconds from when a burst was due until its last message was received: less is
    /// better.
    #[serde(rename = "burst.last_ns")]
    BurstTime,
    /// Time in nanoseconds of a receive call: less is better.
    #[serde(rename = "calls.receive_ns")]
    ReceiveTime,
    /// Median time in nanoseconds of a send call into a flooded queue: less is better.
    #[serde(rename = "send_call.p50")]
    SendCallMedian,
    /// Speed-up over a single thread: more is better.
    #[serde(rename = "contention.speedup")]
    Speedup,
}

impl Figure {
    /// Returns `true` if a larger figure is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Figure::Rate | Figure::Speedup)
    }
}

/// Verdict on a ratio: the first variant that fits the ratio's interval. The limit is
/// `fail_above_percent`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole interval is worse by more than the limit.
    Regression,
    /// The whole interval is worse.
    Worse,
    /// The whole interval is better by more than the limit.
    Improvement,
    /// The whole interval is better.
    Better,
    /// The whole interval is within the limit in both directions.
    Same,
    /// The interval is inconclusive, or there is no interval.
    Open,
}

impl Outcome {
    /// For ratios of times, which are better if smaller.
    fn of([low, high]: [f64; 2], limit: f64) -> Self {
        if low > limit {
            Outcome::Regression
        } else if low > 1.0 {
            Outcome::Worse
        } else if high < 1.0 / limit {
            Outcome::Improvement
        } else if high < 1.0 {
            Outcome::Better
        } else if low >= 1.0 / limit && high <= limit {
            Outcome::Same
        } else {
            Outcome::Open
        }
    }

    /// Returns `true` if the cell has certainly changed.
    pub fn changed(self) -> bool {
        !matches!(self, Outcome::Same | Outcome::Open)
    }
}

/// Reason why a cell gets no verdict.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Unjudged {
    /// The cell is the reference, from which changes of the machine are inferred.
    Reference,
    /// The runs have no regime of the machine in common.
    OtherRegime,
    /// The medians were obtained by different methods.
    OtherMethod,
    /// One of the runs measured the cell in a single group and process, so the variance between
    /// processes is unknown.
    OneProcess,
    /// In one of the runs, this regime has fewer than 21 blocks of the cell.
    FewBlocks,
}

/// Compares two runs. A cell that is certainly worse by more than `fail_above_percent` is a
/// regression.
///
/// # Errors
///
/// If the machine, clock, grade or contents of the two files do not allow a comparison.
pub fn compare(
    base: &Results,
    new: &Results,
    fail_above_percent: f64,
) -> Result<Comparison, Incompatible> {
    compatible::check(base, new)?;
    let observed = [Observed::of(base), Observed::of(new)];
    let regimes = Regimes::of(observed.each_ref());
    let virtualised = base.machine.virtualised.is_some() || new.machine.virtualised.is_some();
    let comparing = Comparing { observed: &observed, regimes: &regimes, virtualised };
    let mut found: Vec<Compared<'_>> = Vec::new();
    for key in observed[1].order.iter().filter(|key| observed[0].has(key)) {
        found.extend(comparing.cell(key));
    }
    if found.is_empty() {
        return Err(Incompatible::NothingInCommon);
    }
    let judged = found.iter().filter(|compared| compared.unjudged.is_none()).count();
    let lone = |here: usize, there: usize| -> Vec<LoneCell> {
        let keys = observed[here].order.iter();
        keys.filter(|key| !observed[there].has(key))
            .map(|key| LoneCell {
                experiment: key.experiment.clone(),
                cell: observed[here].cell(key).clone(),
            })
            .collect()
    };
    let run = |results: &Results| ComparedRun {
        run: results.machine.run.clone(),
        at: results.machine.at.clone(),
        command: results.plan.command.clone(),
        simulated: results.machine.simulated,
    };
    let limit = 1.0 + fail_above_percent / 100.0;
    Ok(Comparison {
        base: run(base),
        new: run(new),
        fail_above_percent: fail_above_percent.into(),
        differences: compatible::differences(base, new),
        judged: judged as u32,
        cells: found.iter().map(|compared| compared.cell(judged, limit)).collect(),
        only_in_base: lone(0, 1),
        only_in_new: lone(1, 0),
    })
}

struct Comparing<'a> {
    observed: &'a [Observed; 2],
    regimes: &'a Regimes,
    virtualised: bool,
}

/// A cell in both runs and in one regime. The number of judged ratios, on which its interval
/// depends, is not known yet.
struct Compared<'a> {
    key: &'a Key,
    observed: &'a [Observed; 2],
    sides: [Side; 2],
    change: Option<LogChange>,
    unjudged: Option<Unjudged>,
}

/// The change of a figure, as the difference of its logarithms.
struct LogChange {
    log: f64,
    noise: Noise,
    /// Name of the control, and its change as a difference of logarithms.
    control: Option<(String, f64)>,
}

impl LogChange {
    /// Interval that covers the change, both as it is and relative to the control's change.
    fn bounds(&self, figure: Figure, judged: usize) -> [f64; 2] {
        let moved = self.control.as_ref().map_or(0.0, |(_, moved)| *moved);
        // If the machine's times rise by a factor, its rates fall by that factor.
        let relative = self.log + if figure == Figure::Rate { moved } else { -moved };
        let reach = self.noise.reach(judged.max(1));
        [self.log.min(relative) - reach, self.log.max(relative) + reach]
    }
}

struct Side {
    log: f64,
    reference_ns: Option<f64>,
    groups: u32,
    processes: u32,
}

impl Side {
    fn of(observations: &[&Observation]) -> Self {
        let mean = |figure: &dyn Fn(&Observation) -> f64| {
            observations.iter().map(|one| figure(one)).sum::<f64>() / observations.len() as f64
        };
        let processes = observations.iter().map(|one| one.processes).min();
        Side {
            log: mean(&|one| one.log),
            reference_ns: observations
                .iter()
                .all(|one| one.reference.is_some())
                .then(|| mean(&|one| one.reference.unwrap_or(0.0)).exp()),
            groups: observations.iter().map(|one| one.group).collect::<BTreeSet<_>>().len() as u32,
            processes: processes.unwrap_or(1),
        }
    }
}

impl<'a> Comparing<'a> {
    /// Compares the cell in each regime that both runs have. If there is none, returns the cell
    /// without a verdict, with each run's figure from the run's longest regime.
    fn cell(&self, key: &'a Key) -> Vec<Compared<'a>> {
        let by_regime = |run: usize| {
            let mut by_regime: BTreeMap<Option<usize>, Vec<&'a Observation>> = BTreeMap::new();
            for one in self.observed[run].of_cell(key) {
                by_regime.entry(self.regimes.index(one)).or_default().push(one);
            }
            by_regime
        };
        let [base, new] = [by_regime(0), by_regime(1)];
        let both: Vec<Compared<'a>> = base
            .iter()
            .filter_map(|(regime, base)| {
                Some(self.compared(key, *regime, [base.as_slice(), new.get(regime)?]))
            })
            .collect();
        if !both.is_empty() {
            return both;
        }
        let main = |by_regime: &BTreeMap<Option<usize>, Vec<&'a Observation>>| {
            let share = |all: &&Vec<&Observation>| all.iter().map(|one| one.share).sum::<f64>();
            let all = by_regime.values().max_by(|a, b| share(a).total_cmp(&share(b)));
            all.map(|all| Side::of(all))
        };
        let sides = main(&base).zip(main(&new));
        let unjudged = Some(Unjudged::OtherRegime);
        let compared = |(base, new)| Compared {
            key,
            observed: self.observed,
            sides: [base, new],
            change: None,
            unjudged,
        };
        sides.map(compared).into_iter().collect()
    }

    fn compared(
        &self,
        key: &'a Key,
        regime: Option<usize>,
        observations: [&[&Observation]; 2],
    ) -> Compared<'a> {
        let sides = observations.map(Side::of);
        let unjudged = self.unjudged(key, observations, &sides);
        let sleeps = observations.into_iter().flatten().any(|one| one.sleeps);
        let family = Family::of(self.observed[1].cell(key), sleeps, self.virtualised);
        let noise = noise::noise(observations, family);
        let control = self.control(key, regime, observations);
        let change = LogChange { log: sides[1].log - sides[0].log, noise, control };
        let change = (unjudged != Some(Unjudged::OtherMethod)).then_some(change);
        Compared { key, observed: self.observed, sides, change, unjudged }
    }

    fn unjudged(
        &self,
        key: &Key,
        observations: [&[&Observation]; 2],
        sides: &[Side; 2],
    ) -> Option<Unjudged> {
        let all = || observations.into_iter().flatten();
        let methods = observations.map(|run| run.first().map(|one| one.method));
        let once = |side: &Side| side.groups < 2 && side.processes < 2;
        let blocks = |run: &[&Observation]| run.iter().map(|one| one.blocks).sum::<usize>();
        if all().all(|one| one.is_reference) {
            Some(Unjudged::Reference)
        } else if methods[0] != methods[1] || all().any(|one| methods[0] != Some(one.method)) {
            Some(Unjudged::OtherMethod)
        } else if observations.into_iter().any(|run| blocks(run) < PAIRS) {
            Some(Unjudged::FewBlocks)
        } else if self.observed[1].figure(key) != Figure::Speedup && sides.iter().any(once) {
            Some(Unjudged::OneProcess)
        } else {
            None
        }
    }

    /// Name and change of the control, a cell of the same groups that shows how the machine
    /// changed. It is `futex` if the compared cell's threads sleep, and otherwise the reference. A
    /// speed-up needs no control, because it is already relative.
    fn control(
        &self,
        key: &Key,
        regime: Option<usize>,
        observations: [&[&Observation]; 2],
    ) -> Option<(String, f64)> {
        let cell = self.observed[1].cell(key);
        if cell.lock().is_some() {
            return None;
        }
        let change = |control: &Key| {
            let log = |run: usize| {
                let groups: BTreeSet<usize> =
                    observations[run].iter().map(|one| one.group).collect();
                let all = groups.iter().flat_map(|group| {
                    let all = self.observed[run].in_group(control, *group).iter();
                    all.filter(|one| self.regimes.index(one) == regime)
                });
                let all: Vec<&Observation> = all.collect();
                (!all.is_empty()).then(|| Side::of(&all).log)
            };
            Some(log(1)? - log(0)?)
        };
        self.observed[1].controls(key).find_map(|control| {
            let name = self.observed[1].cell(control).name().to_string();
            Some((name, change(control)?))
        })
    }
}

impl Compared<'_> {
    fn cell(&self, judged: usize, limit: f64) -> ComparedCell {
        let Compared { key, observed, sides: [base, new], change, unjudged } = self;
        let figure = observed[1].figure(key);
        let cell = observed[1].cell(key);
        let ratio = |log: f64| Ratio::from(significant(log.exp().min(MAX_RATIO)));
        let bounds = change.as_ref().map(|change| change.bounds(figure, judged));
        let outcome = match (bounds, unjudged) {
            (Some([low, high]), None) => {
                let times = if figure.more_is_better() { [-high, -low] } else { [low, high] };
                Outcome::of(times.map(f64::exp), limit)
            }
            _ => Outcome::Open,
        };
        let seen = |[low, high]: [f64; 2]| ((high - low) / 2.0).exp_m1().min(MAX_RATIO) * 100.0;
        let round = |percent: f64| (percent * 100.0).round() / 100.0;
        ComparedCell {
            experiment: key.experiment.clone(),
            cell: cell.clone(),
            figure,
            reference_ns: base
                .reference_ns
                .zip(new.reference_ns)
                .map(|(base, new)| [significant(base).into(), significant(new).into()]),
            base: ratio(base.log),
            new: ratio(new.log),
            ratio: change.as_ref().map(|change| ratio(change.log)),
            interval95: bounds.map(|bounds| bounds.map(ratio)),
            control: change
                .as_ref()
                .and_then(|change| change.control.as_ref())
                .map(|(name, moved)| Control { name: name.as_str().into(), ratio: ratio(*moved) }),
            noise_percent: bounds
                .filter(|_| unjudged.is_none())
                .map(|bounds| round(seen(bounds)).into()),
            groups: [base.groups, new.groups],
            processes: [base.processes, new.processes],
            outcome,
            unjudged: *unjudged,
        }
    }
}

fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_machine_explains_longer_times_and_lower_rates() {
        let one = Observation::fixture(0.0);
        let usual = Family::of(&crate::cell::tests::stream(1), false, false);
        let change = |log: f64| LogChange {
            log,
            noise: noise::noise([&[&one], &[&one]], usual),
            control: Some(("atomic-store".into(), 0.2)),
        };
        let undecided = |log: f64, figure: Figure| {
            let [low, high] = change(log).bounds(figure, 1);
            low < 0.0 && 0.0 < high
        };
        assert!(undecided(0.2, Figure::OneWayMedian) && undecided(-0.2, Figure::Rate));
        assert!(!undecided(-0.2, Figure::OneWayMedian) && !undecided(0.2, Figure::Rate));
    }

    #[test]
    fn outcomes_are_alike_in_both_directions() {
        let outcomes = [
            ([1.06, 1.2], Outcome::Regression, Outcome::Improvement),
            ([1.01, 1.2], Outcome::Worse, Outcome::Better),
            ([0.98, 1.03], Outcome::Same, Outcome::Same),
            ([0.98, 1.2], Outcome::Open, Outcome::Open),
        ];
        for ([low, high], slower, faster) in outcomes {
            assert_eq!(Outcome::of([low, high], 1.05), slower);
            assert_eq!(Outcome::of([1.0 / high, 1.0 / low], 1.05), faster);
        }
    }
}

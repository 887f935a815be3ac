//! Two-dimensional figures. Each format draws the kinds that it supports.

use std::collections::BTreeMap;

use threadtoll_record::{CpuPlace, Relation};

#[derive(Debug)]
pub(crate) enum Figure {
    SpeedUp(Map),
    Pairs(Pairs),
}

/// Speed-ups by number of threads (rows) and by hold share or time between acquisitions (columns).
#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// Quantity that varies along the columns.
    pub(crate) across: &'static str,
    pub(crate) threads: Vec<u32>,
    pub(crate) columns: Vec<String>,
    pub(crate) measured: Vec<Vec<Option<f64>>>,
    pub(crate) predicted: Vec<Vec<Option<f64>>>,
    /// Reasons why cells have no prediction.
    pub(crate) unpredicted: Vec<String>,
}

/// Activity of each thread at the beginning of a measured block.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) heading: String,
    pub(crate) sentence: String,
    pub(crate) length_ns: u64,
    /// Stretches of each thread, in order and without gaps. Of very many threads, only the first
    /// ones are included.
    pub(crate) threads: Vec<Vec<Stretch>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) state: State,
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Working,
    Waiting,
    Holding,
}

/// Number of callers who wait for an overloaded lock, over time.
#[derive(Debug)]
pub(crate) struct QueueOverTime {
    pub(crate) heading: String,
    pub(crate) sentence: String,
    /// Begin and end of the overload.
    pub(crate) overload_ns: [f64; 2],
    /// One for each rule for those who wait.
    pub(crate) curves: Vec<QueueCurve>,
}

/// Pairs of time in nanoseconds and number of callers.
#[derive(Debug)]
pub(crate) struct QueueCurve {
    pub(crate) name: String,
    pub(crate) measured: Vec<(f64, f64)>,
    /// Empty if there is no prediction.
    pub(crate) predicted: Vec<(f64, f64)>,
}

/// One-way medians of a mechanism by pair of CPUs.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) label: String,
    /// The CPUs, sorted by node, last-level cache and core.
    pub(crate) cpus: Vec<u32>,
    pub(crate) places: BTreeMap<u32, CpuPlace>,
    /// In nanoseconds, by the CPUs of the first and the second thread.
    pub(crate) values: BTreeMap<(u32, u32), f64>,
    pub(crate) intervals: BTreeMap<(u32, u32), [f64; 2]>,
    pub(crate) relations: BTreeMap<(u32, u32), Relation>,
}

impl Pairs {
    /// The median of the pair (`a`, `b`) or, if there is none, of (`b`, `a`).
    pub(crate) fn value(&self, a: u32, b: u32) -> Option<f64> {
        self.values.get(&(a, b)).or_else(|| self.values.get(&(b, a))).copied()
    }

    /// Width of the interval of [`Pairs::value`], as a share of that value.
    pub(crate) fn spread(&self, a: u32, b: u32) -> Option<f64> {
        let pair = if self.values.contains_key(&(a, b)) { (a, b) } else { (b, a) };
        let [low, high] = *self.intervals.get(&pair)?;
        Some((high - low) / self.values.get(&pair)?).filter(|spread| spread.is_finite())
    }

    pub(crate) fn by_relation(&self) -> BTreeMap<Relation, Vec<f64>> {
        let mut by_relation: BTreeMap<Relation, Vec<f64>> = BTreeMap::new();
        for (pair, p50) in &self.values {
            if let Some(relation) = self.relations.get(pair) {
                by_relation.entry(*relation).or_default().push(*p50);
            }
        }
        by_relation.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        by_relation
    }
}

//! Options of the command line that choose what a scenario measures.

use std::sync::Arc;

use threadtoll_record::{Carry, Lose, Scale};

use super::Trace;

/// Command-line overrides; `None` keeps the scenario's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Largest batch; 1 for single messages.
    pub batch: Option<u64>,
    /// Sender counts.
    pub senders: Option<Vec<u32>>,
    /// Capacities of bounded queues.
    pub capacities: Option<Vec<u64>>,
    /// Measuring time per cell, in nanoseconds.
    pub time_ns: Option<u64>,
    /// Stamped samples per cell.
    pub samples: Option<u64>,
    /// Times at which messages are sent.
    pub load: LoadChoice,
}

/// Requested loads. Lists are multiplied out; `None` keeps the scenario's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadChoice {
    /// Distribution of the arrivals.
    pub arrivals: Option<ArrivalsChoice>,
    /// Factor by which the times of a file are multiplied.
    pub scale: Option<Scale>,
    /// Messages per second.
    pub rates: Option<Vec<u64>>,
    /// Messages that are due at the same time.
    pub bursts: Option<Vec<u64>>,
    /// Times from one burst to the next, in nanoseconds.
    pub gaps_ns: Option<Vec<u64>>,
    /// Messages that the queue holds.
    pub depths: Option<Vec<u64>>,
    /// Receivers that share the messages.
    pub receivers: Option<Vec<u64>>,
    /// Senders of important messages.
    pub important: Option<u64>,
    /// Messages that may be lost.
    pub lose: Option<Lose>,
    /// Most CPU time of all ends, as a share of one CPU.
    pub budget_cpu: Option<f64>,
    /// Bytes of a message.
    pub payloads: Option<Vec<u64>>,
    /// Ways to carry them.
    pub carries: Option<Vec<Carry>>,
}

/// Requested arrivals.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalsChoice {
    /// At equal distances.
    Uniform,
    /// At exponential distances.
    Poisson,
    /// From a file.
    File(Arc<Trace>),
}

/// An option for loads, which not every scenario has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOption {
    /// `--arrivals`.
    Arrivals,
    /// `--scale`.
    Scale,
    /// `--rate`.
    Rate,
    /// `--burst`.
    Burst,
    /// `--gap`.
    Gap,
    /// `--depth`.
    Depth,
    /// `--receivers`.
    Receivers,
    /// `--important`.
    Important,
    /// `--lose`.
    Lose,
    /// `--budget-cpu`.
    BudgetCpu,
    /// `--payload`.
    Payload,
    /// `--carry`.
    Carry,
}

impl LoadOption {
    pub(super) const ALL: [LoadOption; 12] = [
        LoadOption::Arrivals,
        LoadOption::Scale,
        LoadOption::Rate,
        LoadOption::Burst,
        LoadOption::Gap,
        LoadOption::Depth,
        LoadOption::Receivers,
        LoadOption::Important,
        LoadOption::Lose,
        LoadOption::BudgetCpu,
        LoadOption::Payload,
        LoadOption::Carry,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            LoadOption::Arrivals => "--arrivals",
            LoadOption::Scale => "--scale",
            LoadOption::Rate => "--rate",
            LoadOption::Burst => "--burst",
            LoadOption::Gap => "--gap",
            LoadOption::Depth => "--depth",
            LoadOption::Receivers => "--receivers",
            LoadOption::Important => "--important",
            LoadOption::Lose => "--lose",
            LoadOption::BudgetCpu => "--budget-cpu",
            LoadOption::Payload => "--payload",
            LoadOption::Carry => "--carry",
        }
    }

    pub(super) fn is_given(self, load: &LoadChoice) -> bool {
        match self {
            LoadOption::Arrivals => load.arrivals.is_some(),
            LoadOption::Scale => load.scale.is_some(),
            LoadOption::Rate => load.rates.is_some(),
            LoadOption::Burst => load.bursts.is_some(),
            LoadOption::Gap => load.gaps_ns.is_some(),
            LoadOption::Depth => load.depths.is_some(),
            LoadOption::Receivers => load.receivers.is_some(),
            LoadOption::Important => load.important.is_some(),
            LoadOption::Lose => load.lose.is_some(),
            LoadOption::BudgetCpu => load.budget_cpu.is_some(),
            LoadOption::Payload => load.payloads.is_some(),
            LoadOption::Carry => load.carries.is_some(),
        }
    }
}

/// Reason why options do not suit a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable {
    /// The reason.
    pub why: String,
    /// Advice.
    pub hint: &'static str,
}

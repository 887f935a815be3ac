//! What a result is.
//!
//! One file format serves every experiment: JSON Lines whose first line is the [`Machine`], whose
//! second is the [`Plan`], and whose further lines are [`Block`]s as they end and the [`Record`]s
//! of a group when it is complete. This crate holds those types, reads and writes them
//! ([`file`](mod@file)), keeps distributions ([`Histogram`]) and folds the blocks of a group into
//! its records ([`fold()`]). What a model said before a block was measured is a line too
//! ([`CellPrediction`]). A [`Prediction`] is no measurement and stands in no such file. It measures
//! nothing and prints nothing.

mod block;
mod cell;
mod class;
pub mod compare;
mod contention;
mod experiment;
pub mod file;
mod fit;
pub mod fold;
mod histogram;
mod line;
mod machine;
mod plan;
mod prediction;
mod record;
pub mod resample;
pub mod schema;
mod time;

pub use block::{Block, BlockCost, BlockKind, Cause, Disturbance, OneWayBlock, Worst};
pub use cell::{
    Cell, Layout, Neighbour, Origin, Pause, Placement, QueueSubject, Relation, Subject, Wait,
    WaitFamily,
};
pub use class::Class;
pub use contention::{
    Calibrated, CellPrediction, Contention, ContentionBlock, ContentionSeen, LockSubject, NO_LOCK,
    Share, Spread, Work,
};
pub use experiment::{Experiment, Kind};
pub use fit::{Fit, FittedRow};
pub use fold::fold;
pub use histogram::{Histogram, HistogramError};
pub use line::Line;
pub use machine::{ClockFacts, ClockSource, CpuNoise, CpuPlace, Grade, Machine, Warning};
pub use plan::{Budget, Folded, MAX_ROUNDS, Plan, PlannedCell, Refused};
pub use prediction::{Document, PredictedChange, PredictedPolicy, PredictedRow, Prediction};
pub use record::{
    Against, Cost, DisturbanceSummary, Intervals, LoopKind, OneWay, OneWayMethod, Over, Quantiles,
    Record, RecordKind, Unit, Verdict,
};
pub use time::{run_id, timestamp};

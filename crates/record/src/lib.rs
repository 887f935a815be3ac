//! Data model and file format of results.
//!
//! All experiments share one file format: JSON Lines. The first line is the [`Machine`], the second
//! the [`Plan`]. The other lines are:
//!
//! - [`Block`]: a measurement, written as soon as it ends;
//! - [`Record`]: the result of a cell, written when the cell's group is complete;
//! - [`CellPrediction`]: a prediction, written before its cell is measured;
//! - [`Timeline`]: the first acquisitions of a lock in a block;
//! - [`Strike`]: a cell that failed, so that its row was given up.
//!
//! A [`Profile`] has a file of its own: the machine, the plan, and at most one profile per second.
//! The states of the threads over time ([`profile::Trace`]) are in a separate line before their
//! profile. A [`Prediction`] is printed, and never part of a file.
//!
//! This crate defines these types, reads and writes them ([`file`](mod@file)), stores distributions
//! ([`Histogram`]) and folds the blocks of a group into records ([`fold()`]). It neither measures
//! nor prints.
//!
//! A *cell* is one mechanism, queue or lock in one setting. The cells of a *group* are measured in
//! turn: each *round* has one or two blocks of each cell. Cells are compared with the group's first
//! cell, its *reference*. The cells of a mechanism, queue or lock that wait in the same way form a
//! *row* of the tables.

mod block;
mod build;
mod burst;
mod by_kind;
mod calls;
mod cell;
mod cell_prediction;
mod checksum;
mod class;
pub mod compare;
pub mod comparison;
mod contention;
mod count;
mod experiment;
mod figure;
pub mod file;
mod fit;
pub mod fold;
mod funnel;
mod hand_offs;
mod histogram;
mod idle;
mod label;
pub mod limits;
mod line;
mod load;
mod lock;
mod lost;
mod machine;
mod measured_lock;
mod open_loop;
mod overload;
mod own_program;
mod placement;
mod plan;
mod pool;
mod prediction;
pub mod profile;
mod quantile;
mod quantiles;
mod queue;
mod record;
mod rounding;
pub mod schema;
mod share;
mod sharing;
mod strike;
mod subject;
mod text;
mod time;
mod timeline;
mod warning;

pub use block::{Block, BlockCost, BlockKind, Cause, Disturbance, Worst};
pub use build::Build;
pub use burst::{Burst, BurstBlock};
pub use by_kind::{BlockFigures, Figures};
pub use calls::{Calls, CallsBlock, DepthFigures, ResidentBytes};
pub use cell::{Cell, Layout, Neighbour, Pause};
pub use cell_prediction::{Calibrated, CellPrediction, Refusal};
pub use checksum::Checksum;
pub use class::Class;
pub use comparison::Comparison;
pub use contention::{Contention, ContentionBlock, ContentionSeen};
pub use count::Count;
pub use experiment::{Experiment, Kind};
pub use figure::{Fraction, Ns, PerSecond, Ratio, Seconds, SignedNs, SignedRatio};
pub use fit::{Fit, FittedRow};
pub use fold::fold;
pub use funnel::{Funnel, FunnelBlock};
pub use hand_offs::{HandOffBlockFigures, HandOffFigures, OneWayBlock};
pub use histogram::{Histogram, HistogramError};
pub use idle::{Idle, IdleBlock, IdleState, IdleStateBlock};
pub use line::Line;
pub use load::{Arrivals, Carry, Graph, Load, Lose, Scale, duration};
pub use lock::{LockSubject, NO_LOCK, Spread, Work};
pub use lost::Lost;
pub use machine::{ClockFacts, ClockSource, CpuNoise, CpuPlace, Grade, Machine};
pub use measured_lock::{MeasuredBy, MeasuredLock};
pub use open_loop::{Lateness, OpenLoop, OpenLoopBlock, OpenLoopBlockFigures, OpenLoopFigures};
pub use overload::{
    CalibratedOverload, Overload, OverloadBlock, OverloadFigures, PredictedOverload,
};
pub use own_program::OwnProgram;
pub use placement::{Placement, Relation};
pub use plan::{Budget, Folded, MAX_PROCESSES, MAX_ROUNDS, Plan, PlannedCell, Refused, Repeat};
pub use pool::{PoolPrediction, PoolRow};
pub use prediction::{Document, PredictedChange, PredictedPolicy, PredictedRow, Prediction};
pub use profile::Profile;
pub use quantiles::Quantiles;
pub use queue::{Origin, QueueSubject, Wait, WaitFamily};
pub use record::{
    Against, Cost, DisturbanceSummary, Intervals, LoopKind, OneWay, OneWayMethod, Over, Record,
    RecordKind, Regime, Unit, Verdict,
};
pub use share::Share;
pub use sharing::{Workers, WorkersBlock};
pub use strike::Strike;
pub use subject::Subject;
pub use text::Text;
pub use time::{run_id, timestamp, unix_ns};
pub use timeline::Timeline;
pub use warning::{Warning, WarningForm};

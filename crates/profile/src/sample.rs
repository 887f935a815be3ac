//! Takes samples at random times, within a budget.
//!
//! One thread does nothing but take samples. At random times, drawn beforehand, it reads the words
//! of all known locks and the system calls of a random subset of threads, and sends them to the
//! thread that folds them. Nothing that a sample shows affects the time of the next one. So the
//! share of samples that see a state is an unbiased estimate of the share of time spent in that
//! state.

mod budget;
mod chunk;
mod churn;
mod promptness;
mod sampler;
mod schedule;
mod watch;

pub use budget::{Budget, Effort, Spent};
pub use chunk::{Burst, Chunk, Listing, Reason, ThreadRead, Tick, WordRead};
pub use sampler::{Order, Report, Sampler, StretchReport};
pub use schedule::{Due, Schedule};
pub use watch::{Span, Watch};

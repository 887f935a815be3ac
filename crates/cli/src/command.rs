//! The commands, one per file. To add one, add a file here, its `mod` line, and a line in
//! [`COMMANDS`].

mod check;
mod compare;
mod contention;
mod latency;
mod list;
mod matrix;
mod predict;
mod profile;
mod queue;
mod report;
mod schema;
mod survey;

use crate::entry::Entry;

/// All commands, in the order in which the help lists them.
pub(crate) static COMMANDS: &[Entry] = &[
    Entry::of::<check::Check>(),
    Entry::of::<survey::Survey>(),
    Entry::of::<latency::Latency>(),
    Entry::of::<matrix::Matrix>(),
    Entry::of::<queue::Queue>(),
    Entry::of::<contention::Contention>(),
    Entry::of::<predict::Predict>(),
    Entry::of::<profile::Profile>(),
    Entry::of::<report::Report>(),
    Entry::of::<compare::Compare>(),
    Entry::of::<list::List>(),
    Entry::of::<schema::Schema>(),
];

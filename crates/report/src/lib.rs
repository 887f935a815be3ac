//! Renders records and predictions.
//!
//! [`text`] is for the terminal, [`html`] for the browser: one page that works offline. Both take
//! what a file holds, and a file may come from anywhere: texts are stripped of what would steer the
//! reader's terminal or page, and no figure, however odd or absent, makes rendering fail. Nothing
//! is measured here and nothing is written to disk.

mod claims;
mod class;
mod clean;
mod cost;
mod disturbance;
mod experiment;
mod findings;
pub mod html;
mod label;
mod locks;
mod machine;
mod matrix;
mod merge;
pub mod published;
mod queues;
mod rows;
pub mod text;
pub mod units;

pub use clean::clean;
pub use label::cpus;

//! Renders records, predictions and profiles.
//!
//! A [`Report`] contains the tables and findings of a result file, and a [`Format`] renders it:
//! [`text`] for the terminal, [`html`] for the browser. Result files are not trusted: characters
//! that would affect the reader's terminal or page are removed from texts, and odd or missing
//! figures do not make rendering fail. This crate measures nothing and writes no files.
//!
//! [`text::comparison()`] and [`markdown()`] render a comparison of two runs. A profile is rendered
//! as text by [`text::profile()`], as a part of [`html::page()`], as [`folded()`] stacks and as
//! [`openmetrics()`].

mod answer;
mod claims;
mod class;
mod clean;
mod comparison;
mod cost;
mod csv;
mod disturbance;
mod figure;
mod findings;
mod fit;
mod folded;
mod format;
mod label;
mod ladder;
mod left_out;
mod locks;
mod machine;
mod markdown;
mod matrix;
mod merge;
mod openmetrics;
mod overload;
mod own_program;
mod place;
mod pool;
mod prediction;
mod processes;
mod profile;
mod queues;
mod quotient;
mod regimes;
mod report;
mod scale;
mod screen;
mod sentences;
mod table;
mod units;

pub use clean::clean;
pub use csv::matrix_csv;
pub use folded::folded;
pub use format::Format;
pub use label::{cpus, plural};
pub use left_out::left_out;
pub use markdown::markdown;
pub use openmetrics::{OpenMetrics, openmetrics};
pub use queues::no_recommendation;
pub use report::Report;
pub use sentences::{Sentence, sentences};

/// Declares the modules of the output formats, and [`FORMATS`] with their default settings.
macro_rules! formats {
    ($($file:ident: $settings:expr),+ $(,)?) => {
        $(pub mod $file;)+

        /// All output formats, with their default settings.
        pub static FORMATS: &[&dyn Format] = &[$(&$settings),+];
    };
}

formats! {
    text: text::Text { style: text::Style { color: false, width: None } },
    html: html::Html,
}

//! Views: the figures by which a scenario's rows are compared, and their columns.

use std::fmt;

use threadtoll_record::{Record, file::Results};

use super::Comparison;
use super::columns::Column;
use crate::screen::Picture;
use crate::sentences::Sentence;
use crate::table::Section;

/// Sentences that answer a scenario's question, and a picture that shows the answer.
pub(super) type Shown = (Vec<Sentence>, Option<Picture>);

#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(super) scenario: &'static str,
    /// The question that the scenario's screen answers.
    pub(super) question: &'static str,
    /// Explains the scenario; continues a sentence that begins with the scenario's name.
    pub(super) sentence: &'static str,
    /// True if the main figure is a rate. Otherwise it is a time.
    pub(super) rates: bool,
    /// True if paired ratios are ratios of the main figure, and therefore count in the ranking.
    pub(super) ratios_decide: bool,
    /// True if the record contains the cost of a message.
    pub(super) costs: bool,
    pub(crate) axis: &'static str,
    /// Name of the main figures in a chart's caption.
    pub(crate) caption: &'static str,
    /// Main figure as a time in nanoseconds. Rows are sorted by it.
    pub(super) ns: fn(&Record) -> Option<f64>,
    pub(super) interval: fn(&Record) -> Option<[f64; 2]>,
    pub(super) text: fn(&Record) -> String,
    pub(super) columns: for<'r, 'c, 'a> fn(&'r Results, &'c Comparison<'a>) -> Vec<Column<'c, 'a>>,
    /// Figures over all loads.
    pub(super) summary: fn(&Results, &[&Comparison<'_>]) -> Vec<Section>,
    pub(super) screen: fn(&Results, &[&Comparison<'_>]) -> Shown,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.caption)
    }
}

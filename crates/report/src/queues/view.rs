//! Views: the figures by which the rows of a scenario are compared, and their columns.

use std::fmt;

use threadtoll_record::{Record, file::Results};

use super::Comparison;
use super::columns::Column;
use crate::screen::Picture;
use crate::sentences::Sentence;
use crate::table::Section;

/// The sentences that answer a scenario's question, and the picture that shows the answer.
pub(super) type Shown = (Vec<Sentence>, Option<Picture>);

/// The view of a scenario.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(super) scenario: &'static str,
    /// The question that the scenario's screen answers.
    pub(super) question: &'static str,
    /// Explanation of the scenario; it continues a sentence that begins with the scenario's name.
    pub(super) sentence: &'static str,
    /// True if the main figure is a rate, false if it is a time.
    pub(super) rates: bool,
    /// True if paired ratios count in the ranking, too, because they are ratios of the main figure.
    pub(super) ratios_decide: bool,
    /// True if the record contains the cost of a message.
    pub(super) costs: bool,
    /// Title of the main figure's axis.
    pub(crate) axis: &'static str,
    /// Name of the main figures in a chart's caption.
    pub(crate) caption: &'static str,
    /// Main figure as a time, by which rows are sorted.
    pub(super) ns: fn(&Record) -> Option<f64>,
    /// 95% interval of the main figure.
    pub(super) interval: fn(&Record) -> Option<[f64; 2]>,
    /// Main figure as text.
    pub(super) text: fn(&Record) -> String,
    pub(super) columns: for<'r, 'c, 'a> fn(&'r Results, &'c Comparison<'a>) -> Vec<Column<'c, 'a>>,
    /// Figures over all loads.
    pub(super) summary: fn(&Results, &[&Comparison<'_>]) -> Vec<Section>,
    /// Returns the sentences that answer the question, and the picture that shows the answer.
    pub(super) screen: fn(&Results, &[&Comparison<'_>]) -> Shown,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.caption)
    }
}

//! Views: the figures by which the rows of a scenario are compared, and their columns.

use std::fmt;

use threadtoll_record::{Record, file::Results};

use super::Comparison;
use super::columns::Column;
use crate::screen::Picture;
use crate::sentences::Sentence;
use crate::table::Section;

/// The answer of a scenario, and the picture that shows it.
pub(super) type Shown = (Vec<Sentence>, Option<Picture>);

/// The view of a scenario.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(super) scenario: &'static str,
    /// The question that its screen answers.
    pub(super) question: &'static str,
    /// The rest of a sentence that begins with the name of the scenario.
    pub(super) sentence: &'static str,
    /// True if the main figure is a rate, false if it is a time.
    pub(super) rates: bool,
    /// True if ratios may lower a row's place, because they are ratios of the main figure.
    pub(super) ratios_decide: bool,
    /// True if the costs of a message are those in the record.
    pub(super) costs: bool,
    /// Title of the main figure's axis.
    pub(crate) axis: &'static str,
    /// The main figures, as they are called in a chart's caption.
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
    /// The answer, and the picture that shows it.
    pub(super) screen: fn(&Results, &[&Comparison<'_>]) -> Shown,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.caption)
    }
}

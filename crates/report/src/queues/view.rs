//! Views: the figures by which the rows of a scenario are compared, and their columns.

use std::fmt;

use threadtoll_record::{Record, file::Results};

use super::columns::Column;
use super::{
    Comparison, ask_reply, burst, depth, flood, for_me, funnel, night_watch, open_loop, payload,
    stream, workers,
};
use crate::table::Section;

/// The view of one kind of scenario.
#[derive(Clone, Copy)]
pub(crate) struct View {
    /// Returns `true` if it shows this record.
    pub(super) shows: fn(&Record) -> bool,
    /// The rest of a sentence that begins with the names of its scenarios.
    pub(super) sentence: &'static str,
    /// True if the main figure is a rate, false if it is a time.
    pub(super) rates: bool,
    /// True if ratios can take a place away: they are of the main figure.
    pub(super) ratios_decide: bool,
    /// True if the costs of a message are those of the record.
    pub(super) costs: bool,
    /// Title of the main figure's axis.
    pub(crate) axis: &'static str,
    /// Main figures, as the caption of a chart names them.
    pub(crate) caption: &'static str,
    /// Main figure as a time, by which rows are sorted.
    pub(super) ns: fn(&Record) -> Option<f64>,
    /// 95% interval of the main figure.
    pub(super) interval: fn(&Record) -> Option<[f64; 2]>,
    /// Main figure in words.
    pub(super) text: fn(&Record) -> String,
    pub(super) columns: for<'r, 'c, 'a> fn(&'r Results, &'c Comparison<'a>) -> Vec<Column<'c, 'a>>,
    /// Details of a mark in a chart, one per line.
    pub(super) lines: fn(&Record) -> Vec<String>,
    /// Figures over all loads.
    pub(super) summary: fn(&Results, &[&Comparison<'_>]) -> Vec<Section>,
}

/// All views, in the order of tables.
pub(super) static VIEWS: &[View] = &[
    ask_reply::VIEW,
    stream::VIEW,
    open_loop::VIEW,
    burst::VIEW,
    depth::VIEW,
    workers::VIEW,
    flood::VIEW,
    funnel::VIEW,
    night_watch::VIEW,
    payload::VIEW,
    for_me::VIEW,
];

impl View {
    pub(super) fn of(record: &Record) -> Option<&'static View> {
        VIEWS.iter().find(|view| (view.shows)(record))
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.caption)
    }
}

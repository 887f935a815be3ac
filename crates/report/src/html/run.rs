//! One result file, with the data for its charts.

use threadtoll_record::{Record, file::Results};

use crate::clean::clean;
use crate::ladder::{self, Row};
use crate::queues::{self, Comparison};
use crate::report::Report;
use crate::table::Topic;

const MAX_LADDER_ROWS: usize = 300;

/// A report, with the data for its charts.
pub(super) struct Run<'a> {
    pub(super) index: usize,
    pub(super) report: &'a Report<'a>,
    /// All rows of the ladder.
    pub(super) ladder: Vec<Row<'a>>,
    pub(super) comparisons: Vec<Comparison<'a>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(index: usize, report: &'a Report<'a>) -> Self {
        Run {
            index,
            report,
            ladder: ladder::rows(report.records),
            comparisons: queues::comparisons(report.records),
        }
    }

    pub(super) fn results(&self) -> &'a Results {
        self.report.results
    }

    pub(super) fn records(&self) -> &'a [Record] {
        self.report.records
    }

    pub(super) fn rows(&self) -> &[Row<'a>] {
        &self.ladder[..self.ladder.len().min(MAX_LADDER_ROWS)]
    }

    pub(super) fn name(&self) -> String {
        clean(&self.results().machine.cpu).trim().to_string()
    }

    /// The topic of the run's title and of its first chart.
    pub(super) fn topic(&self) -> Topic {
        let named = self.results().plan.groups.first().and_then(|group| group.first());
        let measured = Topic::ALL.into_iter().find(|topic| self.report.table(*topic).is_some());
        measured
            .or_else(|| named.map(|planned| Topic::of(&planned.experiment)))
            .unwrap_or(Topic::Ladder)
    }
}

/// Text such as `2026-11-21 10:00 UTC` for an RFC 3339 time; any other text is returned unchanged.
pub(super) fn day(at: &str) -> String {
    let at = clean(at);
    match (at.get(..10), at.get(10..11), at.get(11..16), at.ends_with('Z')) {
        (Some(day), Some("T"), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => at,
    }
}

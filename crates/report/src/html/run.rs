use threadtoll_record::{Record, file::Results};

use crate::clean::clean;
use crate::ladder::{self, Row};
use crate::queues::{self, Comparison};
use crate::report::Report;
use crate::table::Topic;

const MAX_LADDER_ROWS: usize = 300;

pub(super) struct Run<'a> {
    pub(super) index: usize,
    pub(super) report: &'a Report<'a>,
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

    pub(super) fn topic(&self) -> Topic {
        let named = self.results().plan.groups.first().and_then(|group| group.first());
        let measured = Topic::ALL.into_iter().find(|topic| self.report.table(*topic).is_some());
        measured
            .or_else(|| named.map(|planned| Topic::of(&planned.experiment)))
            .unwrap_or(Topic::Ladder)
    }
}

pub(super) fn day(at: &str) -> String {
    let at = clean(at);
    match (at.get(..10), at.get(10..11), at.get(11..16), at.ends_with('Z')) {
        (Some(day), Some("T"), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => at,
    }
}

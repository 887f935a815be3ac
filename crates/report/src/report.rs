//! The contents of a report, independent of the format.

use threadtoll_record::{Record, file::Results};

use crate::findings::findings;
use crate::sentences::Sentence;
use crate::table::{Table, Topic};

/// Tables and findings of one result file, for a [`Format`](crate::Format) to render.
#[derive(Debug)]
pub struct Report<'a> {
    pub(crate) results: &'a Results,
    pub(crate) records: &'a [Record],
    pub(crate) tables: Vec<Table>,
    pub(crate) findings: Vec<Sentence>,
}

impl<'a> Report<'a> {
    /// Makes the report of `records`, all or some of those in `results`.
    pub fn new(results: &'a Results, records: &'a [Record]) -> Self {
        Report {
            results,
            records,
            tables: Topic::ALL.iter().filter_map(|topic| topic.table(results, records)).collect(),
            findings: findings(results, records),
        }
    }

    pub(crate) fn table(&self, topic: Topic) -> Option<&Table> {
        self.tables.iter().find(|table| table.topic == topic)
    }
}

use threadtoll_record::{Record, file::Results};

use crate::answer::Answer;
use crate::table::{Table, Topic};
use crate::{ladder, locks, matrix, overload, queues};

/// Tables and findings of one result file, for a [`Format`](crate::Format) to render.
#[derive(Debug)]
pub struct Report<'a> {
    pub(crate) results: &'a Results,
    pub(crate) records: &'a [Record],
    pub(crate) tables: Vec<Table>,
    pub(crate) answer: Answer,
}

impl<'a> Report<'a> {
    /// Creates the report of `records`, which are some or all of the records in `results`.
    pub fn new(results: &'a Results, records: &'a [Record]) -> Self {
        Report {
            results,
            records,
            tables: Topic::ALL.iter().filter_map(|topic| table(*topic, results, records)).collect(),
            answer: Answer::of(results, records),
        }
    }

    pub(crate) fn table(&self, topic: Topic) -> Option<&Table> {
        self.tables.iter().find(|table| table.topic == topic)
    }
}

pub(crate) fn table(topic: Topic, results: &Results, records: &[Record]) -> Option<Table> {
    match topic {
        Topic::Ladder => ladder::table(results, records),
        Topic::Matrix => matrix::table(results, records),
        Topic::Queues => queues::table(results, records),
        Topic::Locks => locks::table(results, records),
        Topic::Overload => overload::table(results, records),
    }
}

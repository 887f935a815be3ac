use threadtoll_record::{Record, file::Results};

use super::columns::Column;
use super::view::View;
use super::{Comparison, base, stream};
use crate::table::Cell;

pub(super) const VIEW: View = View {
    scenario: "workers",
    question: "What one sender gains from several receivers",
    sentence: "messages of 8 bytes from one sender, sent as fast as its receivers take them: from one queue, or from a bundle of queues, one for each receiver, over which the sender distributes the messages in turn. Evenness: 1 if all receivers get equally many.",
    columns,
    ..stream::VIEW
};

fn form(record: &Record) -> &'static str {
    match record.figures.workers() {
        Some(workers) if workers.bundle => "bundle",
        Some(_) => "one queue",
        None => "",
    }
}

fn columns<'c, 'a>(results: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let mut columns = (stream::VIEW.columns)(results, comparison);
    columns.push(Column::new("", "receivers have", 2, |row| Cell::text(form(&row.record))).faint());
    columns.push(Column::new("", "evenness", 8, |row| {
        Cell::figure(
            row.record.figures.workers().and_then(|workers| workers.fairness),
            |fairness| format!("{fairness:.3}"),
        )
    }));
    if comparison.criteria.load.base().is_some() {
        columns.push(Column::new("of one", "receiver", 1, |row| base::cell(&row.record)));
    }
    columns
}

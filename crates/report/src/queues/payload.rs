use threadtoll_record::{Record, file::Results};

use super::columns::Column;
use super::view::View;
use super::{Comparison, base, stream};
use crate::regimes::{self, InRegime};
use crate::units::{digits, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "payload",
    question: "What larger messages cost",
    sentence: "messages sent as fast as the queue takes them; every word is written and verified. Messages are moved into the queue and out of it, or written and read in place.",
    text: |record| {
        let one = record.rate_per_s.map(|rate| time(1e9 / rate.get()));
        one.map_or_else(String::new, |one| format!("{one} a message"))
    },
    columns,
    ..stream::VIEW
};

/// Gigabytes per second.
fn gigabytes(record: &Record, rate: f64) -> f64 {
    rate * record.cell.payload_bytes as f64 / 1e9
}

fn columns<'c, 'a>(_: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let rate = |figures: &InRegime<'_>| figures.rate_per_s.map(f64::from);
    let mut columns = vec![
        Column::new("a message", "takes", 0, move |row| {
            let ns = |figures: &InRegime<'_>| rate(figures).map(|rate| 1e9 / rate);
            regimes::figure(&row.record, ns, time)
        })
        .main(),
        Column::new("a message", "95%", 4, |row| {
            regimes::each(&row.record, |figures| {
                let [low, high] = figures.rate_interval95?.map(|rate| 1e9 / rate.get());
                Some(time_range([high, low]))
            })
        }),
        Column::new("", "GB/s", 0, move |row| {
            let bytes = |figures: &InRegime<'_>| Some(gigabytes(&row.record, rate(figures)?));
            regimes::figure(&row.record, bytes, digits)
        }),
    ];
    if comparison.criteria.load.base().is_some() {
        columns.push(Column::new("of", "moved", 1, |row| base::cell(&row.record)));
    }
    columns
}

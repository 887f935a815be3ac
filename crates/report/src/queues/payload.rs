//! The view of messages of several sizes.

use threadtoll_record::{Record, file::Results};

use super::columns::Column;
use super::view::View;
use super::{Comparison, base, stream};
use crate::regimes::{self, InRegime};
use crate::table::Emphasis;
use crate::units::{digits, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "payload",
    question: "What larger messages cost",
    sentence: "as many messages as the queue takes, every word of them written and verified: moved into the queue and out of it, or written and read in place.",
    text: |record| {
        let one = record.rate_per_s.map(|rate| time(1e9 / rate.get()));
        one.map_or_else(String::new, |one| format!("{one} a message"))
    },
    columns,
    lines,
    ..stream::VIEW
};

/// A number of bytes in the largest unit that divides it.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0 => "0 B".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Data rate in gigabytes per second.
fn gigabytes(record: &Record, rate: f64) -> f64 {
    rate * record.cell.payload_bytes as f64 / 1e9
}

fn columns<'c, 'a>(_: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let rate = |figures: &InRegime<'_>| figures.rate_per_s.map(f64::from);
    let mut columns = vec![
        Column::new("a message", "takes", 0, "time per message, median over blocks", move |row| {
            let ns = |figures: &InRegime<'_>| rate(figures).map(|rate| 1e9 / rate);
            regimes::figure(&row.record, ns, time)
        })
        .emphasis(Emphasis::Main),
        Column::new("a message", "95%", 4, "95% interval of that time", |row| {
            regimes::each(&row.record, |figures| {
                let [low, high] = figures.rate_interval95?.map(|rate| 1e9 / rate.get());
                Some(time_range([high, low]))
            })
        }),
        Column::new("", "GB/s", 0, "bytes of messages per second", move |row| {
            let bytes = |figures: &InRegime<'_>| Some(gigabytes(&row.record, rate(figures)?));
            regimes::figure(&row.record, bytes, digits)
        }),
    ];
    if comparison.criteria.load.base().is_some() {
        let title = "ratio of the rate to that of the same row with messages that are moved, from paired blocks";
        columns.push(Column::new("of", "moved", 1, title, |row| base::cell(&row.record)));
    }
    columns
}

fn lines(record: &Record) -> Vec<String> {
    let mut lines = (stream::VIEW.lines)(record);
    if let Some(rate) = record.rate_per_s {
        lines.push(format!("{} GB/s", digits(gigabytes(record, rate.get()))));
    }
    lines.extend(base::line(record, "of moved"));
    lines
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_whole_numbers_of_their_unit() {
        let sizes = [8, 512, 1000, 1536, 4096, 1 << 20].map(size);
        assert_eq!(sizes, ["8 B", "512 B", "1000 B", "1536 B", "4 KiB", "1 MiB"]);
    }
}

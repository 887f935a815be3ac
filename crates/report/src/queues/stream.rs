use threadtoll_record::file::Results;

use super::Comparison;
use super::columns::Column;
use super::screen;
use super::view::View;
use crate::regimes::{self, InRegime};
use crate::table::Cell;
use crate::units::{digits, digits_range, share, time};

pub(super) const VIEW: View = View {
    scenario: "stream",
    question: "Which queue passes most messages",
    sentence: "messages of 8 bytes, sent as fast as the queue takes them, each verified.",
    rates: true,
    ratios_decide: true,
    costs: true,
    axis: "messages per second (higher is better)",
    caption: "Messages per second",
    ns: |record| record.rate_per_s.map(|rate| 1e9 / rate.get()),
    interval: |record| record.interval95.rate_per_s.map(|interval| interval.map(f64::from)),
    text: |record| {
        record
            .rate_per_s
            .map_or_else(String::new, |rate| format!("{} M/s", digits(rate.get() / 1e6)))
    },
    columns,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
};

fn columns<'c, 'a>(_: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let mut columns = vec![
        Column::new("million messages", "per s", 0, |row| {
            let rate = |figures: &InRegime<'_>| figures.rate_per_s.map(f64::from);
            regimes::figure(&row.record, rate, |rate| digits(rate / 1e6))
        })
        .main(),
        Column::new("million messages", "95%", 4, |row| {
            regimes::each(&row.record, |figures| {
                Some(digits_range(figures.rate_interval95?.map(|rate| rate.get() / 1e6)))
            })
        }),
        Column::new("", "message time", 5, |row| Cell::figure(row.ns(), time)),
    ];
    columns.extend(of_the_bare_copy(comparison));
    columns
}

fn of_the_bare_copy<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<Column<'c, 'a>> {
    let limit = comparison.bare_copy()?;
    Some(Column::new("of the", "bare copy", 3, |row| {
        let paired = row.against(&limit.record.cell).map(|against| against.ratio.get());
        let rates = row.record.rate_per_s.zip(limit.record.rate_per_s);
        Cell::figure(paired.or_else(|| rates.map(|(rate, limit)| rate.get() / limit.get())), share)
    }))
}

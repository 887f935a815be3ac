use std::borrow::Cow;

use threadtoll_record::limits::WORST;
use threadtoll_record::{Against, Record, Worst};

use crate::disturbance::sum;

/// Merges the records of one cell from several groups.
///
/// All figures come from one group, because groups are minutes apart, and a figure and its ratio
/// must be from the same time. If `group` is `None`, the group is the one that saw the most
/// regimes; among several such groups, the one with the median figure.
///
/// Ratios to cells of other groups, disturbances, longest samples and warnings come from all
/// groups.
pub(crate) fn merged<'a>(records: &[&'a Record], group: Option<usize>) -> Cow<'a, Record> {
    let [first, rest @ ..] = records else {
        unreachable!("a cell is only known through its records")
    };
    if rest.is_empty() {
        return Cow::Borrowed(first);
    }
    let preferred = records.iter().find(|record| Some(record.group) == group);
    let mut joined: Record = (*preferred.unwrap_or(&typical(first, records))).clone();
    for against in records.iter().flat_map(|record| &record.against) {
        let alike = |known: &Against| (&known.cell, &known.of) == (&against.cell, &against.of);
        if !joined.against.iter().any(alike) {
            joined.against.push(against.clone());
        }
    }
    joined.disturbance = sum(records.iter().map(|record| &record.disturbance));
    joined.worst =
        records.iter().flat_map(|record| record.worst.iter().copied()).collect::<Vec<Worst>>();
    joined.worst.sort_by(|a, b| b.ns.get().total_cmp(&a.ns.get()));
    joined.worst.truncate(WORST);
    joined.warnings = records.iter().flat_map(|record| record.warnings.iter().cloned()).collect();
    joined.warnings.sort_by(|a, b| (&a.code, &a.text).cmp(&(&b.code, &b.text)));
    joined.warnings.dedup();
    Cow::Owned(joined)
}

fn typical<'a>(first: &'a Record, records: &[&'a Record]) -> &'a Record {
    let most = records.iter().map(|record| record.regimes.len()).max().unwrap_or(0);
    let figure = |record: &Record| match record.rate_per_s {
        Some(rate) => Some(rate.get()),
        None => record.one_way_p50().or(record.quantiles.p50.map(f64::from)),
    };
    let mut of_most: Vec<(&Record, f64)> = records
        .iter()
        .filter(|record| record.regimes.len() == most)
        .filter_map(|record| Some((*record, figure(record)?)))
        .collect();
    of_most.sort_by(|a, b| a.1.total_cmp(&b.1));
    let middle = of_most.len().saturating_sub(1) / 2;
    of_most.get(middle).map_or(first, |(record, _)| record)
}

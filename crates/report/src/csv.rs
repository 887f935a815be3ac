use std::fmt::Write;

use threadtoll_record::{Experiment, Record};

use crate::clean::clean;

/// Renders a line for each pair of CPUs, in the order of measurement. Unknown figures are empty.
pub fn matrix_csv(records: &[Record]) -> String {
    let mut text = String::from(
        "mechanism,cpu_a,cpu_b,relation,one_way_p50_ns,one_way_p50_low95_ns,one_way_p50_high95_ns,round_trip_p99_ns,blocks,disturbed\n",
    );
    let pairs = records.iter().filter(|record| record.experiment == Experiment::Matrix);
    for record in pairs {
        let &[a, b] = record.cell.cpus.as_slice() else { continue };
        let [low, high] = match record.one_way_p50_interval95() {
            Some([low, high]) => [Some(low), Some(high)],
            None => [None; 2],
        };
        let label = clean(&record.cell.label()).replace('"', "\"\"");
        let _ = writeln!(
            text,
            "\"{label}\",{a},{b},{},{},{},{},{},{},{}",
            record.cell.relation,
            figure(record.one_way_p50()),
            figure(low),
            figure(high),
            figure(record.quantiles.p99.map(f64::from)),
            record.disturbance.blocks,
            record.disturbance.disturbed,
        );
    }
    text
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

use std::path::Path;

use threadtoll_model::Shape;
use threadtoll_record::file::{self, Results};
use threadtoll_record::{Cell, Experiment, Histogram, RecordKind};

use crate::console;
use crate::failure::Failure;
use crate::parse::DURATIONS;

/// A measured cell. Its histogram is the sum over all groups that contain the cell.
struct Merged {
    experiment: Experiment,
    cell: Cell,
    kind: RecordKind,
    histogram: Histogram,
    /// True if the cell is the reference of every group that contains it.
    reference: bool,
}

impl Merged {
    fn name(&self) -> String {
        format!("{} {}, {}", self.experiment, self.cell.label(), self.cell.placement)
    }
}

/// Reads the distribution of record `number`, counted from 1, or of the only record that is not a
/// reference.
pub(super) fn read(path: &Path, number: Option<u64>) -> Result<Shape, Failure> {
    let name = path.display();
    let results = file::read(path)?;
    let cells = merged(&results);
    let chosen = match number {
        Some(number) => usize::try_from(number - 1).ok().and_then(|index| cells.get(index)),
        None => {
            let mut others = cells.iter().filter(|one| cells.len() == 1 || !one.reference);
            others.next().filter(|_| others.next().is_none())
        }
    };
    let Some(chosen) = chosen else { return Err(no_choice(path, number, &cells)) };
    let kind = match chosen.kind {
        RecordKind::RoundTrip => "round trips",
        RecordKind::Stream => "messages",
        RecordKind::Wait => "waits for the lock",
        RecordKind::Delivery => "deliveries",
        RecordKind::Calls => "calls on a queue",
        RecordKind::SendCall => "send calls",
    };
    let whose = if results.machine.simulated { " of a simulated machine" } else { "" };
    console::err(&format!(
        "note: {name}: using the {} {kind} of {}{whose}.",
        chosen.histogram.count(),
        chosen.name()
    ));
    results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    let buckets: Vec<(f64, u64)> =
        chosen.histogram.buckets().map(|(ps, count)| (ps as f64 / 1000.0, count)).collect();
    Shape::counted(&buckets)
        .map_err(|error| Failure::usage(format!("{name}: {error}")).hint(DURATIONS))
}

fn merged(results: &Results) -> Vec<Merged> {
    let mut cells: Vec<Merged> = Vec::new();
    for record in results.records() {
        let Some(histogram) = record.histogram.filter(|histogram| histogram.count() > 0) else {
            continue;
        };
        let group = results.plan.groups.get(record.group);
        let first = group.and_then(|group| group.first());
        let reference = first.is_some_and(|first| first.cell == record.cell);
        match cells
            .iter_mut()
            .find(|one| one.experiment == record.experiment && one.cell == record.cell)
        {
            Some(one) => {
                one.histogram.add(&histogram);
                one.reference &= reference;
            }
            None => cells.push(Merged {
                experiment: record.experiment,
                cell: record.cell,
                kind: record.kind,
                histogram,
                reference,
            }),
        }
    }
    cells
}

fn no_choice(path: &Path, number: Option<u64>, cells: &[Merged]) -> Failure {
    let name = path.display();
    if cells.is_empty() {
        return Failure::usage(format!("no record in {name} has a histogram"))
            .hint("use a command whose records have one, such as `threadtoll latency`");
    }
    let names: Vec<String> = cells
        .iter()
        .enumerate()
        .map(|(index, one)| format!("#{} {}", index + 1, one.name()))
        .collect();
    let what = match number {
        Some(number) => format!("{name} has no record #{number}; it has {}", cells.len()),
        None => format!("{name} holds {} records", cells.len()),
    };
    Failure::usage(what).hint(format!("choose one with {name}#N: {}", names.join("; ")))
}

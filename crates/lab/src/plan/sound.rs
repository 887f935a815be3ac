//! A plan that was read from a file, looked at before threads are made by it: the file may have been edited, or come from a
//! version with other mechanisms.

use threadtoll_machine::topology::Topology;
use threadtoll_record::{Cell, Placement, Plan, PlannedCell, Relation};

use crate::mechanism::{Class, find};

/// The largest message, in bytes.
pub const MOST_PAYLOAD: u64 = 1 << 20;
/// The longest that anything is measured, in nanoseconds: a day.
pub const LONGEST_NS: u64 = 86_400_000_000_000;

/// Says why a plan cannot be measured on CPUs that are arranged so, or nothing if it can.
pub fn unsound(plan: &Plan, topology: &Topology) -> Option<String> {
    plan.groups
        .iter()
        .flatten()
        .find_map(|planned| fault(planned, topology).map(|why| format!("{}: {why}", planned.cell.label())))
}

fn fault(planned: &PlannedCell, topology: &Topology) -> Option<&'static str> {
    let PlannedCell { cell, budget, .. } = planned;
    let Some(mechanism) = find(&cell.mechanism) else {
        return Some("this version has no such mechanism");
    };
    if cell.line.is_some() != mechanism.has_layout || cell.pause.is_some() != mechanism.has_pause {
        return Some("the mechanism has no such choice of line and pause");
    }
    if cell.payload_bytes < 8 || cell.payload_bytes > MOST_PAYLOAD || cell.payload_bytes % 8 != 0 {
        return Some("messages of that size are never sent");
    }
    if budget.stretch_ns.max(budget.stamped_ns) > LONGEST_NS {
        return Some("no block lasts that long");
    }
    let mut cpus = cell.cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() != cell.cpus.len() {
        return Some("it names a CPU twice");
    }
    if relation(cell, mechanism.class, topology) != Some(cell.relation) {
        return Some("its ends cannot be placed so");
    }
    None
}

/// How the CPUs of a cell are related if its placement makes sense.
fn relation(cell: &Cell, class: Class, topology: &Topology) -> Option<Relation> {
    match (class, cell.placement, cell.cpus.as_slice()) {
        (Class::OneThread, Placement::Pinned, [_]) => Some(Relation::SameThread),
        (Class::OneThread, ..) => None,
        (_, Placement::Pinned, &[a, b]) => Some(topology.relation(a, b)),
        (Class::Poll | Class::Sleep, Placement::SameCpu, [_]) => Some(Relation::SameCpu),
        (_, Placement::Free, [_, _, ..]) => Some(Relation::Free),
        _ => None,
    }
}

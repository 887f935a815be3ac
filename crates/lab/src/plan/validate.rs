use std::borrow::Cow;

use threadtoll_machine::topology::Topology;
use threadtoll_record::{
    Cell, LockSubject, Placement, Plan, PlannedCell, QueueSubject, Relation, Subject,
};

use crate::Registry;
use crate::contention;
use crate::lock::MAX_THREADS;
use crate::mechanism::Class;
use crate::queue::{self, Asked, MAX_BATCH, MAX_CAPACITY, MAX_SENDERS, Scenario};

use super::locks::relation_of;
use super::queues::farthest;

/// Largest message, in bytes.
pub const MAX_PAYLOAD: u64 = 1 << 20;
/// Maximum measuring time, in nanoseconds: one day.
pub const MAX_NS: u64 = 86_400_000_000_000;

/// Checks that a plan can run on CPUs of this topology. The plan's file may have been edited, or
/// come from another version.
///
/// # Errors
///
/// The reason why the plan cannot run.
pub fn validate(plan: &Plan, topology: &Topology, registry: &Registry) -> Result<(), String> {
    if plan.repeat.is_some_and(|repeat| repeat.after_ns > MAX_NS) {
        return Err("its plan waits more than a day before it repeats measurements".into());
    }
    plan.groups.iter().flatten().try_for_each(|planned| {
        validate_cell(planned, topology, registry)
            .map_err(|why| format!("{}: {why}", planned.cell.label()))
    })
}

fn validate_cell(
    planned: &PlannedCell,
    topology: &Topology,
    registry: &Registry,
) -> Result<(), Cow<'static, str>> {
    let PlannedCell { cell, budget, .. } = planned;
    let is_size = (8..=MAX_PAYLOAD).contains(&cell.payload_bytes) && cell.payload_bytes % 8 == 0;
    if cell.lock().is_none() && !is_size {
        return Err("the message size is out of range".into());
    }
    let class = match &cell.subject {
        Subject::Mechanism { mechanism, .. } => {
            let Some(mechanism) = registry.mechanisms.find(mechanism) else {
                return Err("this version has no such mechanism".into());
            };
            if cell.line.is_some() != mechanism.has_layout
                || cell.pause.is_some() != mechanism.has_pause
            {
                return Err(
                    "the line layout or the pause hint does not apply to this mechanism".into()
                );
            }
            if cell.built != mechanism.built {
                return Err("the mechanism's build has changed since the run began".into());
            }
            mechanism.class
        }
        Subject::Queue(queue) => {
            validate_queue(planned, queue, registry)?;
            queue::class(queue.wait)
        }
        Subject::Lock(lock) => {
            return validate_lock(planned, lock, topology, registry).map_err(Into::into);
        }
    };
    if budget.stretch_ns.max(budget.stamped_ns) > MAX_NS {
        return Err("the block is too long".into());
    }
    if names_a_cpu_twice(cell) {
        return Err("a CPU is given twice".into());
    }
    if relation(cell, class, topology) != Some(cell.relation) {
        return Err("its threads cannot be placed as planned".into());
    }
    Ok(())
}

fn names_a_cpu_twice(cell: &Cell) -> bool {
    let mut cpus = cell.cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    cpus.len() != cell.cpus.len()
}

fn validate_lock(
    planned: &PlannedCell,
    lock: &LockSubject,
    topology: &Topology,
    registry: &Registry,
) -> Result<(), &'static str> {
    let PlannedCell { cell, budget, .. } = planned;
    let Ok(spec) = registry.locks.parse(&lock.lock) else {
        return Err("this version has no such lock");
    };
    if contention::Scenario::of(&planned.experiment).is_none() {
        return Err("this version has no such scenario");
    }
    if !(1..=MAX_THREADS).contains(&lock.threads)
        || (lock.is_alone() && lock.threads != 1)
        || lock.read_share.is_some() != spec.has_readers()
        || (spec.only_counts() && lock.hold_ns != 0)
        || cell.built.as_ref() != spec.built()
    {
        return Err("this version of threadtoll cannot measure the lock with these settings");
    }
    let longest = [budget.stretch_ns, budget.stamped_ns, lock.hold_ns, lock.think_ns];
    if lock.cycle_ns() == 0 || longest.into_iter().any(|ns| ns > MAX_NS) {
        return Err("hold and think times are both zero, or a time is longer than a day");
    }
    if budget.stretch_ns == 0 && budget.stamped_ns == 0 {
        return Err("its blocks have length zero");
    }
    if lock.tasks.is_some_and(|tasks| !(1..=contention::MAX_TASKS).contains(&tasks)) {
        return Err("there are too many tasks");
    }
    if let Some(overload) = &lock.overload {
        let is_one_lock = spec.stripes == 1 && !spec.only_counts() && spec.elsewhere().is_none();
        let is_plain = lock.tasks.is_none() && lock.think_ns == 0 && budget.stretch_ns == 0;
        let by_lock = spec.has_own_bound() && overload.bound.is_some();
        if !is_one_lock
            || !is_plain
            || by_lock != overload.by_lock
            || !contention::overload::is_possible(lock.hold_ns, overload)
        {
            return Err("this version of threadtoll cannot overload the lock with these settings");
        }
    }
    if cell.line.is_some()
        || cell.pause.is_some()
        || cell.payload_bytes != 0
        || names_a_cpu_twice(cell)
    {
        return Err(
            "a lock cannot have a payload, a line layout, a pause hint, or the same CPU twice",
        );
    }
    let spins = spec.policy().spins() && lock.threads as usize > cell.cpus.len();
    let relation = match (cell.placement, cell.cpus.as_slice()) {
        (Placement::SameCpu, [_]) => Some(Relation::SameCpu),
        (Placement::Free, [_, _, ..]) => Some(Relation::Free),
        // A single thread may have several CPUs, because it runs on each of them in turn.
        (Placement::Pinned, cpus) if cpus.len() <= lock.threads as usize || lock.is_alone() => {
            Some(relation_of(topology, cpus))
        }
        _ => None,
    };
    if spins || relation != Some(cell.relation) {
        return Err("its threads cannot be placed as planned");
    }
    Ok(())
}

fn validate_queue(
    planned: &PlannedCell,
    asked: &QueueSubject,
    registry: &Registry,
) -> Result<(), Cow<'static, str>> {
    let cell = &planned.cell;
    let Some(queue) = registry.queues.find(&asked.queue) else {
        return Err(match cell.built {
            Some(_) => "the peer is no longer in the folder".into(),
            None => "this version has no such queue".into(),
        });
    };
    if cell.built != queue.built {
        return Err("the peer has changed since the run began".into());
    }
    let Some(scenario) = Scenario::of(&planned.experiment) else {
        return Err("this version has no such scenario".into());
    };
    // If the kinds differed, the cell's blocks would be processed as the wrong kind.
    if planned.kind() != scenario.kind {
        return Err("this version of threadtoll measures the scenario in another way".into());
    }
    if asked.version != *queue.version || queue.origin != asked.origin {
        return Err("threadtoll now contains another version of the queue".into());
    }
    let way = queue.way(asked.wait);
    let (load, payload_bytes) = (&asked.load, cell.payload_bytes);
    if cell.line.is_some() || cell.pause.is_some() || !scenario.sizes.contains(&payload_bytes) {
        return Err(
            "rows of queues have neither a line layout nor a pause hint, and only the message sizes \
             of their scenario"
                .into(),
        );
    }
    let way = way.filter(|way| scenario.takes_with(queue, way, load, payload_bytes));
    let Some(way) = way else {
        return Err(
            "this version of threadtoll cannot measure the queue with these settings".into()
        );
    };
    let senders = scenario.any_senders
        || scenario.usual_senders(std::slice::from_ref(load), 1).contains(&asked.senders);
    let limits =
        (1..=MAX_SENDERS).contains(&asked.senders) && (asked.senders == 1 || way.many_senders);
    let batched = (1..=MAX_BATCH).contains(&asked.batch)
        && [None, Some(asked.batch)].into_iter().any(|batch| {
            (scenario.batches)(queue, way, &Asked { load, batch }).contains(&asked.batch)
        });
    if !senders || !limits || !batched {
        return Err(
            "this version of threadtoll cannot measure the queue with these settings".into()
        );
    }
    let slots = queue.slots().map(|slots| slots.of(payload_bytes));
    let holds = match (slots, asked.capacity) {
        (Some(slots), Some(capacity)) => {
            (1..=MAX_CAPACITY * 8 / payload_bytes).contains(&capacity)
                && slots.capacity(capacity) == capacity
                && asked.ring_bytes == Some(slots.ring_bytes(capacity))
        }
        (None, None) => asked.ring_bytes.is_none(),
        _ => false,
    };
    if !holds {
        return Err(
            "the queue cannot have this capacity or size in this version of threadtoll".into()
        );
    }
    Ok((scenario.has_load)(load)?)
}

fn relation(cell: &Cell, class: Class, topology: &Topology) -> Option<Relation> {
    match (class, cell.placement, cell.cpus.as_slice()) {
        (Class::OneThread, Placement::Pinned, [_]) => Some(Relation::SameThread),
        (Class::OneThread, ..) => None,
        (_, Placement::Pinned, &[a, b]) => Some(topology.relation(a, b)),
        (_, Placement::Pinned, cpus @ [_, _, ..]) if cpus.len() <= cell.queue()?.threads() => {
            farthest(topology, cpus)
        }
        (Class::Poll | Class::Sleep, Placement::SameCpu, [_]) => Some(Relation::SameCpu),
        (_, Placement::Free, [_, _, ..]) => Some(Relation::Free),
        _ => None,
    }
}

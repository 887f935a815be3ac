//! Plan of `queue`.
//!
//! Ratios are computed only between cells of the same group, so each group of peers also contains
//! the queues of ours with which the peers are compared. Spinning and sleeping queues are never
//! mixed, nor are single messages and batches, because they are not comparable.

use threadtoll_machine::topology::Topology;
use threadtoll_record::{
    Budget, Cell, Kind, Load, Neighbour, Origin, Placement, PlannedCell, QueueSubject, Relation,
    Subject, Wait, WaitFamily,
};

use crate::Registry;
use crate::budget::LONG_BLOCK_NS;
use crate::queue::{self, Asked, Grouping, Overrides, Queue, Scenario, Way};

use super::cells::{CpuSelection, suited};
use super::groups::{GROUP, PlanBuilder, group, size};
use super::{Planned, cells::place};

/// Requested queue rows. All combinations of the lists' elements are planned.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueChoice<'q> {
    /// Queues.
    pub queues: Vec<&'q Queue>,
    /// Placements.
    pub placements: Vec<Placement>,
    /// Wait strategies; empty for all of them. Each strategy also selects the rows of peers that
    /// are compared with it.
    pub waits: Vec<Wait>,
    /// Background loads, `None` for none.
    pub neighbours: Vec<Option<Neighbour>>,
    /// Overrides of the scenario's defaults.
    pub overrides: Overrides,
}

/// Returns `true` if `waits` selects a queue's row. An empty list selects every row. Bare copies
/// are always selected.
pub fn wants(waits: &[Wait], queue: &Queue, way: &Way) -> bool {
    waits.is_empty()
        || queue.origin == Origin::Raw
        || waits.iter().any(|wait| wait.brings(way.wait))
}

/// Minimum length of blocks whose threads share a CPU: many time slices of the scheduler.
const SLICES_NS: u64 = 100_000_000;

fn over_slices(budget: Budget) -> Budget {
    match budget.stretch_ns {
        0 => Budget { stamped_ns: budget.stamped_ns.max(SLICES_NS), ..budget },
        stretch_ns => Budget { stretch_ns: stretch_ns.max(SLICES_NS), ..budget },
    }
}

/// Plans queues in a scenario.
///
/// Rows that a queue does not support are left out silently; for example, several senders for a
/// single-sender queue.
pub fn queue(
    site: &CpuSelection<'_>,
    scenario: &Scenario,
    registry: &Registry,
    choice: &QueueChoice<'_>,
) -> Planned {
    let mut builder = PlanBuilder::default();
    let overrides = &choice.overrides;
    let loads = overrides.loads.clone().unwrap_or_else(scenario.loads);
    let families: Vec<&[Load]> = match scenario.grouping {
        Grouping::Load => loads.chunks(1).collect(),
        // A base load is followed by the loads that are compared with it.
        Grouping::Row | Grouping::LoadAndRow => {
            loads.chunk_by(|_, next| next.base().is_some()).collect()
        }
    };
    let payloads = overrides.payloads.as_deref().unwrap_or(scenario.payloads);
    let capacities: Vec<Option<u64>> = match &overrides.capacities {
        None => vec![None],
        Some(capacities) => capacities.iter().copied().map(Some).collect(),
    };
    let sites = choice.placements.iter().flat_map(|placement| {
        choice.neighbours.iter().map(move |neighbour| (*placement, *neighbour))
    });
    for (placement, neighbour) in sites {
        let usual = scenario.usual_senders(&loads, site.pool.len());
        let senders = overrides.senders.as_deref().unwrap_or(&usual);
        let families = families.iter().flat_map(|loads| senders.iter().map(move |n| (*n, *loads)));
        let families = payloads.iter().flat_map(|payload_bytes| {
            families.clone().map(move |(senders, loads)| (*payload_bytes, senders, loads))
        });
        for (payload_bytes, senders, loads) in families {
            for (nth, capacity) in capacities.iter().copied().enumerate() {
                let context = |load| PlanContext {
                    site,
                    scenario,
                    registry,
                    choice,
                    placement,
                    neighbour,
                    senders,
                    capacity,
                    load,
                    payload_bytes,
                };
                let mut budget = (scenario.budget)(overrides, &loads[0]);
                // An unbounded peer is measured once, with the first capacity. Our unbounded queues
                // are measured again, because peers are compared with them.
                let mut rows = |load| -> Vec<Row<'_>> {
                    let context = context(load);
                    let rows =
                        choice.queues.iter().flat_map(|queue| context.rows(queue, &mut builder));
                    rows.filter(|row| nth == 0 || row.has_capacity() || !row.peer()).collect()
                };
                let rows: Vec<Vec<Row<'_>>> = loads.iter().map(&mut rows).collect();
                if rows.iter().flatten().any(|row| row.cell.oversubscribed()) {
                    budget = over_slices(budget);
                }
                let plan = |load| GroupPlan { context: context(load), budget, is_later: nth > 0 };
                match (rows.as_slice(), scenario.grouping) {
                    ([rows], _) => builder.groups.extend(plan(&loads[0]).groups(rows)),
                    (all, Grouping::LoadAndRow) => {
                        for (load, rows) in loads.iter().zip(all) {
                            builder.groups.extend(plan(load).groups(rows));
                        }
                        builder.groups.extend(plan(&loads[0]).by_row(&ours_with_all(all)));
                    }
                    (all, _) => builder.groups.extend(plan(&loads[0]).by_row(all)),
                }
            }
        }
    }
    if builder.groups.is_empty() && builder.refused.is_empty() {
        let what = format!("queue {}", scenario.name);
        builder.refuse(what, "none of the queues supports this combination of options");
    }
    (builder.groups, builder.refused)
}

/// Our rows that exist for every load. Argument and result have one list of rows per load.
fn ours_with_all<'q>(rows: &[Vec<Row<'q>>]) -> Vec<Vec<Row<'q>>> {
    let way = |row: &Row<'q>| (row.queue.name.clone(), row.way.wait);
    let has_all = |row: &&Row<'q>| {
        row.ours() && rows.iter().all(|rows| rows.iter().any(|other| way(other) == way(row)))
    };
    rows.iter().map(|rows| rows.iter().filter(has_all).cloned().collect()).collect()
}

#[derive(Clone)]
struct Row<'q> {
    queue: &'q Queue,
    way: &'q Way,
    batch: u64,
    cell: Cell,
}

impl Row<'_> {
    fn batched(&self) -> bool {
        self.batch > 1
    }

    fn ours(&self) -> bool {
        self.queue.origin == Origin::Ours
    }

    fn raw(&self) -> bool {
        self.queue.origin == Origin::Raw
    }

    fn peer(&self) -> bool {
        !self.ours() && !self.raw()
    }

    fn has_capacity(&self) -> bool {
        self.queue.slots().is_some()
    }

    /// Peers are compared with our rows, except those that wait with `SpinYield`.
    fn is_compared(&self) -> bool {
        self.ours() && self.way.wait != Wait::SpinYield
    }

    /// Unbounded queues with several senders are compared among themselves.
    fn is_funnel(&self) -> bool {
        self.way.many_senders && !self.queue.bounded()
    }
}

#[derive(Clone, Copy)]
struct PlanContext<'a> {
    site: &'a CpuSelection<'a>,
    scenario: &'a Scenario,
    registry: &'a Registry,
    choice: &'a QueueChoice<'a>,
    placement: Placement,
    neighbour: Option<Neighbour>,
    senders: u32,
    capacity: Option<u64>,
    load: &'a Load,
    payload_bytes: u64,
}

impl PlanContext<'_> {
    fn rows<'q>(&self, queue: &'q Queue, builder: &mut PlanBuilder) -> Vec<Row<'q>> {
        let mut rows = Vec::new();
        for way in &queue.ways {
            let wanted = wants(&self.choice.waits, queue, way);
            let senders = self.senders == 1 || way.many_senders;
            let (load, payload_bytes) = (self.load, self.payload_bytes);
            let takes = self.scenario.takes_with(queue, way, load, payload_bytes);
            if !wanted || !senders || !takes {
                continue;
            }
            let (cpus, relation) = match self.place(way) {
                Ok(place) => place,
                Err(why) => {
                    let how = match way.wait.family() {
                        WaitFamily::Spinning => "queues that spin",
                        WaitFamily::Blocking => "queues that sleep",
                    };
                    // All of these rows have the same text, so that the refusal is reported once.
                    builder.refuse(format!("{how}, {}", self.placement), why);
                    continue;
                }
            };
            let slots = queue.slots().map(|slots| slots.of(payload_bytes));
            let capacity = slots.map(|slots| match self.capacity {
                Some(capacity) => slots.capacity(capacity),
                None => (self.scenario.capacity)(&slots, load),
            });
            let ring_bytes =
                slots.zip(capacity).map(|(slots, capacity)| slots.ring_bytes(capacity));
            let asked = Asked { load, batch: self.choice.overrides.batch };
            for batch in (self.scenario.batches)(queue, way, &asked) {
                let subject = Subject::Queue(QueueSubject {
                    queue: queue.name.clone().into(),
                    origin: queue.origin,
                    wait: way.wait,
                    capacity,
                    ring_bytes,
                    batch,
                    version: queue.version.clone().into(),
                    senders: self.senders,
                    load: self.load.clone(),
                });
                let cell = Cell {
                    built: queue.built.clone(),
                    ..self.cell(subject, cpus.clone(), relation)
                };
                rows.push(Row { queue, way, batch, cell });
            }
        }
        rows
    }

    fn cell(&self, subject: Subject, cpus: Vec<u32>, relation: Relation) -> Cell {
        let mechanism = matches!(subject, Subject::Mechanism { .. });
        Cell {
            subject,
            placement: self.placement,
            cpus,
            relation,
            payload_bytes: if mechanism { 8 } else { self.payload_bytes },
            line: None,
            pause: None,
            keep_awake: false,
            neighbour: self.neighbour,
            built: None,
        }
    }

    /// One CPU for each thread, unless there are too few. The last CPU is the receiver's alone.
    fn place(&self, way: &Way) -> Result<(Vec<u32>, Relation), &'static str> {
        if self.scenario.paces() && self.placement == Placement::SameCpu {
            return Err(
                "its sender waits for each message's due time without sleeping, which keeps the \
                 receiver off the CPU",
            );
        }
        let (cpus, relation) = suited(queue::class(way.wait), self.placement, self.site)?;
        let &[a, b] = cpus.as_slice() else { return Ok((cpus, relation)) };
        let threads = self.senders as usize + self.load.other_threads() as usize;
        if self.placement != Placement::Pinned || threads < 3 {
            return Ok((cpus, relation));
        }
        let others = self.site.pool.iter().copied().filter(|cpu| *cpu != a && *cpu != b);
        let others = std::iter::once(a).chain(others.take(threads - 2));
        let cpus: Vec<u32> = others.chain([b]).collect();
        let relation = farthest(self.site.topology, &cpus).unwrap_or(relation);
        Ok((cpus, relation))
    }

    /// Cell of the mechanism that wakes a sleeping receiver, if the scenario measures that
    /// mechanism too.
    fn wake_up(&self) -> Option<Cell> {
        let mechanism = self.registry.mechanisms.find(self.scenario.wake_up?)?;
        let (cpus, relation) = place(mechanism, self.placement, self.site).ok()?;
        Some(self.cell(mechanism.subject(), cpus, relation))
    }
}

/// Relation between the receiver's CPU (the last one) and the CPU that is farthest from it.
pub(super) fn farthest(topology: &Topology, cpus: &[u32]) -> Option<Relation> {
    let (receiver, senders) = cpus.split_last()?;
    senders.iter().map(|sender| topology.relation(*sender, *receiver)).max()
}

struct GroupPlan<'a> {
    context: PlanContext<'a>,
    budget: Budget,
    /// True if an earlier plan, for another capacity, already measures the unbounded queues.
    is_later: bool,
}

impl GroupPlan<'_> {
    fn groups(&self, rows: &[Row<'_>]) -> Vec<Vec<PlannedCell>> {
        let mut groups = Vec::new();
        let mut compared: Vec<Cell> = Vec::new();
        for batched in [false, true] {
            for family in [WaitFamily::Spinning, WaitFamily::Blocking] {
                let alike: Vec<&Row<'_>> = rows
                    .iter()
                    .filter(|row| {
                        row.batched() == batched && row.way.wait.family() == family && !row.raw()
                    })
                    .collect();
                for are_funnels in [false, true] {
                    groups.extend(self.with_peers(&alike, are_funnels, &mut compared));
                }
            }
            let is_new = |row: &&Row<'_>| !self.is_later || row.has_capacity() || row.raw();
            let own: Vec<&Row<'_>> = rows.iter().filter(is_new).collect();
            if !self.is_later || own.iter().any(|row| row.ours()) {
                groups.extend(self.ours_alone(&own, batched, &compared));
            }
        }
        groups
    }

    /// Keeps a row's loads together. `rows` has one list per load. If the loads do not fit in one
    /// group, each group repeats the first load, with which the others are compared.
    fn by_row(&self, rows: &[Vec<Row<'_>>]) -> Vec<Vec<PlannedCell>> {
        // Leaves room for the reference and the first load.
        const OTHERS: usize = GROUP - 2;
        let Some((first, others)) = rows.split_first() else { return Vec::new() };
        let mut bundles = Vec::new();
        for (nth, row) in first.iter().enumerate() {
            if self.is_later && !row.has_capacity() {
                continue;
            }
            let cells: Vec<Cell> = others.iter().map(|rows| rows[nth].cell.clone()).collect();
            bundles.extend(cells.chunks(OTHERS).map(|part| {
                let part = part.iter().cloned();
                std::iter::once(row.cell.clone()).chain(part).collect()
            }));
        }
        group(bundles, &[self.context.site.reference()], self.packed(), |cell| {
            self.context.scenario.planned(cell, self.budget)
        })
    }

    /// Budget from which the size of groups is computed. Open loops and deep queues have long
    /// blocks, for which groups would be too small for a row and all its rivals. Shorter blocks are
    /// assumed for them.
    fn packed(&self) -> Budget {
        let Budget { stretch_ns, stamped_ns, .. } = self.budget;
        match self.context.scenario.kind {
            Kind::OpenLoop | Kind::Depth | Kind::SendCall => Budget {
                stretch_ns: stretch_ns.min(LONG_BLOCK_NS),
                stamped_ns: stamped_ns.min(LONG_BLOCK_NS),
                ..self.budget
            },
            Kind::Stream if self.context.scenario.grouping == Grouping::Row => {
                Budget { stretch_ns: stretch_ns.min(LONG_BLOCK_NS), ..self.budget }
            }
            Kind::Exchange | Kind::Stream | Kind::Contention => self.budget,
        }
    }

    fn planned(&self, cells: impl IntoIterator<Item = Cell>) -> Vec<PlannedCell> {
        let reference = self.context.site.reference();
        let cells: Vec<Cell> = cells.into_iter().filter(|cell| *cell != reference).collect();
        std::iter::once(reference)
            .chain(cells)
            .map(|cell| self.context.scenario.planned(cell, self.budget))
            .collect()
    }

    fn with_peers(
        &self,
        rows: &[&Row<'_>],
        are_funnels: bool,
        compared: &mut Vec<Cell>,
    ) -> Vec<Vec<PlannedCell>> {
        let peers: Vec<&Row<'_>> = rows
            .iter()
            .copied()
            .filter(|row| row.peer() && row.is_funnel() == are_funnels)
            .collect();
        let Some(first) = peers.first() else { return Vec::new() };
        let names: &[&str] = match self.context.scenario.kind {
            _ if are_funnels => &["funnel", "pipe"],
            _ => &["pipe", "pipe-bounded"],
        };
        let ours = || rows.iter().copied().filter(|row| row.is_compared());
        let named = || ours().filter(|row| names.contains(&row.queue.name.as_str()));
        // With several senders, the named queues may have no row. Peers are then compared with all
        // our rows.
        let rivals: Vec<&Row<'_>> =
            if named().next().is_some() { named().collect() } else { ours().collect() };
        let sleeps = first.way.wait.family() == WaitFamily::Blocking;
        let mut fixed: Vec<Cell> = self.context.wake_up().filter(|_| sleeps).into_iter().collect();
        fixed.extend(rivals.iter().map(|row| row.cell.clone()));
        // Leaves room for the reference and at least one peer.
        fixed.truncate(GROUP - 2);
        compared.extend(fixed.iter().cloned());
        let most = size(self.packed()).max(fixed.len() + 2);
        let room = most - fixed.len() - 1;
        let groups = peers.len().div_ceil(room);
        // Peers are divided evenly, so that the last group does not end up with only one.
        let share = peers.len().div_ceil(groups);
        peers
            .chunks(share)
            .map(|chunk| {
                let peers = chunk.iter().map(|row| row.cell.clone());
                self.planned(fixed.iter().cloned().chain(peers))
            })
            .collect()
    }

    /// Keeps a queue's wait strategies together, and batches together with the bare copy.
    fn ours_alone(
        &self,
        rows: &[&Row<'_>],
        batched: bool,
        compared: &[Cell],
    ) -> Vec<Vec<PlannedCell>> {
        let mut bundles: Vec<(&str, Vec<&Row<'_>>)> = Vec::new();
        for row in rows.iter().copied().filter(|row| row.ours() && row.batched() == batched) {
            match bundles.last_mut() {
                Some((name, bundle)) if *name == row.queue.name => bundle.push(row),
                _ => bundles.push((&row.queue.name, vec![row])),
            }
        }
        // Adaptive waiting is compared with spinning. The two come first, so that they stay
        // together even if a group has no room for all rows.
        let order = |row: &&Row<'_>| match row.way.wait {
            Wait::Spin => 0,
            Wait::Adaptive => 1,
            _ => 2,
        };
        bundles.iter_mut().for_each(|(_, bundle)| bundle.sort_by_key(order));
        let cells =
            |rows: &[&Row<'_>]| -> Vec<Cell> { rows.iter().map(|row| row.cell.clone()).collect() };
        let raw: Vec<Cell> =
            rows.iter().filter(|row| row.raw() && batched).map(|row| row.cell.clone()).collect();
        if !raw.is_empty() {
            let room = GROUP - 1 - raw.len();
            let mut left: Vec<&Row<'_>> = Vec::new();
            let mut chunks: Vec<Vec<&Row<'_>>> = Vec::new();
            for (_, bundle) in &bundles {
                let (first, rest) = bundle.split_at(bundle.len().min(room));
                chunks.push(first.to_vec());
                left.extend(rest);
            }
            chunks.extend(left.chunks(room).map(<[&Row]>::to_vec));
            if chunks.is_empty() {
                chunks.push(Vec::new());
            }
            let with_raw =
                |chunk: Vec<&Row<'_>>| self.planned(raw.iter().cloned().chain(cells(&chunk)));
            return chunks.into_iter().map(with_raw).collect();
        }
        // A queue whose rows are all compared with peers needs no group of its own, unless two of
        // its rows are compared with each other.
        let alone = |bundle: &[&Row<'_>]| {
            let adapts = [Wait::Spin, Wait::Adaptive]
                .iter()
                .all(|wait| bundle.iter().any(|row| row.way.wait == *wait));
            adapts || !bundle.iter().all(|row| compared.contains(&row.cell))
        };
        let bundles = bundles
            .into_iter()
            .filter(|(_, bundle)| alone(bundle))
            .map(|(_, bundle)| cells(&bundle))
            .collect();
        group(bundles, &[self.context.site.reference()], self.packed(), |cell| {
            self.context.scenario.planned(cell, self.budget)
        })
    }
}

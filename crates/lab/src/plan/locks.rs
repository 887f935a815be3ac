//! Plan of `contention`.
//!
//! Speed-ups are computed only between cells of the same group, so each group includes the
//! single-thread cell with which its other cells are compared. Threads that compute do the same
//! total work at any hold share, so one single-thread cell is enough for a whole sweep. Cells whose
//! callers arrive from outside have no speed-up, and their groups no single-thread cell.

use threadtoll_machine::topology::Topology;
use threadtoll_record::{
    Budget, Cell, LockSubject, NO_LOCK, Placement, PlannedCell, Relation, Share, Subject, Work,
};

use crate::contention::{Load, Overrides, Scenario, overload};
use crate::lock::{GrantPolicy, LockSpec, Locks, MAX_THREADS};

use super::Planned;
use super::cells::CpuSelection;
use super::groups::{GROUP, PlanBuilder};

/// Length of the reference cell's blocks: enough to detect a lasting change of the machine's speed.
const REFERENCE_NS: u64 = 3_000_000;
/// Divisor of the number of tasks for a single thread, which shows a task's time with fewer tasks.
const ALONE_TASKS: u64 = 10;
/// Maximum number of CPUs on which a single thread is measured, as a sample of all CPUs.
const MAX_TURNS: usize = 8;
const READ_SHARES: [f64; 2] = [0.0, 0.9];

/// Requested lock cells. All combinations of the lists' elements are planned.
#[derive(Clone, Debug, PartialEq)]
pub struct LockChoice {
    /// Names of locks, all of them valid; empty for the scenario's defaults.
    pub locks: Vec<String>,
    /// Placements.
    pub placements: Vec<Placement>,
    /// Overrides of the scenario's defaults.
    pub overrides: Overrides,
}

/// Plans locks in a scenario.
pub fn contention(
    site: &CpuSelection<'_>,
    scenario: &Scenario,
    known: &Locks,
    choice: &LockChoice,
) -> Planned {
    let mut builder = PlanBuilder::default();
    let locks: Vec<String> = match choice.locks.as_slice() {
        [] => {
            let programs = known.all().filter(|lock| lock.is_elsewhere() && scenario.is_pool());
            let programs = programs.map(|lock| lock.name.clone());
            scenario.locks.iter().map(|lock| (*lock).to_string()).chain(programs).collect()
        }
        locks => locks.to_vec(),
    };
    for placement in &choice.placements {
        let context = PlanContext { site, scenario, choice, placement: *placement };
        let mut bundles: Vec<Bundle> = Vec::new();
        for name in &locks {
            // The caller has validated the names.
            let Ok(spec) = known.parse(name) else { continue };
            if let Some(why) = unasked(scenario, &spec, &choice.overrides) {
                builder.refuse(name.clone(), why);
                continue;
            }
            for (load, rows) in context.rows(name, &spec, &mut builder) {
                let (alone, work) = (context.alone(&load), load.work);
                let like = |bundle: &&mut Bundle| bundle.alone == alone && bundle.work == work;
                match bundles.iter_mut().find(like) {
                    Some(bundle) => bundle.rows.push((load, rows)),
                    None => bundles.push(Bundle { alone, work, rows: vec![(load, rows)] }),
                }
            }
        }
        for bundle in &bundles {
            context.groups(bundle, &mut builder.groups);
        }
    }
    (builder.groups, builder.refused)
}

/// Reason why the lock or its program cannot have these loads; `None` if it can.
fn unasked(scenario: &Scenario, spec: &LockSpec, overrides: &Overrides) -> Option<&'static str> {
    if overrides.loads(scenario).iter().any(|load| load.overload.is_some()) {
        if spec.only_counts() {
            return Some("it is a counter, which nobody waits for");
        }
        if spec.stripes > 1 {
            return Some("it is several locks, each with a queue of its own");
        }
    }
    spec.elsewhere()?;
    let asked = |load: &Load| load.work == Work::Sleep && load.tasks.is_some();
    (!overrides.loads(scenario).iter().all(asked))
        .then_some("its program measures only `contention pool` with --work sleep")
}

/// Cells that are compared with the same single-thread cell, if they are compared with one.
struct Bundle {
    alone: Option<Cell>,
    work: Work,
    /// One entry per lock and load, with a cell for each thread count. The cells of an entry stay
    /// in one group if they fit.
    rows: Vec<(Load, Vec<Cell>)>,
}

#[derive(Clone, Copy)]
struct PlanContext<'a> {
    site: &'a CpuSelection<'a>,
    scenario: &'a Scenario,
    choice: &'a LockChoice,
    placement: Placement,
}

impl PlanContext<'_> {
    fn rows(
        &self,
        name: &str,
        spec: &LockSpec,
        builder: &mut PlanBuilder,
    ) -> Vec<(Load, Vec<Cell>)> {
        let overrides = &self.choice.overrides;
        let mut rows: Vec<(Load, Vec<Cell>)> = Vec::new();
        for load in overrides.loads(self.scenario) {
            let load = if spec.only_counts() {
                // A counter needs no lock: all work is think time.
                Load { hold_ns: 0, think_ns: load.cycle_ns(), ..load }
            } else {
                load
            };
            let own_bound = load.overload.filter(|_| spec.has_own_bound()).map(overload::by_lock);
            let load = Load { overload: own_bound.map(|(it, _)| it).or(load.overload), ..load };
            let least = own_bound.map_or(1, |(_, threads)| threads);
            let mut threads = self.threads(load.work);
            threads.iter_mut().for_each(|threads| *threads = (*threads).max(least));
            threads.dedup();
            for read_share in &self.read_shares(spec, &load) {
                let mut cells = Vec::new();
                for threads in threads.iter().copied() {
                    match self.place(spec.policy(), threads) {
                        Ok((cpus, relation)) => {
                            let subject = subject(name, threads, &load, *read_share);
                            let built = spec.built().cloned();
                            cells.push(Cell { built, ..self.cell(subject, cpus, relation) });
                        }
                        Err(why) => builder.refuse(
                            format!("{name} with {threads} threads, {}", self.placement),
                            why,
                        ),
                    }
                }
                let known = rows.iter().any(|(_, others)| *others == cells);
                if !cells.is_empty() && !known {
                    rows.push((load, cells));
                }
            }
        }
        rows
    }

    fn read_shares(&self, spec: &LockSpec, load: &Load) -> Vec<Option<Share>> {
        match &self.choice.overrides.read_shares {
            _ if !spec.has_readers() => vec![None],
            // Readers would not queue.
            _ if load.overload.is_some() => vec![Some(Share::NONE)],
            Some(asked) => asked.iter().copied().map(Some).collect(),
            None => READ_SHARES.into_iter().map(Share::new).collect(),
        }
    }

    fn alone(&self, load: &Load) -> Option<Cell> {
        if load.overload.is_some() {
            return None;
        }
        let load = match load.work {
            Work::Spin => Load { hold_ns: 0, think_ns: load.cycle_ns(), ..*load },
            Work::Sleep => *load,
        };
        let tasks = load.tasks.map(|tasks| tasks.div_ceil(ALONE_TASKS).max(tasks.min(20)));
        let subject = subject(NO_LOCK, 1, &Load { tasks, ..load }, None);
        let (cpus, relation) = match self.placement {
            Placement::Free if self.site.pool.len() > 1 => (self.site.pool.clone(), Relation::Free),
            Placement::SameCpu => (vec![self.site.first()], Relation::SameCpu),
            // The cell is measured on each CPU in turn, because CPUs differ in speed. A sleeping
            // thread is equally fast on all of them.
            Placement::Pinned if load.work == Work::Spin => {
                let most = self.threads(load.work).into_iter().max().unwrap_or(1) as usize;
                let cpus: Vec<u32> = self.pool().into_iter().take(most).collect();
                let cpus = spread_out(&cpus, MAX_TURNS);
                let relation = relation_of(self.site.topology, &cpus);
                (cpus, relation)
            }
            _ => (vec![self.site.first()], Relation::SameThread),
        };
        Some(self.cell(subject, cpus, relation))
    }

    fn cell(&self, subject: LockSubject, cpus: Vec<u32>, relation: Relation) -> Cell {
        Cell {
            subject: Subject::Lock(subject),
            placement: self.placement,
            cpus,
            relation,
            payload_bytes: 0,
            line: None,
            pause: None,
            keep_awake: false,
            neighbour: None,
            built: None,
        }
    }

    /// CPUs in the order in which threads are assigned to them.
    fn pool(&self) -> Vec<u32> {
        let mut pool = vec![self.site.first()];
        pool.extend(self.site.pair.map(|(_, second)| second));
        pool.extend(
            self.site.pool.iter().copied().filter(|cpu| !pool.contains(cpu)).collect::<Vec<_>>(),
        );
        pool
    }

    fn threads(&self, work: Work) -> Vec<u32> {
        let pool =
            if self.placement == Placement::SameCpu { 1 } else { self.site.pool.len() as u32 };
        let Overrides { threads, .. } = &self.choice.overrides;
        threads.clone().unwrap_or_else(|| (self.scenario.threads)(work, pool))
    }

    fn place(
        &self,
        policy: GrantPolicy,
        threads: u32,
    ) -> Result<(Vec<u32>, Relation), &'static str> {
        let first = self.site.first();
        let pool = self.pool();
        let cpus = match self.placement {
            Placement::SameCpu => vec![first],
            Placement::Free if pool.len() < 2 => {
                return Err("only one CPU is allowed, so free placement equals same-cpu");
            }
            Placement::Free => pool,
            Placement::Pinned => pool.into_iter().take(threads as usize).collect(),
        };
        if policy.spins() && threads as usize > cpus.len() {
            return Err("its waiting threads spin, and could keep the holder off its CPU");
        }
        let relation = match self.placement {
            Placement::SameCpu => Relation::SameCpu,
            Placement::Free => Relation::Free,
            Placement::Pinned => relation_of(self.site.topology, &cpus),
        };
        Ok((cpus, relation))
    }

    fn groups(&self, bundle: &Bundle, groups: &mut Vec<Vec<PlannedCell>>) {
        let room = GROUP - 2;
        let mut chunks: Vec<Vec<(Load, &Cell)>> = Vec::new();
        for (load, cells) in &bundle.rows {
            let parts = cells.len().div_ceil(room);
            // Cells are divided evenly, so that the last group does not end up with only one.
            for part in cells.chunks(cells.len().div_ceil(parts)) {
                let part = part.iter().map(|cell| (*load, cell));
                match chunks.last_mut() {
                    Some(last) if last.len() + part.len() <= room => last.extend(part),
                    _ => chunks.push(part.collect()),
                }
            }
        }
        for chunk in chunks {
            let planned = |cell: Cell, budget: Budget| {
                PlannedCell::new(self.scenario.experiment(), cell, budget)
            };
            let Some((first, _)) = chunk.first() else { continue };
            let budget = (self.scenario.budget)(self.choice.overrides.time_ns, first);
            let reference =
                Budget { stretch_ns: REFERENCE_NS, stamped_ns: 0, stamped_count: None, ..budget };
            let mut group = vec![planned(self.site.reference(), reference)];
            let alone = bundle.alone.iter();
            group.extend(alone.map(|alone| planned(alone.clone(), shortened(budget, alone))));
            let cells = chunk.iter().map(|(_, cell)| *cell);
            group.extend(cells.map(|cell| planned(cell.clone(), shortened(budget, cell))));
            groups.push(group);
        }
    }
}

/// At most `most` of these numbers, evenly spread from the first on.
fn spread_out(all: &[u32], most: usize) -> Vec<u32> {
    let count = all.len().min(most);
    (0..count).filter_map(|at| all.get(at * all.len() / count).copied()).collect()
}

/// Blocks of shared tasks end when the tasks are done, so their length is the time that the tasks
/// should take. Blocks of callers from outside last until the lock should have recovered.
fn shortened(budget: Budget, cell: &Cell) -> Budget {
    let Some(subject) = cell.lock() else { return budget };
    if let Some(overload) = &subject.overload {
        return Budget { stamped_ns: overload::length_ns(subject.hold_ns, overload), ..budget };
    }
    let Some(tasks) = subject.tasks else { return budget };
    let shared = tasks.saturating_mul(subject.cycle_ns()) / u64::from(subject.threads);
    let stamped_ns = shared.max(tasks.saturating_mul(subject.hold_ns)).max(1);
    Budget { stamped_ns, ..budget }
}

fn subject(name: &str, threads: u32, load: &Load, read_share: Option<Share>) -> LockSubject {
    LockSubject {
        lock: name.into(),
        threads: threads.min(MAX_THREADS),
        work: load.work,
        spread: load.spread,
        hold_ns: load.hold_ns,
        think_ns: load.think_ns,
        read_share,
        tasks: load.tasks,
        overload: load.overload,
    }
}

/// Relation between the two CPUs that are farthest apart.
pub(super) fn relation_of(topology: &Topology, cpus: &[u32]) -> Relation {
    let pairs =
        cpus.iter().flat_map(|a| cpus.iter().filter(move |b| a < *b).map(move |b| (*a, *b)));
    pairs.map(|(a, b)| topology.relation(a, b)).max().unwrap_or(Relation::SameThread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_stand_for_all() {
        assert_eq!(spread_out(&[3, 1], MAX_TURNS), [3, 1]);
        let all: Vec<u32> = (0..64).collect();
        assert_eq!(spread_out(&all, MAX_TURNS), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert!(spread_out(&[], MAX_TURNS).is_empty());
    }
}

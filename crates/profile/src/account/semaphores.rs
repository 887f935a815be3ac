//! Readings of the System V semaphores for which threads wait, and the use that they show.
//!
//! A semaphore does not name its holder. The kernel keeps the process that was the last to change
//! it. If somebody takes the one of a semaphore whose value never exceeds 1, this process holds the
//! semaphore until it gives the one back; the kernel completes the operation of the next waiter
//! then, whose process becomes the last one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use threadtoll_record::profile::SemaphoreUse;
use threadtoll_stacks::process::{SemaphoreGoal, SemaphoreId, SemaphoreState, SemaphoreWait};

use crate::lookups::Lookups;
use crate::tally::count;

const MAX_SEMAPHORES: usize = 64;

const MAX_NAMES: usize = 256;

/// Between two rounds of readings, at least this time passes, and at least `COST` times the
/// duration of a round.
const LEAST_GAP: Duration = Duration::from_millis(10);
const COST: u32 = 500;

/// Minimum number of readings with waiters that show the use of a semaphore.
const FEWEST: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct Semaphores {
    all: BTreeMap<SemaphoreId, SemaphoreReadings>,
    next_round: Option<Instant>,
}

/// Readings of one semaphore.
#[derive(Debug, Default)]
pub(crate) struct SemaphoreReadings {
    /// Key of the set, if it has one.
    pub(crate) key: Option<u32>,
    goals: HashSet<SemaphoreGoal>,
    /// True if the kernel undoes the change of every waiter that ends.
    undo: bool,
    /// PIDs of the profiled processes that waited.
    waiters: HashSet<u32>,
    pub(crate) readings: u64,
    pub(crate) value_max: u32,
    /// Number of readings in which a waiter would have had to wait.
    pub(crate) taken: u64,
    /// Number of these readings with waiters.
    pub(crate) waited: u64,
    waiting_max: u32,
    /// Number of readings with waiters in which the last process to change the value waited, too.
    last_waits: u64,
    /// By PID: number of readings with waiters in which the process was the last to change the
    /// value, and did not wait.
    pub(crate) holders: HashMap<u32, u64>,
    /// By PID: number of these readings in which the process waited for work.
    pub(crate) idle: HashMap<u32, u64>,
    /// By PID: number of readings with waiters in which the process was the last to change the
    /// value.
    pub(crate) changed_by: HashMap<u32, u64>,
    /// Number of readings in which nobody would have had to wait, by whether the last process to
    /// change the value takes the semaphore, too.
    freed: [u64; 2],
    pub(crate) names: HashMap<u32, String>,
}

impl Semaphores {
    /// Reads the semaphores that the processes with these PIDs waited for.
    pub(super) fn read(
        &mut self,
        waits: impl Iterator<Item = (u32, SemaphoreWait)>,
        has_threads: &dyn Fn(u32) -> bool,
        lookups: &dyn Lookups,
    ) {
        let begun = Instant::now();
        if self.next_round.is_some_and(|next| begun < next) {
            return;
        }
        for (pid, wait) in waits {
            let id = wait.semaphore;
            if self.all.len() >= MAX_SEMAPHORES && !self.all.contains_key(&id) {
                continue;
            }
            let new = || SemaphoreReadings {
                key: lookups.key_of_semaphores(id),
                undo: true,
                ..SemaphoreReadings::default()
            };
            self.all.entry(id).or_insert_with(new).note_wait(pid, wait);
        }
        for (&id, semaphore) in &mut self.all {
            let Some(state) = lookups.semaphore(id) else { continue };
            let last = state.changed_by.map(|pid| Last {
                pid,
                name: lookups.name_of_process(pid),
                // Another thread of the process may hold the semaphore for which one waits.
                waits: lookups.waits_for_semaphore(pid, id).filter(|_| !has_threads(pid)),
                is_idle: lookups.waits_for_work(pid),
            });
            // If another process has changed the value meanwhile, nothing is known of this one.
            let again = lookups.semaphore(id).and_then(|state| state.changed_by);
            if again == state.changed_by {
                semaphore.note(&state, last);
            }
        }
        self.next_round = Some(begun + LEAST_GAP.max(begun.elapsed() * COST));
    }

    pub(crate) fn get(&self, id: SemaphoreId) -> Option<&SemaphoreReadings> {
        self.all.get(&id)
    }
}

/// The process that was the last to change a semaphore.
struct Last {
    pid: u32,
    /// Name of the process; empty if the process has ended.
    name: String,
    /// True if the process waits for the semaphore itself; `None` if that is unknown.
    waits: Option<bool>,
    is_idle: bool,
}

impl SemaphoreReadings {
    fn note_wait(&mut self, pid: u32, wait: SemaphoreWait) {
        self.goals.insert(wait.goal);
        self.undo &= wait.undo;
        if self.waiters.len() < MAX_NAMES {
            self.waiters.insert(pid);
        }
    }

    /// The goal of all waits.
    fn goal(&self) -> Option<SemaphoreGoal> {
        let mut goals = self.goals.iter();
        goals.next().copied().filter(|_| goals.next().is_none())
    }

    fn note(&mut self, state: &SemaphoreState, last: Option<Last>) {
        self.readings += 1;
        self.value_max = self.value_max.max(state.value);
        let (taken, waiting) = match self.goal() {
            Some(SemaphoreGoal::AddOneAtZero) => (state.value > 0, state.waiting_for_zero),
            Some(SemaphoreGoal::TakeOne) => (state.value == 0, state.waiting),
            _ => (false, state.waiting + state.waiting_for_zero),
        };
        self.waiting_max = self.waiting_max.max(waiting);
        self.taken += u64::from(taken);
        let is_contended = taken && waiting > 0;
        self.waited += u64::from(is_contended);
        let Some(Last { pid, name, waits, is_idle }) = last else { return };
        if !taken {
            let takes = self.waiters.contains(&pid) || self.holders.contains_key(&pid);
            self.freed[usize::from(takes)] += 1;
        }
        if waiting == 0 {
            return;
        }
        count(&mut self.changed_by, pid);
        if is_contended && !name.is_empty() {
            match waits {
                Some(true) => self.last_waits += 1,
                Some(false) => {
                    count(&mut self.holders, pid);
                    if is_idle {
                        count(&mut self.idle, pid);
                    }
                }
                None => {}
            }
        }
        if self.names.len() < MAX_NAMES && !name.is_empty() {
            self.names.entry(pid).or_insert(name);
        }
    }

    pub(crate) fn usage(&self) -> SemaphoreUse {
        /// Minimum number of readings of a free semaphore. A limit of two would have had a value of
        /// 2 in some of these.
        const FREE: u64 = 10;
        let Some(goal) = self.goal().filter(|_| self.waited >= FEWEST) else {
            return SemaphoreUse::Unknown;
        };
        if 2 * self.last_waits > self.waited {
            return SemaphoreUse::Signal;
        }
        let held: u64 = self.holders.values().sum();
        let mut users = self.waiters.clone();
        users.extend(self.holders.keys());
        let one_lets_others_wait = self.waiting_max as usize + 1 >= users.len();
        let is_exclusive = goal == SemaphoreGoal::AddOneAtZero
            || one_lets_others_wait
            || self.readings - self.taken >= FREE;
        let [by_others, by_users] = self.freed;
        let is_given_back = self.undo || by_users > by_others;
        let waiters_hold = self.waiters.iter().any(|pid| self.holders.contains_key(pid));
        // A few readings are of processes that did not yet wait again, or have ended.
        let is_lock = self.value_max <= 1
            && 10 * held >= 9 * self.waited
            && is_exclusive
            && is_given_back
            && waiters_hold;
        if is_lock { SemaphoreUse::Lock } else { SemaphoreUse::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookups::Fixed;

    const ID: SemaphoreId = SemaphoreId { set: 7, number: 0 };

    /// Readings of a semaphore for which these processes wait, each of which takes it.
    fn awaited(waiters: &[u32], goal: SemaphoreGoal, undo: bool) -> SemaphoreReadings {
        let mut semaphore = SemaphoreReadings { undo: true, ..SemaphoreReadings::default() };
        let wait = SemaphoreWait { semaphore: ID, goal, undo };
        waiters.iter().for_each(|&pid| semaphore.note_wait(pid, wait));
        semaphore
    }

    /// Reads a semaphore ten times, with values and numbers of waiters as given, after these
    /// processes have changed it in turn.
    fn read(
        semaphore: &mut SemaphoreReadings,
        [value, waiting]: [u32; 2],
        changed_by: &[u32],
        waits: bool,
    ) {
        for pid in changed_by.iter().copied().cycle().take(10) {
            let (waiting_for_zero, name) = (waiting, format!("process {pid}"));
            let state = SemaphoreState { value, changed_by: Some(pid), waiting, waiting_for_zero };
            semaphore.note(
                &state,
                Some(Last { pid, name, waits: Some(waits), is_idle: pid == Fixed::IDLE }),
            );
        }
    }

    #[test]
    fn a_lock_is_held_by_one_of_those_that_wait() {
        let all = [1, 2, 3, 4];
        let mut lock = awaited(&all, SemaphoreGoal::TakeOne, true);
        read(&mut lock, [0, 3], &all, false);
        assert_eq!(lock.usage(), SemaphoreUse::Lock);
        assert_eq!((lock.holders[&1], lock.taken, lock.readings), (3, 10, 10));
        assert!(lock.idle.is_empty());
        let mut of_pool = awaited(&[1, Fixed::IDLE], SemaphoreGoal::TakeOne, true);
        read(&mut of_pool, [0, 1], &[Fixed::IDLE], false);
        assert_eq!((of_pool.usage(), of_pool.idle[&Fixed::IDLE]), (SemaphoreUse::Lock, 10));
        // Without `SEM_UNDO`, those that take the semaphore must be seen to give it back.
        let mut lock = awaited(&all, SemaphoreGoal::TakeOne, false);
        read(&mut lock, [0, 3], &all, false);
        assert_eq!(lock.usage(), SemaphoreUse::Unknown);
        read(&mut lock, [1, 0], &[2], false);
        assert_eq!(lock.usage(), SemaphoreUse::Lock);
        let mut inverted = awaited(&all, SemaphoreGoal::AddOneAtZero, true);
        read(&mut inverted, [1, 1], &all, false);
        assert_eq!(inverted.usage(), SemaphoreUse::Lock);
        // The same values would be those of a free semaphore.
        let mut ordinary = awaited(&all, SemaphoreGoal::TakeOne, true);
        read(&mut ordinary, [1, 1], &all, false);
        assert_eq!((ordinary.usage(), ordinary.taken), (SemaphoreUse::Unknown, 0));
    }

    #[test]
    fn limits_are_no_locks() {
        let all = [1, 2, 3, 4];
        let mut limit = awaited(&all, SemaphoreGoal::TakeOne, true);
        read(&mut limit, [0, 2], &all, false);
        assert_eq!(limit.usage(), SemaphoreUse::Unknown, "two of four never wait");
        // The semaphore was free now and then, but never twice.
        read(&mut limit, [1, 0], &all, false);
        assert_eq!(limit.usage(), SemaphoreUse::Lock);
        read(&mut limit, [2, 0], &all, false);
        assert_eq!((limit.usage(), limit.value_max), (SemaphoreUse::Unknown, 2));
    }

    #[test]
    fn signals_are_no_locks() {
        // The consumer took the last item itself.
        let mut items = awaited(&[1], SemaphoreGoal::TakeOne, false);
        read(&mut items, [0, 1], &[1], true);
        assert_eq!((items.usage(), items.holders.len()), (SemaphoreUse::Signal, 0));
        // Of three consumers, one is busy. The producer, PID 9, gives what they take.
        let mut items = awaited(&[1, 2, 3], SemaphoreGoal::TakeOne, false);
        read(&mut items, [0, 2], &[1, 2, 3], false);
        read(&mut items, [1, 0], &[9], false);
        assert_eq!(items.usage(), SemaphoreUse::Unknown);
        // All wait for their start, by a process that has set the value.
        let mut start = awaited(&[1, 2, 3], SemaphoreGoal::TakeOne, true);
        read(&mut start, [0, 3], &[9], false);
        assert_eq!((start.usage(), start.changed_by[&9]), (SemaphoreUse::Unknown, 10));
        let mut barrier = awaited(&[1, 2, 3], SemaphoreGoal::Zero, false);
        read(&mut barrier, [2, 2], &[1, 2], true);
        assert_eq!(barrier.usage(), SemaphoreUse::Unknown);
    }

    #[test]
    fn few_readings_show_nothing() {
        let mut lock = awaited(&[1, 2], SemaphoreGoal::TakeOne, true);
        read(&mut lock, [0, 0], &[1, 2], false);
        assert_eq!(lock.usage(), SemaphoreUse::Unknown);
    }

    #[test]
    fn semaphores_are_read_in_rounds() {
        let wait = SemaphoreWait { semaphore: ID, goal: SemaphoreGoal::TakeOne, undo: true };
        let state =
            SemaphoreState { value: 0, changed_by: Some(11), waiting: 1, waiting_for_zero: 0 };
        let lookups = Fixed { semaphore: Some(state), ..Fixed::NOTHING };
        let mut semaphores = Semaphores::default();
        for _ in 0..2 {
            semaphores.read([(Fixed::PID, wait)].into_iter(), &|_| false, &lookups);
        }
        let read = semaphores.get(ID).unwrap();
        assert_eq!((read.readings, read.waited, read.holders[&11]), (1, 1, 1));
        assert_eq!(read.names[&11], "process 11");
        // Any of the threads of a process may hold the semaphore.
        let mut semaphores = Semaphores::default();
        semaphores.read([(Fixed::PID, wait)].into_iter(), &|_| true, &lookups);
        let read = semaphores.get(ID).unwrap();
        assert_eq!((read.waited, read.holders.len(), read.changed_by[&11]), (1, 0, 1));
    }
}

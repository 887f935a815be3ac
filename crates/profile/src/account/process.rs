//! Statistics of one process: the activities of its threads, and the objects on which they wait.

pub(crate) mod asleep;
mod calibration;
mod cpu;
mod devices;
mod ended_unseen;
mod file_locks;
mod holders;
pub(crate) mod instants;
mod lately;
mod rest;
pub(crate) mod semaphore_waits;
mod sleeps;
mod spinning;
mod still;
#[cfg(test)]
mod tests;
mod wait_targets;
mod waiting;

use std::collections::{HashMap, HashSet};

use threadtoll_judge::samples::LockSamples;
use threadtoll_judge::unseen::Unseen;
use threadtoll_stacks::process::{Activity, InnerTids, Switches};
use threadtoll_stats::Z95;

use self::asleep::{Asleep, Call, InCall};
use self::calibration::Calibration;
use self::cpu::Cpu;
use self::devices::Devices;
pub(super) use self::ended_unseen::EndedUnseen;
use self::file_locks::FileLocks;
use self::instants::{Instants, ThreadThen};
use self::lately::Lately;
use self::rest::Rest;
use self::semaphore_waits::SemaphoreWaits;
use self::sleeps::{SampledSleep, Share, SleepPlace, Sleeps, Tally, WokenUnseen};
use self::still::Still;
use super::StretchSamples;
use super::mean::{Mean, MeanEstimate, Stretches};
use super::presence::Presence;
use super::standing::Standing;
use super::stops::Stops;
use super::time::Time;
use super::trace::{HeldBy, SampledState};
use super::wait_target::{Now, WaitTarget};
use crate::circumstances::{Circumstances, Last, WhenDue};
use crate::holder::{HolderRecords, turn};
use crate::occupation::Occupation;
use crate::perf::CpuState;
use crate::primitive::{Evidence, Hold, Kind, ParkedFor, Role, Wait};
use crate::sample::{Chunk, Span, ThreadRead, Tick, Watch};
use crate::tally::count;

/// Maximum number of samples kept for wait targets that have not been classified as locks or other
/// objects yet. A sample takes some hundred bytes.
const MAX_UNJUDGED: usize = 1 << 15;

const MAX_USERS: usize = 20_000;

/// Number of samples of a futex word that suffice to classify it.
const READINGS: u32 = 64;

/// Statistics of one process.
#[derive(Debug, Default)]
pub struct ProcessAccount {
    /// PID of the process.
    pub pid: u32,
    /// Threads alive at the latest listing.
    pub threads: HashSet<u32>,
    inner: Option<InnerTids>,
    lately: Lately,
    pub(super) ended_unseen: EndedUnseen,
    pub(crate) presence: Presence,
    /// Age of the process when it was found, in seconds; `None` if it is older than the profile.
    pub(crate) found_after_s: Option<f64>,
    /// Largest number of threads alive at a time.
    pub threads_max: usize,
    /// True if the process has ended: no sample after the current stretch counts.
    pub ended: bool,
    /// Number of thread samples; set once the process has ended.
    pub(super) seen: f64,
    /// Objects on which threads of the process waited.
    pub targets: Vec<WaitTarget>,
    waited_for: Vec<u32>,
    users: HashSet<u32>,
    /// Threads whose names have not been requested yet: lock users, and threads whose states over
    /// time are kept.
    pub(crate) to_name: Vec<u32>,
    telling: Vec<u32>,
    /// True if threads waited for a lock whose word does not name its holder.
    pub nameless: bool,
    pub(crate) ran: u64,
    pub(crate) ran_at: HashMap<u32, u64>,
    cpu: Cpu,
    still: Still,
    /// Mean number of working threads, without those that may still be in their first wait.
    moving: Tally,
    /// True if threads waited on more objects than the profiler can keep apart.
    pub is_full: bool,
    stretches: Stretches,
    first_sample: Option<u64>,
    /// Samples as they count for a lock for which nobody waits.
    unwaited: LockSamples,
    room_for_unjudged: usize,
    by_word: HashMap<u64, u32>,
    by_address: HashMap<u64, u32>,
    /// Index of a lock's wait target for readers, by the index of its target for writers.
    readers: HashMap<u32, u32>,
    time: [Tally; Time::ALL.len()],
    asleep: Asleep,
    pub(crate) instants: Instants,
    pub(crate) file_locks: FileLocks,
    pub(crate) semaphores: SemaphoreWaits,
    calibration: Calibration,
    /// Number of major page faults of the process: when it was found, and now.
    pub major_faults: [u64; 2],
    unseen: WokenUnseen,
    touched: Vec<u32>,
    pub(super) held_by: Vec<(u32, HeldBy)>,
    last: HashMap<u32, Last>,
    pub(crate) standing: Standing,
    pub(crate) stops: Stops,
    sleeps: Sleeps,
    resting: HashMap<u32, Rest>,
    devices: Devices,
    /// True for a Go program.
    pub go: bool,
    /// True if the program contains a Java virtual machine.
    pub jvm: bool,
    /// True if the program's C library is not glibc.
    pub foreign_libc: bool,
    /// Requests to change the bytes that the sampler reads for a futex word.
    pub wishes: Vec<(u64, Wish)>,
    records: HolderRecords,
    /// Lock address and park token of each thread parked in the current sample, keyed by the futex
    /// word on which the thread sleeps.
    parked: HashMap<u64, (u64, u64)>,
}

/// Bytes that the sampler shall read for a futex word from now on.
#[derive(Clone, Copy, Debug)]
pub enum Wish {
    /// Read these bytes in every sample.
    Watch(Watch),
    /// Read these bytes whenever a thread is seen waiting on the word.
    WatchWaiters(Span),
    /// Read nothing in samples in which nobody waits on the word.
    Ignore,
}

impl ProcessAccount {
    /// Creates an empty account of a process.
    pub fn new(pid: u32) -> Self {
        ProcessAccount { pid, room_for_unjudged: MAX_UNJUDGED, ..ProcessAccount::default() }
    }

    /// Replaces the threads of the process and drops the state of ended threads.
    pub fn set_threads(&mut self, threads: Vec<u32>, inner: Option<InnerTids>) {
        self.inner = inner;
        self.threads_max = self.threads_max.max(threads.len());
        threads.iter().for_each(|&tid| self.lately.note(tid));
        self.threads = threads.into_iter().collect();
        self.records.keep_those_of(&self.threads);
        let alive = &self.threads;
        self.last.retain(|tid, _| alive.contains(tid));
        self.standing.retain(alive);
        self.sleeps.retain(|tid| alive.contains(&tid));
        self.calibration.retain(|tid| alive.contains(tid));
        self.resting.retain(|tid, _| alive.contains(tid));
    }

    /// Returns `true` if the process has this thread or had it until recently.
    pub fn had_thread(&self, tid: u32) -> bool {
        self.threads.contains(&tid) || self.lately.has(tid)
    }

    /// Mean number of threads that spend their time on this activity.
    pub fn time(&self, kind: Time) -> Option<MeanEstimate> {
        self.time[kind.place()].mean.estimate(&self.stretches)
    }

    pub(crate) fn lock_users(&self) -> impl Iterator<Item = &u32> {
        self.users.intersection(&self.threads)
    }

    pub(crate) fn waits_for_locks(&self) -> bool {
        !self.users.is_empty()
    }

    /// `now` is the CPU time of all threads so far, in clock ticks: in user mode, and in the
    /// kernel.
    pub(crate) fn note_cpu_ticks(&mut self, now: [u64; 2]) {
        self.cpu.note_ticks(now);
    }

    /// Threads whose switches are to be counted.
    pub(crate) fn count_next(&mut self) -> Vec<u32> {
        self.cpu.count_next(&self.threads)
    }

    /// Notes the switches of threads so far, and those on the whole machine.
    pub(crate) fn note_switches(&mut self, threads: &[(u32, Switches)], machine: u64, at: u64) {
        self.cpu.note_switches(threads, machine, at);
    }

    /// Part of the time on CPUs, or waiting for one, in which threads yielded again and again.
    pub(crate) fn yielding(&self) -> f64 {
        self.cpu.yielding()
    }

    pub(crate) fn kernel_share(&self) -> Option<f64> {
        self.cpu.kernel_share()
    }

    /// Mean number of threads that would count as working, but have been in one wait since the
    /// profile began and so do no work.
    pub(crate) fn still_all_along(&self) -> f64 {
        let first = self.first_sample.unwrap_or_default();
        self.still.threads(&self.standing, first, &self.stretches)
    }

    pub(crate) fn working_error(&self) -> f64 {
        self.moving.mean.estimate(&self.stretches).map_or(0.0, |moving| moving.error)
    }

    /// Number of live threads that have been in one wait since the profile began and were never
    /// seen using a lock.
    pub(crate) fn without_part(&self) -> usize {
        let still = self.still.all(&self.standing, self.first_sample.unwrap_or_default());
        still.filter(|tid| self.threads.contains(tid) && !self.users.contains(tid)).count()
    }

    pub(crate) fn asleep(&self) -> impl Iterator<Item = (Call, MeanEstimate, &InCall)> {
        self.asleep.all(&self.stretches)
    }

    pub(crate) fn has_paged(&self) -> bool {
        self.asleep.has((Time::Paging, None))
    }

    /// Returns `true` if threads in page faults wait for a disk, judging by the number of major
    /// faults and the time spent in faults. Otherwise they wait for memory, or for the lock on the
    /// process's mappings.
    pub(crate) fn pages_from_disk(&self) -> bool {
        const LONGEST_S: f64 = 0.5;
        let [before, now] = self.major_faults;
        let faults = now.saturating_sub(before);
        let paging = self.time(Time::Paging).map_or(0.0, |threads| threads.mean);
        faults > 0 && paging * self.seconds() <= LONGEST_S * faults as f64
    }

    /// Observed time in seconds, over which means are taken.
    pub fn seconds(&self) -> f64 {
        self.stretches.length()
    }

    /// Estimates the waits that no sample saw and that may have been for this lock.
    pub fn unseen(&self, lock: &WaitTarget) -> Unseen {
        if lock.identity.kind() == Kind::Spinlock {
            return self.unseen_spinners();
        }
        if lock.counts_waiters() {
            return Unseen::default();
        }
        let mean = |mean: &Mean| mean.estimate(&self.stretches).map_or(0.0, |threads| threads.mean);
        let yielding = lock.identity.waiters_yield().then(|| mean(&self.unseen.yielding.mean));
        let here = mean(&lock.queue.unseen);
        Unseen {
            here,
            elsewhere: (mean(&self.unseen.shared_out.mean) - here).max(0.0),
            anywhere: mean(&self.unseen.anywhere.mean) + yielding.unwrap_or(0.0),
            ended: self.ended_unseen(),
        }
    }

    /// Mean number of threads that had ended before a sample could read them.
    pub fn ended_unseen(&self) -> f64 {
        self.ended_unseen.mean.estimate(&self.stretches).map_or(0.0, |threads| threads.mean)
    }

    /// Mean number of threads that wait for a wait target.
    pub fn waiters(&self, target: &WaitTarget) -> Option<MeanEstimate> {
        match target.identity.kind() {
            Kind::Spinlock => self.running_in(target.spun),
            _ => target.queue.waiters.estimate(&self.stretches),
        }
    }

    /// Number of threads that were ever seen waiting for a wait target, or of all threads if its
    /// word counts them; `None` if more threads may have waited. If each sample reads only some
    /// threads, the estimated mean may exceed this number.
    pub(crate) fn most_waiting(&self, target: &WaitTarget) -> Option<f64> {
        if target.counts_waiters() {
            return Some(self.threads_max as f64);
        }
        let (threads, samples) = (target.waiting.len(), target.waiting.values().sum::<u64>());
        let all = threads <= self.threads_max && samples >= 20 * threads as u64;
        all.then_some(threads as f64)
    }

    /// Samples of a lock's state and queue.
    pub fn samples(&self, lock: &WaitTarget) -> LockSamples {
        // The lock's state counts as known from when the lock was first seen, even if its word was
        // read only later.
        let known_since = lock.held.known_since.map(|since| since.min(lock.first_seen));
        let known = self.first_sample.zip(known_since);
        let unknown_ns = known.map_or(0, |(first, since)| since.saturating_sub(first));
        let unknown_s = unknown_ns as f64 / 1e9;
        match lock.identity.kind() {
            Kind::Spinlock => self.samples_of_spinlock(lock, unknown_s),
            _ => lock.held.samples.among(&self.unwaited, unknown_s, self.seconds()),
        }
    }

    /// Returns the thread's state if the thread was picked at random.
    pub(super) fn thread(
        &mut self,
        read: &ThreadRead,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<SampledState> {
        if !self.threads.contains(&read.tid) {
            self.lately.note(read.tid);
        }
        if self.stops.all_along() {
            return None;
        }
        self.standing.note(read, at, || seen.still_since(read, at));
        let (stand, first) = (self.standing.get(read.tid), self.first_sample.unwrap_or(at));
        let may_be_still = self.still.note(read.tid, stand, first, at);
        let mut waiting_on = None;
        let scale = if read.picked { seen.scale * self.weight(read, at, seen) } else { 0.0 };
        let last = self.last.get(&read.tid).copied().unwrap_or_default();
        let when_due = seen.when_due(read, at, last);
        // Each thread counts once per sample: for the object on which it waited when the sample was
        // due or, if it did not wait then, for its present activity.
        let waited = last.waiting_on.filter(|_| when_due == WhenDue::AsBefore);
        let scale_now = if waited.is_some() { 0.0 } else { scale };
        let doing = match Occupation::of(&read.activity) {
            Occupation::Futex(wait) if read.picked => {
                let awake = when_due == WhenDue::Awake;
                let scale = if awake { 0.0 } else { scale_now };
                let (word, wait) = (wait.address, Wait::Futex(wait));
                waiting_on = self.wait(read.tid, word, wait, scale, at, seen.sample);
                let kind = match awake {
                    true => Some(Time::on_cpu(seen.state(read.tid, seen.due))),
                    false => waiting_on.is_none().then_some(Time::Other),
                };
                if let Some(kind) = kind {
                    self.time[kind.place()].now += scale_now;
                    self.moving.now += if awake { scale_now } else { 0.0 };
                }
                kind
            }
            Occupation::Futex(_) => None,
            Occupation::OnCpu => {
                let state = seen.state(read.tid, at);
                let waits = match when_due {
                    WhenDue::Unseen => self.wait_unseen(read.tid, scale_now, seen),
                    _ => 0.0,
                };
                let kind = Time::on_cpu(state);
                self.time[kind.place()].now += scale_now - waits;
                self.moving.now += scale_now - waits;
                if seen.has_yielded(read.tid) {
                    self.unseen.yielding.now += scale_now;
                }
                if let Some(place) = self.spins_for(read, at, seen) {
                    waiting_on = Some(place);
                    self.touch(place, seen.sample).now.spins = true;
                }
                if let (true, Some(place)) = (seen.is_woken(read, at), last.waiting_on) {
                    waiting_on = Some(place);
                    if let Some(overtaken_by) = self.turn(place, read.tid, last, at, seen) {
                        self.touch(place, seen.sample).patterns.turn(overtaken_by);
                    }
                }
                Some(kind)
            }
            occupation => {
                let kind = self.devices.time(occupation, read.process, at, seen);
                match may_be_still {
                    true if kind.is_work() => self.still.add(read.tid, scale_now),
                    false if kind.is_work() => self.moving.now += scale_now,
                    _ => {}
                }
                self.time[kind.place()].now += scale_now;
                self.note_asleep(kind, read, scale_now, at, seen);
                Some(kind)
            }
        };
        if let Some(place) = waited {
            let woken = read.activity == Activity::OnCpu && waiting_on.is_some();
            let now = &mut self.touch(place, seen.sample).now;
            match woken {
                true => now.waking += scale,
                false => now.waiting += scale,
            }
            now.woken += u32::from(woken && read.picked);
        }
        if let (Some(stack), Some(place)) = (read.stack_number, waiting_on) {
            let target = &mut self.targets[place as usize];
            target.waits_at(stack, seen.sample);
            if !target.identity.certain && target.telling_stack.replace(stack).is_none() {
                self.telling.push(place);
            }
        }
        if read.picked {
            let woken = read.activity == Activity::OnCpu;
            let on = waiting_on.map(|place| self.targets[place as usize].identity);
            let at_rest = on.map_or_else(
                || doing.is_some_and(|kind| !kind.is_work()),
                |identity| match identity.role() {
                    Role::Lock => false,
                    Role::Idle | Role::Unknown => true,
                    Role::Parked => identity.parked_for(&[]) == ParkedFor::Idle,
                },
            );
            self.cpu.sample(read.tid, scale / seen.scale, woken, at_rest);
            let before = self.last.get(&read.tid).copied();
            let asleep_at = before.filter(|_| woken).map_or(at, |before| before.asleep_at);
            let asleep_with = match read.stack_number {
                Some(stack) => Some((stack, at)),
                None => before.and_then(|before| before.asleep_with),
            };
            self.last.insert(read.tid, Last { at, waiting_on, asleep_at, asleep_with });
            if !seen.late {
                self.note_sleep(read, waiting_on, at, seen);
            }
            if seen.timeline.is_none() {
                self.resting.entry(read.tid).or_insert_with(|| Rest::of(read, at)).see(read, at);
            }
            if let Some(before) = before.filter(|before| before.waiting_on != waiting_on)
                && let (Some(place), Activity::Asleep(_)) = (before.waiting_on, read.activity)
            {
                self.released_after(place, before.asleep_at);
            }
            if let (Some(place), Some(before)) = (waiting_on, before)
                && before.waiting_on != waiting_on
            {
                // Only condition variables and semaphores can cause a herd. Threads leave a barrier
                // together, too, but not to take the lock.
                let idle = |&other: &u32| {
                    let kind = self.targets[other as usize].identity.kind();
                    matches!(kind, Kind::Condvar | Kind::Semaphore)
                };
                let before = before.waiting_on.filter(idle);
                self.targets[place as usize].now.arrivals.push(before);
            }
        }
        let on = |place| SampledState::On { place, lock: self.targets[place as usize].is_lock() };
        let state = match (waited, doing) {
            (Some(place), _) => Some(on(place)),
            (None, Some(kind)) => Some(SampledState::Doing(kind)),
            (None, None) => waiting_on.map(on),
        };
        let state = state.filter(|_| read.picked)?;
        let slept_with = last.asleep_with.map(|(stack, _)| stack);
        let stack = match (waited, waiting_on) {
            (Some(_), _) => slept_with,
            (None, on) => seen.stack(read, at).or_else(|| {
                let slept_on = on.is_some() && on == last.waiting_on;
                let same = || Some(seen.still_since(read, at)? <= last.asleep_with?.1);
                slept_with.filter(|_| slept_on || same() == Some(true))
            }),
        };
        let call =
            if let Activity::Asleep(call) = read.activity { Some(call.number) } else { None };
        self.instants.saw(ThreadThen::new(read.tid, state, call, stack));
        Some(state)
    }

    /// Returns the thread that overtook a woken waiter and took its lock; `Some(None)` if no thread
    /// did, and `None` if that is unknown.
    fn turn(
        &self,
        place: u32,
        tid: u32,
        last: Last,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<Option<u32>> {
        let target = Some(&self.targets[place as usize]).filter(|target| target.is_lock())?;
        turn(&self.threads, target.now.hold, tid, last, at, seen)
    }

    fn released_after(&mut self, place: u32, asleep_at: u64) {
        let target = &self.targets[place as usize];
        // If waits have a timeout, the thread may have given up without the lock.
        if !target.is_lock() || target.gives_up {
            return;
        }
        for place in [Some(place), target.twin].into_iter().flatten() {
            self.targets[place as usize].holder.released_after(asleep_at);
        }
    }

    fn note_sleep(
        &mut self,
        read: &ThreadRead,
        waiting_on: Option<u32>,
        at: u64,
        seen: &Circumstances<'_>,
    ) {
        let state = seen.timeline.and_then(|timeline| timeline.state_since(read.tid, at));
        let Some((CpuState::SwitchedOut, since)) = state else { return };
        match read.activity {
            Activity::Asleep(call) => {
                let place = waiting_on.map_or(SleepPlace::In(call.number), SleepPlace::On);
                let sleep = SampledSleep { place, since, age: at - since };
                self.sleeps.note(read.tid, sleep, seen.samples_per_ns());
            }
            Activity::OnCpu => self.sleeps.note_woken(read.tid, since),
            Activity::Faulting { .. } => {}
        }
    }

    /// Counts a thread that waits for a CPU after a sleep that no sample saw. Returns the part of
    /// `scale` that is attributed to known wait targets.
    fn wait_unseen(&mut self, tid: u32, scale: f64, seen: &Circumstances<'_>) -> f64 {
        if scale == 0.0 {
            return 0.0;
        }
        let shares = self.sleeps.unseen(tid);
        if shares.is_empty() {
            self.unseen.anywhere.now += scale;
            return 0.0;
        }
        self.unseen.shared_out.now += scale;
        let mut waits = 0.0;
        for (target, share) in shares.into_iter().filter_map(Share::on) {
            let now = &mut self.touch(target, seen.sample).now;
            now.waking += scale * share;
            now.unseen += scale * share;
            waits += scale * share;
        }
        waits
    }

    fn note_asleep(
        &mut self,
        kind: Time,
        read: &ThreadRead,
        scale: f64,
        at: u64,
        seen: &Circumstances<'_>,
    ) {
        let call = if let Activity::Asleep(call) = &read.activity { Some(call) } else { None };
        let sleeps = (kind, call.map(|call| call.number));
        if scale > 0.0 {
            self.asleep.add(sleeps, scale);
        }
        if let Some(stack) = read.stack_number.filter(|_| read.picked) {
            let state = seen.timeline.and_then(|timeline| timeline.state_since(read.tid, at));
            let age = match state {
                Some((CpuState::SwitchedOut, since)) => Some(at.saturating_sub(since)),
                _ => None,
            };
            self.asleep.saw_stack(sleeps, stack, age);
            if let Some(call) = call {
                self.file_locks.saw(call, stack, read.process, at, seen.lookups);
                self.semaphores.saw(call, stack, read, at, seen.lookups);
            }
        }
    }

    /// Counts a sample of a running thread with this stack.
    pub fn note_running(&mut self, stack: u32) {
        self.ran += 1;
        count(&mut self.ran_at, stack);
    }

    pub(super) fn end_sample(&mut self, chunk: &Chunk, tick: &Tick, seen: &Circumstances<'_>) {
        self.time.iter_mut().for_each(|time| time.end_sample(tick.times));
        self.still.end_sample(tick.times);
        self.moving.end_sample(tick.times);
        self.asleep.end_sample(tick.times);
        self.instants.end_sample(tick.at, seen.examined_all(), &self.targets, seen.timeline);
        self.unseen.end_sample(tick.times);
        self.ended_unseen.end_sample(tick.times);
        self.first_sample.get_or_insert(seen.due);
        let touched = std::mem::take(&mut self.touched);
        for &place in &touched {
            let target = &self.targets[place as usize];
            let contended = target.is_lock() && target.now.is_waited_for() && !seen.late;
            self.count_holder(place, chunk, tick, seen, contended);
            let target = &mut self.targets[place as usize];
            if contended {
                target.patterns.sample(&target.now, seen.scale);
                match target.now.hold {
                    Some(Hold::Held { owner: Some(tid) }) => {
                        self.held_by.push((place, HeldBy::Thread(tid)));
                    }
                    None | Some(Hold::Unseen) => {}
                    Some(_) if target.holder.names_owner => {
                        self.held_by.push((place, HeldBy::NotSeen));
                    }
                    Some(_) => {}
                }
            }
            let waited_before = !target.queue.waiters.is_unchanged();
            let room = &mut self.room_for_unjudged;
            target.end_sample(tick.times, seen, self.threads_max, room);
            if !waited_before && !target.queue.waiters.is_unchanged() {
                self.waited_for.push(place);
            }
            if target.is_lock() {
                let users = &mut self.users;
                let new = |&tid: &u32| users.len() < MAX_USERS && users.insert(tid);
                self.to_name.extend(target.now.users().filter(new));
            }
        }
        self.touched = touched;
        self.touched.clear();
        self.parked.clear();
    }

    /// Upper bound on how many of `threads` threads, seen over the whole run, were alive at the
    /// same time.
    pub fn at_once(&self, threads: usize) -> usize {
        threads.min(self.threads_max.max(1))
    }

    /// Returns `true` if a semaphore may be used as a lock: its value never exceeded 1, and on
    /// average at least one of its users did not wait, as the holder of a lock does not.
    pub fn may_lock(&self, target: &WaitTarget) -> bool {
        let others = self.at_once(target.waiting.len()) as f64 - 1.0;
        let waiters = self.waiters(target).map(|waiters| waiters.mean - Z95 * waiters.error);
        target.may_lock()
            && target.readings >= READINGS
            && waiters.is_some_and(|least| 0.0 < least && least <= others)
    }

    /// Mean number of these threads on a CPU: a thread's mean share of time on a CPU, times the
    /// number of these threads that were alive at a time.
    pub fn on_cpu(&self, threads: &HashSet<u32>) -> f64 {
        self.cpu.on_cpu(threads) * self.at_once(threads.len()) as f64
    }

    /// Share of time in which these threads waited for work, or for other threads without waiting
    /// for a lock.
    pub(crate) fn at_rest(&self, threads: &HashSet<u32>) -> f64 {
        self.cpu.at_rest(threads)
    }

    pub(super) fn end(&mut self) {
        let times = self.time.iter().map(|time| &time.mean);
        let means = times.chain(self.targets.iter().map(|target| &target.queue.waiters));
        let threads = means.filter_map(|mean| mean.estimate(&self.stretches));
        self.seen = threads.map(|threads| threads.mean * threads.samples).sum();
        self.drop_sampling_state();
    }

    /// Frees the memory that only further samples would need, because hundreds of ended processes
    /// are kept.
    fn drop_sampling_state(&mut self) {
        for target in &mut self.targets {
            drop(target.take_unjudged());
            (target.evidence, target.now) = (Evidence::new(target.address), Now::default());
            target.telling_stack = None;
        }
        (self.inner, self.lately) = (None, Lately::default());
        (self.waited_for, self.touched, self.telling) = (Vec::new(), Vec::new(), Vec::new());
        (self.to_name, self.wishes) = (Vec::new(), Vec::new());
        (self.by_word, self.by_address) = (HashMap::new(), HashMap::new());
        (self.readers, self.records) = (HashMap::new(), HolderRecords::default());
        (self.last, self.sleeps) = (HashMap::new(), Sleeps::default());
        (self.resting, self.parked) = (HashMap::new(), HashMap::new());
        (self.devices, self.calibration) = (Devices::default(), Calibration::default());
        self.still.settle(&self.standing, self.first_sample.unwrap_or_default());
        self.standing.forget();
    }

    pub(super) fn end_stretch(&mut self, length_s: f64, ended: &StretchSamples) {
        self.unwaited.extend(&ended.unwaited);
        let Some(stretch) = self.stretches.end_stretch(length_s, &ended.samples) else { return };
        self.time.iter_mut().for_each(|time| time.mean.end_stretch(&stretch));
        self.asleep.end_stretch(&stretch);
        self.unseen.end_stretch(&stretch);
        self.still.end_stretch(&stretch);
        self.moving.mean.end_stretch(&stretch);
        self.ended_unseen.mean.end_stretch(&stretch);
        for place in self.waited_for.drain(..) {
            self.targets[place as usize].queue.end(&stretch);
        }
    }
}

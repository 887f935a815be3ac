//! One process: how its threads spend their time, and what they wait on.

pub(crate) mod asleep;
mod calibration;
mod cpu;
mod devices;
mod ended_unseen;
pub(crate) mod file_locks;
mod holders;
pub(crate) mod instants;
mod lately;
mod rest;
mod sleeps;
mod still;
#[cfg(test)]
mod tests;
mod wait_targets;
mod waiting;

use std::collections::{HashMap, HashSet};

use threadtoll_judge::samples::LockSamples;
use threadtoll_judge::unseen::Unseen;
use threadtoll_stacks::process::{Activity, InnerTids};
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

/// Maximum number of samples, of some hundred bytes each, that are kept for wait targets not yet
/// known to be locks or not.
const MAX_UNJUDGED: usize = 1 << 15;

/// Maximum number of threads whose names are kept.
const MAX_USERS: usize = 20_000;

/// Number of samples of a word after which more would add nothing.
const READINGS: u32 = 64;

/// One process.
#[derive(Debug, Default)]
pub struct ProcessAccount {
    /// Its PID.
    pub pid: u32,
    /// Its threads.
    pub threads: HashSet<u32>,
    inner: Option<InnerTids>,
    /// Its threads, and those that have ended recently.
    lately: Lately,
    /// Threads that had ended before a sample could read them.
    pub(super) ended_unseen: EndedUnseen,
    /// The part of the current stretch during which it was observed.
    pub(crate) presence: Presence,
    /// Seconds for which it had lived when it was found, if it began during the profile.
    pub(crate) found_after_s: Option<f64>,
    /// Largest number of threads at a time.
    pub threads_max: usize,
    /// True if it has ended: nothing counts after the current stretch.
    pub ended: bool,
    /// Time of all its threads together, once it has ended.
    pub(super) seen: f64,
    /// The wait targets.
    pub targets: Vec<WaitTarget>,
    /// Wait targets for which threads waited in the current stretch.
    waited_for: Vec<u32>,
    /// Threads that were seen to hold a lock or to wait for one.
    users: HashSet<u32>,
    /// Threads whose names have not been requested yet: those that use locks, and those whose
    /// states over time are kept.
    pub(crate) to_name: Vec<u32>,
    /// Wait targets about which a waiter's stack may reveal more.
    telling: Vec<u32>,
    /// True if the word of some lock for which threads waited does not name its holder.
    pub nameless: bool,
    /// Number of samples of running threads, and their stacks.
    pub(crate) ran: u64,
    pub(crate) ran_at: HashMap<u32, u64>,
    cpu: Cpu,
    /// Threads that have been in one wait since the profile began.
    still: Still,
    /// Threads that work and are not known to have been in one wait so far.
    moving: Tally,
    /// True if threads waited on more wait targets than can be distinguished.
    pub is_full: bool,
    stretches: Stretches,
    /// Due time of the first sample of it.
    first_sample: Option<u64>,
    /// Samples of a lock for which nobody has waited.
    unwaited: LockSamples,
    room_for_unjudged: usize,
    by_word: HashMap<u64, u32>,
    by_address: HashMap<u64, u32>,
    /// Accounts of the readers of locks, keyed by those of their writers.
    readers: HashMap<u32, u32>,
    /// Mean number of threads, by what they spend their time on.
    time: [Tally; Time::ALL.len()],
    /// Threads that sleep, by system call and stack.
    asleep: Asleep,
    pub(crate) instants: Instants,
    pub(crate) file_locks: FileLocks,
    calibration: Calibration,
    /// Number of page faults that read from a disk: when it was first seen, and now.
    pub major_faults: [u64; 2],
    /// Mean number of threads that wait for a CPU and whose previous activity no sample saw.
    unseen: WokenUnseen,
    touched: Vec<u32>,
    /// Holders of the locks that were contended in the current sample.
    pub(super) held_by: Vec<(u32, HeldBy)>,
    last: HashMap<u32, Last>,
    /// Threads that have not moved between samples.
    pub(crate) standing: Standing,
    /// Times during which it was stopped.
    pub(crate) stops: Stops,
    sleeps: Sleeps,
    /// Threads that are still in the sleep in which they were first seen, with its place. Used if
    /// there are no records of switches.
    resting: HashMap<u32, Rest>,
    devices: Devices,
    /// True if the program was built by Go.
    pub go: bool,
    /// True if the program contains a Java virtual machine.
    pub jvm: bool,
    /// True if the program's C library is not glibc.
    pub foreign_libc: bool,
    /// Words that the sampler is to read differently from now on.
    pub wishes: Vec<(u64, Wish)>,
    /// Holders' records to which locks point.
    records: HolderRecords,
    /// Locks for which parked threads wait in the current sample, by the parker's word.
    parked: HashMap<u64, (u64, u64)>,
}

/// Bytes that the sampler is to read for a word from now on.
#[derive(Clone, Copy, Debug)]
pub enum Wish {
    /// These, in every sample.
    Watch(Watch),
    /// These, with each waiter.
    WatchWaiters(Span),
    /// None in samples in which nobody waits.
    Ignore,
}

impl ProcessAccount {
    /// An account of a process.
    pub fn new(pid: u32) -> Self {
        ProcessAccount { pid, room_for_unjudged: MAX_UNJUDGED, ..ProcessAccount::default() }
    }

    /// Replaces the threads of the process by these.
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

    /// Returns `true` if it has this thread, or had it until recently.
    pub fn had_thread(&self, tid: u32) -> bool {
        self.threads.contains(&tid) || self.lately.has(tid)
    }

    /// Mean number of threads that spend their time in this way.
    pub fn time(&self, kind: Time) -> Option<MeanEstimate> {
        self.time[kind.place()].mean.estimate(&self.stretches)
    }

    /// Threads alive that were seen to hold a lock or to wait for one.
    pub(crate) fn lock_users(&self) -> impl Iterator<Item = &u32> {
        self.users.intersection(&self.threads)
    }

    /// Returns `true` if threads were seen waiting for its locks.
    pub(crate) fn waits_for_locks(&self) -> bool {
        !self.users.is_empty()
    }

    /// Notes for how many clock ticks its threads have been on a CPU so far: in its own code, and
    /// in the kernel.
    pub(crate) fn note_cpu_ticks(&mut self, now: [u64; 2]) {
        self.cpu.note_ticks(now);
    }

    /// Share of its threads' CPU time that was spent in the kernel.
    pub(crate) fn kernel_share(&self) -> Option<f64> {
        self.cpu.kernel_share()
    }

    /// Mean number of threads that have been in one wait since the profile began, and so have no
    /// part in the work, of those that would count as working.
    pub(crate) fn still_all_along(&self) -> f64 {
        let first = self.first_sample.unwrap_or_default();
        self.still.threads(&self.standing, first, &self.stretches)
    }

    /// Standard error of the mean number of threads that work.
    pub(crate) fn working_error(&self) -> f64 {
        self.moving.mean.estimate(&self.stretches).map_or(0.0, |moving| moving.error)
    }

    /// Number of threads that have been in one wait since the profile began, and were not seen to
    /// hold a lock or to wait for one.
    pub(crate) fn without_part(&self) -> usize {
        let still = self.still.all(&self.standing, self.first_sample.unwrap_or_default());
        still.filter(|tid| self.threads.contains(tid) && !self.users.contains(tid)).count()
    }

    /// Threads asleep in system calls other than futex(2): their mean number, and their stacks.
    pub(crate) fn asleep(&self) -> impl Iterator<Item = (Call, MeanEstimate, &InCall)> {
        self.asleep.all(&self.stretches)
    }

    /// Returns `true` if a thread was seen in a page fault.
    pub(crate) fn has_paged(&self) -> bool {
        self.asleep.has((Time::Paging, None))
    }

    /// Returns `true` if page faults read from a disk, judging by their number and the time spent
    /// in them. Other faults wait for memory, or for a lock on the process's mappings.
    pub(crate) fn pages_from_disk(&self) -> bool {
        /// Longest time that a disk takes for one fault.
        const LONGEST_S: f64 = 0.5;
        let [before, now] = self.major_faults;
        let faults = now.saturating_sub(before);
        let paging = self.time(Time::Paging).map_or(0.0, |threads| threads.mean);
        faults > 0 && paging * self.seconds() <= LONGEST_S * faults as f64
    }

    /// Time over which its means are taken, in seconds.
    pub fn seconds(&self) -> f64 {
        self.stretches.length()
    }

    /// Waits that no sample saw and that may concern this lock.
    pub fn unseen(&self, lock: &WaitTarget) -> Unseen {
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
        target.queue.waiters.estimate(&self.stretches)
    }

    /// Number of threads that were ever seen waiting for a wait target; `None` if there may be
    /// more. A mean that is estimated from samples of some of the threads may be larger.
    pub(crate) fn most_waiting(&self, target: &WaitTarget) -> Option<f64> {
        let (threads, samples) = (target.waiting.len(), target.waiting.values().sum::<u64>());
        let all = threads <= self.threads_max && samples >= 20 * threads as u64;
        all.then_some(threads as f64)
    }

    /// Samples of the held share and the queue of a lock.
    pub fn samples(&self, lock: &WaitTarget) -> LockSamples {
        // After the first thread has waited for the lock, samples without its word are like the
        // others.
        let known_since = lock.held.known_since.map(|since| since.min(lock.first_seen));
        let known = self.first_sample.zip(known_since);
        let unknown_ns = known.map_or(0, |(first, since)| since.saturating_sub(first));
        lock.held.samples.among(&self.unwaited, unknown_ns as f64 / 1e9, self.seconds())
    }

    /// Counts a thread. Returns its state if it was picked at random.
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
        // The thread counts once: for what it waited for when the sample was due or, failing that,
        // for what it does now.
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
                    // A thread that waits for something unknown does not move.
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
                if let (true, Some(place)) = (seen.is_woken(read, at), last.waiting_on) {
                    // The thread was woken from that wait, or from a later sleep, and has no CPU
                    // yet.
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
                // Threads that leave a barrier together are not woken for the lock.
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
        self.instants.saw(ThreadThen { tid: read.tid, state, call, stack });
        Some(state)
    }

    /// Which thread took the lock that a woken waiter was about to take; `Some(None)` if the lock
    /// is still the waiter's, and `None` if that is unknown.
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

    /// Notes that a thread that slept for this wait target until now has gone on.
    fn released_after(&mut self, place: u32, asleep_at: u64) {
        let target = &self.targets[place as usize];
        // A thread that gave up did not get the lock.
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

    /// Counts a thread that waits for a CPU after a sleep in which no sample saw it. Returns the
    /// part of it that waits for known wait targets.
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

    /// Notes that a thread sleeps outside futexes.
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
            }
        }
    }

    /// Notes that a thread ran with this stack.
    pub fn note_running(&mut self, stack: u32) {
        self.ran += 1;
        count(&mut self.ran_at, stack);
    }

    pub(super) fn end_sample(&mut self, chunk: &Chunk, tick: &Tick, seen: &Circumstances<'_>) {
        self.time.iter_mut().for_each(|time| time.end_sample(tick.times));
        self.still.end_sample(tick.times);
        self.moving.end_sample(tick.times);
        self.asleep.end_sample(tick.times);
        self.instants.end_sample(seen.examined_all(), &self.targets);
        self.unseen.end_sample(tick.times);
        self.ended_unseen.end_sample(tick.times);
        self.first_sample.get_or_insert(seen.due);
        let touched = std::mem::take(&mut self.touched);
        for &place in &touched {
            let target = &self.targets[place as usize];
            let contended = target.is_lock() && !target.now.waiters.is_empty() && !seen.late;
            self.count_holder(place, chunk, tick, seen, contended);
            let target = &mut self.targets[place as usize];
            if contended {
                target.patterns.sample(&target.now, seen.scale);
                match target.now.hold {
                    Some(Hold::Held { owner: Some(tid) }) => {
                        self.held_by.push((place, HeldBy::Thread(tid)));
                    }
                    // Not every sample reads the words of all locks.
                    None | Some(Hold::Unseen) => {}
                    Some(_) if target.holder.names_owner => {
                        self.held_by.push((place, HeldBy::NotSeen));
                    }
                    Some(_) => {}
                }
            }
            let waited_before = !target.queue.waiters.is_unchanged();
            target.end_sample(tick.times, seen, &mut self.room_for_unjudged);
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

    /// Maximum number of threads, of those seen over the whole run, that may have been alive at the
    /// same time: if threads come and go, most of them never meet.
    pub fn at_once(&self, threads: usize) -> usize {
        threads.min(self.threads_max.max(1))
    }

    /// Returns `true` if a semaphore may be used as a lock: it never had more than one item, and
    /// one of the threads that wait for it was always elsewhere, like the holder of a lock.
    pub fn may_lock(&self, target: &WaitTarget) -> bool {
        let others = self.at_once(target.waiting.len()) as f64 - 1.0;
        let waiters = self.waiters(target).map(|waiters| waiters.mean - Z95 * waiters.error);
        target.may_lock()
            && target.readings >= READINGS
            && waiters.is_some_and(|least| 0.0 < least && least <= others)
    }

    /// Mean number of these threads that were on a CPU, limited to as many as were alive at the
    /// same time.
    pub fn on_cpu(&self, threads: &HashSet<u32>) -> f64 {
        self.cpu.on_cpu(threads) * self.at_once(threads.len()) as f64
    }

    /// Share of the time for which these threads waited for work, or for other threads but not for
    /// a lock.
    pub(crate) fn at_rest(&self, threads: &HashSet<u32>) -> f64 {
        self.cpu.at_rest(threads)
    }

    /// Ends the account: the last samples have been folded.
    pub(super) fn end(&mut self) {
        let times = self.time.iter().map(|time| &time.mean);
        let means = times.chain(self.targets.iter().map(|target| &target.queue.waiters));
        let threads = means.filter_map(|mean| mean.estimate(&self.stretches));
        self.seen = threads.map(|threads| threads.mean * threads.samples).sum();
        self.drop_sampling_state();
    }

    /// Drops everything that only further samples need, because hundreds of ended processes are
    /// kept.
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

//! Opens perf events for threads and programs, and drains their rings.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;

use threadtoll_machine::place::{allowed_cpus, cpus_of_thread};

use super::attribute::{Attribute, enable, redirect};
use super::budget::{SwitchBudget, SwitchCosts};
use super::limits::Limits;
use super::records::Event;
use super::refused::PerfRefused;
use super::ring::Ring;
use crate::clock::{now, thread_cpu};

const MOST_STACK_BYTES: u32 = 32 << 10;

/// Minimum size in bytes of a single thread's ring: it holds a quarter of a second at 2,000
/// records/s.
const LEAST_OWN_RING_BYTES: usize = 16 << 10;

/// Time in nanoseconds within which the kernel finishes a record that it is writing.
pub(crate) const SETTLE_NS: u64 = 1_000_000;

/// Events to report.
#[derive(Clone, Copy, Debug)]
pub struct EventOptions {
    /// True to report context switches.
    pub switches: bool,
    /// Samples to take, if any.
    pub samples: Option<SampleOptions>,
}

/// Period and size of samples.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// Time in nanoseconds on one CPU between two samples of a thread; the kernel's minimum is 10
    /// µs.
    pub period_ns: u64,
    /// Bytes of stack to copy, at most 32 KiB.
    pub stack_bytes: u32,
}

/// Outcome of a request to follow a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// The thread is followed.
    Now,
    /// There are too many threads to follow at once; this thread waits for its turn.
    InTurns,
    /// The thread has ended.
    Ended,
}

/// Numbers of threads that take turns.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a> {
    /// Number of threads that are followed now.
    pub followed: usize,
    /// Number of threads that wait to be followed.
    pub waiting: usize,
    /// Reason for which threads take turns.
    pub why: &'a PerfRefused,
}

/// Events of one thread, or of a program whose threads inherit them.
#[derive(Debug)]
struct EventSource {
    number: u64,
    inherited: bool,
    /// CPUs on which the thread has events; empty if it has a ring of its own.
    cpus: BTreeSet<u32>,
    switches: Vec<OwnedFd>,
    samples: Vec<OwnedFd>,
    ring: Option<Ring>,
}

impl EventSource {
    fn descriptors(&self) -> usize {
        self.switches.len() + self.samples.len() + usize::from(self.ring.is_some())
    }
}

enum Failure {
    Ended,
    Refused(PerfRefused),
}

impl Failure {
    fn is_scarcity(&self) -> bool {
        matches!(self, Failure::Refused(why) if why.is_scarcity())
    }
}

/// Perf events of any number of threads.
///
/// A ring holds about 8,000 switches or 30 samples of 8 KiB: call [`Events::drain`] and
/// [`Events::keep_within`] at least four times a second, and [`Events::refresh`] once a second.
#[derive(Debug)]
pub struct Events {
    options: EventOptions,
    limits: Limits,
    rings: BTreeMap<u32, Ring>,
    followed: HashMap<u32, EventSource>,
    waiting: VecDeque<u32>,
    why_waiting: Option<PerfRefused>,
    descriptors: usize,
    next_number: u64,
    switches_off_since: Option<u64>,
    /// True while samples are off, except those of programs whose threads inherit the events.
    samples_off: bool,
    were_paused: bool,
    pauses: Vec<(u64, u64)>,
    switches: u64,
    lost: u64,
    budget: SwitchBudget,
    /// CPU time spent on turning switch records and samples on and off since the last call of
    /// [`Events::keep_within`].
    toggling_ns: [u64; 2],
    newly_followed: Vec<(u32, u64)>,
    unfollowed: Vec<(u32, u64)>,
    joined: Vec<u8>,
}

impl Events {
    /// Prepares to follow threads. Raises this process's limit on descriptors to its maximum.
    ///
    /// # Errors
    ///
    /// If this process may not use perf events.
    pub fn open(options: EventOptions) -> Result<Events, PerfRefused> {
        Events::within(options, Limits::of_this_process())
    }

    fn within(options: EventOptions, limits: Limits) -> Result<Events, PerfRefused> {
        let samples = options.samples.map(|samples| SampleOptions {
            stack_bytes: samples.stack_bytes.min(MOST_STACK_BYTES).next_multiple_of(8),
            ..samples
        });
        let events = Events {
            options: EventOptions { samples, ..options },
            limits,
            rings: BTreeMap::new(),
            followed: HashMap::new(),
            waiting: VecDeque::new(),
            why_waiting: None,
            descriptors: 0,
            next_number: 0,
            switches_off_since: None,
            samples_off: false,
            were_paused: false,
            pauses: Vec::new(),
            switches: 0,
            lost: 0,
            budget: SwitchBudget::new(now()),
            toggling_ns: [0; 2],
            newly_followed: Vec::new(),
            unfollowed: Vec::new(),
            joined: Vec::new(),
        };
        let attributes = [events.switch_attribute(false), events.sample_attribute(false)];
        for attribute in attributes.iter().flatten() {
            attribute
                .open(0, None)
                .map_err(|error| PerfRefused::of_open(error, limits.descriptors))?;
        }
        Ok(events)
    }

    /// Follows one thread.
    ///
    /// # Errors
    ///
    /// If this thread cannot be followed, not even in turn with other threads.
    pub fn follow_thread(&mut self, tid: u32) -> Result<Following, PerfRefused> {
        if self.followed.contains_key(&tid) {
            return Ok(Following::Now);
        }
        if self.waiting.contains(&tid) {
            return Ok(Following::InTurns);
        }
        match self.try_follow(tid) {
            Ok(()) => Ok(Following::Now),
            Err(Failure::Ended) => Ok(Following::Ended),
            Err(Failure::Refused(why)) if why.is_scarcity() => {
                self.waiting.push_back(tid);
                self.why_waiting = Some(why);
                Ok(Following::InTurns)
            }
            Err(Failure::Refused(why)) => Err(why),
        }
    }

    /// Follows a program that still has only one thread. Threads and processes that it creates
    /// later inherit the events: do not follow them separately.
    ///
    /// # Errors
    ///
    /// If this program cannot be followed.
    pub fn follow_program(&mut self, pid: u32) -> Result<Following, PerfRefused> {
        let cpus = match cpus_of(pid) {
            Some(cpus) => cpus,
            None => return Ok(Following::Ended),
        };
        if cpus.len() > self.limits.most_inherited_cpus {
            return Err(PerfRefused::ManyCpus { cpus: cpus.len() });
        }
        match self.open_shared(pid, &cpus, true) {
            Ok(followed) => {
                self.keep(pid, followed);
                Ok(Following::Now)
            }
            Err(Failure::Ended) => Ok(Following::Ended),
            Err(Failure::Refused(why)) => Err(why),
        }
    }

    /// Stops following a thread or program. [`Events::drain`] does this when a thread ends, unless
    /// records were lost.
    pub fn forget(&mut self, tid: u32) {
        self.waiting.retain(|&waiting| waiting != tid);
        if let Some(followed) = self.followed.remove(&tid) {
            self.unfollowed.push((tid, now()));
            self.descriptors -= followed.descriptors();
        }
    }

    /// Opens events on CPUs that followed threads could not use before. If threads take turns,
    /// follows the next ones. Call this about once a second, after [`Events::drain`].
    pub fn refresh(&mut self) {
        let tids: Vec<u32> = self.followed.keys().copied().collect();
        for tid in tids {
            self.follow_to_new_cpus(tid);
        }
        self.follow_waiting();
        if self.waiting.is_empty() {
            return;
        }
        let mut threads: Vec<(u64, u32)> = self
            .followed
            .iter()
            .filter(|(_, followed)| !followed.inherited)
            .map(|(&tid, followed)| (followed.number, tid))
            .collect();
        threads.sort_unstable();
        threads.truncate(threads.len().div_ceil(2).min(self.waiting.len()));
        for (_, tid) in threads {
            self.forget(tid);
            self.waiting.push_back(tid);
        }
        self.follow_waiting();
    }

    /// Returns the numbers of threads that take turns; `None` if all threads are followed all the
    /// time.
    pub fn turns(&self) -> Option<Turns<'_>> {
        let why = self.why_waiting.as_ref()?;
        Some(Turns { followed: self.followed.len(), waiting: self.waiting.len(), why })
    }

    /// Passes all events since the last call to `handle`: CPU by CPU, those of each CPU in order of
    /// time. Returns the time up to which the events are complete.
    pub fn drain(&mut self, handle: &mut dyn FnMut(Event<'_>)) -> u64 {
        let now = now();
        let mut ended = Vec::new();
        let own_rings = self.followed.values_mut().filter_map(|followed| followed.ring.as_mut());
        for ring in self.rings.values_mut().chain(own_rings) {
            ring.drain(&mut self.joined, &mut |event| {
                match event {
                    Event::Switch { .. } => self.switches += 1,
                    Event::Lost { records, .. } => self.lost = self.lost.saturating_add(records),
                    Event::Exit { tid, .. } => ended.push(tid),
                    _ => {}
                }
                handle(event);
            });
        }
        for tid in ended {
            // A program's events also serve its other threads, so they outlast its first thread.
            if self.followed.get(&tid).is_some_and(|followed| !followed.inherited) {
                self.forget(tid);
            }
        }
        for (tid, at) in self.unfollowed.drain(..) {
            handle(Event::Unfollowed { tid, at });
        }
        for (tid, at) in self.newly_followed.drain(..) {
            handle(Event::Followed { tid, at });
        }
        let pause = self.switches_off_since.map(|since| (since, now));
        for (after, until) in self.pauses.drain(..).chain(pause) {
            handle(Event::Lost { after, until, records: 0 });
        }
        now.saturating_sub(SETTLE_NS)
    }

    /// Number of records that were dropped for lack of space or could not be read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Pauses switch records, samples or both while they cost the threads more than `share` of one
    /// CPU; the time for pausing and resuming (some µs per thread) counts as well. Samples of
    /// programs whose threads inherit the events are not paused. Returns `true` if anything pauses.
    /// Call this after each [`Events::drain`].
    pub fn keep_within(&mut self, share: f64) -> bool {
        // Lost records took time as well.
        let switches = self.switches.saturating_add(self.lost);
        let sampled = self.options.samples.is_some();
        let on = [self.switches_off_since.is_none(), sampled && !self.samples_off];
        let toggling_ns = std::mem::take(&mut self.toggling_ns);
        let [records, samples] = self.budget.allows(on, share, switches, toggling_ns, now());
        self.set_switches(records);
        self.set_samples(samples);
        self.options.switches && !(records && (samples || !sampled))
    }

    /// Sets the costs on this machine. Until then, the highest that were ever measured are assumed.
    pub(crate) fn set_costs(&mut self, costs: SwitchCosts) {
        self.budget.begin_anew(costs);
    }

    pub(crate) fn options(&self) -> EventOptions {
        self.options
    }

    /// Turns switch records on or off, if they were requested. While they are off, starts and ends
    /// of threads are not reported, except by programs whose threads inherit the events.
    pub fn set_switches(&mut self, on: bool) {
        if !self.options.switches || on == self.switches_off_since.is_none() {
            return;
        }
        // The reported pause begins before the first event is turned off, and ends after the last
        // event is turned on.
        let (before, cpu_before) = (now(), thread_cpu());
        toggle(self.followed.values().flat_map(|followed| &followed.switches), on);
        self.toggling_ns[0] += thread_cpu() - cpu_before;
        let after = now();
        match self.switches_off_since.take() {
            Some(since) => self.pauses.push((since, after)),
            None => {
                self.switches_off_since = Some(before);
                self.were_paused = true;
            }
        }
    }

    /// Turns samples on or off, except those of programs whose threads inherit the events. Does
    /// nothing if no switches are reported.
    pub(super) fn set_samples(&mut self, on: bool) {
        if !self.options.switches || on != self.samples_off {
            return;
        }
        let before = thread_cpu();
        let of_threads = self.followed.values().filter(|followed| !followed.inherited);
        toggle(of_threads.flat_map(|followed| &followed.samples), on);
        self.toggling_ns[1] += thread_cpu() - before;
        self.samples_off = !on;
    }

    /// Returns `true` if switch records are paused, or have been paused before.
    pub fn were_paused(&self) -> bool {
        self.were_paused
    }

    /// Starts and ends of threads are reported by the event that is paused less often.
    fn switch_attribute(&self, inherited: bool) -> Option<Attribute> {
        let attribute = self.options.switches.then(Attribute::switches)?;
        let attribute = match self.options.samples {
            Some(_) if inherited => attribute,
            _ => attribute.with_tasks(),
        };
        Some(match self.switches_off_since {
            Some(_) => attribute.disabled(),
            None => attribute,
        })
    }

    fn sample_attribute(&self, inherited: bool) -> Option<Attribute> {
        let SampleOptions { period_ns, stack_bytes } = self.options.samples?;
        let attribute = Attribute::samples(period_ns, stack_bytes);
        Some(match self.options.switches {
            false => attribute.with_tasks(),
            true if inherited => attribute.with_tasks(),
            true if self.samples_off => attribute.disabled(),
            true => attribute,
        })
    }

    fn kinds(&self) -> usize {
        usize::from(self.options.switches) + usize::from(self.options.samples.is_some())
    }

    fn keep(&mut self, tid: u32, mut followed: EventSource) {
        followed.number = self.next_number;
        self.next_number += 1;
        self.descriptors += followed.descriptors();
        self.followed.insert(tid, followed);
        self.newly_followed.push((tid, now()));
    }

    fn try_follow(&mut self, tid: u32) -> Result<(), Failure> {
        let cpus = cpus_of(tid).ok_or(Failure::Ended)?;
        let own_ring_first = cpus.len() > self.limits.most_shared_cpus;
        let followed = if own_ring_first {
            match self.open_with_own_ring(tid) {
                Err(failure) if failure.is_scarcity() => self.open_shared(tid, &cpus, false),
                other => other,
            }
        } else {
            match self.open_shared(tid, &cpus, false) {
                Err(failure) if failure.is_scarcity() => self.open_with_own_ring(tid),
                other => other,
            }
        }?;
        self.keep(tid, followed);
        Ok(())
    }

    fn open_shared(
        &mut self,
        tid: u32,
        cpus: &[u32],
        inherited: bool,
    ) -> Result<EventSource, Failure> {
        let mut followed = EventSource {
            number: 0,
            inherited,
            cpus: BTreeSet::new(),
            switches: Vec::new(),
            samples: Vec::new(),
            ring: None,
        };
        let new_rings = cpus.iter().filter(|cpu| !self.rings.contains_key(cpu)).count();
        self.reserve(cpus.len() * self.kinds() + new_rings)?;
        for &cpu in cpus {
            self.open_on_cpu(tid, cpu, &mut followed)?;
        }
        Ok(followed)
    }

    fn open_on_cpu(&mut self, tid: u32, cpu: u32, to: &mut EventSource) -> Result<(), Failure> {
        match self.try_on_cpu(tid, cpu, to.inherited) {
            Ok((switches, samples)) => {
                to.cpus.insert(cpu);
                to.switches.extend(switches);
                to.samples.extend(samples);
                Ok(())
            }
            Err(Failure::Refused(PerfRefused::Unsupported(error)))
                if error.raw_os_error() == Some(libc::ENODEV) =>
            {
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    fn try_on_cpu(
        &mut self,
        tid: u32,
        cpu: u32,
        inherited: bool,
    ) -> Result<(Option<OwnedFd>, Option<OwnedFd>), Failure> {
        self.make_ring(cpu)?;
        let owner = self.rings[&cpu].owner();
        let open = |attribute: Option<Attribute>| {
            let Some(attribute) = attribute else { return Ok(None) };
            let attribute = if inherited { attribute.inherited() } else { attribute };
            let event = attribute.open(tid, Some(cpu)).map_err(|error| self.failure(error))?;
            redirect(&event, owner).map_err(|error| self.failure(error))?;
            Ok(Some(event))
        };
        Ok((open(self.switch_attribute(inherited))?, open(self.sample_attribute(inherited))?))
    }

    /// Creates a CPU's ring. A silent event of the profiler owns the ring, so that the ring
    /// outlives the profiled threads.
    fn make_ring(&mut self, cpu: u32) -> Result<(), Failure> {
        if self.rings.contains_key(&cpu) {
            return Ok(());
        }
        let bytes = (self.limits.shared_bytes / self.limits.cpus).min(self.limits.most_ring_bytes);
        let owner = Attribute::silent().open(0, Some(cpu)).map_err(|error| self.failure(error))?;
        let ring = Ring::map(owner, previous_power_of_two(bytes)).map_err(refused_memory)?;
        self.rings.insert(cpu, ring);
        self.descriptors += 1;
        Ok(())
    }

    fn open_with_own_ring(&mut self, tid: u32) -> Result<EventSource, Failure> {
        self.reserve(1 + self.kinds())?;
        let open =
            |attribute: Attribute| attribute.open(tid, None).map_err(|error| self.failure(error));
        let sample_bytes = self.options.samples.map_or(0, |samples| samples.stack_bytes + 512);
        let bytes = (2 * sample_bytes as usize).next_power_of_two().max(LEAST_OWN_RING_BYTES);
        let bytes = bytes.min(self.limits.most_ring_bytes);
        let ring = Ring::map(open(Attribute::silent())?, bytes).map_err(refused_memory)?;
        let open = |attribute: Option<Attribute>| {
            let Some(attribute) = attribute else { return Ok(None) };
            let event = open(attribute)?;
            redirect(&event, ring.owner()).map_err(|error| self.failure(error))?;
            Ok(Some(event))
        };
        Ok(EventSource {
            number: 0,
            inherited: false,
            cpus: BTreeSet::new(),
            switches: open(self.switch_attribute(false))?.into_iter().collect(),
            samples: open(self.sample_attribute(false))?.into_iter().collect(),
            ring: Some(ring),
        })
    }

    fn follow_to_new_cpus(&mut self, tid: u32) {
        let known = self.followed.get(&tid).filter(|followed| followed.ring.is_none());
        let Some((known, cpus)) = known.zip(cpus_of(tid)) else { return };
        if cpus.iter().all(|cpu| known.cpus.contains(cpu)) {
            return;
        }
        let Some(mut followed) = self.followed.remove(&tid) else { return };
        self.descriptors -= followed.descriptors();
        let opened = cpus.iter().try_for_each(|&cpu| {
            if followed.cpus.contains(&cpu) {
                return Ok(());
            }
            self.reserve(1 + self.kinds() + followed.descriptors())?;
            self.open_on_cpu(tid, cpu, &mut followed)
        });
        // The thread may have run unnoticed on the new CPUs before these events were open.
        self.unfollowed.push((tid, now()));
        match opened {
            Err(Failure::Refused(why)) if why.is_scarcity() && !followed.inherited => {
                self.waiting.push_back(tid);
                self.why_waiting = Some(why);
            }
            _ => {
                self.descriptors += followed.descriptors();
                self.followed.insert(tid, followed);
            }
        }
    }

    fn follow_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(tid) = self.waiting.pop_front() else { break };
            match self.try_follow(tid) {
                Err(Failure::Refused(why)) if why.is_scarcity() => {
                    self.waiting.push_front(tid);
                    self.why_waiting = Some(why);
                    return;
                }
                Ok(()) | Err(_) => {}
            }
        }
        self.why_waiting = None;
    }

    fn reserve(&self, descriptors: usize) -> Result<(), Failure> {
        let limit = self.limits.descriptors;
        if self.descriptors + descriptors <= limit {
            Ok(())
        } else {
            Err(Failure::Refused(PerfRefused::Descriptors { limit }))
        }
    }

    fn failure(&self, error: io::Error) -> Failure {
        if error.raw_os_error() == Some(libc::ESRCH) {
            Failure::Ended
        } else {
            Failure::Refused(PerfRefused::of_open(error, self.limits.descriptors))
        }
    }
}

fn toggle<'e>(events: impl Iterator<Item = &'e OwnedFd>, on: bool) {
    for event in events {
        // This cannot fail for a thread that still runs.
        let _ = enable(event, on);
    }
}

fn previous_power_of_two(number: usize) -> usize {
    if number == 0 { 0 } else { 1 << number.ilog2() }
}

fn refused_memory(error: io::Error) -> Failure {
    Failure::Refused(match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOMEM) => PerfRefused::LockedMemory,
        _ => PerfRefused::Other(error),
    })
}

fn cpus_of(tid: u32) -> Option<Vec<u32>> {
    match cpus_of_thread(tid) {
        Ok(cpus) => Some(cpus),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        Err(_) => Some(allowed_cpus()),
    }
}

#[cfg(test)]
mod tests;

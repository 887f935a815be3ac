//! Switches and samples of other threads, reported by the kernel's perf events.
//!
//! Two software events, which need neither privilege (at `kernel.perf_event_paranoid` 2 or less)
//! nor hardware counters: a dummy that reports each time a thread gets a CPU or leaves it, and the
//! CPU clock, which reports registers and stack after each period that a thread spent on a CPU.
//! Time that a thread spends in the kernel yields no samples. See `perf_event_open(2)`.
//!
//! An event may write into the ring buffer of another only if both are of one CPU, and memory for
//! buffers is scarce. There is one ring per CPU, and each thread has one event per kind and CPU
//! that it may use. On machines with many CPUs that is too many descriptors: there a thread has
//! one event per kind and a small ring of its own. Where descriptors or memory do not suffice,
//! threads take turns. A launched program has inherited events, which cost no descriptors.
//!
//! Not promised: a thread whose affinity grows is not seen on its new CPUs until
//! [`Events::refresh`]; threads that a launched program has made by the time that a CPU comes
//! online are not seen there.
//!
//! The threads pay for it. On a virtual machine with two CPUs (Intel Xeon, family 6, model 167,
//! Linux 6.18), the record of a switch cost 0.25 µs of their CPU time, or 0.46 µs where samples are
//! taken too, because the kernel then sets a timer at each switch; a sample 20 to 25 µs, most of it
//! for the timer's interrupt, which costs less outside virtual machines; and the start of a thread
//! that inherits both kinds 18 µs. `cargo bench -p threadtoll-profile --bench event_cost` repeats
//! these measurements. [`Events::keep_within`] pauses switch records that cost too much.

mod attribute;
mod records;
mod refused;
mod registers;
mod ring;
mod timeline;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use threadtoll_machine::place::{allowed_cpus, cpus_of_thread};

use attribute::{Attribute, enable, redirect};
pub use records::{Direction, Event, Sample};
pub use refused::PerfRefused;
pub use registers::Registers;
use ring::Ring;
pub use timeline::{CpuState, Timeline};

/// Longest copy of a stack.
const MOST_STACK_BYTES: u32 = 32 << 10;

/// Smallest ring of a thread: a tenth of a second at 5,000 records/s.
const LEAST_OWN_RING_BYTES: usize = 16 << 10;

/// Time after which a record that was being written has been written.
pub(crate) const SETTLE_NS: u64 = 1_000_000;

/// Costs of a record to the thread that is followed, as measured (see the module's head).
const SWITCH_RECORD_NS: u64 = 250;
const SWITCH_RECORD_WITH_SAMPLES_NS: u64 = 460;
const SAMPLE_NS: u64 = 25_000;

/// Events to report.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Report switches.
    pub switches: bool,
    /// Report samples.
    pub samples: Option<SampleOptions>,
}

/// Samples to take.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// CPU time between two samples of a thread on one CPU; the kernel's least is 10 µs.
    pub period_ns: u64,
    /// Bytes of stack to copy, at most 32 KiB.
    pub stack_bytes: u32,
}

/// Outcome of a request to follow a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// The thread is followed.
    Now,
    /// Threads take turns, and this one will have its turn.
    InTurns,
    /// The thread has ended.
    Ended,
}

/// Threads that take turns.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a> {
    /// Number of threads that are followed.
    pub followed: usize,
    /// Number of threads that wait to be followed.
    pub waiting: usize,
    /// The reason.
    pub why: &'a PerfRefused,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    descriptors: usize,
    /// Bytes of all rings of CPUs, and most bytes of one.
    shared_bytes: usize,
    most_ring_bytes: usize,
    /// CPUs of this machine.
    cpus: usize,
    /// Threads that may use more CPUs have a ring of their own if possible.
    most_shared_cpus: usize,
    /// A program that may use more CPUs would start its threads too slowly with inherited events.
    most_inherited_cpus: usize,
}

impl Limits {
    fn of_this_process() -> Limits {
        Limits {
            // The other half is for the profiler's other files.
            descriptors: raise_descriptor_limit() / 2,
            shared_bytes: 16 << 20,
            most_ring_bytes: 256 << 10,
            cpus: configured_cpus(),
            most_shared_cpus: 16,
            most_inherited_cpus: 64,
        }
    }
}

fn raise_descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    limit.current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1 << 20)
}

fn configured_cpus() -> usize {
    // SAFETY: takes a number and returns one.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(cpus).unwrap_or(0).max(1)
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Events of one thread, or of one program.
#[derive(Debug)]
struct Followed {
    /// Larger for threads that were followed later.
    number: u64,
    inherited: bool,
    /// Empty if the ring is its own.
    cpus: BTreeSet<u32>,
    switches: Vec<OwnedFd>,
    samples: Vec<OwnedFd>,
    ring: Option<Ring>,
}

impl Followed {
    fn descriptors(&self) -> usize {
        self.switches.len() + self.samples.len() + usize::from(self.ring.is_some())
    }
}

/// Why a thread could not be followed.
enum Failure {
    Ended,
    Refused(PerfRefused),
}

impl Failure {
    fn is_scarcity(&self) -> bool {
        matches!(self, Failure::Refused(why) if why.is_scarcity())
    }
}

/// The budget of switch records. It may be overdrawn by what is earned in a second.
#[derive(Clone, Copy, Debug)]
struct Debt {
    ns: f64,
    at: u64,
    cost_ns: u64,
}

impl Debt {
    /// Adds the cost since the last time and takes off what was earned. `Some(true)` if the debt
    /// is too large, `Some(false)` if there is none.
    fn charge(&mut self, share: f64, now: u64, cost_ns: u64) -> Option<bool> {
        let earned = share * now.saturating_sub(self.at) as f64;
        let spent = cost_ns.saturating_sub(self.cost_ns) as f64;
        let earned_in_a_second = share * 1e9;
        self.ns = (self.ns + spent - earned).max(-earned_in_a_second);
        (self.at, self.cost_ns) = (now, cost_ns);
        if self.ns > earned_in_a_second {
            Some(true)
        } else if self.ns <= 0.0 {
            Some(false)
        } else {
            None
        }
    }
}

/// Events of any number of threads.
#[derive(Debug)]
pub struct Events {
    options: Options,
    limits: Limits,
    rings: BTreeMap<u32, Ring>,
    followed: HashMap<u32, Followed>,
    waiting: VecDeque<u32>,
    why_waiting: Option<PerfRefused>,
    descriptors: usize,
    next_number: u64,
    switches_off_since: Option<u64>,
    switches: u64,
    samples: u64,
    lost: u64,
    debt: Debt,
    unfollowed: Vec<u32>,
    joined: Vec<u8>,
}

impl Events {
    /// Prepares to follow threads; raises the limit of descriptors to what the process may have.
    ///
    /// # Errors
    ///
    /// The reason for which this process may not use perf events.
    pub fn open(options: Options) -> Result<Events, PerfRefused> {
        Events::within(options, Limits::of_this_process())
    }

    fn within(options: Options, limits: Limits) -> Result<Events, PerfRefused> {
        let samples = options.samples.map(|samples| SampleOptions {
            stack_bytes: samples.stack_bytes.min(MOST_STACK_BYTES).next_multiple_of(8),
            ..samples
        });
        let events = Events {
            options: Options { samples, ..options },
            limits,
            rings: BTreeMap::new(),
            followed: HashMap::new(),
            waiting: VecDeque::new(),
            why_waiting: None,
            descriptors: 0,
            next_number: 0,
            switches_off_since: None,
            switches: 0,
            samples: 0,
            lost: 0,
            debt: Debt { ns: 0.0, at: now_ns(), cost_ns: 0 },
            unfollowed: Vec::new(),
            joined: Vec::new(),
        };
        for attribute in [events.switch_attribute(), events.sample_attribute()].iter().flatten() {
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
    /// The reason for which this thread cannot be followed, other than one that lets threads take
    /// turns.
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

    /// Follows a program that has one thread so far, with all threads and processes that it makes
    /// from now on. Those must not be followed on their own.
    ///
    /// # Errors
    ///
    /// The reason for which this program cannot be followed.
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

    /// Follows a thread or program no longer. That a thread has ended is noticed by
    /// [`Events::drain`], except where records were lost.
    pub fn forget(&mut self, tid: u32) {
        self.waiting.retain(|&waiting| waiting != tid);
        if let Some(followed) = self.followed.remove(&tid) {
            self.descriptors -= followed.descriptors();
            self.unfollowed.push(tid);
        }
    }

    /// Follows threads to CPUs that they could not use before, and lets threads take turns. To be
    /// called about once a second, after [`Events::drain`].
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

    /// Threads that take turns, if they do.
    pub fn turns(&self) -> Option<Turns<'_>> {
        let why = self.why_waiting.as_ref()?;
        Some(Turns { followed: self.followed.len(), waiting: self.waiting.len(), why })
    }

    /// Hands out all events since the last time: those of one CPU in order, CPU after CPU. Returns
    /// the time until which no more will come.
    pub fn drain(&mut self, handle: &mut dyn FnMut(Event<'_>)) -> u64 {
        let now = now_ns();
        let mut ended = Vec::new();
        let own_rings = self.followed.values_mut().filter_map(|followed| followed.ring.as_mut());
        for ring in self.rings.values_mut().chain(own_rings) {
            ring.drain(&mut self.joined, &mut |event| {
                match event {
                    Event::Switch { .. } => self.switches += 1,
                    Event::Sample(_) => self.samples += 1,
                    Event::Lost { records, .. } => self.lost = self.lost.saturating_add(records),
                    Event::Exit { tid, .. } => ended.push(tid),
                    _ => {}
                }
                handle(event);
            });
        }
        for tid in ended {
            // The events of a program outlive its first thread.
            if self.followed.get(&tid).is_some_and(|followed| !followed.inherited) {
                self.forget(tid);
            }
        }
        for tid in self.unfollowed.drain(..) {
            handle(Event::Unfollowed { tid, at: now });
        }
        if let Some(since) = self.switches_off_since {
            handle(Event::Lost { after: since, until: now, records: 0 });
        }
        now.saturating_sub(SETTLE_NS)
    }

    /// Number of records that found no space, or could not be read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Estimate of the CPU time that all events so far have cost the threads, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        let samples = self.samples.saturating_mul(SAMPLE_NS);
        self.switch_cost_ns().saturating_add(samples)
    }

    /// Turns switch records off while they have cost the threads more than `share` of a CPU, and on
    /// again. To be called after each [`Events::drain`].
    pub fn keep_within(&mut self, share: f64) {
        let cost_ns = self.switch_cost_ns();
        let too_much = self.debt.charge(share, now_ns(), cost_ns);
        if let Some(too_much) = too_much {
            self.set_switches(!too_much);
        }
    }

    /// Lost records, too, have been made.
    fn switch_cost_ns(&self) -> u64 {
        let each = match self.options.samples {
            Some(_) => SWITCH_RECORD_WITH_SAMPLES_NS,
            None => SWITCH_RECORD_NS,
        };
        self.switches.saturating_add(self.lost).saturating_mul(each)
    }

    /// Turns switch records on or off, if they were asked for. While they are off, threads that
    /// begin or end are reported only if samples are taken.
    pub fn set_switches(&mut self, on: bool) {
        if on == self.switches_off_since.is_none() {
            return;
        }
        self.switches_off_since = if on { None } else { Some(now_ns()) };
        for event in self.followed.values().flat_map(|followed| &followed.switches) {
            // Fails for no thread that still runs.
            let _ = enable(event, on);
        }
    }

    fn switch_attribute(&self) -> Option<Attribute> {
        let attribute = self.options.switches.then(Attribute::switches)?;
        let attribute = match self.options.samples {
            Some(_) => attribute,
            None => attribute.with_tasks(),
        };
        Some(match self.switches_off_since {
            Some(_) => attribute.disabled(),
            None => attribute,
        })
    }

    fn sample_attribute(&self) -> Option<Attribute> {
        let SampleOptions { period_ns, stack_bytes } = self.options.samples?;
        Some(Attribute::samples(period_ns, stack_bytes).with_tasks())
    }

    fn kinds(&self) -> usize {
        usize::from(self.options.switches) + usize::from(self.options.samples.is_some())
    }

    fn keep(&mut self, tid: u32, mut followed: Followed) {
        followed.number = self.next_number;
        self.next_number += 1;
        self.descriptors += followed.descriptors();
        self.followed.insert(tid, followed);
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
    ) -> Result<Followed, Failure> {
        let mut followed = Followed {
            number: 0,
            inherited,
            cpus: BTreeSet::new(),
            switches: Vec::new(),
            samples: Vec::new(),
            ring: None,
        };
        self.reserve(cpus.len() * self.kinds())?;
        for &cpu in cpus {
            self.open_on_cpu(tid, cpu, &mut followed)?;
        }
        Ok(followed)
    }

    /// Adds the events of one CPU; none if it went offline just now.
    fn open_on_cpu(&mut self, tid: u32, cpu: u32, to: &mut Followed) -> Result<(), Failure> {
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
        Ok((open(self.switch_attribute())?, open(self.sample_attribute())?))
    }

    /// The ring of a CPU belongs to a silent event of our own, so that it outlives the threads.
    fn make_ring(&mut self, cpu: u32) -> Result<(), Failure> {
        if self.rings.contains_key(&cpu) {
            return Ok(());
        }
        self.reserve(1)?;
        let bytes = (self.limits.shared_bytes / self.limits.cpus).min(self.limits.most_ring_bytes);
        let owner = Attribute::silent().open(0, Some(cpu)).map_err(|error| self.failure(error))?;
        let ring = Ring::map(owner, previous_power_of_two(bytes)).map_err(refused_memory)?;
        self.rings.insert(cpu, ring);
        self.descriptors += 1;
        Ok(())
    }

    fn open_with_own_ring(&mut self, tid: u32) -> Result<Followed, Failure> {
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
        Ok(Followed {
            number: 0,
            inherited: false,
            cpus: BTreeSet::new(),
            switches: open(self.switch_attribute())?.into_iter().collect(),
            samples: open(self.sample_attribute())?.into_iter().collect(),
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
            self.reserve(self.kinds() + followed.descriptors())?;
            self.open_on_cpu(tid, cpu, &mut followed)
        });
        match opened {
            Err(Failure::Refused(why)) if why.is_scarcity() && !followed.inherited => {
                // Half of its switches would tell lies.
                self.unfollowed.push(tid);
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
                // Ended, or no longer ours.
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

fn previous_power_of_two(number: usize) -> usize {
    if number == 0 { 0 } else { 1 << number.ilog2() }
}

fn refused_memory(error: io::Error) -> Failure {
    Failure::Refused(match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOMEM) => PerfRefused::LockedMemory,
        _ => PerfRefused::Other(error),
    })
}

/// CPUs that a thread may use; `None` if it has ended.
fn cpus_of(tid: u32) -> Option<Vec<u32>> {
    match cpus_of_thread(tid) {
        Ok(cpus) => Some(cpus),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        Err(_) => Some(allowed_cpus()),
    }
}

#[cfg(test)]
mod tests;

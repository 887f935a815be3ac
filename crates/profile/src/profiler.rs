//! Looks at a program until told to stop, and says what was seen so far.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use threadtoll_record::profile::Profile;

use crate::account::{Account, NEAR_NS, ProcessAccount, RunningStack};
use crate::compose::{Circumstances, compose};
use crate::perf::{self, Event, Events, SETTLE_NS, SampleOptions, Timeline};
use crate::process::{Process, ProcessError};
use crate::sample::{Chunk, Order, Report, Sampler, Stretch, Tick, now};
use crate::stack::{Registers, StackBytes};
use crate::stacks::Stacks;

/// Choices of who profiles.
#[derive(Clone, Debug)]
pub struct Options {
    /// Looks a second that are wanted.
    pub rate_per_s: f64,
    /// Share of one CPU that the profiler may use.
    pub budget: f64,
    /// Looks only at processes of this name.
    pub only: Option<String>,
    /// Seed of the times at which to look.
    pub seed: u64,
}

/// Most changes of state that the timeline remembers.
const MAX_CHANGES: usize = 1 << 16;

/// Time between two looks at what else is to be done.
const PATIENCE: Duration = Duration::from_millis(50);

/// Looks a second at which stacks are read, of a budget of 1%.
const STACKS_PER_S: f64 = 20.0;

/// CPU time between two samples of a running thread, and the bytes of stack in each.
const SAMPLE_NS: u64 = 2_000_000;
const SAMPLED_STACK: u32 = 4 << 10;

/// Looks at a program.
#[derive(Debug)]
pub struct Profiler {
    options: Options,
    account: Account,
    watched: Vec<Watched>,
    orders: Sender<Order>,
    reports: Receiver<Report>,
    spare: Sender<Chunk>,
    sampler: Option<JoinHandle<()>>,
    events: Option<Events>,
    timeline: Timeline,
    stacks: Stacks,
    began: Instant,
    cpu_ns: u64,
    last_stretch: Option<Stretch>,
}

/// A process that is looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) process: Process,
    pub(crate) command: Vec<OsString>,
    pub(crate) followed: Vec<u32>,
    pub(crate) ended: bool,
}

impl Profiler {
    /// Looks at a process that runs already.
    ///
    /// # Errors
    ///
    /// If there is no such process, or it may not be looked at.
    pub fn attach(pid: u32, options: &Options) -> Result<Profiler, ProcessError> {
        let process = Process::open(pid)?;
        let mut profiler = Profiler::new(options);
        profiler.watch(process)?;
        Ok(profiler)
    }

    fn new(options: &Options) -> Profiler {
        let (orders, take_orders) = channel();
        let (report, reports) = channel();
        let (spare, take_spare) = channel();
        let sampler = Sampler::new(options.budget, options.rate_per_s, options.seed);
        let sampler = std::thread::Builder::new()
            .name("threadtoll-look".into())
            .spawn(move || sampler.run(&take_orders, &take_spare, &report))
            .ok();
        let events = Events::open(perf::Options { switches: true, samples: Some(samples()) }).ok();
        _ = orders.send(Order::Stacks(STACKS_PER_S));
        Profiler {
            options: options.clone(),
            account: Account::new(now()),
            watched: Vec::new(),
            orders,
            reports,
            spare,
            sampler,
            events,
            timeline: Timeline::new(MAX_CHANGES),
            stacks: Stacks::default(),
            began: Instant::now(),
            cpu_ns: 0,
            last_stretch: None,
        }
    }

    fn watch(&mut self, process: Process) -> Result<(), ProcessError> {
        let own = Process::open(process.pid())?;
        let index = self.watched.len() as u32;
        self.account.processes.push(ProcessAccount::new(process.pid()));
        let command = own.command_line().unwrap_or_default();
        self.watched.push(Watched { process: own, command, followed: Vec::new(), ended: false });
        _ = self.orders.send(Order::Follow(index, Box::new(process)));
        Ok(())
    }

    /// Looks until `length` is over, `stop` is set, or every process has ended. Calls `each` about
    /// every `every` with everything seen so far.
    pub fn run(
        &mut self,
        length: Option<Duration>,
        every: Duration,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&Profile),
    ) -> Profile {
        let mut due = Instant::now() + every;
        while !stop.load(Ordering::Relaxed) {
            let over = length.is_some_and(|length| self.began.elapsed() >= length);
            let ended = self.watched.iter().all(|watched| watched.ended);
            if over || ended {
                break;
            }
            let stretch_ended = match self.reports.recv_timeout(PATIENCE) {
                Ok(report) => self.take(report),
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if stretch_ended && Instant::now() >= due {
                due += every;
                each(&self.profile(false));
            }
        }
        self.end_sampling();
        self.profile(true)
    }

    fn end_sampling(&mut self) {
        _ = self.orders.send(Order::Stop);
        if let Some(sampler) = self.sampler.take() {
            _ = sampler.join();
        }
        while let Ok(report) = self.reports.try_recv() {
            self.take(report);
        }
    }

    /// Takes in a report. Returns true if a stretch has ended.
    fn take(&mut self, report: Report) -> bool {
        match report {
            Report::Looks(chunk) => self.fold(chunk),
            Report::Stretch(stretch) => {
                self.cpu_ns += stretch.process_ns;
                self.account.end_stretch(&stretch);
                self.last_stretch = Some(stretch);
                return true;
            }
            Report::Threads(index, threads) => self.threads(index as usize, threads),
            Report::Ended(index) => {
                if let Some(watched) = self.watched.get_mut(index as usize) {
                    watched.ended = true;
                }
            }
        }
        false
    }

    fn threads(&mut self, index: usize, threads: Vec<u32>) {
        let (Some(watched), Some(account)) =
            (self.watched.get_mut(index), self.account.processes.get_mut(index))
        else {
            return;
        };
        if let Some(events) = &mut self.events {
            for &tid in threads.iter().filter(|&&tid| !account.threads.contains(&tid)) {
                if events.follow_thread(tid).is_ok() {
                    watched.followed.push(tid);
                }
            }
            watched.followed.retain(|tid| {
                let alive = threads.contains(tid);
                if !alive {
                    events.forget(*tid);
                }
                alive
            });
        }
        account.set_threads(threads);
    }

    fn fold(&mut self, mut chunk: Chunk) {
        let (stacks, watched) = (&mut self.stacks, &self.watched);
        chunk.number_stacks(&mut |read, base, bytes| {
            let watched = watched.get(read.process as usize)?;
            let (stack_pointer, program_counter) = read.activity.position()?;
            let registers = Registers::new(program_counter, stack_pointer);
            stacks.number(read.process, &watched.process, registers, StackBytes { base, bytes })
        });
        let mut running = Vec::new();
        let timeline = self.events.as_mut().map(|events| {
            let timeline = &mut self.timeline;
            // Records of the last look may still be on their way.
            let last = chunk.ticks.last().map_or(0, |tick| tick.at);
            let settled = (last + SETTLE_NS).saturating_sub(now());
            std::thread::sleep(Duration::from_nanos(settled.min(SETTLE_NS)));
            let (stacks, watched, running) = (&mut self.stacks, &self.watched, &mut running);
            let ticks = &chunk.ticks;
            let until = events.drain(&mut |event| {
                timeline.note(&event);
                if let Event::Sample(sample) = event
                    && near_a_look(sample.at, ticks)
                {
                    let of = watched.iter().position(|of| of.process.pid() == sample.pid);
                    let stack = of.and_then(|of| {
                        let registers = registers_of(&sample.registers);
                        let bytes = sample.stack;
                        let base = sample.registers.stack_pointer();
                        let process = &watched[of].process;
                        stacks.number(of as u32, process, registers, StackBytes { base, bytes })
                    });
                    if let Some(stack) = stack {
                        running.push(RunningStack { at: sample.at, tid: sample.tid, stack });
                    }
                }
            });
            running.sort_unstable_by_key(|sample| sample.at);
            timeline.complete_until(until);
            &*timeline
        });
        self.account.fold(&chunk, timeline, &self.stacks, &running, false);
        for process in &mut self.account.processes {
            for (place, stack) in process.telling_stacks() {
                process.tell(place, self.stacks.callers(stack));
            }
        }
        if let Some(tick) = chunk.ticks.first() {
            self.timeline.forget_before(tick.at.saturating_sub(1_000_000_000));
        }
        for (index, process) in self.account.processes.iter_mut().enumerate() {
            for (word, wish) in process.wishes.drain(..) {
                let index = index as u32;
                _ = self.orders.send(match wish {
                    Some(span) => Order::Watch(index, vec![(word, span)]),
                    None => Order::Ignore(index, word),
                });
            }
        }
        _ = self.spare.send(chunk);
    }

    /// Everything seen so far.
    fn profile(&mut self, finished: bool) -> Profile {
        compose(
            &self.account,
            &self.watched,
            &mut self.stacks,
            &Circumstances {
                finished,
                seconds: self.began.elapsed().as_secs_f64(),
                budget: self.options.budget,
                cpu_ns: self.cpu_ns,
                perf_event: self.events.is_some(),
            },
        )
    }
}

/// Samples of running threads. Only those next to a look are of use, but when a look comes no
/// sample can be asked for: a few hundred a second on each of a few CPUs.
fn samples() -> SampleOptions {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    SampleOptions { period_ns: SAMPLE_NS * cpus.div_ceil(4), stack_bytes: SAMPLED_STACK }
}

/// The look at a running thread is as good as a sample of it that lies this near.
fn near_a_look(at: u64, ticks: &[Tick]) -> bool {
    let next = ticks.partition_point(|tick| tick.at < at);
    let near = |tick: Option<&Tick>| tick.is_some_and(|tick| tick.at.abs_diff(at) <= NEAR_NS);
    near(ticks.get(next)) || near(next.checked_sub(1).and_then(|before| ticks.get(before)))
}

fn registers_of(sample: &perf::Registers) -> Registers {
    let registers = Registers::new(sample.program_counter(), sample.stack_pointer());
    let registers = registers.with_frame_pointer(sample.frame_pointer());
    #[cfg(target_arch = "aarch64")]
    let registers = {
        let mut registers = registers;
        // The link register's number in DWARF.
        registers.set(30, sample.link_register());
        registers
    };
    registers
}

//! Looks at a program until told to stop, and says what was seen so far.

mod unseen;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use threadtoll_machine::{ThrottleCounter, Throttled};
use threadtoll_record::profile::{Ended, Profile};

use crate::account::{Account, Departure, NEAR_NS, ProcessAccount, Reported, RunningStack, Wish};
use crate::clock::{now, thread_cpu};
use crate::compose::{Circumstances, Doing, compose};
use crate::perf::{
    self, Direction, Event, Events, PerfRefused, SETTLE_NS, SampleOptions, Timeline,
};
use crate::primitive::static_locks::StaticLocks;
use crate::sample::{Chunk, Order, Report, Sampler, Tick};
use crate::stacks::Stacks;
use crate::watched::Watched;
use threadtoll_stacks::image::Image;
use threadtoll_stacks::process::{
    Family, FamilyEvent, Held, InnerTids, LaunchError, Launched, Process, ProcessError, exit_code,
};
use threadtoll_stacks::stack::{Registers, StackBytes};
use unseen::Unseen;

/// Choices of who profiles.
#[derive(Clone, Debug)]
pub struct Options {
    /// Looks a second that are wanted.
    pub rate_per_s: f64,
    /// Share of one CPU that this process may use, from its start.
    pub budget: f64,
    /// Looks only at processes of this name.
    pub only: Option<String>,
    /// Seed of the times at which to look.
    pub seed: u64,
}

/// Most changes of state that the timeline remembers.
const MAX_CHANGES: usize = 1 << 16;

/// Longest time between two looks at what else is to be done; stretches end more often.
const PATIENCE: Duration = Duration::from_millis(300);

/// Looks a second at which stacks are read, of a budget of 1%.
const STACKS_PER_S: f64 = 20.0;

/// Most that records of switches and samples may cost the program, as a share of one CPU.
const TARGET_SHARE: f64 = 0.005;

/// The same while a lock does not name its holder, which only stacks can tell then.
const NAMELESS_STACKS_PER_S: f64 = 60.0;

/// CPU time between two samples of a running thread, and the bytes of stack in each.
const SAMPLE_NS: u64 = 20_000_000;
const SAMPLED_STACK: u32 = 4 << 10;

/// Share of the budget for saying what was seen so far.
const WRITING_SHARE: f64 = 0.05;

/// Share of the budget for finding static locks in debug information.
const STATIC_LOCKS_SHARE: f64 = 0.25;

/// Share of the budget for opening events of threads: with many threads, those that are opened
/// later have no states until then.
const FOLLOWING_SHARE: f64 = 0.1;

/// Share of the budget for listing mappings anew where stacks show code in none of them.
const LISTING_SHARE: f64 = 0.1;

/// Time after which a program has loaded the libraries that it is linked with.
const LOADING: Duration = Duration::from_millis(200);

/// Time between two looks at the CPUs that followed threads may use, altogether and for each.
const REFRESH: Duration = Duration::from_secs(1);
const REFRESH_THREAD: Duration = Duration::from_millis(10);

/// What is done once at the start counts as if it were spread over this time at least.
const FIRST: Duration = Duration::from_secs(10);

/// Time for names of inlined functions, in the end: the report is waited for.
const NAMING: Duration = Duration::from_millis(150);

/// Looks at a program.
#[derive(Debug)]
pub struct Profiler {
    options: Options,
    account: Account,
    watched: BTreeMap<u32, Watched>,
    next_index: u32,
    family: Family,
    launched: Option<Launched>,
    status: Option<ExitStatus>,
    throttle: Option<Throttle>,
    /// The control group was out of quota lately.
    throttled: bool,
    orders: Sender<Order>,
    reports: Receiver<Report>,
    spare: Sender<Chunk>,
    sampler: Option<JoinHandle<()>>,
    events: Option<Events>,
    /// Threads that a launched program makes have events already.
    inherited: bool,
    /// CPU time that was, or will be, spent on opening and closing events.
    following: Duration,
    /// Events of some threads were not open from the start.
    not_all: bool,
    refreshed: Instant,
    timeline: Timeline,
    reported: BetweenLooks,
    stacks: Stacks,
    static_locks: StaticLocks,
    /// Time that was spent on finding static locks.
    declaring: Duration,
    began: Instant,
    cpu_ns: u64,
    perf_refused: Option<String>,
    /// Time of processes that have ended and are not listed.
    forgotten: Doing,
    unseen: Unseen,
}

impl Profiler {
    /// Looks at a process that runs already.
    ///
    /// # Errors
    ///
    /// If there is no such process, or it may not be looked at.
    pub fn attach(pid: u32, options: &Options) -> Result<Profiler, ProcessError> {
        let family = Family::alone(Process::open(pid)?);
        let mut profiler = Profiler::new(options, family);
        profiler.use_events(open_events());
        profiler.refresh_family();
        if profiler.watched.is_empty() {
            // It may have ended meanwhile, and would be missing from its own profile.
            Process::open(pid)?;
        }
        Ok(profiler)
    }

    /// Starts a program and looks at it and its descendants.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn launch(
        program: &OsStr,
        arguments: &[OsString],
        options: &Options,
    ) -> Result<Profiler, LaunchError> {
        let held = Held::spawn(program, arguments)?;
        let pid = held.pid();
        let mut events = open_events();
        // What the program's threads inherit need not be opened for each of them.
        let inherited = events.as_mut().is_ok_and(|events| events.follow_program(pid).is_ok());
        // Opened while it is held: it may end as soon as it starts.
        let process = Process::open(pid).map_err(io::Error::other)?;
        let launched = held.release()?;
        let only = options.only.as_ref().map(OsString::from);
        let family = Family::with_descendants(process, only)?;
        let mut profiler = Profiler::new(options, family);
        profiler.use_events(events);
        profiler.inherited = inherited;
        profiler.launched = Some(launched);
        profiler.refresh_family();
        Ok(profiler)
    }

    fn new(options: &Options, family: Family) -> Profiler {
        let (orders, take_orders) = channel();
        let (report, reports) = channel();
        let (spare, take_spare) = channel();
        let sampler = Sampler::new(options.budget, options.rate_per_s, options.seed);
        let sampler = std::thread::Builder::new()
            .name("threadtoll-look".into())
            .spawn(move || sampler.run(&take_orders, &take_spare, &report))
            .ok();
        _ = orders.send(Order::Stacks { per_s: STACKS_PER_S, of_all: false });
        Profiler {
            options: options.clone(),
            account: Account::new(now()),
            watched: BTreeMap::new(),
            next_index: 0,
            family,
            launched: None,
            status: None,
            throttle: None,
            throttled: false,
            orders,
            reports,
            spare,
            sampler,
            events: None,
            inherited: false,
            following: Duration::ZERO,
            not_all: false,
            refreshed: Instant::now(),
            timeline: Timeline::new(MAX_CHANGES),
            reported: BetweenLooks::default(),
            stacks: Stacks::default(),
            static_locks: StaticLocks::default(),
            declaring: Duration::ZERO,
            began: Instant::now(),
            cpu_ns: 0,
            perf_refused: None,
            forgotten: Doing::default(),
            unseen: Unseen::default(),
        }
    }

    fn use_events(&mut self, events: Result<Events, PerfRefused>) {
        match events {
            Ok(events) => self.events = Some(events),
            Err(refused) => {
                self.perf_refused = Some(refused.to_string());
                _ = self.orders.send(Order::RecordDelays);
            }
        }
    }

    fn watch(
        &mut self,
        pid: u32,
        start_time: u64,
        parent: Option<u32>,
        image: u32,
    ) -> Result<(), ProcessError> {
        let open = || Process::open_again(pid, start_time);
        let (own, process) = (open()?, open()?);
        let index = self.next_index;
        self.next_index += 1;
        let command = own.command_line().unwrap_or_default();
        let (followed, to_follow) = (Vec::new(), VecDeque::new());
        let (names, ended) = (HashMap::new(), None);
        self.stacks.table.open(index, &own);
        let mut account = ProcessAccount::new(pid);
        account.go = self.stacks.table.any_image(index, |image| image.has_section(".go.buildinfo"));
        let program = own.program().unwrap_or_default();
        let program = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // A launched program's libraries are not mapped yet.
        account.jvm = program == "java" || self.stacks.table.any_image(index, is_jvm);
        account.foreign_libc = self.stacks.table.any_image(index, |image| {
            image.name().starts_with("ld-musl-")
                || image.name() == "libc.so"
                || image.name() == program && is_static_without_glibc(image)
        });
        self.account.add(index, account);
        let watched = Watched {
            pid,
            is_32_bit: own.is_32_bit().unwrap_or(false),
            process: Some(own),
            command,
            image,
            parent,
            ended,
            signal: None,
            names,
            started: self.launched.as_ref().map(|_| Instant::now()),
            followed,
            to_follow,
        };
        self.watched.insert(index, watched);
        self.throttle.get_or_insert_with(|| Throttle::of_process(pid));
        _ = self.orders.send(Order::Follow(index, Box::new(process)));
        self.declare_static_locks();
        Ok(())
    }

    /// Time that may have been spent so far on what this share of the budget is for.
    fn allowed(&self, share: f64) -> Duration {
        self.began.elapsed().max(FIRST).mul_f64(self.options.budget * share)
    }

    /// Lists the mappings of launched programs once more, with their libraries, as the budget for
    /// static locks allows.
    fn list_libraries(&mut self) {
        let allowed = self.allowed(STATIC_LOCKS_SHARE);
        let has_loaded =
            |watched: &Watched| watched.started.is_some_and(|at| at.elapsed() >= LOADING);
        for (&index, watched) in self.watched.iter_mut().filter(|(_, watched)| has_loaded(watched))
        {
            if self.declaring >= allowed {
                break;
            }
            watched.started = None;
            let Some(process) = &watched.process else { continue };
            let began = Instant::now();
            self.stacks.table.list(index, process);
            if let Some(account) = self.account.living(index) {
                account.jvm |= self.stacks.table.any_image(index, is_jvm);
            }
            self.declaring += began.elapsed();
        }
    }

    /// Goes on to look for static locks, as the budget allows.
    fn declare_static_locks(&mut self) {
        let allowed = self.allowed(STATIC_LOCKS_SHARE);
        let began = Instant::now();
        let left = allowed.saturating_sub(self.declaring);
        let at = now();
        let mut words: HashMap<u32, Vec<_>> = HashMap::new();
        for (index, lock) in self.static_locks.find(&mut self.stacks.table, began + left) {
            let Some(account) = self.account.living(index) else { continue };
            // Debug information names the type, which is laid out otherwise there.
            if account.foreign_libc && lock.name().starts_with("glibc") {
                continue;
            }
            words.entry(index).or_default().extend(account.declare(lock, at));
        }
        for (index, words) in words {
            _ = self.orders.send(Order::Watch(index, words));
        }
        self.declaring += began.elapsed();
    }

    /// Learns of processes that have come and gone.
    fn refresh_family(&mut self) {
        let mut changes = Vec::new();
        // A listing that fails is made up for by the next one.
        _ = self.family.refresh(&mut |event| changes.push(event));
        self.change_family(changes);
    }

    /// Follows processes that were reported as forked: a parent may end before it is listed.
    fn follow_forks(&mut self, forks: &[(u32, u32)]) {
        let mut changes = Vec::new();
        if self.launched.is_some() {
            for &(pid, parent) in forks {
                self.family.follow(pid, parent, &mut |event| changes.push(event));
            }
        }
        self.change_family(changes);
    }

    fn change_family(&mut self, changes: Vec<FamilyEvent>) {
        for change in changes {
            match change {
                FamilyEvent::Started { pid, start_time, parent } => {
                    self.watch_or_say(pid, start_time, parent, 1);
                }
                FamilyEvent::Replaced { pid, start_time } => {
                    let before = self.leave(pid, Ended::Exec);
                    let before = before.and_then(|before| self.watched.get(&before));
                    let parent = before.and_then(|before| before.parent);
                    let image = before.map_or(1, |before| before.image + 1);
                    self.watch_or_say(pid, start_time, parent, image);
                }
                FamilyEvent::Ended { pid, status } => {
                    _ = self.leave(pid, Ended::Exit);
                    let exited = |watched: &&mut Watched| {
                        watched.pid == pid && watched.ended == Some(Ended::Exit)
                    };
                    if let Some(signal) = status.and_then(|status| status.signal())
                        && let Some(watched) = self.watched.values_mut().rev().find(exited)
                    {
                        watched.ended = Some(Ended::Signal);
                        watched.signal = u8::try_from(signal).ok();
                    }
                }
                FamilyEvent::Unseen { pid, error } => self.unseen.process(pid, &error),
            }
        }
    }

    /// Watches a process, or says why not: it may run a program that we may not look at.
    fn watch_or_say(&mut self, pid: u32, start_time: u64, parent: Option<u32>, image: u32) {
        match self.watch(pid, start_time, parent, image) {
            Ok(()) | Err(ProcessError::NotFound(_) | ProcessError::Ended(_)) => {}
            Err(error) => self.unseen.process(pid, &error),
        }
    }

    /// Looks at a process no more. Returns its index.
    fn leave(&mut self, pid: u32, ended: Ended) -> Option<u32> {
        let alive = |watched: &Watched| watched.pid == pid && watched.ended.is_none();
        let (&index, _) = self.watched.iter().rfind(|(_, watched)| alive(watched))?;
        self.end(index, ended);
        _ = self.orders.send(Order::Leave(index));
        Some(index)
    }

    /// A process has ended. Events of its threads are closed, for their ends may not have been
    /// reported, and none are opened any more.
    fn end(&mut self, index: u32, ended: Ended) {
        let Some(watched) = self.watched.get_mut(&index) else { return };
        watched.ended.get_or_insert(ended);
        if let Some(account) = self.account.living(index) {
            account.ended = true;
        }
        watched.to_follow.clear();
        let followed = std::mem::take(&mut watched.followed);
        if let Some(events) = &mut self.events {
            followed.into_iter().for_each(|tid| events.forget(tid));
        }
    }

    /// Sends a signal to a launched program, unless it has ended.
    pub fn forward(&self, signal: i32) {
        if let Some(launched) = &self.launched {
            // A program that has become another user's cannot be reached.
            _ = launched.forward(signal);
        }
    }

    /// Exit code of a launched program that has ended, 128+S if signal S ended it.
    pub fn try_wait(&mut self) -> Option<u8> {
        if let (Some(launched), None) = (&mut self.launched, self.status) {
            self.status = launched.try_wait().ok().flatten();
        }
        self.status.map(exit_code)
    }

    /// Looks until `length` is over, `stop` is set, or every process has ended. Calls `each` with
    /// everything seen so far, at most once in `every`: less often if that would take more than a
    /// twentieth of the budget.
    pub fn run(
        &mut self,
        length: Option<Duration>,
        every: Duration,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&Profile),
    ) -> Profile {
        let mut due = Instant::now() + every;
        while !stop.load(Ordering::Relaxed) {
            let left =
                length.map_or(PATIENCE, |length| length.saturating_sub(self.began.elapsed()));
            if left.is_zero() || self.has_ended() {
                break;
            }
            let stretch_ended = match self.reports.recv_timeout(left.min(PATIENCE)) {
                Ok(report) => self.take(report),
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if stretch_ended && Instant::now() >= due {
                let began = Instant::now();
                each(&self.profile(false));
                // Long accounts take long to judge and to write.
                let took = began.elapsed().div_f64(self.options.budget * WRITING_SHARE);
                due = began + every.max(took);
            }
        }
        self.end_sampling();
        self.profile(true)
    }

    /// Every process has ended.
    fn has_ended(&mut self) -> bool {
        if let (Some(launched), None) = (&mut self.launched, self.status) {
            self.status = launched.try_wait().ok().flatten();
        }
        let running = self.watched.values().any(|watched| watched.ended.is_none());
        !running && (self.launched.is_none() || self.status.is_some())
    }

    fn end_sampling(&mut self) {
        _ = self.orders.send(Order::Stop);
        if let Some(sampler) = self.sampler.take() {
            _ = sampler.join();
        }
        while let Ok(report) = self.reports.try_recv() {
            self.take(report);
        }
        // Says how processes ended that have just done so.
        self.refresh_family();
    }

    /// Takes in a report. Returns true if a stretch has ended.
    fn take(&mut self, report: Report) -> bool {
        match report {
            Report::Looks(chunk) => self.fold(chunk),
            Report::Stretch(stretch) => {
                self.cpu_ns += stretch.process_ns;
                self.account.end_stretch(&stretch);
                self.close_ended();
                for (index, process) in self.account.forget_ended() {
                    let doing = Doing::of(&process, &mut self.stacks);
                    self.forgotten.add(&doing, process.seconds());
                    self.unseen.not_listed += 1;
                    self.watched.remove(&index);
                    self.stacks.table.forget(index);
                }
                self.refresh_family();
                self.list_libraries();
                self.declare_static_locks();
                self.refresh_events();
                let of_all = self.account.all_living().any(|(_, process)| process.nameless);
                let per_s = if of_all { NAMELESS_STACKS_PER_S } else { STACKS_PER_S };
                _ = self.orders.send(Order::Stacks { per_s, of_all });
                if let Some(throttle) = &mut self.throttle {
                    self.throttled = throttle.moved();
                }
                return true;
            }
            Report::Threads(index, threads, inner) => {
                self.threads(index, threads, inner);
            }
            Report::Ended(index) => self.end(index, Ended::Exit),
        }
        false
    }

    /// Closes what is open of processes that have ended, whose last looks have come in.
    fn close_ended(&mut self) {
        for (&index, watched) in self.watched.iter_mut().filter(|(_, of)| of.ended.is_some()) {
            if watched.process.take().is_some() {
                self.stacks.table.close(index);
            }
        }
    }

    fn refresh_events(&mut self) {
        self.follow_threads();
        // Each thread takes a system call.
        let followed: usize = self.watched.values().map(|watched| watched.followed.len()).sum();
        let every = REFRESH.max(REFRESH_THREAD * followed as u32);
        if let Some(events) = &mut self.events
            && self.refreshed.elapsed() >= every
        {
            events.refresh();
            self.refreshed = Instant::now();
        }
    }

    fn threads(&mut self, index: u32, threads: Vec<u32>, inner: Option<InnerTids>) {
        let (Some(watched), Some(account)) =
            (self.watched.get_mut(&index), self.account.living(index))
        else {
            return;
        };
        if let (Some(events), false) = (&mut self.events, self.inherited) {
            let new = threads.iter().copied().filter(|tid| !account.threads.contains(tid));
            watched.to_follow.extend(new);
            let alive = |tid: &u32| threads.binary_search(tid).is_ok();
            watched.to_follow.retain(alive);
            watched.followed.retain(|tid| {
                let alive = alive(tid);
                if !alive {
                    events.forget(*tid);
                }
                alive
            });
        }
        account.set_threads(threads, inner);
        self.follow_threads();
    }

    /// Goes on to open events for threads, as the budget allows.
    fn follow_threads(&mut self) {
        let allowed = self.allowed(FOLLOWING_SHARE);
        let Some(events) = &mut self.events else { return };
        for watched in self.watched.values_mut().filter(|watched| watched.ended.is_none()) {
            while self.following < allowed
                && let Some(tid) = watched.to_follow.pop_front()
            {
                let began = thread_cpu();
                if events.follow_thread(tid).is_ok() {
                    watched.followed.push(tid);
                }
                // Its TID may have been another process's by then.
                if watched.process.as_ref().is_some_and(|process| !process.has_thread(tid)) {
                    watched.followed.retain(|&followed| followed != tid);
                    events.forget(tid);
                }
                // To close them costs as much again.
                self.following += 2 * Duration::from_nanos(thread_cpu() - began);
            }
        }
        if self.watched.values().any(|watched| !watched.to_follow.is_empty()) && !self.not_all {
            self.not_all = true;
            _ = self.orders.send(Order::RecordDelays);
        }
    }

    fn fold(&mut self, mut chunk: Chunk) {
        self.stacks.table.allow_listing(self.allowed(LISTING_SHARE));
        let (stacks, watched) = (&mut self.stacks, &self.watched);
        chunk.number_stacks(&mut |read, base, bytes| {
            let process = watched.get(&read.process)?.process.as_ref()?;
            let (stack_pointer, program_counter) = read.activity.position()?;
            let registers = Registers::new(program_counter, stack_pointer);
            stacks.number(read.process, process, registers, StackBytes { base, bytes })
        });
        let BetweenLooks { mut departures, mut running, mut lost_until } =
            std::mem::take(&mut self.reported);
        let (mut forks, mut grown) = (Vec::new(), HashSet::new());
        let mut lost = false;
        let first_due = chunk.ticks.first().map_or(0, |tick| tick.due);
        let mut incomplete = first_due < lost_until;
        incomplete |= self.watched.values().any(|watched| !watched.to_follow.is_empty());
        let timeline = self.events.as_mut().map(|events| {
            let timeline = &mut self.timeline;
            // Records of the last look may still be on their way.
            let last = chunk.ticks.last().map_or(0, |tick| tick.at);
            let settled = (last + SETTLE_NS).saturating_sub(now());
            std::thread::sleep(Duration::from_nanos(settled.min(SETTLE_NS)));
            let (stacks, watched, running) = (&mut self.stacks, &self.watched, &mut running);
            let account = &mut self.account;
            let ticks = &chunk.ticks;
            let until = events.drain(&mut |event| {
                timeline.note(&event);
                match event {
                    Event::Switch {
                        at,
                        cpu,
                        direction: Direction::Out { preempted: false },
                        ..
                    } => departures.push(Departure { at, cpu }),
                    Event::Lost { until, records, .. } => {
                        incomplete = true;
                        lost_until = lost_until.max(until);
                        lost |= records > 0;
                    }
                    _ => {}
                }
                if let Event::Fork { pid, parent_pid, .. } = event {
                    match pid == parent_pid {
                        true => _ = grown.insert(pid),
                        false => forks.push((pid, parent_pid)),
                    }
                }
                if let Event::Sample(sample) = event
                    && near_a_look(sample.at, ticks)
                {
                    let of = watched.iter().rfind(|(_, of)| of.pid == sample.pid);
                    let stack = of.and_then(|(&index, of)| {
                        let registers = registers_of(&sample.registers);
                        let bytes = sample.stack;
                        let base = sample.registers.stack_pointer();
                        let process = of.process.as_ref()?;
                        let bytes = StackBytes { base, bytes };
                        let stack = stacks.number(index, process, registers, bytes)?;
                        account.living(index)?.note_running(stack);
                        Some(stack)
                    });
                    if let Some(stack) = stack {
                        running.push(RunningStack { at: sample.at, tid: sample.tid, stack });
                    }
                }
            });
            events.keep_within(TARGET_SHARE);
            running.sort_unstable_by_key(|sample| sample.at);
            timeline.complete_until(until);
        });
        if lost {
            self.family.look_at_all();
        }
        self.follow_forks(&forks);
        let living = self.watched.iter().filter(|(_, watched)| watched.ended.is_none());
        for (&index, _) in living.filter(|(_, watched)| grown.contains(&watched.pid)) {
            _ = self.orders.send(Order::List(index));
        }
        // They come CPU by CPU, each in order: such runs are merged.
        departures.sort_by_key(|departure: &Departure| departure.at);
        let reported = Reported {
            timeline: timeline.map(|()| &self.timeline),
            departures: &departures,
            incomplete,
            running: &running,
        };
        self.account.fold(&chunk, &reported, &self.stacks, self.throttled);
        for (index, process) in self.account.all_living() {
            for (place, stack) in process.telling_stacks() {
                process.tell(place, self.stacks.callers(stack));
            }
            if let Some(watched) = self.watched.get_mut(&index)
                && let Some(of) = &watched.process
            {
                let memory = of.memory();
                process.find_holders(&mut |address, bytes| memory.read(address, bytes));
                let name = |tid| Some((tid, of.thread_name(tid).ok()?.to_string_lossy().into()));
                watched.names.extend(process.new_users.drain(..).filter_map(name));
            }
            for (word, wish) in process.wishes.drain(..) {
                _ = self.orders.send(match wish {
                    Wish::Watch(span) => Order::Watch(index, vec![(word, span)]),
                    Wish::WatchWaiters(span) => Order::WatchWaiters(index, word, span),
                    Wish::Ignore => Order::Ignore(index, word),
                });
            }
        }
        self.reported = BetweenLooks { departures, running, lost_until };
        self.reported.keep_for_looks_after(&chunk.ticks);
        if let Some(tick) = chunk.ticks.first() {
            self.timeline.forget_before(tick.at.saturating_sub(1_000_000_000));
        }
        _ = self.spare.send(chunk);
    }

    /// Everything seen so far.
    fn profile(&mut self, finished: bool) -> Profile {
        let behind: usize = self.watched.values().map(|watched| watched.to_follow.len()).sum();
        self.stacks.inlined_until = finished.then(|| Instant::now() + NAMING);
        compose(
            &self.account,
            &self.watched,
            &mut self.stacks,
            &Circumstances {
                finished,
                seconds: self.began.elapsed().as_secs_f64(),
                budget: self.options.budget,
                cpu_ns: self.cpu_ns,
                perf_refused: self.perf_refused.clone(),
                unseen: self.unseen.sentences(behind, self.events.as_ref()),
                forgotten: self.forgotten.clone(),
            },
        )
    }
}

fn is_jvm(image: &Image) -> bool {
    image.name() == "libjvm.so"
}

/// glibc marks static programs with the oldest kernel that they run on; Go's runtime needs no C.
fn is_static_without_glibc(program: &Image) -> bool {
    let has = |name| program.has_section(name);
    has(".text") && !has(".interp") && !has(".note.ABI-tag") && !has(".go.buildinfo")
}

fn open_events() -> Result<Events, PerfRefused> {
    Events::open(perf::Options { switches: true, samples: Some(samples()) })
}

/// The control group's quota.
#[derive(Debug)]
struct Throttle {
    counter: ThrottleCounter,
    last: Option<Throttled>,
}

impl Throttle {
    fn of_process(pid: u32) -> Throttle {
        let counter = ThrottleCounter::of_process(pid);
        let last = counter.read();
        Throttle { counter, last }
    }

    /// The group has been out of quota since the last call.
    fn moved(&mut self) -> bool {
        let now = self.counter.read();
        let moved = now.is_some() && self.last.is_some() && now != self.last;
        self.last = now;
        moved
    }
}

/// Samples of running threads. Only those next to a look are of use, but when a look comes no
/// sample can be asked for: a few hundred a second on each of a few CPUs.
fn samples() -> SampleOptions {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    SampleOptions { period_ns: SAMPLE_NS * cpus.div_ceil(4), stack_bytes: SAMPLED_STACK }
}

/// The look at a running thread is as good as a sample of it that lies this near. After the last
/// look, the next one may be as near.
fn near_a_look(at: u64, ticks: &[Tick]) -> bool {
    let next = ticks.partition_point(|tick| tick.at < at);
    let near = |tick: &Tick| tick.at.abs_diff(at) <= NEAR_NS;
    let before = next.checked_sub(1).and_then(|before| ticks.get(before));
    ticks.get(next).is_none_or(near) || before.is_some_and(near)
}

/// Reports that came with some looks and tell of the next ones, too, whose times they may lie in.
#[derive(Debug, Default)]
struct BetweenLooks {
    departures: Vec<Departure>,
    running: Vec<RunningStack>,
    /// Records are missing until then.
    lost_until: u64,
}

impl BetweenLooks {
    /// Keeps what may concern a look that was due after these.
    fn keep_for_looks_after(&mut self, ticks: &[Tick]) {
        let Some(last) = ticks.last() else { return };
        self.departures.retain(|departure| departure.at > last.due);
        self.running.retain(|sample| sample.at + NEAR_NS > last.at);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_from_between_two_chunks_belong_to_the_next_one() {
        let mut chunk = Chunk::default();
        for (due, at) in [(1_000_000, 1_010_000), (2_000_000, 2_600_000)] {
            chunk.begin(due, 1);
            chunk.tick().at = at;
        }
        let ticks = &chunk.ticks;
        let near = [500_000, 1_600_000, 2_300_000, 9_000_000].map(|at| near_a_look(at, ticks));
        assert_eq!(near, [false, false, true, true]);

        let left = [1_500_000, 2_300_000, 2_700_000].map(|at| Departure { at, cpu: 0 });
        let ran = [1_000_000, 2_700_000].map(|at| RunningStack { at, tid: 1, stack: 0 });
        let mut reported =
            BetweenLooks { departures: left.to_vec(), running: ran.to_vec(), lost_until: 0 };
        // Nothing is known of the next look while there is none.
        reported.keep_for_looks_after(&[]);
        assert_eq!((reported.departures.len(), reported.running.len()), (3, 2));
        reported.keep_for_looks_after(ticks);
        let times: Vec<u64> = reported.departures.iter().map(|departure| departure.at).collect();
        assert_eq!(times, [2_300_000, 2_700_000]);
        assert_eq!(reported.running.len(), 1);
    }
}

//! One process: what its threads spend their time on, and what they wait on.

use std::collections::{HashMap, HashSet};

use super::StretchLooks;
use super::mean::{Estimate, Mean, Stretches};
use super::object::{KeptScene, KeptThread, Object, count};
use super::occupation::{Device, Occupation};
use crate::activity::Activity;
use crate::judge::cause::Holder;
use crate::judge::interval::Z;
use crate::judge::samples::LockSamples;
use crate::perf::{CpuState, Timeline};
use crate::primitive::{
    Access, Caller, Context, Hold, Identity, Kind, ReadMemory, Role, Wait, Window,
};
use crate::process::InnerTids;
use crate::sample::{Burst, Chunk, Reason, Span, ThreadRead, Tick, WordRead};
use crate::stacks::Stacks;

/// Most things to wait on that are told apart.
pub(crate) const MAX_OBJECTS: usize = 20_000;

/// Most looks that are kept at things of which it is not known yet if they are locks, of some
/// hundred bytes each.
const MAX_UNJUDGED: usize = 1 << 15;

/// Most threads whose names are kept.
const MAX_USERS: usize = 20_000;

/// Looks at a word that tell as much of it as more of them would.
const READINGS: u32 = 64;

/// Most records of holders that are told apart.
const MAX_HOLDERS: usize = 4096;

/// Most descriptors whose devices are remembered, and for how long.
const MAX_DEVICES: usize = 4096;
const DEVICE_NS: u64 = 1_000_000_000;

/// A thread's time outside futexes, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Time {
    /// On a CPU or waiting for one: its switches do not tell which.
    OnCpu,
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a device.
    Io(Device),
    /// Waiting for a page of memory.
    Paging,
    /// Waiting until something happens.
    Idle,
    /// Waiting for time to pass.
    Sleep,
    /// In another system call.
    Other,
}

impl Time {
    /// All kinds.
    pub const ALL: [Time; 12] = [
        Time::OnCpu,
        Time::Running,
        Time::Runnable,
        Time::Io(Device::Disk),
        Time::Io(Device::Socket),
        Time::Io(Device::Pipe),
        Time::Io(Device::Terminal),
        Time::Io(Device::Other),
        Time::Paging,
        Time::Idle,
        Time::Sleep,
        Time::Other,
    ];

    /// The time of a thread that is on a CPU, or waits for one.
    fn on_cpu(state: Option<CpuState>) -> Time {
        match state {
            None => Time::OnCpu,
            Some(CpuState::Running) => Time::Running,
            Some(CpuState::Preempted | CpuState::SwitchedOut) => Time::Runnable,
        }
    }

    fn place(self) -> usize {
        match self {
            Time::OnCpu => 0,
            Time::Running => 1,
            Time::Runnable => 2,
            Time::Io(Device::Disk) => 3,
            Time::Io(Device::Socket) => 4,
            Time::Io(Device::Pipe) => 5,
            Time::Io(Device::Terminal) => 6,
            Time::Io(Device::Other) => 7,
            Time::Paging => 8,
            Time::Idle => 9,
            Time::Sleep => 10,
            Time::Other => 11,
        }
    }
}

/// One process.
#[derive(Debug)]
pub struct ProcessAccount {
    /// Its number.
    pub pid: u32,
    /// Its threads.
    pub threads: HashSet<u32>,
    inner: Option<InnerTids>,
    /// Most threads at once.
    pub threads_max: usize,
    /// It has ended: nothing counts after the current stretch.
    pub ended: bool,
    /// Time of all its threads, once it has ended.
    pub(super) seen: f64,
    /// What threads wait on.
    pub objects: Vec<Object>,
    /// Things for which threads waited in a stretch that has not ended.
    waited_for: Vec<u32>,
    /// Threads that were seen to hold a lock or to wait for one, and those of them whose names
    /// nobody has asked for yet.
    users: HashSet<u32>,
    pub(crate) new_users: Vec<u32>,
    /// Things of which a waiter's stack may tell more.
    telling: Vec<u32>,
    /// The word of a lock for which threads waited does not name its holder.
    pub nameless: bool,
    /// Threads waited on more than can be told apart.
    pub is_full: bool,
    stretches: Stretches,
    /// Samples of a lock for which nobody has waited.
    unwaited: LockSamples,
    room_for_unjudged: usize,
    by_word: HashMap<u64, u32>,
    by_object: HashMap<u64, u32>,
    /// Accounts of the readers of locks, by those of their writers.
    readers: HashMap<u32, u32>,
    /// Mean number of threads, by what they spend their time on.
    time: [Mean; Time::ALL.len()],
    /// Of the current look.
    time_now: [f64; Time::ALL.len()],
    touched: Vec<u32>,
    last: HashMap<u32, Last>,
    /// Looks at each thread, and those of them at which it was on a CPU.
    on_cpu: HashMap<u32, (u64, u64)>,
    devices: HashMap<u32, (Device, u64)>,
    /// The program was built by Go.
    pub go: bool,
    /// The program has a Java virtual machine in it.
    pub jvm: bool,
    /// The program's C library is not glibc.
    pub foreign_libc: bool,
    /// Words that the sampler is to read otherwise from now on.
    pub wishes: Vec<(u64, Wish)>,
    /// Threads of the holders' records that locks point to; `None` if none was found.
    holders: HashMap<u64, Option<u32>>,
    /// Records whose threads are to be found, each with its lock.
    new_records: Vec<(u64, Identity)>,
    /// Locks that parked threads wait for, of the current look: by the parker's word.
    parked: HashMap<u64, (u64, u64)>,
}

/// Bytes that the sampler is to read of a word from now on.
#[derive(Clone, Copy, Debug)]
pub enum Wish {
    /// These, at any look.
    Watch(Span),
    /// These, with each waiter.
    WatchWaiters(Span),
    /// None at looks at which nobody waits.
    Ignore,
}

/// Where a thread was seen last.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    at: u64,
    /// The thing that it waited on.
    waiting_on: Option<u32>,
    /// When it was last seen asleep there.
    asleep_at: u64,
}

/// A waiter that was woken for nothing has gone back to sleep after running this long at most: it
/// has looked at the word, perhaps spun for a while as parking_lot does, and called the kernel
/// (3 to 20 µs on a virtual machine). One that ran longer may have had the lock.
const RETRY_NS: u64 = 50_000;

/// A thread at the instant at which a look was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenDue {
    /// On a CPU, or ready for one.
    Awake,
    /// In the sleep in which it was seen before, and no longer in the same way.
    AsBefore,
    /// As the look shows it, as far as one can tell.
    AsNow,
}

/// A look, as far as it concerns every process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances<'a> {
    pub(super) look: u64,
    pub(super) second: u64,
    /// When it was due.
    pub(super) due: u64,
    /// Mean time between two due times.
    pub(super) gap_s: f64,
    /// Threads that a picked one stands for.
    pub(super) scale: f64,
    pub(super) late: bool,
    /// Its queue is late, too: no switches tell it as it was when the look was due.
    pub(super) queue_late: bool,
    pub(super) timeline: Option<&'a Timeline>,
    pub(super) stacks: &'a Stacks,
    /// Stacks of running threads, in the order of their times.
    pub(super) running: &'a [RunningStack],
    /// The cgroup was throttled about then.
    pub(super) throttled: bool,
}

/// The stack of a thread while it ran.
#[derive(Clone, Copy, Debug)]
pub struct RunningStack {
    /// When it was taken.
    pub at: u64,
    /// The thread.
    pub tid: u32,
    /// The stack's number.
    pub stack: u32,
}

/// A running thread may be somewhere else after this time.
pub(crate) const NEAR_NS: u64 = 500_000;

impl Circumstances<'_> {
    /// The state of a thread at a look, as it would be without that look.
    fn state(&self, tid: u32, at: u64) -> Option<CpuState> {
        let timeline = self.timeline?;
        let state = timeline.state(tid, at);
        // The look itself may have taken the thread's CPU.
        let by_look = state == Some(CpuState::Preempted)
            && timeline.state(tid, self.due) == Some(CpuState::Running);
        if by_look { Some(CpuState::Running) } else { state }
    }

    /// A late look comes when a thread has just gone to sleep or woken another, so that it sees
    /// other queues than those of random instants. Its switches tell what each thread did at the
    /// instant for which the look was meant.
    fn when_due(&self, read: &ThreadRead, at: u64, last: Last) -> WhenDue {
        let Some(timeline) = self.timeline else { return WhenDue::AsNow };
        match timeline.state_since(read.tid, self.due) {
            None => WhenDue::AsNow,
            Some((CpuState::Running | CpuState::Preempted, _)) => WhenDue::Awake,
            Some((CpuState::SwitchedOut, since)) => {
                let known = since <= last.at && last.at <= self.due;
                let now = timeline.state_since(read.tid, at);
                let woken = read.activity == Activity::OnCpu;
                let ran = now.is_some_and(|(_, since)| since > self.due);
                if known && (woken || ran) { WhenDue::AsBefore } else { WhenDue::AsNow }
            }
        }
    }

    /// The number of a thread's stack: as it was read, or as the nearest sample shows it.
    fn stack(&self, read: &ThreadRead, at: u64) -> Option<u32> {
        if read.stack_number.is_some() || read.activity != Activity::OnCpu {
            return read.stack_number;
        }
        let from = self.running.partition_point(|sample| sample.at + NEAR_NS < at);
        let near = self.running[from..].iter().take_while(|sample| sample.at <= at + NEAR_NS);
        let of_thread = near.filter(|sample| sample.tid == read.tid);
        of_thread.min_by_key(|sample| sample.at.abs_diff(at)).map(|sample| sample.stack)
    }
}

impl ProcessAccount {
    /// An account of a process.
    pub fn new(pid: u32) -> Self {
        ProcessAccount {
            pid,
            threads: HashSet::new(),
            inner: None,
            threads_max: 0,
            ended: false,
            seen: 0.0,
            objects: Vec::new(),
            waited_for: Vec::new(),
            users: HashSet::new(),
            new_users: Vec::new(),
            telling: Vec::new(),
            nameless: false,
            is_full: false,
            stretches: Stretches::default(),
            unwaited: LockSamples::default(),
            room_for_unjudged: MAX_UNJUDGED,
            by_word: HashMap::new(),
            by_object: HashMap::new(),
            readers: HashMap::new(),
            time: Default::default(),
            time_now: Default::default(),
            touched: Vec::new(),
            last: HashMap::new(),
            on_cpu: HashMap::new(),
            devices: HashMap::new(),
            go: false,
            jvm: false,
            foreign_libc: false,
            wishes: Vec::new(),
            holders: HashMap::new(),
            new_records: Vec::new(),
            parked: HashMap::new(),
        }
    }

    /// The threads that it has now.
    pub fn set_threads(&mut self, threads: Vec<u32>, inner: Option<InnerTids>) {
        self.inner = inner;
        self.threads_max = self.threads_max.max(threads.len());
        self.threads = threads.into_iter().collect();
        self.holders.retain(|_, tid| tid.is_some_and(|tid| self.threads.contains(&tid)));
        let alive = &self.threads;
        self.last.retain(|tid, _| alive.contains(tid));
    }

    /// The thread that a word of the process's memory names.
    fn thread_named(&self, tid: u32) -> Option<u32> {
        match &self.inner {
            Some(inner) => inner.get(&tid).copied(),
            None => Some(tid),
        }
    }

    fn name_owner(&mut self, place: u32) {
        if let Some(Hold::Held { owner: Some(tid) }) = self.objects[place as usize].now.hold {
            let owner = self.thread_named(tid);
            self.objects[place as usize].now.hold = Some(Hold::Held { owner });
        }
    }

    /// Mean number of threads that spend their time on this.
    pub fn time(&self, kind: Time) -> Option<Estimate> {
        self.time[kind.place()].estimate(&self.stretches)
    }

    /// Mean number of threads that wait for a thing.
    pub fn waiters(&self, object: &Object) -> Option<Estimate> {
        object.waiters.estimate(&self.stretches)
    }

    /// Held share and queue of a lock.
    pub fn samples(&self, lock: &Object) -> LockSamples {
        lock.samples.among(&self.unwaited)
    }

    fn object(&mut self, word: u64, at: u64) -> Option<u32> {
        if let Some(&object) = self.by_word.get(&word) {
            return Some(object);
        }
        if self.objects.len() >= MAX_OBJECTS {
            self.is_full = true;
            return None;
        }
        let place = self.objects.len() as u32;
        self.objects.push(Object::new(word, at));
        self.by_word.insert(word, place);
        Some(place)
    }

    fn touch(&mut self, place: u32, look: u64) -> &mut Object {
        let object = &mut self.objects[place as usize];
        if object.now.look != look {
            self.touched.push(place);
            object.see(look);
        }
        object
    }

    /// Judges an object after news. Two words may turn out to be one object's.
    fn judge(&mut self, word: u64, place: u32, news: bool) {
        if !news {
            return;
        }
        let (threads, inner) = (&self.threads, &self.inner);
        let is_thread = |tid| match inner {
            Some(inner) => inner.contains_key(&tid),
            None => threads.contains(&tid),
        };
        let context = Context { is_thread: &is_thread, go: self.go, jvm: self.jvm };
        let object = &mut self.objects[place as usize];
        if !object.judge(news, &context) {
            return;
        }
        let identity = object.identity;
        object.address = identity.object;
        match identity.role() {
            Role::Parked => {
                // The word names the lock only while its thread waits, and words are not all read
                // at each look.
                let (from, length) = match identity.certain {
                    true => identity.window(),
                    false => object.evidence.window(),
                };
                if identity.certain {
                    self.wishes.push((word, Wish::Ignore));
                }
                self.wishes.push((word, Wish::WatchWaiters((from, length))));
            }
            Role::Lock if identity.certain => {
                self.wishes.push((word, Wish::Watch(identity.window())));
            }
            Role::Idle if identity.certain && object.may_lock() => {
                self.wishes.push((word, Wish::Watch(identity.window())));
            }
            Role::Idle | Role::Unknown if identity.certain => {
                self.wishes.push((word, Wish::Ignore));
            }
            Role::Lock | Role::Idle | Role::Unknown => {}
        }
        match self.by_object.get(&identity.object) {
            // The one found first goes on; what the other has seen so far is a few looks.
            Some(&first) if first != place => {
                self.by_word.insert(word, first);
                let object = &mut self.objects[place as usize];
                self.room_for_unjudged += object.take_unjudged().len();
                *object = Object::new(word, object.first_seen);
                return;
            }
            Some(_) => {}
            None => {
                self.by_object.insert(identity.object, place);
            }
        }
        if identity.role() == Role::Lock || identity.certain {
            self.judge_earlier(place);
        }
    }

    /// Takes looks into account at which it was not known what a thing is.
    fn judge_earlier(&mut self, place: u32) {
        let object = &mut self.objects[place as usize];
        let looks = object.take_unjudged();
        self.room_for_unjudged += looks.len();
        if !object.is_lock() {
            return;
        }
        object.see_hold();
        let mut readers = None;
        if object.identity.kind() == Kind::RwLock && !self.readers.contains_key(&place) {
            readers = self.readers(place);
        }
        if let Some(readers) = readers {
            self.objects[readers as usize].add_unjudged(&looks);
        }
        self.objects[place as usize].add_unjudged(&looks);
    }

    pub(super) fn word(&mut self, read: &WordRead, bytes: &[u8], tick: &Tick, look: u64) {
        let Some(place) = self.object(read.word, tick.at) else { return };
        let window = Window { address: read.address, bytes };
        if read.reason == Reason::Again {
            self.touch(place, look).read_again(&window);
        }
        if let Some(&readers) = self.readers.get(&place) {
            let object = self.touch(readers, look);
            match read.reason {
                Reason::Picked => {
                    object.read(&window);
                    self.name_owner(readers);
                }
                Reason::Again => object.read_again(&window),
                Reason::Waiter => {}
            }
        }
        let object = self.touch(place, look);
        let might_lock = object.may_lock();
        let news = match read.reason {
            Reason::Picked => object.read(&window),
            Reason::Again => return,
            Reason::Waiter => object.read_with_waiter(&window),
        };
        if object.is_something_else() {
            self.begin_anew(place, tick.at);
            return;
        }
        let identity = object.identity;
        self.name_owner(place);
        if read.reason == Reason::Picked
            && let Some(record) = identity.holder_record(&window)
        {
            let owner = self.holder_of(record, identity);
            self.touch(place, look).now.hold = Some(Hold::Held { owner });
        }
        let object = self.touch(place, look);
        object.readings = object.readings.saturating_add(1);
        // An object that is no lock by then is watched by its waits alone.
        let is_idle = object.readings == READINGS && object.identity.role() == Role::Idle;
        let may_lock = object.may_lock();
        if !may_lock && (is_idle || might_lock) {
            self.wishes.push((read.word, Wish::Ignore));
        }
        self.judge(read.word, place, news);
        let identity = self.objects[place as usize].identity;
        if let Some(parked) = identity.parked_on(&window) {
            self.parked.insert(read.word, (parked.object, parked.token));
        }
    }

    /// The memory of a thing has another use by now, which takes other bytes to know.
    fn begin_anew(&mut self, place: u32, at: u64) {
        let object = &mut self.objects[place as usize];
        let former = object.identity.object;
        self.room_for_unjudged += object.take_unjudged().len();
        object.begin_anew(at);
        let (word, window) = (object.evidence.address(), object.evidence.window());
        self.wishes.push((word, Wish::Watch(window)));
        self.wishes.push((word, Wish::WatchWaiters(window)));
        if self.by_object.get(&former) == Some(&place) {
            self.by_object.remove(&former);
        }
        self.by_word.retain(|&other, of| *of != place || other == word);
        self.readers.remove(&place);
    }

    /// The thread of a holder's record, if that has been found.
    fn holder_of(&mut self, record: u64, lock: Identity) -> Option<u32> {
        if let Some(&tid) = self.holders.get(&record) {
            return tid;
        }
        if self.holders.len() < MAX_HOLDERS {
            self.holders.insert(record, None);
            self.new_records.push((record, lock));
        }
        None
    }

    /// Finds the threads of the holders' records that were seen for the first time.
    pub fn find_holders(&mut self, read: ReadMemory<'_>) {
        for (record, lock) in std::mem::take(&mut self.new_records) {
            let is_thread =
                |tid| self.thread_named(tid).is_some_and(|tid| self.threads.contains(&tid));
            let tid = lock.thread_of(record, read, &is_thread);
            let tid = tid.and_then(|tid| self.thread_named(tid));
            self.holders.insert(record, tid);
        }
    }

    /// The account of a lock's readers.
    fn readers(&mut self, writers: u32) -> Option<u32> {
        if let Some(&readers) = self.readers.get(&writers) {
            return Some(readers);
        }
        if self.objects.len() >= MAX_OBJECTS {
            self.is_full = true;
            return None;
        }
        let readers = self.objects.len() as u32;
        let object = Object::readers_of(&self.objects[writers as usize]);
        self.objects.push(object);
        self.readers.insert(writers, readers);
        Some(readers)
    }

    /// A picked thread waits on a word. Returns the place of what it waits for.
    fn wait(
        &mut self,
        tid: u32,
        word: u64,
        wait: Wait,
        scale: f64,
        at: u64,
        look: u64,
    ) -> Option<u32> {
        let place = self.object(word, at)?;
        // A lock is known by its address; its parked waiters by words of their own.
        let parked = self.parked.get(&word).copied();
        let scale_here = if parked.is_some() { 0.0 } else { scale };
        let identity = self.objects[place as usize].identity;
        if identity.kind() == Kind::RwLock && identity.access(&wait) == Access::Shared {
            let readers = self.readers(place)?;
            self.touch(readers, look).wait(tid, wait, scale_here);
            return Some(readers);
        }
        let news = self.touch(place, look).wait(tid, wait, scale_here);
        self.judge(word, place, news);
        // It may have turned out to be a part of another one.
        let place = self.by_word.get(&word).copied().unwrap_or(place);
        let Some((lock, token)) = parked else { return Some(place) };
        let Some(lock_place) = self.object(lock, at) else { return Some(place) };
        if self.objects[lock_place as usize].evidence.is_empty() {
            let window = self.objects[lock_place as usize].evidence.window();
            self.wishes.push((lock, Wish::Watch(window)));
        }
        let news = self.touch(lock_place, look).wait(tid, Wait::Parked { token }, scale);
        self.judge(lock, lock_place, news);
        Some(lock_place)
    }

    pub(super) fn thread(&mut self, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) {
        let mut waiting_on = None;
        let scale = if read.picked { seen.scale } else { 0.0 };
        let last = self.last.get(&read.tid).copied().unwrap_or_default();
        let when_due = seen.when_due(read, at, last);
        // It counts once: as what it waited for then, or else as what it does now.
        let waited = last.waiting_on.filter(|_| when_due == WhenDue::AsBefore);
        let scale_now = if waited.is_some() { 0.0 } else { scale };
        match Occupation::of(&read.activity) {
            Occupation::Futex(wait) if read.picked => {
                let awake = when_due == WhenDue::Awake;
                let scale = if awake { 0.0 } else { scale_now };
                let (word, wait) = (wait.address, Wait::Futex(wait));
                waiting_on = self.wait(read.tid, word, wait, scale, at, seen.look);
                if awake {
                    let kind = Time::on_cpu(seen.state(read.tid, seen.due));
                    self.time_now[kind.place()] += scale_now;
                } else if waiting_on.is_none() {
                    self.time_now[Time::Other.place()] += scale_now;
                }
            }
            Occupation::Futex(_) => {}
            Occupation::OnCpu => {
                let state = seen.state(read.tid, at);
                self.time_now[Time::on_cpu(state).place()] += scale_now;
                if let (Some(CpuState::SwitchedOut), Some(place)) = (state, last.waiting_on) {
                    // Woken from its wait, and without a CPU yet.
                    waiting_on = Some(place);
                    if let Some(overtaken_by) = self.turn(place, read.tid, last, at, seen) {
                        self.touch(place, seen.look).count_turn(overtaken_by);
                    }
                }
            }
            occupation => {
                let kind = self.kind(occupation, at);
                self.time_now[kind.place()] += scale_now;
            }
        }
        if let Some(place) = waited {
            let woken = read.activity == Activity::OnCpu && waiting_on.is_some();
            let now = &mut self.touch(place, seen.look).now;
            match woken {
                true => now.waking += scale,
                false => now.waiting += scale,
            }
            now.woken += u32::from(woken && read.picked);
        }
        if let (Some(stack), Some(place)) = (read.stack_number, waiting_on) {
            let object = &mut self.objects[place as usize];
            count(&mut object.waiting_at, stack);
            if !object.identity.certain && object.telling_stack.replace(stack).is_none() {
                self.telling.push(place);
            }
        }
        if read.picked {
            if self.on_cpu.len() < MAX_OBJECTS || self.on_cpu.contains_key(&read.tid) {
                let (looks, on_cpu) = self.on_cpu.entry(read.tid).or_default();
                *looks += 1;
                *on_cpu += u64::from(read.activity == Activity::OnCpu);
            }
            let woken = read.activity == Activity::OnCpu;
            let before = self.last.get(&read.tid).copied();
            let asleep_at = before.filter(|_| woken).map_or(at, |before| before.asleep_at);
            self.last.insert(read.tid, Last { at, waiting_on, asleep_at });
            if let (Some(place), Some(before)) = (waiting_on, before)
                && before.waiting_on != waiting_on
            {
                let idle = |&other: &u32| {
                    matches!(self.objects[other as usize].identity.role(), Role::Idle)
                };
                let before = before.waiting_on.filter(idle);
                self.objects[place as usize].now.arrivals.push(before);
            }
        }
    }

    /// A waiter has been woken and does not run yet: the thread that has taken the lock meanwhile,
    /// or `Some(None)` if the lock is the waiter's. `None` if it is not known which.
    ///
    /// The kernel does not show from which wait a thread was woken. It is taken to be the lock's if
    /// all runs since it was seen asleep there were too short to use the lock. So a thread that
    /// sleeps briefly in many other places meanwhile is mistaken for one that is woken in vain.
    fn turn(
        &self,
        place: u32,
        tid: u32,
        last: Last,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<Option<u32>> {
        let object = &self.objects[place as usize];
        let timeline = seen.timeline.filter(|_| object.is_lock() && !seen.late)?;
        if timeline.longest_run(tid, last.asleep_at, at)? > RETRY_NS {
            return None;
        }
        let owner = match object.now.hold? {
            Hold::Free => return Some(None),
            Hold::Held { owner } => owner,
            Hold::Readers(_) | Hold::Unseen => return None,
        };
        // A lock that is handed over is held before its new holder runs.
        if owner == Some(tid) || timeline.next_run(tid, at)? > RETRY_NS {
            return Some(None);
        }
        if owner.is_some() {
            return Some(owner);
        }
        // A word that names no owner: if a single thread has a CPU, then that one took it.
        let awake = |&&tid: &&u32| {
            matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
        };
        let mut awake = self.threads.iter().filter(awake);
        let first = awake.next()?;
        awake.next().is_none().then_some(Some(*first))
    }

    fn kind(&mut self, occupation: Occupation, at: u64) -> Time {
        match occupation {
            Occupation::Io(descriptor) => Time::Io(self.device(descriptor, at)),
            Occupation::Disk => Time::Io(Device::Disk),
            Occupation::Paging => Time::Paging,
            Occupation::Idle => Time::Idle,
            Occupation::Sleep => Time::Sleep,
            Occupation::OnCpu | Occupation::Futex(_) | Occupation::Other => Time::Other,
        }
    }

    fn device(&mut self, descriptor: u32, at: u64) -> Device {
        if let Some(&(device, until)) = self.devices.get(&descriptor)
            && at < until
        {
            return device;
        }
        let link = std::fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid));
        let device =
            link.map_or(Device::Other, |link| Device::of_link(link.as_os_str().as_encoded_bytes()));
        if self.devices.len() >= MAX_DEVICES {
            self.devices.clear();
        }
        self.devices.insert(descriptor, (device, at + DEVICE_NS));
        device
    }

    pub(super) fn end_look(&mut self, chunk: &Chunk, tick: &Tick, seen: &Circumstances<'_>) {
        for (mean, now) in self.time.iter_mut().zip(&mut self.time_now) {
            if *now > 0.0 {
                mean.add(std::mem::take(now), tick.times);
            }
        }
        let touched = std::mem::take(&mut self.touched);
        for &place in &touched {
            let object = &self.objects[place as usize];
            let contended = object.is_lock() && !object.now.waiters.is_empty() && !seen.late;
            self.count_holder(place, chunk, tick, seen, contended);
            let object = &mut self.objects[place as usize];
            if contended {
                object.count_patterns(seen.scale);
            }
            let waited_before = !object.waiters.is_unchanged();
            object.end_look(tick.times, seen, &mut self.room_for_unjudged);
            if !waited_before && !object.waiters.is_unchanged() {
                self.waited_for.push(place);
            }
            if object.is_lock() {
                let users = &mut self.users;
                let new = |&tid: &u32| users.len() < MAX_USERS && users.insert(tid);
                self.new_users.extend(object.now.users().filter(new));
            }
        }
        self.touched = touched;
        self.touched.clear();
        self.parked.clear();
    }

    /// Counts the holder of a lock, and what it was doing.
    fn count_holder(
        &mut self,
        place: u32,
        chunk: &Chunk,
        tick: &Tick,
        seen: &Circumstances<'_>,
        contended: bool,
    ) {
        let threads = chunk.threads(tick);
        let object = &self.objects[place as usize];
        let Some(hold) = object.now.hold.filter(|_| object.is_lock()) else { return };
        if let Hold::Held { owner: Some(owner) } = hold {
            let read = threads.iter().find(|read| read.tid == owner);
            // The sampler looks at owners that words name. Those that records name are seen when
            // they happen to be picked, whatever they do: the other looks tell nothing.
            if read.is_none() && object.identity.interpreter_lock().is_some() {
                return;
            }
            let doing = read.map_or(Holder::NotSeen, |read| self.doing(place, read, tick.at, seen));
            let stack = read.and_then(|read| seen.stack(read, tick.at));
            let named = &mut self.objects[place as usize].named;
            if contended {
                named.doing.add(doing);
                count(&mut named.threads, owner);
                // One that was woken to take the lock stands where it waited.
                if let Some(stack) = stack.filter(|_| doing != Holder::HandedOver) {
                    count(&mut named.stacks, stack);
                }
            }
            return;
        }
        let held = match hold {
            Hold::Held { .. } | Hold::Readers(_) => true,
            Hold::Free => false,
            Hold::Unseen => return,
        };
        if object.names_owner && !held {
            if contended {
                self.objects[place as usize].named.doing.add(Holder::HandedOver);
            }
            return;
        }
        // Of several readers none is the holder.
        let shared = matches!(object.identity.kind(), Kind::RwLock | Kind::RustRwLock);
        if shared && held {
            if contended {
                self.objects[place as usize].named.doing.add(Holder::NotSeen);
            }
            return;
        }
        let object = &mut self.objects[place as usize];
        self.nameless |= held && contended && !object.names_owner;
        // A lock that changed hands meanwhile says nothing about who stood where.
        if shared || tick.again_at.is_none() || object.now.hold != object.now.hold_again {
            return;
        }
        let kept = |read: &ThreadRead| KeptThread {
            tid: read.tid,
            waits: self.last.get(&read.tid).is_some_and(|last| last.waiting_on == Some(place)),
            stack: seen.stack(read, tick.at),
            woken: read.activity == Activity::OnCpu
                && seen.state(read.tid, tick.at) == Some(CpuState::SwitchedOut),
            doing: self.doing(place, read, tick.at, seen),
        };
        let scene = KeptScene {
            held,
            complete: threads.len() >= self.threads.len(),
            counts: contended,
            threads: threads.iter().map(kept).collect(),
        };
        self.objects[place as usize].learn(scene, seen.stacks);
    }

    pub(super) fn burst(&mut self, burst: &Burst) {
        if let Some(&place) = self.by_word.get(&burst.word) {
            self.objects[place as usize].burst(burst);
        }
    }

    /// Things that a waiter's stack may tell more of, each with that stack's number.
    pub fn telling_stacks(&mut self) -> Vec<(u32, u32)> {
        let mut stack = |place: u32| self.objects[place as usize].telling_stack.take();
        self.telling.drain(..).filter_map(|place| Some((place, stack(place)?))).collect()
    }

    /// Tells the functions of a waiter's stack.
    pub fn tell(&mut self, place: u32, callers: Vec<Caller>) {
        let object = &mut self.objects[place as usize];
        object.evidence.saw_callers(callers);
        let word = object.evidence.address();
        self.judge(word, place, true);
    }

    /// What a thread does that holds a lock.
    fn doing(&self, lock: u32, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> Holder {
        match Occupation::of(&read.activity) {
            Occupation::Futex(wait) => match self.by_word.get(&wait.address) {
                // It has been given the lock in its sleep.
                Some(&waits) if waits == lock => Holder::HandedOver,
                Some(&waits) if self.objects[waits as usize].is_lock() => Holder::Waiting(waits),
                _ => Holder::Asleep(libc::SYS_futex as u32),
            },
            Occupation::OnCpu => {
                let last = self.last.get(&read.tid).copied().unwrap_or_default();
                match seen.state(read.tid, at) {
                    None => Holder::OnCpu,
                    Some(CpuState::Running) => Holder::Running,
                    Some(CpuState::SwitchedOut) if last.waiting_on == Some(lock) => {
                        Holder::HandedOver
                    }
                    Some(_) if seen.throttled => Holder::Throttled,
                    Some(_) => Holder::Preempted,
                }
            }
            _ => match read.activity {
                Activity::Asleep(call) => Holder::Asleep(call.number),
                _ => Holder::NotSeen,
            },
        }
    }

    /// Learns of a lock that debug information names. Returns the bytes to be read of it.
    pub fn declare(&mut self, identity: Identity, at: u64) -> Option<(u64, Span)> {
        let word = identity.object;
        if self.by_word.contains_key(&word) {
            return None;
        }
        if self.objects.len() >= MAX_OBJECTS {
            self.is_full = true;
            return None;
        }
        let place = self.objects.len() as u32;
        self.objects.push(Object::declared(identity, at));
        self.by_word.insert(word, place);
        self.by_object.insert(word, place);
        Some((word, identity.window()))
    }

    /// Of so many threads seen over the whole run, those that may have been alive at once: where
    /// threads come and go, most of them never meet.
    pub fn at_once(&self, threads: usize) -> usize {
        threads.min(self.threads_max.max(1))
    }

    /// A semaphore may be used as a lock: it never had more than one item, and one of the threads
    /// that wait for it was always elsewhere, as the holder of a lock is.
    pub fn may_lock(&self, object: &Object) -> bool {
        let others = self.at_once(object.waiting.len()) as f64 - 1.0;
        let waiters = self.waiters(object).map(|waiters| waiters.mean - Z * waiters.error);
        object.may_lock()
            && object.readings >= READINGS
            && waiters.is_some_and(|least| 0.0 < least && least <= others)
    }

    /// Mean number of these threads that were on a CPU, of as many as were alive at once.
    pub fn on_cpu(&self, threads: &HashSet<u32>) -> f64 {
        let share = |tid| {
            let &(looks, on_cpu) = self.on_cpu.get(tid)?;
            Some(on_cpu as f64 / looks as f64)
        };
        let all: f64 = threads.iter().filter_map(share).sum();
        all * self.at_once(threads.len()) as f64 / threads.len().max(1) as f64
    }

    /// Its last looks have come in.
    pub(super) fn end(&mut self) {
        let means = self.time.iter().chain(self.objects.iter().map(|object| &object.waiters));
        let threads = means.filter_map(|mean| mean.estimate(&self.stretches));
        self.seen = threads.map(|threads| threads.mean * threads.looks).sum();
    }

    pub(super) fn end_stretch(&mut self, length_s: f64, ended: &StretchLooks) {
        self.unwaited.extend(&ended.unwaited);
        let Some(stretch) = self.stretches.end_stretch(length_s, &ended.looks) else { return };
        self.time.iter_mut().for_each(|mean| mean.end_stretch(&stretch));
        for place in self.waited_for.drain(..) {
            self.objects[place as usize].waiters.end_stretch(&stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Looks;
    use crate::activity::SystemCall;
    use crate::perf::{Direction, Event};
    use crate::primitive::declared;

    const WAITER: u32 = 5;
    const OWNER: u32 = 7;
    const IN: Direction = Direction::In;
    const BLOCKED: Direction = Direction::Out { preempted: false };

    /// A look that was due at 3 ms.
    fn circumstances<'a>(timeline: &'a Timeline, stacks: &'a Stacks) -> Circumstances<'a> {
        Circumstances {
            look: 1,
            second: 0,
            due: 3_000_000,
            gap_s: 1e-3,
            scale: 1.0,
            late: false,
            queue_late: false,
            timeline: Some(timeline),
            stacks,
            running: &[],
            throttled: false,
        }
    }

    /// What is found of a waiter that was seen asleep at 1 ms and is being woken at 3 ms, of a lock
    /// in this state, by these switches and those of a thread that computes.
    fn turn(lock: &str, hold: Hold, switches: &[(u64, Direction)]) -> Option<Option<u32>> {
        let mut timeline = Timeline::new(100);
        timeline.note(&Event::Switch { tid: OWNER, at: 1, cpu: 0, direction: IN });
        for &(at, direction) in switches {
            timeline.note(&Event::Switch { tid: WAITER, at, cpu: 1, direction });
        }
        timeline.complete_until(10_000_000);
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER, OWNER, 8], None);
        account.declare(declared(lock, 0x1000).unwrap(), 0).unwrap();
        account.objects[0].now.hold = Some(hold);
        let stacks = Stacks::default();
        let seen = circumstances(&timeline, &stacks);
        let last = Last { at: 1_000_000, waiting_on: Some(0), asleep_at: 1_000_000 };
        account.turn(0, WAITER, last, 3_000_000, &seen)
    }

    #[test]
    fn a_thread_counts_once_where_it_was_when_the_look_was_due() {
        let futex = [0x1000, 128, 2, 0, 0, 0];
        let asleep = Activity::Asleep(SystemCall {
            number: libc::SYS_futex as u32,
            arguments: futex,
            stack_pointer: 0,
            program_counter: 0,
        });
        let woken = (Activity::OnCpu, [(1_000_000, BLOCKED), (3_050_000, IN)]);
        let fallen_asleep = (asleep, [(2_900_000, IN), (3_100_000, BLOCKED)]);
        for ((activity, switches), waiting) in [(woken, 1.0), (fallen_asleep, 0.0)] {
            let mut timeline = Timeline::new(100);
            for (at, direction) in switches {
                timeline.note(&Event::Switch { tid: WAITER, at, cpu: 1, direction });
            }
            timeline.complete_until(10_000_000);
            let mut account = ProcessAccount::new(1);
            account.set_threads(vec![WAITER], None);
            account.declare(declared(C, 0x1000).unwrap(), 0).unwrap();
            let last = Last { at: 2_000_000, waiting_on: Some(0), asleep_at: 2_000_000 };
            account.last.insert(WAITER, last);
            let stacks = Stacks::default();
            let seen = circumstances(&timeline, &stacks);
            let read = ThreadRead::new(0, WAITER, true, activity);
            account.thread(&read, 3_200_000, &seen);
            assert_eq!(account.objects[0].now.waiting, waiting);
            assert_eq!(account.time_now.iter().sum::<f64>(), 1.0 - waiting);
        }
    }

    #[test]
    fn waits_beyond_what_can_be_told_apart_are_said() {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER], None);
        let (timeline, stacks) = (Timeline::new(100), Stacks::default());
        let seen = circumstances(&timeline, &stacks);
        let mut wait = |word| {
            let activity = Activity::Asleep(SystemCall {
                number: libc::SYS_futex as u32,
                arguments: [word, 128, 2, 0, 0, 0],
                stack_pointer: 0,
                program_counter: 0,
            });
            account.thread(&ThreadRead::new(0, WAITER, true, activity), 3_200_000, &seen);
            (account.is_full, account.time_now[Time::Other.place()])
        };
        for word in 1..=MAX_OBJECTS as u64 {
            assert_eq!(wait(4 * word), (false, 0.0));
        }
        assert_eq!(wait(0x10_0000), (true, 1.0));
    }

    #[test]
    fn a_semaphore_that_never_counts_may_be_a_lock() {
        let (timeline, stacks) = (Timeline::new(100), Stacks::default());
        let seen = circumstances(&timeline, &stacks);
        // Values of the semaphore, and threads that wait for it at all looks.
        for (most, waiting, may_lock) in [(1, 1, true), (1, 2, false), (2, 1, false)] {
            let mut account = ProcessAccount::new(1);
            account.set_threads(vec![WAITER, OWNER], None);
            account.declare(declared("sem_t", 0x1000).unwrap(), 0).unwrap();
            let mut looks = Looks::default();
            for look in 1..=100 {
                let value = u8::try_from(look % (most + 1)).unwrap();
                let mut bytes = [0; 16];
                bytes[0] = value;
                let mut chunk = Chunk::default();
                chunk.begin(look, 1);
                chunk.push_word(0, 0x1000, Reason::Picked, (0x1000, &bytes));
                let tick = chunk.ticks[0];
                let (read, bytes) = chunk.words(&tick).next().unwrap();
                account.word(read, bytes, &tick, look);
                let threads = [WAITER, OWNER].into_iter().cycle().skip(look as usize);
                for tid in threads.take(waiting) {
                    account.objects[0].now.waiters.push(tid);
                    account.objects[0].now.waiting += 1.0;
                }
                account.end_look(&chunk, &tick, &seen);
                looks.add(1);
            }
            let ended = StretchLooks { looks, ..StretchLooks::default() };
            account.end_stretch(1.0, &ended);
            let counted = account.wishes.iter().any(|wish| matches!(wish.1, Wish::Ignore));
            assert_eq!(counted, most > 1);
            assert_eq!(account.may_lock(&account.objects[0]), may_lock, "{most} {waiting}");
        }
    }

    #[test]
    fn owners_in_a_container_are_named_as_outside() {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![40, 41], Some(InnerTids::from([(1, 40), (2, 41)])));
        account.declare(declared(C, 0x1000).unwrap(), 0).unwrap();
        for (named, owner) in [(2, Some(41)), (41, None)] {
            account.objects[0].now.hold = Some(Hold::Held { owner: Some(named) });
            account.name_owner(0);
            assert_eq!(account.objects[0].now.hold, Some(Hold::Held { owner }));
        }
    }

    const C: &str = "pthread_mutex_t";
    const RUST: &str = "std::sync::poison::mutex::Mutex";
    const NAMELESS: Hold = Hold::Held { owner: None };

    const fn held_by(tid: u32) -> Hold {
        Hold::Held { owner: Some(tid) }
    }

    /// Woken twice, each time for a few microseconds.
    const IN_VAIN: [(u64, Direction); 5] = [
        (500_000, BLOCKED),
        (2_000_000, IN),
        (2_005_000, BLOCKED),
        (3_030_000, IN),
        (3_036_000, BLOCKED),
    ];

    #[test]
    fn threads_that_never_meet_do_not_use_a_lock_together() {
        let mut account = ProcessAccount::new(1);
        for first in (10..50).step_by(4) {
            account.set_threads((first..first + 4).collect(), None);
            for tid in first..first + 4 {
                account.on_cpu.insert(tid, (8, 4));
            }
        }
        let users: HashSet<u32> = (10..50).collect();
        assert_eq!((account.at_once(users.len()), account.at_once(3)), (4, 3));
        assert_eq!(account.on_cpu(&users), 2.0);
        assert_eq!(account.on_cpu(&HashSet::new()), 0.0);
    }

    #[test]
    fn a_waiter_that_is_woken_in_vain_is_overtaken() {
        assert_eq!(turn(C, held_by(OWNER), &IN_VAIN), Some(Some(OWNER)));
        // The one thread on a CPU has taken a lock that names no owner.
        assert_eq!(turn(RUST, NAMELESS, &IN_VAIN), Some(Some(OWNER)));
    }

    #[test]
    fn a_lock_that_is_passed_on_overtakes_nobody() {
        assert_eq!(turn(C, Hold::Free, &IN_VAIN), Some(None));
        assert_eq!(turn(C, held_by(WAITER), &IN_VAIN), Some(None));
        // Handed over: it works under the lock when it runs.
        let works = [(500_000, BLOCKED), (3_030_000, IN), (3_500_000, BLOCKED)];
        assert_eq!(turn(RUST, NAMELESS, &works), Some(None));
        assert_eq!(turn(C, held_by(OWNER), &works), Some(None));
    }

    #[test]
    fn a_waiter_that_had_the_lock_meanwhile_tells_nothing() {
        let mut switches = IN_VAIN;
        switches[2].0 = 2_500_000;
        assert_eq!(turn(C, held_by(OWNER), &switches), None);
        // Neither does one whose next run is not known yet.
        assert_eq!(turn(C, held_by(OWNER), &IN_VAIN[..4]), None);
    }
}

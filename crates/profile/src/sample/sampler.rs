//! The sampling thread.

mod listing;
mod owned;
mod reader;
mod sampled_process;

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use threadtoll_machine::current_cpu;
use threadtoll_stacks::process::{Activity, Process, ProgramRun, ThreadSample};

use super::budget::{Budget, Effort, Spent};
use super::chunk::{Burst, Chunk, Reason};
use super::promptness::{RunDelay, be_prompt};
use super::schedule::{Due, Schedule};
use super::watch::{Span, Watch};
use crate::clock::{now, process_cpu, sleep_until, thread_cpu};
use crate::futex::FutexWait;
use owned::Owned;
use sampled_process::{STACK, SampledProcess, read_stack};

/// Maximum share of samples that read stacks: in general, and if only stacks can show which thread
/// holds a lock.
const STACKS: f64 = 0.4;
const STACKS_OF_ALL: f64 = 0.8;

/// Number of readings in a burst. A burst takes some tens of microseconds.
const BURST: usize = 24;
/// Number of bursts per second, and maximum share of samples that are followed by a burst. A burst
/// may cost as much as a sample.
const BURSTS_PER_S: f64 = 20.0;
const BURSTS: f64 = 0.2;

/// Maximum number of stacks per sample: of all threads, of threads that wait on a watched word, of
/// other sleeping threads, and of owners.
const MAX_STACKS: u32 = 32;
const MAX_WAITERS_STACKS: u32 = 8;
const MAX_OTHERS_STACKS: u32 = 4;
const MAX_OWNERS_STACKS: u32 = 8;

/// Length of the first stretch of samples, and maximum length of later ones, in nanoseconds. The
/// first is short, because costs are only guesses until it has ended.
const FIRST_STRETCH: u64 = 50_000_000;
const STRETCH: u64 = 250_000_000;

/// One in this many samples is timed, because reading the CPU clock takes a system call. Samples
/// that read stacks are not timed.
const TIMED: u64 = 4;

/// Minimum relative change of the rate that is applied.
const RATE_TOLERANCE: f64 = 0.15;

/// Size in bytes at which samples are sent before their stretch ends.
const CHUNK_BYTES: usize = 1 << 18;

/// A message to the sampler.
#[derive(Debug)]
pub enum Order {
    /// Observe one more process, under this index, as long as it executes this program.
    Follow(u32, Box<Process>, Option<ProgramRun>),
    /// Stop observing this process.
    Leave(u32),
    /// List the threads of this process again: new ones have started.
    List(u32),
    /// The process with this index has locks that this thread of another process uses.
    Stranger(u32, u32),
    /// Read these words in each sample from now on, each with the bytes around it.
    Watch(u32, Vec<(u64, Watch)>),
    /// Read these bytes whenever a thread is seen waiting on this word.
    WatchWaiters(u32, u64, Span),
    /// Stop reading this word in each sample: it is not a lock.
    Ignore(u32, u64),
    /// Record the time for which the sampler waits for a CPU before each sample.
    RecordDelays,
    /// Read stacks.
    Stacks {
        /// Number of samples per second that read stacks.
        per_s: f64,
        /// True to read the stacks of all sleeping threads. Otherwise, only a few are read, and
        /// those of threads that wait on a watched word or own it.
        of_all: bool,
    },
    /// Stop sampling.
    Stop,
}

/// A message from the sampler.
#[derive(Debug)]
pub enum Report {
    /// Samples of one stretch.
    Samples(Chunk),
    /// A stretch has ended, and all its samples have been sent.
    Stretch(StretchReport),
    /// Present threads of a process, in ascending order.
    Threads(u32, Vec<u32>),
    /// Number of samples in a stretch in which the memory of a process could not be read in time.
    Unread(u32, u32),
    /// A process has ended.
    Ended(u32),
    /// A process has executed another program, and is no longer observed.
    Replaced(u32),
}

/// A period with a constant rate of samples.
#[derive(Clone, Copy, Debug)]
pub struct StretchReport {
    /// Length of the stretch.
    pub length_ns: u64,
    /// End of the stretch, in nanoseconds.
    pub until: u64,
    /// Intended rate, and maximum numbers of words and threads per sample.
    pub effort: Effort,
    /// CPU time that the whole profiler used during the stretch.
    pub process_ns: u64,
}

/// Takes samples of processes.
#[derive(Debug)]
pub struct Sampler {
    schedule: Schedule,
    budget: Budget,
    effort: Effort,
    stacks_per_s: f64,
    stacks_of_all: bool,
    followed: Vec<SampledProcess>,
    /// All threads: index of the process in `followed`, and index of the thread in that process.
    threads: Vec<(u32, u32)>,
    owners: Vec<(u32, u32)>,
    owned: Owned,
    /// Processes that are no longer observed, but of which the account has not been told yet.
    left: Vec<u32>,
    seen: HashSet<u32>,
    buffer: Box<[u8; STACK]>,
    spent: Spent,
    delays: RunDelay,
}

impl Sampler {
    /// Creates a sampler that begins now.
    pub fn new(budget: f64, asked_per_s: f64, seed: u64) -> Self {
        let budget = Budget::new(budget, asked_per_s);
        let effort = budget.effort(0, 1);
        Sampler {
            schedule: Schedule::new(now(), effort.rate_per_s, seed),
            budget,
            effort,
            stacks_per_s: 0.0,
            stacks_of_all: false,
            followed: Vec::new(),
            threads: Vec::new(),
            owners: Vec::new(),
            owned: Owned::default(),
            left: Vec::new(),
            seen: HashSet::new(),
            buffer: Box::new([0; STACK]),
            spent: Spent::default(),
            delays: RunDelay::default(),
        }
    }

    /// Samples until told to stop, or until the receiver is gone.
    pub fn run(mut self, orders: &Receiver<Order>, spare: &Receiver<Chunk>, to: &Sender<Report>) {
        // Without a short slice, samples are late more often, but their lateness is recorded.
        _ = be_prompt();
        let mut chunk = Chunk::default();
        // CPU time used before sampling begins is part of the budget.
        let mut stretch = Beginning { process: 0, ..Beginning::now() };
        let mut stretch_ns = FIRST_STRETCH;
        let (mut listed_at, mut listing_ns) = (0, 0);
        loop {
            let mut woken = now();
            while woken < self.schedule.next() {
                sleep_until(self.schedule.next());
                woken = now();
            }
            if let Some(due) = self.schedule.take(woken) {
                self.sample(due, &mut chunk);
                self.forget_replaced(&mut chunk, to);
            }
            let ended = woken - stretch.wall >= stretch_ns;
            if ended || chunk.weight() >= CHUNK_BYTES {
                let mut empty = spare.try_recv().unwrap_or_default();
                empty.clear();
                let full = std::mem::replace(&mut chunk, empty);
                if !self.hand_in(full, to) {
                    return;
                }
            }
            if !self.obey(orders, to) {
                // The unfinished stretch is reported, too: in a short program, it is the first one.
                if self.hand_in(chunk, to) {
                    self.end_stretch(&stretch, now() - stretch.wall, to);
                }
                return;
            }
            if woken - listed_at >= listing_ns {
                let took = self.list_threads(to) as f64;
                listing_ns = self.until_next_listing(took);
                listed_at = now();
            }
            if ended {
                let length_ns = now() - stretch.wall;
                self.end_stretch(&stretch, length_ns, to);
                stretch = Beginning::now();
                stretch_ns = (2 * stretch_ns).min(STRETCH);
            }
        }
    }

    fn hand_in(&self, mut samples: Chunk, to: &Sender<Report>) -> bool {
        samples.gap_s = 1.0 / self.effort.rate_per_s;
        to.send(Report::Samples(samples)).is_ok()
    }

    fn end_stretch(&mut self, beginning: &Beginning, length_ns: u64, to: &Sender<Report>) {
        let process_ns = process_cpu() - beginning.process;
        let spent = Spent {
            wall_ns: length_ns,
            sampling_ns: thread_cpu() - beginning.sampling,
            process_ns,
            ..std::mem::take(&mut self.spent)
        };
        self.budget.spent(&spent);
        let effort = self.effort;
        for followed in self.followed.iter_mut().filter(|followed| followed.unread > 0) {
            _ = to.send(Report::Unread(followed.index, std::mem::take(&mut followed.unread)));
        }
        let until = beginning.wall + length_ns;
        _ = to.send(Report::Stretch(StretchReport { length_ns, until, effort, process_ns }));
        let effort = self.budget.effort(self.words(), self.threads.len() as u32);
        // Small changes are ignored: while the rate is constant, all samples have the same weight.
        if (effort.rate_per_s / self.effort.rate_per_s - 1.0).abs() > RATE_TOLERANCE {
            self.schedule.set_rate(now(), effort.rate_per_s);
            self.effort = effort;
        } else {
            self.effort = Effort { rate_per_s: self.effort.rate_per_s, ..effort };
        }
    }

    fn words(&self) -> u32 {
        self.followed.iter().map(|followed| followed.words.len() as u32).sum()
    }

    fn obey(&mut self, orders: &Receiver<Order>, to: &Sender<Report>) -> bool {
        loop {
            match orders.try_recv() {
                Ok(Order::Follow(index, process, run)) => {
                    self.follow(SampledProcess::new(index, *process, run), to);
                }
                Ok(Order::Leave(index)) => {
                    self.leave(|followed| followed.index == index);
                }
                Ok(Order::List(index)) => {
                    if let Some(followed) = self.followed(index) {
                        followed.process.list_anew();
                    }
                }
                Ok(Order::Stranger(index, tid)) => {
                    if let Some(followed) = self.followed(index) {
                        followed.know_stranger(tid);
                    }
                }
                Ok(Order::Watch(index, words)) => {
                    if let Some(followed) = self.followed(index) {
                        words.into_iter().for_each(|(word, watch)| followed.watch(word, watch));
                    }
                }
                Ok(Order::WatchWaiters(index, word, window)) => {
                    if let Some(followed) = self.followed(index) {
                        followed.watch_waiters(word, window);
                    }
                }
                Ok(Order::Ignore(index, word)) => {
                    if let Some(followed) = self.followed(index) {
                        followed.ignore(word);
                    }
                }
                Ok(Order::RecordDelays) => self.delays = RunDelay::of_this_thread(),
                Ok(Order::Stacks { per_s, of_all }) => {
                    (self.stacks_per_s, self.stacks_of_all) = (per_s, of_all);
                }
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn followed(&mut self, index: u32) -> Option<&mut SampledProcess> {
        self.followed.iter_mut().find(|followed| followed.index == index)
    }

    fn sample(&mut self, due: Due, chunk: &mut Chunk) {
        let share = if self.stacks_of_all { STACKS_OF_ALL } else { STACKS };
        let with_stacks = self.one_of(self.stacks_per_s.min(share * self.effort.rate_per_s));
        let timed = self.spent.samples.is_multiple_of(TIMED) && !with_stacks;
        let cpu = || timed.then(thread_cpu);
        chunk.begin(due.at, due.times);
        chunk.tick().began = now();
        self.list_before(chunk);
        let (began, cpu_began) = (now(), cpu());
        chunk.tick().cpu = current_cpu();
        let all = self.words();
        let first = if all > self.effort.words { self.schedule.below(all) } else { 0 };
        let words = self.read_words(all, first, Reason::Picked, chunk);
        let cpu_read = cpu();
        chunk.tick().at = began + (now() - began) / 2;
        chunk.tick().run_delay_ns = self.delays.since_last();
        chunk.tick().threads_alive = self.threads.len() as u32;
        let with_burst = self.one_of(BURSTS_PER_S.min(BURSTS * self.effort.rate_per_s));
        let threads = self.read_threads(with_stacks, chunk);
        let spent = |from: Option<u64>, until: Option<u64>| Some(until? - from?);
        self.spent.words.add(words, spent(cpu_began, cpu_read));
        match spent(cpu_read, cpu()) {
            // Threads beyond those planned are part of what a sample costs anyway.
            None => self.spent.threads.add(threads.min(self.effort.threads.into()), None),
            timed => self.spent.threads.add(threads, timed),
        }
        if with_stacks && self.stacks_of_all {
            // The second reading shows if a lock has changed hands. If so, the stacks say nothing
            // about its holder.
            let began = now();
            _ = self.read_words(all, first, Reason::Again, chunk);
            chunk.tick().again_at = Some(began + (now() - began) / 2);
            chunk.tick().checked_at = chunk.tick().again_at;
        } else {
            self.read_owned(chunk);
        }
        self.followed.iter_mut().for_each(SampledProcess::count_unread);
        self.spent.samples += 1;
        if with_burst {
            self.burst(chunk);
        }
    }

    fn one_of(&mut self, per_s: f64) -> bool {
        const STEPS: u32 = 1 << 20;
        f64::from(self.schedule.below(STEPS)) < per_s / self.effort.rate_per_s * f64::from(STEPS)
    }

    fn burst(&mut self, chunk: &mut Chunk) {
        let all = self.words();
        let mut pick = self.schedule.below(all) as usize;
        let holds = |followed: &&SampledProcess| {
            let words = followed.words.len();
            let here = pick < words;
            pick -= if here { 0 } else { words };
            here
        };
        let Some(followed) = self.followed.iter().filter(|_| all > 0).find(holds) else { return };
        if !followed.reader.is_prompt() {
            return;
        }
        let (word, (address, length)) = (followed.words[pick], followed.watches[pick].window);
        let waits = |activity: &Activity| match activity {
            Activity::Asleep(call) => {
                FutexWait::of(call.number, call.arguments).is_some_and(|wait| wait.address == word)
            }
            _ => false,
        };
        let seen = chunk.ticks.last().map_or(&[][..], |tick| chunk.threads(tick));
        let waiter =
            seen.iter().find(|read| read.process == followed.index && waits(&read.activity));
        let waiter = waiter.map(|read| read.tid);
        let mut burst = Burst {
            process: followed.index,
            word,
            address,
            length,
            waited: false,
            times: Vec::with_capacity(BURST),
            bytes: vec![0; BURST * length],
        };
        for bytes in burst.bytes.chunks_exact_mut(length) {
            burst.times.push(now());
            if followed.process.memory().read(address, bytes) < length {
                return;
            }
        }
        burst.waited = waiter.is_some_and(
            |tid| matches!(followed.sample(tid), ThreadSample::Seen(activity) if waits(&activity)),
        );
        chunk.bursts.push(burst);
    }

    /// Returns the number of words.
    fn read_words(&mut self, all: u32, first: u32, reason: Reason, chunk: &mut Chunk) -> u64 {
        let count = all.min(self.effort.words.max(1));
        if all == 0 {
            return 0;
        }
        let mut passed = 0;
        for followed in &mut self.followed {
            let words = followed.words.len() as u32;
            // The picked words are `first..first + count`, wrapping around at the end.
            let upper = first.max(passed)..(first + count).min(passed + words);
            let lower = passed..(first + count).saturating_sub(all).min(passed + words);
            followed.read(lower.chain(upper).map(|word| (word - passed) as usize), reason, chunk);
            passed += words;
        }
        count.into()
    }

    /// Returns the number of threads.
    fn read_threads(&mut self, with_stacks: bool, chunk: &mut Chunk) -> u64 {
        let alive = self.threads.len() as u32;
        let (most, mut stacks) = match with_stacks {
            // If a word does not name the holder, every thread is examined to find it.
            true if self.stacks_of_all => (MAX_STACKS, MAX_STACKS),
            true => (1, MAX_WAITERS_STACKS),
            false => (1, 0),
        };
        let mut others = if with_stacks { MAX_OTHERS_STACKS } else { 0 };
        let count = alive.min(most.max(self.effort.threads));
        let mut seen = 0;
        self.owners.clear();
        self.owned.clear();
        for pick in 0..count {
            // One step of a shuffle, so that no thread is picked twice.
            let other = pick + self.schedule.below(alive - pick);
            self.threads.swap(pick as usize, other as usize);
            let (place, thread) = self.threads[pick as usize];
            let followed = &mut self.followed[place as usize];
            let (tid, sample) = followed.sample_place(thread);
            let activity = match sample {
                ThreadSample::Seen(activity) => activity,
                ThreadSample::Gone => {
                    chunk.push_gone(followed.index);
                    continue;
                }
                ThreadSample::Refused => continue,
            };
            chunk.push_thread(followed.index, tid, true, activity);
            let mut tells = self.stacks_of_all;
            if let Activity::Asleep(call) = &activity
                && let Some(wait) = FutexWait::of(call.number, call.arguments)
            {
                followed.waited(wait.address, chunk);
                tells |= !followed.ignored.contains(&wait.address);
                if let Some(word) = followed.owned_word(wait.address) {
                    self.owned.note(place, word);
                }
                if let Some(&owner) = followed.owners.get(&wait.address)
                    && owner != tid
                    && !self.owners.contains(&(place, owner))
                {
                    self.owners.push((place, owner));
                }
            }
            let left = if tells { &mut stacks } else { &mut others };
            if *left > 0 && read_stack(followed, &activity, seen, &mut self.buffer, chunk) {
                *left -= 1;
            }
            seen += 1;
        }
        let mut stacks = if with_stacks { MAX_OWNERS_STACKS } else { 0 };
        let mut threads = u64::from(count);
        for &(place, owner) in &self.owners {
            let followed = &mut self.followed[place as usize];
            if !chunk.saw(followed.index, owner)
                && let ThreadSample::Seen(activity) = followed.sample_owner(owner)
            {
                threads += 1;
                chunk.push_thread(followed.index, owner, false, activity);
                let is_own = !followed.strangers.contains_key(&owner);
                if is_own
                    && stacks > 0
                    && read_stack(followed, &activity, seen, &mut self.buffer, chunk)
                {
                    stacks -= 1;
                }
                seen += 1;
            }
        }
        threads
    }
}

#[derive(Debug)]
struct Beginning {
    wall: u64,
    sampling: u64,
    process: u64,
}

impl Beginning {
    fn now() -> Self {
        Beginning { wall: now(), sampling: thread_cpu(), process: process_cpu() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn samples_before_the_end_are_handed_in() {
        let (orders, take_orders) = channel();
        let (_spare, take_spare) = channel();
        let (report, reports) = channel();
        let sampler = Sampler::new(0.1, 1_000.0, 1);
        let sampler = std::thread::spawn(move || sampler.run(&take_orders, &take_spare, &report));
        std::thread::sleep(Duration::from_millis(20));
        orders.send(Order::Stop).unwrap();
        sampler.join().unwrap();
        let reports: Vec<Report> = reports.iter().collect();
        let samples = |report: &Report| match report {
            Report::Samples(chunk) => chunk.ticks.len(),
            _ => 0,
        };
        assert!(reports.iter().map(samples).sum::<usize>() > 0);
        assert!(matches!(reports.last(), Some(Report::Stretch(_))));
    }
}

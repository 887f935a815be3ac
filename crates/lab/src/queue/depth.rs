//! `depth`: measures the time of a send call and of a receive call while the queue holds many
//! messages, and the memory that the queue takes.
//!
//! ```text
//!   sender:    creates it ─ fills it ─ K sends ────────────── K sends ─ …
//!   receiver:  ──────────────────────────────── K receives ─────────── … ─ drains it
//!   memory:  before            full                                            drained
//! ```
//!
//! The ends take turns and never access the queue at the same time, so the calls are as cheap as
//! the queue's memory allows. K, the number of messages between two stamps, is at most the depth.
//!
//! Each block creates a queue of its own and destroys it. The growth of the process is therefore
//! the memory of that queue, and only one queue of a group is full at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Budget, Kind, Load, ResidentBytes};

use crate::cache_padded::CachePadded;
use crate::error::Unavailable;
use crate::exchange::on_a_line;
use crate::polling::poll_until;
use crate::program::Program;
use crate::samples::{DepthCalls, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};

use super::{
    Channel, DEFAULT, Loops, MAX_CAPACITY, Overrides, QUEUE_ROUNDS, Scenario, Sink, Slots, Source,
    Usage, only, rounds, within,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "depth",
    sentence: "cost of a send and a receive while the queue holds 1 to 10,000,000 messages, and \
               the queue's memory",
    kind: Kind::Depth,
    loads: || loads(None),
    has_load,
    budget,
    capacity,
    ..DEFAULT
};

const DEPTHS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Largest depth that a bounded queue can have.
pub const MAX_DEPTH: u64 = MAX_CAPACITY - CALLS;
/// Maximum number of calls between two stamps. Most stretches of this length are free of page
/// faults: a queue that uses new memory faults once in every few hundred messages.
const CALLS: u64 = 128;
/// Number of turns of each end in a block. A turn is one stretch of calls.
const TURNS: usize = 128;
/// Approximate time per message to fill and drain a queue, for estimates.
const FILL_NS: u64 = 40;
const BLOCK_NS: u64 = 2_000_000;

fn calls(depth: u64) -> u64 {
    depth.clamp(1, CALLS)
}

fn budget(overrides: &Overrides, load: &Load) -> Budget {
    let depth = load.depth.map_or(1, |depth| depth.get());
    let block_ns = BLOCK_NS + depth * FILL_NS;
    let asked = overrides.time_ns.map(|ns| rounds(ns as f64 / block_ns as f64));
    Budget {
        rounds: asked.unwrap_or(QUEUE_ROUNDS),
        stretch_ns: block_ns,
        stamped_ns: 0,
        stamped_count: None,
    }
}

fn capacity(slots: &Slots, load: &Load) -> u64 {
    let depth = load.depth.map_or(1, |depth| depth.get());
    slots.capacity((depth + calls(depth)).next_power_of_two())
}

/// Returns loads with these depths; `None` takes the defaults.
pub fn loads(depths: Option<&[u64]>) -> Vec<Load> {
    let load = |depth: &u64| Load { depth: Some((*depth).into()), ..Load::NONE };
    depths.unwrap_or(&DEPTHS).iter().map(load).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let plain = Load { depth: load.depth, ..Load::NONE };
    only(&plain, within(load.depth, MAX_DEPTH), load, "its depth is out of range")
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let channel = channel.clone();
        let capacity = usage.flow.capacity;
        let depth = usage.load.depth.map_or(1, |depth| depth.get());
        let make = move || {
            fix_thresholds();
            enough_memory(depth)?;
            // Only checks for errors: each block opens a queue of its own.
            drop(channel.open(capacity)?);
            Ok(roles(channel.clone(), capacity, depth))
        };
        // Each block fills a new queue, so page faults are not disturbances.
        let usage = Usage { grows: true, ..usage };
        let read = move |block_logs| read(block_logs, depth);
        Some(usage.threads(2, make, read, move |queue| Ok(simulate(queue, depth))))
    }
}

/// Number of the current turn: even turns are the sender's, odd ones the receiver's.
#[derive(Default)]
struct Turn(CachePadded<AtomicU64>);

impl Turn {
    fn wait(&self, turn: u64) {
        // Acquire pairs with the release in `end`: a turn sees all writes of the previous turn.
        poll_until(|| self.0.0.load(Ordering::Acquire) >= turn);
    }

    fn end(&self, turn: u64) {
        self.0.0.store(turn + 1, Ordering::Release);
    }
}

fn roles<C: Channel>(channel: C, capacity: usize, depth: u64) -> ThreadGroup {
    let turn = Arc::new(Turn::default());
    let handed = Arc::new(Mutex::new(None));
    let sender = Sender {
        channel,
        capacity,
        source: None,
        handed: Arc::clone(&handed),
        before: 0,
        depth,
        turn: Arc::clone(&turn),
        at: 0,
    };
    let receiver = Receiver::<C> { handed, depth, turn, at: 0 };
    vec![Box::new(sender), Box::new(receiver)]
}

/// Passes a receiving end from the thread that created it to the receiver's thread.
type Handed<C> = Arc<Mutex<Option<<C as Channel>::Sink>>>;

struct Sender<C: Channel> {
    channel: C,
    capacity: usize,
    source: Option<C::Source>,
    handed: Handed<C>,
    /// Memory of the process in bytes before the queue was created.
    before: u64,
    depth: u64,
    turn: Arc<Turn>,
    /// Number of the sender's next turn.
    at: u64,
}

impl<C: Channel> Role for Sender<C> {
    fn prepare(&mut self, _: BlockSpec, _: &Clock) {
        give_back();
        self.before = resident_bytes();
        // If the queue cannot be opened, the block has no messages.
        let opened = self.channel.open(self.capacity).ok();
        let (source, sink) =
            opened.map_or((None, None), |(source, sink)| (Some(source), Some(sink)));
        self.source = source;
        *self.handed.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let begin = clock.stamp();
        let Some(mut source) = self.source.take() else {
            return Log { wrong: u64::MAX, ..Log::default() };
        };
        source.enter();
        let mut next = 1;
        send(&mut source, &mut next, self.depth);
        let full = resident_bytes();
        let calls = calls(self.depth);
        let mut times = Vec::with_capacity(2 * TURNS);
        for _ in 0..TURNS {
            self.turn.wait(self.at);
            times.push(clock.stamp());
            send(&mut source, &mut next, calls);
            times.push(clock.stamp());
            self.turn.end(self.at);
            self.at += 2;
        }
        // By the sender's next turn, the receiver has drained the queue.
        self.at += 2;
        self.turn.wait(self.at);
        Log { times: vec![times, vec![begin]], numbers: vec![self.before, full], wrong: 0 }
    }
}

#[inline(never)]
fn send<S: Source>(source: &mut S, next: &mut u64, count: u64) {
    on_a_line();
    let first = *next;
    for number in first..first + count {
        source.send(number);
    }
    *next = first + count;
}

struct Receiver<C: Channel> {
    handed: Handed<C>,
    depth: u64,
    turn: Arc<Turn>,
    at: u64,
}

impl<C: Channel> Role for Receiver<C> {
    fn work(&mut self, clock: &Clock) -> Log {
        let handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut sink) = handed else { return Log { wrong: u64::MAX, ..Log::default() } };
        sink.enter();
        let (calls, mut next) = (calls(self.depth), 1);
        let mut times = Vec::with_capacity(2 * TURNS);
        let mut wrong = 0;
        for _ in 0..TURNS {
            self.turn.wait(self.at + 1);
            times.push(clock.stamp());
            wrong |= receive(&mut sink, &mut next, calls);
            times.push(clock.stamp());
            self.turn.end(self.at + 1);
            self.at += 2;
        }
        wrong |= receive(&mut sink, &mut next, self.depth);
        let drained = resident_bytes();
        let end = clock.stamp();
        drop(sink);
        self.turn.end(self.at + 1);
        self.at += 2;
        Log { times: vec![times, vec![end]], numbers: vec![drained], wrong }
    }
}

#[inline(never)]
fn receive<S: Sink>(sink: &mut S, next: &mut u64, count: u64) -> u64 {
    on_a_line();
    let first = *next;
    let wrong = (first..first + count).fold(0, |wrong, number| wrong | (sink.receive() ^ number));
    *next = first + count;
    wrong
}

/// Maximum memory per 8-byte message. A growing deque is copied into one of twice its size.
const BYTES_EACH: u64 = 128;

/// Refuses a depth that needs more memory than is available; the kernel would otherwise kill a
/// process.
pub(crate) fn enough_memory(depth: u64) -> Result<(), Unavailable> {
    let needed = depth.saturating_mul(BYTES_EACH);
    match available_bytes() {
        Some(available) if available < needed => {
            let mebibytes = |bytes: u64| bytes >> 20;
            let what = format!("{depth} messages may take {} MiB", mebibytes(needed));
            let why = format!("{} MiB are available", mebibytes(available));
            Err(Unavailable::new(what, std::io::Error::new(std::io::ErrorKind::OutOfMemory, why)))
        }
        _ => Ok(()),
    }
}

/// Returns the bytes that are available without swapping, within the limit of the control group at
/// `/sys/fs/cgroup`. `None` if the kernel reports neither.
fn available_bytes() -> Option<u64> {
    let of_group = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let of_machine = kibibytes("/proc/meminfo", "MemAvailable:").map(|kib| kib * 1024);
    let left = of_group("memory.max")
        .zip(of_group("memory.current"))
        .map(|(most, taken)| most.saturating_sub(taken));
    of_machine.into_iter().chain(left).min()
}

/// Fixes the thresholds above which glibc returns freed memory. By default, glibc raises them as
/// the program runs, and then keeps tens of megabytes.
fn fix_thresholds() {
    #[cfg(target_env = "gnu")]
    for threshold in [libc::M_TRIM_THRESHOLD, libc::M_MMAP_THRESHOLD] {
        // SAFETY: any thread may call `mallopt` at any time.
        unsafe {
            libc::mallopt(threshold, 128 << 10);
        }
    }
}

/// Returns the freed memory of earlier queues to the kernel. Otherwise, the next queue would reuse
/// it and the process would not grow.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: any thread may call `malloc_trim` at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn resident_bytes() -> u64 {
    // With many CPUs, `status` is off by up to some megabytes.
    let exact = kibibytes("/proc/self/smaps_rollup", "Rss:");
    exact.or_else(|| kibibytes("/proc/self/status", "VmRSS:")).unwrap_or(0) * 1024
}

fn kibibytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn read(block_logs: BlockLogs, depth: u64) -> Option<Reading> {
    let [sender, receiver] = block_logs.logs.as_slice() else { return None };
    let lengths = |log: &Log| -> Option<Vec<u64>> {
        let stamps = log.times.first()?.chunks_exact(2);
        Some(stamps.map(|pair| pair[1].saturating_sub(pair[0])).collect())
    };
    let (send_ps, receive_ps) = (lengths(sender)?, lengths(receiver)?);
    let at = |log: &Log| log.times.get(1)?.first().copied();
    let elapsed_ps = at(receiver)?.saturating_sub(at(sender)?);
    let (&[before, full], &[drained]) = (sender.numbers.as_slice(), receiver.numbers.as_slice())
    else {
        return None;
    };
    let known = [before, full, drained].iter().all(|bytes| *bytes > 0);
    let resident_bytes = known.then(|| ResidentBytes {
        before: before.into(),
        full: full.into(),
        drained: drained.into(),
    });
    let calls_each = calls(depth);
    let messages = depth + calls_each * send_ps.len() as u64;
    let calls = DepthCalls { send_ps, receive_ps, calls_each, elapsed_ps, resident_bytes };
    Some((Samples::Depth(calls), messages))
}

/// Bytes of a simulated process whose queue is empty. Each message adds `VIRTUAL_MESSAGE` bytes.
const VIRTUAL_BYTES: u64 = 32 << 20;
const VIRTUAL_MESSAGE: u64 = 16;

fn simulate(queue: &mut VirtualQueue<'_>, depth: u64) -> Vec<Log> {
    let calls = calls(depth);
    let mut now = queue.begins_ps;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        for times in [&mut sent, &mut received] {
            times.push(now);
            now += (queue.service_ps)(turn, TURNS) * calls;
            times.push(now);
        }
    }
    let full = VIRTUAL_BYTES + depth * VIRTUAL_MESSAGE;
    let log = |times, at, numbers| Log { times: vec![times, vec![at]], numbers, wrong: 0 };
    vec![
        log(sent, queue.begins_ps, vec![VIRTUAL_BYTES, full]),
        log(received, now, vec![VIRTUAL_BYTES]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_beyond_memory_is_refused_in_a_sentence() {
        let refused = enough_memory(u64::MAX).unwrap_err().to_string();
        let (what, why) = refused.split_once(" MiB: ").unwrap();
        assert!(what.starts_with(&format!("{} messages may take ", u64::MAX)), "{refused}");
        assert!(why.ends_with(" MiB are available"), "{refused}");
        assert!(enough_memory(1).is_ok());
    }
}

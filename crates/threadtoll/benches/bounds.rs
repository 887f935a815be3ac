//! The bottleneck of a pipe whose messages are sent one at a time:
//! `cargo bench -p threadtoll --bench bounds`.
//!
//! Two threads on two CPUs send 8-byte messages through an unbounded pipe. *Alone*: the sender
//! fills the pipe while the receiver waits, then the receiver drains it, from the other CPU's
//! cache, while the sender waits. *Together*: both work at once, with the receiver a given number
//! of messages behind. If a message costs more together than alone at any distance, the limit is
//! neither the instructions nor the transfer of lines, but the traffic between the two caches.
//! Prints quartiles over short interleaved rounds, in nanoseconds per message.
//!
//! *By the CPUs' own speed*: blocks of a stream. Before and after each, both CPUs run a loop that
//! fills their execution units and touches no shared line. A CPU that needs over a quarter longer
//! for this than at its best shared its core during the block: with its other hyperthread or, on a
//! virtual machine, with another guest. Blocks are classified by that alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use threadtoll::pipe::{Options, Receiver, Sender};
use threadtoll::wait::Wait::Spin;

const BEHIND: [u64; 5] = [0, 100, 1_000, 10_000, 30_000];
const MESSAGES: u64 = 10_000;
const ROUNDS: u64 = 300;

fn main() {
    println!("{:28}  {:^23}  {:^23}", "", "ns to send", "ns to receive");
    println!(
        "{:28}  {:>7} {:>7} {:>7}  {:>7} {:>7} {:>7}",
        "", "25%", "50%", "75%", "25%", "50%", "75%"
    );
    row("alone", false, MESSAGES);
    for behind in BEHIND {
        row(&format!("together, {behind} behind"), true, behind);
    }
    by_speed();
}

/// Blocks of the last part, and messages in each, which take some milliseconds.
const BLOCKS: usize = 300;
const BLOCK: u64 = 500_000;
/// A CPU has its core to itself if its loop takes at most the first of these multiples of its
/// shortest time, and shares its core from the second on.
const WHOLE: f64 = 1.1;
const SHARED: f64 = 1.25;

fn by_speed() {
    let (mut sender, mut receiver) = Options::new().wait(Spin).retain(64 << 20).unbounded::<u64>();
    let (sending, receiving) = (AtomicU64::new(0), AtomicU64::new(0));
    let (mut one, mut other, mut received) = (Vec::new(), Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            run_on(0);
            for block in 0..BLOCKS as u64 {
                let before = own_speed();
                meet(&sending, &receiving, 2 * block + 1);
                send(&mut sender, BLOCK);
                meet(&sending, &receiving, 2 * block + 2);
                one.push(before.max(own_speed()));
            }
        });
        run_on(1);
        for block in 0..BLOCKS as u64 {
            let before = own_speed();
            meet(&receiving, &sending, 2 * block + 1);
            received.push(receive(&mut receiver, BLOCK));
            meet(&receiving, &sending, 2 * block + 2);
            other.push(before.max(own_speed()));
        }
    });
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (best_one, best_other) = (best(&one), best(&other));
    let slower = |block: usize| (one[block] / best_one).max(other[block] / best_other);
    let pick = |wanted: &dyn Fn(f64) -> bool| -> Vec<f64> {
        (0..BLOCKS).filter(|block| wanted(slower(*block))).map(|block| received[block]).collect()
    };
    println!();
    println!("{:40} {:>6}  {:^23}", "by the CPUs' own speed", "blocks", "ns per message");
    for (what, times) in [
        ("both CPUs whole", pick(&|slower| slower <= WHOLE)),
        ("one of them or both share their core", pick(&|slower| slower >= SHARED)),
    ] {
        println!("{what:40} {:6}  {}", times.len(), quartiles(times));
    }
}

/// Nanoseconds per iteration of a loop with eight independent dependency chains.
fn own_speed() -> f64 {
    const ROUNDS: u64 = 20_000;
    let mut chains = std::hint::black_box([1u64; 8]);
    let start = Instant::now();
    for round in 0..ROUNDS {
        for chain in &mut chains {
            *chain = chain.rotate_left(7) ^ round;
        }
    }
    let took = start.elapsed();
    std::hint::black_box(chains);
    took.as_nanos() as f64 / ROUNDS as f64
}

fn quartiles(mut times: Vec<f64>) -> String {
    if times.is_empty() {
        return "–".to_string();
    }
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| format!("{:7.2}", times[times.len() * quarter / 4])).join(" ")
}

fn row(what: &str, together: bool, behind: u64) {
    let (mut sender, mut receiver) = Options::new().wait(Spin).retain(64 << 20).unbounded::<u64>();
    // The step of the round that each thread has reached.
    let (sending, receiving) = (AtomicU64::new(0), AtomicU64::new(0));
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            run_on(0);
            for round in 0..ROUNDS {
                if together {
                    send(&mut sender, behind);
                    meet(&sending, &receiving, 2 * round + 1);
                }
                sends.push(send(&mut sender, MESSAGES));
                meet(&sending, &receiving, 2 * round + 2);
                if !together {
                    meet(&sending, &receiving, 2 * round + 3);
                }
            }
        });
        run_on(1);
        for round in 0..ROUNDS {
            meet(&receiving, &sending, 2 * round + if together { 1 } else { 2 });
            receives.push(receive(&mut receiver, MESSAGES));
            meet(&receiving, &sending, 2 * round + if together { 2 } else { 3 });
            if together {
                receive(&mut receiver, behind);
            }
        }
    });
    println!("{what:28}  {}  {}", quartiles(sends), quartiles(receives));
}

/// Announces that this thread has reached a step, and waits until the other has.
fn meet(ours: &AtomicU64, theirs: &AtomicU64, step: u64) {
    ours.store(step, Ordering::Release);
    while theirs.load(Ordering::Acquire) < step {
        std::hint::spin_loop();
    }
}

/// Nanoseconds per message.
fn send(sender: &mut Sender<u64>, messages: u64) -> f64 {
    let start = Instant::now();
    for message in 0..messages {
        assert!(sender.send(message).is_ok());
    }
    start.elapsed().as_nanos() as f64 / messages.max(1) as f64
}

/// As above.
fn receive(receiver: &mut Receiver<u64>, messages: u64) -> f64 {
    let start = Instant::now();
    let mut sum = 0u64;
    for _ in 0..messages {
        sum = sum.wrapping_add(receiver.recv().unwrap_or(0));
    }
    std::hint::black_box(sum);
    start.elapsed().as_nanos() as f64 / messages.max(1) as f64
}

/// Pins this thread to the CPU with this index among those that it may use, if there is one.
fn run_on(which: usize) {
    // SAFETY: all zeros is a valid value.
    let mut may: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set is valid, and its size is passed.
    unsafe { libc::sched_getaffinity(0, size, &raw mut may) };
    // SAFETY: reads the set, within its size.
    let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &may) };
    let Some(cpu) = (0..libc::CPU_SETSIZE as usize).filter(allowed).nth(which) else { return };
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is inside the set.
    unsafe { libc::CPU_SET(cpu, &mut one) };
    // SAFETY: reads the set.
    unsafe { libc::sched_setaffinity(0, size, &raw const one) };
}

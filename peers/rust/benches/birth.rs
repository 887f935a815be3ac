//! Making and dropping queues: `cargo bench -p threadtoll-peers-rust --bench birth`
//!
//! ```text
//!   maker, CPU 0: make, (send and receive,) drop one end, drop the other
//!   observer, CPU 1: absent, or reads the clock without a pause
//! ```
//!
//! The observer models a thread that computes. A reading much later than the previous one means
//! that it was interrupted; *lost* is the share of its time lost that way. The row without a queue
//! shows the interruptions that happen anyway. In the life with boxed messages a message is left to
//! a receiver that leaves before the sender: it must be dropped, so a queue may have to interrupt
//! threads that may be sending. The last table is the memory of a new queue: bytes requested from
//! the allocator, and bytes resident, as means over many that are kept.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::arguments::Arguments;
use support::blocks::interleave;
use support::observer::observe;
use support::place::{on_two_cpus, two_cpus};
use support::queues::QueueKind;
use support::queues::blocking::{Crossbeam, Oneshot, Std};
use support::queues::ours::wait::Adaptive;
use support::queues::ours::{Funnel, OneShot, Pipe, line};
use support::table::{Comparison, Metric, Tables};

const BLOCK: Duration = Duration::from_millis(10);
/// Queues made between two readings of the clock.
const BATCH: u64 = 8;
const WARM_UP: u64 = 64;
/// Queues kept to measure their memory.
const KEPT: usize = 256;

#[derive(Clone, Copy, Debug)]
enum Life {
    SenderFirst,
    ReceiverFirst,
    OneMessage,
    /// Two messages with destructors, of which the second is not received. A queue for one message
    /// can hold them, but is no longer the queue of a single answer.
    TwoBoxed,
}

const LIVES: [(&str, Life); 4] = [
    ("sender dropped first", Life::SenderFirst),
    ("receiver dropped first", Life::ReceiverFirst),
    ("one message, sender dropped first", Life::OneMessage),
    ("two boxed messages, one received, receiver dropped first", Life::TwoBoxed),
];
const COMPANY: [(&str, bool); 2] = [("alone", false), ("while another thread computes", true)];

/// Makes and drops a queue; `false` if it has no such life.
type Live = fn(Life) -> bool;

const ROWS: [(&str, Live); 10] = [
    ("no queue", no_queue),
    ("pipe bounded(1)", live::<Pipe<Adaptive, 1>>),
    ("pipe bounded(1024)", live::<Pipe<Adaptive, 1024>>),
    ("pipe unbounded", live::<Pipe<Adaptive, 0>>),
    ("funnel unbounded", live::<Funnel<Adaptive, 0>>),
    ("call line", live_line),
    ("crossbeam bounded(1)", live::<Crossbeam<1>>),
    ("std mpsc", live::<Std>),
    ("oneshot", live::<Oneshot>),
    ("our one-shot", live::<OneShot>),
];
const METRICS: [Metric; 3] = [
    Metric { name: "ns", digits: 0, steady: false },
    Metric { name: "lost, %", digits: 2, steady: false },
    Metric { name: "interrupts/s", digits: 0, steady: false },
];

fn main() {
    let mut arguments = Arguments::read();
    let seconds = arguments.value("seconds", 20.0);
    let seed = arguments.value("seed", 1);
    let names = ROWS.map(|(name, _)| name);
    let wanted = arguments.wanted(&names);
    support::begin();
    let cpus = two_cpus();
    let cells: Vec<(String, Life, bool)> = COMPANY
        .iter()
        .flat_map(|(company, observed)| {
            LIVES.iter().map(move |(name, life)| (format!("{name}, {company}"), *life, *observed))
        })
        .collect();
    let blocks = interleave(cells.len(), &wanted, seconds, seed, cpus, |cell, row| {
        let (_, life, observed) = cells[cell];
        block(cpus, ROWS[row].1, life, observed)
    });
    let against = |row, peer| Comparison { row, against: vec![peer], metrics: vec![0] };
    let tables = Tables {
        cells: &cells.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>(),
        rows: &names,
        metrics: &METRICS,
        comparisons: &[
            against(1, 6),
            against(1, 8),
            against(2, 6),
            against(3, 7),
            against(4, 6),
            against(4, 7),
            against(5, 6),
            against(9, 8),
        ],
        by_distance: true,
    };
    tables.print(blocks, seed);
    footprints();
}

fn block(cpus: [u32; 2], live: Live, life: Life, observed: bool) -> Option<Vec<f64>> {
    let over = AtomicBool::new(false);
    let make = || {
        let able = (0..WARM_UP).all(|_| live(life));
        let (begin, mut made) = (Instant::now(), 0);
        while able && begin.elapsed() < BLOCK {
            (0..BATCH).for_each(|_| _ = black_box(live(life)));
            made += BATCH;
        }
        let took = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        able.then(|| took.as_nanos() as f64 / made as f64)
    };
    let observe = || observed.then(|| observe(&over));
    let (ns, seen) = on_two_cpus(cpus, make, observe);
    let [lost, interruptions] =
        seen.map_or([f64::NAN; 2], |seen| [seen.lost_percent, seen.interruptions_per_s]);
    Some(vec![ns?, lost, interruptions])
}

/// The boxes alone, if the life has some.
fn no_queue(life: Life) -> bool {
    if matches!(life, Life::TwoBoxed) {
        drop(black_box([Box::new(1u64), Box::new(2)]));
    }
    black_box(true)
}

fn live<K: QueueKind>(life: Life) -> bool {
    if matches!(life, Life::TwoBoxed) {
        return live_boxed::<K>();
    }
    let (mut sender, mut receiver) = black_box(K::make::<u64>());
    match life {
        Life::SenderFirst => {
            drop(sender);
            drop(receiver);
        }
        Life::ReceiverFirst => {
            drop(receiver);
            drop(sender);
        }
        Life::OneMessage => {
            assert!(K::send(&mut sender, 1), "the receiver is there");
            assert_eq!(K::receive(&mut receiver), Some(1), "another message");
            drop(sender);
            drop(receiver);
        }
        Life::TwoBoxed => unreachable!("its queue is another one"),
    }
    true
}

fn live_boxed<K: QueueKind>() -> bool {
    let (mut sender, mut receiver) = black_box(K::make::<Box<u64>>());
    assert!(K::send(&mut sender, Box::new(1)), "the receiver is there");
    assert_eq!(K::receive(&mut receiver).as_deref(), Some(&1), "another message");
    // A `oneshot` takes only one message.
    let able = K::send(&mut sender, Box::new(2));
    drop(receiver);
    drop(sender);
    able
}

fn live_line(life: Life) -> bool {
    let (caller, callee) = black_box(line());
    match life {
        Life::SenderFirst => {
            drop(caller);
            drop(callee);
        }
        Life::ReceiverFirst => {
            drop(callee);
            drop(caller);
        }
        // A call needs a second thread.
        Life::OneMessage | Life::TwoBoxed => return false,
    }
    true
}

/// Prints the memory of a new queue of each kind.
fn footprints() {
    println!("\n# Memory of a queue just made\n");
    println!("{:22}{:>16}{:>16}", "", "bytes requested", "bytes resident");
    footprint("pipe bounded(1)", Pipe::<Adaptive, 1>::make::<u64>);
    footprint("pipe bounded(1024)", Pipe::<Adaptive, 1024>::make::<u64>);
    footprint("pipe unbounded", Pipe::<Adaptive, 0>::make::<u64>);
    footprint("funnel unbounded", Funnel::<Adaptive, 0>::make::<u64>);
    footprint("call line", line);
    footprint("crossbeam bounded(1)", Crossbeam::<1>::make::<u64>);
    footprint("std mpsc", Std::make::<u64>);
    footprint("oneshot", Oneshot::make::<u64>);
    footprint("our one-shot", OneShot::make::<u64>);
}

fn footprint<E>(name: &str, make: impl Fn() -> E) {
    // The first of a kind may allocate what all share.
    drop(make());
    let mut kept: Vec<Option<E>> = (0..KEPT).map(|_| None).collect();
    // SAFETY: takes no pointer, and frees nothing that is in use.
    unsafe { libc::malloc_trim(0) };
    let resident = resident_bytes();
    ASKED.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
    for place in &mut kept {
        *place = Some(make());
    }
    COUNTING.store(false, Ordering::Relaxed);
    let asked = ASKED.load(Ordering::Relaxed) / KEPT as u64;
    let resident = resident_bytes().saturating_sub(resident) / KEPT as u64;
    println!("{name:22}{asked:16}{resident:16}");
}

/// Resident bytes of this process; 0 if the kernel does not show them.
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    // SAFETY: takes no pointer.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * page.unsigned_abs()
}

static COUNTING: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicU64 = AtomicU64::new(0);

/// The system allocator, counting bytes requested.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn count(layout: Layout) {
    if COUNTING.load(Ordering::Relaxed) {
        ASKED.fetch_add(layout.size() as u64, Ordering::Relaxed);
    }
}

// SAFETY: all memory is the system allocator's, asked for by the same layout.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: our caller keeps the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: our caller keeps the same promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: our caller keeps the same promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

//! The litmus test for store buffering, on real cores. Parking relies on the order that it tests.
//!
//! One side stores, executes [`light_barrier`] and loads what the other side stores; the other side
//! does the same with [`heavy_barrier`]. At least one must see the other's store. As a control, the
//! same loops on the same cores run without the system call (but with the fences); there, both
//! sides do miss each other's stores.
//!
//! Both sides run freely and store increasing numbers, so that each round of one side can be
//! compared with many rounds of the other. The values that they saw are combined afterwards (as by
//! Melissaris, Markakis, Shaw and Martonosi: *PerpLE*, MICRO 2020).

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::membarrier::heavy_barrier;
use crate::sync::{
    AtomicU32, CachePadded, Ordering, fence, light_barrier, only_cpu, senders_must_fence, spin_loop,
};

/// Number of rounds of the light side in one run.
const ROUNDS: u32 = 1 << 19;
/// Maximum number of rounds of the heavy side in one run.
const MOST: usize = 1 << 21;

#[derive(Default)]
struct Shape {
    light: CachePadded<AtomicU32>,
    heavy: CachePadded<AtomicU32>,
    over: CachePadded<AtomicBool>,
}

#[derive(Debug, Default)]
struct Outcome {
    light_rounds: u64,
    heavy_rounds: u64,
    /// Number of heavy rounds in which neither side saw the other's store.
    missed: u64,
}

/// The light side. Returns the value that it saw in each round.
fn light(shape: &Shape, pause: u32) -> Vec<u32> {
    let saw = (1..=ROUNDS).map(|round| {
        (0..pause).for_each(|_| spin_loop());
        shape.light.store(round, Ordering::Release);
        light_barrier();
        shape.heavy.load(Ordering::Relaxed)
    });
    let saw = saw.collect();
    shape.over.store(true, Ordering::Relaxed);
    saw
}

/// The heavy side. Returns the value that it saw in each round.
fn heavy(shape: &Shape, barrier: fn()) -> Vec<u32> {
    let mut saw = Vec::with_capacity(MOST);
    while saw.len() < MOST && !shape.over.load(Ordering::Relaxed) {
        shape.heavy.store(saw.len() as u32 + 1, Ordering::Relaxed);
        barrier();
        saw.push(shape.light.load(Ordering::Relaxed));
    }
    saw
}

/// Runs until `limit` has passed, or until both sides have missed each other's stores.
fn play(limit: Duration, barrier: fn()) -> Outcome {
    let mut outcome = Outcome::default();
    let began = Instant::now();
    for pause in (0..4).cycle() {
        if began.elapsed() >= limit || outcome.missed > 0 {
            break;
        }
        let shape = Shape::default();
        let start = Barrier::new(2);
        let (light, heavy) = thread::scope(|scope| {
            let light = scope.spawn(|| {
                start.wait();
                light(&shape, pause)
            });
            start.wait();
            let heavy = heavy(&shape, barrier);
            (light.join().expect("the light side does not panic"), heavy)
        });
        outcome.light_rounds += light.len() as u64;
        outcome.heavy_rounds += heavy.len() as u64;
        let missed = heavy.iter().zip(1..).filter(|&(&saw, round)| {
            // The first light round that this heavy round did not see is `saw + 1`. If that light
            // round did not see this heavy round either, the sides missed each other.
            light.get(saw as usize).is_some_and(|&of_heavy| of_heavy < round)
        });
        outcome.missed += missed.count() as u64;
    }
    outcome
}

/// The fences of [`heavy_barrier`], without its system call.
fn stubbed() {
    fence(Ordering::SeqCst);
    fence(Ordering::SeqCst);
}

fn shipped() {
    assert!(heavy_barrier(), "the kernel refuses what it granted before");
}

#[test]
fn only_the_system_call_keeps_the_order() {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 || only_cpu().is_some() {
        println!("skipped: with one CPU nothing happens at the same time");
        return;
    }
    if senders_must_fence() {
        println!(
            "skipped: this kernel has no membarrier(2), so senders fence and there is nothing to try"
        );
        return;
    }
    let without = play(Duration::from_secs(20), stubbed);
    println!("without the system call: {without:?}");
    assert!(
        without.missed > 0,
        "the forbidden outcome was not seen where nothing forbids it: {without:?}"
    );
    let with = play(Duration::from_secs(1), shipped);
    println!("with it: {with:?}");
    assert_eq!(with.missed, 0, "{with:?}");
}

//! Two threads on two CPUs, and the distance between these.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use threadtoll_machine::{allowed_cpus, pin_to};
use threadtoll_stats::median;

/// The first two CPUs of this process; ends the process if it has only one.
pub(crate) fn two_cpus() -> [u32; 2] {
    match allowed_cpus()[..] {
        [one, other, ..] => [one, other],
        _ => panic!("two CPUs are needed; allow this process a second one"),
    }
}

/// Runs each body on its CPU in a new thread; both begin at the same time.
pub(crate) fn on_two_cpus<A: Send, B: Send>(
    cpus: [u32; 2],
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            pin(cpus[1]);
            ready.wait();
            other()
        });
        let one = scope.spawn(|| {
            pin(cpus[0]);
            ready.wait();
            one()
        });
        match (one.join(), other.join()) {
            (Ok(one), Ok(other)) => (one, other),
            _ => unreachable!("a panic ends the process"),
        }
    })
}

pub(crate) fn pin(cpu: u32) {
    if let Err(why) = pin_to(&[cpu]) {
        panic!("{why}");
    }
}

/// An atomic in cache lines of its own; neighbouring lines are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Padded(pub(crate) AtomicU64);

const TURNS: u64 = 100;
const CHUNKS: u64 = 24;

/// Nanoseconds until a CPU sees a store of the other one: half a round trip through two cache
/// lines.
pub(crate) fn transfer_ns(cpus: [u32; 2]) -> f64 {
    let (ping, pong) = (Padded::default(), Padded::default());
    let await_turn = |line: &Padded, turn: u64| {
        while line.0.load(Ordering::Acquire) < turn {
            spin_loop();
        }
    };
    let ask = || {
        let chunk = |chunk: u64| {
            let start = Instant::now();
            for turn in chunk * TURNS + 1..=(chunk + 1) * TURNS {
                ping.0.store(turn, Ordering::Release);
                await_turn(&pong, turn);
            }
            start.elapsed().as_nanos() as f64 / (2 * TURNS) as f64
        };
        median((0..CHUNKS).map(chunk)).unwrap_or(f64::NAN)
    };
    let answer = || {
        for turn in 1..=CHUNKS * TURNS {
            await_turn(&ping, turn);
            pong.0.store(turn, Ordering::Release);
        }
    };
    on_two_cpus(cpus, ask, answer).0
}

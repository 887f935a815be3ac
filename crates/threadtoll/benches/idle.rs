//! Cost of an idle receiver: `cargo bench -p threadtoll --bench idle`.
//!
//! A receiver waits for two seconds while nobody sends. Prints the CPU time of its thread as a
//! share of that time.

use std::thread;
use std::time::{Duration, Instant};

use threadtoll::wait::Wait::{self, Adaptive, Park, Spin};
use threadtoll::{call, funnel, pipe};

const IDLE: Duration = Duration::from_secs(2);

fn main() {
    row("pipe, park", pipe_waiting(Park));
    row("pipe, adaptive", pipe_waiting(Adaptive));
    row("pipe, spin", pipe_waiting(Spin));
    row("funnel, park", funnel_waiting(Park));
    row("funnel, adaptive", funnel_waiting(Adaptive));
    row("call, park", call_waiting(Park));
    row("call, adaptive", call_waiting(Adaptive));
}

fn row(name: &str, share: f64) {
    println!("{name:18} {:8.4}% of a CPU while nothing comes", share * 100.0);
}

fn pipe_waiting(wait: Wait) -> f64 {
    let (sender, mut receiver) = pipe::Options::new().wait(wait).unbounded::<u64>();
    idle(move || receiver.recv().is_err(), move || drop(sender))
}

fn funnel_waiting(wait: Wait) -> f64 {
    let (sender, mut receiver) = funnel::Options::new().wait(wait).unbounded::<u64>();
    idle(move || receiver.recv().is_err(), move || drop(sender))
}

fn call_waiting(wait: Wait) -> f64 {
    let (caller, mut callee) = call::Options::new().wait(wait).line::<u64, u64>();
    idle(move || callee.recv().is_err(), move || drop(caller))
}

/// Share of a CPU that `body` uses while it waits until `end` is called.
fn idle(body: impl FnOnce() -> bool + Send + 'static, end: impl FnOnce()) -> f64 {
    let waiting = thread::spawn(move || {
        let (start, before) = (Instant::now(), cpu_time());
        assert!(body(), "nothing is sent");
        (cpu_time() - before).as_secs_f64() / start.elapsed().as_secs_f64()
    });
    thread::sleep(IDLE);
    end();
    waiting.join().unwrap_or(f64::NAN)
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

//! How fast the machine computes while something else is measured.
//!
//! On a shared machine the CPU time of the same work varies by some percent over seconds, as
//! others use the core's other hardware thread, or its clock changes. One thread per CPU repeats a
//! small amount of work, and keeps the CPU time that each piece took. Divided by their mean, the
//! time of other work over the same seconds depends less on the speed. The pieces use registers
//! only, so the speed of caches and memory stays in.
//!
//! The host also takes the CPUs away for milliseconds, and counts that as CPU time. Few pieces are
//! hit, and these take many times as long, so a piece counts at most 1.5 times the usual one. On
//! two CPUs of a Xeon (family 6, model 207, virtual), means of rounds over 5 s, divided by those
//! of pieces, had a standard deviation of 0.6%, and of 3.1% without this limit.

use crate::account::{clock_ns, now};
use crate::statistics::clipped_mean;
use crate::work::compute_steps;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Steps of a piece: about 0.1 ms. With the pauses between pieces, 2% of each CPU.
const STEPS: u64 = 80_000;
const PAUSE: Duration = Duration::from_millis(5);

/// Measures the speed of each CPU that this process may use, until it is dropped.
#[derive(Debug)]
pub struct Speed {
    cpus: Vec<Arc<Mutex<Vec<Piece>>>>,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    at: u64,
    cpu_ns: u64,
}

impl Speed {
    /// Begins to measure.
    pub fn measure() -> Speed {
        let end = Arc::new(AtomicBool::new(false));
        let mut speed = Speed { cpus: Vec::new(), end: end.clone(), threads: Vec::new() };
        for cpu in allowed_cpus() {
            let (pieces, end) = (Arc::new(Mutex::default()), end.clone());
            speed.cpus.push(Arc::clone(&pieces));
            speed.threads.push(thread::spawn(move || {
                pin_to(cpu);
                while !end.load(Relaxed) {
                    let (at, before) = (now(), clock_ns(libc::CLOCK_THREAD_CPUTIME_ID));
                    compute_steps(STEPS);
                    let cpu_ns = clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) - before;
                    lock(&pieces).push(Piece { at, cpu_ns });
                    thread::sleep(PAUSE);
                }
            }));
        }
        speed
    }

    /// Mean CPU time in nanoseconds of a piece that began between two instants, all CPUs weighing
    /// the same, without what interruptions by the host added. `None` if one of the CPUs has none.
    pub fn piece_ns(&self, [from, to]: [u64; 2]) -> Option<f64> {
        let means = self.cpus.iter().map(|pieces| {
            let pieces = lock(pieces);
            let within = pieces.iter().filter(|piece| (from..to).contains(&piece.at));
            clipped_mean(within.map(|piece| piece.cpu_ns as f64).collect())
        });
        let means: Vec<f64> = means.collect::<Option<_>>()?;
        Some(means.iter().sum::<f64>() / means.len() as f64)
    }
}

impl Drop for Speed {
    fn drop(&mut self) {
        self.end.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            _ = thread.join();
        }
    }
}

fn lock(pieces: &Mutex<Vec<Piece>>) -> std::sync::MutexGuard<'_, Vec<Piece>> {
    pieces.lock().unwrap_or_else(PoisonError::into_inner)
}

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: all bytes may be zero.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size of the set.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    assert!(got == 0, "sched_getaffinity: {}", std::io::Error::last_os_error());
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the CPU's number lies within the set.
    all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

fn pin_to(cpu: usize) {
    // SAFETY: all bytes may be zero.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the CPU's number came from a set of this size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the kernel reads the size of the set.
    let pinned = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert!(pinned == 0, "sched_setaffinity: {}", std::io::Error::last_os_error());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_belong_to_the_instant_at_which_they_began() {
        let (from, speed) = (now(), Speed::measure());
        while speed.piece_ns([from, u64::MAX]).is_none() {
            thread::sleep(PAUSE);
        }
        assert!(speed.piece_ns([from, now()]).unwrap() > 1_000.0);
        assert_eq!(speed.piece_ns([0, from]), None);
    }
}

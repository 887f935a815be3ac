//! Noise: interruptions of an otherwise idle CPU.
//!
//! A thread that is bound to the CPU only reads the clock. Anything that delays a reading by more
//! than a microsecond shows up as a gap: interrupts, other threads, firmware, the hypervisor.
//! jHiccup, sysjitter and the kernel's `osnoise` tracer use this method; `osnoise` also knows the
//! cause.
//!
//! The watched CPU neither idles nor changes its frequency much, so wake-up latency is not
//! measured.

use std::io;
use std::thread;
use std::time::Duration;

use threadtoll_record::{Count, CpuNoise};

use crate::clock::Clock;
use crate::disturbance::ThreadProbe;
use crate::place::{PlaceError, pin_to};

/// Gaps are counted in classes with these lower bounds, in nanoseconds.
const CLASSES_NS: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// A gap is at least this many times the shortest distance between two readings, and at least the
/// first of [`CLASSES_NS`].
const GAP_FACTOR: u64 = 8;
/// More spinning threads would disturb each other through heat and power.
const WATCHED_AT_ONCE: usize = 8;
/// Minimum time per CPU. It includes several scheduler ticks, and probably any event that recurs
/// ten times a second.
const MIN_WATCH: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watched {
    pub(crate) noise: CpuNoise,
    /// Time that the watching thread spent queued behind others, in nanoseconds.
    pub(crate) run_queue_ns: Option<u64>,
}

/// Watches CPUs, several at a time, for about `budget` in total. Leaves out CPUs that cannot be
/// watched.
///
/// If the budget is too short for [`MIN_WATCH`] per CPU, only an evenly spread sample is watched.
pub(crate) fn watch_all(cpus: &[u32], budget: Duration, clock: &Clock) -> Vec<Watched> {
    let (cpus, duration) = share(cpus, budget);
    let rounds = cpus.chunks(WATCHED_AT_ONCE);
    rounds
        .flat_map(|round| {
            watch(round, duration, clock).unwrap_or_else(|_| {
                // If one CPU is offline, the whole round fails, so each CPU is watched alone.
                round
                    .iter()
                    .filter_map(|&cpu| watch(&[cpu], duration, clock).ok())
                    .flatten()
                    .collect()
            })
        })
        .collect()
}

/// CPUs to watch, and the time for each.
fn share(cpus: &[u32], budget: Duration) -> (Vec<u32>, Duration) {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let affordable = (budget.as_nanos() / MIN_WATCH.as_nanos()).max(1);
    let affordable =
        usize::try_from(affordable).unwrap_or(usize::MAX).saturating_mul(WATCHED_AT_ONCE);
    if cpus.len() > affordable {
        cpus = (0..affordable).map(|index| cpus[index * cpus.len() / affordable]).collect();
    }
    let rounds = u32::try_from(cpus.len().div_ceil(WATCHED_AT_ONCE).max(1)).unwrap_or(u32::MAX);
    (cpus, (budget / rounds).max(MIN_WATCH.min(budget)))
}

fn watch(cpus: &[u32], duration: Duration, clock: &Clock) -> Result<Vec<Watched>, PlaceError> {
    let no_thread = |source| PlaceError::Forbidden { what: "up a thread to watch a CPU", source };
    thread::scope(|scope| {
        let start = |&cpu: &u32| {
            let work = move || {
                pin_to(&[cpu])?;
                Ok(spin(cpu, duration, clock))
            };
            thread::Builder::new()
                .name(format!("watch-{cpu}"))
                .spawn_scoped(scope, work)
                .map_err(no_thread)
        };
        let threads: Vec<_> = cpus.iter().map(start).collect();
        let ended = threads.into_iter().map(|started| {
            started?
                .join()
                .unwrap_or_else(|_| Err(no_thread(io::Error::other("the watching thread died"))))
        });
        ended.collect()
    })
}

fn spin(cpu: u32, duration: Duration, clock: &Clock) -> Watched {
    let probe = ThreadProbe::new();
    // Warms up the loop and finds the shortest distance between two readings.
    let mut last = clock.stamp();
    let mut shortest = u64::MAX;
    for _ in 0..10_000 {
        let now = clock.stamp();
        shortest = shortest.min(now.saturating_sub(last));
        last = now;
    }
    let threshold = clock.ticks(CLASSES_NS[0] as f64).max(GAP_FACTOR.saturating_mul(shortest));
    let mut gaps = Gaps::new(shortest, |ns| clock.ticks(ns as f64));

    let queued_before = probe.sample().run_queue_ns;
    let began = clock.stamp();
    let end = began.saturating_add(clock.ticks(duration.as_nanos() as f64));
    let mut last = began;
    while last < end {
        let now = clock.stamp();
        let distance = now.saturating_sub(last);
        if distance >= threshold {
            gaps.count(distance);
        }
        last = now;
    }
    let queued = probe.sample().run_queue_ns;
    let watched = last - began;
    Watched {
        noise: CpuNoise {
            cpu,
            watched_ns: (clock.ns(watched) as u64).into(),
            gaps: CLASSES_NS
                .map(Count::from)
                .into_iter()
                .zip(gaps.counts.map(Count::from))
                .collect(),
            // Rounded to a millionth: half a second of watching is no more precise.
            lost_share: ((gaps.lost as f64 / watched.max(1) as f64 * 1e6).round() / 1e6).into(),
            longest_ns: (clock.ns(gaps.longest) as u64).into(),
        },
        run_queue_ns: queued.zip(queued_before).map(|(after, before)| after.saturating_sub(before)),
    }
}

/// In ticks.
struct Gaps {
    shortest: u64,
    bounds: [u64; CLASSES_NS.len()],
    counts: [u64; CLASSES_NS.len()],
    lost: u64,
    longest: u64,
}

impl Gaps {
    fn new(shortest: u64, ticks: impl Fn(u64) -> u64) -> Gaps {
        Gaps {
            shortest,
            bounds: CLASSES_NS.map(ticks),
            counts: [0; CLASSES_NS.len()],
            lost: 0,
            longest: 0,
        }
    }

    #[cold]
    fn count(&mut self, distance: u64) {
        let class = self.bounds.iter().rposition(|&bound| distance >= bound).unwrap_or(0);
        self.counts[class] += 1;
        // Even without a gap, a reading takes the shortest distance. Only the rest is lost.
        self.lost += distance - self.shortest.min(distance);
        self.longest = self.longest.max(distance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::machine_lock;
    use crate::place::allowed_cpus;

    #[test]
    fn gaps_fall_into_their_classes() {
        let mut gaps = Gaps::new(20, |ns| ns);
        for distance in [1_000, 9_999, 10_000, 999_999, 1_000_000, 50_000_000] {
            gaps.count(distance);
        }
        assert_eq!(gaps.counts, [2, 1, 1, 1, 1]);
        assert_eq!(gaps.longest, 50_000_000);
        assert_eq!(gaps.lost, 1_000 + 9_999 + 10_000 + 999_999 + 1_000_000 + 50_000_000 - 6 * 20);
    }

    #[test]
    fn a_budget_is_shared_by_rounds_or_spent_on_a_sample() {
        let ms = Duration::from_millis;
        let all: Vec<u32> = (0..500).collect();
        assert_eq!(share(&[1, 0, 1], ms(500)), (vec![0, 1], ms(500)));
        assert_eq!(share(&all[..16], ms(500)), (all[..16].to_vec(), ms(250)));
        let (sample, each) = share(&all, ms(500));
        assert_eq!((sample.len(), each), (40, ms(100)));
        assert!(sample.windows(2).all(|pair| pair[1] - pair[0] >= 12), "evenly spread: {sample:?}");
        assert_eq!(share(&all, ms(20)), (vec![0, 62, 125, 187, 250, 312, 375, 437], ms(20)));
        assert!(share(&[], ms(500)).0.is_empty());
        assert_eq!(share(&[3], Duration::ZERO), (vec![3], Duration::ZERO));
    }

    #[test]
    fn every_allowed_cpu_is_watched_for_its_time() {
        let _alone = machine_lock().unwrap();
        let (clock, _) = Clock::gate().unwrap();
        let cpus = allowed_cpus();
        let watched = watch_all(&cpus, Duration::from_millis(20), &clock);
        assert_eq!(watched.len(), cpus.len().min(WATCHED_AT_ONCE));
        for cpu in watched.into_iter().map(|watched| watched.noise) {
            assert!(cpu.watched_ns >= 19_000_000, "{cpu:?}");
            assert!((0.0..=1.0).contains(&cpu.lost_share.get()), "{cpu:?}");
            assert!(cpu.longest_ns <= cpu.watched_ns, "{cpu:?}");
            let bounds: Vec<u64> = cpu.gaps.iter().map(|(bound, _)| bound.get()).collect();
            assert_eq!(bounds, CLASSES_NS);
        }
        assert_eq!(allowed_cpus(), cpus, "the calling thread is not moved");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_alone_and_left_out_among_others() {
        let _alone = machine_lock().unwrap();
        let (clock, _) = Clock::gate().unwrap();
        let first = allowed_cpus()[0];
        let brief = Duration::from_millis(2);
        assert!(matches!(watch(&[8_191], brief, &clock), Err(PlaceError::NotAllowed { .. })));
        let watched = watch_all(&[first, 8_191], brief, &clock);
        assert_eq!(watched.iter().map(|watched| watched.noise.cpu).collect::<Vec<_>>(), [first]);
    }
}

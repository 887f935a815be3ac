//! The clock gate: chooses the counter for stamps, and checks it.
//!
//! The CPU's own counter is faster and finer than any system call. But it may change its rate with
//! the frequency, stop in idle states, differ between sockets, or be emulated by a hypervisor. It
//! is used only if all of the following hold, and `CLOCK_MONOTONIC_RAW` otherwise:
//!
//! 1. reading it does not trap (`PR_GET_TSC`);
//! 2. CPUID says that it is invariant or, under a hypervisor that hides that bit, the kernel does
//!    (`constant_tsc` and `nonstop_tsc` in `/proc/cpuinfo`);
//! 3. the kernel uses it as its clock (`current_clocksource`), having checked it with its watchdog
//!    and across CPUs;
//! 4. its rate agrees with `CLOCK_MONOTONIC_RAW` to within 100 ppm over four windows of 10 ms. The
//!    thread sleeps in these windows, so that a counter that stops in idle states fails. The
//!    frequency in CPUID is never used: under a hypervisor, it may be that of another machine.
//!
//! Then the gate measures the step and the read cost. The *step* is the smallest difference between
//! two durations: on many machines, it is 10 ns although a tick is 0.4 ns. To find it, the gate
//! sorts thousands of durations. The step is the median of the distances between neighbours,
//! weighted by length. The minimum or the greatest common divisor of the distances would be
//! distorted by rounding if the clock converts a counter of another frequency. The *read cost* is
//! the median over batches of readings.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::Duration;

use threadtoll_record::ClockFacts;

use crate::clock::{Clock, ClockRefused, Moment};
use crate::counter::{Counter, raw_ns};

const WINDOWS: usize = 4;
const WINDOW: Duration = Duration::from_millis(10);
/// Maximum difference of a window's rate from the rate over all windows, in parts per million.
const STABLE_PPM: f64 = 100.0;
/// A hypervisor that takes the CPU away may spoil one calibration, but hardly three.
const ATTEMPTS: usize = 3;
const COARSEST_STEP_NS: f64 = 1_000.0;
/// Number of durations from which the step is determined, and the time limit for measuring them.
const DURATIONS: usize = 4_000;
const COLLECTING_NS: u64 = 20_000_000;

impl Clock {
    /// Chooses this machine's clock and measures it. Takes about 50 ms, most of it asleep.
    ///
    /// # Errors
    ///
    /// [`ClockRefused`] if even the best clock does not advance, goes backwards, or has steps above
    /// a microsecond.
    pub fn gate() -> Result<(Clock, ClockFacts), ClockRefused> {
        let first = raw_ns();
        if first == 0 {
            return Err(ClockRefused::Unreadable);
        }
        if let Some(counter) = trusted_counter(Path::new("/sys"))
            && let Some(calibration) = (0..ATTEMPTS).find_map(|_| calibrate(counter))
        {
            return look_at(counter, calibration);
        }
        let origin = Moment::take(Counter::Raw);
        look_at(Counter::Raw, Calibration { tick_ns: 1.0, drift_ppm: 0.0, origin })
    }
}

struct Calibration {
    tick_ns: f64,
    drift_ppm: f64,
    origin: Moment,
}

/// Length of a tick; `None` if the windows disagree.
fn calibrate(counter: Counter) -> Option<Calibration> {
    let moments: [Moment; WINDOWS + 1] = std::array::from_fn(|i| {
        if i > 0 {
            thread::sleep(WINDOW);
        }
        Moment::take(counter)
    });
    rate(&moments).map(|(tick_ns, drift_ppm)| Calibration {
        tick_ns,
        drift_ppm,
        origin: moments[0],
    })
}

/// Nanoseconds per tick over all windows, and the largest deviation of a single window, in ppm.
fn rate(moments: &[Moment]) -> Option<(f64, f64)> {
    let tick = |from: &Moment, to: &Moment| {
        let ticks = to.ticks.checked_sub(from.ticks).filter(|&ticks| ticks > 0)?;
        let ns = to.raw_ns.checked_sub(from.raw_ns).filter(|&ns| ns > 0)?;
        Some(ns as f64 / ticks as f64)
    };
    let tick_ns = tick(moments.first()?, moments.last()?)?;
    let mut worst_ppm = 0.0f64;
    for pair in moments.windows(2) {
        worst_ppm = worst_ppm.max((tick(&pair[0], &pair[1])? / tick_ns - 1.0).abs() * 1e6);
    }
    (worst_ppm <= STABLE_PPM).then_some((tick_ns, worst_ppm))
}

/// Measures the step and the read cost of a calibrated counter.
fn look_at(
    counter: Counter,
    calibration: Calibration,
) -> Result<(Clock, ClockFacts), ClockRefused> {
    let Calibration { tick_ns, drift_ppm, origin } = calibration;
    let source = counter.source();
    let step_ns = match durations(counter) {
        Err(by) => {
            return Err(ClockRefused::Backwards { clock: source, by_ns: by as f64 * tick_ns });
        }
        Ok(mut durations) => {
            match typical_step(&mut durations).or_else(|| wait_for_step(counter)) {
                None => return Err(ClockRefused::Still { clock: source }),
                Some(step) => step as f64 * tick_ns,
            }
        }
    };
    if step_ns > COARSEST_STEP_NS {
        return Err(ClockRefused::Coarse { clock: source, step_ns });
    }
    let clock = Clock::new(counter, tick_ns, aux_names_cpu(counter), origin);
    // Except for the tick, these figures are accurate to three decimal places at most.
    let rounded = |value: f64| (value * 1e3).round() / 1e3;
    let facts = ClockFacts {
        source,
        step_ns: rounded(step_ns).into(),
        read_ns: rounded(read_cost(counter) * tick_ns).into(),
        // The kernel derives the raw clock from the counter, so this is reported for both.
        invariant: is_invariant(),
        tick_ns: tick_ns.into(),
        drift_ppm: rounded(drift_ppm).into(),
    };
    Ok((clock, facts))
}

/// Durations of varying length, in ticks. The error is the number of ticks that the clock went
/// back.
fn durations(counter: Counter) -> Result<Vec<u64>, u64> {
    let began = raw_ns();
    let mut durations = Vec::with_capacity(DURATIONS);
    let mut last = counter.read();
    let mut random = 1u32;
    while durations.len() < DURATIONS {
        if durations.len() % 256 == 255 && raw_ns().saturating_sub(began) > COLLECTING_NS {
            break;
        }
        // The generator of Numerical Recipes. Its upper bits set the length.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let before = counter.read();
        for turn in 0..random >> 26 {
            black_box(turn);
        }
        let after = counter.read();
        for (earlier, later) in [(last, before), (before, after)] {
            if later < earlier {
                return Err(earlier - later);
            }
        }
        durations.push(after - before);
        last = after;
    }
    Ok(durations)
}

/// The median of the distances between neighbouring durations, weighted by length.
///
/// Leaves out the longest quarter, which may contain interruptions: the distances between those say
/// nothing about the clock.
fn typical_step(durations: &mut [u64]) -> Option<u64> {
    durations.sort_unstable();
    let usual = &durations[..durations.len() - durations.len() / 4];
    let mut distances: Vec<u64> =
        usual.windows(2).map(|pair| pair[1] - pair[0]).filter(|&distance| distance > 0).collect();
    if distances.is_empty() {
        return durations.iter().copied().find(|&duration| duration > 0);
    }
    distances.sort_unstable();
    let half = distances.iter().sum::<u64>().div_ceil(2);
    let mut covered = 0;
    distances.into_iter().find(|&distance| {
        covered += distance;
        covered >= half
    })
}

/// Reads a clock until it advances; gives up after some seconds.
fn wait_for_step(counter: Counter) -> Option<u64> {
    let first = counter.read();
    (0..50_000_000).map(|_| counter.read().saturating_sub(first)).find(|&moved| moved > 0)
}

/// Ticks per stamp: the median over batches.
fn read_cost(counter: Counter) -> f64 {
    const BATCH: u32 = 128;
    let mut costs: [f64; 65] = std::array::from_fn(|_| {
        let before = counter.read();
        for _ in 1..BATCH {
            black_box(counter.read());
        }
        counter.read().saturating_sub(before) as f64 / f64::from(BATCH)
    });
    costs.sort_unstable_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// The CPU's own counter, if points 1 to 3 of the module head hold.
#[cfg(target_arch = "x86_64")]
fn trusted_counter(sys: &Path) -> Option<Counter> {
    (!reading_traps() && is_invariant() && kernel_uses(sys, "tsc")).then_some(Counter::Tsc)
}

/// The CPU's own counter, if points 1 and 3 of the module head hold. Arm guarantees point 2.
#[cfg(target_arch = "aarch64")]
fn trusted_counter(sys: &Path) -> Option<Counter> {
    (!reading_traps() && kernel_uses(sys, "arch_sys_counter")).then_some(Counter::Cntvct)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn trusted_counter(_sys: &Path) -> Option<Counter> {
    None
}

#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
fn kernel_uses(sys: &Path, clocksource: &str) -> bool {
    fs::read_to_string(sys.join("devices/system/clocksource/clocksource0/current_clocksource"))
        .is_ok_and(|current| current.trim() == clocksource)
}

/// True if reading the counter would kill this process.
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
fn reading_traps() -> bool {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given, which is live. Kernels that do not
    // know it fail.
    let result = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    result == 0 && mode == libc::PR_TSC_SIGSEGV
}

/// True if the time-stamp counter keeps its rate through frequency changes and idle states.
#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    let power = if __cpuid(0x8000_0000).eax >= 0x8000_0007 { __cpuid(0x8000_0007).edx } else { 0 };
    let under_hypervisor = __cpuid(1).ecx & 1 << 31 != 0;
    power & 1 << 8 != 0 || (under_hypervisor && kernel_calls_invariant())
}

#[cfg(target_arch = "x86_64")]
fn kernel_calls_invariant() -> bool {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|wanted| flags.split_whitespace().any(|flag| flag == *wanted))
}

/// Returns `true` if `rdtscp` exists and its extra register contains the CPU. On some hypervisors
/// and emulators, the register does not.
///
/// Checks the highest CPU, because an unset register looks right on CPU 0.
#[cfg(target_arch = "x86_64")]
fn aux_names_cpu(counter: Counter) -> bool {
    use std::arch::x86_64::__cpuid;

    use crate::counter::{AUX_CPU_MASK, tsc_with_cpu};
    use crate::place::{allowed_cpus, pin_to};

    let exists = __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx & 1 << 27 != 0;
    let Some(&highest) = allowed_cpus().last() else { return false };
    counter == Counter::Tsc
        && exists
        && highest <= AUX_CPU_MASK
        && thread::Builder::new()
            .spawn(move || pin_to(&[highest]).is_ok() && tsc_with_cpu().1 == highest)
            .is_ok_and(|asked| asked.join().unwrap_or(false))
}

#[cfg(not(target_arch = "x86_64"))]
fn aux_names_cpu(_counter: Counter) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_grid(grid: f64) -> Vec<u64> {
        (0..20_000u64)
            .map(|i| ((60.0 + (i * 7_919 % 200) as f64) / grid).floor() * grid)
            .map(|ns| ns as u64)
            .collect()
    }

    #[test]
    fn the_step_is_found_on_every_grid() {
        assert_eq!(typical_step(&mut on_grid(1.0)), Some(1));
        assert_eq!(typical_step(&mut on_grid(26.0)), Some(26));
        // Rounded to whole units, a grid of 26.04 has distances of 26 and, rarely, 27.
        assert_eq!(typical_step(&mut on_grid(26.04)), Some(26));
        let mut interrupted = on_grid(10.0);
        interrupted.extend((1..2_000).map(|i| i * 1_000_000));
        assert_eq!(typical_step(&mut interrupted), Some(10));
    }

    #[test]
    fn the_step_of_a_clock_that_mostly_stands_is_its_jump() {
        let mut durations = vec![0; 20_000];
        assert_eq!(typical_step(&mut durations), None);
        durations[17] = 4_000_000;
        assert_eq!(typical_step(&mut durations), Some(4_000_000));
        durations[..8_000].fill(1_000);
        assert_eq!(typical_step(&mut durations), Some(1_000));
        assert_eq!(typical_step(&mut [30, 30, 30, 30]), Some(30), "only ever one duration");
        assert_eq!(typical_step(&mut []), None);
    }

    #[test]
    fn a_rate_must_hold_in_every_window() {
        let at = |ticks, raw_ns| Moment { ticks, raw_ns, width_ticks: 20 };
        let steady = [at(0, 0), at(25_000_000, 10_000_000), at(50_000_000, 20_000_000)];
        let (tick_ns, drift_ppm) = rate(&steady).unwrap();
        assert!((tick_ns - 0.4).abs() < 1e-12 && drift_ppm < 1e-6);
        let slower_then_faster = [at(0, 0), at(24_990_000, 10_000_000), at(50_000_000, 20_000_000)];
        assert!(rate(&slower_then_faster).is_none(), "400 ppm off");
        assert!(rate(&[at(0, 0), at(0, 10_000_000)]).is_none(), "stands still");
        assert!(rate(&[at(5, 0), at(4, 10_000_000)]).is_none(), "goes back");
        assert!(rate(&[at(0, 10), at(10, 10)]).is_none(), "no time passed");
        assert!(rate(&[]).is_none());
    }

    #[test]
    fn the_clock_of_this_machine_runs() {
        let (clock, facts) = Clock::gate().unwrap();
        assert_eq!(clock.source(), facts.source);
        assert!(facts.step_ns > 0.0 && facts.read_ns > 0.0 && facts.tick_ns > 0.0, "{facts:?}");
        let mut last = clock.stamp();
        for _ in 0..10_000 {
            let now = clock.stamp();
            assert!(now >= last);
            last = now;
        }
        let before = clock.stamp();
        thread::sleep(Duration::from_millis(20));
        let slept = clock.ns(clock.stamp() - before);
        assert!(slept >= 19e6, "a sleep of 20 ms is not shorter, whatever the clock: {slept} ns");
        assert!(clock.recheck(&facts).unwrap() <= crate::clock::DRIFT_LIMIT_PPM);
    }

    #[test]
    fn the_fallback_runs_as_well() {
        let origin = Moment::take(Counter::Raw);
        let (clock, facts) =
            look_at(Counter::Raw, Calibration { tick_ns: 1.0, drift_ppm: 0.0, origin }).unwrap();
        assert_eq!(facts.source, threadtoll_record::ClockSource::MonotonicRaw);
        assert!(facts.step_ns >= 1.0, "{facts:?}");
        assert_eq!(clock.recheck(&facts), Ok(0.0));
        let (first, _) = clock.stamp_cpu();
        assert!(clock.stamp() >= first);
    }

    #[test]
    fn a_stamp_names_the_cpu_it_was_taken_on() {
        let _alone = crate::lock::machine_lock().unwrap();
        let (clock, _) = Clock::gate().unwrap();
        let named = thread::spawn(move || {
            let cpus = crate::place::allowed_cpus();
            let on = |&cpu: &u32| {
                crate::place::pin_to(&[cpu]).unwrap();
                clock.stamp_cpu().1
            };
            (cpus.iter().map(on).collect::<Vec<_>>(), cpus)
        });
        let (named, cpus) = named.join().unwrap();
        assert_eq!(named, cpus);
    }

    #[test]
    fn a_kernel_with_another_clock_source_is_not_overruled() {
        let sys = tempfile::tempdir().unwrap();
        assert!(!kernel_uses(sys.path(), "tsc"), "an unreadable tree is no consent");
        let directory = sys.path().join("devices/system/clocksource/clocksource0");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("current_clocksource"), "hpet\n").unwrap();
        assert_eq!(trusted_counter(sys.path()), None);
        fs::write(directory.join("current_clocksource"), "tsc\n").unwrap();
        assert!(kernel_uses(sys.path(), "tsc"));
    }
}

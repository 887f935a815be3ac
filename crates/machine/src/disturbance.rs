//! Kernel counters of the threads and CPUs in a block (one uninterrupted stretch of a measurement).
//!
//! A probe reads the counters before and after a block; the difference is charged to the block. A
//! counter that the kernel does not show is `None`, never 0.
//!
//! | number | from | finest step |
//! |---|---|---|
//! | time on a CPU | `CLOCK_THREAD_CPUTIME_ID` | 1 ns |
//! | user and system time | `getrusage(RUSAGE_THREAD)` | sampled by the scheduler's tick |
//! | switches, page faults | `getrusage(RUSAGE_THREAD)` | 1 |
//! | run-queue delay | `/proc/thread-self/schedstat`, second field | 1 ns |
//! | migrations | `/proc/thread-self/sched`, `se.nr_migrations` | 1 |
//! | steal | `/proc/stat` | one tick of `USER_HZ`, mostly 10 ms |
//! | throttling | `cpu.stat` of the control groups, `core_throttle_count` | 1 |
//!
//! Steal is 0 if the hypervisor does not report it. Its first tick may include steal from before
//! the block.

use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::Path;

use threadtoll_record::{BlockCost, Disturbance};

use crate::cgroup::{CpuGroups, ThrottleCounter};

/// Counters of one thread at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Time on a CPU, in nanoseconds.
    pub cpu_ns: u64,
    /// Time in user mode, in nanoseconds, as of the last tick or switch.
    pub user_ns: u64,
    /// Time in the kernel, in nanoseconds, as of the last tick or switch.
    pub system_ns: u64,
    /// Number of context switches because the thread waited.
    pub voluntary_switches: u64,
    /// Number of context switches because the thread was preempted.
    pub involuntary_switches: u64,
    /// Number of page faults, minor and major.
    pub page_faults: u64,
    /// Time in a run queue, waiting for a CPU, in nanoseconds.
    pub run_queue_ns: Option<u64>,
    /// Number of migrations to another CPU.
    pub migrations: Option<u64>,
}

impl ThreadCounters {
    /// Counters of the calling thread. A [`ThreadProbe`] is cheaper, because it opens the files
    /// only once.
    pub fn now() -> ThreadCounters {
        ThreadProbe::new().sample()
    }

    /// The difference from `earlier`, for the same thread.
    ///
    /// The kernel updates user and system time only at ticks and switches: after 15 ms of spinning,
    /// they may add up to 13 ms. They are scaled to add up to the time on a CPU.
    pub fn delta(&self, earlier: &ThreadCounters) -> ThreadCounters {
        let cpu_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        let user = self.user_ns.saturating_sub(earlier.user_ns) as f64;
        let system = self.system_ns.saturating_sub(earlier.system_ns) as f64;
        // Without a tick or a switch, the thread has not slept: all of its time is user time.
        let share = if user + system > 0.0 { system / (user + system) } else { 0.0 };
        let system_ns = (cpu_ns as f64 * share).round() as u64;
        ThreadCounters {
            cpu_ns,
            user_ns: cpu_ns.saturating_sub(system_ns),
            system_ns,
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            page_faults: self.page_faults.saturating_sub(earlier.page_faults),
            run_queue_ns: difference(self.run_queue_ns, earlier.run_queue_ns),
            migrations: difference(self.migrations, earlier.migrations),
        }
    }
}

fn difference(later: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    Some(later?.saturating_sub(earlier?))
}

/// Reads the counters of the thread that created this probe, in a few microseconds and without
/// allocating.
///
/// ```
/// use threadtoll_machine::ThreadProbe;
///
/// let probe = ThreadProbe::new();
/// let before = probe.sample();
/// std::thread::yield_now();
/// let spent = probe.sample().delta(&before);
/// println!("{} ns in the run queue", spent.run_queue_ns.map_or("?".into(), |ns| ns.to_string()));
/// ```
#[derive(Debug)]
pub struct ThreadProbe {
    schedstat: Option<File>,
    sched: Option<File>,
    /// The files contain the counters of the thread that opened them.
    not_send: PhantomData<*const ()>,
}

impl ThreadProbe {
    /// A probe for the calling thread.
    pub fn new() -> ThreadProbe {
        // `thread-self` is resolved when a file is opened, so the files stay with this thread.
        let open = |name: &str| File::open(format!("/proc/thread-self/{name}")).ok();
        let probe = ThreadProbe {
            schedstat: open("schedstat"),
            sched: open("sched"),
            not_send: PhantomData,
        };
        // The first sample faults in pages of the stack, which must not be charged to a block.
        probe.sample();
        probe
    }

    /// Reads the counters at the start of a block. CPU time is read last, so that the other
    /// readings are not charged to the block.
    pub fn sample(&self) -> ThreadCounters {
        let mut counters = self.files(resource_usage());
        counters.cpu_ns = thread_cpu_ns();
        counters
    }

    /// Reads the counters at the end of a block. CPU time is read first.
    pub fn sample_after(&self) -> ThreadCounters {
        let cpu_ns = thread_cpu_ns();
        let mut counters = self.files(resource_usage());
        counters.cpu_ns = cpu_ns;
        counters
    }

    fn files(&self, mut counters: ThreadCounters) -> ThreadCounters {
        let mut buffer = [0u8; 4096];
        let mut read = |file: &Option<File>, parse: fn(&[u8]) -> Option<u64>| {
            let length = file.as_ref()?.read_at(&mut buffer, 0).ok()?;
            parse(&buffer[..length])
        };
        counters.run_queue_ns = read(&self.schedstat, run_queue_delay);
        counters.migrations = read(&self.sched, migrations);
        counters
    }
}

impl Default for ThreadProbe {
    fn default() -> Self {
        ThreadProbe::new()
    }
}

/// CPU time of the calling thread up to now, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a valid address. A sandbox that forbids the call
    // leaves zeros.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn resource_usage() -> ThreadCounters {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage to an address that has room for it. The call cannot fail
    // with these arguments, and a sandbox that forbids it leaves zeros.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid rusage, and the kernel writes only valid ones.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ThreadCounters {
        cpu_ns: 0,
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        page_faults: usage.ru_minflt as u64 + usage.ru_majflt as u64,
        run_queue_ns: None,
        migrations: None,
    }
}

/// `schedstat` contains time on the CPU, time in the run queue, and the number of time slices.
fn run_queue_delay(text: &[u8]) -> Option<u64> {
    number(text.split(|&byte| byte == b' ').nth(1)?)
}

fn migrations(text: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"se.nr_migrations";
    let line = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(KEY))?;
    number(line.rsplit(|&byte| byte == b':').next()?.trim_ascii())
}

pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Counters of some CPUs and of the control groups at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemCounters {
    /// Time stolen by the hypervisor, summed over the CPUs, in nanoseconds.
    pub steal_ns: Option<u64>,
    /// Number of times that a quota or heat throttled the CPUs.
    pub throttled: Option<u64>,
}

impl SystemCounters {
    /// Counters of `cpus`. A [`SystemProbe`] is cheaper, because it opens the files only once.
    pub fn now(cpus: &[u32]) -> SystemCounters {
        SystemProbe::new(cpus).sample()
    }

    /// The difference from `earlier`, for the same CPUs.
    pub fn delta(&self, earlier: &SystemCounters) -> SystemCounters {
        SystemCounters {
            steal_ns: difference(self.steal_ns, earlier.steal_ns),
            throttled: difference(self.throttled, earlier.throttled),
        }
    }
}

/// Reads the counters of some CPUs.
///
/// Not for use on measured threads: with hundreds of CPUs, the kernel takes milliseconds to write
/// `/proc/stat`.
#[derive(Debug)]
pub struct SystemProbe {
    cpus: Vec<u32>,
    tick_ns: u64,
    stat: Option<File>,
    cores: Vec<File>,
    quotas: ThrottleCounter,
    buffer: Vec<u8>,
}

impl SystemProbe {
    /// A probe for `cpus`.
    pub fn new(cpus: &[u32]) -> SystemProbe {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        let heat = |cpu: &u32| {
            let path =
                format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
            File::open(path).ok()
        };
        SystemProbe {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            stat: File::open("/proc/stat").ok(),
            cores: cpus.iter().filter_map(heat).collect(),
            quotas: ThrottleCounter::of(&CpuGroups::of_this_process(Path::new("/proc"))),
            cpus,
            buffer: Vec::new(),
        }
    }

    /// Resolution of steal time, in nanoseconds.
    pub fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Reads the counters.
    pub fn sample(&mut self) -> SystemCounters {
        let ticks = self.stat.as_ref().and_then(|stat| {
            read_cpu_lines(stat, &mut self.buffer)?;
            steal_ticks(&self.buffer, &self.cpus)
        });
        let mut throttled = None;
        for file in &self.cores {
            add(
                &mut throttled,
                read_whole(file, &mut self.buffer).and_then(|text| number(text.trim_ascii())),
            );
        }
        add(&mut throttled, self.quotas.read().map(|throttled| throttled.times));
        SystemCounters { steal_ns: ticks.map(|ticks| ticks * self.tick_ns), throttled }
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}

fn read_whole<'a>(file: &File, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.resize(4096, 0);
    let length = file.read_at(buffer, 0).ok()?;
    Some(&buffer[..length])
}

/// Reads the lines of CPUs in `/proc/stat`, but not the rest. The rest has one number per
/// interrupt, and takes the kernel longer to write than all lines of CPUs.
pub(crate) fn read_cpu_lines(stat: &File, buffer: &mut Vec<u8>) -> Option<()> {
    const CHUNK: usize = 16 * 1024;
    const LONGEST: usize = 64 << 20;
    let mut filled = 0;
    loop {
        buffer.resize(filled + CHUNK, 0);
        let more = stat.read_at(&mut buffer[filled..], filled as u64).ok()?;
        let seen_from = filled.saturating_sub(8);
        filled += more;
        let ended = buffer[seen_from..filled].windows(5).any(|bytes| bytes == b"\nintr");
        if more == 0 || ended || filled > LONGEST {
            buffer.truncate(filled);
            return Some(());
        }
    }
}

/// Steal time summed over `cpus`, in ticks. `None` if a CPU is missing, or if there is no column
/// for steal (Linux before 2.6.11).
fn steal_ticks(stat: &[u8], cpus: &[u32]) -> Option<u64> {
    let mut sum = 0u64;
    let mut found = 0;
    for line in stat.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ');
        let cpu = fields.next().and_then(|name| name.strip_prefix(b"cpu")).and_then(number);
        if cpu.is_some_and(|cpu| cpus.iter().any(|&wanted| u64::from(wanted) == cpu)) {
            // Steal is the eighth number: user nice system idle iowait irq softirq steal.
            sum = sum.saturating_add(number(fields.nth(7)?)?);
            found += 1;
        }
    }
    (found == cpus.len()).then_some(sum)
}

/// Adds up a block's cost and disturbances from the differences of the threads' and the system's
/// counters. The list of causes stays empty.
pub fn account(
    ends: &[ThreadCounters],
    system: SystemCounters,
    gap_ns: Option<u64>,
) -> (BlockCost, Disturbance) {
    let sum = |field: fn(&ThreadCounters) -> u64| ends.iter().map(field).sum::<u64>().into();
    let known =
        |field: fn(&ThreadCounters) -> Option<u64>| ends.iter().map(field).sum::<Option<u64>>();
    let cost = BlockCost {
        user_ns: sum(|end| end.user_ns),
        system_ns: sum(|end| end.system_ns),
        voluntary_switches: sum(|end| end.voluntary_switches),
        involuntary_switches: sum(|end| end.involuntary_switches),
    };
    let disturbance = Disturbance {
        causes: Vec::new(),
        migrations: known(|end| end.migrations).map(Into::into),
        run_queue_ns: known(|end| end.run_queue_ns).map(Into::into),
        steal_ns: system.steal_ns.map(Into::into),
        page_faults: sum(|end| end.page_faults),
        gap_ns: gap_ns.map(Into::into),
        throttled: system.throttled.map(Into::into),
    };
    (cost, disturbance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_as_kernels_write_them() {
        assert_eq!(run_queue_delay(b"121867 4711 1\n"), Some(4_711));
        assert_eq!(run_queue_delay(b""), None);
        assert_eq!(run_queue_delay(b"1 x 2"), None);
        let sched = b"head (10087, #threads: 1)\n-----\nse.exec_start   :   1193160.007750\n\
                      se.nr_migrations                             :                   12\nnr_switches : 3\n";
        assert_eq!(migrations(sched), Some(12));
        assert_eq!(migrations(b"nr_switches : 3\n"), None);
        let stat =
            b"cpu  46157 0 6459 184931 330 0 44 100 0 0\ncpu0 22602 0 3100 93212 31 0 8 50 0 0\n\
                     cpu1 1 2 3 4 5 6 7 80 9 10\ncpu10 0 0 0 0 0 0 0 7 0 0\nintr 1 2 3\n";
        assert_eq!(steal_ticks(stat, &[0]), Some(50));
        assert_eq!(steal_ticks(stat, &[0, 1]), Some(130));
        assert_eq!(steal_ticks(stat, &[10]), Some(7));
        assert_eq!(
            steal_ticks(stat, &[2]),
            None,
            "an unknown CPU must not count as an undisturbed one"
        );
        assert_eq!(steal_ticks(b"cpu0 1 2 3\n", &[0]), None);
    }

    #[test]
    fn a_probe_counts_what_its_own_thread_does() {
        let probe = ThreadProbe::new();
        let before = probe.sample();
        // A timer that expires before the thread has left its CPU causes no switch.
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        let delta = probe.sample().delta(&before);
        assert!(delta.voluntary_switches >= 5, "{delta:?}");
        let before = probe.sample();
        let other = std::thread::spawn(|| {
            let probe = ThreadProbe::new();
            let before = probe.sample();
            for _ in 0..100 {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            probe.sample().delta(&before)
        });
        let others = other.join().unwrap();
        let own = probe.sample().delta(&before);
        assert!(others.voluntary_switches >= 50, "{others:?}");
        assert!(own.voluntary_switches < 50, "{own:?}");
    }

    #[test]
    fn sampling_does_not_disturb_what_it_counts() {
        let probe = ThreadProbe::new();
        // The kernel may reclaim a page, but hardly between each of 20 pairs of samples.
        let undisturbed = (0..20).any(|_| {
            let before = probe.sample();
            let delta = probe.sample().delta(&before);
            delta.page_faults == 0 && delta.voluntary_switches == 0
        });
        assert!(undisturbed);
    }

    #[test]
    fn a_thread_that_shares_its_cpu_is_seen_to_queue() {
        use std::sync::atomic::{AtomicU32, Ordering};
        use std::time::{Duration, Instant};

        use crate::place::{allowed_cpus, pin_to};

        let _alone = crate::lock::machine_lock().unwrap();
        let cpu = allowed_cpus()[0];
        let seen = AtomicU32::new(0);
        let compete = || {
            pin_to(&[cpu]).unwrap();
            let probe = ThreadProbe::new();
            let before = probe.sample();
            let queues = |delta: &ThreadCounters| {
                delta.involuntary_switches > 0 && delta.run_queue_ns != Some(0)
            };
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut delta = probe.sample().delta(&before);
            while !queues(&delta) && Instant::now() < deadline {
                delta = probe.sample().delta(&before);
            }
            seen.fetch_add(1, Ordering::Relaxed);
            // If this thread ended early, the other would have the CPU to itself.
            while seen.load(Ordering::Relaxed) < 2 {
                std::hint::spin_loop();
            }
            assert!(queues(&delta), "{delta:?}");
            if delta.run_queue_ns.is_none() {
                eprintln!("this kernel does not account run-queue delay: not tried");
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(compete);
            scope.spawn(compete);
        });
    }

    #[test]
    fn a_spinner_is_charged_for_all_of_its_time() {
        let probe = ThreadProbe::new();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let before = probe.sample();
        let start = thread_cpu_ns();
        while thread_cpu_ns() - start < 6_000_000 {}
        let delta = probe.sample_after().delta(&before);
        assert!(delta.cpu_ns >= 6_000_000, "{delta:?}");
        assert_eq!(delta.user_ns + delta.system_ns, delta.cpu_ns);
    }

    #[test]
    fn fresh_memory_is_seen_as_page_faults() {
        let before = ThreadCounters::now();
        let mut fresh = vec![0u8; 64 << 20];
        for page in fresh.chunks_mut(4096) {
            page[0] = 1;
        }
        std::hint::black_box(&fresh);
        assert!(ThreadCounters::now().delta(&before).page_faults > 0);
    }

    #[test]
    fn a_system_probe_reads_the_same_file_again_and_again() {
        let cpus = crate::place::allowed_cpus();
        let mut probe = SystemProbe::new(&cpus);
        let first = probe.sample();
        let second = probe.sample();
        assert_eq!(first.steal_ns.is_some(), second.steal_ns.is_some());
        assert_eq!(first.throttled.is_some(), second.throttled.is_some());
        assert!(second.steal_ns >= first.steal_ns);
        assert_eq!(SystemCounters::now(&[60_000]).steal_ns, None);
    }

    #[test]
    fn what_one_end_does_not_know_the_block_does_not_know() {
        let end = ThreadCounters {
            cpu_ns: 11,
            user_ns: 10,
            system_ns: 1,
            voluntary_switches: 2,
            involuntary_switches: 3,
            page_faults: 4,
            run_queue_ns: Some(5),
            migrations: Some(6),
        };
        let blind = ThreadCounters { migrations: None, ..end };
        let system = SystemCounters { steal_ns: Some(7), throttled: None };
        let (cost, disturbance) = account(&[end, blind], system, Some(8));
        assert_eq!(
            cost,
            BlockCost {
                user_ns: 20.into(),
                system_ns: 2.into(),
                voluntary_switches: 4.into(),
                involuntary_switches: 6.into()
            }
        );
        assert_eq!(disturbance.run_queue_ns, Some(10.into()));
        assert_eq!(disturbance.migrations, None);
        assert_eq!(
            (disturbance.steal_ns, disturbance.throttled, disturbance.gap_ns),
            (Some(7.into()), None, Some(8.into()))
        );
        assert_eq!(disturbance.page_faults, 8);
    }
}

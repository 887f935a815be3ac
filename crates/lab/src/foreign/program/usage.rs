//! Resource use of a program's process.
//!
//! CPU time and page faults are those of the whole process, including threads that have ended.
//! Context switches and run-queue time are those of living threads.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Pid;
use threadtoll_machine::disturbance::ThreadCounters;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    /// CPU time in user mode, then in the kernel.
    ticks: [u64; 2],
    page_faults: u64,
    /// By thread ID.
    threads: BTreeMap<u32, Thread>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Thread {
    run_queue_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Usage {
    /// Counters that the kernel does not provide are 0.
    pub(crate) fn of(pid: Pid) -> Usage {
        let process = format!("/proc/{}", pid.as_raw_nonzero());
        let read = |path: String| fs::read_to_string(path).unwrap_or_default();
        let [minor, major, user, system] = stat(&read(format!("{process}/stat")));
        let threads = fs::read_dir(format!("{process}/task")).into_iter().flatten().flatten();
        let threads = threads.filter_map(|entry| {
            let own = entry.path();
            let tid = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(own.join("status")).ok()?;
            let schedstat = fs::read_to_string(own.join("schedstat")).unwrap_or_default();
            Some((tid, Thread::read(&schedstat, &status)))
        });
        let threads = threads.collect();
        // Read last: CPU time used during the other reads must not count as used afterwards.
        let cpu_ns = cpu_ns(pid);
        Usage { cpu_ns, ticks: [user, system], page_faults: minor + major, threads }
    }

    /// Resources used since `earlier`, in the form of a single thread's counters. `settling_ns` of
    /// CPU time, used before the program's first message, is not counted.
    ///
    /// Ticks are too coarse to split a block's CPU time into user and system time. It is split in
    /// the ratio of the process's user and system time since it started.
    pub(crate) fn since(&self, earlier: &Usage, settling_ns: u64) -> ThreadCounters {
        let cpu_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns).saturating_sub(settling_ns);
        let [user, system] = self.ticks.map(|ticks| ticks as f64);
        let share = if user + system > 0.0 { system / (user + system) } else { 0.0 };
        let system_ns = (cpu_ns as f64 * share).round() as u64;
        let sum = |of: fn(&Thread) -> u64| -> u64 {
            let before = |tid: &u32| earlier.threads.get(tid).map_or(0, of);
            self.threads.iter().map(|(tid, own)| of(own).saturating_sub(before(tid))).sum()
        };
        ThreadCounters {
            cpu_ns,
            user_ns: cpu_ns.saturating_sub(system_ns),
            system_ns,
            voluntary_switches: sum(|thread| thread.voluntary_switches),
            involuntary_switches: sum(|thread| thread.involuntary_switches),
            page_faults: self.page_faults.saturating_sub(earlier.page_faults),
            run_queue_ns: Some(sum(|thread| thread.run_queue_ns)),
            // Not counted, because threads of the program's runtime may run on any CPU.
            migrations: None,
        }
    }
}

impl Thread {
    fn read(schedstat: &str, status: &str) -> Thread {
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        let delay = schedstat.split_whitespace().nth(1);
        Thread {
            run_queue_ns: delay.and_then(|ns| ns.parse().ok()).unwrap_or(0),
            voluntary_switches: field("voluntary_ctxt_switches:"),
            involuntary_switches: field("nonvoluntary_ctxt_switches:"),
        }
    }
}

/// Minor and major page faults, and ticks in user mode and in the kernel, from the text of
/// `/proc/PID/stat`.
fn stat(text: &str) -> [u64; 4] {
    // The program's name is in parentheses, and may contain anything.
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = fields.split(' ').collect();
    [7, 9, 11, 12].map(|at| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0))
}

fn cpu_ns(pid: Pid) -> u64 {
    let mut clock = 0;
    // SAFETY: the kernel writes one clock's id to a valid address.
    if unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &mut clock) } != 0 {
        return 0;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a valid address, or nothing.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_in_what_the_kernel_writes() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194304 100 5 3 2 40 60 0 0 20 0 1 0";
        assert_eq!(stat(text), [100, 3, 40, 60]);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let thread = Thread::read("1000 250 9\n", status);
        let expected =
            Thread { run_queue_ns: 250, voluntary_switches: 12, involuntary_switches: 3 };
        assert_eq!(thread, expected);
        assert_eq!(Thread::read("", ""), Thread::default());
    }

    #[test]
    fn a_process_is_seen_to_compute() {
        let own = rustix::process::getpid();
        let before = Usage::of(own);
        let begun = threadtoll_machine::disturbance::thread_cpu_ns();
        while threadtoll_machine::disturbance::thread_cpu_ns() - begun < 20_000_000 {
            std::hint::spin_loop();
        }
        let used = Usage::of(own).since(&before, 0);
        assert!(used.cpu_ns >= 20_000_000, "{used:?}");
        assert_eq!(used.user_ns + used.system_ns, used.cpu_ns);
        let rest = Usage::of(own).since(&before, 15_000_000);
        assert!(rest.cpu_ns >= used.cpu_ns - 15_000_000, "{rest:?} of {used:?}");
    }

    #[test]
    fn threads_that_begin_in_between_count_from_nothing() {
        let of = |switches| Thread { voluntary_switches: switches, ..Thread::default() };
        let before = Usage { threads: [(1, of(5)), (2, of(9))].into(), ..Usage::default() };
        let after = Usage { threads: [(1, of(7)), (3, of(4))].into(), ..Usage::default() };
        assert_eq!(after.since(&before, 0).voluntary_switches, 2 + 4);
    }
}

use std::fs::File;

use crate::disturbance::{number, read_cpu_lines};

/// Idle time and total time of each CPU since boot, in ticks of `USER_HZ` (mostly 10 ms), from
/// `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleTimes {
    /// CPU, idle time and total time, ascending by CPU.
    of_cpus: Vec<(u32, u64, u64)>,
}

impl IdleTimes {
    /// Reads the times of all CPUs that `/proc/stat` lists.
    pub fn read() -> IdleTimes {
        let mut lines = Vec::new();
        let read = File::open("/proc/stat").ok().and_then(|stat| read_cpu_lines(&stat, &mut lines));
        read.map_or_else(IdleTimes::default, |()| IdleTimes::of(&lines))
    }

    fn of(stat: &[u8]) -> IdleTimes {
        let of_cpu = |line: &[u8]| {
            let mut fields = line.split(|&byte| byte == b' ');
            let cpu = fields.next()?.strip_prefix(b"cpu").and_then(number)?;
            // Columns: user nice system idle iowait irq softirq steal. The first two include
            // guests' time.
            let times: Vec<u64> = fields.map_while(number).take(8).collect();
            let idle = times.get(3)? + times.get(4).unwrap_or(&0);
            Some((u32::try_from(cpu).ok()?, idle, times.iter().sum()))
        };
        IdleTimes { of_cpus: stat.split(|&byte| byte == b'\n').filter_map(of_cpu).collect() }
    }

    /// Mean number of idle CPUs since `earlier`, among the CPUs that satisfy `which`. `None` if no
    /// time has passed, or if none of these CPUs is known.
    pub fn idle_since(&self, earlier: &IdleTimes, which: impl Fn(u32) -> bool) -> Option<f64> {
        let mut idle_cpus = None;
        for &(cpu, idle, all) in self.of_cpus.iter().filter(|&&(cpu, ..)| which(cpu)) {
            let Some(before) = earlier.of_cpus.iter().find(|&&(before, ..)| before == cpu) else {
                continue;
            };
            // The kernel's idle times may decrease by a tick.
            let (idle, all) = (idle.saturating_sub(before.1), all.saturating_sub(before.2));
            if all > 0 {
                *idle_cpus.get_or_insert(0.0) += (idle as f64 / all as f64).min(1.0);
            }
        }
        idle_cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"cpu  30 0 10 60 0 0 0 0 0 0\n\
        cpu0 10 0 10 30 0 0 0 0 0 0\ncpu1 20 0 0 30 0 0 0 0 0 0\nintr 5 0\n";
    const AFTER: &[u8] = b"cpu  70 0 30 170 30 0 0 0 0 0\n\
        cpu0 20 0 20 100 10 0 0 0 0 0\ncpu1 50 0 10 70 20 0 0 0 9 9\nintr 9 0\n";

    #[test]
    fn idle_cpus_are_counted_over_the_time_between_two_readings() {
        let (before, after) = (IdleTimes::of(BEFORE), IdleTimes::of(AFTER));
        let idle = |which: fn(u32) -> bool| after.idle_since(&before, which);
        assert_eq!(idle(|cpu| cpu == 0), Some(0.8));
        assert_eq!(idle(|_| true), Some(0.8 + 0.6));
        assert_eq!(idle(|cpu| cpu == 7), None);
        assert_eq!(after.idle_since(&after, |_| true), None);
        assert_eq!(IdleTimes::of(b"").idle_since(&before, |_| true), None);
    }

    #[test]
    fn the_system_lists_this_cpu() {
        assert!(!IdleTimes::read().of_cpus.is_empty());
    }
}

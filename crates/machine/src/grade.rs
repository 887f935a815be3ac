//! Grades how well this machine is suited for measuring.
//!
//! Each finding caps the grade, and the lowest cap is the grade. Findings that explain figures
//! without distorting them only cause a warning. `threadtoll check --help` prints the limits
//! ([`THRESHOLDS`]); the comments on the constants give the reasons. A clock that cannot be trusted
//! is not graded: the gate rejects it.

mod warnings;

use threadtoll_record::{ClockFacts, CpuNoise, Grade, Warning};
use threadtoll_stats::upper_median;

pub use warnings::WARNINGS;

/// The limits, as printed by `threadtoll check --help`.
pub const THRESHOLDS: &str = "\
The grade is the worst of these. Unknown values do not count unless the table
says so.

                                      A           B           C           D
  clock: smallest step                to 2 ns     to 20 ns    to 200 ns   more
  clock: cost of a stamp              to 50 ns    to 150 ns   to 500 ns   more
  noise: time lost in gaps            to 0.2%     to 2%       to 10%      more
  noise: longest gap                  to 0.1 ms   to 3 ms     to 30 ms    more
  time stolen by the hypervisor       0           to 0.5%     to 5%       more
  time queued behind other programs   to 0.1%     to 1%       to 10%      more
  CPU quota of the control group      all CPUs                2 CPUs      less
  hypervisor                          none        any
  frequency governor                  performance other
  frequency boost                     off         on
  run-queue delay (schedstats)        shown       not shown
  noise not measured                              yes
  CPUs to run on                      2 or more               1
  which CPUs share a core             known                   unknown
  topology of another machine                                             yes

Noise is taken from the noisier half of the watched CPUs. A gap is a stretch of
at least 1 us in which a thread that only reads the clock did not run. SMT
siblings, CPUs hidden by a cpuset, timer slack and a missing membarrier are
reported but do not affect the grade.
";

/// Upper limits for grades A, B and C; beyond the last, the grade is D.
#[derive(Clone, Copy, Debug)]
struct GradeLimits(f64, f64, f64);

impl GradeLimits {
    fn grade(self, value: f64) -> Grade {
        match value {
            _ if value <= self.0 => Grade::A,
            _ if value <= self.1 => Grade::B,
            _ if value <= self.2 => Grade::C,
            _ => Grade::D,
        }
    }
}

/// The fastest hand-offs take about 20 ns: a step of 2 ns times one of them to within a tenth, and
/// a step of 20 ns is as long as one. Steps of 200 ns can time only mechanisms that sleep.
const STEP_NS: GradeLimits = GradeLimits(2.0, 20.0, 200.0);
/// A stamp lengthens each round trip by its own cost. The CPU's counter takes up to 50 ns, a slow
/// vDSO 150 ns, a system call 500 ns.
const READ_NS: GradeLimits = GradeLimits(50.0, 150.0, 500.0);
/// The scheduler's tick takes 0.1% of the time on bare metal (3 us, 250 times a second). On a
/// virtual machine, it takes 1% to 2%, because each timer access exits to the hypervisor. Above
/// 10%, every block is disturbed.
const LOST_SHARE: GradeLimits = GradeLimits(0.002, 0.02, 0.1);
/// Interrupts and softirqs take less than 100 us. A hypervisor that runs another guest returns
/// within a slice of 3 ms. Gaps of more than 30 ms mean an overcommitted host.
const MAX_NS: GradeLimits = GradeLimits(1e5, 3e6, 3e7);
/// Stricter than [`LOST_SHARE`], because steal comes in bursts.
const STEAL_SHARE: GradeLimits = GradeLimits(0.0, 0.005, 0.05);
/// Above 0.1%, another program is running; at 10%, that program is measured as well.
const QUEUED_SHARE: GradeLimits = GradeLimits(0.001, 0.01, 0.1);
const DEFAULT_TIMER_SLACK_NS: u64 = 50_000;
/// Load per CPU above which the machine counts as busy if run-queue delay is unknown.
const BUSY_LOAD: f64 = 0.5;

/// Facts from which a machine's grade follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings<'a> {
    /// The clock.
    pub clock: &'a ClockFacts,
    /// Number of online CPUs.
    pub cpus: usize,
    /// Number of CPUs that this process may use.
    pub allowed: usize,
    /// True if any two of the allowed CPUs are hardware threads of one core.
    pub siblings: bool,
    /// True if the kernel shows which CPUs share a core.
    pub topology_readable: bool,
    /// True if the topology is that of another machine.
    pub synthetic: bool,
    /// Quota of the control group, in CPUs.
    pub quota_cpus: Option<f64>,
    /// Frequency governors.
    pub governor: Option<&'a str>,
    /// True if frequency boost is on.
    pub boost: Option<bool>,
    /// The hypervisor.
    pub virtualised: Option<&'a str>,
    /// Timer slack in nanoseconds.
    pub timer_slack_ns: Option<u64>,
    /// True if membarrier works.
    pub membarrier: bool,
    /// True if the kernel accounts run-queue delay.
    pub schedstat: bool,
    /// Noise on the CPUs that were watched.
    pub noise: &'a [CpuNoise],
    /// Share of the time that the hypervisor stole while the CPUs were watched.
    pub steal_share: Option<f64>,
    /// Share of their time that the watching threads were queued behind other threads.
    pub queued_share: Option<f64>,
    /// Load average of the last minute, per CPU.
    pub load_per_cpu: Option<f64>,
}

/// The grade and the warnings, most severe first.
pub fn grade(findings: &Findings<'_>) -> (Grade, Vec<Warning>) {
    let mut found: Vec<(Grade, Warning)> =
        CHECKS.iter().filter_map(|check| check(findings)).collect();
    found.sort_by_key(|(cap, _)| std::cmp::Reverse(*cap));
    let grade = found.first().map_or(Grade::A, |(cap, _)| *cap);
    (grade, found.into_iter().map(|(_, warning)| warning).collect())
}

/// Returns a cap on the grade and a warning. A cap of A only warns.
type Check = fn(&Findings<'_>) -> Option<(Grade, Warning)>;

const CHECKS: [Check; 19] = [
    synthetic_topology,
    one_cpu,
    quota,
    noise,
    steal,
    busy,
    clock_step,
    clock_cost,
    topology_unreadable,
    virtual_machine,
    not_watched,
    no_schedstat,
    governor,
    boost,
    smt,
    cpuset,
    timer_slack,
    no_membarrier,
    load,
];

fn below_a(cap: Grade, warning: impl FnOnce() -> Warning) -> Option<(Grade, Warning)> {
    (cap > Grade::A).then(|| (cap, warning()))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 { format!("{percent:.0}%") } else { format!("{percent:.2}%") }
}

fn duration(ns: f64) -> String {
    match ns {
        _ if ns >= 1e6 => format!("{:.1} ms", ns / 1e6),
        _ if ns >= 1e3 => format!("{:.1} us", ns / 1e3),
        _ => format!("{ns:.1} ns"),
    }
}

fn synthetic_topology(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    found.synthetic.then(|| (Grade::D, warnings::synthetic_topology()))
}

fn one_cpu(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    (found.allowed < 2).then(|| (Grade::C, warnings::one_cpu()))
}

fn quota(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let quota = found.quota_cpus.filter(|&quota| quota < found.allowed as f64)?;
    let needed = found.allowed.min(2) as f64;
    let (cap, threads) = if quota < needed {
        (Grade::D, "two spinning threads")
    } else {
        (Grade::C, "more spinning threads than that")
    };
    Some((cap, warnings::quota(quota, found.allowed, threads)))
}

/// Share of time lost in gaps, and longest gap in nanoseconds. Each is the upper median over the
/// watched CPUs.
fn lost(found: &Findings<'_>) -> Option<(f64, f64)> {
    let median = |of: fn(&CpuNoise) -> f64| {
        upper_median(&mut found.noise.iter().map(of).collect::<Vec<_>>(), f64::total_cmp)
    };
    Some((median(|cpu| cpu.lost_share.get())?, median(|cpu| cpu.longest_ns.as_f64())?))
}

fn cap_of_noise((lost, longest): (f64, f64)) -> Grade {
    LOST_SHARE.grade(lost).max(MAX_NS.grade(longest))
}

/// Returns `true` if at least half of the lost time went to other programs.
fn taken_by_others(found: &Findings<'_>, lost: f64) -> bool {
    found
        .queued_share
        .is_some_and(|queued| QUEUED_SHARE.grade(queued) > Grade::A && queued >= lost / 2.0)
}

fn noise(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let (lost, longest) = lost(found).filter(|&(lost, _)| !taken_by_others(found, lost))?;
    below_a(cap_of_noise((lost, longest)), || {
        let of = |cpu: &CpuNoise| {
            let (lost, longest) = (cpu.lost_share.get(), cpu.longest_ns.as_f64());
            format!("CPU {} {}, longest {}", cpu.cpu, percent(lost), duration(longest))
        };
        let noisiest =
            found.noise.iter().max_by(|a, b| a.lost_share.get().total_cmp(&b.lost_share.get()));
        warnings::noise(match found.noise {
            all if all.len() <= 2 => all.iter().map(of).collect::<Vec<_>>().join("; "),
            _ => format!(
                "half of them lost {} or more, with a longest gap of {} or more; the worst is {}",
                percent(lost),
                duration(longest),
                noisiest.map(of).unwrap_or_default()
            ),
        })
    })
}

fn steal(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let share = found.steal_share?;
    below_a(STEAL_SHARE.grade(share), || warnings::steal(percent(share)))
}

fn busy(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let share = found.queued_share?;
    let noise = lost(found).filter(|&(lost, _)| taken_by_others(found, lost));
    let cap = QUEUED_SHARE.grade(share).max(noise.map_or(Grade::A, cap_of_noise));
    below_a(cap, || warnings::busy(percent(share)))
}

/// Used only if run-queue delay is unknown.
fn load(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let load =
        found.load_per_cpu.filter(|&load| found.queued_share.is_none() && load > BUSY_LOAD)?;
    Some((Grade::A, warnings::load(load)))
}

fn clock_step(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let step = found.clock.step_ns.get();
    below_a(STEP_NS.grade(step), || warnings::clock_step(step))
}

fn clock_cost(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let cost = found.clock.read_ns.get();
    below_a(READ_NS.grade(cost), || warnings::clock_cost(cost))
}

fn topology_unreadable(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    (!found.topology_readable).then(|| (Grade::C, warnings::topology_unreadable()))
}

fn virtual_machine(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    Some((Grade::B, warnings::virtual_machine(found.virtualised?)))
}

fn not_watched(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let unwatched = found.noise.is_empty() && !found.synthetic;
    unwatched.then(|| (Grade::B, warnings::not_watched()))
}

fn no_schedstat(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    (!found.schedstat).then(|| (Grade::B, warnings::no_schedstat()))
}

fn governor(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let governor = found.governor.filter(|&governor| governor != "performance")?;
    Some((Grade::B, warnings::governor(governor)))
}

fn boost(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    (found.boost == Some(true)).then(|| (Grade::B, warnings::boost()))
}

fn smt(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    found.siblings.then(|| (Grade::A, warnings::smt()))
}

fn cpuset(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let Findings { allowed, cpus, .. } = *found;
    (allowed < cpus).then(|| (Grade::A, warnings::cpuset(allowed, cpus)))
}

fn timer_slack(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    let slack = found.timer_slack_ns.filter(|&ns| ns > DEFAULT_TIMER_SLACK_NS)?;
    Some((Grade::A, warnings::timer_slack(duration(slack as f64))))
}

fn no_membarrier(found: &Findings<'_>) -> Option<(Grade, Warning)> {
    (!found.membarrier).then(|| (Grade::A, warnings::no_membarrier()))
}

#[cfg(test)]
mod tests {
    use threadtoll_record::{ClockSource, Ns, SignedRatio, Text};

    use super::*;

    const CLOCK: ClockFacts = ClockFacts {
        source: ClockSource::Tsc,
        step_ns: Ns::new(0.4),
        read_ns: Ns::new(20.0),
        invariant: true,
        tick_ns: Ns::new(0.4),
        drift_ppm: SignedRatio::new(1.0),
    };

    fn still_cpu(cpu: u32, lost_share: f64, longest_ns: u64) -> CpuNoise {
        CpuNoise {
            cpu,
            watched_ns: 500_000_000.into(),
            gaps: vec![],
            lost_share: lost_share.into(),
            longest_ns: longest_ns.into(),
        }
    }

    /// A tuned bare-metal machine at rest.
    fn best(noise: &[CpuNoise]) -> Findings<'_> {
        Findings {
            clock: &CLOCK,
            cpus: 8,
            allowed: 8,
            siblings: false,
            topology_readable: true,
            synthetic: false,
            quota_cpus: None,
            governor: Some("performance"),
            boost: Some(false),
            virtualised: None,
            timer_slack_ns: Some(50_000),
            membarrier: true,
            schedstat: true,
            noise,
            steal_share: Some(0.0),
            queued_share: Some(0.0),
            load_per_cpu: Some(0.1),
        }
    }

    fn graded(findings: &Findings<'_>) -> (Grade, Vec<Text>) {
        let (grade, warnings) = grade(findings);
        (grade, warnings.into_iter().map(|warning| warning.code).collect())
    }

    #[test]
    fn a_tuned_machine_at_rest_is_an_a_without_warnings() {
        let noise = [still_cpu(0, 0.001, 20_000), still_cpu(1, 0.001, 20_000)];
        assert_eq!(graded(&best(&noise)), (Grade::A, vec![]));
        let unknown = Findings {
            governor: None,
            boost: None,
            timer_slack_ns: None,
            steal_share: None,
            queued_share: None,
            load_per_cpu: None,
            ..best(&noise)
        };
        assert_eq!(graded(&unknown), (Grade::A, vec![]));
    }

    #[test]
    fn every_finding_caps_where_the_table_says() {
        let noise = [still_cpu(0, 0.001, 20_000), still_cpu(1, 0.001, 20_000)];
        let clock = |step_ns, read_ns| ClockFacts { step_ns, read_ns, ..CLOCK };
        let (step_10, step_100, step_500) = (
            clock(10.0.into(), 20.0.into()),
            clock(100.0.into(), 20.0.into()),
            clock(500.0.into(), 20.0.into()),
        );
        let (cost_100, cost_300, cost_900) = (
            clock(0.4.into(), 100.0.into()),
            clock(0.4.into(), 300.0.into()),
            clock(0.4.into(), 900.0.into()),
        );
        let base = || best(&noise);
        let table = [
            (Findings { clock: &step_10, ..base() }, Grade::B, "clock-step"),
            (Findings { clock: &step_100, ..base() }, Grade::C, "clock-step"),
            (Findings { clock: &step_500, ..base() }, Grade::D, "clock-step"),
            (Findings { clock: &cost_100, ..base() }, Grade::B, "clock-cost"),
            (Findings { clock: &cost_300, ..base() }, Grade::C, "clock-cost"),
            (Findings { clock: &cost_900, ..base() }, Grade::D, "clock-cost"),
            (Findings { virtualised: Some("kvm"), ..base() }, Grade::B, "virtual-machine"),
            (Findings { governor: Some("schedutil"), ..base() }, Grade::B, "governor"),
            (Findings { governor: Some("performance+powersave"), ..base() }, Grade::B, "governor"),
            (Findings { boost: Some(true), ..base() }, Grade::B, "boost"),
            (Findings { schedstat: false, ..base() }, Grade::B, "no-schedstat"),
            (Findings { noise: &[], ..base() }, Grade::B, "not-watched"),
            (Findings { steal_share: Some(0.004), ..base() }, Grade::B, "steal"),
            (Findings { steal_share: Some(0.04), ..base() }, Grade::C, "steal"),
            (Findings { steal_share: Some(0.06), ..base() }, Grade::D, "steal"),
            (Findings { queued_share: Some(0.005), ..base() }, Grade::B, "busy"),
            (Findings { queued_share: Some(0.05), ..base() }, Grade::C, "busy"),
            (Findings { queued_share: Some(0.5), ..base() }, Grade::D, "busy"),
            (Findings { quota_cpus: Some(4.0), ..base() }, Grade::C, "quota"),
            (Findings { quota_cpus: Some(1.5), ..base() }, Grade::D, "quota"),
            (Findings { topology_readable: false, ..base() }, Grade::C, "topology-unreadable"),
            (Findings { synthetic: true, ..base() }, Grade::D, "synthetic-topology"),
            (Findings { siblings: true, ..base() }, Grade::A, "smt"),
            (Findings { allowed: 4, ..base() }, Grade::A, "cpuset"),
            (Findings { timer_slack_ns: Some(1_000_000), ..base() }, Grade::A, "timer-slack"),
            (Findings { membarrier: false, ..base() }, Grade::A, "no-membarrier"),
            (Findings { queued_share: None, load_per_cpu: Some(0.9), ..base() }, Grade::A, "busy"),
        ];
        for (findings, expected, code) in table {
            assert_eq!(graded(&findings), (expected, vec![code.into()]), "{findings:?}");
        }
        // A quota of all CPUs limits nothing.
        assert_eq!(graded(&Findings { quota_cpus: Some(8.0), ..base() }).0, Grade::A);
        let alone = Findings { allowed: 1, ..base() };
        assert_eq!(graded(&alone), (Grade::C, vec!["one-cpu".into(), "cpuset".into()]));
    }

    #[test]
    fn one_cause_of_noise_has_one_warning() {
        let noise = [still_cpu(0, 0.1, 9_000_000), still_cpu(1, 0.1, 9_000_000)];
        let of = |queued| graded(&Findings { queued_share: Some(queued), ..best(&noise) });
        assert_eq!(of(0.0), (Grade::C, vec!["noise".into()]));
        assert_eq!(of(0.08), (Grade::C, vec!["busy".into()]));
        let (grade, codes) = of(0.02);
        assert_eq!((grade, codes.len()), (Grade::C, 2), "other programs took a fifth: {codes:?}");
    }

    #[test]
    fn noise_is_that_of_the_noisier_half() {
        let of = |cpus: &[(f64, u64)]| {
            let noise: Vec<CpuNoise> = cpus
                .iter()
                .zip(0..)
                .map(|(&(lost, longest), cpu)| still_cpu(cpu, lost, longest))
                .collect();
            graded(&best(&noise)).0
        };
        assert_eq!(of(&[(0.001, 20_000), (0.015, 20_000)]), Grade::B, "of two, the noisier");
        assert_eq!(
            of(&[(0.001, 20_000), (0.001, 20_000), (0.5, 90_000_000)]),
            Grade::A,
            "one of three is an outlier"
        );
        assert_eq!(of(&[(0.05, 20_000); 2]), Grade::C);
        assert_eq!(of(&[(0.2, 20_000); 2]), Grade::D);
        assert_eq!(of(&[(0.001, 1_000_000); 2]), Grade::B);
        assert_eq!(of(&[(0.001, 10_000_000); 2]), Grade::C);
        assert_eq!(of(&[(0.001, 100_000_000); 2]), Grade::D);
    }

    #[test]
    fn a_quiet_virtual_machine_is_a_b_and_the_gravest_stands_first() {
        let noise = [still_cpu(0, 0.012, 80_000), still_cpu(1, 0.015, 900_000)];
        let clock = ClockFacts { step_ns: Ns::new(10.0), ..CLOCK };
        let quiet = Findings {
            clock: &clock,
            cpus: 2,
            allowed: 2,
            virtualised: Some("kvm"),
            governor: None,
            boost: None,
            ..best(&noise)
        };
        assert_eq!(graded(&quiet).0, Grade::B);
        let (grade, codes) = graded(&Findings { steal_share: Some(0.2), ..quiet });
        assert_eq!((grade, codes[0].as_str()), (Grade::D, "steal"));
    }

    #[test]
    fn warnings_say_what_to_do_in_whole_sentences() {
        let noise = [still_cpu(3, 0.2, 90_000_000)];
        let worst = Findings {
            clock: &ClockFacts { step_ns: Ns::new(500.0), read_ns: Ns::new(900.0), ..CLOCK },
            allowed: 1,
            siblings: true,
            topology_readable: false,
            synthetic: true,
            quota_cpus: Some(0.5),
            governor: Some("powersave"),
            boost: Some(true),
            virtualised: Some("xen"),
            timer_slack_ns: Some(1_000_000),
            membarrier: false,
            schedstat: false,
            steal_share: Some(0.3),
            queued_share: Some(0.09),
            ..best(&noise)
        };
        let (_, warnings) = grade(&worst);
        assert_eq!(
            warnings.len(),
            CHECKS.len() - 2,
            "all but the watch that was made and the load it replaces"
        );
        for warning in &warnings {
            assert!(
                warning.text.ends_with('.') && warning.text.starts_with(char::is_uppercase),
                "{warning:?}"
            );
            assert!(!warning.text.contains("  "), "{warning:?}");
        }
        let quota = warnings.iter().find(|warning| warning.code == "quota").unwrap();
        assert!(quota.text.contains("0.50 CPUs, spread over 1 CPUs"), "{quota:?}");
        let noise = warnings.iter().find(|warning| warning.code == "noise").unwrap();
        assert!(noise.text.contains("interruptions: CPU 3 20%, longest 90.0 ms."), "{noise:?}");
    }

    #[test]
    fn the_printed_thresholds_are_those_that_are_used() {
        let row = |name: &str, limits: GradeLimits, unit: &str, scale: f64| {
            let line = THRESHOLDS.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            let cells: Vec<&str> =
                line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1).collect();
            let wanted = [limits.0, limits.1, limits.2].map(|limit| match limit {
                0.0 => "0".to_owned(),
                limit => format!("to {}{unit}", (limit * scale * 1e6).round() / 1e6),
            });
            assert_eq!(cells, [wanted[0].as_str(), &wanted[1], &wanted[2], "more"], "{line}");
        };
        row("clock: smallest step", STEP_NS, " ns", 1.0);
        row("clock: cost of a stamp", READ_NS, " ns", 1.0);
        row("noise: time lost", LOST_SHARE, "%", 100.0);
        row("noise: longest gap", MAX_NS, " ms", 1e-6);
        row("time stolen", STEAL_SHARE, "%", 100.0);
        row("time queued", QUEUED_SHARE, "%", 100.0);
        assert!(THRESHOLDS.lines().all(|line| line.chars().count() <= 110));
    }
}

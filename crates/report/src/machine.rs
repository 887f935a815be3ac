use std::collections::BTreeSet;

use threadtoll_record::{ClockSource, CpuNoise, CpuPlace, Grade, Machine, Text};

use crate::clean::clean;
use crate::label::{cpus, plural};
use crate::table::{self, Cell, Label, Section};
use crate::units::{count, digits, round_time, share, time};

pub(crate) fn meaning(grade: Grade) -> &'static str {
    match grade {
        Grade::A => "no known obstacle.",
        Grade::B => {
            "medians of this run are comparable, even if they differ little; tails may include machine noise."
        }
        Grade::C => {
            "compare figures within this run only: another run may have other medians, and tails include machine noise."
        }
        Grade::D => "trust only ratios of rows whose measurements were interleaved.",
    }
}

pub(crate) fn facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let unknown =
        |text: &Option<Text>, none: &str| text.as_deref().map_or_else(|| none.into(), clean);
    let mut allowed = cpus(&machine.allowed);
    if machine.allowed.len() != machine.cpus as usize {
        allowed.push_str(&format!(", {} of {}", machine.allowed.len(), machine.cpus));
    }
    let quota = machine.quota_cpus.map_or_else(
        || "no quota".into(),
        |quota| format!("a quota of {} CPUs", digits(quota.get())),
    );
    let boost = match machine.boost {
        Some(true) => "boost on",
        Some(false) => "boost off",
        None => "boost unknown",
    };
    let clock = &machine.clock;
    let source = match clock.source {
        ClockSource::Tsc => "time-stamp counter",
        ClockSource::Cntvct => "generic timer",
        ClockSource::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        ClockSource::Simulated => "simulated",
    };
    let invariant = if clock.invariant { "invariant" } else { "not invariant" };
    vec![
        ("topology", topology(&machine.topology)),
        ("may use", format!("{allowed}; {quota}")),
        ("kernel", format!("Linux {} on {}", clean(&machine.kernel), clean(&machine.arch))),
        ("hypervisor", unknown(&machine.virtualised, "none")),
        ("frequency", format!("governor {}, {boost}", unknown(&machine.governor, "unknown"))),
        ("idle driver", unknown(&machine.idle_driver, "none")),
        (
            "timer slack",
            machine.timer_slack_ns.map_or_else(|| "unknown".into(), |ns| round_time(ns.as_f64())),
        ),
        ("membarrier", if machine.membarrier { "works" } else { "does not work" }.into()),
        (
            "clock",
            format!(
                "{source}, {invariant}: step {}, read {}, tick {}, drift {} ppm",
                time(clock.step_ns.get()),
                time(clock.read_ns.get()),
                time(clock.tick_ns.get()),
                digits(clock.drift_ppm.get())
            ),
        ),
    ]
}

/// Such as `2 nodes, 4 last-level caches, 32 cores with 2 hardware threads each`.
fn topology(places: &[CpuPlace]) -> String {
    let different = |of: &dyn Fn(&CpuPlace) -> Option<u32>| {
        places.iter().filter_map(of).collect::<BTreeSet<u32>>().len() as u64
    };
    let cores = different(&|place| Some(place.core));
    let mut parts = vec![plural(different(&|place| Some(place.node)), "node")];
    match different(&|place| place.llc) {
        0 => parts.push("caches unknown".into()),
        caches => parts.push(plural(caches, "last-level cache")),
    }
    let threads: BTreeSet<usize> = places.iter().map(|place| place.smt.len().max(1)).collect();
    let each = match (threads.first(), threads.last()) {
        (Some(1), Some(1)) | (None, _) => "one hardware thread each".into(),
        (Some(least), Some(most)) if least == most => format!("{most} hardware threads each"),
        (Some(least), most) => {
            format!("{least} to {} hardware threads each", most.unwrap_or(least))
        }
    };
    parts.push(format!("{}, {each}", plural(cores, "core")));
    let kinds: BTreeSet<&str> = places.iter().filter_map(|place| place.kind.as_deref()).collect();
    for kind in kinds.iter().take(4) {
        let of = places.iter().filter(|place| place.kind.as_deref() == Some(kind)).count();
        parts.push(format!("{} {}", count(of as u64), clean(kind)));
    }
    parts.join(", ")
}

/// At most `max_cpus` CPUs, those that lost the most time, sorted by CPU number.
pub(crate) fn noisiest(noise: &[CpuNoise], max_cpus: usize) -> Vec<&CpuNoise> {
    let mut shown: Vec<&CpuNoise> = noise.iter().collect();
    if shown.len() > max_cpus {
        shown.sort_by(|a, b| b.lost_share.get().total_cmp(&a.lost_share.get()));
        shown.truncate(max_cpus);
        shown.sort_by_key(|cpu| cpu.cpu);
    }
    shown
}

/// Lower bounds of the gap classes, in ascending order. Files that threadtoll wrote have at most
/// six classes.
pub(crate) fn classes(noise: &[&CpuNoise]) -> Vec<u64> {
    let bounds: BTreeSet<u64> = noise
        .iter()
        .flat_map(|cpu| cpu.gaps.iter().take(16).map(|(bound, _)| bound.get()))
        .collect();
    bounds.into_iter().take(6).collect()
}

/// Names of the classes as ranges: `1–10 µs`, and `≥1 ms` for the last.
pub(crate) fn class_names(classes: &[u64]) -> Vec<String> {
    let named = |(index, low): (usize, &u64)| match classes.get(index + 1) {
        Some(high) => {
            let (low, high) = (round_time(*low as f64), round_time(*high as f64));
            match (low.split_once(' '), high.split_once(' ')) {
                (Some((figure, unit)), Some((_, other))) if unit == other => {
                    format!("{figure}–{high}")
                }
                _ => format!("{low}–{high}"),
            }
        }
        None => format!("≥{}", round_time(*low as f64)),
    };
    classes.iter().enumerate().map(named).collect()
}

pub(crate) fn gaps(noise: &CpuNoise, class: u64) -> u64 {
    noise
        .gaps
        .iter()
        .filter(|(bound, _)| *bound == class)
        .fold(0, |sum, (_, gaps)| sum.saturating_add(gaps.get()))
}

pub(crate) fn noise(shown: &[&CpuNoise]) -> Section {
    type Column<'a> = table::Column<'static, &'a CpuNoise>;
    let mut columns = vec![
        Column::new("", "lost", 0, |cpu| Cell::figure(Some(cpu.lost_share.get()), share)),
        Column::new("", "longest gap", 1, |cpu| Cell::figure(Some(cpu.longest_ns.as_f64()), time)),
    ];
    let classes = classes(shown);
    for (class, name) in classes.iter().copied().zip(class_names(&classes)) {
        columns.push(Column::new("gaps by length", name, 2, move |cpu| {
            let gaps = gaps(cpu, class);
            Cell::new(Some(gaps as f64), count(gaps))
        }));
    }
    columns.push(Column::new("", "watched", 3, |cpu| {
        Cell::figure(Some(cpu.watched_ns.as_f64()), round_time)
    }));
    Section::new("", "noise", columns, shown, |cpu| Label::new(format!("CPU {}", cpu.cpu)))
}

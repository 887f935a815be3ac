//! The machine, and whether it is fit to be measured.

use std::collections::BTreeSet;

use threadtoll_record::{ClockSource, CpuNoise, CpuPlace, Grade, Machine};

use super::table::{Column, Table};
use super::{BAD, BOLD, DIM, GOOD, MIDDLING, PLAIN, Style};
use crate::clean::clean;
use crate::rows::cpus;
use crate::text::ladder::plural;
use crate::units::{count, digits, round_time, share, time};

/// No more CPUs than this are shown one by one; of more, the noisiest.
const MOST_CPUS: usize = 16;

/// Draws what is known about the machine, its grade, and each warning with its advice.
pub fn machine(machine: &Machine, style: &Style) -> String {
    let mut text = style.simulated(machine.simulated);
    if machine.synthetic {
        let said =
            "The topology was read from a given tree, not from this machine; nothing was measured.";
        text.push_str(&style.paragraph(BAD, said));
    }
    text.push_str(&style.paragraph(BOLD, clean(&machine.cpu).trim()));
    text.push('\n');
    let facts = facts(machine);
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, fact) in &facts {
        let lines = style.wrap(&format!("{name:width$}  {fact}"), width + 2);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(name).filter(|_| index == 0) {
                Some(rest) => text.push_str(&format!("{}{rest}\n", style.paint(DIM, name))),
                None => text.push_str(&format!("{line}\n")),
            }
        }
    }
    if !machine.noise.is_empty() {
        text.push('\n');
        text.push_str(&noise(&machine.noise, style));
    }
    text.push('\n');
    let with = match machine.grade {
        Grade::A | Grade::B => GOOD,
        Grade::C => MIDDLING,
        Grade::D => BAD,
    };
    let grade = style.wrap(&format!("Grade {}: {}", machine.grade, meaning(machine.grade)), 0);
    for (index, line) in grade.iter().enumerate() {
        match line.split_once(": ").filter(|_| index == 0) {
            Some((grade, rest)) => {
                text.push_str(&format!("{}: {rest}\n", style.paint(with, grade)))
            }
            None => text.push_str(&format!("{line}\n")),
        }
    }
    for warning in &machine.warnings {
        let lines = style.wrap(&format!("! {}", clean(&warning.text)), 2);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix("! ").filter(|_| index == 0) {
                Some(rest) => text.push_str(&format!("{} {rest}\n", style.paint(MIDDLING, "!"))),
                None => text.push_str(&format!("{line}\n")),
            }
        }
    }
    text
}

/// What a grade promises.
pub(crate) fn meaning(grade: Grade) -> &'static str {
    match grade {
        Grade::A => "nothing that is known to matter stands in the way.",
        Grade::B => "small figures hold; tails may carry the machine’s noise.",
        Grade::C => "medians hold; tails are the machine’s as much as the mechanism’s.",
        Grade::D => "only ratios within one group mean something.",
    }
}

/// Everything that is known about the machine, each with its name.
pub(crate) fn facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let unknown =
        |text: &Option<String>, none: &str| text.as_deref().map_or_else(|| none.into(), clean);
    let mut allowed = cpus(&machine.allowed);
    if machine.allowed.len() != machine.cpus as usize {
        allowed.push_str(&format!(", {} of {}", machine.allowed.len(), machine.cpus));
    }
    let quota = machine
        .quota_cpus
        .map_or_else(|| "no quota".into(), |quota| format!("a quota of {} CPUs", digits(quota)));
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
            machine.timer_slack_ns.map_or_else(|| "unknown".into(), |ns| round_time(ns as f64)),
        ),
        ("membarrier", if machine.membarrier { "works" } else { "does not work" }.into()),
        (
            "clock",
            format!(
                "{source}, {invariant}: step {}, read {}, tick {}, drift {} ppm",
                time(clock.step_ns),
                time(clock.read_ns),
                time(clock.tick_ns),
                digits(clock.drift_ppm)
            ),
        ),
    ]
}

/// `2 nodes, 4 last-level caches, 32 cores with 2 hardware threads each`.
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

/// The CPUs whose noise is shown, in order: all, or the `most` that lost most.
pub(crate) fn noisiest(noise: &[CpuNoise], most: usize) -> Vec<&CpuNoise> {
    let mut shown: Vec<&CpuNoise> = noise.iter().collect();
    if shown.len() > most {
        shown.sort_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
        shown.truncate(most);
        shown.sort_by_key(|cpu| cpu.cpu);
    }
    shown
}

/// The lower bounds of the classes of gaps, at most six: more would be none of ours.
pub(crate) fn classes(noise: &[&CpuNoise]) -> Vec<u64> {
    let bounds: BTreeSet<u64> =
        noise.iter().flat_map(|cpu| cpu.gaps.iter().take(16).map(|(bound, _)| *bound)).collect();
    bounds.into_iter().take(6).collect()
}

/// The classes by the lengths that fall into them: `1–10 µs`, and `≥1 ms` of the last.
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

/// How many gaps of one class a CPU had.
pub(crate) fn gaps(noise: &CpuNoise, class: u64) -> u64 {
    noise
        .gaps
        .iter()
        .filter(|(bound, _)| *bound == class)
        .fold(0, |sum, (_, gaps)| sum.saturating_add(*gaps))
}

fn noise(noise: &[CpuNoise], style: &Style) -> String {
    let shown = noisiest(noise, MOST_CPUS);
    let column = |group: &str, head: String, rank: u8, cell: &dyn Fn(&CpuNoise) -> String| Column {
        group: group.into(),
        head,
        rank,
        cells: shown.iter().map(|cpu| (cell(cpu), PLAIN)).collect(),
    };
    let mut columns = vec![
        column("", "lost".into(), 0, &|cpu| share(cpu.lost_share)),
        column("", "longest gap".into(), 1, &|cpu| time(cpu.longest_ns as f64)),
    ];
    let classes = classes(&shown);
    for (class, name) in classes.iter().zip(class_names(&classes)) {
        columns.push(column("gaps by length", name, 2, &|cpu| count(gaps(cpu, *class))));
    }
    columns.push(column("", "watched".into(), 3, &|cpu| round_time(cpu.watched_ns as f64)));
    let labels = shown.iter().map(|cpu| format!("CPU {}", cpu.cpu)).collect();
    let (mut text, _) = Table { head: "noise".into(), labels, columns }.draw(style);
    if shown.len() < noise.len() {
        let left = format!("The noisiest {} of {} CPUs.", shown.len(), noise.len());
        text.push_str(&style.paragraph(DIM, &left));
    }
    text
}

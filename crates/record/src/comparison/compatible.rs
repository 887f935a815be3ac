use std::collections::BTreeSet;

use crate::file::Results;
use crate::{ClockSource, Grade, Machine, Text};

use super::Difference;

/// Reason why two runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// Both files contain the same run.
    #[error("both files hold the run {0}, so there is nothing to compare")]
    SameRun(Text),
    /// No cell with a figure is in both files.
    #[error("the two files have no measurement in common")]
    NothingInCommon,
    /// Only one of the two runs is simulated.
    #[error("one of the two runs is simulated, the other is real")]
    Simulated,
    /// The machines differ.
    #[error("the two runs were made on different machines: {0}")]
    Machine(String),
    /// The clocks differ.
    #[error("the two runs were timed by different clocks: {} and {}", name(*.0), name(*.1))]
    Clock(ClockSource, ClockSource),
    /// One of the machines had grade D, so its figures can only be compared within a group.
    #[error(
        "the machine had grade D in {}, so its figures cannot be compared with those of another run",
        if *.in_new { "NEW" } else { "BASE" }
    )]
    Grade {
        /// True if the second run's machine had grade D, false if the first one's had.
        in_new: bool,
    },
}

impl Incompatible {
    /// Returns `true` if the files themselves are unsuitable, rather than the conditions under
    /// which they were measured.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Incompatible::SameRun(_) | Incompatible::NothingInCommon)
    }
}

fn name(source: ClockSource) -> &'static str {
    match source {
        ClockSource::Tsc => "tsc",
        ClockSource::Cntvct => "cntvct",
        ClockSource::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        ClockSource::Simulated => "a simulated clock",
    }
}

pub(super) fn check(base: &Results, new: &Results) -> Result<(), Incompatible> {
    let (one, other) = (&base.machine, &new.machine);
    if one.simulated != other.simulated {
        return Err(Incompatible::Simulated);
    }
    // Simulated runs with the same seed have the same ID, even if they are different runs.
    if one.run == other.run && (!one.simulated || base.records() == new.records()) {
        return Err(Incompatible::SameRun(one.run.clone()));
    }
    if let Some(difference) = different_machines(one, other) {
        return Err(Incompatible::Machine(difference));
    }
    if one.clock.source != other.clock.source {
        return Err(Incompatible::Clock(one.clock.source, other.clock.source));
    }
    if let Some(at) = [one, other].iter().position(|machine| machine.grade == Grade::D) {
        return Err(Incompatible::Grade { in_new: at == 1 });
    }
    Ok(())
}

fn different_machines(base: &Machine, new: &Machine) -> Option<String> {
    let texts = [
        // The name of a simulated CPU contains the seed.
        (!base.simulated).then_some(("CPU", &base.cpu, &new.cpu)),
        Some(("architecture", &base.arch, &new.arch)),
    ];
    for (what, base, new) in texts.into_iter().flatten() {
        if base != new {
            return Some(format!("{what} {base} and {new}"));
        }
    }
    if base.cpus != new.cpus {
        return Some(format!("{} and {} CPUs", base.cpus, new.cpus));
    }
    if base.topology != new.topology {
        return Some("their CPUs share caches and cores differently".into());
    }
    if base.virtualised != new.virtualised {
        let place = |machine: &Machine| match &machine.virtualised {
            Some(hypervisor) => format!("a virtual machine ({hypervisor})"),
            None => "bare metal".into(),
        };
        return Some(format!("{} and {}", place(base), place(new)));
    }
    None
}

/// Differences that do not prevent a comparison, those of the machine first.
pub(super) fn differences(base: &Results, new: &Results) -> Vec<Difference> {
    let (one, other) = (&base.machine, &new.machine);
    let ns = |ns: f64| format!("{ns} ns");
    let on = |on: bool| if on { "on" } else { "off" }.to_string();
    let text = |text: &Option<Text>| text.as_ref().map(ToString::to_string);
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    type Value<'a> = &'a dyn Fn(&Machine) -> Option<String>;
    let of_machine: [(&str, Value<'_>); 11] = [
        ("kernel", &|machine| Some(machine.kernel.to_string())),
        ("governor", &|machine| text(&machine.governor)),
        ("boost", &|machine| machine.boost.map(on)),
        ("idle driver", &|machine| text(&machine.idle_driver)),
        ("timer slack", &|machine| machine.timer_slack_ns.map(|slack| ns(slack.as_f64()))),
        ("membarrier", &|machine| Some(on(machine.membarrier))),
        ("CPUs allowed", &|machine| Some(list(&machine.allowed))),
        ("CPU quota", &|machine| machine.quota_cpus.map(|cpus| cpus.to_string())),
        ("clock step", &|machine| Some(ns(machine.clock.step_ns.get()))),
        ("grade", &|machine| Some(machine.grade.to_string())),
        ("tool", &|machine| Some(machine.tool.to_string())),
    ];
    let mut differences: Vec<Difference> = Vec::new();
    let mut add = |property: &str, base: Option<String>, new: Option<String>| {
        if base != new {
            let [base, new] = [base, new].map(|value| value.map(Text::from));
            differences.push(Difference { property: property.into(), base, new });
        }
    };
    for (property, value) in of_machine {
        add(property, value(one), value(other));
    }
    let command = |results: &Results| results.plan.command.first().map(ToString::to_string);
    add("command", command(base), command(new));
    let options: BTreeSet<&String> =
        [base, new].iter().flat_map(|results| results.plan.options.keys()).collect();
    // A seed does not affect what is measured.
    for option in options.into_iter().filter(|option| !option.contains("seed")) {
        let value = |results: &Results| results.plan.options.get(option).map(ToString::to_string);
        if *option != "simulated_machine" {
            add(option, value(base), value(new));
        }
    }
    differences
}

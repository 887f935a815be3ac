use threadtoll_lab::plan::{CpuSelection, split_blocks};
use threadtoll_lab::real::missing_capabilities;
use threadtoll_record::{Plan, Repeat, Text};
use threadtoll_report::left_out;

use super::command::{Checked, MeasureCommand};
use super::testbed::Testbed;
use crate::console;
use crate::failure::Failure;
use crate::registry::registry;

pub(super) fn make<C: MeasureCommand>(
    checked: &Checked<'_, C>,
    testbed: &Testbed,
) -> Result<Plan, Failure> {
    let (common, machine) = (&checked.common, &testbed.machine);
    let site = match &common.cpus {
        Some(cpus) => CpuSelection::named(&testbed.topology, cpus),
        None => CpuSelection::whole(&testbed.topology, &machine.allowed),
    };
    let measurable = !machine.simulated && !machine.synthetic;
    let site =
        if measurable { site.without(missing_capabilities(&registry().mechanisms)) } else { site };
    let (mut groups, refused) = C::plan(&checked.request, common, &site);
    if C::SPLITS_BLOCKS {
        split_blocks(&mut groups, &machine.noise);
    }
    if !checked.args.quiet {
        for left_out in left_out(&refused) {
            console::note(&format!("left out: {left_out}."));
        }
    }
    if groups.is_empty() {
        let why = refused.first().map_or("nothing can be measured", |refused| refused.why.as_str());
        let hint = if site.pool.len() > 1 { C::NOTHING_LEFT } else { "allow another CPU" };
        return Err(Failure::refused(format!("nothing is left to measure: {why}")).hint(hint));
    }
    let after_ns = common.repeat_ns.or_else(|| C::repeat_ns(&checked.request, common));
    let repeat = after_ns.filter(|ns| *ns > 0).map(|after_ns| Repeat { group: 0, after_ns });
    if repeat.is_some() {
        groups.extend(groups.first().cloned());
    }
    let command = std::env::args_os()
        .skip(1)
        .map(|argument| Text::from(&*argument.to_string_lossy()))
        .collect();
    Ok(Plan {
        folded: None,
        run: machine.run.clone(),
        command,
        seed: common.seed(),
        over_ns: common.over_ns(),
        processes: match common.relaunch {
            Some(processes) => processes as u32,
            None => C::processes(&checked.request),
        },
        options: checked.options.clone(),
        repeat,
        until_saturated: C::until_saturated(&checked.request),
        refused,
        groups,
    })
}

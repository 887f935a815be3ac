//! Blocks during which something else happened to the CPUs.

use threadtoll_record::{Cause, DisturbanceSummary, fold};

/// Returns `true` if the share of disturbed blocks asks for another measurement.
pub(crate) fn too_disturbed(summary: &DisturbanceSummary) -> bool {
    f64::from(summary.disturbed) > fold::DISTURBED_SHARE * f64::from(summary.blocks)
}

pub(crate) fn sum<'d>(
    summaries: impl Iterator<Item = &'d DisturbanceSummary>,
) -> DisturbanceSummary {
    let mut sum = DisturbanceSummary::default();
    for summary in summaries {
        sum.blocks = sum.blocks.saturating_add(summary.blocks);
        sum.disturbed = sum.disturbed.saturating_add(summary.disturbed);
        for (cause, blocks) in &summary.causes {
            let total = sum.causes.entry(*cause).or_insert(0);
            *total = total.saturating_add(*blocks);
        }
    }
    sum
}

/// A cause in words.
pub(crate) fn description(cause: Cause) -> &'static str {
    match cause {
        Cause::ReferenceDrift => {
            "the reference moved by more than 10% around the block: the machine changed its pace"
        }
        Cause::Migration => "a pinned end ran on another CPU than it should",
        Cause::InvoluntarySwitch => "an end was pushed off its CPU by another thread",
        Cause::RunQueueDelay => "an end was ready and had to wait for a CPU",
        Cause::Steal => "the hypervisor took the CPU away",
        Cause::Gap => {
            "time vanished while an end spun: an interrupt, or something below the kernel"
        }
        Cause::PageFault => "memory had to be brought in",
        Cause::Throttled => "a quota of the control group or the heat held the CPUs back",
    }
}

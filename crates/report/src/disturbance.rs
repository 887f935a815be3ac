use threadtoll_record::{Cause, DisturbanceSummary, fold};

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

pub(crate) fn description(cause: Cause) -> &'static str {
    match cause {
        Cause::ReferenceDrift => {
            "the time of the reference hand-off changed by more than 10% around the block: the machine changed its speed"
        }
        Cause::WorkDrift => {
            "threads that share nothing did over 10% more or less work around the block than when the row was predicted: the CPUs share their power with each other or with other guests"
        }
        Cause::Migration => "a pinned thread ran on the wrong CPU",
        Cause::InvoluntarySwitch => "another thread preempted a measured thread",
        Cause::RunQueueDelay => "a thread was ready but had to wait for a CPU",
        Cause::Steal => "the hypervisor took the CPU away",
        Cause::Gap => "a spinning thread lost time to an interrupt, the hypervisor or firmware",
        Cause::PageFault => "a page had to be brought into memory",
        Cause::Throttled => "the control group's quota or the temperature throttled the CPUs",
    }
}

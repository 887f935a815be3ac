use threadtoll_record::file::Results;
use threadtoll_record::{Plan, Repeat, unix_ns};

use super::groups::estimate_ns;

/// Resolution of the times in results files.
const TIMESTAMP_NS: i128 = 1_000_000;

/// Estimated time for the unfinished groups of a run, plus the wait before its last group. If the
/// plan skips groups above saturation, this is an upper limit. `now_ns` is the time since the Unix
/// epoch.
pub fn remaining_ns(results: &Results, now_ns: i128) -> u64 {
    let plan = &results.plan;
    let complete = results.complete_groups();
    let measuring_ns = |from: usize, to: usize| {
        let unfinished = (from..to).filter(|index| !complete[*index]);
        let group_ns = |index| estimate_ns([&*results.remaining_cells(index)], plan.processes);
        unfinished.map(group_ns).fold(0, u64::saturating_add)
    };
    let count = plan.groups.len();
    let wait_ns = plan.repeat.map_or(0, |Repeat { group, .. }| {
        // Groups before the last one are measured during the wait.
        let (last, measured) = (count - 1, results.groups[group].records.is_some());
        let between_ns = measuring_ns(if measured { 0 } else { group + 1 }, last);
        wait_ns(results, last, now_ns).saturating_sub(between_ns)
    });
    measuring_ns(0, count).saturating_add(wait_ns)
}

/// Time until a group may be measured: zero, unless the group repeats one that was measured
/// recently.
pub fn wait_ns(results: &Results, group: usize, now_ns: i128) -> u64 {
    let Results { plan, groups, .. } = results;
    let Plan { repeat: Some(Repeat { after_ns, .. }), .. } = plan else { return 0 };
    let Some(first) = plan.repeated_by(group) else { return 0 };
    if groups[group].records.is_some() {
        return 0;
    }
    let records = groups[first].records.iter().flatten();
    let ended_ns = records.filter_map(|record| unix_ns(&record.at)).max();
    match ended_ns {
        // Never more than the full wait, even if the system's clock was set back.
        Some(ended_ns) => (ended_ns + TIMESTAMP_NS + i128::from(*after_ns) - now_ns)
            .clamp(0, i128::from(*after_ns)) as u64,
        None => *after_ns,
    }
}

use threadtoll_record::{Cell, CpuNoise, Kind, Placement, PlannedCell};

/// Minimum length of a gap (an interval in which a CPU is taken away) that spoils a block. Shorter
/// gaps are interrupts, which no block avoids.
const SPOILS_NS: u64 = 100_000;
/// Minimum distance of gaps, in lengths of split blocks, so that most blocks contain no gap.
const GAP_DISTANCE: f64 = 3.0;
/// Minimum length of a split block: enough for a warm-up and a few exchanges of mechanisms that
/// sleep.
const MIN_NS: u64 = 2_000_000;
const MAX_PARTS: u64 = 6;

/// Splits blocks into shorter ones of the same total time if something, such as a hypervisor, takes
/// the CPUs away every few milliseconds. Most of the short blocks then fall between two such gaps.
///
/// Groups with free threads, or with threads that share a CPU, keep their long blocks, because the
/// effects of scheduling show only in long blocks.
pub fn split_blocks(groups: &mut [Vec<PlannedCell>], noise: &[CpuNoise]) {
    let Some(calm_ns) = calm_ns(noise) else { return };
    let wanted_ns = ((calm_ns / GAP_DISTANCE) as u64).max(MIN_NS);
    for group in groups {
        let scheduled = |cell: &Cell| cell.placement == Placement::Free || cell.oversubscribed();
        // Blocks that must stay long: open loops and floods take a while to reach a steady state,
        // and `depth` first fills its queues.
        let settles = |planned: &PlannedCell| {
            matches!(planned.kind(), Kind::OpenLoop | Kind::Depth | Kind::SendCall)
        };
        if group.iter().any(|planned| scheduled(&planned.cell) || settles(planned)) {
            continue;
        }
        let longest_ns =
            group.iter().map(|planned| planned.budget.stretch_ns.max(planned.budget.stamped_ns));
        let parts = longest_ns.max().unwrap_or(0).div_ceil(wanted_ns).clamp(1, MAX_PARTS);
        for budget in group.iter_mut().map(|planned| &mut planned.budget) {
            let rounds = u64::from(budget.rounds) * parts;
            if rounds > u64::from(threadtoll_record::MAX_ROUNDS) {
                break;
            }
            budget.rounds = rounds as u32;
            budget.stretch_ns = budget.stretch_ns.div_ceil(parts);
            budget.stamped_ns = budget.stamped_ns.div_ceil(parts);
            budget.stamped_count = budget.stamped_count.map(|count| count.div_ceil(parts).max(2));
        }
    }
}

/// Mean time between spoiling gaps on the two CPUs with the most gaps, taken together; `None` if
/// there are no gaps.
fn calm_ns(noise: &[CpuNoise]) -> Option<f64> {
    let mut rates: Vec<f64> = noise
        .iter()
        .filter(|cpu| cpu.watched_ns > 0)
        .map(|cpu| {
            let gaps: u64 = cpu
                .gaps
                .iter()
                .filter(|(length, _)| *length >= SPOILS_NS)
                .map(|(_, count)| count.get())
                .sum();
            gaps as f64 / cpu.watched_ns.as_f64()
        })
        .collect();
    rates.sort_by(|a, b| b.total_cmp(a));
    let rate: f64 = rates.iter().take(2).sum();
    (rate > 0.0).then(|| 1.0 / rate)
}

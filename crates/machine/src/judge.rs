//! Judges which causes disturbed a block (one uninterrupted stretch of a measurement).
//!
//! A cause marks a block if it took more than 1% of the block's time and more than the usual spread
//! between blocks of the cell (a mechanism in one setting). A smaller effect cannot be
//! distinguished from that spread. Marked blocks are kept: figures are reported for clean blocks
//! and for all blocks.
//!
//! Some losses are *not* disturbances. If both threads share a CPU, or if the scheduler places
//! them, then switches, queueing and migrations are part of the mechanism. Each wake-up passes
//! through a run queue, even if the CPU is idle and only has to leave its idle state. Each spinning
//! thread meets the scheduler's tick, which takes 1% or 2% of the time on a virtual machine.
//!
//! Such losses belong to the result, so a loss counts only if it clearly exceeds the [`Baseline`]
//! of the cell. A disturbance that is short compared with its block is therefore missed; its sample
//! is still in the tail.

use threadtoll_record::{Cause, Count, CpuNoise, Disturbance, Placement};

/// A block is marked only if it lost at least this share of its time. Its mean is then off by the
/// same share.
pub const LOST_SHARE: f64 = 0.01;
/// If neither run-queue delay nor gaps are known, a block is marked above this rate of involuntary
/// switches. A switch and the switch back take a few microseconds, so one per millisecond costs
/// about a percent.
pub const SWITCHES_PER_MS: f64 = 1.0;
/// Maximum time of a page fault that reads nothing from a disk.
pub const PAGE_FAULT_NS: f64 = 2_000.0;
/// Queueing and gaps count only beyond this multiple of the baseline. From block to block, the
/// delay of wake-ups varies by tens of percent with the depth of the idle state. The length of
/// ticks varies with their work.
pub const BASELINE_FACTOR: f64 = 1.5;
/// Usual run-queue delay per wake-up, in nanoseconds, until the cell has a baseline. Leaving a deep
/// idle state, or the halt of a virtual machine, takes tens of microseconds.
pub const DEFAULT_WAKE_NS: f64 = 50_000.0;
const SPREAD_BLOCKS: usize = 5;
/// Ratio of the standard deviation to the median absolute deviation, for normally distributed
/// values.
const DEVIATIONS: f64 = 1.4826;

/// A block, with the baseline of its cell.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Placement of the block's threads.
    pub placement: Placement,
    /// True if a thread of the mechanism spins, so that it notices gaps.
    pub spins: bool,
    /// True if the mechanism allocates memory while it runs, as an unbounded queue does. Page
    /// faults are then part of its cost.
    pub grows: bool,
    /// Length of the block in nanoseconds.
    pub elapsed_ns: u64,
    /// Mean time of the block's operations in nanoseconds.
    pub mean_ns: f64,
    /// Number of CPUs over which the steal was summed.
    pub cpus: u32,
    /// Number of voluntary switches of all threads; each switch is followed by a wake-up.
    pub voluntary_switches: u64,
    /// Number of involuntary switches of all threads.
    pub involuntary_switches: u64,
    /// The cell's baseline.
    pub baseline: Baseline,
    /// Counts of the block's disturbances.
    pub disturbance: &'a Disturbance,
}

/// Usual losses of time in a cell's blocks. A block is judged by its losses beyond them.
///
/// Each cell has a baseline for each loop that measures it. The baseline exists before the first
/// block, and learns from each block after that block was judged. It is the median of earlier
/// blocks: their minimum would fall with every block, so that more and more ordinary blocks would
/// be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Run-queue delay per wake-up in nanoseconds; `None` until a block has had enough wake-ups.
    pub wake_ns: Option<f64>,
    /// Share of a spinning thread's time lost in gaps; `None` while unknown.
    pub gap_share: Option<f64>,
    wakes: Recent,
    gaps: Recent,
    means: Recent,
}

/// The most recent values. A cell normally has at most 32 blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Recent {
    values: [f64; 32],
    seen: usize,
}

impl Recent {
    fn add(&mut self, value: f64) {
        self.values[self.seen % self.values.len()] = value;
        self.seen += 1;
    }

    /// The lower median; NaN if there are no values.
    fn lower_median(&self) -> f64 {
        self.lower_median_of(|value| value)
    }

    fn lower_median_of(&self, of: impl Fn(f64) -> f64) -> f64 {
        let mut sorted = self.values.map(of);
        let known = &mut sorted[..self.seen.min(self.values.len())];
        known.sort_by(f64::total_cmp);
        known.get(known.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    /// Estimated standard deviation relative to the median; `None` if there are too few values.
    fn spread(&self) -> Option<f64> {
        let median = self.lower_median();
        let deviation = self.lower_median_of(|value| (value - median).abs());
        Some(DEVIATIONS * deviation / median).filter(|_| self.seen >= SPREAD_BLOCKS)
    }
}

impl Baseline {
    /// The baseline before the first block, based on the noise of these CPUs.
    pub fn of(noise: &[CpuNoise], cpus: &[u32]) -> Baseline {
        let lost = noise
            .iter()
            .filter(|noise| cpus.contains(&noise.cpu))
            .map(|noise| noise.lost_share.get());
        Baseline { gap_share: lost.reduce(f64::max), ..Baseline::default() }
    }

    /// Learns from a block that has been judged.
    pub fn learn(&mut self, block: &Observed<'_>) {
        let Disturbance { run_queue_ns, gap_ns, .. } = *block.disturbance;
        // With few wake-ups, one long delay could raise the baseline so much that all later delays
        // would count as usual.
        if let (Some(ns), true) = (run_queue_ns, block.voluntary_switches >= 100) {
            self.wakes.add(ns.as_f64() / block.voluntary_switches as f64);
            self.wake_ns = Some(self.wakes.lower_median());
        }
        if let (Some(ns), true) = (gap_ns, block.spins && block.elapsed_ns > 0) {
            self.gaps.add(ns.as_f64() / block.elapsed_ns as f64);
            self.gap_share = Some(self.gaps.lower_median());
        }
        if block.mean_ns > 0.0 {
            self.means.add(block.mean_ns);
        }
    }

    /// Largest share of a block's time whose loss is still usual for the cell.
    fn unusual_share(&self) -> f64 {
        self.means.spread().unwrap_or(0.0).max(LOST_SHARE)
    }
}

/// Returns the causes that reached their thresholds, in the order in which files list them.
///
/// [`Cause::ReferenceDrift`] and [`Cause::WorkDrift`] are never included, because they show only
/// over several blocks.
pub fn judge(block: &Observed<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut mark = |cause, reached: bool| {
        if reached {
            causes.push(cause);
        }
    };
    let Disturbance { migrations, steal_ns, page_faults, throttled, .. } = *block.disturbance;
    let pinned = block.placement == Placement::Pinned;
    let unusual_ns = block.baseline.unusual_share() * block.elapsed_ns as f64;
    let matters = |lost_ns: f64| lost_ns > 0.0 && lost_ns >= unusual_ns;
    let (queued_ns, gap_ns) = (block.queued_ns(), block.gap_ns());

    mark(Cause::Migration, pinned && migrations.is_some_and(|count| count > 0));
    let switched = match (queued_ns, gap_ns) {
        (None, None) => {
            block.involuntary_switches as f64 > SWITCHES_PER_MS * block.elapsed_ns as f64 / 1e6
        }
        // A switch alone costs almost nothing, so it counts only with a delay or a gap.
        _ => {
            block.involuntary_switches > 0 && [queued_ns, gap_ns].into_iter().flatten().any(matters)
        }
    };
    mark(Cause::InvoluntarySwitch, pinned && switched);
    mark(Cause::RunQueueDelay, pinned && queued_ns.is_some_and(matters));
    let stolen_ns = steal_ns.map_or(0.0, Count::as_f64) / f64::from(block.cpus.max(1));
    mark(Cause::Steal, matters(stolen_ns));
    mark(Cause::Gap, gap_ns.is_some_and(matters));
    mark(Cause::PageFault, matters(page_faults.as_f64() * PAGE_FAULT_NS) && !block.grows);
    mark(Cause::Throttled, throttled.is_some_and(|times| times > 0));
    causes
}

impl Observed<'_> {
    /// Run-queue delay in nanoseconds beyond that of the block's wake-ups.
    fn queued_ns(&self) -> Option<f64> {
        let queued = self.disturbance.run_queue_ns?.as_f64();
        let usual = self.baseline.wake_ns.map_or(DEFAULT_WAKE_NS, |ns| ns * BASELINE_FACTOR);
        Some((queued - self.voluntary_switches as f64 * usual).max(0.0))
    }

    /// Gaps of a spinning thread beyond the usual ones, in nanoseconds.
    fn gap_ns(&self) -> Option<f64> {
        let gaps = self.disturbance.gap_ns.filter(|_| self.spins)?.as_f64();
        let usual = BASELINE_FACTOR * self.baseline.gap_share.unwrap_or(0.0);
        Some((gaps - usual * self.elapsed_ns as f64).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// An undisturbed block of 100 ms on two CPUs, with spinning threads.
    fn still(disturbance: &Disturbance) -> Observed<'_> {
        Observed {
            placement: Placement::Pinned,
            spins: true,
            grows: false,
            elapsed_ns: 100 * MS,
            mean_ns: 100.0,
            cpus: 2,
            voluntary_switches: 0,
            involuntary_switches: 0,
            baseline: Baseline::default(),
            disturbance,
        }
    }

    fn nothing() -> Disturbance {
        Disturbance {
            causes: vec![],
            migrations: Some(0.into()),
            run_queue_ns: Some(0.into()),
            steal_ns: Some(0.into()),
            page_faults: 0.into(),
            gap_ns: Some(0.into()),
            throttled: Some(0.into()),
        }
    }

    #[test]
    fn a_still_block_is_clean_and_so_is_one_of_which_nothing_is_known() {
        assert_eq!(judge(&still(&nothing())), []);
        assert_eq!(judge(&still(&Disturbance::default())), []);
        assert_eq!(judge(&Observed { elapsed_ns: 0, ..still(&nothing()) }), []);
    }

    #[test]
    fn thresholds() {
        let quiet = nothing;
        let table = [
            (Disturbance { migrations: Some(1.into()), ..quiet() }, vec![Cause::Migration]),
            (Disturbance { run_queue_ns: Some((MS - 1).into()), ..quiet() }, vec![]),
            (Disturbance { run_queue_ns: Some(MS.into()), ..quiet() }, vec![Cause::RunQueueDelay]),
            (Disturbance { steal_ns: Some((2 * MS - 1).into()), ..quiet() }, vec![]),
            (Disturbance { steal_ns: Some((2 * MS).into()), ..quiet() }, vec![Cause::Steal]),
            (Disturbance { gap_ns: Some((MS - 1).into()), ..quiet() }, vec![]),
            (Disturbance { gap_ns: Some(MS.into()), ..quiet() }, vec![Cause::Gap]),
            (Disturbance { page_faults: 499.into(), ..quiet() }, vec![]),
            (Disturbance { page_faults: 500.into(), ..quiet() }, vec![Cause::PageFault]),
            (Disturbance { throttled: Some(1.into()), ..quiet() }, vec![Cause::Throttled]),
        ];
        for (disturbance, expected) in table {
            assert_eq!(judge(&still(&disturbance)), expected, "{disturbance:?}");
        }
    }

    #[test]
    fn switches_matter_if_time_was_lost() {
        let disturbance = nothing();
        let switched = Observed { involuntary_switches: 1_000, ..still(&disturbance) };
        assert_eq!(judge(&switched), []);
        let away = Disturbance { run_queue_ns: Some(MS.into()), ..nothing() };
        let both = [Cause::InvoluntarySwitch, Cause::RunQueueDelay];
        assert_eq!(judge(&Observed { disturbance: &away, ..switched }), both);
        let unknown = Disturbance { run_queue_ns: None, gap_ns: None, ..nothing() };
        let unknown = Observed { disturbance: &unknown, ..switched };
        assert_eq!(judge(&unknown), [Cause::InvoluntarySwitch]);
        assert_eq!(judge(&Observed { involuntary_switches: 100, ..unknown }), []);
    }

    #[test]
    fn a_loss_matters_if_it_is_larger_than_the_spread_of_the_blocks() {
        let disturbance = nothing();
        let mut baseline = Baseline::default();
        let lost = |ms: u64| Disturbance { gap_ns: Some((ms * MS).into()), ..nothing() };
        // Most of these means are 4% off, so losses below 6% are usual.
        for mean_ns in [96.0, 104.0, 100.0, 104.0, 96.0, 104.0, 96.0] {
            let gaps = lost(2);
            let expected = match baseline.means.seen {
                ..SPREAD_BLOCKS => vec![Cause::Gap],
                _ => vec![],
            };
            assert_eq!(judge(&Observed { baseline, ..still(&gaps) }), expected);
            baseline.learn(&Observed { mean_ns, ..still(&disturbance) });
        }
        for (ms, causes) in [(5, vec![]), (6, vec![Cause::Gap])] {
            assert_eq!(judge(&Observed { baseline, ..still(&lost(ms)) }), causes);
        }
    }

    #[test]
    fn what_the_scheduler_does_belongs_to_free_and_shared_placements() {
        let busy = Disturbance {
            migrations: Some(9.into()),
            run_queue_ns: Some((90 * MS).into()),
            ..nothing()
        };
        for placement in [Placement::SameCpu, Placement::Free] {
            let block = Observed { placement, involuntary_switches: 5_000, ..still(&busy) };
            assert_eq!(judge(&block), [], "{placement}");
        }
        let hypervisor = Disturbance { steal_ns: Some((10 * MS).into()), ..nothing() };
        assert_eq!(
            judge(&Observed { placement: Placement::Free, ..still(&hypervisor) }),
            [Cause::Steal]
        );
    }

    #[test]
    fn waking_up_is_no_disturbance_but_waiting_behind_others_is() {
        // 10,000 wake-ups of 4 us take 40% of the time, but belong to the mechanism.
        let wakes = Disturbance { run_queue_ns: Some((40 * MS).into()), gap_ns: None, ..nothing() };
        let first = Observed { spins: false, voluntary_switches: 10_000, ..still(&wakes) };
        assert_eq!(judge(&first), []);
        let mut baseline = Baseline::default();
        baseline.learn(&first);
        assert_eq!(baseline.wake_ns, Some(4_000.0));
        let later = Observed { baseline, ..first };
        assert_eq!(judge(&later), []);
        let queued = Disturbance { run_queue_ns: Some((70 * MS).into()), ..wakes.clone() };
        assert_eq!(judge(&Observed { disturbance: &queued, ..later }), [Cause::RunQueueDelay]);
        // A thread that rarely sleeps has nearly the limits of one that spins.
        let seldom = Disturbance { run_queue_ns: Some((3 * MS).into()), ..wakes.clone() };
        let block = Observed { voluntary_switches: 20, disturbance: &seldom, ..first };
        assert_eq!(judge(&block), [Cause::RunQueueDelay]);
    }

    #[test]
    fn the_baseline_is_the_median_of_the_blocks_before_and_not_of_a_few_wake_ups() {
        let queued = |ns| Disturbance { run_queue_ns: Some(ns), ..nothing() };
        let mut baseline = Baseline::default();
        for (ns, wakes, expected) in [
            (MS, 99, None),
            (3 * MS, 100, Some(30_000.0)),
            (MS, 100, Some(10_000.0)),
            (2 * MS, 100, Some(20_000.0)),
        ] {
            let disturbance = queued(ns.into());
            baseline.learn(&Observed {
                spins: false,
                voluntary_switches: wakes,
                ..still(&disturbance)
            });
            assert_eq!(baseline.wake_ns, expected);
        }
        baseline.learn(&Observed { voluntary_switches: 100, ..still(&Disturbance::default()) });
        assert_eq!(
            (baseline.wake_ns, baseline.gap_share),
            (Some(20_000.0), None),
            "nothing was learnt from nothing"
        );
    }

    #[test]
    fn the_baseline_stays_in_the_middle_however_many_blocks_there_were() {
        let mut baseline = Baseline::default();
        for round in 0..500u64 {
            let gaps =
                Disturbance { gap_ns: Some((MS / 10 * (10 + round * 7 % 11)).into()), ..nothing() };
            baseline.learn(&still(&gaps));
        }
        assert!((0.013..=0.017).contains(&baseline.gap_share.unwrap()), "{:?}", baseline.gap_share);
    }

    #[test]
    fn gaps_that_the_machine_always_has_mark_no_block() {
        let noise = |cpu, lost_share| CpuNoise {
            cpu,
            watched_ns: 1.into(),
            gaps: vec![],
            lost_share,
            longest_ns: 0.into(),
        };
        let noise = [noise(0, 0.01.into()), noise(1, 0.02.into()), noise(2, 0.5.into())];
        assert_eq!(Baseline::of(&noise, &[7]).gap_share, None);
        let mut baseline = Baseline::of(&noise, &[0, 1]);
        assert_eq!(baseline.gap_share, Some(0.02));
        let gaps = |ms: u64| Disturbance { gap_ns: Some((ms * MS).into()), ..nothing() };
        assert_eq!(judge(&Observed { baseline, ..still(&gaps(3)) }), []);
        assert_eq!(judge(&Observed { baseline, ..still(&gaps(4)) }), [Cause::Gap]);
        baseline.learn(&still(&gaps(1)));
        assert_eq!(judge(&Observed { baseline, ..still(&gaps(3)) }), [Cause::Gap]);
    }

    #[test]
    fn gaps_count_only_where_an_end_spins() {
        let gap = Disturbance { gap_ns: Some((50 * MS).into()), ..nothing() };
        assert_eq!(judge(&Observed { spins: false, ..still(&gap) }), []);
    }

    #[test]
    fn several_causes_stand_in_the_order_of_the_files() {
        let all = Disturbance {
            causes: vec![],
            migrations: Some(1.into()),
            run_queue_ns: Some((50 * MS).into()),
            steal_ns: Some((50 * MS).into()),
            page_faults: 500.into(),
            gap_ns: Some((50 * MS).into()),
            throttled: Some(2.into()),
        };
        let causes = judge(&Observed { involuntary_switches: 1, ..still(&all) });
        assert_eq!(causes.len(), 7);
        assert!(causes.is_sorted());
    }
}

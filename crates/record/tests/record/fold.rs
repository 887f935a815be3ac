//! Folding, checked against values worked out by hand.

use threadtoll_record::compare::{PAIRS, verdict, verdict_of_rates};
use threadtoll_record::fold::{compared, drifted};
use threadtoll_record::limits::WORST;
use threadtoll_record::{
    Block, BlockCost, BlockFigures, Cause, Experiment, Fraction, HandOffBlockFigures, Load,
    LoopKind, Ns, OneWayBlock, OneWayMethod, Origin, OwnProgram, Quantiles, QueueSubject, Record,
    RecordKind, Subject, Verdict, Wait, Worst, fold,
};

use crate::fixture::{AT, group, histogram, machine, plan, stamped, stretches};

/// The records of one group of cells with these blocks.
fn folded(cells: &[&str], blocks: &[Block]) -> Vec<Record> {
    let rounds = blocks.iter().map(|block| block.seq + 1).max().unwrap_or(1);
    fold(&machine(), &plan(rounds, &[cells]), 0, 1, blocks, &[], AT)
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    // Histograms keep three digits.
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} is not {expected}");
}

fn spread(from: u32, to: u32, step: f64) -> Vec<f64> {
    (from..to).map(|at| f64::from(at) * step).collect()
}

#[test]
fn one_way_means_are_half_of_the_stretches_weighted_by_their_round_trips() {
    let mut long = stretches(0, 1, &[200.0]);
    long.count = 3000.into();
    let mut short = stretches(0, 0, &[100.0]);
    short.count = 1000.into();
    let records = folded(&["futex"], &[short, long, stamped(0, 0, &[500.0, 700.0])]);
    // (1000 × 100 + 3000 × 200) / 4000 = 175 there and back.
    assert_eq!(records[0].one_way.as_ref().unwrap().mean, Some(87.5.into()));
    let [low, high] = records[0].one_way.as_ref().unwrap().mean_interval95.unwrap();
    assert!(low.get() < 87.5 && 87.5 < high.get());
}

#[test]
fn the_distribution_comes_from_stamped_blocks_alone() {
    let blocks = [
        stretches(0, 0, &[1.0, 2.0]),
        stamped(0, 0, &[100.0, 300.0]),
        stamped(0, 1, &[200.0, 400.0, 20_000.0, 12_000.0]),
    ];
    let record = &folded(&["futex"], &blocks)[0];
    assert_eq!(record.count, 6);
    assert_eq!(record.mean, Some(5500.0.into()));
    assert_eq!((record.min, record.max), (Some(Ns::new(100.0)), Some(Ns::new(20_000.0))));
    assert_eq!((record.over.limit_ns, record.over.share), (10_000, Some(Fraction::new(2.0 / 6.0))));
    assert_eq!(
        record.histogram,
        Some(histogram(&[100.0, 200.0, 300.0, 400.0, 12_000.0, 20_000.0]))
    );
}

#[test]
fn quantiles_with_fewer_than_twenty_samples_beyond_are_null() {
    // 1..=2000 ns in ten blocks: 20 lie beyond p99, 2 beyond p99.9.
    let blocks: Vec<Block> =
        (0..10).map(|seq| stamped(0, seq, &spread(seq * 200 + 1, seq * 200 + 201, 1.0))).collect();
    let quantiles = folded(&["futex"], &blocks)[0].quantiles;
    near(quantiles.p50.map(f64::from), 1000.0);
    near(quantiles.p90.map(f64::from), 1800.0);
    near(quantiles.p99.map(f64::from), 1980.0);
    assert_eq!((quantiles.p999, quantiles.p9999), (None, None));
    // One sample fewer leaves 19.99 beyond p99.
    let mut fewer = blocks;
    fewer[0] = stamped(0, 0, &spread(2, 201, 1.0));
    let record = &folded(&["futex"], &fewer)[0];
    assert_eq!(record.quantiles.p99, None);
    assert_eq!(record.interval95.p99, None);
    assert!(record.quantiles.p90.is_some() && record.interval95.p90.is_some());
}

#[test]
fn a_cell_without_stamped_blocks_has_means_and_no_distribution() {
    let record = &folded(&["futex"], &[stretches(0, 0, &[100.0]), stretches(0, 1, &[100.0])])[0];
    assert_eq!(record.one_way.as_ref().unwrap().mean, Some(50.0.into()));
    assert_eq!(
        (record.count.get(), record.mean, record.max, &record.histogram),
        (0, None, None, &None)
    );
    assert_eq!((record.quantiles, record.over.share), (Quantiles::default(), None));
}

#[test]
fn disturbed_blocks_are_marked_and_kept() {
    let calm: Vec<f64> = vec![100.0; 1000];
    let rough: Vec<f64> = vec![9000.0; 1000];
    let mut blocks: Vec<Block> = (0..5).map(|seq| stamped(0, seq, &calm)).collect();
    blocks.push(stamped(0, 5, &rough));
    blocks[5].clean = false;
    blocks[5].disturbance.causes = vec![Cause::Steal, Cause::Gap];
    let record = &folded(&["futex"], &blocks)[0];
    near(record.quantiles.p99.map(f64::from), 9000.0);
    near(record.clean_quantiles.p99.map(f64::from), 100.0);
    assert_eq!(record.count, 6000, "all of them are counted");
    assert_eq!((record.disturbance.blocks, record.disturbance.disturbed), (6, 1));
    assert_eq!(record.disturbance.causes.get(&Cause::Steal), Some(&1));
    assert_eq!(record.disturbance.causes.get(&Cause::Gap), Some(&1));
    assert!(record.warnings.is_empty(), "a sixth is less than a quarter");
    blocks[0].clean = false;
    let record = &folded(&["futex"], &blocks)[0];
    assert_eq!(record.warnings[0].code, "disturbed", "a third is more");
}

#[test]
fn undisturbed_runs_have_one_distribution_and_not_two() {
    let record = &folded(&["futex"], &group(0, 1, 4, 1))[0];
    assert_eq!(record.quantiles, record.clean_quantiles);
}

/// Reference and cell in five rounds; the machine slows down by half in the middle of round 2,
/// between the two.
fn regimes() -> Vec<Block> {
    vec![
        stretches(0, 0, &[100.0]),
        stretches(1, 0, &[200.0]),
        stretches(1, 1, &[200.0]),
        stretches(0, 1, &[100.0]),
        stretches(0, 2, &[100.0]),
        stretches(1, 2, &[400.0]),
        stretches(1, 3, &[400.0]),
        stretches(0, 3, &[200.0]),
        stretches(0, 4, &[200.0]),
        stretches(1, 4, &[400.0]),
    ]
}

#[test]
fn blocks_between_two_references_that_differ_are_marked_and_the_references_are_not() {
    let marked: Vec<usize> = drifted(&regimes())
        .iter()
        .enumerate()
        .filter(|(_, drifted)| **drifted)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(marked, [5, 6]);
    let record = &folded(&["atomic-store", "futex"], &regimes())[1];
    assert_eq!(record.disturbance.causes.get(&Cause::ReferenceDrift), Some(&2));
    assert_eq!(record.disturbance.disturbed, 2);
}

#[test]
fn a_drift_of_ten_percent_is_forgiven_and_one_of_eleven_is_not() {
    for (after, marked) in [(109.0, 0), (112.0, 1), (92.0, 0), (89.0, 1)] {
        let blocks =
            [stretches(0, 0, &[100.0]), stretches(1, 0, &[500.0]), stretches(0, 1, &[after])];
        assert_eq!(
            drifted(&blocks).iter().filter(|drifted| **drifted).count(),
            marked,
            "100 to {after}"
        );
    }
}

#[test]
fn a_change_is_a_drift_only_if_the_reference_usually_changes_less() {
    // Instances of the reference that are 8% apart, and a change of 25% or 60%.
    let marked = |last: f64| {
        let references = [100.0, 108.0, 100.0, 108.0, 100.0, last];
        let blocks: Vec<Block> = (0..)
            .zip(references)
            .flat_map(|(round, ns)| [stretches(0, round, &[ns]), stretches(1, round, &[500.0])])
            .collect();
        let drifted = drifted(&blocks);
        (0..blocks.len()).filter(|at| drifted[*at]).collect::<Vec<usize>>()
    };
    assert_eq!(marked(125.0), [0usize; 0]);
    assert_eq!(marked(160.0), [9]);
}

#[test]
fn ratios_are_taken_within_rounds_and_never_across_a_move_of_the_reference() {
    let record = &folded(&["atomic-store", "futex"], &regimes())[1];
    let against = &record.against[0];
    // Rounds 2 and 3 would give 4 and 2; round 2 is wrong, and both are next to the change.
    near(Some(against.ratio.get()), 2.0);
    assert!(
        against.interval95.iter().all(|bound| (bound.get() / 2.0 - 1.0).abs() < 1e-3),
        "{:?}",
        against.interval95
    );
    assert_eq!(against.blocks, 3);
    assert_eq!(against.cell.name(), "atomic-store");
    assert_eq!(against.of, "one_way.p50");
    assert_eq!(against.verdict, Verdict::Open, "three pairs decide nothing");
}

/// Thirty rounds of a reference, a cell and stamped blocks of the cell. For the last twelve rounds,
/// the reference takes four times as long, and the cell twice.
fn two_regimes() -> Vec<Block> {
    let rounds = (0..30).map(|seq| (seq, if seq < 18 { (100.0, 400.0) } else { (400.0, 800.0) }));
    rounds
        .flat_map(|(seq, (reference, cell))| {
            let cell = cell + f64::from(seq);
            [
                stretches(1, seq, &[cell; 10]),
                stretches(0, seq, &[reference + f64::from(seq % 3); 10]),
                stamped(1, seq, &[cell + 20.0; 10]),
            ]
        })
        .collect()
}

#[test]
fn figures_are_of_one_regime_and_the_longest_comes_first() {
    let records = folded(&["atomic-store", "futex"], &two_regimes());
    let record = &records[1];
    let [fast, slow] = record.regimes.as_slice() else { panic!("{:?}", record.regimes) };
    near(Some(fast.reference_ns.get()), 50.5);
    near(Some(slow.reference_ns.get()), 200.5);
    // 18 × 2 blocks, without the last stamped block, after which the reference was slow; and the
    // first stretches of the second regime, before which it was fast.
    assert_eq!((fast.blocks, slow.blocks), (35, 23));
    // Measuring time: 18 rounds of (100 + 400 + 400) ns against 12 of (400 + 800 + 800) ns.
    assert!((fast.share.get() - 0.39).abs() < 0.03, "{}", fast.share);
    assert!((slow.share.get() - 0.57).abs() < 0.03, "{}", slow.share);
    for (regime, round_trip) in [(fast, 408.5), (slow, 824.0)] {
        let one_way = regime.one_way.as_ref().unwrap();
        let [low, high] = one_way.p50_interval95.unwrap().map(f64::from);
        assert!(low * 2.0 > round_trip - 12.0 && high * 2.0 < round_trip + 12.0, "{one_way:?}");
        assert_eq!(regime.against[0].verdict, Verdict::Open, "fewer than 21 pairs");
    }
    assert_eq!((fast.against[0].blocks, slow.against[0].blocks), (18, 11));
    assert!((fast.against[0].ratio.get() - 4.0).abs() < 0.1, "{}", fast.against[0].ratio);
    assert!((slow.against[0].ratio.get() - 2.0).abs() < 0.1, "{}", slow.against[0].ratio);
    assert_eq!(record.one_way, slow.one_way, "the record's own figures are of the longer one");
    assert_eq!((record.against.as_slice(), record.max), (slow.against.as_slice(), slow.max));
    assert_eq!(record.disturbance.blocks, 60, "all blocks are counted");
    assert_eq!(records[0].regimes.len(), 2);
    near(records[0].one_way_p50(), 200.5);
}

#[test]
fn most_runs_see_one_regime_and_list_none() {
    let mut blocks = two_regimes();
    blocks.retain(|block| block.seq < 20);
    // Two rounds are too few for a regime.
    assert!(folded(&["atomic-store", "futex"], &blocks)[1].regimes.is_empty());
}

/// A level that no process changes is its own; a change within a process is the machine's.
#[test]
fn processes_are_no_regimes() {
    let measured = |reference: &dyn Fn(u32) -> f64| -> Vec<Block> {
        let times = |seq: u32| [reference(seq), 4.0 * reference(seq)];
        let rounds = (0..30u32).flat_map(|seq| {
            let [reference, futex] = times(seq).map(|ns| ns + f64::from(seq % 3));
            [stretches(0, seq, &[reference; 10]), stretches(1, seq, &[futex; 10])]
                .map(|block| Block { process: seq / 10, ..block })
        });
        rounds.collect()
    };
    let of = |blocks: &[Block]| folded(&["atomic-store", "futex"], blocks).remove(1);
    let apart = of(&measured(&|seq| [100.0, 130.0, 170.0][seq as usize / 10]));
    assert!(apart.regimes.is_empty(), "{:?}", apart.regimes);
    assert!(apart.warnings.is_empty(), "{:?}", apart.warnings);
    assert_eq!(apart.disturbance.disturbed, 0, "the reference moved between processes only");
    assert!(apart.between_processes_share.unwrap().get() > 0.99);
    let [low, high] = apart.one_way.unwrap().p50_interval95.unwrap().map(f64::from);
    assert!(low < 200.0 && high > 340.0, "{low} to {high} hold all processes");
    let outlier = of(&measured(&|seq| if seq > 19 || seq == 5 { 170.0 } else { 100.0 }));
    assert!(outlier.regimes.is_empty(), "{:?}", outlier.regimes);
    for change in [4, 9, 15, 21] {
        let changed = of(&measured(&|seq| if seq < change { 100.0 } else { 170.0 }));
        assert_eq!(changed.regimes.len(), 2, "it changed before round {change}");
    }
}

#[test]
fn stretches_and_stamps_that_disagree_are_told() {
    let warned = |stretch: f64, stamp: f64| {
        let rounds = 0..6;
        let blocks: Vec<Block> = rounds
            .flat_map(|seq| [stretches(0, seq, &[stretch; 10]), stamped(0, seq, &[stamp; 10])])
            .collect();
        let warnings = &folded(&["futex"], &blocks)[0].warnings;
        warnings.iter().any(|warning| warning.code == "stretches-disagree")
    };
    assert!(!warned(1000.0, 1000.0) && !warned(1000.0, 1090.0) && !warned(1000.0, 920.0));
    // A stamp of this machine costs 20 ns.
    assert!(!warned(60.0, 130.0) && warned(60.0, 160.0));
    assert!(warned(540.0, 170.0) && warned(1000.0, 2000.0) && warned(1000.0, 900.0));
}

#[test]
fn a_cell_with_levels_that_the_reference_does_not_have_says_so() {
    let warned = |steps: [f64; 2]| {
        let blocks: Vec<Block> = (0..24)
            .flat_map(|seq| {
                let ns = steps[seq as usize / 12] + f64::from(seq % 3);
                [stretches(0, seq, &[100.0; 10]), stretches(1, seq, &[ns; 10])]
            })
            .collect();
        let warnings = &folded(&["atomic-store", "futex"], &blocks)[1].warnings;
        warnings.iter().any(|warning| warning.code == "several-levels")
    };
    assert!(warned([500.0, 900.0]) && !warned([500.0, 530.0]));
}

#[test]
fn blocks_of_several_processes_are_paired_within_each() {
    let blocks: Vec<Block> = (0..3)
        .flat_map(|process| (0..7).map(move |seq| (process, seq)))
        .flat_map(|(process, seq)| {
            let ns = 1000.0 + 100.0 * f64::from(process) + f64::from(seq);
            let blocks = [stretches(0, seq, &[100.0; 10]), stretches(1, seq, &[ns; 10])];
            blocks.map(|block| Block { process, ..block })
        })
        .collect();
    let record = &folded(&["atomic-store", "futex"], &blocks)[1];
    assert_eq!((record.processes, record.against[0].blocks), (3, 21));
    let share = record.between_processes_share.unwrap();
    assert!(share.get() > 0.95, "{share} lie between processes");
    // Three processes from 1000 to 1200 ns leave room for more than that.
    let [low, high] = record.against[0].interval95.map(f64::from);
    assert!(low < 10.0 && high > 12.1, "{low} to {high}");
    let mut alone = blocks;
    alone.retain(|block| block.process == 0);
    let record = &folded(&["atomic-store", "futex"], &alone)[1];
    assert_eq!((record.processes, record.between_processes_share), (1, None));
}

#[test]
fn the_reference_is_compared_with_nothing() {
    let records = folded(&["atomic-store", "futex", "park"], &group(0, 3, 4, 1));
    let against: Vec<usize> = records.iter().map(|record| record.against.len()).collect();
    assert_eq!(against, [0, 1, 2], "park is compared with the futex, too");
}

#[test]
fn verdicts_need_pairs_and_allow_five_percent() {
    for (interval, expected) in [
        ([0.90, 0.95], Verdict::Better),
        ([1.06, 1.20], Verdict::Worse),
        ([0.96, 1.04], Verdict::Same),
        ([1.0 / 1.05, 1.05], Verdict::Same),
        ([0.90, 0.953], Verdict::NoWorse),
        ([0.90, 0.999], Verdict::NoWorse),
        ([0.90, 1.05], Verdict::NoWorse),
        ([1.001, 1.20], Verdict::NoBetter),
        ([1.05, 1.20], Verdict::NoBetter),
        ([0.953, 1.06], Verdict::NoBetter),
        ([0.95, 1.06], Verdict::Open),
    ] {
        assert_eq!(verdict(interval, PAIRS), expected, "{interval:?}");
        assert_eq!(verdict(interval, PAIRS - 1), Verdict::Open, "{interval:?} of too few pairs");
        let [low, high] = interval;
        let mirrored = match expected {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            Verdict::NoWorse => Verdict::NoBetter,
            Verdict::NoBetter => Verdict::NoWorse,
            alike => alike,
        };
        if expected != Verdict::Same && high != 1.05 && low != 1.05 {
            assert_eq!(verdict([1.0 / high, 1.0 / low], PAIRS), mirrored, "{interval:?}");
        }
    }
}

#[test]
fn twenty_one_rounds_decide() {
    let records = folded(&["atomic-store", "futex"], &group(0, 2, 21, 1));
    assert_eq!((records[1].against[0].blocks, records[1].against[0].verdict), (21, Verdict::Worse));
    let records = folded(&["atomic-store", "futex"], &group(0, 2, 20, 1));
    assert_eq!(records[1].against[0].verdict, Verdict::Open);
}

fn directly(seq: u32, round_trip: f64, one_way: &[f64], negative: u64) -> Block {
    within(30.0 + f64::from(seq), seq, round_trip, one_way, negative)
}

/// A block on two CPUs whose clocks agree within a bound.
fn within(bound_ns: f64, seq: u32, round_trip: f64, one_way: &[f64], negative: u64) -> Block {
    let direct = OneWayBlock {
        histogram: histogram(one_way),
        negative: negative.into(),
        clock_bound_ns: bound_ns.into(),
    };
    let figures = HandOffBlockFigures { one_way: Some(direct), same_cpu_share: None };
    let figures = BlockFigures::HandOffs(figures);
    Block { figures, ..stamped(0, seq, &vec![round_trip; 50]) }
}

/// A stamp of this machine costs 20 ns, step and reading together, which is accurate enough for
/// medians from 2 µs.
#[test]
fn medians_that_a_stamp_would_spoil_come_from_stretches() {
    let blocks = [stretches(0, 0, &[1000.0; 50]), directly(0, 1100.0, &[900.0; 100], 0)];
    let records = folded(&["futex"], &blocks);
    let one_way = records[0].one_way.as_ref().unwrap();
    near(one_way.p50.map(f64::from), 500.0);
    assert_eq!(one_way.method, OneWayMethod::HalfRoundTrip);
}

#[test]
fn medians_that_a_stamp_does_not_spoil_come_from_one_way_times_or_half_of_round_trips() {
    let blocks = [stretches(0, 0, &[9000.0; 50]), stamped(0, 0, &[10_000.0; 50])];
    let records = folded(&["futex"], &blocks);
    let one_way = records[0].one_way.as_ref().unwrap();
    near(one_way.p50.map(f64::from), 5000.0);
    assert_eq!(one_way.method, OneWayMethod::HalfRoundTrip);
    assert_eq!((one_way.negative, one_way.clock_bound_ns), (None, None));

    let blocks = [
        stretches(0, 0, &[9000.0; 50]),
        directly(0, 10_000.0, &[4200.0; 1500], 0),
        directly(1, 10_000.0, &[4200.0; 1500], 3),
    ];
    let record = &folded(&["futex"], &blocks)[0];
    near(record.one_way.as_ref().unwrap().p50.map(f64::from), 4200.0);
    assert_eq!(record.one_way.as_ref().unwrap().method, OneWayMethod::Stamped);
    assert_eq!(
        record.one_way.as_ref().unwrap().mean,
        Some(4500.0.into()),
        "the mean still comes from stretches"
    );
    assert_eq!(
        record.one_way.as_ref().unwrap().negative,
        Some(3.into()),
        "negative ones are counted"
    );
    assert_eq!(
        record.one_way.as_ref().unwrap().clock_bound_ns,
        Some(31.0.into()),
        "the worse of the bounds"
    );
    assert!(record.warnings.iter().any(|warning| warning.code == "negative-one-way"));
}

#[test]
fn one_way_times_of_clocks_that_disagree_are_not_believed() {
    let method = |bound: f64, negative: u64| {
        let direct = within(bound, 0, 10_000.0, &[4200.0; 1000], negative);
        let records = folded(&["futex"], &[stretches(0, 0, &[9000.0; 50]), direct]);
        let one_way = records[0].one_way.as_ref().unwrap();
        near(
            one_way.p50.map(f64::from),
            if one_way.method == OneWayMethod::Stamped { 4200.0 } else { 5000.0 },
        );
        one_way.method
    };
    // Half a round trip is 5 µs, of which a twentieth is 250 ns; one time in a thousand may be
    // negative.
    assert_eq!(method(249.0, 1), OneWayMethod::Stamped);
    assert_eq!(method(251.0, 0), OneWayMethod::HalfRoundTrip);
    assert_eq!(method(40.0, 2), OneWayMethod::HalfRoundTrip);
}

#[test]
fn other_forms_are_compared_with_the_plain_one_beside_them() {
    let mut plan =
        plan(4, &[&["atomic-store", "std-condvar", "std-condvar-after", "futex", "futex", "park"]]);
    plan.groups[0][4].cell.keep_awake = true;
    let records = fold(&machine(), &plan, 0, 1, &group(0, 6, 4, 1), &[], AT);
    let against = |index: usize| -> Vec<(&str, bool)> {
        let cells = records[index].against.iter().map(|against| &against.cell);
        cells.map(|cell| (cell.name(), cell.keep_awake)).collect()
    };
    assert_eq!(against(1), [("atomic-store", false), ("futex", false)]);
    assert_eq!(against(2), [("atomic-store", false), ("std-condvar", false), ("futex", false)]);
    assert_eq!(against(4), [("atomic-store", false), ("futex", false)]);
    // Thousands of nanoseconds per cell of this group: 3 against 2, 5 against 4.
    assert!(
        (records[2].against[1].ratio.get() - 1.5).abs() < 0.01,
        "{}",
        records[2].against[1].ratio
    );
    assert!(
        (records[4].against[1].ratio.get() - 1.25).abs() < 0.01,
        "{}",
        records[4].against[1].ratio
    );
    assert_eq!(against(5), [("atomic-store", false), ("futex", false)]);
}

#[test]
fn costs_are_of_both_ends_and_per_hand_off() {
    let mut block = stretches(0, 0, &[1000.0]);
    block.cost_round_trips = 500.into();
    block.cost = BlockCost {
        user_ns: 1_000_000.into(),
        system_ns: 3_000_000.into(),
        voluntary_switches: 1000.into(),
        involuntary_switches: 1.into(),
    };
    let cost = folded(&["futex"], &[block])[0].cost;
    assert_eq!(cost.user_ns_per_op, Some(1000.0.into()));
    assert_eq!(cost.system_ns_per_op, Some(3000.0.into()));
    assert_eq!(cost.voluntary_switches_per_op, Some(1.0.into()));
    assert_eq!(cost.involuntary_switches_per_op, Some(0.001.into()));
}

#[test]
fn the_longest_samples_of_all_blocks_are_kept_longest_first() {
    let worst = |ns: f64| Worst { at_s: 1.0.into(), ns: ns.into(), cpu: 1, cause: None };
    let mut first = stamped(0, 0, &[5.0]);
    first.worst = (0..60).map(|at| worst(1000.0 + f64::from(at))).collect();
    let mut second = stamped(0, 1, &[5.0]);
    second.worst = (0..60).map(|at| worst(1030.5 + f64::from(at))).collect();
    let kept = &folded(&["futex"], &[first, second])[0].worst;
    assert_eq!(kept.len(), WORST);
    assert!(kept.is_sorted_by(|a, b| a.ns >= b.ns));
    assert_eq!(kept[0].ns, 1089.5);
    // 30 of the second are above all of the first; below that, they alternate.
    assert_eq!(kept[63].ns, 1043.0);
}

#[test]
fn matrices_of_large_machines_keep_no_histograms() {
    let blocks = group(0, 1, 2, 1);
    let mut plan = plan(2, &[&["atomic-store"]]);
    plan.groups[0][0].experiment = Experiment::Matrix;
    let mut machine = machine();
    assert!(fold(&machine, &plan, 0, 1, &blocks, &[], AT)[0].histogram.is_some());
    machine.cpus = 65;
    let record = &fold(&machine, &plan, 0, 1, &blocks, &[], AT)[0];
    assert!(record.histogram.is_none());
    assert_eq!(record.count, 4, "the figures stay");
}

#[test]
fn the_share_on_one_cpu_is_weighted_by_exchanges() {
    let block = |seq: u32, exchanges: usize, share: f64| {
        let same_cpu_share = Some(share.into());
        let figures = HandOffBlockFigures { one_way: None, same_cpu_share };
        let figures = BlockFigures::HandOffs(figures);
        Block { figures, ..stamped(0, seq, &vec![5.0; exchanges]) }
    };
    let records = folded(&["futex"], &[block(0, 10, 1.0), block(1, 30, 0.2)]);
    assert_eq!(records[0].figures.hand_offs().unwrap().same_cpu_share, Some(0.4.into()));
}

#[test]
fn a_program_that_measured_itself_says_for_how_long_it_warmed_up() {
    let block = |seq, warm_up_ms: Option<u64>| Block {
        own_program: Some(OwnProgram { warm_up_ms: warm_up_ms.map(Into::into) }),
        ..stamped(0, seq, &[5.0; 10])
    };
    let warm_up = |blocks: &[Block]| folded(&["futex"], blocks)[0].own_program;
    let blocks = [block(0, Some(100)), block(1, Some(2100)), block(2, Some(2200))];
    assert_eq!(warm_up(&blocks), Some(OwnProgram { warm_up_ms: Some(2100.into()) }));
    assert_eq!(warm_up(&[block(0, None)]), Some(OwnProgram { warm_up_ms: None }));
    assert_eq!(warm_up(&[stamped(0, 0, &[5.0; 10])]), None);
}

#[test]
fn the_same_blocks_give_the_same_records() {
    let blocks = group(0, 3, 9, 1);
    let cells = ["atomic-store", "futex", "park"];
    assert_eq!(folded(&cells, &blocks), folded(&cells, &blocks));
}

#[test]
fn cells_without_any_block_have_no_record() {
    let mut blocks = group(0, 3, 2, 1);
    blocks.retain(|block| block.cell != 1);
    let records = folded(&["atomic-store", "futex", "park"], &blocks);
    let names: Vec<&str> = records.iter().map(|record| record.cell.name()).collect();
    assert_eq!(names, ["atomic-store", "park"]);
    assert_eq!(folded(&["atomic-store"], &[]), []);
}

/// A group in the stream scenario: the reference and queues, by name, origin, wait and batch.
fn stream_plan(cells: &[(&str, Origin, Wait, u64)]) -> threadtoll_record::Plan {
    let mut plan = plan(30, &[&["atomic-store"]]);
    let template = plan.groups[0][0].clone();
    plan.groups[0].extend(cells.iter().map(|(name, origin, wait, batch)| {
        let mut planned = template.clone();
        planned.cell.subject = Subject::Queue(QueueSubject {
            queue: (*name).into(),
            origin: *origin,
            wait: *wait,
            capacity: None,
            ring_bytes: None,
            batch: *batch,
            version: "1.0.0".into(),
            senders: 1,
            load: Load::NONE,
        });
        planned
    }));
    for planned in &mut plan.groups[0] {
        planned.experiment = Experiment::queue("stream");
        planned.budget.stamped_ns = 0;
    }
    plan
}

/// A block of a stream with this number of messages, each of which took this long.
fn messages(cell: usize, seq: u32, count: u64, ns: f64) -> Block {
    let mut block = stretches(cell, seq, &[ns]);
    block.count = count.into();
    block.elapsed_ns = ((count as f64 * ns) as u64).into();
    block.cost_round_trips = count.into();
    block.cost = BlockCost { user_ns: (count * 20).into(), ..BlockCost::default() };
    block
}

#[test]
fn a_stream_has_a_rate_and_its_median_over_blocks() {
    let plan = stream_plan(&[("pipe", Origin::Ours, Wait::Spin, 1)]);
    let rates = [10.0, 20.0, 12.5, 10.0, 8.0];
    let mut blocks = Vec::new();
    for (seq, ns) in rates.iter().enumerate() {
        blocks.push(stretches(0, seq as u32, &[100.0; 10]));
        blocks.push(messages(1, seq as u32, 1000 * (1 + seq as u64), *ns));
    }
    let records = fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    let record = &records[1];
    // 10 ns per message is 100 million per second; a block counts once, however many messages it
    // holds.
    assert_eq!(record.rate_per_s, Some(100_000_000.0.into()));
    // Student's t with four degrees of freedom, of logarithms with a deviation of 0.348.
    let [low, high] = record.interval95.rate_per_s.unwrap().map(f64::from);
    assert!((low / 58.2e6 - 1.0).abs() < 0.001 && (high / 171.8e6 - 1.0).abs() < 0.001);
    assert_eq!((record.kind, record.loop_kind), (RecordKind::Stream, LoopKind::Streaming));
    assert_eq!(record.count, 15_000);
    assert!(
        record.one_way.is_none() && record.histogram.is_none() && record.quantiles.p50.is_none()
    );
    assert_eq!(record.cost.user_ns_per_op, Some(20.0.into()), "per message, one way");
    let reference = &records[0];
    near(reference.one_way_p50(), 50.0);
    assert_eq!(reference.rate_per_s, None, "exchanges have none");
}

#[test]
fn rates_are_compared_by_round_and_more_is_better() {
    let plan = stream_plan(&[
        ("pipe", Origin::Ours, Wait::Spin, 1),
        ("rtrb", Origin::Rust, Wait::Poll, 1),
        ("crossbeam-bounded", Origin::Rust, Wait::Block, 1),
    ]);
    let mut blocks = Vec::new();
    for seq in 0..21 {
        // The machine's speed changes for all of them together, which pairs do not see.
        let mood = 1.0 + 0.02 * f64::from(seq % 2);
        blocks.push(stretches(0, seq, &[120.0 * mood]));
        blocks.push(messages(1, seq, 10_000, 10.0 * mood));
        blocks.push(messages(2, seq, 7000, 25.0 * mood));
        blocks.push(messages(3, seq, 7000, 5.0 * mood));
    }
    let records = fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    let [to_reference, to_peer] = records[1].against.as_slice() else {
        panic!("{:?}", records[1].against)
    };
    // One hand-off takes 60 ns, the time of six messages.
    assert_eq!(
        (to_reference.cell.name(), to_reference.of.as_str()),
        ("atomic-store", "rate_per_s")
    );
    near(Some(to_reference.ratio.get()), 6.0);
    assert_eq!((to_peer.cell.name(), to_peer.of.as_str()), ("rtrb", "rate_per_s"));
    near(Some(to_peer.ratio.get()), 2.5);
    assert_eq!((to_peer.verdict, to_peer.blocks), (Verdict::Better, 21));
    assert_eq!(records[2].against.len(), 1, "a peer is compared with the reference only");
}

#[test]
fn verdicts_on_rates_are_those_on_times_mirrored() {
    assert_eq!(verdict_of_rates([1.06, 1.2], PAIRS), Verdict::Better);
    assert_eq!(verdict_of_rates([1.001, 1.2], PAIRS), Verdict::NoWorse);
    assert_eq!(verdict_of_rates([0.97, 1.01], PAIRS), Verdict::Same);
    assert_eq!(verdict_of_rates([0.8, 1.01], PAIRS), Verdict::NoBetter);
    assert_eq!(verdict_of_rates([0.95, 1.06], PAIRS), Verdict::Open);
    assert_eq!(verdict_of_rates([0.5, 0.952], PAIRS), Verdict::Worse);
    assert_eq!(verdict_of_rates([2.0, 3.0], PAIRS - 1), Verdict::Open);
    assert_eq!(verdict_of_rates([0.0, 0.0], PAIRS), Verdict::Worse);
}

#[test]
fn ours_are_compared_with_what_waits_alike_and_batches_with_the_bare_copy() {
    use Origin::{Ours, Raw, Rust};
    let plan = stream_plan(&[
        ("pipe", Ours, Wait::Spin, 256),
        ("pipe", Ours, Wait::Adaptive, 256),
        ("raw-copy", Raw, Wait::Spin, 512),
        ("rtrb", Rust, Wait::Poll, 256),
        ("flume-bounded", Rust, Wait::Block, 256),
        ("pipe", Ours, Wait::Adaptive, 1),
        ("pipe", Ours, Wait::Spin, 1),
    ]);
    let group = &plan.groups[0];
    assert_eq!(compared(group, 0), [0; 0]);
    assert_eq!(compared(group, 1), [0, 3, 4, 7], "spinning and polling ones, and the bare copy");
    assert_eq!(
        compared(group, 2),
        [0, 1, 3, 5, 6],
        "itself spinning in batches, the bare copy, and sleepers"
    );
    assert_eq!(compared(group, 3), [0]);
    assert_eq!(compared(group, 4), [0], "a peer");
    assert_eq!(compared(group, 6), [0, 2, 5, 7], "not the bare copy: it has no single messages");
    assert_eq!(compared(group, 99), [0; 0]);
}

#[test]
fn more_threads_than_cpus_are_said() {
    let mut plan = stream_plan(&[("funnel", Origin::Ours, Wait::Spin, 1)]);
    if let Subject::Queue(queue) = &mut plan.groups[0][1].cell.subject {
        queue.senders = 2;
    }
    let blocks = [messages(1, 0, 1000, 10.0)];
    let records = fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    assert_eq!(records[0].warnings[0].code, "oversubscribed");
}

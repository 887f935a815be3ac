use threadtoll_record::file::Results;
use threadtoll_record::*;
use threadtoll_report::html::page;
use threadtoll_report::text::{self, Style, machine, tables};

use crate::fixture;

pub(crate) const WIDE: Style = Style { color: false, width: None };
const NARROW: Style = Style { color: false, width: Some(80) };

pub(crate) fn findings(results: &Results, records: &[Record]) -> String {
    text::findings(results, records, &WIDE)
}

fn longest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn the_ladder_in_full() {
    let results = fixture::survey();
    insta::assert_snapshot!(tables(&results, &results.records(), &WIDE));
}

#[test]
fn the_ladder_in_80_columns() {
    let results = fixture::survey();
    let text = tables(&results, &results.records(), &NARROW);
    assert!(longest(&text) <= 80);
    insta::assert_snapshot!(text);
}

#[test]
fn the_ladder_fits_any_terminal() {
    let results = fixture::survey();
    for width in [40, 50, 60, 79, 100, 120, 133, 150, 1000] {
        let text =
            tables(&results, &results.records(), &Style { color: false, width: Some(width) });
        assert!(longest(&text) <= width, "{width}:\n{text}");
    }
    for width in [0, 1, 10] {
        assert!(
            !tables(&results, &results.records(), &Style { color: false, width: Some(width) })
                .is_empty()
        );
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let results = fixture::survey();
    let colourful = tables(&results, &results.records(), &Style { color: true, width: None });
    assert!(colourful.contains('\u{1b}'));
    let mut bare = String::new();
    let mut rest = colourful.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        bare.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    bare.push_str(rest);
    assert_eq!(bare, tables(&results, &results.records(), &WIDE));
}

#[test]
fn the_verdict() {
    let results = fixture::survey();
    insta::assert_snapshot!(findings(&results, &results.records()));
}

/// The row of compared rows that begins with this.
fn compared<'t>(text: &'t str, pair: &str) -> &'t str {
    let table = text.split("\n\n").next().unwrap_or_default();
    assert!(table.starts_with("Compared\n"), "{text}");
    table.lines().find(|line| line.starts_with(pair)).unwrap_or_else(|| panic!("{pair}: {table}"))
}

const SIGNALLED: &str = "std-condvar-after against std-condvar";

#[test]
fn no_difference_is_claimed_where_intervals_overlap() {
    let results = fixture::survey();
    let mut records = results.records();
    for record in &mut records {
        record.one_way.as_mut().unwrap().p50_interval95 = Some([1.0.into(), 1e9.into()]);
        record.against.clear();
    }
    let text = findings(&results, &records);
    for pair in ["futex, CPUs awake against futex", "futex (free) against futex", SIGNALLED] {
        assert!(compared(&text, pair).ends_with(" undecided"), "{pair}: {text}");
    }
}

/// The ratio of a condition variable signalled after unlocking to one signalled before.
fn signalled(pairs: u32, interval95: [f64; 2], unpaired_too: bool) -> String {
    let results = fixture::survey();
    let mut records = results.records();
    let after = |record: &&mut Record| record.cell.name() == "std-condvar-after";
    let Some(after) = records.iter_mut().find(after) else { panic!("no std-condvar-after") };
    let partner = |against: &&mut Against| against.cell.name() == "std-condvar";
    let Some(ratio) = after.against.iter_mut().find(partner) else { panic!("not paired") };
    ratio.blocks = pairs;
    ratio.interval95 = interval95.map(Into::into);
    ratio.ratio = (0.5 * (interval95[0] + interval95[1])).into();
    if !unpaired_too {
        for record in &mut records {
            let Some(reference) = record.against.first_mut() else { continue };
            reference.interval95 =
                [reference.ratio.get() * 0.5, reference.ratio.get() * 2.0].map(Into::into);
        }
    }
    compared(&findings(&results, &records), SIGNALLED).to_string()
}

#[test]
fn the_reason_why_nothing_is_decided_is_named() {
    let told = signalled(21, [0.8, 1.2], false);
    assert!(told.ends_with("1.00× (0.800–1.20) undecided"), "{told}");
    let told = signalled(9, [0.8, 0.9], false);
    assert!(told.ends_with(", only 9 pairs) undecided"), "{told}");
}

/// Many mechanisms are compared, so that one in forty would differ by chance.
#[test]
fn small_differences_decide_nothing() {
    for (interval95, verdict) in [
        ([1.005, 1.03], "1.02× (1.00–1.03) within 5%"),
        ([1.01, 1.10], "1.06× (1.01–1.10) no better"),
        ([1.06, 1.10], "1.08× (1.06–1.10) worse"),
    ] {
        let told = signalled(21, interval95, true);
        assert!(told.ends_with(verdict), "{verdict}: {told}");
    }
}

#[test]
fn a_disturbed_run_is_offered_again() {
    let mut results = fixture::survey();
    results.plan.command =
        vec!["latency".into(), "--out".into(), "x y.jsonl".into(), "futex's".into()];
    let mut records = results.records();
    for record in &mut records {
        record.disturbance.disturbed = record.disturbance.blocks;
        record.disturbance.causes.insert(Cause::Steal, record.disturbance.blocks);
    }
    let text = findings(&results, &records);
    assert!(text.contains("measure again on a quieter machine"), "{text}");
    assert!(text.contains("steal"), "{text}");
    assert!(tables(&results, &records, &WIDE).contains("std-condvar !"));
    let page = page(&[results], &[]);
    assert!(
        page.contains("threadtoll latency &#39;futex")
            || page.contains("threadtoll latency 'futex")
    );
}

#[test]
fn simulated_figures_say_so_first() {
    let mut results = fixture::survey();
    results.machine.simulated = true;
    for text in [
        tables(&results, &results.records(), &WIDE),
        machine(&results.machine, &WIDE),
        tables(
            &results,
            &{
                let mut records = results.records();
                records.iter_mut().for_each(|record| record.experiment = Experiment::Matrix);
                records
            },
            &WIDE,
        ),
    ] {
        assert!(text.trim_start().starts_with("SIMULATED"), "{text}");
    }
}

#[test]
fn an_absent_quantile_is_a_dash() {
    let results = fixture::survey();
    let mut records = results.records();
    records.retain(|record| {
        record.cell.name() == "os-pipe" && record.cell.placement == Placement::Pinned
    });
    records[0].quantiles = Quantiles::default();
    records[0].max = None;
    records[0].over.share = None;
    records[0].cost = Cost::default();
    let text = tables(&results, &records, &WIDE);
    let row = text.lines().find(|line| line.starts_with("os-pipe")).unwrap();
    assert_eq!(row.split_whitespace().filter(|word| *word == "–").count(), 6, "{row}");
}

#[test]
fn the_reference_of_every_group_is_one_row() {
    let results = fixture::survey();
    let text = tables(&results, &results.records(), &WIDE);
    let rows = text.lines().filter(|line| line.starts_with("atomic-store  ")).count();
    assert_eq!(rows, 1, "{text}");
}

#[test]
fn a_matrix_of_eight() {
    let results = fixture::matrix(8);
    insta::assert_snapshot!(tables(&results, &results.records(), &NARROW).trim_start());
}

#[test]
fn a_matrix_of_two_caches_and_nodes() {
    let results = fixture::matrix(32);
    insta::assert_snapshot!(tables(&results, &results.records(), &WIDE).trim_start());
}

#[test]
fn a_matrix_too_wide_is_summarised() {
    let results = fixture::matrix(32);
    let text = tables(&results, &results.records(), &NARROW);
    assert!(longest(&text) <= 80);
    insta::assert_snapshot!(text.trim_start());
}

#[test]
fn a_matrix_fits_any_terminal() {
    for cpus in [2, 8, 32] {
        let results = fixture::matrix(cpus);
        for width in [30, 40, 50, 80] {
            let text =
                tables(&results, &results.records(), &Style { color: false, width: Some(width) });
            assert!(longest(&text) <= width, "{width}:\n{text}");
            assert!(text.contains("median") || cpus == 2, "{text}");
        }
    }
}

#[test]
fn no_pairs_no_matrix() {
    let results = fixture::survey();
    assert!(!tables(&results, &results.records(), &WIDE).contains("pairs of CPUs"));
}

#[test]
fn the_machine() {
    insta::assert_snapshot!(machine(&fixture::machine(2), &NARROW));
}

#[test]
fn a_large_machine() {
    let mut large = fixture::machine(64);
    large.allowed = (0..32).collect();
    large.quota_cpus = Some(1.5.into());
    large.governor = Some("schedutil".into());
    large.boost = Some(true);
    large.virtualised = None;
    large.grade = Grade::D;
    insta::assert_snapshot!(machine(&large, &WIDE));
}

#[test]
fn a_pair_measured_twice_counts_once() {
    let mut results = fixture::matrix(2);
    let records = results.groups[0].records.as_mut().unwrap();
    records.push(records[0].clone());
    let text = tables(&results, &results.records(), &WIDE);
    assert!(text.lines().filter(|line| line.starts_with("cores that")).count() == 1, "{text}");
}

#[test]
fn queues_in_full() {
    let results = fixture::queues();
    insta::assert_snapshot!(tables(&results, &results.records(), &WIDE));
}

#[test]
fn the_spinner_that_keeps_awake_bounds_what_leaving_idle_takes() {
    let results = fixture::survey();
    let text = findings(&results, &results.records());
    assert!(text.contains("45% of the wake-up time is the CPU leaving its idle state."), "{text}");
}

/// The figures of a record where the machine is slower by a factor.
fn regime(record: &Record, factor: f64, share: f64, blocks: u32) -> Regime {
    let slower = |ns: Ns| Ns::from(ns.get() * factor);
    let one_way = record.one_way.clone().map(|one_way| OneWay {
        p50: one_way.p50.map(slower),
        p50_interval95: one_way.p50_interval95.map(|bounds| bounds.map(slower)),
        ..one_way
    });
    Regime {
        reference_ns: (51.0 * factor).into(),
        share: share.into(),
        blocks,
        one_way,
        mean: None,
        min: None,
        max: None,
        quantiles: record.quantiles,
        interval95: record.interval95,
        rate_per_s: None,
        cost: record.cost,
        figures: Figures::default(),
        against: record.against.clone(),
    }
}

/// A survey of a machine that was twice as slow for most of its first group, and for a part of its
/// second.
fn survey_of_two_regimes() -> Results {
    let mut results = fixture::survey();
    for record in results.groups.iter_mut().filter_map(|group| group.records.as_mut()).flatten() {
        let shares = match record.group {
            0 => [(0.20, 12), (0.75, 30)],
            1 => [(0.70, 9), (0.20, 3)],
            _ => continue,
        };
        let [fast, slow] = shares;
        let regimes =
            vec![regime(record, 1.0, fast.0, fast.1), regime(record, 2.0, slow.0, slow.1)];
        record.one_way = regimes[usize::from(fast.0 < slow.0)].one_way.clone();
        record.regimes = regimes;
    }
    results
}

#[test]
fn both_regimes_stand_side_by_side_with_their_shares() {
    let results = survey_of_two_regimes();
    let records = results.records();
    let text = tables(&results, &records, &WIDE);
    assert!(text.contains("1.39 | 2.78 µs (70 | 20%)"), "{text}");
    let text = findings(&results, &records);
    let speeds = "took 51.0 ns for 52% of the time and 102 ns for 48% of the time)";
    assert!(text.contains(speeds), "{text}");
    let steady = fixture::survey();
    assert!(!findings(&steady, &steady.records()).contains("several speeds"));
}

#[test]
fn findings_and_cards_are_of_the_regime_with_the_most_blocks() {
    let results = survey_of_two_regimes();
    let text = findings(&results, &results.records());
    // The first group was in the other one for most of its time.
    assert!(
        text.contains("Passing a cache line takes 50.9 ns, waking a sleeper 1.39 µs"),
        "{text}"
    );
    assert!(text.contains("figures are from the speed at which it took 51.0 ns"), "{text}");
    let page = page(&[results], &[]);
    assert!(page.contains("figures are from the speed at which it took 51.0 ns"), "{page}");
}

/// A group in which the machine was in a third regime all the time.
#[test]
fn a_group_that_did_not_see_the_regime_is_left_out() {
    let results = survey_of_two_regimes();
    let mut records = results.records();
    for record in records.iter_mut().filter(|record| record.group == 2) {
        record.one_way = regime(record, 4.0, 1.0, 12).one_way;
        record.disturbance.blocks = 1;
    }
    let text = findings(&results, &records);
    assert!(!text.contains("std-condvar") && text.contains("waking a sleeper"), "{text}");
}

/// Nothing was measured in two regimes, but one group in one, and the others in another.
#[test]
fn groups_in_different_regimes_are_not_mixed() {
    let results = fixture::survey();
    let mut records = results.records();
    for record in records.iter_mut().filter(|record| record.group == 0) {
        record.one_way = regime(record, 2.0, 1.0, 12).one_way;
        record.disturbance.blocks = 1;
    }
    let text = findings(&results, &records);
    assert!(text.contains("several speeds"), "{text}");
    assert!(text.contains("Passing a cache line takes"), "{text}");
}

#[test]
fn runs_of_several_processes_show_the_variance_between_them() {
    let results = fixture::queues();
    let mut records = results.records();
    assert!(!tables(&results, &records, &WIDE).contains("processes"));
    let ours = records.iter_mut().find(|record| record.cell.label() == "pipe, spin").unwrap();
    (ours.processes, ours.between_processes_share) = (3, Some(0.37.into()));
    let text = tables(&results, &records, &WIDE);
    assert!(text.contains("processes") && text.contains("37%"), "{text}");
}

/// One of our rows, measured again elsewhere, minutes later and at another speed.
#[test]
fn a_row_has_the_figures_of_the_group_that_it_shares_with_its_rival() {
    let results = fixture::queues();
    let mut records = results.records();
    let before = tables(&results, &records, &WIDE);
    let ours = |record: &&Record| record.cell.label() == "pipe, spin";
    let mut again = records.iter().find(ours).unwrap().clone();
    again.group = 99;
    again.rate_per_s = again.rate_per_s.map(|rate| rate.get() / 3.0).map(Into::into);
    again.against.retain(|against| against.cell.queue().is_none());
    records.push(again);
    assert_eq!(tables(&results, &records, &WIDE), before);
    // Without a rival, another group may be typical.
    records.iter_mut().for_each(|record| record.against.clear());
    assert_ne!(tables(&results, &records, &WIDE), before);
}

/// Each ratio of a table has one denominator: the row of ours that stands for all.
#[test]
fn queues_have_one_column_of_ratios() {
    let results = fixture::queues();
    let text = tables(&results, &results.records(), &WIDE);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("ringbuf").contains("0.333× worse"), "{text}");
}

#[test]
fn undecided_is_explained_and_needs_pairs() {
    let results = fixture::queues();
    let with_pairs = |pairs: u32| {
        let mut records = results.records();
        for against in records.iter_mut().flat_map(|record| &mut record.against) {
            (against.verdict, against.blocks) = (Verdict::Open, pairs);
        }
        tables(&results, &records, &WIDE)
    };
    let text = with_pairs(21);
    assert!(text.contains("0.333× undecided") && text.contains("undecided: "), "{text}");
    assert!(!with_pairs(20).contains("× undecided"));
}

#[test]
fn queues_fit_any_terminal() {
    let results = fixture::queues();
    for width in [30, 40, 60, 79, 100, 133, 1000] {
        let text =
            tables(&results, &results.records(), &Style { color: false, width: Some(width) });
        assert!(longest(&text) <= width, "{width}:\n{text}");
    }
    let text = tables(&results, &results.records(), &NARROW);
    assert!(text.contains("Columns that did not fit"), "{text}");
    let stacked = tables(&results, &results.records(), &Style { color: false, width: Some(40) });
    assert!(stacked.contains("\npipe\n  ratio: "), "{stacked}");
}

#[test]
fn without_pairs_nothing_is_claimed_of_queues() {
    let results = fixture::queues();
    let mut records = results.records();
    records.iter_mut().for_each(|record| record.against.clear());
    let text = findings(&results, &records);
    assert!(!text.contains("best peer"), "{text}");
    let table = tables(&results, &records, &WIDE);
    assert!(!table.contains("better") && !table.contains("worse"), "{table}");
}

#[test]
fn a_wake_up_is_judged_by_queues_whose_receivers_slept() {
    let results = fixture::queues();
    let text = findings(&results, &results.records());
    let sentence = text.lines().find(|line| line.contains("the wake-up of a sleeping receiver"));
    let sentence = sentence.unwrap_or_else(|| panic!("{text}"));
    // The receiver of the pipe that is adaptive did not sleep.
    let told = "yes in 2 of 2 cases, for example kanal-unbounded (block) against futex yes (320 ns";
    assert!(sentence.contains(told), "{sentence}");
}

#[test]
fn the_only_pair_of_a_survey_is_in_its_ladder_alone() {
    let mut results = fixture::survey();
    let pair = fixture::matrix(2);
    results.plan.groups.extend(pair.plan.groups);
    results.groups.extend(pair.groups);
    let text = tables(&results, &results.records(), &WIDE);
    assert!(text.contains("std-condvar") && !text.contains("Between pairs"), "{text}");
    let alone = fixture::matrix(2);
    assert!(tables(&alone, &alone.records(), &WIDE).contains("31.4–32.0 ns"));
}

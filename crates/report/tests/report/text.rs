use threadtoll_record::file::Results;
use threadtoll_record::*;
use threadtoll_report::html::page;
use threadtoll_report::text::{self, Style, machine, tables};

use crate::fixture;

const WIDE: Style = Style { color: false, width: None };
const NARROW: Style = Style { color: false, width: Some(80) };

fn findings(results: &Results, records: &[Record]) -> String {
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

#[test]
fn no_difference_is_claimed_where_intervals_overlap() {
    let results = fixture::survey();
    let mut records = results.records();
    for record in &mut records {
        record.one_way.as_mut().unwrap().p50_interval95 = Some([1.0.into(), 1e9.into()]);
        record.against.clear();
    }
    let text = findings(&results, &records);
    for undecided in [
        "how much of futex is the CPU leaving idle: 1.39 µs",
        "whether sleeping threads are faster pinned or unpinned: futex 1.39 µs",
        "whether signalling after unlocking is faster: std-condvar 1.71 µs",
    ] {
        assert!(text.contains(&format!("Too noisy to tell {undecided}")), "{undecided}: {text}");
    }
    for claimed in ["Signalling after", "Sleeping adds", "Unpinned, sleeping"] {
        assert!(!text.contains(claimed), "{text}");
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
    assert!(text.contains(r"`threadtoll latency 'futex'\''s' --seed 42`"), "{text}");
    assert!(text.contains("more than a quarter"), "{text}");
    assert!(text.contains("steal"), "{text}");
    assert!(tables(&results, &records, &WIDE).contains("std-condvar !"));
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
fn both_regimes_stand_side_by_side_with_their_shares() {
    let results = fixture::survey();
    let mut records = results.records();
    let futex = records.iter_mut().find(|record| record.cell.name() == "futex").unwrap();
    let regime = |p50: f64, share: f64| {
        let mut one_way = futex.one_way.clone().unwrap();
        one_way.p50 = Some(p50.into());
        one_way.p50_interval95 = Some([(p50 * 0.99).into(), (p50 * 1.01).into()]);
        Regime {
            reference_ns: (p50 / 2.0).into(),
            share: share.into(),
            blocks: 40,
            one_way: Some(one_way),
            mean: None,
            min: None,
            max: None,
            quantiles: futex.quantiles,
            interval95: futex.interval95,
            rate_per_s: None,
            cost: futex.cost,
            contention: None,
            open_loop: None,
            burst: None,
            calls: None,
            against: futex.against.clone(),
        }
    };
    futex.regimes = vec![regime(63.0, 0.75), regime(275.0, 0.21)];
    let text = tables(&results, &records, &WIDE);
    assert!(text.contains("63.0 | 275 ns (75 | 21%)"), "{text}");
    let changed = "the reference hand-off took 31.5 ns for 75% of the time and 138 ns for 21%.";
    assert!(findings(&results, &records).contains(changed));
    assert!(!findings(&results, &results.records()).contains("changed speed"));
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
    assert!(row("pipe (twin)").contains("0.990× within 5%"), "{text}");
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
    for width in [60, 79, 100, 133, 1000] {
        let text =
            tables(&results, &results.records(), &Style { color: false, width: Some(width) });
        assert!(longest(&text) <= width, "{width}:\n{text}");
    }
    let text = tables(&results, &results.records(), &NARROW);
    assert!(text.contains("Columns that did not fit"), "{text}");
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

/// The reference, its twin at `twin_ns`, and a sleeping mechanism.
fn with_twin(twin_ns: f64) -> Results {
    let mut twin = fixture::reference();
    twin.cell = twin.cell.twin();
    twin.round_trip_ns = twin_ns;
    let futex = fixture::spec("futex", Placement::Pinned, 2780.0, [900.0, 1800.0, 1.0]);
    fixture::results(fixture::machine(2), &[(21, vec![fixture::reference(), twin, futex])])
}

#[test]
fn a_twin_is_a_control_without_a_place() {
    let results = with_twin(102.0);
    let text = tables(&results, &results.records(), &WIDE);
    assert!(text.contains("ratio to") && !text.contains("ratio to (twin)"), "{text}");
    let words = |name: &str| {
        let row = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        row.split_whitespace().take(1).collect::<String>()
    };
    let places = ["atomic-store (twin)", "atomic-store  ", "futex"].map(words);
    assert_eq!(places, ["–", "1", "2"], "{text}");
    let text = findings(&results, &results.records());
    assert!(text.contains("atomic-store") && !text.contains("twin"), "{text}");
    let page = page(&[results], &[]);
    assert!(page.contains("atomic-store (twin)"), "the table has it");
    assert!(!page.contains(r#""label":"atomic-store (twin)"#), "no chart has it");
}

#[test]
fn a_twin_beyond_the_margin_is_said() {
    let results = with_twin(110.0);
    let text = findings(&results, &results.records());
    let start = "No ratio is decided in groups where a row and its twin, which is the same source, were further apart than 5%: atomic-store (7.";
    assert!(text.contains(start), "{text}");
}

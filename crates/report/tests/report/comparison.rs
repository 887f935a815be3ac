//! The comparison of two runs, as text and Markdown.

use threadtoll_record::comparison::{
    ComparedCell, ComparedRun, Control, Difference, Figure, LoneCell, Outcome, Unjudged,
};
use threadtoll_record::*;
use threadtoll_report::markdown;
use threadtoll_report::text::{self, Style};

use crate::fixture;

fn run(name: &str, at: &str) -> ComparedRun {
    ComparedRun {
        run: name.into(),
        at: at.into(),
        command: ["queue", "stream", "rtrb"].map(Text::from).to_vec(),
        simulated: false,
    }
}

/// A cell with the ratio and bounds of its times.
fn cell(name: &str, bounds: [f64; 2], outcome: Outcome) -> ComparedCell {
    let ratio = (bounds[0] * bounds[1]).sqrt();
    ComparedCell {
        experiment: Experiment::Latency,
        cell: fixture::cell(name, Placement::Pinned),
        figure: Figure::OneWayMedian,
        reference_ns: Some([63.0.into(), 64.0.into()]),
        base: 100.0.into(),
        new: (100.0 * ratio).into(),
        ratio: Some(ratio.into()),
        interval95: Some(bounds.map(Into::into)),
        control: Some(Control { name: "atomic-store".into(), ratio: 1.01.into() }),
        noise_percent: Some((((bounds[1] / bounds[0]).sqrt() - 1.0) * 100.0).into()),
        groups: [1, 1],
        processes: [3, 3],
        outcome,
        unjudged: None,
    }
}

fn queue(name: &str) -> ComparedCell {
    let subject = Subject::Queue(QueueSubject {
        queue: name.into(),
        origin: Origin::Rust,
        wait: Wait::PollBackoff,
        capacity: Some(32768),
        ring_bytes: Some(262_144),
        batch: 256,
        version: "1.0".into(),
        senders: 1,
        load: Load::NONE,
    });
    let one = cell("", [0.97, 1.04], Outcome::Open);
    ComparedCell {
        experiment: Experiment::queue("stream"),
        cell: Cell { subject, ..one.cell },
        figure: Figure::Rate,
        base: 1.1e8.into(),
        new: 1.05e8.into(),
        noise_percent: None,
        processes: [1, 3],
        unjudged: Some(Unjudged::OneProcess),
        ..one
    }
}

fn comparison() -> Comparison {
    let far = |bounds, outcome| ComparedCell {
        reference_ns: Some([270.0.into(), 275.0.into()]),
        ..cell("atomic-rmw", bounds, outcome)
    };
    Comparison {
        base: run("one", "2026-11-21T10:00:00.000Z"),
        new: run("two", "2026-11-23T10:00:00.000Z"),
        fail_above_percent: 5.0.into(),
        differences: vec![
            Difference {
                property: "kernel".into(),
                base: Some("6.12.1".into()),
                new: Some("6.17.0".into()),
            },
            Difference { property: "governor".into(), base: None, new: Some("performance".into()) },
        ],
        judged: 6,
        cells: vec![
            ComparedCell {
                unjudged: Some(Unjudged::Reference),
                control: None,
                ..cell("atomic-store", [0.98, 1.04], Outcome::Open)
            },
            cell("futex", [1.02, 1.09], Outcome::Worse),
            cell("std-condvar", [0.9, 1.2], Outcome::Open),
            cell("atomic-rmw", [1.31, 1.42], Outcome::Regression),
            far([0.99, 1.03], Outcome::Same),
            cell("spin-yield", [0.7, 0.8], Outcome::Improvement),
            cell("park", [0.93, 0.98], Outcome::Better),
            queue("rtrb"),
            ComparedCell {
                reference_ns: Some([63.0.into(), 275.0.into()]),
                ratio: None,
                interval95: None,
                control: None,
                noise_percent: None,
                unjudged: Some(Unjudged::OtherRegime),
                ..cell("eventfd", [1.0, 1.0], Outcome::Open)
            },
        ],
        only_in_base: vec![LoneCell {
            experiment: Experiment::Latency,
            cell: fixture::cell("semaphore", Placement::Free),
        }],
        only_in_new: Vec::new(),
    }
}

#[test]
fn a_comparison_in_80_columns() {
    let text = text::comparison(&comparison(), &Style { color: false, width: Some(80) });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_comparison_for_a_pull_request() {
    insta::assert_snapshot!(markdown(&comparison()));
}

#[test]
fn a_comparison_fits_any_terminal() {
    for width in [40, 50, 100, 200] {
        let text = text::comparison(&comparison(), &Style { color: false, width: Some(width) });
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
}

#[test]
fn nothing_is_said_to_have_changed_where_nothing_did() {
    let mut nothing = comparison();
    nothing.cells.retain(|one| !one.outcome.changed());
    nothing.differences.clear();
    nothing.judged = 2;
    let said = text::comparison(&nothing, &Style::default());
    assert!(said.starts_with("Of 6 rows, 2 show no change, 4 are not compared.\n"), "{said}");
    assert!(said.contains("Machine, tool and options are the same in both runs."), "{said}");
    assert!(!said.contains("Worse") && !said.contains("Better"), "{said}");
}

#[test]
fn odd_names_are_no_markup() {
    let mut odd = comparison();
    odd.cells = vec![cell("a|b`<script>\u{1b}[31m\n@all", [1.3, 1.4], Outcome::Regression)];
    odd.base.command = vec!["`rm`\n# heading".into()];
    odd.differences[0].base = Some("| <b> |\n- item".into());
    let said = markdown(&odd);
    assert!(!said.contains("<script>") || said.contains("`a\\|b'<script>"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains("\n# heading"), "{said}");
    assert!(said.contains("kernel: \\| &lt;b> \\| - item → 6.17.0"), "{said}");
    for line in said.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(line.replace("\\|", "").matches('|').count(), 6, "{line}");
    }
}

/// The pairs of a matrix, in one regime each.
#[test]
fn pairs_of_cpus_have_names_of_their_own() {
    let pair = |cpus: [u32; 2], bounds| {
        let one = cell("atomic-store", bounds, Outcome::Regression);
        let cell = Cell { cpus: cpus.to_vec(), ..one.cell };
        ComparedCell { experiment: Experiment::Matrix, cell, ..one }
    };
    let mut matrix = comparison();
    matrix.cells = vec![pair([0, 1], [1.3, 1.4]), pair([0, 2], [1.4, 1.5])];
    matrix.only_in_base[0].experiment = Experiment::Matrix;
    matrix.only_in_base[0].cell = Cell { cpus: vec![1, 2], ..matrix.cells[0].cell.clone() };
    let said = text::comparison(&matrix, &Style::default());
    for name in ["atomic-store, CPUs 0, 1  ", "atomic-store, CPUs 0, 2  ", "only in BASE"] {
        assert!(said.to_lowercase().contains(&name.to_lowercase()), "{name}: {said}");
    }
    assert!(said.contains("atomic-store, CPUs 1, 2"), "{said}");
    assert!(!said.contains("apart"), "one regime: {said}");
    matrix.cells[1].cell.cpus = vec![0, 1];
    let said = text::comparison(&matrix, &Style::default());
    assert!(said.contains("atomic-store, CPUs 0, 1, cores 64.0 ns apart"), "{said}");
}

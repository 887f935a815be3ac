use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::comparison::{
    ComparedCell, ComparedRun, Difference, Figure, LoneCell, Outcome, Unjudged,
};
use threadtoll_record::{Cell as MeasuredCell, Comparison, Experiment, Placement};

use crate::clean::clean;
use crate::label::{cpus, plural};
use crate::screen::{Rows, Screen};
use crate::sentences::{self as say, Sentence};
use crate::table::{Cell, Column, Emphasis, Label, Note, Section};
use crate::units::{UNKNOWN, digits_range, per_second, ratio, share, time};

/// Maximum number of cells that a sentence names.
const MAX_NAMED: usize = 5;

struct Row<'a> {
    compared: &'a ComparedCell,
    name: String,
}

impl Row<'_> {
    fn rank(&self) -> (u8, f64) {
        let rank = match self.compared.outcome {
            Outcome::Regression => 0,
            Outcome::Worse => 1,
            Outcome::Improvement => 2,
            Outcome::Better => 3,
            Outcome::Same | Outcome::Open if self.compared.unjudged.is_none() => 4,
            Outcome::Same | Outcome::Open => 5,
        };
        let change = self.compared.ratio.map_or(0.0, |ratio| ratio.get().ln().abs());
        (rank, if rank < 4 { -change } else { 0.0 })
    }

    fn figures(&self) -> String {
        let ComparedCell { base, new, figure, .. } = self.compared;
        let [base, new] = [base, new].map(|value| figure_text(*figure, value.get()));
        let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_string());
        match unit(&new) {
            Some(common) if unit(&base) == unit(&new) => {
                format!("{} → {new}", base.trim_end_matches(&common).trim_end())
            }
            _ => format!("{base} → {new}"),
        }
    }

    fn verdict(&self, limit: &str) -> Cell {
        let (word, emphasis) = match self.compared.outcome {
            Outcome::Regression => ("regression", Emphasis::Bad),
            Outcome::Worse => ("worse", Emphasis::Middling),
            Outcome::Improvement => ("improvement", Emphasis::Best),
            Outcome::Better => ("better", Emphasis::Best),
            Outcome::Same => ("within", Emphasis::Plain),
            Outcome::Open => ("no change", Emphasis::Faint),
        };
        match (self.compared.unjudged, self.compared.outcome) {
            (Some(_), _) => Cell::text("not compared").emphasis(Emphasis::Faint),
            (None, Outcome::Same) => Cell::text(format!("{word} {limit}")),
            (None, _) => Cell::text(word).emphasis(emphasis),
        }
    }
}

/// The limit above which a change is a regression, such as `5%`.
pub(crate) fn limit(comparison: &Comparison) -> String {
    format!("{}%", comparison.fail_above_percent.get())
}

pub(crate) fn figure_text(figure: Figure, value: f64) -> String {
    match figure {
        Figure::OneWayMedian
        | Figure::DeliveryMedian
        | Figure::BurstTime
        | Figure::ReceiveTime
        | Figure::SendCallMedian => time(value),
        Figure::Rate => format!("{}/s", per_second(value)),
        Figure::Speedup => ratio(value),
    }
}

pub(crate) fn name(cell: &MeasuredCell) -> String {
    let label = clean(&cell.label());
    match cell.placement {
        Placement::Pinned => label,
        placement => format!("{label} ({placement})"),
    }
}

/// Distinguishes cells that would otherwise have the same name.
struct Names<'a> {
    cpus: BTreeMap<(&'a Experiment, String), BTreeSet<&'a [u32]>>,
    regimes: BTreeMap<(&'a Experiment, &'a MeasuredCell), usize>,
}

impl<'a> Names<'a> {
    fn of(comparison: &'a Comparison) -> Self {
        let compared = comparison.cells.iter().map(|one| (&one.experiment, &one.cell));
        let lone = comparison.only_in_base.iter().chain(&comparison.only_in_new);
        let lone = lone.map(|one| (&one.experiment, &one.cell));
        let mut names = Names { cpus: BTreeMap::new(), regimes: BTreeMap::new() };
        for (experiment, cell) in compared.clone().chain(lone) {
            names.cpus.entry((experiment, name(cell))).or_default().insert(&cell.cpus);
        }
        compared.for_each(|key| *names.regimes.entry(key).or_default() += 1);
        names
    }

    fn name(&self, experiment: &Experiment, cell: &MeasuredCell) -> String {
        let name = name(cell);
        match self.cpus.get(&(experiment, name.clone())) {
            Some(several) if several.len() > 1 => format!("{name}, {}", cpus(&cell.cpus)),
            _ => name,
        }
    }

    fn in_regime(&self, one: &ComparedCell) -> String {
        let name = self.name(&one.experiment, &one.cell);
        match (one.reference_ns, self.regimes.get(&(&one.experiment, &one.cell))) {
            (Some([_, new]), Some(2..)) => format!("{name}, cores {} apart", time(new.get())),
            _ => name,
        }
    }
}

fn rows(comparison: &Comparison) -> Vec<Row<'_>> {
    let names = Names::of(comparison);
    let row = |compared| Row { compared, name: names.in_regime(compared) };
    comparison.cells.iter().map(row).collect()
}

pub(crate) fn screen(comparison: &Comparison) -> Screen {
    let limit = limit(comparison);
    let at = |run: &ComparedRun| clean(&run.at);
    let mut rows = rows(comparison);
    sort(&mut rows);
    let mut findings = findings(comparison).into_iter();
    let section =
        Section::new("", "row", columns(&limit), &rows, |row| Label::new(row.name.clone()));
    let mut answer = vec![summary(comparison)];
    answer.extend(findings.by_ref().take(2));
    Screen {
        title: format!("NEW of {} against BASE of {}", at(&comparison.new), at(&comparison.base)),
        answer,
        picture: Rows::first(section, "row"),
        remarks: differences(comparison).into_iter().chain(findings).collect(),
        ..Screen::default()
    }
}

fn sort(rows: &mut [Row<'_>]) {
    rows.sort_by(|a, b| {
        let ((rank, change), (other, against)) = (a.rank(), b.rank());
        rank.cmp(&other).then(change.total_cmp(&against))
    });
}

fn columns<'c>(limit: &'c str) -> Vec<Column<'c, Row<'c>>> {
    vec![
        Column::new("", "base → new", 3, |row: &Row<'_>| Cell::text(row.figures())),
        Column::new("", "ratio", 1, |row: &Row<'_>| Cell::figure(row.compared.ratio, ratio)).main(),
        Column::new("", "bounds", 2, |row: &Row<'_>| {
            row.compared.interval95.map_or_else(Cell::unknown, |interval| {
                Cell::text(digits_range(interval.map(f64::from)))
            })
        }),
        Column::new("", "verdict", 0, |row: &Row<'_>| row.verdict(limit)),
    ]
}

pub(crate) fn sections(comparison: &Comparison, only_changed: bool) -> Vec<Section> {
    let limit = limit(comparison);
    let mut parts: Vec<(String, Vec<Row<'_>>)> = Vec::new();
    for row in rows(comparison) {
        if only_changed && !row.compared.outcome.changed() {
            continue;
        }
        let heading = heading(row.compared);
        match parts.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, rows)) => rows.push(row),
            None => parts.push((heading, vec![row])),
        }
    }
    let section = |(heading, mut rows): (String, Vec<Row<'_>>)| {
        sort(&mut rows);
        Section::new(heading, "row", columns(&limit), &rows, |row| Label::new(row.name.clone()))
    };
    parts.into_iter().map(section).collect()
}

fn heading(compared: &ComparedCell) -> String {
    let figure = match compared.figure {
        Figure::OneWayMedian => "one-way median",
        Figure::DeliveryMedian => "median delivery",
        Figure::BurstTime => "time of a burst",
        Figure::ReceiveTime => "receive call",
        Figure::SendCallMedian => "median send call",
        Figure::Rate => "messages per second",
        Figure::Speedup => "speed-up over one thread",
    };
    format!("{}: {figure}", clean(&compared.experiment.to_string()).replace('/', " "))
}

pub(crate) fn notes(comparison: &Comparison) -> Vec<Note> {
    let limit = limit(comparison);
    let mut notes = Vec::new();
    if comparison.judged > 0 {
        notes.push(Note::new(format!(
            "bounds: 95% intervals that hold jointly for {}. Each contains both the ratio itself and the ratio divided by that of the control (the reference; futex for threads that sleep) in the same groups.",
            plural(comparison.judged.into(), "compared ratio")
        )));
        notes.push(Note::new(format!(
            "regression, improvement: surely by more than {limit}. worse, better: surely, but perhaps by less. no change: none was seen, although one of more than {limit} is possible.",
        )));
    }
    notes
}

pub(crate) fn runs(comparison: &Comparison) -> [String; 2] {
    let line = |name: &str, run: &ComparedRun| {
        let command: Vec<String> = run.command.iter().map(|word| clean(word)).collect();
        format!("{name}  {}  threadtoll {}", clean(&run.at), clean(&command.join(" ")))
    };
    [line("BASE", &comparison.base), line("NEW ", &comparison.new)]
}

pub(crate) fn differences(comparison: &Comparison) -> Vec<Sentence> {
    let value = |text: &Option<threadtoll_record::Text>| {
        text.as_ref().map_or_else(|| "none".to_string(), |text| clean(text))
    };
    let of = |Difference { property, base, new }: &Difference| {
        say::differs(clean(property), value(base), value(new))
    };
    match comparison.differences.as_slice() {
        [] => vec![say::no_difference()],
        differences => differences.iter().map(of).collect(),
    }
}

/// Joins names with semicolons, because the names contain commas.
fn some_named(names: &[String]) -> String {
    if names.len() <= MAX_NAMED {
        return names.join("; ");
    }
    let shown = MAX_NAMED - 1;
    format!("{}; and {} more", names[..shown].join("; "), names.len() - shown)
}

fn counted(names: Vec<String>) -> Option<[String; 2]> {
    let number = plural(names.len() as u64, "row");
    (!names.is_empty()).then(|| [number, some_named(&names)])
}

pub(crate) fn findings(comparison: &Comparison) -> Vec<Sentence> {
    let rows = rows(comparison);
    let limit = limit(comparison);
    let mut findings = Vec::new();
    let changed = |outcome: Outcome| {
        let mut changed: Vec<&Row<'_>> =
            rows.iter().filter(|row| row.compared.outcome == outcome).collect();
        changed.sort_by(|a, b| a.rank().1.total_cmp(&b.rank().1));
        let texts = changed.iter().map(|row| {
            let ratio = row.compared.ratio.map_or(f64::NAN, f64::from);
            format!("{} ({})", row.name, crate::units::ratio(ratio))
        });
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| some_named(&texts))
    };
    findings.extend(changed(Outcome::Regression).map(|cells| say::regressions(&limit, cells)));
    findings.extend(changed(Outcome::Worse).map(|cells| say::worse(cells, &limit)));
    findings.extend(changed(Outcome::Improvement).map(|cells| say::improvements(&limit, cells)));
    findings.extend(changed(Outcome::Better).map(|cells| say::better(cells, &limit)));
    findings.extend(would_have_shown(&rows));
    findings.extend(unjudged(&rows));
    let all = Names::of(comparison);
    let lone = |cells: &[LoneCell]| {
        let name = |lone: &LoneCell| all.name(&lone.experiment, &lone.cell);
        counted(cells.iter().map(name).collect())
    };
    let files = [("BASE", &comparison.only_in_base), ("NEW", &comparison.only_in_new)];
    findings.extend(files.iter().filter_map(|(file, cells)| {
        let [rows, names] = lone(cells)?;
        Some(say::only_in(rows, file, names))
    }));
    findings
}

/// The smallest change that would have been detected in the unchanged rows.
fn would_have_shown(rows: &[Row<'_>]) -> Option<Sentence> {
    // A change is detected if it is at least twice the half-width of the interval.
    let mut found: Vec<f64> = rows
        .iter()
        .filter(|row| !row.compared.outcome.changed())
        .filter_map(|row| Some(2.0 * row.compared.noise_percent?.get() / 100.0))
        .collect();
    found.sort_by(f64::total_cmp);
    let (least, most) = (share(*found.first()?), share(*found.last()?));
    Some(if least == most {
        say::would_have_shown(least)
    } else {
        say::would_have_shown_in(least, most)
    })
}

fn unjudged(rows: &[Row<'_>]) -> Vec<Sentence> {
    let of = |why| rows.iter().filter(move |row| row.compared.unjudged == Some(why));
    let rows = |why| counted(of(why).map(|row| row.name.clone()).collect());
    let ns = of(Unjudged::OtherRegime).next().and_then(|row| row.compared.reference_ns);
    let [base, new] =
        ns.map_or_else(|| [(); 2].map(|()| UNKNOWN.into()), |ns| ns.map(|ns| time(ns.get())));
    let sentences = [
        rows(Unjudged::OtherRegime).map(|[rows, names]| say::other_regime(rows, base, new, names)),
        rows(Unjudged::OneProcess).map(|[rows, names]| say::one_process(rows, names)),
        rows(Unjudged::FewBlocks).map(|[rows, names]| say::few_blocks(rows, names)),
        rows(Unjudged::OtherMethod).map(|[rows, names]| say::other_method(rows, names)),
        rows(Unjudged::Reference).map(|[rows, names]| say::reference(rows, names)),
    ];
    sentences.into_iter().flatten().collect()
}

/// The counts in the sentence add up to the number of all rows.
pub(crate) fn summary(comparison: &Comparison) -> Sentence {
    let Comparison { cells, only_in_base, only_in_new, .. } = comparison;
    let count = |wanted: &[Outcome]| {
        let judged = cells.iter().filter(|one| one.unjudged.is_none());
        judged.filter(|one| wanted.contains(&one.outcome)).count()
    };
    let limit = limit(comparison);
    let all = cells.len() + only_in_base.len() + only_in_new.len();
    let judged = comparison.judged as usize;
    let parts = [
        (count(&[Outcome::Regression]), format!("is worse by more than {limit}")),
        (count(&[Outcome::Worse]), "is worse".into()),
        (count(&[Outcome::Improvement]), format!("is better by more than {limit}")),
        (count(&[Outcome::Better]), "is better".into()),
        (count(&[Outcome::Same, Outcome::Open]), "shows no change".into()),
        (all.saturating_sub(judged), "is not compared".into()),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0).map(|(number, does)| {
        let does =
            if number > 1 { does.replace("is ", "are ").replace("shows", "show") } else { does };
        format!("{number} {does}")
    });
    say::verdicts(plural(all as u64, "row"), parts.collect::<Vec<_>>().join(", "))
}

//! The beginning of a run's section: main figures, findings and warnings.

use maud::{Markup, html};
use threadtoll_record::{Class, Grade, Machine};
use threadtoll_stats::median;

use super::run::{Run, day};
use super::table::sortable;
use super::title_of;
use crate::clean::clean;
use crate::figure::Pairs;
use crate::label::{plural, relation};
use crate::ladder::{self, representative};
use crate::locks;
use crate::machine::{facts, meaning};
use crate::matrix;
use crate::queues;
use crate::quotient::Quotient;
use crate::regimes::Regimes;
use crate::sentences::Sentence;
use crate::units::{digits_range, ratio, time, time_range};

const MAX_WARNINGS: usize = 60;
/// Sentences and cards of the first screen.
const MAX_SENTENCES: usize = 5;
const MAX_CARDS: usize = 4;

struct Card {
    figure: String,
    caption: String,
    detail: String,
    class: &'static str,
}

pub(super) fn headline(run: &Run<'_>, runs: usize) -> Markup {
    let machine = &run.results().machine;
    let mut about =
        vec![plural(machine.cpus.into(), "CPU"), format!("Linux {}", clean(&machine.kernel))];
    about.extend(
        machine.virtualised.as_ref().map(|name| format!("virtual machine ({})", clean(name))),
    );
    about.push(day(&machine.at));
    html! {
        header { "\n"
            @if runs > 1 {
                h2 { (run.name()) } "\n"
            } @else {
                h1 { (title_of(run.topic())) } "\n"
            }
            p class="about" {
                @if runs == 1 { span { (run.name()) } " " }
                @for (index, fact) in about.iter().enumerate() {
                    @if index > 0 { " " }
                    span { (fact) }
                }
            } "\n"
            @if machine.simulated {
                p class="banner" role="alert" {
                    strong { "Simulated." }
                    " These figures come from a simulated machine and say nothing about a real one."
                } "\n"
            }
            (answer(run))
            ul class="cards" { "\n"
                @for card in cards(run).into_iter().take(MAX_CARDS) {
                    li class={ "card " (card.class) } {
                        span class="figure" { (card.figure) }
                        span class="what" { (card.caption) }
                        span class="detail" { (card.detail) }
                    } "\n"
                }
            } "\n"
        } "\n"
    }
}

fn cards(run: &Run<'_>) -> Vec<Card> {
    let regimes = Regimes::of(run.results(), run.records());
    let records = regimes.records(run.records());
    let mut cards = mechanisms(&ladder::rows(&records));
    if cards.is_empty() {
        cards = pairs(&matrix::pairs(&run.results().machine, &records));
    }
    cards.extend(queues::cards(run.results(), &queues::comparisons(&records)).into_iter().map(
        |card| Card {
            figure: card.figure,
            caption: card.heading,
            detail: card.detail,
            class: "line named",
        },
    ));
    cards.extend(locks::cards(&records, run.records()).into_iter().map(|card| Card {
        figure: card.figure,
        caption: card.heading,
        detail: card.detail,
        class: "line",
    }));
    let grade = run.results().machine.grade;
    let several = regimes.main().map(|main| {
        format!(
            " It ran at {} speeds: figures above are of that with a reference of {}.",
            regimes.states.len(),
            time(main.reference_ns)
        )
    });
    cards.push(Card {
        figure: grade.to_string(),
        caption: "grade of the machine".into(),
        detail: format!("{}{}", meaning(grade), several.unwrap_or_default()),
        class: match grade {
            Grade::A | Grade::B => "good",
            Grade::C => "middling",
            Grade::D => "bad",
        },
    });
    cards
}

/// A hand-off through a cache line, a wake-up, and their ratio.
fn mechanisms(rows: &[ladder::Row<'_>]) -> Vec<Card> {
    let mut cards = Vec::new();
    let line = representative(rows, Class::Spin);
    let sleep = representative(rows, Class::Sleep);
    for (record, caption, class) in
        [(line, "through a cache line", "line"), (sleep, "to wake a sleeping thread", "sleep")]
    {
        let Some((record, p50)) = record.and_then(|record| Some((record, record.one_way_p50()?)))
        else {
            continue;
        };
        let mut detail = clean(&record.cell.label());
        if let Some(interval) = record.one_way_p50_interval95() {
            detail.push_str(&format!(", {}", time_range(interval)));
        }
        cards.push(Card { figure: time(p50), caption: caption.into(), detail, class });
    }
    if let Some(times) = line.zip(sleep).and_then(|(line, sleep)| Quotient::of(sleep, line)) {
        cards.push(Card {
            figure: ratio(times.ratio),
            caption: "ratio of the two".into(),
            detail: format!("one way, pinned, p50, {}", digits_range(times.interval95)),
            class: "",
        });
    }
    cards
}

fn pairs(pairs: &[Pairs]) -> Vec<Card> {
    let by_relation = pairs.first().map(Pairs::by_relation).unwrap_or_default();
    let (nearest, farthest) = (by_relation.first_key_value(), by_relation.last_key_value());
    let shown = nearest.into_iter().chain(farthest.filter(|_| by_relation.len() > 1));
    shown
        .filter_map(|(of, values)| {
            Some(Card {
                figure: time(median(values.iter().copied())?),
                caption: format!("between {}", relation(*of)),
                detail: "one way, median of the pairs".into(),
                class: "line",
            })
        })
        .collect()
}

/// The first sentences of the answer, and what to know of the figures.
fn answer(run: &Run<'_>) -> Markup {
    let screen = run.report.answer.screen.iter();
    let sentences = screen.flat_map(|screen| screen.answer.iter().chain(&screen.remarks));
    sentence_list(sentences.take(MAX_SENTENCES))
}

fn sentence_list<'s>(sentences: impl Iterator<Item = &'s Sentence>) -> Markup {
    html! {
        ul class="verdict" { "\n"
            @for sentence in sentences { li { (with_code(&clean(&sentence.to_string()))) } "\n" }
        } "\n"
    }
}

pub(super) fn findings(run: &Run<'_>) -> Markup {
    let notes: Vec<&str> = run.results().notes.iter().map(String::as_str).collect();
    let findings = &run.report.answer.findings;
    html! {
        (sentence_list(findings.told.iter()))
        @if let Some(section) = &findings.compared {
            h3 { (section.heading) } "\n"
            (sortable(section, &section.heading, usize::MAX))
        }
        (list(&notes, "Notes"))
    }
}

pub(super) fn machine(machine: &Machine) -> Markup {
    let warnings: Vec<&str> =
        machine.warnings.iter().map(|warning| warning.text.as_str()).collect();
    html! {
        (list(&warnings, "Warnings"))
        dl class="machine" { "\n"
            @for (name, fact) in facts(machine) { dt { (name) } dd { (fact) } "\n" }
        } "\n"
    }
}

fn list(warnings: &[&str], label: &str) -> Markup {
    html! {
        @if !warnings.is_empty() {
            ul class="warnings" aria-label=(label) { "\n"
                @for warning in warnings.iter().take(MAX_WARNINGS) { li { (clean(warning)) } "\n" }
            } "\n"
        }
    }
}

/// Renders text between backticks as code.
fn with_code(sentence: &str) -> Markup {
    let parts: Vec<&str> = sentence.split('`').collect();
    html! {
        @if let [before, command, after] = parts.as_slice() {
            (before) code { (command) } (after)
        } @else {
            (sentence)
        }
    }
}

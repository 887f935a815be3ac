//! The beginning of a run's section: figures, findings and warnings.

use maud::{Markup, html};
use threadtoll_record::{Grade, Machine};

use super::run::{Run, day};
use super::table::sortable;
use super::title_of;
use crate::clean::clean;
use crate::label::plural;
use crate::machine::{facts, meaning};
use crate::screen::Card;
use crate::sentences::Sentence;

const MAX_WARNINGS: usize = 60;
const MAX_SENTENCES: usize = 5;
const MAX_CARDS: usize = 4;

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
            @if machine.simulated { (simulated()) }
            (answer(run))
            (cards(run))
        } "\n"
    }
}

pub(super) fn simulated() -> Markup {
    html! {
        p class="banner" role="alert" {
            strong { "Simulated." }
            " These figures come from a simulated machine and say nothing about a real one."
        } "\n"
    }
}

fn cards(run: &Run<'_>) -> Markup {
    let grade = run.results().machine.grade;
    let class = match grade {
        Grade::A | Grade::B => "good",
        Grade::C => "middling",
        Grade::D => "bad",
    };
    let of_machine = Card {
        figure: grade.to_string(),
        caption: "grade of the machine".into(),
        detail: meaning(grade).into(),
    };
    let screen = run.report.answer.screen.iter();
    let cards = screen.flat_map(|screen| &screen.cards).map(|card| (card, "line"));
    html! {
        ul class="cards" { "\n"
            @for (card, class) in cards.take(MAX_CARDS - 1).chain([(&of_machine, class)]) {
                li class={ "card " (class) } {
                    span class="figure" { (card.figure) }
                    span class="what" { (card.caption) }
                    span class="detail" { (card.detail) }
                } "\n"
            }
        } "\n"
    }
}

fn answer(run: &Run<'_>) -> Markup {
    let screen = run.report.answer.screen.iter();
    let sentences = screen.flat_map(|screen| screen.answer.iter().chain(&screen.remarks));
    sentence_list(sentences.take(MAX_SENTENCES))
}

pub(super) fn sentence_list<'s>(sentences: impl Iterator<Item = &'s Sentence>) -> Markup {
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

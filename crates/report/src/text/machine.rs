//! The machine and its grade.

use threadtoll_record::{CpuNoise, Grade, Machine};

use super::layout::{self, Part};
use super::table::draw;
use super::{BAD, BOLD, DIM, GOOD, MIDDLING, PLAIN, Style};
use crate::clean::clean;
use crate::label::plural;
use crate::machine::{facts, meaning, noisiest};

/// Number of CPUs above which only the noisiest are shown.
const MAX_CPUS: usize = 16;
/// Warnings on a screen.
const MAX_WARNINGS: usize = 8;

/// Draws the grade, each warning with its advice, and the facts as far as there is room.
pub fn machine_screen(machine: &Machine, style: &Style) -> String {
    let style = layout::style(style);
    let mut parts = vec![Part::text(&style, BOLD, clean(&machine.cpu).trim(), 2, 7)];
    if machine.simulated || machine.synthetic {
        parts.push(Part::text(&style, BAD, "Not this machine: simulated, or from a folder.", 2, 0));
    }
    let grade = format!("Grade {}: {}", machine.grade, meaning(machine.grade));
    parts.push(Part::text(&style, color(machine.grade), &grade, 2, 0));
    let shown = machine.warnings.len().min(MAX_WARNINGS);
    for warning in &machine.warnings[..shown] {
        parts.push(Part::text(&style, PLAIN, &format!("! {}", clean(&warning.text)), 2, 2));
    }
    if shown < machine.warnings.len() {
        let more = plural((machine.warnings.len() - shown) as u64, "more warning");
        parts.push(Part::text(&style, DIM, &more, 2, 2));
    }
    parts.push(Part::BLANK);
    let facts = facts(machine);
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, fact)| format!("{name:width$}  {fact}"));
    parts.extend(lines.map(|line| Part::text(&style, PLAIN, &line, width + 2, 5)));
    layout::fit(parts, &style)
}

fn color(grade: Grade) -> anstyle::Style {
    match grade {
        Grade::A | Grade::B => GOOD,
        Grade::C => MIDDLING,
        Grade::D => BAD,
    }
}

/// Renders the facts about the machine, its grade, and each warning with its advice.
pub fn machine(machine: &Machine, style: &Style) -> String {
    let mut text = style.simulated(machine.simulated);
    if machine.synthetic {
        let note = "The topology comes from a given directory, not from this machine. Nothing was measured.";
        text.push_str(&style.paragraph(BAD, note));
    }
    text.push_str(&style.paragraph(BOLD, clean(&machine.cpu).trim()));
    text.push('\n');
    let facts = facts(machine);
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, fact) in &facts {
        let lines = style.wrap(&format!("{name:width$}  {fact}"), width + 2);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(name).filter(|_| index == 0) {
                Some(rest) => text.push_str(&format!("{}{rest}\n", style.paint(DIM, name))),
                None => text.push_str(&format!("{line}\n")),
            }
        }
    }
    if !machine.noise.is_empty() {
        text.push('\n');
        text.push_str(&noise(&machine.noise, style));
    }
    text.push('\n');
    let with = color(machine.grade);
    let grade = style.wrap(&format!("Grade {}: {}", machine.grade, meaning(machine.grade)), 0);
    for (index, line) in grade.iter().enumerate() {
        match line.split_once(": ").filter(|_| index == 0) {
            Some((grade, rest)) => {
                text.push_str(&format!("{}: {rest}\n", style.paint(with, grade)))
            }
            None => text.push_str(&format!("{line}\n")),
        }
    }
    for warning in &machine.warnings {
        let lines = style.wrap(&format!("! {}", clean(&warning.text)), 2);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix("! ").filter(|_| index == 0) {
                Some(rest) => text.push_str(&format!("{} {rest}\n", style.paint(MIDDLING, "!"))),
                None => text.push_str(&format!("{line}\n")),
            }
        }
    }
    text
}

fn noise(noise: &[CpuNoise], style: &Style) -> String {
    let shown = noisiest(noise, MAX_CPUS);
    let (mut text, _) = draw(&crate::machine::noise(&shown), style);
    if shown.len() < noise.len() {
        let note = format!("The noisiest {} of {} CPUs.", shown.len(), noise.len());
        text.push_str(&style.paragraph(DIM, &note));
    }
    text
}

use threadtoll_record::{CpuNoise, Grade, Machine};

use super::layout::{self, Part};
use super::table::draw;
use super::{BAD, BOLD, DIM, GOOD, MIDDLING, PLAIN, Style};
use crate::clean::clean;
use crate::label::plural;
use crate::machine::{facts, meaning, noisiest};

/// Number of CPUs above which only the noisiest are shown.
const MAX_CPUS: usize = 16;
const MAX_WARNINGS: usize = 8;

/// Draws the grade, each warning with its advice, and the facts as far as there is room.
pub fn machine_screen(machine: &Machine, style: &Style) -> String {
    let style = layout::style(style);
    layout::fit(parts(machine, MAX_WARNINGS, &style), &style)
}

/// Renders the grade of the machine, each warning with its advice, the facts, and its noise.
pub fn machine(machine: &Machine, style: &Style) -> String {
    layout::all(parts(machine, usize::MAX, style), style) + &noise(&machine.noise, style)
}

fn parts(machine: &Machine, max_warnings: usize, style: &Style) -> Vec<Part> {
    let mut parts = Vec::new();
    let text = |with, text: &str, rank| Part::text(style, with, text, 2, rank);
    if machine.simulated {
        parts.push(text(BAD, super::SIMULATED, 0));
    }
    if machine.synthetic {
        parts.push(text(
            BAD,
            "Read from a folder, not from this machine: nothing was measured.",
            0,
        ));
    }
    parts.push(text(BOLD, clean(&machine.cpu).trim(), 7));
    let grade = format!("Grade {} of A–D: {}", machine.grade, meaning(machine.grade));
    parts.push(text(color(machine.grade), &grade, 0));
    let warnings = machine.warnings.iter().take(max_warnings);
    parts.extend(warnings.map(|it| text(PLAIN, &format!("! {}", clean(&it.text)), 2)));
    let more = machine.warnings.len().saturating_sub(max_warnings) as u64;
    parts.extend((more > 0).then(|| text(DIM, &plural(more, "more warning"), 2)));
    parts.push(Part::BLANK);
    let facts = facts(machine);
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, fact)| format!("{name:width$}  {fact}"));
    parts.extend(lines.map(|line| Part::text(style, PLAIN, &line, width + 2, 5)));
    parts
}

fn color(grade: Grade) -> anstyle::Style {
    match grade {
        Grade::A | Grade::B => GOOD,
        Grade::C => MIDDLING,
        Grade::D => BAD,
    }
}

fn noise(noise: &[CpuNoise], style: &Style) -> String {
    let shown = noisiest(noise, MAX_CPUS);
    if shown.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", draw(&crate::machine::noise(&shown), style).0);
    if shown.len() < noise.len() {
        let note = format!("The noisiest {} of {} CPUs.", shown.len(), noise.len());
        text.push_str(&style.paragraph(DIM, &note));
    }
    text
}

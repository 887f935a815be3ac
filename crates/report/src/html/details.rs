//! The end of a run's section: disturbances, and how to repeat the run.

use maud::{Markup, html};
use threadtoll_record::{Cause, CpuNoise, Record, Worst, file::Results};

use super::table::{more_rows, sortable};
use crate::clean::clean;
use crate::disturbance::{description, sum};
use crate::findings::command;
use crate::ladder::Row;
use crate::left_out::{by_reason, missing};
use crate::machine::{self, noisiest};
use crate::table::{self, Cell, Label, Section};
use crate::units::{count, digits, share, time};

const MAX_CPUS: usize = 64;
const MAX_WORST: usize = 40;
const MAX_WORST_OF_ROW: usize = 3;
const MAX_REFUSED: usize = 60;

pub(super) fn noise(noise: &[CpuNoise]) -> Markup {
    let shown = noisiest(noise, MAX_CPUS);
    html! {
        @if !noise.is_empty() {
            h2 { "Noise of the CPUs" } "\n"
            p { "Before the run, a thread on each CPU did nothing but read the clock. A long gap between two readings means that other work had the CPU." } "\n"
            (sortable(&machine::noise(&shown), "Noise of the CPUs", MAX_CPUS))
            @if shown.len() < noise.len() {
                p class="note" { "The noisiest " (shown.len()) " of " (noise.len()) " CPUs." } "\n"
            }
        }
    }
}

pub(super) fn disturbance(records: &[Record]) -> Markup {
    let all = sum(records.iter().map(|record| &record.disturbance));
    let mut causes: Vec<(&Cause, &u32)> = all.causes.iter().collect();
    causes.sort_by(|a, b| b.1.cmp(a.1));
    html! {
        @if all.blocks > 0 {
            h2 { "Disturbances" } "\n"
            p {
                (count(all.disturbed.into())) " of " (count(all.blocks.into())) " blocks of measurements ("
                (share(f64::from(all.disturbed) / f64::from(all.blocks)))
                ") were marked as disturbed. A block can have several causes."
            } "\n"
            dl { "\n"
                @for (cause, blocks) in causes {
                    dt { (cause.name()) " " (count((*blocks).into())) } dd { (description(*cause)) } "\n"
                }
            } "\n"
        }
    }
}

pub(super) fn worst(rows: &[Row<'_>]) -> Markup {
    type Longest<'r> = (&'r str, &'r Worst);
    type Column<'r> = table::Column<'static, Longest<'r>>;
    let longest = rows.iter().flat_map(|row| {
        let worst = row.main().map_or(&[][..], |main| &main.worst);
        worst.iter().take(MAX_WORST_OF_ROW).map(|worst| (row.label.as_str(), worst))
    });
    let mut longest: Vec<Longest<'_>> = longest.collect();
    longest.sort_by(|a, b| b.1.ns.get().total_cmp(&a.1.ns.get()));
    let columns: Vec<Column<'_>> = vec![
        Column::new("", "round trip", 0, |(_, worst)| Cell::figure(Some(worst.ns), time)).main(),
        Column::new("", "into the run", 1, |(_, worst)| {
            Cell::figure(Some(worst.at_s), |s| format!("{} s", digits(s)))
        }),
        Column::new("", "CPU", 1, |(_, worst)| Cell::text(worst.cpu.to_string())),
        Column::new("", "likely cause", 0, |(_, worst)| {
            Cell::text(worst.cause.map_or("none seen", Cause::name))
        }),
    ];
    let label = |(row, _): &Longest<'_>| Label::new(*row);
    let section = Section::new("", "mechanism", columns, &longest, label);
    html! {
        @if !longest.is_empty() {
            h2 { "The longest round trips and their likely causes" } "\n"
            (sortable(&section, "The longest round trips", MAX_WORST))
            (more_rows(longest.len().saturating_sub(MAX_WORST)))
        }
    }
}

pub(super) fn refused(results: &Results) -> Markup {
    let reasons = by_reason(&missing(results));
    html! {
        @if !reasons.is_empty() {
            h2 { "Left out" } "\n"
            ul class="refused" { "\n"
                @for (why, cells) in reasons.iter().take(MAX_REFUSED) {
                    li {
                        strong { (why) } ": "
                        (cells[..cells.len().min(MAX_REFUSED)].join(", "))
                        @if cells.len() > MAX_REFUSED { ", and " (cells.len() - MAX_REFUSED) " more" }
                    } "\n"
                }
            } "\n"
            @if reasons.len() > MAX_REFUSED {
                p class="note" { "And more; see the file." } "\n"
            }
        }
    }
}

pub(super) fn reproduce(results: &Results) -> Markup {
    let machine = &results.machine;
    html! {
        pre { code { (clean(&command(results))) } } "\n"
        p class="note" {
            "Run " (clean(&machine.run)) ", started " (clean(&machine.at)) ", seed "
            (results.plan.seed) ", by " (clean(&machine.tool)) "."
        } "\n"
    }
}

//! The end of a run's section: its disturbances, and how to repeat it.

use maud::{Markup, html};
use threadtoll_record::{Cause, CpuNoise, Record, file::Results};

use super::table::{number, sort_button};
use crate::clean::clean;
use crate::disturbance::{description, sum};
use crate::findings::command;
use crate::ladder::Row;
use crate::left_out::{by_reason, missing};
use crate::machine::{class_names, classes, gaps, noisiest};
use crate::units::{count, digits, share, time};

const MAX_CPUS: usize = 64;
const MAX_WORST: usize = 200;
const MAX_WORST_OF_ROW: usize = 3;
const MAX_REFUSED: usize = 60;

pub(super) fn noise(noise: &[CpuNoise]) -> Markup {
    let shown = noisiest(noise, MAX_CPUS);
    let classes = classes(&shown);
    let most = shown.iter().map(|cpu| cpu.lost_share.get()).fold(0.0, f64::max);
    let width = |cpu: &CpuNoise| {
        if most > 0.0 { (cpu.lost_share.get() / most * 100.0).clamp(0.0, 100.0) } else { 0.0 }
    };
    html! {
        @if !noise.is_empty() {
            h2 { "Noise of the CPUs" } "\n"
            p { "Before the run, a thread on each CPU did nothing but read the clock. Any time that vanished went to other work." } "\n"
            div class="scroll fit" {
                table class="sortable" {
                    thead {
                        tr {
                            @for heading in ["CPU", "lost", "longest gap"] { (sort_button(heading)) }
                            @for class in class_names(&classes) {
                                (sort_button(&format!("gaps of {class}")))
                            }
                        }
                    }
                    tbody { "\n"
                        @for cpu in &shown {
                            tr {
                                th scope="row" data-v=(cpu.cpu) { "CPU " (cpu.cpu) }
                                td data-v=(number(cpu.lost_share.get())) {
                                    span class="bar" style={ "--w:" (format_args!("{:.0}", width(cpu))) "%" } {}
                                    (share(cpu.lost_share.get()))
                                }
                                td data-v=(cpu.longest_ns) { (time(cpu.longest_ns.as_f64())) }
                                @for class in &classes {
                                    @let gaps = gaps(cpu, *class);
                                    td data-v=(gaps) { (count(gaps)) }
                                }
                            } "\n"
                        }
                    }
                }
            } "\n"
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
                (count(all.disturbed.into())) " of " (count(all.blocks.into())) " blocks ("
                (share(f64::from(all.disturbed) / f64::from(all.blocks)))
                ") were marked as disturbed. A block can have several causes."
            } "\n"
            @if !causes.is_empty() {
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "cause" }
                                th scope="col" { "blocks" }
                                th scope="col" class="words" { "meaning" }
                            }
                        }
                        tbody { "\n"
                            @for (cause, blocks) in causes {
                                tr {
                                    th scope="row" { (cause.name()) }
                                    td { (count((*blocks).into())) }
                                    td class="words" { (description(*cause)) }
                                } "\n"
                            }
                        }
                    }
                } "\n"
            }
        }
    }
}

pub(super) fn worst(rows: &[Row<'_>]) -> Markup {
    let worst = rows.iter().flat_map(|row| {
        let worst = row.main().map_or(&[][..], |main| &main.worst);
        worst.iter().take(MAX_WORST_OF_ROW).map(|worst| (row.label.as_str(), worst))
    });
    let worst: Vec<_> = worst.take(MAX_WORST).collect();
    html! {
        @if !worst.is_empty() {
            details class="worst" {
                summary { "The longest round trips and their likely causes" } "\n"
                p { "At most " (MAX_WORST_OF_ROW) " of each row." } "\n"
                div class="scroll" {
                    table class="sortable" {
                        thead {
                            tr {
                                @for heading in ["mechanism", "round trip", "into the run", "CPU"] {
                                    (sort_button(heading))
                                }
                                th scope="col" class="words" { button type="button" { "likely cause" } }
                            }
                        }
                        tbody { "\n"
                            @for (label, worst) in worst {
                                tr {
                                    th scope="row" { (label) }
                                    td data-v=(number(worst.ns.get())) { (time(worst.ns.get())) }
                                    td data-v=(number(worst.at_s.get())) { (digits(worst.at_s.get())) " s" }
                                    td data-v=(worst.cpu) { (worst.cpu) }
                                    td class="words" { (worst.cause.map_or("none seen", Cause::name)) }
                                } "\n"
                            }
                        }
                    }
                }
            } "\n"
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
        h2 { "To measure this again" } "\n"
        pre { code { (clean(&command(results))) } } "\n"
        p class="note" {
            "Run " (clean(&machine.run)) ", started " (clean(&machine.at)) ", seed "
            (results.plan.seed) ", by " (clean(&machine.tool)) "."
        } "\n"
    }
}

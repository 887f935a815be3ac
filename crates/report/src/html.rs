//! HTML: a single page that works offline, as a local file, in light and dark mode.
//!
//! Everything is readable without scripts; the only script sorts tables. Templates escape all
//! texts. In addition, the Content-Security-Policy allows only that script, by its hash, and no
//! requests.

mod chart;
mod charts;
mod details;
mod distribution;
mod headline;
mod profile;
mod run;
mod section;
mod table;

use maud::{Markup, PreEscaped, html};
use threadtoll_record::Record;
use threadtoll_record::file::{Profiled, Results};

use crate::clean::strip;
use crate::format::Format;
use crate::report::Report;
use crate::table::Topic;
use run::Run;
use section::contents;

const CSS: &str = include_str!("html/page.css");
const JS: &str = include_str!("html/page.js");
/// Hash of [`JS`], for the Content-Security-Policy.
const JS_HASH: &str = "sha256-DxCBqKsFuXe6g432aBUnOWOd7bee5d2IT4JiAJA1CoI=";

/// Beginnings of the titles of our pages, by which a newer page recognises one that it may replace.
pub const TITLES: [&str; 6] = [
    "What a hand-off costs",
    "Hand-offs between CPUs",
    "Queues between threads",
    "Threads that share a lock",
    "Several runs",
    "Where the threads of ",
];

fn title_of(topic: Topic) -> &'static str {
    match topic {
        Topic::Ladder => TITLES[0],
        Topic::Matrix => TITLES[1],
        Topic::Queues => TITLES[2],
        Topic::Locks => TITLES[3],
    }
}

/// A page for the browser.
#[derive(Clone, Copy, Debug)]
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn render(&self, reports: &[Report<'_>]) -> String {
        let runs: Vec<Run<'_>> =
            reports.iter().enumerate().map(|(index, report)| Run::new(index, report)).collect();
        document(&runs, &[]).into_string()
    }
}

/// A page with the results from one or several files, and with profiles.
///
/// The page stays below 5 MB, however many records there are; it says what is left out.
pub fn page(results: &[Results], profiles: &[Profiled]) -> String {
    let records: Vec<Vec<Record>> = results.iter().map(Results::records).collect();
    let reports: Vec<Report<'_>> = results
        .iter()
        .zip(&records)
        .map(|(results, records)| Report::new(results, records))
        .collect();
    let runs: Vec<Run<'_>> =
        reports.iter().enumerate().map(|(index, report)| Run::new(index, report)).collect();
    document(&runs, profiles).into_string()
}

fn document(runs: &[Run<'_>], profiles: &[Profiled]) -> Markup {
    let title = match (runs, profiles) {
        ([], [profiled]) => {
            format!("{}{} wait", TITLES[5], profile::program(&profiled.profile))
        }
        ([], [_, ..]) => format!("{}{} programs wait", TITLES[5], profiles.len()),
        ([run], _) => format!("{} on {}", title_of(run.topic()), run.name()),
        (runs, _) => format!("{}: {}", TITLES[4], runs.len()),
    };
    let policy = format!(
        "default-src 'none'; script-src '{JS_HASH}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    );
    let curves = runs.iter().map(|run| run.curves(runs.len())).max().unwrap_or(0);
    // All texts should be clean already; this catches any that was forgotten.
    let main = strip(body(runs, profiles).into_string());
    html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" { "\n"
            head { "\n"
                meta charset="utf-8"; "\n"
                meta http-equiv="Content-Security-Policy" content=(policy); "\n"
                meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                meta name="color-scheme" content="light dark"; "\n"
                link rel="icon" href="data:,"; "\n"
                title { (title) } "\n"
                style { "\n" (PreEscaped(CSS)) (PreEscaped(distribution::rules(curves))) } "\n"
            } "\n"
            body { "\n"
                (chart::shapes())
                main { "\n" (PreEscaped(main)) } "\n"
                script { (PreEscaped(JS)) } "\n"
            } "\n"
        } "\n"
    }
}

fn body(runs: &[Run<'_>], profiles: &[Profiled]) -> Markup {
    html! {
        @if runs.is_empty() && profiles.is_empty() {
            p { "No results were given." }
        }
        @if runs.len() > 1 { (contents(runs)) }
        @for run in runs { (run.section(runs.len())) }
        @for (index, profiled) in profiles.iter().enumerate() { (profile::section(index, profiled)) }
        @if profiles.is_empty() || !runs.is_empty() { (reading()) }
    }
}

fn reading() -> Markup {
    html! {
        details class="reading" {
            summary { "How to read this" }
            dl {
                dt { "One way" }
                dd { "Half a round trip; given for means and medians only. It comes from many round trips between two stamps, so the clock does not lengthen it." }
                dt { "Round trip" }
                dd { "There and back, each one stamped. Percentiles, maximum and the share over the limit are of whole round trips. Percentiles with fewer than 20 samples beyond them are left out." }
                dt { "Pinned, same CPU, free" }
                dd { "Each end pinned to a CPU of its own; both pinned to one CPU; both placed by the scheduler." }
                dt { "95%" }
                dd { "95% confidence interval, from resampling whole blocks." }
                dt { "CPU, switches" }
                dd { "User and system CPU time and context switches of both ends, per hand-off." }
                dt { "Ratio to" }
                dd { "Ratio to one row of the table, from pairs of blocks measured within seconds of each other. A verdict needs 21 pairs and allows for a margin of 5%." }
                dt { "Place" }
                dd { "First and last place that the intervals allow. Rows that share one are not told apart." }
                dt { "Disturbed" }
                dd { "A block during which other work took time from its CPUs. Disturbed blocks are marked, never deleted." }
            }
        } "\n"
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_script_as_it_is() {
        assert_eq!(JS_HASH, format!("sha256-{}", BASE64.encode(Sha256::digest(JS))));
    }
}

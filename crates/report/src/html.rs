//! For the browser: one page that works offline, from a file, in light and dark.
//!
//! The figures, sentences and tables are written here, so that they are there even without scripts;
//! the charts are drawn in the page by plotly, which travels in it. Texts reach the page through
//! templates that escape them. Besides, its Content-Security-Policy lets only our two scripts run,
//! by their hashes, and the page asks nothing from anywhere.

mod charts;
mod details;
mod distribution;
mod headline;
mod run;
mod table;

use maud::{Markup, PreEscaped, html};
use threadtoll_record::{Record, file::Results};

use crate::clean::strip;
use crate::format::Format;
use crate::report::Report;
use run::{Run, contents};

const CSS: &str = include_str!("html/page.css");
const JS: &str = include_str!("html/page.js");
const JS_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js.hash"));
const PLOTLY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.gz.base64"));
const PLOTLY_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.hash"));

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
        document(&runs).into_string()
    }
}

/// Makes a page of the results of one file or several.
///
/// However many records there are, the page stays below 5 MB: what is left out is said in it.
pub fn page(results: &[Results]) -> String {
    let records: Vec<Vec<Record>> = results.iter().map(Results::records).collect();
    let reports: Vec<Report<'_>> = results
        .iter()
        .zip(&records)
        .map(|(results, records)| Report::new(results, records))
        .collect();
    Html.render(&reports)
}

fn document(runs: &[Run<'_>]) -> Markup {
    let title = match runs {
        [run] => format!("What a hand-off costs on {}", run.name()),
        runs => format!("What a hand-off costs: {} runs", runs.len()),
    };
    let policy = format!(
        "default-src 'none'; script-src '{JS_HASH}' '{PLOTLY_HASH}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    );
    // Every text in it is clean already; a forgotten one would still not turn a line around.
    let main = strip(body(runs).into_string());
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
                style { "\n" (PreEscaped(CSS)) } "\n"
            } "\n"
            body { "\n"
                main { "\n" (PreEscaped(main)) } "\n"
                script type="application/json" id="data" { (charts::json(runs)) } "\n"
                script type="text/plain" id="plotly" { (PreEscaped(PLOTLY)) } "\n"
                script { (PreEscaped(JS)) } "\n"
            } "\n"
        } "\n"
    }
}

fn body(runs: &[Run<'_>]) -> Markup {
    html! {
        @if runs.is_empty() {
            p { "There is nothing to show: no results were given." }
        }
        @if runs.len() > 1 { (contents(runs)) }
        @for run in runs { (run.section(runs.len())) }
        (reading())
    }
}

/// Explanation of the words in the tables.
fn reading() -> Markup {
    html! {
        details class="reading" {
            summary { "How to read this" }
            dl {
                dt { "One way" }
                dd { "Half a round trip; given for means and medians only. It comes from long stretches between two stamps, so that the clock does not lengthen it." }
                dt { "Round trip" }
                dd { "There and back, each one stamped. Percentiles, the maximum and the share over the limit are of round trips and are never halved. A percentile is only given with 20 samples beyond it." }
                dt { "Pinned, same CPU, free" }
                dd { "Each end bound to a CPU of its own; both bound to one; both placed by the scheduler." }
                dt { "95%" }
                dd { "The interval in which the figure lies with 95% confidence, from resampling whole blocks." }
                dt { "CPU, switches" }
                dd { "CPU time in both modes and context switches of both ends together, per hand-off." }
                dt { "Against the reference" }
                dd { "Ratio of the one-way median to that of the reference cell, from blocks measured within seconds of each other. A verdict needs 21 pairs; “no worse” allows 5%." }
                dt { "Disturbed" }
                dd { "A block during which something else happened to the CPUs. Disturbed blocks are marked, never deleted." }
            }
        } "\n"
    }
}

//! For the browser: one page that works offline, from a file, in light and dark.
//!
//! The figures, sentences and tables are written here, so that they are there even without scripts;
//! the charts are drawn in the page by plotly, which travels in it. The page asks nothing from
//! anywhere, and its Content-Security-Policy lets only our two scripts run, by their hashes: a text
//! from a file that got past the escaping would still be no script.

mod data;
mod escape;
mod locks;
mod queue;
mod sections;
mod sortable;

use threadtoll_record::file::Results;

use escape::escape;
use sections::Run;

const CSS: &str = include_str!("html/page.css");
const JS: &str = include_str!("html/page.js");
const JS_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js.hash"));
const PLOTLY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.gz.base64"));
const PLOTLY_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.hash"));

/// Makes a page of the results of one file or several.
///
/// However many records there are, the page stays below 5 MB: what is left out is said in it.
pub fn page(results: &[Results]) -> String {
    let records: Vec<_> = results.iter().map(Results::records).collect();
    let runs: Vec<Run<'_>> = results
        .iter()
        .zip(&records)
        .enumerate()
        .map(|(index, (results, records))| Run::new(index, results, records))
        .collect();
    let title = match runs.as_slice() {
        [run] => format!("What a hand-off costs on {}", run.name()),
        runs => format!("What a hand-off costs: {} runs", runs.len()),
    };
    let mut body = String::new();
    if runs.is_empty() {
        body.push_str("<p>There is nothing to show: no results were given.</p>");
    }
    if runs.len() > 1 {
        body.push_str(&sections::contents(&runs));
    }
    for run in &runs {
        body.push_str(&run.section(runs.len()));
    }
    let policy = format!(
        "default-src 'none'; script-src '{JS_HASH}' '{PLOTLY_HASH}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n{body}{READING}</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script type=\"text/plain\" id=\"plotly\">{PLOTLY}</script>\n\
         <script>{JS}</script>\n</body>\n</html>\n",
        title = escape(&title),
        data = data::json(&runs),
    )
}

const READING: &str = "<details class=\"reading\"><summary>How to read this</summary><dl>\
<dt>One way</dt><dd>Half a round trip; given for means and medians only. It comes from long stretches between two stamps, so that the clock does not lengthen it.</dd>\
<dt>Round trip</dt><dd>There and back, each one stamped. Percentiles, the maximum and the share over the limit are of round trips and are never halved. A percentile is only given with 20 samples beyond it.</dd>\
<dt>Pinned, same CPU, free</dt><dd>Each end bound to a CPU of its own; both bound to one; both placed by the scheduler.</dd>\
<dt>95%</dt><dd>The interval in which the figure lies with 95% confidence, from resampling whole blocks.</dd>\
<dt>CPU, switches</dt><dd>CPU time in both modes and context switches of both ends together, per hand-off.</dd>\
<dt>Against the reference</dt><dd>Ratio of the one-way median to that of the reference cell, from blocks measured within seconds of each other. A verdict needs 21 pairs; “no worse” allows 5%.</dd>\
<dt>Disturbed</dt><dd>A block during which something else happened to the CPUs. Disturbed blocks are marked, never deleted.</dd>\
</dl></details>\n";

//! HTML: a single page that works offline, as a local file, in light and dark mode.
//!
//! Everything is readable without scripts; the only script sorts tables. Templates escape all
//! texts. In addition, the Content-Security-Policy forbids requests and all other scripts: it
//! allows the only script by its hash.

mod chart;
mod charts;
mod details;
mod distribution;
mod headline;
mod pool;
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
pub use pool::pool_page;

use run::Run;
use section::contents;

const CSS: &str = include_str!("html/page.css");
const JS: &str = include_str!("html/page.js");
const JS_HASH: &str = "sha256-nY5J3v//L7VkEYaedRfiLqZVUBHpR/d7Zx8v8znajVg=";

/// Beginnings of the titles of our pages. A page is overwritten only if its title begins with one
/// of them.
pub const TITLES: [&str; 8] = [
    "What a hand-off costs",
    "Hand-offs between CPUs",
    "Queues between threads",
    "Threads that share a lock",
    "Several runs",
    "Where the threads of ",
    "What overload does to a lock",
    "How many servers?",
];

fn title_of(topic: Topic) -> &'static str {
    match topic {
        Topic::Ladder => TITLES[0],
        Topic::Matrix => TITLES[1],
        Topic::Queues => TITLES[2],
        Topic::Locks => TITLES[3],
        Topic::Overload => TITLES[6],
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
/// The page stays below 5 MB. It names everything that is omitted to achieve this.
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
    page_of(&title, body(runs, profiles))
}

fn page_of(title: &str, body: Markup) -> Markup {
    let policy = format!(
        "default-src 'none'; script-src '{JS_HASH}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    );
    // All texts should already be clean; this catches any that were missed.
    let main = strip(body.into_string());
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
                style { "\n" (PreEscaped(css())) } "\n"
            } "\n"
            body { "\n"
                (chart::shapes())
                main { "\n" (PreEscaped(main)) } "\n"
                script { (PreEscaped(JS)) } "\n"
            } "\n"
        } "\n"
    }
}

fn css() -> String {
    CSS.lines().map(|line| line.trim_start().to_owned() + "\n").collect()
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

const GLOSSARY: &[(&str, &str)] = &[
    (
        "One way",
        "Half a round trip, for means and medians only. It is measured over many round trips between two readings of the clock, so reading the clock does not lengthen it.",
    ),
    (
        "Round trip",
        "A message and its echo, each round trip timed on its own. Percentiles, maximum and the share over a limit, such as >10 µs, are those of whole round trips. Percentiles with fewer than 20 samples beyond them are left out.",
    ),
    (
        "Pinned, same CPU, free",
        "Placements: each thread pinned to its own CPU; both pinned to the same CPU; both placed by the scheduler.",
    ),
    (
        "95%",
        "95% confidence interval, from resampling whole blocks of measurements of this run. Another run may differ by more.",
    ),
    (
        "CPU, switches",
        "User and system CPU time and context switches of all threads, per operation.",
    ),
    (
        "Ratio to",
        "Ratio to one row of the table, from pairs of blocks measured within seconds of each other. A verdict needs 21 pairs and allows for a margin of 5%.",
    ),
    (
        "Place",
        "Best and worst place in the ranking that the intervals allow. Rows that share a place cannot be told apart by these figures.",
    ),
    ("Wait, ring", "Wait: how the receiver waits. Ring: memory of a bounded queue’s messages."),
    (
        "Delivery, sent late, limit",
        "Delivery: time from when a message was due until the receiver has it. Sent late: delay of the sender. Limit: the queue was saturated, or the sender that generates the load was itself the limit.",
    ),
    (
        "Kept up with, saturated at",
        "Kept up with: highest rate at which the queue was not saturated. Saturated at: number of messages received per second at the next higher rate.",
    ),
    (
        "First, last, drain, found empty",
        "First, last: time from when a burst was due until the receiver has its first or its last message. Drain: time from the end of the last send call until the receiver has the last message. Found empty: share of the bursts that found the queue empty.",
    ),
    (
        "Pays below",
        "Gap between messages below which a receiver that spins takes less CPU time than one that sleeps.",
    ),
    ("Memory", "Memory of the process beyond what it used before the queue was created."),
    ("Fairness, evenness", "Jain’s index: 1 if all are equal."),
    (
        "Speed-up",
        "Work per second of all threads, divided by that of one thread without the lock. Predictions were made before the row was measured.",
    ),
    (
        "Queue, on entry",
        "Queue: number of waiting threads, averaged over time. On entry: number of threads that wait when a thread has just acquired the lock.",
    ),
    ("Hand-off of a lock", "From a release until a waiting thread has the lock."),
    (
        "In time, wasted, recovery",
        "In time: callers who get the lock within the deadline of their arrival. Wasted: of those who get it, callers who get it later. Recovery: from the end of the overload until nobody waits.",
    ),
    ("Between processes", "Share of the blocks’ variance that lies between processes."),
    (
        "Own program",
        "A program of another language measured the row itself. The time is its warm-up: how long it ran before its figures levelled off.",
    ),
    (
        "Disturbed (!), oversubscribed (*)",
        "Disturbed: other work took CPU time from more than a quarter of the blocks of measurements; such blocks are marked, never deleted. Oversubscribed: more threads than CPUs.",
    ),
];

fn reading() -> Markup {
    html! {
        details class="reading" {
            summary { "How to read this" }
            dl { @for (word, meaning) in GLOSSARY { dt { (word) } dd { (meaning) } "\n" } }
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

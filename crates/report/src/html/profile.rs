//! A profile on the page: time by kind, locks, holders and waiters, predicted curves.

mod curve;
mod graph;
mod states;

use maud::{Markup, html};
use threadtoll_record::file::Profiled;
use threadtoll_record::profile::{Lock, Profile, Site, Verdict};

use super::chart::px;
use super::run::day;
use super::table::{more_rows, plain, sortable};
use crate::clean::clean;
use crate::label::plural;
use crate::machine::facts;
use crate::profile::{self, Seen, answer, kinds, locks, never_seen, stack, stuck, time, waits};
use crate::units::percent;

const MAX_ROWS: usize = 500;
const MAX_LOCKS: usize = 20;
/// Maximum number of stacks of each role, and of frames of a stack.
const MAX_SITES: usize = 6;
const MAX_FRAMES: usize = 100;
const MAX_STUCK: usize = 16;
const BAR: f64 = 1000.0;

pub(super) fn program(profile: &Profile) -> String {
    let program = profile::words(&profile.program);
    let name = program.split(' ').next().unwrap_or_default();
    name.rsplit('/').next().unwrap_or(name).to_string()
}

pub(super) fn section(index: usize, profiled: &Profiled) -> Markup {
    let profile = &profiled.profile;
    let costs = profile::by_cost(profile);
    html! {
        section class="profile" id={ "profile-" (index) } { "\n"
            (header(profile, &costs))
            @if !profiled.notes.is_empty() || !profile.finished {
                ul class="warnings" aria-label="Warnings" { "\n"
                    @for note in &profiled.notes { li { (clean(note)) } "\n" }
                    @if !profile.finished {
                        li { "The profile was interrupted, or is still running: this is what it saw so far." } "\n"
                    }
                } "\n"
            }
            (states::states(profile))
            (thread_time(profile))
            @if !costs.is_empty() { (table(index, profile, &costs)) }
            @for (nth, seen) in costs.iter().filter(|seen| seen.waited()).take(MAX_LOCKS).enumerate() { (lock(nth, seen)) }
            (others(profile))
            h2 { "Not seen" } "\n"
            ul class="refused" { "\n"
                @for sentence in never_seen(profile) { li { (sentence) } "\n" }
            } "\n"
            (origin(profiled))
        } "\n"
    }
}

fn header(profile: &Profile, costs: &[Seen<'_>]) -> Markup {
    let answer = answer(profile);
    let mut about = profile::title(profile);
    about.push(day(&profile.at));
    html! {
        header { "\n"
            h1 { "Where the threads of " (program(profile)) " wait" } "\n"
            p class="about" {
                @for (index, fact) in about.iter().enumerate() {
                    @if index > 0 { " " }
                    span { (fact) }
                }
            } "\n"
            @if profile.machine.as_ref().is_some_and(|machine| machine.simulated) {
                p class="banner" role="alert" {
                    strong { "Simulated." }
                    " These figures come from a simulated machine and say nothing about a real one."
                } "\n"
            }
            p class="answer" { (answer.text) } "\n"
            (stuck(profile))
            @if let Some(seen) = costs.first().filter(|seen| answer.locks && !is_stuck(seen)) {
                ul class="verdict" { "\n"
                    @for cause in seen.lock.causes.iter().take(2) {
                        li {
                            (seen.name()) ": " (profile::cause(cause)) ". "
                            @if let Some(mend) = &cause.mend { strong { (clean(mend)) } }
                        } "\n"
                    }
                    @if let Some(best) = profile::best_change(seen.lock) { li { (best) } "\n" }
                } "\n"
            }
        } "\n"
    }
}

fn stuck(profile: &Profile) -> Markup {
    let all = stuck::stand_stills(profile);
    let Some((&first, others)) = all.split_first() else { return html! {} };
    html! {
        ul class="verdict" { "\n"
            @for line in stuck::threads(first, MAX_STUCK) { li { (line) } "\n" }
            @if let Some(mend) = &first.stuck.mend { li { "→ " (clean(mend)) } "\n" }
            @for &other in others { li { strong { (stuck::sentences(other, profile)) } } "\n" }
        } "\n"
    }
}

fn is_stuck(seen: &Seen<'_>) -> bool {
    stuck::concerns(seen.process, seen.lock.id)
}

fn thread_time(profile: &Profile) -> Markup {
    let Some(time) = profile::thread_time(profile) else { return html! {} };
    let parts = time::parts(time);
    let whole: f64 = parts.iter().map(|part| part.share).sum::<f64>().max(f64::MIN_POSITIVE);
    let mut left = 0.0;
    let bars: Vec<_> = parts
        .iter()
        .filter(|part| part.share > 0.0)
        .map(|part| {
            let width = part.share / whole * BAR;
            left += width;
            (part, left - width, width)
        })
        .collect();
    html! {
        h2 { "Time of the threads" } "\n"
        p { "Shares of the time of all threads together, with 95% intervals." } "\n"
        svg class="time" viewBox={ "0 0 " (BAR) " 36" } preserveAspectRatio="none" role="img" aria-label="Time of the threads by kind; the table below has the figures" {
            @for (part, x, width) in &bars {
                rect class={ "spent-" (part.spent.name()) } x=(px(*x)) y="0" width=(px(*width)) height="36" {
                    title { (part.name(profile)) " " (percent(part.share)) }
                }
            }
        } "\n"
        ul class="legend" { "\n"
            @for (part, ..) in &bars {
                li { span class={ "swatch spent-" (part.spent.name()) } {} (part.name(profile)) " " (percent(part.share)) } "\n"
            }
        } "\n"
        @let lines = kinds::lines(profile, time, &kinds::groups(profile));
        @if !lines.is_empty() {
            ul { "\n" @for line in &lines { li { (line) } "\n" } } "\n"
        }
        (plain(&time::section(time)))
    }
}

fn table(index: usize, profile: &Profile, costs: &[Seen<'_>]) -> Markup {
    let left_out: usize =
        profile.processes.iter().map(|process| process.locks_left_out as usize).sum();
    html! {
        h2 { "Locks" } "\n"
        p { "Sorted by the throughput that the program would gain if nobody waited for the lock. A lock is comfortable if at most 5% of its threads wait on average, saturated if it is held or handed over at least 90% of the time, and otherwise crowded." } "\n"
        (sortable(&locks::section(costs, 60), "Locks", MAX_ROWS))
        (more_rows(costs.len().saturating_sub(MAX_ROWS) + left_out))
        (graph::graph(index, costs))
    }
}

fn verdict_class(lock: &Lock) -> &'static str {
    match lock.verdict {
        Some(Verdict::Comfortable) => "good",
        Some(Verdict::Saturated) => "bad",
        _ => "middling",
    }
}

fn lock(nth: usize, seen: &Seen<'_>) -> Markup {
    let lock = seen.lock;
    html! {
        section class={ "lock " (verdict_class(lock)) } { "\n"
            h3 { (seen.name()) } "\n"
            p class="note" { (locks::description(lock)) } "\n"
            dl { "\n"
                @for (name, what) in locks::details(seen) { dt { (name) } dd { (what) } "\n" }
            } "\n"
            (curve::curve(lock))
            @if !lock.what_if.is_empty() {
                h4 { "What would help" } "\n"
                (plain(&locks::changes(lock)))
            }
            (stacks(lock, nth == 0))
        } "\n"
    }
}

fn stacks(lock: &Lock, open: bool) -> Markup {
    let sites = locks::sites(lock, MAX_SITES);
    html! {
        @if !sites.is_empty() {
            details class="stacks" open[open] {
                summary { "Stacks of its holders and waiters" }
                div class="stacks" { "\n"
                    @for site in sites { (frames(lock, site)) }
                }
            } "\n"
        }
    }
}

fn frames(lock: &Lock, site: &Site) -> Markup {
    html! {
        figure {
            figcaption { (stack::caption(lock, site)) }
            ol { "\n"
                @for frame in site.frames.iter().take(MAX_FRAMES) { li { code { (clean(frame)) } } "\n" }
            }
        } "\n"
    }
}

fn others(profile: &Profile) -> Markup {
    let waits = waits::waits(profile);
    html! {
        @if !waits.is_empty() {
            h2 { "Waits that are not for a lock" } "\n"
            p { "Threads that wait for other threads: for work, for each other, or for something that was not recognised. It is not known for which of these." } "\n"
            (sortable(&waits::section(&waits, 60), "Waits that are not for a lock", MAX_ROWS))
            (more_rows(waits.len().saturating_sub(MAX_ROWS)))
        }
        @for process in profile.processes.iter().filter(|process| !process.spins.is_empty()) {
            h2 { "Spinning for locks" } "\n"
            p { "PID " (process.pid) ": running threads in functions that spin until they have a lock." } "\n"
            ul { @for site in &process.spins {
                li { (plural(site.samples.get(), "sample")) ": " code { (stack::line(site)) } } "\n"
            } }
        }
        @if profile.processes.len() > 1 {
            h2 { "Processes" } "\n"
            (sortable(&waits::processes(profile), "Processes", MAX_ROWS))
            (more_rows(profile.processes.len().saturating_sub(MAX_ROWS)))
        }
    }
}

fn origin(profiled: &Profiled) -> Markup {
    let profile = &profiled.profile;
    html! {
        details class="machine" {
            summary { "How this was measured" }
            ul { "\n"
                @for sentence in profile::method(profile) { li { (sentence) } "\n" }
            } "\n"
            @if let Some(machine) = &profile.machine {
                dl { "\n"
                    @for (name, fact) in facts(machine) { dt { (name) } dd { (fact) } "\n" }
                }
            }
        } "\n"
        p class="note" {
            "Run " (clean(&profile.run)) ", until " (clean(&profile.at))
            @if let Some(machine) = &profile.machine { ", by " (clean(&machine.tool)) }
            "."
        } "\n"
    }
}

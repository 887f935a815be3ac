//! The section of a run on the page.

use maud::{Markup, html};
use threadtoll_record::Placement;

use super::details::{disturbance, noise, refused, reproduce, worst};
use super::headline::{findings, headline, machine};
use super::run::{MAX_LADDER_ROWS, MAX_LOCK_ROWS, MAX_QUEUE_ROWS, Run, day};
use super::table::{more_rows, notes, plain, sortable};
use super::{TITLES, chart, charts, distribution};
use crate::figure::{Figure, Timeline};
use crate::label::{cpus, relation};
use crate::ladder::{Row, at_one_speed};
use crate::locks;
use crate::queues;
use crate::screen::Picture;
use crate::table::{Section, Table, Topic};

impl Run<'_> {
    /// Renders this run, which is one of `runs`: cards, the first chart, findings, and then
    /// everything else.
    pub(super) fn section(&self, runs: usize) -> Markup {
        let table = |topic| self.report.table(topic);
        html! {
            section class="run" id={ "run-" (self.index) } { "\n"
                (headline(self, runs))
                @match table(self.topic()).map(|table| (table.topic, table)) {
                    Some((Topic::Ladder, _)) => (self.ladder_chart()),
                    Some((Topic::Queues, table)) => (self.first_queues(table)),
                    Some((Topic::Locks, table)) => {
                        (first_locks(table))
                        (self.timelines())
                    }
                    Some((Topic::Matrix, table)) => (first_matrix(table, runs)),
                    None => {}
                }
                @if let Some(table) = table(Topic::Queues) { (self.queue_charts(table)) }
                @if let Some(table) = table(Topic::Locks) { (self.lock_charts(table)) }
                @if let Some(table) = table(Topic::Matrix) {
                    (matrix(table, self.topic() == Topic::Matrix, runs))
                }
                (self.distributions(runs))
                (folded("All figures", html! {
                    @if let Some(table) = table(Topic::Ladder) { (ladder(table)) }
                    @if let Some(table) = table(Topic::Queues) { (self.queues(table)) }
                    @if let Some(table) = table(Topic::Locks) { (self.locks(table)) }
                }))
                (folded("All findings, and what was compared", findings(self)))
                (folded("The machine, and what disturbed it", html! {
                    (machine(&self.results().machine))
                    (noise(&self.results().machine.noise))
                    (disturbance(self.records()))
                    (worst(self.rows()))
                    (refused(self.results()))
                }))
                (folded("To measure this again", reproduce(self.results())))
            } "\n"
        }
    }

    fn ladder_chart(&self) -> Markup {
        html! {
            h2 id={ "ladder-" (self.index) } { "The ladder" } "\n"
            (charts::ladder(&at_one_speed(self.results(), self.records())))
            p {
                "One hand-off, one way (half a round trip): medians with their 95% intervals, on a logarithmic axis."
                (self.pinned_pair())
                " Diamonds are published figures."
            } "\n"
        }
    }

    fn pinned_pair(&self) -> String {
        let mut main = self.ladder.iter().filter_map(Row::main);
        let pair = main.find(|record| {
            record.cell.placement == Placement::Pinned && record.cell.cpus.len() == 2
        });
        pair.map_or_else(String::new, |record| {
            format!(
                " Pinned means {} ({}).",
                cpus(&record.cell.cpus),
                relation(record.cell.relation)
            )
        })
    }

    /// The first chart of queues.
    fn first_queues(&self, table: &Table) -> Markup {
        let picture = self.report.answer.screen.as_ref().and_then(|screen| screen.picture.as_ref());
        html! {
            @if let Some(Picture::Curves(curves)) = picture { (charts::curves(curves)) }
            @if let Some((section, comparison)) = table.sections.first().zip(self.comparisons.first()) {
                h2 { (section.heading) } "\n"
                (charts::queue(comparison, MAX_QUEUE_ROWS))
            }
        }
    }

    /// The other charts of queues.
    fn queue_charts(&self, table: &Table) -> Markup {
        let mut left = MAX_QUEUE_ROWS;
        let drawn = usize::from(self.topic() == Topic::Queues);
        let sections = table.sections.iter().zip(&self.comparisons).skip(drawn);
        html! {
            @for (section, comparison) in sections {
                @let shown = take(section, &mut left);
                @if shown > 0 {
                    h3 { (section.heading) } "\n"
                    (charts::queue(comparison, shown))
                }
            }
        }
    }

    fn lock_charts(&self, table: &Table) -> Markup {
        let first = first_figure(table).filter(|_| self.topic() == Topic::Locks);
        let is_first = |section: &Section| first.is_some_and(|first| std::ptr::eq(first, section));
        html! {
            @for section in table.sections.iter().filter(|section| section.figure.is_some()) {
                @if !is_first(section) {
                    h3 { (section.heading) } "\n"
                    (lock_chart(section))
                }
            }
        }
    }

    fn queues(&self, table: &Table) -> Markup {
        let mut left = MAX_QUEUE_ROWS;
        html! {
            h2 { "Queues" } "\n"
            p {
                "Spinning receivers are compared with spinning ones, batches with batches. A message has 8 bytes. "
                (queues::capacities(&self.comparisons).unwrap_or_default())
            } "\n"
            @for section in &table.sections {
                @let shown = take(section, &mut left);
                @if shown > 0 {
                    h3 { (section.heading) } "\n"
                    (sortable(section, &section.heading, shown))
                }
            }
            (more_rows(table.rows().saturating_sub(MAX_QUEUE_ROWS)))
            (notes(&table.notes))
        }
    }

    /// What the threads of some cells did, moment by moment; only the first is unfolded.
    fn timelines(&self) -> Markup {
        let timelines = locks::timelines(self.results(), self.records());
        html! {
            @for (nth, timeline) in timelines.iter().enumerate() {
                @if nth == 0 {
                    h2 { "Moment by moment: " (timeline.heading) } "\n"
                    (drawn(timeline))
                } @else {
                    (folded(&timeline.heading, drawn(timeline)))
                }
            }
        }
    }

    fn locks(&self, table: &Table) -> Markup {
        let mut left = MAX_LOCK_ROWS;
        html! {
            h2 { "Locks" } "\n"
            p { "Speed-up is the work per second of all threads, divided by that of one thread without the lock. Predictions were written before the cell was measured." } "\n"
            @for section in &table.sections {
                @let shown = take(section, &mut left);
                @if shown > 0 {
                    h3 { (section.heading) } "\n"
                    (sortable(section, &section.heading, shown))
                }
            }
            (more_rows(table.rows().saturating_sub(MAX_LOCK_ROWS)))
            (notes(&table.notes))
        }
    }

    fn distributions(&self, runs: usize) -> Markup {
        let step_ns = self.results().machine.clock.step_ns.get();
        distribution::section(self.rows(), self.index, runs, step_ns)
    }
}

fn folded(summary: &str, inside: Markup) -> Markup {
    html! {
        details class="folded" { summary { (summary) } "\n" (inside) } "\n"
    }
}

fn take(section: &Section, left: &mut usize) -> usize {
    let shown = section.rows.len().min(*left);
    *left -= shown;
    shown
}

fn ladder(table: &Table) -> Markup {
    html! {
        @for section in &table.sections {
            (sortable(section, "The ladder as a table", MAX_LADDER_ROWS))
        }
        (more_rows(table.rows().saturating_sub(MAX_LADDER_ROWS)))
        (notes(&table.notes))
    }
}

fn drawn(timeline: &Timeline) -> Markup {
    html! {
        p { (timeline.sentence) } "\n"
        (chart::timeline(timeline))
    }
}

fn first_figure(table: &Table) -> Option<&Section> {
    table.sections.iter().find(|section| section.figure.is_some())
}

fn first_locks(table: &Table) -> Markup {
    html! {
        @if let Some(section) = first_figure(table) {
            h2 { (section.heading) } "\n"
            (lock_chart(section))
        }
    }
}

fn lock_chart(section: &Section) -> Markup {
    html! {
        @if let Some(Figure::SpeedUp(map)) = &section.figure {
            (charts::surface(&section.heading, map))
            @if map.columns.len() > 1 && map.predicted.iter().flatten().any(Option::is_some) {
                @for reason in &map.unpredicted { p class="note" { "–  " (reason) } "\n" }
            }
        }
    }
}

/// The first chart of CPU pairs, and its table.
fn first_matrix(table: &Table, runs: usize) -> Markup {
    html! {
        @if let Some(section) = table.sections.first() { (pairs(section, table, runs)) }
    }
}

fn matrix(table: &Table, drawn_first: bool, runs: usize) -> Markup {
    html! {
        @for section in table.sections.iter().skip(usize::from(drawn_first)) { (pairs(section, table, runs)) }
    }
}

fn pairs(section: &Section, table: &Table, runs: usize) -> Markup {
    html! {
        @if let Some(Figure::Pairs(pairs)) = &section.figure && pairs.values.len() > 1 {
            h2 { "Between pairs of CPUs: " (pairs.label) } "\n"
            p { "One way (half a round trip), p50. Lines separate nodes, last-level caches and cores." } "\n"
            (charts::pairs(pairs, table.sections.len() * runs))
        }
        (plain(section))
    }
}

pub(super) fn contents(runs: &[Run<'_>]) -> Markup {
    html! {
        h1 { (TITLES[4]) } "\n"
        nav aria-label="Runs" {
            ol { "\n"
                @for run in runs {
                    li {
                        a href={ "#run-" (run.index) } {
                            (run.name()) ", " (day(&run.results().machine.at))
                        }
                    } "\n"
                }
            }
        } "\n"
    }
}

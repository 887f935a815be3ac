use maud::{Markup, html};
use threadtoll_record::Placement;

use super::details::{disturbance, noise, refused, reproduce, worst};
use super::headline::{findings, headline, machine};
use super::run::{Run, day};
use super::table::{more_rows, notes, plain, sortable};
use super::{TITLES, chart, charts, distribution};
use crate::figure::{Figure, QueueOverTime, Timeline};
use crate::label::{cpus, plural, relation};
use crate::ladder::{Row, at_one_speed};
use crate::locks;
use crate::overload;
use crate::queues;
use crate::screen::Picture;
use crate::table::{Section, Table, Topic};

/// Maximum number of rows in all tables together, and in each chart, to keep the page small.
const MAX_ROWS: usize = 160;
const MAX_CHART_ROWS: usize = 60;
/// Maximum number of further maps of locks below the first.
const MAX_MAPS: usize = 3;
/// Maximum number of drawings of queues over time.
const MAX_OVER_TIME: usize = 9;

impl Run<'_> {
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
                    Some((Topic::Overload, _)) | None => {}
                }
                @if let Some(table) = table(Topic::Queues) { (self.queue_charts(table)) }
                @if let Some(table) = table(Topic::Locks) { (self.lock_charts(table)) }
                @if table(Topic::Overload).is_some() { (self.over_time()) }
                @if let Some(table) = table(Topic::Matrix) {
                    (matrix(table, self.topic() == Topic::Matrix, runs))
                }
                (self.distributions(runs))
                (folded("All figures", html! {
                    @if let Some(table) = table(Topic::Ladder) {
                        (tables(table.sections.iter()))
                        (notes(&table.notes))
                    }
                    @if let Some(table) = table(Topic::Queues) { (self.queues(table)) }
                    @if let Some(table) = table(Topic::Locks) {
                        h2 { "Locks" } "\n"
                        p { (table.introduction) } "\n"
                        (tables(table.sections.iter()))
                        (notes(&table.notes))
                    }
                    @if let Some(table) = table(Topic::Overload) {
                        h2 { "Overload" } "\n"
                        p { (table.introduction) } "\n"
                        (tables(table.sections.iter()))
                        (notes(&table.notes))
                    }
                }))
                (folded("All findings, and what was compared", findings(self)))
                (folded("The machine, and what disturbed it", html! {
                    (machine(&self.results().machine))
                    (noise(&self.results().machine.noise))
                    (disturbance(self.records()))
                    (worst(self.rows()))
                    (refused(self.results()))
                }))
                (folded("To reproduce this", reproduce(self.results())))
            } "\n"
        }
    }

    fn ladder_chart(&self) -> Markup {
        html! {
            h2 id={ "ladder-" (self.index) } { "All mechanisms" } "\n"
            @let rows = at_one_speed(self.results(), self.records());
            (charts::ladder(&rows, MAX_CHART_ROWS))
            (more_rows(rows.len().saturating_sub(MAX_CHART_ROWS)))
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

    fn first_queues(&self, table: &Table) -> Markup {
        let picture = self.report.answer.screen.as_ref().and_then(|screen| screen.picture.as_ref());
        html! {
            @if let Some(Picture::Curves(curves)) = picture { (charts::curves(curves)) }
            @if let Some((section, comparison)) = table.sections.first().zip(self.comparisons.first()) {
                h2 { (section.heading) } "\n"
                (charts::queue(comparison, section, MAX_CHART_ROWS))
            }
        }
    }

    fn queue_charts(&self, table: &Table) -> Markup {
        let drawn = usize::from(self.topic() == Topic::Queues);
        let mut left = MAX_CHART_ROWS;
        let sections = table.sections.iter().zip(&self.comparisons).skip(drawn);
        let rows: usize = sections.clone().map(|(section, _)| section.rows.len()).sum();
        let more = rows.saturating_sub(left) as u64;
        html! {
            @for (section, comparison) in sections {
                @let shown = take(section, &mut left);
                @if shown > 0 {
                    h3 { (section.heading) } "\n"
                    (charts::queue(comparison, section, shown))
                }
            }
            @if more > 0 { p class="note" { (plural(more, "more row")) ": see all figures." } "\n" }
        }
    }

    /// The first map is in the headline.
    fn lock_charts(&self, table: &Table) -> Markup {
        let drawn = usize::from(self.topic() == Topic::Locks);
        let maps = || table.sections.iter().filter(|section| section.figure.is_some()).skip(drawn);
        let more = maps().count().saturating_sub(MAX_MAPS) as u64;
        html! {
            @for section in maps().take(MAX_MAPS) {
                h3 { (section.heading) } "\n"
                (lock_chart(section))
            }
            @if more > 0 { p class="note" { (plural(more, "more lock")) ": see all figures." } "\n" }
        }
    }

    fn queues(&self, table: &Table) -> Markup {
        let (each, all) = table.sections.split_at(self.comparisons.len());
        let introduction = format!(
            "Spinning receivers are compared with spinning ones, batches with batches. A message has 8 bytes. {}",
            queues::capacities(&self.comparisons).unwrap_or_default()
        );
        html! {
            h2 { "Queues" } "\n"
            p { (introduction) } "\n"
            (tables(all.iter().chain(each)))
            (notes(&table.notes))
        }
    }

    /// Only the first timeline is unfolded.
    fn timelines(&self) -> Markup {
        let timelines = locks::timelines(self.results(), self.records());
        html! {
            @for (nth, timeline) in timelines.iter().enumerate() {
                @if nth == 0 {
                    h2 { "Timeline: " (timeline.heading) } "\n"
                    (drawn(timeline))
                } @else {
                    (folded(&timeline.heading, drawn(timeline)))
                }
            }
        }
    }

    /// Only the first drawing is unfolded.
    fn over_time(&self) -> Markup {
        let queues = overload::queues(self.records());
        let more = queues.len().saturating_sub(MAX_OVER_TIME) as u64;
        let draw = |queue: &QueueOverTime| {
            html! {
                p { (queue.sentence) } "\n"
                (charts::over_time(queue))
            }
        };
        html! {
            @for (nth, queue) in queues.iter().take(MAX_OVER_TIME).enumerate() {
                @if nth == 0 {
                    h2 { "Queue over time: " (queue.heading) } "\n"
                    (draw(queue))
                } @else {
                    (folded(&queue.heading, draw(queue)))
                }
            }
            @if more > 0 { p class="note" { (plural(more, "more rate")) ": see all figures." } "\n" }
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

fn tables<'s>(sections: impl Iterator<Item = &'s Section> + Clone) -> Markup {
    let rows: usize = sections.clone().map(|section| section.rows.len()).sum();
    let mut left = MAX_ROWS;
    html! {
        @for section in sections {
            @let shown = take(section, &mut left);
            @if shown > 0 {
                @if !section.heading.is_empty() { h3 { (section.heading) } "\n" }
                (sortable(section, &section.heading, shown))
            }
        }
        (more_rows(rows.saturating_sub(MAX_ROWS)))
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

//! The parts of the page that are there without scripts.

use std::fmt::Write;

use threadtoll_record::{Cause, Grade, Record, file::Results};

use super::escape::escape;
use crate::class::Class;
use crate::cost::{cpu_ns, switches};
use crate::disturbance::{description, sum, too_disturbed};
use crate::findings::{cheapest_of, command, findings};
use crate::label::{cpus, plural, relation, verdict};
use crate::machine::{class_names, classes, facts, gaps, meaning, noisiest};
use crate::matrix::{Pairs, pairs};
use crate::merge::median;
use crate::published::{published, shown};
use crate::rows::{Row, cheapest, rows, times};
use crate::units::{count, digits, maybe_time, per_op, plus_minus, round_time, share, time};

/// All rows of ladders in a page together.
const MOST_ROWS: usize = 300;
/// CPUs whose noise is listed, of one run.
const MOST_CPUS: usize = 64;
/// Longest samples that are listed, of one run.
const MOST_WORST: usize = 200;
/// Longest samples that are listed, of one row.
const MOST_WORST_OF_ROW: usize = 8;
/// Sentences of one kind, of one run.
const MOST_SENTENCES: usize = 60;

/// One file of results.
pub(super) struct Run<'a> {
    index: usize,
    pub(super) results: &'a Results,
    pub(super) records: &'a [Record],
    rows: Vec<Row<'a>>,
    pub(super) matrices: Vec<Pairs<'a>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(index: usize, results: &'a Results, records: &'a [Record]) -> Self {
        Run {
            index,
            results,
            records,
            rows: rows(records),
            matrices: pairs(&results.machine, records),
        }
    }

    /// The rows that the page shows: the first of them, if there are very many.
    pub(super) fn rows(&self) -> &[Row<'a>] {
        &self.rows[..self.rows.len().min(MOST_ROWS)]
    }

    /// The maps of locks.
    pub(super) fn surfaces(&self) -> Vec<crate::locks::Map> {
        crate::locks::sections(self.records).iter().filter_map(crate::locks::Section::map).collect()
    }

    pub(super) fn name(&self) -> String {
        crate::clean::clean(&self.results.machine.cpu).trim().to_string()
    }

    /// Everything about this run; `of` is how many there are.
    pub(super) fn section(&self, of: usize) -> String {
        let mut html =
            format!("<section class=\"run\" id=\"run-{0}\" data-run=\"{0}\">\n", self.index);
        html.push_str(&self.headline(of));
        html.push_str(&self.verdict());
        html.push_str(&self.ladder());
        html.push_str(&super::queue::section(self.results, self.records));
        html.push_str(&super::locks::section(self.records));
        html.push_str(&self.distributions());
        html.push_str(&self.matrix());
        html.push_str(&self.noise());
        html.push_str(&self.disturbance());
        html.push_str(&self.worst());
        html.push_str(&self.refused());
        html.push_str(&self.reproduce());
        html.push_str("</section>\n");
        html
    }

    fn id(&self, part: &str) -> String {
        format!("{part}-{}", self.index)
    }

    fn headline(&self, of: usize) -> String {
        let machine = &self.results.machine;
        let mut html = String::from("<header>\n");
        let heading = if of > 1 { "h2" } else { "h1" };
        let text = if of > 1 { self.name() } else { "What a hand-off costs".into() };
        let _ = writeln!(html, "<{heading}>{}</{heading}>", escape(&text));
        let mut about = Vec::new();
        if of == 1 {
            about.push(self.name());
        }
        about.push(plural(machine.cpus.into(), "CPU"));
        about.push(format!("Linux {}", machine.kernel));
        about.extend(machine.virtualised.as_ref().map(|name| format!("virtual machine ({name})")));
        about.push(day(&machine.at));
        let about: Vec<String> =
            about.iter().map(|part| format!("<span>{}</span>", escape(part))).collect();
        let _ = writeln!(html, "<p class=\"about\">{}</p>", about.join(" "));
        if machine.simulated {
            html.push_str("<p class=\"banner\" role=\"alert\"><strong>Simulated.</strong> A simulated machine made these figures. They say nothing about any real one.</p>\n");
        }
        html.push_str("<ul class=\"cards\">\n");
        let mut card = |figure: &str, what: &str, detail: &str, class: &str| {
            let _ = writeln!(
                html,
                "<li class=\"card {class}\"><span class=\"figure\">{}</span><span class=\"what\">{}</span><span class=\"detail\">{}</span></li>",
                escape(figure),
                escape(what),
                escape(detail)
            );
        };
        let line = cheapest_of(&self.rows, Class::Line);
        let sleep = cheapest_of(&self.rows, Class::Sleep);
        if let Some((record, p50)) = line.and_then(|record| Some((record, record.one_way_p50()?))) {
            card(&time(p50), "through a cache line", &record.cell.label(), "line");
        }
        if let Some((record, p50)) = sleep.and_then(|record| Some((record, record.one_way_p50()?)))
        {
            card(&time(p50), "to wake a sleeping thread", &record.cell.label(), "sleep");
        }
        if let Some(ratio) = line.zip(sleep).and_then(|(line, sleep)| times(sleep, line)) {
            card(&format!("{}×", digits(ratio)), "between the two", "one way, pinned, p50", "");
        }
        let by_relation = self.matrices.first().map(Pairs::by_relation).unwrap_or_default();
        if line.is_none() && sleep.is_none() {
            let (near, far) = (by_relation.first_key_value(), by_relation.last_key_value());
            for (of, values) in near.into_iter().chain(far.filter(|_| by_relation.len() > 1)) {
                if let Some(median) = median(values.iter().copied()) {
                    card(
                        &time(median),
                        &format!("between {}", relation(*of)),
                        "one way, median of the pairs",
                        "line",
                    );
                }
            }
        }
        for (figure, what, detail) in crate::queues::cards(self.records) {
            card(&figure, &what, &detail, "line");
        }
        let grade = match machine.grade {
            Grade::A | Grade::B => "good",
            Grade::C => "middling",
            Grade::D => "bad",
        };
        card(&machine.grade.to_string(), "fitness of the machine", meaning(machine.grade), grade);
        html.push_str("</ul>\n</header>\n");
        html
    }

    fn verdict(&self) -> String {
        let machine = &self.results.machine;
        let sentences = findings(self.results, self.records);
        let mut html = String::new();
        if !sentences.is_empty() {
            html.push_str("<ul class=\"verdict\">\n");
            for sentence in sentences {
                let _ = writeln!(html, "<li>{}</li>", with_code(&sentence));
            }
            html.push_str("</ul>\n");
        }
        let mut warnings: Vec<&str> =
            machine.warnings.iter().map(|warning| warning.text.as_str()).collect();
        warnings.extend(self.results.notes.iter().map(String::as_str));
        if !warnings.is_empty() {
            html.push_str("<ul class=\"warnings\" aria-label=\"Warnings\">\n");
            for warning in warnings.iter().take(MOST_SENTENCES) {
                let _ = writeln!(html, "<li>{}</li>", escape(warning));
            }
            html.push_str("</ul>\n");
        }
        html.push_str("<details class=\"machine\"><summary>The machine in full</summary><dl>\n");
        for (name, fact) in facts(machine) {
            let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&fact));
        }
        html.push_str("</dl></details>\n");
        html
    }

    fn ladder(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut html = format!(
            "<h2 id=\"{id}\">The ladder</h2>\n<p>One hand-off, one way (half a round trip): medians with their 95% intervals, on a logarithmic axis.{pair} Diamonds are what others published.</p>\n<div class=\"chart\" data-chart=\"ladder\" role=\"img\" aria-label=\"One-way medians of every mechanism on a logarithmic axis; the table below has the same figures\"></div>\n",
            id = self.id("ladder"),
            pair = escape(&self.pair()),
        );
        html.push_str(&self.table());
        if self.rows.len() > self.rows().len() {
            let _ = writeln!(
                html,
                "<p class=\"note\">{} more rows are in the file.</p>",
                self.rows.len() - self.rows().len()
            );
        }
        html
    }

    fn pair(&self) -> String {
        let mut pinned =
            self.rows.iter().filter_map(Row::main).filter(|record| record.cell.cpus.len() == 2);
        pinned
            .find(|record| record.cell.placement == threadtoll_record::Placement::Pinned)
            .map_or_else(String::new, |record| {
                format!(
                    " Pinned means {} ({}).",
                    cpus(&record.cell.cpus),
                    relation(record.cell.relation)
                )
            })
    }

    fn table(&self) -> String {
        let base = cheapest(&self.rows).and_then(Row::main);
        let over =
            format!(">{}", round_time(self.results.plan.over_ns as f64)).replace(' ', "\u{a0}");
        let heads = [
            ("mechanism", ""),
            ("pinned", "one way, p50"),
            ("same CPU", "one way, p50"),
            ("free", "one way, p50"),
            ("95%", "interval of the row’s first one-way median"),
            ("times cheapest", "times the cheapest hand-off between two threads"),
            ("p50", "round trip"),
            ("p99", "round trip"),
            ("p99.9", "round trip"),
            ("max", "round trip"),
            (over.as_str(), "share of the round trips over the limit"),
            ("CPU", "CPU time of both ends per hand-off"),
            ("switches", "context switches per hand-off"),
            (
                "times reference",
                "against the reference cell: ratio of paired blocks and what its 95% interval says",
            ),
            ("published", "one way, with the year"),
        ];
        let mut html = String::from(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The ladder as a table\"><table class=\"sortable\">\n<thead>\n<tr class=\"groups\"><td></td><th colspan=\"5\" scope=\"colgroup\">one way</th><th colspan=\"5\" scope=\"colgroup\">round trip</th><th colspan=\"2\" scope=\"colgroup\">per hand-off</th><td></td><td></td></tr>\n<tr>",
        );
        for (head, title) in heads {
            let _ = write!(
                html,
                "<th scope=\"col\"><button type=\"button\" title=\"{}\">{}</button></th>",
                escape(title),
                escape(head)
            );
        }
        html.push_str("</tr>\n</thead>\n<tbody>\n");
        for row in self.rows() {
            html.push_str(&table_row(row, base));
        }
        html.push_str("</tbody></table></div>\n");
        html
    }

    fn distributions(&self) -> String {
        if self.rows().iter().all(|row| row.main().is_none_or(|main| main.histogram.is_none())) {
            return String::new();
        }
        format!(
            "<h2 id=\"{}\">Every round trip</h2>\n<p>Round trips (there and back) as they were stamped, with the share of them in each bin. Choose a placement and the rows to lay over each other; drag to zoom, double-click to zoom out.</p>\n\
             <div class=\"controls\" data-controls></div>\n\
             <div class=\"chart tall\" data-chart=\"histogram\" role=\"img\" aria-label=\"Histograms of round trips on a logarithmic axis\"></div>\n\
             <p>The same by percentile: how long the slowest one in ten, hundred, thousand took. Curves end where fewer than 20 samples lie beyond.</p>\n\
             <div class=\"chart tall\" data-chart=\"percentiles\" role=\"img\" aria-label=\"Round trips by percentile on logarithmic axes\"></div>\n",
            self.id("distributions")
        )
    }

    fn matrix(&self) -> String {
        let mut html = String::new();
        for pairs in &self.matrices {
            let _ = writeln!(
                html,
                "<h2>Between pairs of CPUs: {label}</h2>\n<p>One way (half a round trip), p50. Lines separate nodes, last-level caches and cores.</p>\n<div class=\"chart matrix\" data-chart=\"matrix\" data-label=\"{label}\" role=\"img\" aria-label=\"One-way medians for pairs of CPUs as a heat map; the table below sums them up\"></div>",
                label = escape(&pairs.label)
            );
            html.push_str("<div class=\"scroll fit\"><table><thead><tr><th scope=\"col\">between</th><th scope=\"col\">pairs</th><th scope=\"col\">median</th><th scope=\"col\">fastest</th><th scope=\"col\">slowest</th></tr></thead><tbody>\n");
            for (of, values) in pairs.by_relation() {
                let _ = writeln!(
                    html,
                    "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                    escape(relation(of)),
                    count(values.len() as u64),
                    maybe_time(median(values.iter().copied())),
                    maybe_time(values.first().copied()),
                    maybe_time(values.last().copied())
                );
            }
            html.push_str("</tbody></table></div>\n");
        }
        html
    }

    fn noise(&self) -> String {
        let noise = &self.results.machine.noise;
        if noise.is_empty() {
            return String::new();
        }
        let shown = noisiest(noise, MOST_CPUS);
        let classes = classes(&shown);
        let most = shown.iter().map(|cpu| cpu.lost_share).fold(0.0, f64::max);
        let mut html = String::from(
            "<h2>How still the CPUs were</h2>\n<p>Before the run a thread did nothing but read the clock on each CPU: time that vanished meanwhile was taken by something else.</p>\n<div class=\"scroll fit\"><table class=\"sortable\"><thead><tr><th scope=\"col\"><button type=\"button\">CPU</button></th><th scope=\"col\"><button type=\"button\">lost</button></th><th scope=\"col\"><button type=\"button\">longest gap</button></th>",
        );
        for class in class_names(&classes) {
            let _ = write!(
                html,
                "<th scope=\"col\"><button type=\"button\">gaps of {class}</button></th>"
            );
        }
        html.push_str("</tr></thead><tbody>\n");
        for cpu in &shown {
            let width =
                if most > 0.0 { (cpu.lost_share / most * 100.0).clamp(0.0, 100.0) } else { 0.0 };
            let _ = write!(
                html,
                "<tr><th scope=\"row\" data-v=\"{cpu}\">CPU {cpu}</th><td data-v=\"{lost}\"><span class=\"bar\" style=\"--w:{width:.0}%\"></span>{share}</td><td data-v=\"{longest}\">{time}</td>",
                cpu = cpu.cpu,
                lost = number(cpu.lost_share),
                share = share(cpu.lost_share),
                longest = cpu.longest_ns,
                time = time(cpu.longest_ns as f64),
            );
            for class in &classes {
                let found = gaps(cpu, *class);
                let _ = write!(html, "<td data-v=\"{found}\">{}</td>", count(found));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        if shown.len() < noise.len() {
            let _ = writeln!(
                html,
                "<p class=\"note\">The noisiest {} of {} CPUs.</p>",
                shown.len(),
                noise.len()
            );
        }
        html
    }

    fn disturbance(&self) -> String {
        let all = sum(self.records.iter().map(|record| &record.disturbance));
        if all.blocks == 0 {
            return String::new();
        }
        let of = f64::from(all.disturbed) / f64::from(all.blocks);
        let mut html = format!(
            "<h2>What disturbed the run</h2>\n<p>{} of {} blocks ({}) were marked as disturbed. A block can have several causes.</p>\n",
            count(all.disturbed.into()),
            count(all.blocks.into()),
            share(of)
        );
        if !all.causes.is_empty() {
            html.push_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">cause</th><th scope=\"col\">blocks</th><th scope=\"col\" class=\"words\">what happened</th></tr></thead><tbody>\n");
            let mut causes: Vec<_> = all.causes.iter().collect();
            causes.sort_by(|a, b| b.1.cmp(a.1));
            for (cause, blocks) in causes {
                let _ = writeln!(
                    html,
                    "<tr><th scope=\"row\">{cause}</th><td>{}</td><td class=\"words\">{}</td></tr>",
                    count((*blocks).into()),
                    description(*cause)
                );
            }
            html.push_str("</tbody></table></div>\n");
        }
        html
    }

    fn worst(&self) -> String {
        let mut lines = String::new();
        let mut left = MOST_WORST;
        for row in self.rows() {
            let Some(main) = row.main() else { continue };
            for worst in main.worst.iter().take(MOST_WORST_OF_ROW.min(left)) {
                left -= 1;
                let _ = writeln!(
                    lines,
                    "<tr><th scope=\"row\">{}</th><td data-v=\"{}\">{}</td><td data-v=\"{}\">{} s</td><td data-v=\"{cpu}\">{cpu}</td><td class=\"words\">{}</td></tr>",
                    escape(&row.label),
                    number(worst.ns),
                    time(worst.ns),
                    number(worst.at_s),
                    digits(worst.at_s),
                    worst.cause.map_or("nothing was seen", Cause::name),
                    cpu = worst.cpu,
                );
            }
        }
        if lines.is_empty() {
            return String::new();
        }
        format!(
            "<details class=\"worst\"><summary>The longest round trips, and what happened meanwhile</summary>\n<p>At most {MOST_WORST_OF_ROW} of each row.</p>\n<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\"><button type=\"button\">mechanism</button></th><th scope=\"col\"><button type=\"button\">round trip</button></th><th scope=\"col\"><button type=\"button\">into the run</button></th><th scope=\"col\"><button type=\"button\">CPU</button></th><th scope=\"col\" class=\"words\"><button type=\"button\">likely cause</button></th></tr></thead><tbody>\n{lines}</tbody></table></div></details>\n"
        )
    }

    fn refused(&self) -> String {
        let refused = &self.results.plan.refused;
        if refused.is_empty() {
            return String::new();
        }
        let mut html = String::from("<h2>Left out</h2>\n<ul class=\"refused\">\n");
        for one in refused.iter().take(MOST_SENTENCES) {
            let _ = writeln!(
                html,
                "<li><strong>{}</strong>: {}</li>",
                escape(&one.what),
                escape(&one.why)
            );
        }
        html.push_str("</ul>\n");
        if refused.len() > MOST_SENTENCES {
            let _ = writeln!(
                html,
                "<p class=\"note\">And {} more, which the file names.</p>",
                refused.len() - MOST_SENTENCES
            );
        }
        html
    }

    fn reproduce(&self) -> String {
        let machine = &self.results.machine;
        format!(
            "<h2>To measure this again</h2>\n<pre><code>{}</code></pre>\n<p class=\"note\">Run {}, begun {}, seed {}, by {}.</p>\n",
            escape(&command(self.results)),
            escape(&machine.run),
            escape(&machine.at),
            self.results.plan.seed,
            escape(&machine.tool)
        )
    }
}

/// Links to the runs, where there are several.
pub(super) fn contents(runs: &[Run<'_>]) -> String {
    let mut html = String::from("<h1>What a hand-off costs</h1>\n<nav aria-label=\"Runs\"><ol>\n");
    for run in runs {
        let _ = writeln!(
            html,
            "<li><a href=\"#run-{}\">{}, {}</a></li>",
            run.index,
            escape(&run.name()),
            escape(&day(&run.results.machine.at))
        );
    }
    html.push_str("</ol></nav>\n");
    html
}

/// A sentence in which backticks set commands apart.
fn with_code(sentence: &str) -> String {
    let escaped = escape(sentence);
    let parts: Vec<&str> = escaped.split('`').collect();
    if parts.len() != 3 {
        return escaped;
    }
    format!("{}<code>{}</code>{}", parts[0], parts[1], parts[2])
}

/// `2026-11-21 10:00 UTC` of an RFC 3339 time; what is no such time stays as it is.
fn day(at: &str) -> String {
    match (at.get(..10), at.get(10..11), at.get(11..16), at.ends_with('Z')) {
        (Some(day), Some("T"), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => at.to_string(),
    }
}

/// A number as the page's script reads it for sorting; empty where it is none.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:e}") } else { String::new() }
}

fn cell(value: Option<f64>, shown: &str) -> String {
    format!("<td data-v=\"{}\">{}</td>", value.map_or_else(String::new, number), escape(shown))
}

fn figure(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    cell(value, &value.map_or_else(|| "–".into(), show))
}

fn table_row(row: &Row<'_>, base: Option<&Record>) -> String {
    let Some(main) = row.main() else { return String::new() };
    let mark = if too_disturbed(&main.disturbance) {
        " <abbr title=\"over a quarter of its blocks was disturbed\">!</abbr>"
    } else {
        ""
    };
    let mut html = format!("<tr><th scope=\"row\">{}{mark}</th>", escape(&row.label));
    for placement in threadtoll_record::Placement::ALL {
        match row.record(placement) {
            None => html.push_str("<td data-v=\"\"></td>"),
            Some(record) => {
                let class = if placement == main.cell.placement { " class=\"main\"" } else { "" };
                let p50 = record.one_way_p50();
                let _ = write!(
                    html,
                    "<td{class} data-v=\"{}\">{}</td>",
                    p50.map_or_else(String::new, number),
                    maybe_time(p50)
                );
            }
        }
    }
    let p50 = main.one_way_p50();
    match (p50, main.one_way_p50_interval95()) {
        (Some(p50), Some([low, high])) => {
            let reach = ((high - p50).max(p50 - low)) / p50;
            let _ = write!(
                html,
                "<td data-v=\"{}\" title=\"{} to {}\">{}</td>",
                number(reach),
                time(low),
                time(high),
                plus_minus(p50, [low, high])
            );
        }
        _ => html.push_str("<td data-v=\"\">–</td>"),
    }
    html.push_str(&figure(base.and_then(|base| times(main, base)), |times| {
        format!("{}×", digits(times))
    }));
    for quantile in [main.quantiles.p50, main.quantiles.p99, main.quantiles.p999, main.max] {
        html.push_str(&figure(quantile, time));
    }
    html.push_str(&figure(main.over.share, share));
    html.push_str(&figure(cpu_ns(&main.cost), time));
    html.push_str(&figure(switches(&main.cost), per_op));
    match main.against.first() {
        Some(against) => {
            let _ = write!(
                html,
                "<td data-v=\"{}\" title=\"{} to {} in {}\">{}× <span class=\"said {}\">{}</span></td>",
                number(against.ratio),
                digits(against.interval95[0]),
                digits(against.interval95[1]),
                plural(against.blocks.into(), "pair"),
                digits(against.ratio),
                against.verdict,
                verdict(against.verdict),
            );
        }
        None => html.push_str("<td data-v=\"\"></td>"),
    }
    let figures = published(&main.cell);
    let _ = writeln!(
        html,
        "<td class=\"published\" data-v=\"{}\">{}</td></tr>",
        figures.first().map_or_else(String::new, |figure| number(figure.ns)),
        // The year on a line of its own, where the table is tight.
        escape(&shown(&figures).unwrap_or_default())
            .replacen(" µs", "\u{a0}µs", 1)
            .replacen(" ns", "\u{a0}ns", 1)
    );
    html
}

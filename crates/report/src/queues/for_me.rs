//! The user's own traffic, and the queue recommended for it.

use std::collections::BTreeMap;

use threadtoll_record::{Load, Lose, Neighbour, Ns, Placement, Record, file::Results};

use super::columns::{Column, share_of, time_of, times_of};
use super::open_loop::{self, late, limited, open_loop};
use super::view::{Shown, View};
use super::{Comparison, Row, load};
use crate::label::{list, plural};
use crate::place::{Place, Standing, places};
use crate::screen::Rows;
use crate::sentences::{self as say, Sentence};
use crate::table::{self, Cell, Label, Section};
use crate::units::{maybe_time, share, size, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "for-me",
    question: "Which queue for your traffic",
    sentence: "your messages, each sent when it is due; a delivery lasts from then until the receiver has the message. CPU is that of the receiver and of send calls. Places compare p99, ratios compare medians.",
    ratios_decide: false,
    axis: "delivery, p99 (lower is better)",
    caption: "Delivery times, p99",
    ns: |record| record.quantiles.p99.map(Ns::get),
    interval: p99_interval,
    text: |record| format!("p99 {}", maybe_time(record.quantiles.p99)),
    columns,
    summary,
    screen,
    ..open_loop::VIEW
};

fn p99_interval(record: &Record) -> Option<[f64; 2]> {
    record.interval95.p99.map(|interval| interval.map(Ns::get))
}

/// CPU time of the receiver and of send calls, as a share of one CPU. It applies to the rate at
/// which messages are due.
fn cpu_share(record: &Record) -> Option<f64> {
    Some(open_loop(record)?.cpu_ns_per_message?.get() * due_per_ns(record)?)
}

/// The lower end of the interval of [`cpu_share`] or, without an interval, the share itself.
fn least_cpu_share(record: &Record) -> Option<f64> {
    match open_loop(record)?.cpu_interval95 {
        Some([low, _]) => Some(low.get() * due_per_ns(record)?),
        None => cpu_share(record),
    }
}

/// The upper end of the interval of [`cpu_share`] or, without an interval, the share itself.
fn most_cpu_share(record: &Record) -> Option<f64> {
    match open_loop(record)?.cpu_interval95 {
        Some([_, high]) => Some(high.get() * due_per_ns(record)?),
        None => cpu_share(record),
    }
}

fn due_per_ns(record: &Record) -> Option<f64> {
    let of_received = 1.0 - lost_share(record).unwrap_or(0.0);
    Some(open_loop(record)?.rate_per_s?.get() / of_received.max(f64::EPSILON) / 1e9)
}

fn lost_share(record: &Record) -> Option<f64> {
    let lost = record.figures.lost()?;
    let lost = lost.refused.as_f64() + lost.dropped.as_f64();
    Some(lost / (record.count.as_f64() + lost).max(1.0))
}

fn columns<'c, 'a>(_: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        time_of("delivery", "p99", 0, VIEW.ns).main(),
        times_of("delivery", "95%", 10, VIEW.interval),
        time_of("delivery", "p50", 1, |record| record.quantiles.p50.map(Ns::get)),
        time_of("delivery", "p99.9", 7, |record| record.quantiles.p999.map(Ns::get)),
        time_of("delivery", "max", 6, |record| record.max.map(Ns::get)),
        late("p99", 5, |late| late.p99),
        share_of("", "CPU", 2, cpu_share),
        share_of("", "lost", 3, lost_share),
        limited(),
    ]
}

/// Traffic for which one queue is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Traffic<'a> {
    /// File, rate and scale of the arrivals. Loads that differ only in the messages that may be
    /// lost are the same traffic.
    arrivals: (Option<&'a str>, Option<u64>, Option<u64>),
    payload_bytes: u64,
    senders: u32,
    placement: Placement,
    neighbour: Option<Neighbour>,
}

struct Candidate<'r, 'a> {
    row: &'r Row<'a>,
    /// Reason why the row cannot be recommended.
    out: Option<Out>,
    /// Place in the ranking of the rows that can be recommended.
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Out {
    Saturated,
    /// The upper end of the CPU time's interval exceeds the budget; `certain` if the lower end
    /// does, too.
    OverBudget {
        certain: bool,
    },
    /// There is a budget, but the CPU time is unknown.
    UnknownCpu,
    /// There are too few messages for a p99.
    Unknown,
}

impl Out {
    fn is_over_budget(self) -> bool {
        matches!(self, Out::OverBudget { .. })
    }

    fn text(self) -> &'static str {
        match self {
            Out::Saturated => "saturated",
            Out::OverBudget { certain: true } => "CPU is too much",
            Out::OverBudget { certain: false } => "CPU may be too much",
            Out::UnknownCpu => "CPU is not known",
            Out::Unknown => "too few messages",
        }
    }
}

/// A row whose p99 may be within this factor of the lowest is level with it: nobody should burn a
/// CPU for less.
const HARDLY_SLOWER: f64 = 1.1;

/// The p99 of a row is hardly known if the ends of its interval differ by more than this factor.
const HARDLY_KNOWN: f64 = 10.0;

impl Candidate<'_, '_> {
    fn is_known(&self) -> bool {
        p99_interval(self.record()).is_some_and(|[low, high]| high <= HARDLY_KNOWN * low)
    }

    fn record(&self) -> &Record {
        &self.row.record
    }

    fn lose(&self) -> Lose {
        self.row.queue().and_then(|queue| queue.load.lose).unwrap_or(Lose::Never)
    }

    /// Such as `pipe with park`, or `crossbeam-bounded with block, refusing`.
    fn name(&self) -> String {
        let name = format!("{} with {}", self.row.name(), self.row.wait());
        match self.lose() {
            Lose::Never => name,
            Lose::Newest => format!("{name}, refusing"),
            Lose::Oldest => format!("{name}, dropping the oldest"),
        }
    }

    fn figures(&self) -> String {
        let record = self.record();
        let p99 = maybe_time(record.quantiles.p99);
        let interval = p99_interval(record).map(time_range).filter(|interval| *interval != p99);
        let interval = interval.map(|interval| format!(" ({interval})"));
        let cpu = cpu_share(record).map(|cpu| format!(", {} of a CPU", share(cpu)));
        let lost = lost_share(record).filter(|lost| *lost > 0.0);
        let lost = lost.map(|lost| format!(", {} of the messages lost", share(lost)));
        let open_loop = open_loop(record).filter(|own| own.generator_was_limit);
        let late = open_loop.and_then(|own| own.lateness.quantiles.p99);
        let late = late.map(|late| format!(", 1% sent at least {} late", time(late.get())));
        [Some(format!("p99 {p99}")), interval, cpu, lost, late].into_iter().flatten().collect()
    }
}

/// The answer for one traffic. Rows that can be recommended come first, the best at the top.
pub(super) struct Answer<'r, 'a> {
    heading: String,
    budget: Option<f64>,
    all: Vec<Candidate<'r, 'a>>,
}

/// The CPU budget of the run, as a share of one CPU.
fn budget(results: &Results) -> Option<f64> {
    results.plan.options.get("budget_cpu")?.as_f64()
}

pub(super) fn answers<'r, 'a>(
    results: &Results,
    comparisons: impl IntoIterator<Item = &'r Comparison<'a>>,
) -> Vec<Answer<'r, 'a>>
where
    'a: 'r,
{
    let mut of_traffic: BTreeMap<Traffic<'r>, Answer<'r, 'a>> = BTreeMap::new();
    let budget = budget(results);
    let own =
        comparisons.into_iter().filter(|comparison| comparison.view().scenario == VIEW.scenario);
    for comparison in own {
        let criteria = comparison.criteria;
        let Load { arrivals_file, rate_per_s, scale, .. } = criteria.load;
        let traffic = Traffic {
            arrivals: (
                arrivals_file.as_ref().map(|file| file.as_str()),
                rate_per_s.map(|rate| rate.get()),
                scale.map(|scale| scale.value().to_bits()),
            ),
            payload_bytes: criteria.payload_bytes,
            senders: criteria.senders,
            placement: criteria.placement,
            neighbour: criteria.neighbour,
        };
        let answer = of_traffic.entry(traffic).or_insert_with(|| Answer {
            heading: heading(criteria.load, traffic),
            budget,
            all: Vec::new(),
        });
        let rows = comparison.rows.iter();
        answer.all.extend(rows.map(|row| Candidate { row, out: out(row, budget), place: None }));
    }
    let mut answers: Vec<Answer<'_, '_>> = of_traffic.into_values().collect();
    answers.iter_mut().for_each(Answer::rank);
    answers
}

fn heading(of: &Load, traffic: Traffic<'_>) -> String {
    let without_losses = Load { lose: None, ..of.clone() };
    let mut parts: Vec<String> = load(&without_losses).into_iter().collect();
    if traffic.payload_bytes != 8 {
        parts.push(size(traffic.payload_bytes));
    }
    parts.push(plural(traffic.senders.into(), "sender"));
    if traffic.placement != Placement::Pinned {
        parts.push(traffic.placement.to_string());
    }
    parts.extend(traffic.neighbour.map(|neighbour| format!("beside {}", neighbour.threads())));
    parts.join(", ")
}

fn out(row: &Row<'_>, budget: Option<f64>) -> Option<Out> {
    let record = &row.record;
    if open_loop(record).is_some_and(|own| own.saturated) {
        return Some(Out::Saturated);
    }
    if p99_interval(record).is_none() {
        return Some(Out::Unknown);
    }
    match most_cpu_share(record) {
        Some(cpu) => {
            let budget = budget?;
            let certain = least_cpu_share(record).is_some_and(|cpu| cpu > budget);
            (cpu > budget).then_some(Out::OverBudget { certain })
        }
        None => budget.map(|_| Out::UnknownCpu),
    }
}

impl<'r, 'a> Answer<'r, 'a> {
    fn rank(&mut self) {
        let standing = |candidate: &Candidate<'_, '_>| Standing {
            figure: p99_interval(candidate.record()).filter(|_| candidate.out.is_none()),
            ratio: None,
        };
        let places = places(&self.all.iter().map(standing).collect::<Vec<_>>());
        self.all.iter_mut().zip(places).for_each(|(candidate, place)| candidate.place = place);
        let p99 = |candidate: &Candidate<'_, '_>| {
            candidate.record().quantiles.p99.map_or(f64::INFINITY, Ns::get)
        };
        self.all.sort_by(|a, b| {
            let first =
                |candidate: &Candidate<'_, '_>| candidate.place.map_or(usize::MAX, |p| p.first);
            (first(a).cmp(&first(b)))
                .then_with(|| p99(a).total_cmp(&p99(b)))
                .then_with(|| a.record().cell.cmp(&b.record().cell))
        });
    }

    fn left(&self) -> impl Iterator<Item = &Candidate<'r, 'a>> {
        self.all.iter().filter(|candidate| candidate.place.is_some())
    }

    /// Rows that are hardly slower than the first, if at all, as far as their intervals tell.
    fn first(&self) -> Vec<&Candidate<'r, 'a>> {
        let interval = |one: &&Candidate<'_, '_>| p99_interval(one.record());
        let is_first = |one: &&Candidate<'_, '_>| one.place.is_some_and(|place| place.first == 1);
        let of_first = self.left().filter(is_first).filter_map(|one| interval(&one));
        let most = of_first.map(|[_, high]| high).fold(f64::INFINITY, f64::min);
        let is_near = |one: &&Candidate<'_, '_>| {
            interval(one).is_some_and(|[low, _]| low <= HARDLY_SLOWER * most)
        };
        self.left().filter(|one| is_first(one) || is_near(one)).collect()
    }

    /// Of these rows, the one that takes least CPU time. A row whose p99 is hardly known is not
    /// recommended.
    fn best(&self) -> Option<&Candidate<'r, 'a>> {
        let cpu = |one: &&Candidate<'_, '_>| cpu_share(one.record()).unwrap_or(f64::INFINITY);
        let first = self.first().into_iter().filter(|one| one.is_known());
        first.min_by(|a, b| cpu(a).total_cmp(&cpu(b)))
    }

    /// Sentence that says why no queue can be recommended; `None` if one can.
    pub(super) fn none(&self) -> Option<Sentence> {
        self.best().is_none().then(|| say::for_me_none(&self.heading, self.why_none()))
    }

    /// Names the queue to take, queues that are level with it, and the fastest queue over the CPU
    /// budget.
    fn take(&self) -> Vec<Sentence> {
        let Some(best) = self.best() else { return self.none().into_iter().collect() };
        let others = self.first().len() as u64 - 1;
        let level = (others > 0).then(|| say::level_for_me(plural(others, "other")));
        let p99 = |one: &&Candidate<'_, '_>| one.record().quantiles.p99.map(Ns::get);
        let faster = self.all.iter().filter(|one| one.out.is_some_and(Out::is_over_budget));
        let faster = faster.filter(|one| p99(one) < p99(&best));
        let faster = faster.min_by(|a, b| {
            let key = |one: &&Candidate<'_, '_>| p99(one).unwrap_or(f64::INFINITY);
            key(a).total_cmp(&key(b))
        });
        let mut answer = vec![say::take(best.name(), best.figures()).and(level)];
        answer.extend(faster.map(|one| say::with_more_cpu(one.name(), one.figures())));
        answer
    }

    fn why_none(&self) -> String {
        let number = |out: Out| self.all.iter().filter(|one| one.out == Some(out)).count() as u64;
        let over = || self.all.iter().filter(|one| one.out.is_some_and(Out::is_over_budget));
        let least = over()
            .filter_map(|one| Some((most_cpu_share(one.record())?, one)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let mut parts = Vec::new();
        if number(Out::Saturated) > 0 {
            parts.push(format!("{} cannot keep up", number(Out::Saturated)));
        }
        if let Some((cpu, one)) = least {
            parts.push(format!(
                "{} may take more than {} of a CPU ({} least, up to {})",
                over().count(),
                share(self.budget.unwrap_or(0.0)),
                one.name(),
                share(cpu)
            ));
        }
        if number(Out::UnknownCpu) > 0 {
            parts.push(format!("the CPU time of {} is unknown", number(Out::UnknownCpu)));
        }
        if number(Out::Unknown) > 0 {
            parts.push(format!("{} have too few messages for a p99", number(Out::Unknown)));
        }
        if let [one, others @ ..] = self.first().as_slice() {
            let (name, p99) = (one.name(), p99_interval(one.record()).map(time_range));
            parts.push(format!(
                "the p99 of {} is hardly known ({name}: {}; measure for longer)",
                others.len() + 1,
                p99.unwrap_or_default()
            ));
        }
        format!("of {}, {}", plural(self.all.len() as u64, "row"), list(&parts))
    }

    /// `None` if no queue is allowed to lose messages.
    fn rank_of_losses(&self, rank: u8) -> Option<u8> {
        self.all.iter().any(|one| one.lose() != Lose::Never).then_some(rank)
    }

    fn section(&self) -> Section {
        type Column<'c, 'r, 'a> = table::Column<'c, Candidate<'r, 'a>>;
        let best = self.best();
        let mut columns: Vec<Column<'_, '_, '_>> = vec![
            Column::new("", "rank", 1, |one| match one.place {
                Some(place) => Place::cell(Some(place)),
                None => Cell::empty(),
            })
            .faint(),
            Column::new("", "wait", 1, |one| Cell::text(one.row.wait())).faint(),
            Column::new("", "if full", self.rank_of_losses(4), |one| {
                Cell::text(match one.lose() {
                    Lose::Never => "waits",
                    Lose::Newest => "refuses",
                    Lose::Oldest => "drops oldest",
                })
            }),
            Column::new("", "p99", 0, |one| Cell::figure(one.record().quantiles.p99, time)).main(),
            Column::new("", "95% interval", 3, |one| {
                Cell::range(p99_interval(one.record()), time_range)
            }),
            Column::new("", "CPU", 2, |one| Cell::figure(cpu_share(one.record()), share)),
            Column::new("", "", 0, move |one| match best {
                Some(best) if std::ptr::eq(best, one) => Cell::text("◀"),
                _ => Cell::empty(),
            }),
            Column::new("", "lost", self.rank_of_losses(5), |one| {
                Cell::figure(lost_share(one.record()), share)
            }),
        ];
        if self.all.iter().any(|one| one.out.is_some()) {
            let out = |one: &Candidate<'_, '_>| Cell::text(one.out.map_or("", Out::text));
            columns.push(Column::new("", "left out", 1, out));
        }
        Section::new(
            format!("For your traffic: {}", self.heading),
            "queue",
            columns,
            &self.all,
            |one| Label::of(one.row.name(), one.record()),
        )
    }
}

fn summary(results: &Results, comparisons: &[&Comparison<'_>]) -> Vec<Section> {
    answers(results, comparisons.iter().copied()).iter().map(Answer::section).collect()
}

fn screen(results: &Results, comparisons: &[&Comparison<'_>]) -> Shown {
    let answers = answers(results, comparisons.iter().copied());
    let Some(answer) = answers.first() else { return (Vec::new(), None) };
    let mut section = answer.section();
    section.heading.clone_from(&answer.heading);
    (answer.take(), Rows::first(section, "row"))
}

//! Claims that articles make about hand-offs, queues and locks, tested against the measured cells.

mod table;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{
    Cell, Experiment, Ns, Pause, Placement, QueueSubject, Record, Subject, Work,
};

pub(crate) use table::{Published, PublishedPool, UNCONTENDED, published_pool};

use table::{Claim, LOCKS, MECHANISMS, OTHER_QUEUES, QUEUES, Source};

use crate::clean::clean;
use crate::disturbance::too_disturbed;
use crate::label::plural;
use crate::merge::merged;
use crate::quotient::Quotient;
use crate::screen::Run;
use crate::sentences::{self as say, Sentence};
use crate::units::{
    count, digits, digits_range, long_time, per_second, range, range_per_second, ratio, round_time,
    share, time, time_range,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    OneWay,
    Rate,
    /// Time until the last message of a burst was received.
    LastOfBurst,
    /// CPU time for a billion messages; a saturated queue has no such figure.
    BillionMessages,
    /// Number of quantiles (p99, p99.9) that are abnormally long: 0, 1 or 2.
    AbnormalQuantiles,
    Speedup,
    SpeedupPerThread,
    TaskTime,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    value: f64,
    interval95: [f64; 2],
}

impl Measured {
    fn of(value: impl Into<f64>, interval95: [impl Into<f64>; 2], factor: f64) -> Option<Self> {
        let value = factor * value.into();
        Some(Measured { value, interval95: interval95.map(|bound| factor * bound.into()) })
    }
}

impl Figure {
    fn of(self, record: &Record) -> Option<Measured> {
        let contention = record.figures.contention();
        let speedup =
            |factor| Measured::of(contention?.speedup?, contention?.speedup_interval95?, factor);
        match self {
            Figure::OneWay => {
                Measured::of(record.one_way_p50()?, record.one_way_p50_interval95()?, 1.0)
            }
            Figure::Rate => Measured::of(record.rate_per_s?, record.interval95.rate_per_s?, 1.0),
            Figure::LastOfBurst => {
                let burst = record.figures.open_loop()?.burst?;
                Measured::of(burst.last_ns?, burst.last_interval95?, 1.0)
            }
            Figure::BillionMessages => {
                let found = &record.figures.open_loop()?.open_loop;
                let found = (!found.saturated).then_some(found)?;
                Measured::of(found.cpu_ns_per_message?, found.cpu_interval95?, 1e9)
            }
            Figure::AbnormalQuantiles => {
                let within = &record.interval95;
                let of = |interval: Option<[Ns; 2]>| Some(interval?.map(Ns::get));
                let interval95 = abnormal(of(within.p50)?, of(within.p99)?, of(within.p999))?;
                Measured::of(interval95[0], interval95, 1.0)
            }
            Figure::Speedup => speedup(1.0),
            Figure::SpeedupPerThread => speedup(1.0 / f64::from(record.cell.lock()?.threads)),
            Figure::TaskTime => {
                let tasks = record.cell.lock()?.tasks? as f64;
                Measured::of(contention?.total_s?, contention?.total_s_interval95?, 1e9 / tasks)
            }
        }
    }

    /// Ratio of a cell's figure to another cell's. One-way medians are compared as a [`Quotient`].
    /// Other figures are not paired, so the interval of their ratio is the widest that their own
    /// intervals allow.
    fn ratio(self, record: &Record, other: &Record) -> Option<Measured> {
        if self == Figure::OneWay {
            let times = Quotient::of(record, other)?;
            return Measured::of(times.ratio, times.interval95, 1.0);
        }
        let (own, other) = (self.of(record)?, self.of(other)?);
        let ([low, high], [other_low, other_high]) = (own.interval95, other.interval95);
        Measured::of(own.value / other.value, [low / other_high, high / other_low], 1.0)
    }

    fn text(self, value: f64) -> String {
        match self {
            Figure::OneWay | Figure::LastOfBurst | Figure::TaskTime => time(value),
            Figure::BillionMessages => long_time(value),
            Figure::Rate => format!("{}/s", per_second(value)),
            Figure::AbnormalQuantiles | Figure::Speedup | Figure::SpeedupPerThread => digits(value),
        }
    }

    fn range(self, interval95: [f64; 2]) -> Option<String> {
        Some(match self {
            Figure::AbnormalQuantiles => return None,
            Figure::Speedup | Figure::SpeedupPerThread => format!(", {}", digits_range(interval95)),
            Figure::Rate => format!(", {}/s", range_per_second(interval95)),
            _ => format!(", {}", time_range(interval95)),
        })
    }

    fn text_of(self, record: &Record) -> Option<String> {
        let of = &record.quantiles;
        let all = [("p99", of.p99), ("p99.9", of.p999), ("median", of.p50)];
        let known = all.into_iter().filter_map(|(name, ns)| Some((name, ns?.get())));
        let value = self.of(record)?.value;
        Some(match self {
            Figure::AbnormalQuantiles => known
                .map(|(name, ns)| format!("{name} {}", time(ns)))
                .collect::<Vec<_>>()
                .join(", "),
            _ => self.text(value),
        })
    }
}

/// A quantile is abnormally long if it exceeds this multiple of the median.
const ABNORMAL: f64 = 10.0;

/// Bounds on the number of abnormally long quantiles; `None` if there are too few messages.
fn abnormal(median: [f64; 2], p99: [f64; 2], p999: Option<[f64; 2]>) -> Option<[f64; 2]> {
    let [least, most] = median.map(|ns| ABNORMAL * ns);
    if p99[0] > most {
        return Some([2.0, 2.0]);
    }
    let p999 = p999?;
    if p999[1] <= least {
        return Some([0.0, 0.0]);
    }
    let surely = if p999[0] > most { 1.0 } else { 0.0 };
    Some([surely, if p99[1] <= least { 1.0 } else { 2.0 }])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Confirmed,
    Refuted,
    /// Undecided, because the interval contains a limit.
    Open,
}

impl Status {
    const ALL: [Status; 3] = [Status::Confirmed, Status::Refuted, Status::Open];

    /// Tests the claim `least` ≤ figure < `limit`, given the figure's interval.
    fn of([low, high]: [f64; 2], [least, limit]: [f64; 2]) -> Status {
        if low >= least && high < limit {
            Status::Confirmed
        } else if high < least || low >= limit {
            Status::Refuted
        } else {
            Status::Open
        }
    }

    fn label(self) -> &'static str {
        match self {
            Status::Confirmed => "yes",
            Status::Refuted => "no",
            Status::Open => "undecided",
        }
    }
}

struct Answer {
    status: Status,
    /// Such as `pipe (spin) yes (p99 312 ns, p99.9 4.1 µs, median 180 ns)`.
    text: String,
}

impl Claim {
    fn is_about(&self, record: &Record) -> bool {
        self.admits(record) && (self.cells)(record)
    }

    fn admits(&self, record: &Record) -> bool {
        let experiment = match &record.experiment {
            Experiment::Latency => "latency",
            Experiment::Matrix => "matrix",
            Experiment::Queue(scenario) | Experiment::Contention(scenario) => scenario,
        };
        self.experiment == experiment && is_plain(&record.cell)
    }

    fn judge(&self, records: &[Cow<'_, Record>]) -> Vec<Answer> {
        let is_placed = |record: &&Cow<'_, Record>| {
            record.cell.lock().is_some() || record.cell.placement == Placement::Pinned
        };
        let placed = || records.iter().filter(is_placed).filter(|record| self.admits(record));
        let mut answers = Vec::new();
        for record in placed().filter(|record| (self.cells)(record)) {
            match self.against {
                None => answers.extend(self.answer(record)),
                Some(is_other) => answers.extend(
                    placed()
                        .filter(|other| is_other(other, record))
                        .filter_map(|other| self.compare(record, other)),
                ),
            }
        }
        answers
    }

    fn answer(&self, record: &Record) -> Option<Answer> {
        let interval95 = self.figure.of(record)?.interval95;
        let mut figures = self.figure.text_of(record)?;
        figures.extend(self.figure.range(interval95));
        Some(self.answered(record, interval95, name(record), figures))
    }

    fn compare(&self, record: &Record, other: &Record) -> Option<Answer> {
        let times = self.figure.ratio(record, other)?;
        let (own, against) = (self.figure.text_of(record)?, self.figure.text_of(other)?);
        let (times_it, within) = (ratio(times.value), digits_range(times.interval95));
        let figures = format!("{own} against {against}, {times_it}, {within}");
        let named = format!("{} against {}", name(record), name(other));
        Some(self.answered(record, times.interval95, named, figures))
    }

    fn answered(
        &self,
        record: &Record,
        interval95: [f64; 2],
        named: String,
        figures: String,
    ) -> Answer {
        let status = Status::of(interval95, self.limits);
        let disturbed = if too_disturbed(&record.disturbance) { ", disturbed" } else { "" };
        Answer { status, text: format!("{named} {} ({figures}{disturbed})", status.label()) }
    }
}

/// A plain cell has messages of 8 B, no neighbours, no pause hint and no CPUs kept awake. If its
/// subject is a lock, the lock admits one thread at a time.
fn is_plain(cell: &Cell) -> bool {
    let plain = match &cell.subject {
        Subject::Lock(lock) => {
            let several = ["counter-", "striped"].iter().any(|name| lock.lock.starts_with(name));
            lock.read_share.is_none() && !several
        }
        Subject::Queue(_) | Subject::Mechanism { .. } => {
            cell.payload_bytes == 8 && !cell.keep_awake && cell.pause != Some(Pause::On)
        }
    };
    plain && cell.neighbour.is_none()
}

/// Such as `pipe (spin), 8 messages, every 10 µs` or `std-mutex, sleeping, 20 threads, 5.0%`.
fn name(record: &Record) -> String {
    let cell = &record.cell;
    let parts = match &cell.subject {
        Subject::Queue(QueueSubject { wait, senders, load, .. }) => [
            Some(format!("{} ({})", clean(cell.name()), wait.name())),
            (*senders > 1).then(|| plural((*senders).into(), "sender")),
            load.burst.map(|burst| format!("{} at once", count(burst.get()))),
            load.gap_ns.map(|gap| format!("every {}", round_time(gap.as_f64()))),
            load.rate_per_s.map(|rate| format!("{}/s", per_second(rate.as_f64()))),
        ],
        Subject::Lock(lock) => [
            Some(clean(cell.name())),
            (lock.work == Work::Sleep).then(|| "sleeping".into()),
            Some(plural(lock.threads.into(), "thread")),
            Some(share(lock.hold_share())),
            None,
        ],
        Subject::Mechanism { .. } => [Some(clean(&cell.label())), None, None, None, None],
    };
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

fn answered(run: &Run<'_>) -> Vec<(&'static Claim, Vec<Answer>)> {
    let (of_one, all) = (cells(run.of_one), cells(run.all));
    let claims: [(&'static [Claim], _); 4] =
        [(&MECHANISMS, &all), (&QUEUES, &of_one), (&OTHER_QUEUES, &all), (&LOCKS, &of_one)];
    claims
        .into_iter()
        .flat_map(|(claims, records)| claims.iter().map(move |claim| (claim, records)))
        .filter(|(claim, _)| !claim.text.is_empty())
        .map(|(claim, records)| (claim, claim.judge(records)))
        .filter(|(_, answers)| !answers.is_empty())
        .collect()
}

fn cells(records: &[Record]) -> Vec<Cow<'_, Record>> {
    let mut cells: BTreeMap<(&Experiment, &Cell), Vec<&Record>> = BTreeMap::new();
    for record in records {
        cells.entry((&record.experiment, &record.cell)).or_default().push(record);
    }
    cells.values().map(|records| merged(records, None)).collect()
}

fn told(answers: &[Answer]) -> String {
    if let [only] = answers {
        return only.text.clone();
    }
    let of = |status| answers.iter().filter(move |answer| answer.status == status);
    let (mut counts, mut examples) = (Vec::new(), Vec::new());
    for status in Status::ALL {
        if let Some(example) = of(status).next() {
            counts.push(format!("{} in {}", status.label(), of(status).count()));
            examples.push(example.text.clone());
        }
    }
    let (counts, examples) = (counts.join(", "), examples.join(" and "));
    format!("{counts} of {} cases, for example {examples}", answers.len())
}

pub(crate) fn sentences(run: &Run<'_>) -> Vec<Sentence> {
    let sentence = |(claim, answers): (&Claim, Vec<Answer>)| {
        say::claim(claim.source, claim.text, told(&answers))
    };
    answered(run).into_iter().map(sentence).collect()
}

/// Such as `3 hold here, 1 does not, 2 undecided`. A claim is undecided if its cells give different
/// answers.
pub(crate) fn tally(run: &Run<'_>) -> Option<String> {
    let judged = |(_, answers): (_, Vec<Answer>)| {
        let first = answers.first().map_or(Status::Open, |answer| answer.status);
        if answers.iter().all(|one| one.status == first) { first } else { Status::Open }
    };
    let judged: Vec<Status> = answered(run).into_iter().map(judged).collect();
    let words =
        [["holds here", "hold here"], ["does not hold", "do not hold"], ["undecided", "undecided"]];
    let parts = Status::ALL.into_iter().zip(words).filter_map(|(status, [one, several])| {
        match judged.iter().filter(|judged| **judged == status).count() {
            0 => None,
            1 => Some(format!("1 {one}")),
            many => Some(format!("{many} {several}")),
        }
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The published figures for a record, in ascending order.
pub(crate) fn published(record: &Record) -> Vec<&'static Published> {
    let all = MECHANISMS.iter().chain(&QUEUES).chain(&OTHER_QUEUES).chain(&LOCKS);
    let about = all.filter(|claim| claim.published.is_some() && claim.is_about(record));
    about.filter_map(|claim| claim.published.as_ref()).collect()
}

/// Text for a table: `45 ns (2011)`, `2.08–2.36 µs (2011)`, `≥40 µs (2016)`; for streams, `≥25.0
/// M/s (2011)`.
pub(crate) fn summary(figures: &[&Published]) -> Option<String> {
    let (first, last) = (figures.first()?, figures.last()?);
    let text = if first.is_rate {
        format!("≥{}/s", per_second(1e9 / first.ns))
    } else {
        let least = if first.or_worse { "≥" } else { "" };
        format!("{least}{}", range(first.ns, last.ns))
    };
    Some(format!("{text} ({})", first.source.year))
}

/// Such as `Published: M. Thompson, …; an article on Habr ….`
pub(crate) fn sources<'a>(records: impl Iterator<Item = &'a Record>) -> Option<String> {
    let sources: BTreeSet<_> = records.flat_map(published).map(|figure| figure.source).collect();
    let names: Vec<String> = sources.into_iter().map(Source::to_string).collect();
    (!names.is_empty()).then(|| format!("Published: {}.", names.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_confirms_refutes_or_leaves_open() {
        assert_eq!(Status::of([1.45, 1.55], [1.4, 1.6]), Status::Confirmed);
        assert_eq!(Status::of([1.2, 1.39], [1.4, 1.6]), Status::Refuted);
        assert_eq!(Status::of([1.61, 1.7], [1.4, 1.6]), Status::Refuted);
        assert_eq!(Status::of([1.3, 1.5], [1.4, 1.6]), Status::Open);
        assert_eq!(Status::of([0.8, 0.999], [0.0, 1.0]), Status::Confirmed);
        assert_eq!(Status::of([0.8, 1.0], [0.0, 1.0]), Status::Open, "1 is not below 1");
        assert_eq!(Status::of([1.0, 1.1], [0.0, 1.0]), Status::Refuted);
        assert_eq!(Status::of([1.6, 2.0], [1.5, f64::INFINITY]), Status::Confirmed);
    }

    #[test]
    fn several_answers_are_counted_with_an_example_of_each() {
        let answers = [("a", Status::Refuted), ("b", Status::Confirmed), ("c", Status::Refuted)]
            .map(|(name, status)| Answer { status, text: format!("{name} {}", status.label()) });
        assert_eq!(told(&answers[..1]), "a no");
        assert_eq!(told(&answers), "yes in 1, no in 2 of 3 cases, for example b yes and a no");
    }

    #[test]
    fn quantiles_are_abnormal_as_far_as_their_intervals_tell() {
        let of = |p99, p999| abnormal([95.0, 105.0], p99, p999);
        assert_eq!(of([200.0, 300.0], Some([400.0, 900.0])), Some([0.0, 0.0]));
        assert_eq!(of([1_100.0, 1_200.0], None), Some([2.0, 2.0]));
        assert_eq!(of([200.0, 300.0], Some([1_100.0, 9e3])), Some([1.0, 1.0]));
        assert_eq!(of([200.0, 300.0], Some([900.0, 9e3])), Some([0.0, 1.0]));
        assert_eq!(of([900.0, 1_100.0], Some([2e3, 9e3])), Some([1.0, 2.0]));
        assert_eq!(of([200.0, 300.0], None), None, "too few messages");
    }

    #[test]
    fn every_claim_has_limits_and_a_figure_or_a_text() {
        for claim in MECHANISMS.iter().chain(&QUEUES).chain(&OTHER_QUEUES).chain(&LOCKS) {
            let [least, limit] = claim.limits;
            assert_eq!(!claim.text.is_empty(), least < limit, "{claim:?}");
            assert!(least < limit || claim.published.is_some(), "{claim:?}");
        }
    }
}

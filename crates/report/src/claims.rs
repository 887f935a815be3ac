//! Claims of articles about hand-offs, queues and locks, judged by the measured cells.
//!
//! `table` contains the claims, with the published figures.

mod cells;
mod figure;
mod table;

use std::collections::BTreeSet;

use threadtoll_record::{Experiment, Placement, Record};

pub(crate) use table::{
    Claim, LOCKS, MECHANISMS, OTHER_QUEUES, Published, QUEUES, UNCONTENDED, published_pool,
};

use table::Source;

use crate::disturbance::too_disturbed;
use crate::sentences::{self as say, Sentence};
use crate::units::{digits_range, per_second, range, ratio};

use cells::{Is, group, is_plain, name};

/// Result of testing a claim against one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Confirmed,
    Refuted,
    /// The interval contains a limit, so the claim is undecided.
    Open,
}

impl Status {
    const ALL: [Status; 3] = [Status::Confirmed, Status::Refuted, Status::Open];

    /// Tests an interval against a claim that the figure is at least the first limit and below the
    /// second.
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

/// A claim tested against one cell.
struct Answer {
    status: Status,
    /// Name of the group in which answers are counted together.
    group: String,
    /// Text such as `pipe (spin) yes (p99 312 ns, p99.9 4.1 µs, median 180 ns)`.
    text: String,
}

impl Claim {
    /// Returns `true` for a record that was measured in the way to which the published figure
    /// refers.
    pub(crate) fn is_about(&self, record: &Record) -> bool {
        self.admits(self.cells, record, record)
    }

    fn admits(&self, conditions: &[Is], record: &Record, compared: &Record) -> bool {
        let experiment = match &record.experiment {
            Experiment::Latency => "latency",
            Experiment::Matrix => "matrix",
            Experiment::Queue(scenario) | Experiment::Contention(scenario) => scenario,
        };
        self.experiment == experiment
            && is_plain(&record.cell)
            && conditions.iter().all(|condition| condition.met_by(record, compared))
    }

    /// Tests the claim against all cells to which it applies.
    fn judge(&self, records: &[&Record]) -> Vec<Answer> {
        let placed = |record: &&&Record| {
            record.cell.lock().is_some() || record.cell.placement == Placement::Pinned
        };
        let placed = || records.iter().filter(placed);
        let mut answers = Vec::new();
        for record in placed().filter(|record| self.is_about(record)) {
            match self.against {
                None => answers.extend(self.answer(record)),
                Some(conditions) => {
                    let others = placed().filter(|other| self.admits(conditions, other, record));
                    answers.extend(others.filter_map(|other| self.compare(record, other)));
                }
            }
        }
        answers
    }

    fn answer(&self, record: &Record) -> Option<Answer> {
        let interval95 = self.figure.of(record)?.interval95;
        let mut figures = vec![self.figure.text(record)?];
        figures.extend(self.figure.range(interval95));
        Some(self.answered(record, interval95, name(record, self.cells), figures))
    }

    fn compare(&self, record: &Record, other: &Record) -> Option<Answer> {
        let times = self.figure.ratio(record, other)?;
        let figures = vec![
            format!("{} against {}", self.figure.text(record)?, self.figure.text(other)?),
            ratio(times.value),
            digits_range(times.interval95),
        ];
        let named = name(record, self.cells);
        let against = name(other, self.against.unwrap_or_default());
        // This is a larger burst through the same queue.
        let same = named.starts_with(&against);
        let named = if same { named } else { format!("{named} against {against}") };
        Some(self.answered(record, times.interval95, named, figures))
    }

    fn answered(
        &self,
        record: &Record,
        interval95: [f64; 2],
        named: String,
        mut figures: Vec<String>,
    ) -> Answer {
        let status = Status::of(interval95, self.limits);
        figures.extend(too_disturbed(&record.disturbance).then(|| "disturbed".into()));
        let text = format!("{named} {} ({})", status.label(), figures.join(", "));
        Answer { status, group: group(record), text }
    }
}

/// Maximum number of cells that are named individually.
const MAX_NAMED: usize = 3;

/// All answers, or the number of each kind with an example.
fn told(answers: &[Answer]) -> Option<String> {
    let all = |answers: &[&Answer]| -> Vec<String> {
        answers.iter().map(|answer| answer.text.clone()).collect()
    };
    if answers.len() <= MAX_NAMED {
        let answers: Vec<&Answer> = answers.iter().collect();
        return (!answers.is_empty()).then(|| all(&answers).join("; "));
    }
    let mut groups: Vec<(&str, Vec<&Answer>)> = Vec::new();
    for answer in answers {
        match groups.iter_mut().find(|(name, _)| *name == answer.group) {
            Some((_, group)) => group.push(answer),
            None => groups.push((&answer.group, vec![answer])),
        }
    }
    let (single, several): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(_, group)| group.len() == 1);
    let mut parts: Vec<String> = single.iter().flat_map(|(_, group)| all(group)).collect();
    parts.extend(several.iter().map(|(name, group)| {
        format!("{name} {} of {} cells", counts(group), group.len()).trim_start().to_string()
    }));
    let counted = || several.iter().flat_map(|(_, group)| group);
    let example = |status| counted().find(|answer| answer.status == status).copied();
    let examples: Vec<&Answer> = Status::ALL.into_iter().filter_map(example).collect();
    let text = parts.join("; ");
    Some(match all(&examples).as_slice() {
        [] => text,
        examples => format!("{text}, for example {}", examples.join(" and ")),
    })
}

/// `yes in 7, no in 6`.
fn counts(answers: &[&Answer]) -> String {
    let count = |status| answers.iter().filter(|answer| answer.status == status).count();
    let counts: Vec<String> = Status::ALL
        .into_iter()
        .filter(|status| count(*status) > 0)
        .map(|status| format!("{} in {}", status.label(), count(status)))
        .collect();
    counts.join(", ")
}

/// A sentence for each claim that applies to a measured cell.
pub(crate) fn sentences(claims: &[Claim], records: &[&Record]) -> Vec<Sentence> {
    let sentence = |claim: &Claim| {
        let answers = told(&claim.judge(records))?;
        Some(say::claim(claim.source, claim.text, answers))
    };
    claims.iter().filter(|claim| !claim.text.is_empty()).filter_map(sentence).collect()
}

/// `3 hold here, 1 does not, 2 undecided`; `None` without answers. A claim holds where all cells
/// that it is about confirm it.
pub(crate) fn tally(records: &[Record]) -> Option<String> {
    let records: Vec<&Record> = records.iter().collect();
    let answered = all().filter(|claim| !claim.text.is_empty()).filter_map(|claim| {
        let answers = claim.judge(&records);
        let first = answers.first()?.status;
        Some(if answers.iter().all(|one| one.status == first) { first } else { Status::Open })
    });
    let answered: Vec<Status> = answered.collect();
    let count = |status| answered.iter().filter(|one| **one == status).count();
    let words = |status: Status, one: &str, several: &str| match count(status) {
        0 => None,
        1 => Some(format!("1 {one}")),
        many => Some(format!("{many} {several}")),
    };
    let parts = [
        words(Status::Confirmed, "holds here", "hold here"),
        words(Status::Refuted, "does not", "do not"),
        words(Status::Open, "undecided", "undecided"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn all() -> impl Iterator<Item = &'static Claim> {
    MECHANISMS.iter().chain(&QUEUES).chain(&OTHER_QUEUES).chain(&LOCKS)
}

/// The published figures for a record, in ascending order.
pub(crate) fn published(record: &Record) -> Vec<&'static Published> {
    all()
        .filter(|claim| claim.is_about(record))
        .filter_map(|claim| claim.published.as_ref())
        .collect()
}

/// Text for a table: `45 ns (2011)`, `2.08–2.36 µs (2011)`, `≥40 µs (2016)`; for streams
/// `≥25.0 M/s (2011)`. `None` if there are no figures.
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

/// Sentence on the sources, such as `Published: M. Thompson, …; an article on Habr ….`; `None` if
/// no record has a published figure.
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
    fn many_answers_are_counted_with_an_example_of_each() {
        let answer = |status, group: &str, text: &str| Answer {
            status,
            group: group.into(),
            text: text.into(),
        };
        let (yes, no, open) = (Status::Confirmed, Status::Refuted, Status::Open);
        let few = [answer(yes, "", "a yes (1)"), answer(no, "", "b no (1)")];
        assert_eq!(told(&few).as_deref(), Some("a yes (1); b no (1)"));
        let many = [("a", no), ("b", yes), ("c", no), ("d", no)]
            .map(|(name, status)| answer(status, "", &format!("{name} {} (1)", status.label())));
        assert_eq!(
            told(&many).as_deref(),
            Some("yes in 1, no in 3 of 4 cells, for example b yes (1) and a no (1)")
        );
        let groups = [("x", "a", yes), ("y", "b", no), ("x", "c", yes), ("x", "d", open)]
            .map(|(group, name, status)| answer(status, group, name));
        assert_eq!(
            told(&groups).as_deref(),
            Some("b; x yes in 2, undecided in 1 of 3 cells, for example a and d")
        );
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn every_claim_has_limits_and_a_figure_or_a_text() {
        for claim in all() {
            let [least, limit] = claim.limits;
            assert_eq!(!claim.text.is_empty(), least < limit, "{claim:?}");
            assert!(least < limit || claim.published.is_some(), "{claim:?}");
        }
    }
}

//! `--fail-if EXPR`: comparisons joined by `and`. The expression is true if a single lock meets all
//! comparisons. `stuck` or `deadlock` alone is true for any standstill of that kind, even without a
//! lock.

mod figure;
mod glob;

use threadtoll_record::Profile;
use threadtoll_record::profile::{Lock, Stuck};
use threadtoll_report::clean;

use crate::failure::Failure;
use crate::nearest::unknown;
use figure::{FIGURES, Figure};
use glob::Glob;

const GRAMMAR: &str = "write comparisons as --fail-if 'name = cache_* and queue_mean > 0.5'";
/// Maximum number of locks that a message names.
const NAMED: usize = 3;

#[derive(Debug)]
pub(super) struct Condition {
    comparisons: Vec<Comparison>,
}

#[derive(Debug)]
enum Comparison {
    Name(Glob),
    /// True for a lock in a standstill ([`Word::Stuck`]) or in a deadlock ([`Word::Deadlock`]).
    Stuck(Word),
    Figure {
        figure: &'static Figure,
        relation: Relation,
        limit: f64,
    },
}

/// A word that is a comparison, or the whole expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Stuck,
    Deadlock,
}

impl Word {
    const ALL: [Word; 2] = [Word::Stuck, Word::Deadlock];

    fn name(self) -> &'static str {
        match self {
            Word::Stuck => "stuck",
            Word::Deadlock => "deadlock",
        }
    }

    fn fits(self, stuck: &Stuck) -> bool {
        self == Word::Stuck || stuck.kind.is_deadlock()
    }
}

#[derive(Clone, Copy, Debug)]
enum Relation {
    Below,
    Above,
    AtMost,
    AtLeast,
}

impl Relation {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Relation::Below => value < limit,
            Relation::Above => value > limit,
            Relation::AtMost => value <= limit,
            Relation::AtLeast => value >= limit,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Judgement {
    /// Locks (with their figures) or standstills that meet the condition.
    pub(super) met: Vec<String>,
    /// Unknown figures, each with the locks that might meet the condition if the figure were known.
    pub(super) unknown: Vec<(&'static str, Vec<String>)>,
}

impl Condition {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let mut comparisons = Vec::new();
        let mut rest = text.trim_start();
        loop {
            let (comparison, after) = comparison(rest)?;
            comparisons.push(comparison);
            rest = after.trim_start();
            if rest.is_empty() {
                return Ok(Condition { comparisons });
            }
            let (word, after) = word(rest);
            if word != "and" {
                let word = if word.is_empty() { rest } else { word };
                return Err(bad(format!("expected “and”, found “{word}”")));
            }
            rest = after.trim_start();
        }
    }

    pub(super) fn judge(&self, profile: &Profile) -> Judgement {
        let mut judgement = Judgement { met: Vec::new(), unknown: Vec::new() };
        for process in &profile.processes {
            if let Some(words) = self.words() {
                // The expression names only standstills, which need not involve a lock: a stopped
                // program stands still, too.
                let fits = |stuck: &&Stuck| words.iter().all(|word| word.fits(stuck));
                let found = process.stand_stills().filter(fits);
                judgement.met.extend(found.map(|stuck| sentence(&stuck.text)));
                continue;
            }
            for lock in &process.locks {
                let name = match profile.processes.len() {
                    1 => lock.name.to_string(),
                    _ => format!("{} of process {}", lock.name, process.pid),
                };
                let in_stand_still = |word: Word| {
                    let mut stand_stills = process.stand_stills();
                    stand_stills.any(|it| word.fits(it) && it.locks.contains(&lock.id))
                };
                self.judge_lock(lock, &name, &in_stand_still, &mut judgement);
            }
        }
        judgement
    }

    /// The words `stuck` and `deadlock`. `None` if the expression contains anything else.
    fn words(&self) -> Option<Vec<Word>> {
        let word = |comparison: &Comparison| match comparison {
            Comparison::Stuck(word) => Some(*word),
            Comparison::Name(_) | Comparison::Figure { .. } => None,
        };
        self.comparisons.iter().map(word).collect()
    }

    fn judge_lock(
        &self,
        lock: &Lock,
        name: &str,
        in_stand_still: &dyn Fn(Word) -> bool,
        judgement: &mut Judgement,
    ) {
        let mut unknown = Vec::new();
        for comparison in &self.comparisons {
            match comparison {
                Comparison::Name(glob) if glob.matches(&lock.name) => {}
                Comparison::Stuck(word) if in_stand_still(*word) => {}
                Comparison::Name(_) | Comparison::Stuck(_) => return,
                Comparison::Figure { figure, relation, limit } => match (figure.of)(lock) {
                    Some(value) if relation.holds(value, *limit) => {}
                    Some(_) => return,
                    None => unknown.push(figure.name),
                },
            }
        }
        if unknown.is_empty() {
            judgement.met.push(format!("{name}{}", self.figures_of(lock)));
        }
        for figure in unknown {
            match judgement.unknown.iter_mut().find(|(known, _)| *known == figure) {
                Some((_, locks)) => locks.push(name.to_string()),
                None => judgement.unknown.push((figure, vec![name.to_string()])),
            }
        }
    }

    fn figures(&self) -> impl Iterator<Item = &'static Figure> {
        self.comparisons.iter().filter_map(|comparison| match comparison {
            Comparison::Name(_) | Comparison::Stuck(_) => None,
            Comparison::Figure { figure, .. } => Some(*figure),
        })
    }

    /// Such as ` (queue_mean 0.62, held_share 81%)`, with each figure of the condition once.
    fn figures_of(&self, lock: &Lock) -> String {
        let mut figures: Vec<String> = Vec::new();
        for figure in self.figures() {
            if let Some(value) = (figure.of)(lock) {
                let text = format!("{} {}", figure.name, figure.unit.show(value));
                if !figures.contains(&text) {
                    figures.push(text);
                }
            }
        }
        if figures.is_empty() { String::new() } else { format!(" ({})", figures.join(", ")) }
    }
}

impl Judgement {
    pub(super) fn lines(&self) -> Vec<String> {
        let met = (!self.met.is_empty()).then(|| format!("--fail-if holds: {}.", some(&self.met)));
        let unknown = self.unknown.iter().map(|(figure, locks)| {
            format!(
                "note: --fail-if: {figure} is unknown, so it was not compared, for {}.",
                some(locks)
            )
        });
        met.into_iter().chain(unknown).collect()
    }
}

/// Removes the final full stop of a standstill's description, because the printed line adds one.
fn sentence(text: &str) -> String {
    clean(text.strip_suffix('.').unwrap_or(text))
}

fn some(names: &[String]) -> String {
    let mut text = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

fn bad(what: String) -> Failure {
    Failure::usage(format!("--fail-if: {what}")).hint(GRAMMAR)
}

fn comparison(text: &str) -> Result<(Comparison, &str), Failure> {
    let (field, after) = word(text);
    if field.is_empty() {
        return Err(bad(match text.split_whitespace().next() {
            Some(odd) => format!("expected a figure or “name”, found “{odd}”"),
            None => "a comparison is missing".into(),
        }));
    }
    if let Some(word) = Word::ALL.into_iter().find(|word| word.name() == field) {
        return Ok((Comparison::Stuck(word), after));
    }
    let figure = FIGURES.iter().find(|figure| figure.name == field);
    if figure.is_none() && field != "name" {
        let words = Word::ALL.map(Word::name);
        let names = FIGURES.iter().map(|figure| figure.name).chain(["name"]).chain(words);
        let all: Vec<&str> = names.clone().collect();
        let hint = format!("use one of: {}", all.join(", "));
        let what = format!("--fail-if: locks have no figure called “{field}”");
        return Err(unknown(what, field, names, hint));
    }
    let after = after.trim_start();
    let end = after.find(|c: char| !"<>=!~".contains(c)).unwrap_or(after.len());
    let (operator, after) = after.split_at(end);
    if operator.is_empty() {
        return Err(bad(format!("“{field}” is compared with nothing")));
    }
    let (value, after) = value(after.trim_start())?;
    if value.is_empty() {
        return Err(bad(format!("“{field} {operator}” is not followed by a value")));
    }
    let comparison = match figure {
        None if operator == "=" => Comparison::Name(Glob::new(value)),
        None => {
            return Err(bad(format!("“name {operator}”: a name can only be compared with “=”")));
        }
        Some(figure) => Comparison::Figure {
            figure,
            relation: relation(operator)
                .ok_or_else(|| bad(format!("“{field} {operator}”: use <, >, <= or >=")))?,
            limit: figure.unit.read(value).map_err(|why| {
                bad(format!("“{field} {operator} {value}”: {why}")).hint(figure.unit.hint())
            })?,
        },
    };
    Ok((comparison, after))
}

fn relation(operator: &str) -> Option<Relation> {
    match operator {
        "<" => Some(Relation::Below),
        ">" => Some(Relation::Above),
        "<=" => Some(Relation::AtMost),
        ">=" => Some(Relation::AtLeast),
        _ => None,
    }
}

fn word(text: &str) -> (&str, &str) {
    let end =
        text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len());
    text.split_at(end)
}

/// Splits off the value at the start of the text. A value that contains blanks is in quotes.
fn value(text: &str) -> Result<(&str, &str), Failure> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..]
            .split_once(quote)
            .ok_or_else(|| bad(format!("the closing {quote} is missing"))),
        _ => Ok(text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))),
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_record::profile::StuckKind;

    use super::*;

    fn profile() -> Profile {
        let text = include_str!("../../../../record/tests/record/profile.json");
        serde_json::from_str(text).unwrap()
    }

    fn judge(expression: &str) -> Judgement {
        Condition::parse(expression).unwrap().judge(&profile())
    }

    #[test]
    fn one_lock_must_meet_all_of_it() {
        for holds in [
            "queue_mean > 0.4",
            "queue_mean>0.4",
            "queue_mean >= 0.42 and queue_mean <= 0.42",
            "held_share > 30% and name = cache_*",
            "held_share < 0.32",
            "  efficiency<95.4%   and queue_max>=5 ",
            "name = 'cache_lock' and name = \"*\"",
        ] {
            assert_eq!(judge(holds).met.len(), 1, "{holds}");
        }
        for fails in [
            "queue_mean > 0.42",
            "queue_mean < 0.42",
            "held_share > 30% and name = other",
            "queue_max > 5",
        ] {
            assert_eq!(judge(fails), Judgement { met: vec![], unknown: vec![] }, "{fails}");
        }
    }

    #[test]
    fn the_locks_that_meet_it_are_named_with_their_figures() {
        let lines = judge("held_share > 30% and queue_mean > 0.4 and held_share < 1").lines();
        assert_eq!(lines, ["--fail-if holds: cache_lock (held_share 31%, queue_mean 0.42)."]);
        let mut two = profile();
        let mut other = two.processes[0].clone();
        other.pid = 9;
        two.processes.push(other);
        let lines = Condition::parse("name = *").unwrap().judge(&two).lines();
        assert_eq!(
            lines,
            ["--fail-if holds: cache_lock of process 4711, cache_lock of process 9."]
        );
    }

    #[test]
    fn stand_stills_are_judged_alone_and_with_figures_of_their_locks() {
        let mut profile = profile();
        let judge = |expression: &str, profile: &Profile| {
            Condition::parse(expression).unwrap().judge(profile)
        };
        assert!(judge("stuck", &profile).lines().is_empty());
        let lock = profile.processes[0].locks[0].id;
        let stuck = |kind, lock| Stuck {
            kind,
            seconds: None,
            locks: vec![lock],
            threads: Vec::new(),
            more_threads: 0.into(),
            text: "Never released: worker\u{1b} waits for it.".into(),
            mend: None,
        };
        profile.processes[0].stuck = Some(stuck(StuckKind::NeverReleased, lock + 1));
        let lines = judge("stuck", &profile).lines();
        assert_eq!(lines, ["--fail-if holds: Never released: worker waits for it."]);
        assert!(judge("deadlock", &profile).lines().is_empty());
        // The listed lock is not part of the standstill.
        assert!(judge("stuck and queue_mean > 0.4", &profile).met.is_empty());
        profile.processes[0].also_stuck = vec![stuck(StuckKind::SelfDeadlock, lock)];
        for holds in ["deadlock", "deadlock and stuck", "deadlock and name = cache_*"] {
            assert_eq!(judge(holds, &profile).met.len(), 1, "{holds}");
        }
    }

    #[test]
    fn what_is_not_known_is_said_unless_it_does_not_matter() {
        let mut unknown = profile();
        unknown.processes[0].locks[0].held_share = None;
        let judge = |expression: &str| Condition::parse(expression).unwrap().judge(&unknown);
        let judged = judge("held_share > 30% and queue_mean > 0.4");
        assert!(judged.met.is_empty());
        let line =
            "note: --fail-if: held_share is unknown, so it was not compared, for cache_lock.";
        assert_eq!(judged.lines(), [line]);
        assert!(judge("held_share > 30% and queue_mean > 0.5").lines().is_empty());
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "",
            " ",
            "and",
            "queue_mean",
            "queue_mean >",
            "queue_mean 0.5",
            "queue_mean > much",
            "queue_mean > -1",
            "queue_mean > inf",
            "queue_mean > nan",
            "queue_mean > 5%",
            "queue_mean = 5",
            "queue_mean => 5",
            "queue_mean == 5",
            "queue_mean != 5",
            "queue_mean > 5 or queue_max > 5",
            "queue_mean > 5 and",
            "queue_mean > 5 and and",
            "queue_mean > 5 queue_max > 5",
            "stuck > 1",
            "stuck deadlock",
            "not stuck",
            "queue_mean > 5, queue_max > 5",
            "(queue_mean > 5)",
            "held_share > 80",
            "held_share > 101%",
            "held_share > -1%",
            "held_share > %",
            "queue_max > 1.5",
            "wait.p99 > 5ms",
            "acquisitions > 5",
            "name > x",
            "name =",
            "name = 'x",
            "name = ''",
            "name = 'x'y",
            "nam = x",
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }
}

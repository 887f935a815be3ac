//! Timelines: the states of a cell's threads over time.

use std::cmp::Reverse;

use threadtoll_record::file::Results;
use threadtoll_record::{Count, LockSubject, PlannedCell, Record, Timeline as Recorded};

use crate::clean::clean;
use crate::figure::{State, Stretch, Timeline};
use crate::label::plural;
use crate::units::{round_time, share, time};

const MOST: usize = 3;
/// The first timeline shows `EACH` acquisitions per thread, but in total at least the first and at
/// most the second number in `ACQUISITIONS`, because more could not be distinguished. Further
/// timelines show the first number in `ACQUISITIONS`.
const EACH: usize = 2;
const ACQUISITIONS: [usize; 2] = [40, 96];
const MOST_THREADS: usize = 64;
/// With shorter holds, reading the clock takes a large part of the times that are drawn.
const WORTH_STAMPING_NS: u64 = 1000;
/// A lock that is held for at least this share of the time counts as always held.
const ALWAYS: f64 = 0.995;
/// Several threads count as holding a lock at once if its mean number of holders, while it is held,
/// exceeds this.
const SEVERAL: f64 = 1.01;

struct Candidate<'a> {
    recorded: &'a Recorded,
    planned: &'a PlannedCell,
    subject: &'a LockSubject,
}

/// Timelines of some cells. The first cell is the most informative one: it has many threads, and
/// each would hold the lock for about half of the time if it never waited. Then follow cells of
/// other locks and, if there is room, the cells of the first lock with the longest and the shortest
/// holds.
pub(crate) fn timelines(results: &Results, records: &[Record]) -> Vec<Timeline> {
    let all = candidates(results, records);
    let mut chosen: Vec<&Candidate<'_>> = Vec::new();
    for one in &all {
        if !chosen.iter().any(|other| other.is_like(one)) {
            chosen.push(one);
        }
    }
    if let Some(first) = chosen.first().copied() {
        let at = first.hold_share();
        let like = || all.iter().filter(|one| one.is_like(first));
        let longer = like().filter(|one| one.hold_share() > at);
        let longest = longer.min_by(|a, b| b.hold_share().total_cmp(&a.hold_share()));
        let shorter = like().filter(|one| one.hold_share() < at && one.subject.hold_ns > 0);
        let shortest = shorter.min_by(|a, b| a.hold_share().total_cmp(&b.hold_share()));
        chosen.extend(longest.into_iter().chain(shortest));
    }
    chosen.truncate(MOST);
    let [least, most] = ACQUISITIONS;
    let shown = |(nth, one): (usize, &Candidate<'_>)| match nth {
        0 => one.shown((EACH * one.recorded.acquisitions.len()).clamp(least, most)),
        _ => one.shown(least),
    };
    chosen.into_iter().enumerate().map(shown).collect()
}

/// Sorted, the most informative cell first.
fn candidates<'a>(results: &'a Results, records: &[Record]) -> Vec<Candidate<'a>> {
    let candidate = |(group, recorded): (usize, &'a Recorded)| {
        let planned = results.plan.groups.get(group)?.get(recorded.cell)?;
        let is_of = |record: &Record| record.group == group && record.cell == planned.cell;
        let subject = planned.cell.lock()?;
        records.iter().any(is_of).then_some(Candidate { recorded, planned, subject })
    };
    let groups = results.groups.iter().enumerate();
    let timelines =
        groups.flat_map(|(index, group)| group.timelines.iter().map(move |it| (index, it)));
    let mut all: Vec<Candidate<'a>> = timelines.filter_map(candidate).collect();
    let order = |one: &Candidate<'_>| {
        let crowded = one.planned.cell.oversubscribed();
        let below = one.subject.hold_ns < WORTH_STAMPING_NS;
        (below, crowded, !one.recorded.clean, Reverse(one.subject.threads))
    };
    let from_half = |one: &Candidate<'_>| (one.hold_share() - 0.5).abs();
    all.sort_by(|a, b| from_half(a).total_cmp(&from_half(b)).then_with(|| order(a).cmp(&order(b))));
    all
}

impl Candidate<'_> {
    fn hold_share(&self) -> f64 {
        self.subject.hold_share()
    }

    /// Returns `true` if the cells differ only in the number and the load of their threads.
    fn is_like(&self, other: &Candidate<'_>) -> bool {
        let of = |one: &Candidate<'_>| (one.planned.cell.placement, one.subject.work);
        of(self) == of(other)
            && self.subject.lock == other.subject.lock
            && self.subject.read_share == other.subject.read_share
    }

    fn shown(&self, acquisitions: usize) -> Timeline {
        let of_threads = &self.recorded.acquisitions;
        let mut requests: Vec<u64> =
            of_threads.iter().flatten().map(|[requested, ..]| requested.get()).collect();
        requests.sort_unstable();
        let whole_ns = self.recorded.elapsed_ns.get();
        let end_ns = requests.into_iter().skip(acquisitions).find(|at| (1..whole_ns).contains(at));
        let length_ns = end_ns.map_or(whole_ns, two_digits);
        let mut threads: Vec<Vec<Stretch>> =
            of_threads.iter().map(|thread| stretches(thread, length_ns)).collect();
        let sentence = self.sentence(&threads, length_ns);
        threads.truncate(MOST_THREADS);
        let LockSubject { lock, threads: count, hold_ns, think_ns, .. } = self.subject;
        let heading = format!(
            "{}, {}, hold {}, think {}",
            clean(lock),
            plural(u64::from(*count), "thread"),
            time(*hold_ns as f64),
            time(*think_ns as f64)
        );
        Timeline { heading, sentence, length_ns, threads }
    }

    /// Such as `8 threads, one lock, the first 400 µs of one measurement: at each moment one thread
    /// holds it, 6.3 wait and 0.7 work.`
    fn sentence(&self, threads: &[Vec<Stretch>], length_ns: u64) -> String {
        let mean = |state: State| {
            let of_state = threads.iter().flatten().filter(|stretch| stretch.state == state);
            of_state.map(|it| (it.until_ns - it.from_ns) as f64).fold(0.0, |sum, it| sum + it)
                / length_ns as f64
        };
        let [holding, waiting, working] =
            [State::Holding, State::Waiting, State::Working].map(mean);
        let held = held_ns(threads) as f64 / length_ns as f64;
        let (locks, it) = match self.subject.stripes() {
            Some(1) | None => ("one lock".to_string(), "it"),
            Some(several) => (plural(several.into(), "lock"), "one"),
        };
        let others = format!("{waiting:.1} wait and {working:.1} work");
        let seen = if holding > SEVERAL * held {
            format!("on average {holding:.1} hold {it}, {others}")
        } else if held >= ALWAYS {
            format!("at each moment one thread holds {it}, {others}")
        } else {
            format!("a thread holds {it} {} of the time; on average {others}", share(held))
        };
        let mut sentence = format!(
            "{}, {locks}, the first {} of one measurement: {seen}.",
            plural(threads.len() as u64, "thread"),
            round_time(length_ns as f64)
        );
        if !self.recorded.clean {
            sentence.push_str(" The measurement was disturbed.");
        }
        if threads.len() > MOST_THREADS {
            sentence.push_str(&format!(" Only the first {MOST_THREADS} threads are drawn."));
        }
        sentence
    }
}

fn stretches(acquisitions: &[[Count; 3]], length_ns: u64) -> Vec<Stretch> {
    let states = [State::Working, State::Waiting, State::Holding];
    let ends = acquisitions.iter().flat_map(|moments| states.into_iter().zip(*moments));
    let ends = ends.map(|(state, until)| (state, until.get()));
    let mut stretches = Vec::new();
    let mut from_ns = 0;
    for (state, until_ns) in ends.chain([(State::Working, length_ns)]) {
        let until_ns = until_ns.clamp(from_ns, length_ns);
        if until_ns > from_ns {
            stretches.push(Stretch { state, from_ns, until_ns });
        }
        from_ns = until_ns;
    }
    stretches
}

/// Time for which at least one thread holds the lock.
fn held_ns(threads: &[Vec<Stretch>]) -> u64 {
    let mut holds: Vec<Stretch> =
        threads.iter().flatten().filter(|it| it.state == State::Holding).copied().collect();
    holds.sort_by_key(|hold| hold.from_ns);
    let (mut held_ns, mut until_ns) = (0, 0);
    for hold in holds {
        held_ns += hold.until_ns.saturating_sub(hold.from_ns.max(until_ns));
        until_ns = until_ns.max(hold.until_ns);
    }
    held_ns
}

/// Rounds down to two significant digits.
fn two_digits(number: u64) -> u64 {
    let digit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number / digit * digit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquisition(requested: u64, acquired: u64, released: u64) -> [Count; 3] {
        [requested, acquired, released].map(Count::from)
    }

    #[test]
    fn a_thread_does_one_thing_at_a_time_until_the_end() {
        let of = |acquisitions: &[[Count; 3]]| -> Vec<(State, u64, u64)> {
            let all = stretches(acquisitions, 100);
            all.into_iter().map(|it| (it.state, it.from_ns, it.until_ns)).collect()
        };
        let two = [acquisition(10, 10, 30), acquisition(40, 90, 150)];
        let expected = [
            (State::Working, 0, 10),
            (State::Holding, 10, 30),
            (State::Working, 30, 40),
            (State::Waiting, 40, 90),
            (State::Holding, 90, 100),
        ];
        assert_eq!(of(&two), expected);
        assert_eq!(of(&[]), [(State::Working, 0, 100)]);
        assert_eq!(of(&[acquisition(50, 20, 10)]).len(), 2, "an order that cannot be");
    }

    #[test]
    fn the_time_held_counts_once_however_many_hold() {
        let hold = |from_ns, until_ns| vec![Stretch { state: State::Holding, from_ns, until_ns }];
        assert_eq!(held_ns(&[hold(0, 10), hold(5, 8), hold(9, 12), hold(20, 30)]), 22);
    }

    #[test]
    fn lengths_are_round() {
        assert_eq!([0, 7, 42, 437, 437_219].map(two_digits), [0, 7, 42, 430, 430_000]);
        assert_eq!(two_digits(u64::MAX), 18_000_000_000_000_000_000);
    }
}

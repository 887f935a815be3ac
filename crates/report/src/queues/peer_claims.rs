//! Published claims about queues of other languages, tested against the rows of these queues.

use std::collections::BTreeMap;

use threadtoll_record::Wait;

use super::claims::{ASK_REPLY, Answer, HABR, joined, name, plain_rows};
use super::{Comparison, Row};
use crate::claim::ClaimStatus;
use crate::published::{BLOCKED, DISRUPTOR, LOCK_FREE, POLLED};
use crate::quotient::Quotient;
use crate::sentences::{self as say, Sentence};
use crate::units::{digits_range, per_second, range_per_second, ratio, time, time_range};

const THOMPSON: &str = "M. Thompson (2011)";
const STREAM: &str = "stream";

/// A claim about the one-way medians of some rows of ask-reply.
struct TimeClaim {
    text: &'static str,
    queues: &'static [&'static str],
    waits: &'static [Wait],
    /// The limits between which a median should lie, in nanoseconds.
    limits: [f64; 2],
}

const TIMES: &[TimeClaim] = &[
    TimeClaim {
        text: "a mutex and a queue take about 400 ns if the receiver polls (200 to 800 ns)",
        queues: &["mutex-queue"],
        waits: POLLED,
        limits: [200.0, 800.0],
    },
    TimeClaim {
        text: "a lock-free queue takes about 400 ns if the receiver polls (200 to 800 ns)",
        queues: LOCK_FREE,
        waits: POLLED,
        limits: [200.0, 800.0],
    },
    TimeClaim {
        text: "polling with `usleep` takes 40 µs or worse (at least 40 µs)",
        queues: &["mutex-queue-usleep"],
        waits: BLOCKED,
        limits: [40_000.0, f64::INFINITY],
    },
    TimeClaim {
        text: "D’s std.concurrency takes about 5 µs (2.5 to 10 µs)",
        queues: &["d-concurrency"],
        waits: BLOCKED,
        limits: [2_500.0, 10_000.0],
    },
    TimeClaim {
        text: "boost::asio takes 4.3 µs with one sender (2.15 to 8.6 µs)",
        queues: &["asio-post"],
        waits: BLOCKED,
        limits: [2_150.0, 8_600.0],
    },
];

/// A claim about the ratio of two rows’ one-way medians in ask-reply.
struct RatioClaim {
    text: &'static str,
    queue: &'static str,
    others: &'static [&'static str],
    waits: &'static [Wait],
    limits: [f64; 2],
}

const RATIOS: &[RatioClaim] = &[
    RatioClaim {
        text: "a mutex and a queue are as fast as a lock-free queue if the receiver polls (0.8 to 1.25 times its time)",
        queue: "mutex-queue",
        others: LOCK_FREE,
        waits: POLLED,
        limits: [0.8, 1.25],
    },
    RatioClaim {
        text: "exponential sleep dominates the time of D’s lock-free channel, and a spin before it mends that (less than half of the time)",
        queue: "d-channel-spin",
        others: &["d-channel"],
        waits: BLOCKED,
        limits: [0.0, 0.5],
    },
];

/// A claim about the rates of streams with one sender.
struct RateClaim {
    text: &'static str,
    queues: &'static [&'static str],
    batched: bool,
    least_per_s: f64,
}

const RATES: &[RateClaim] = &[
    RateClaim {
        text: "the Disruptor passes more than 25 million messages a second without explicit batches",
        queues: DISRUPTOR,
        batched: false,
        least_per_s: 25e6,
    },
    RateClaim {
        text: "the Disruptor passes more than 100 million messages a second with batches of its publisher",
        queues: DISRUPTOR,
        batched: true,
        least_per_s: 100e6,
    },
];

/// A sentence for each claim with a measured row.
pub(super) fn claims(comparisons: &[Comparison<'_>]) -> Vec<Sentence> {
    let say = |source, text, answers: &[Answer]| {
        joined(answers, "rows").map(|answers| say::peer_claim(source, text, answers))
    };
    let times = TIMES.iter().map(|claim| say(HABR, claim.text, &times(claim, comparisons)));
    let ratios = RATIOS.iter().map(|claim| say(HABR, claim.text, &ratios(claim, comparisons)));
    let senders = say(HABR, MORE_SENDERS, &more_senders(comparisons));
    let rates = RATES.iter().map(|claim| say(THOMPSON, claim.text, &rates(claim, comparisons)));
    times.chain(ratios).chain([senders]).chain(rates).flatten().collect()
}

fn asked<'c, 'a>(
    comparisons: &'c [Comparison<'a>],
    queues: &'static [&'static str],
    waits: &'static [Wait],
) -> impl Iterator<Item = &'c Row<'a>> {
    plain_rows(comparisons, ASK_REPLY).filter(|row| {
        row.queue()
            .is_some_and(|queue| queues.contains(&&*queue.queue) && waits.contains(&queue.wait))
    })
}

fn times(claim: &TimeClaim, comparisons: &[Comparison<'_>]) -> Vec<Answer> {
    let answer = |row: &Row<'_>| {
        let within = row.record.one_way_p50_interval95()?;
        Some(Answer {
            status: ClaimStatus::of(within, claim.limits),
            row: name(row),
            figures: format!("{}, {}", time(row.record.one_way_p50()?), time_range(within)),
        })
    };
    asked(comparisons, claim.queues, claim.waits).filter_map(answer).collect()
}

fn ratios(claim: &RatioClaim, comparisons: &[Comparison<'_>]) -> Vec<Answer> {
    let rows = plain_rows(comparisons, ASK_REPLY).filter(|row| {
        row.queue()
            .is_some_and(|queue| queue.queue == claim.queue && claim.waits.contains(&queue.wait))
    });
    let against = |row: &Row<'_>, other: &Row<'_>| {
        let times = Quotient::of(&row.record, &other.record)?;
        Some(Answer {
            status: ClaimStatus::of(times.interval95, claim.limits),
            row: format!("{} against {}", name(row), name(other)),
            figures: format!("{}, {}", ratio(times.ratio), digits_range(times.interval95)),
        })
    };
    rows.flat_map(|row| {
        // Both wait alike.
        let wait = row.queue().map(|queue| queue.wait);
        asked(comparisons, claim.others, claim.waits)
            .filter(move |other| other.queue().map(|queue| queue.wait) == wait)
            .filter_map(move |other| against(row, other))
    })
    .collect()
}

fn rates(claim: &RateClaim, comparisons: &[Comparison<'_>]) -> Vec<Answer> {
    let answer = |row: &Row<'_>| {
        let queue = row.queue()?;
        let claimed = claim.queues.contains(&&*queue.queue)
            && queue.senders == 1
            && (queue.batch > 1) == claim.batched;
        let within = claimed.then(|| rate_interval(row)).flatten()?;
        let rate = row.record.rate_per_s?.get();
        Some(Answer {
            status: ClaimStatus::of(within, [claim.least_per_s, f64::INFINITY]),
            row: name(row),
            figures: format!("{}/s, {}/s", per_second(rate), range_per_second(within)),
        })
    };
    plain_rows(comparisons, STREAM).filter_map(answer).collect()
}

fn rate_interval(row: &Row<'_>) -> Option<[f64; 2]> {
    Some(row.record.interval95.rate_per_s?.map(|rate| rate.get()))
}

const MORE_SENDERS: &str = "boost::asio gets worse with more senders (a stream’s message takes at least 1.1 times as long as with one)";
const WORSE: f64 = 1.1;
const ASIO: &[&str] = &["asio-post", "asio-post-fetch"];

/// Streams of several senders compared with those of one. They stand in groups of their own, so
/// the far ends of both intervals bound the ratio.
fn more_senders(comparisons: &[Comparison<'_>]) -> Vec<Answer> {
    let mut by_row: BTreeMap<String, BTreeMap<u32, [f64; 2]>> = BTreeMap::new();
    for row in plain_rows(comparisons, STREAM) {
        let Some(queue) = row.queue() else { continue };
        if ASIO.contains(&&*queue.queue)
            && queue.batch == 1
            && let Some(rates) = rate_interval(row)
        {
            by_row.entry(name(row)).or_default().insert(queue.senders, rates);
        }
    }
    let mut answers = Vec::new();
    for (row, senders) in &by_row {
        let Some(one) = senders.get(&1) else { continue };
        for (count, rates) in senders.range(2..) {
            let times = [one[0] / rates[1], one[1] / rates[0]];
            answers.push(Answer {
                status: ClaimStatus::of(times, [WORSE, f64::INFINITY]),
                row: format!("{row}, {count} senders"),
                figures: format!("{} times", digits_range(times)),
            });
        }
    }
    answers
}

//! Sentences about the measured lock from which a prediction took its times.

use threadtoll_record::{MeasuredBy, MeasuredLock, PredictedRow, Prediction};

use crate::clean::clean;
use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::units::{
    digits, digits_range, per_op, range_of_shares, range_per_op, ratio, round_time, share,
    time_within,
};

/// Predicted and measured speed-ups count as different if their intervals are further apart than
/// this share of the measured one: the error of the models themselves.
const SPEEDUP_ERROR: f64 = 0.03;

/// Like [`SPEEDUP_ERROR`], for queues, as a share of the threads.
const QUEUE_ERROR: f64 = 0.02;

/// What was taken from the file.
pub(crate) fn taken(prediction: &Prediction) -> Option<Sentence> {
    let from = prediction.from.as_ref()?;
    let figures = match from.source {
        MeasuredBy::Profile => of_profile(from),
        MeasuredBy::Contention => of_contention(prediction, from),
    };
    let threads = plural(from.threads.into(), "thread");
    Some(say::taken(clean(&from.file), clean(&from.lock), threads, figures.join(", ")))
}

fn of_profile(from: &MeasuredLock) -> Vec<String> {
    let held = from.held_share.map(|held| {
        let interval = from.held_share_interval95.map(|[low, high]| range_of_shares(low, high));
        format!("held {}", within(share(held), interval))
    });
    let least = if from.queue_is_lower_bound { "at least " } else { "" };
    let queue = from
        .queue_mean
        .map(|queue| format!("queue {least}{}", queue_within(queue, from.queue_mean_interval95)));
    held.into_iter().chain(queue).collect()
}

fn of_contention(prediction: &Prediction, from: &MeasuredLock) -> Vec<String> {
    let hold =
        prediction.hold_ns.map(|ns| format!("held {}", time_within(ns, from.hold_ns_interval95)));
    let think = prediction
        .think_ns
        .map(|ns| format!("not held {}", time_within(ns, from.think_ns_interval95)));
    hold.into_iter().chain(think).collect()
}

/// A figure, followed by its interval in parentheses unless both read the same.
pub(crate) fn within(figure: String, interval: Option<String>) -> String {
    match interval.filter(|interval| *interval != figure) {
        Some(interval) => format!("{figure} ({interval})"),
        None => figure,
    }
}

/// A ratio, followed by its interval in parentheses unless both read the same.
pub(crate) fn ratio_within(value: f64, interval: Option<[f64; 2]>) -> String {
    let interval = interval.map(digits_range);
    within(ratio(value), interval.filter(|interval| *interval != digits(value)))
}

fn queue_within(queue: f64, interval: Option<[f64; 2]>) -> String {
    within(per_op(queue), interval.map(range_per_op))
}

/// Remarks on a prediction whose times were measured, the most important first.
pub(crate) fn remarks(prediction: &Prediction) -> Vec<Sentence> {
    let Some(from) = &prediction.from else { return Vec::new() };
    let pace = from.others_set_pace.then(say::others_set_pace);
    compared(prediction, from).into_iter().chain(pace).collect()
}

/// Explains why there is no throughput.
pub(crate) fn without_durations(prediction: &Prediction) -> Option<Sentence> {
    prediction.hold_ns.is_none().then(say::only_shares)
}

/// Compares the prediction for the threads that were measured with what they did: with their
/// speed-up, or else with their queue.
fn compared(prediction: &Prediction, from: &MeasuredLock) -> Option<Sentence> {
    let row = prediction.rows.iter().find(|row| row.threads == from.threads)?;
    match from.speedup {
        Some(speedup) => Some(by_speedup(prediction, row, from, speedup)),
        None => by_queue(row, from),
    }
}

fn by_speedup(
    prediction: &Prediction,
    row: &PredictedRow,
    from: &MeasuredLock,
    speedup: f64,
) -> Sentence {
    let measured = from.speedup_interval95.unwrap_or([speedup; 2]);
    let predicted = row.speedup_interval95.unwrap_or([row.speedup; 2]);
    let figures = [
        ratio_within(row.speedup, row.speedup_interval95),
        ratio_within(speedup, from.speedup_interval95),
    ];
    let why = match gap(predicted, measured, SPEEDUP_ERROR * speedup) {
        Gap::None => None,
        Gap::Below => Some("measured times contain the reading of the clock".to_string()),
        Gap::Above => Some(match from.handoff_ns.filter(|_| prediction.handoff_ns == 0.0) {
            Some(ns) => {
                let handoff = round_time(ns);
                format!("hand-offs took {handoff} there; --handoff and --policy include them")
            }
            None => "something else slowed the threads down".to_string(),
        }),
    };
    told(from, "a speed-up", figures, why)
}

fn by_queue(row: &PredictedRow, from: &MeasuredLock) -> Option<Sentence> {
    let queue = from.queue_mean.filter(|_| !from.queue_is_lower_bound)?;
    let measured = from.queue_mean_interval95.unwrap_or([queue; 2]);
    let predicted = row.queue_mean_interval95.unwrap_or([row.queue_mean; 2]);
    let figures = [
        queue_within(row.queue_mean, row.queue_mean_interval95),
        queue_within(queue, from.queue_mean_interval95),
    ];
    let why = match gap(predicted, measured, QUEUE_ERROR * f64::from(from.threads)) {
        Gap::None => None,
        Gap::Above => Some("the times vary less than assumed"),
        Gap::Below => Some("the times vary more than assumed, or threads come together"),
    };
    Some(told(from, "a queue", figures, why.map(str::to_string)))
}

fn told(
    from: &MeasuredLock,
    what: &str,
    [predicted, measured]: [String; 2],
    why: Option<String>,
) -> Sentence {
    let threads = plural(from.threads.into(), "thread");
    match why {
        Some(why) => say::unlike_measured(threads, what, predicted, measured, why),
        None => say::as_measured(threads, what, predicted, measured),
    }
}

/// Place of a predicted interval, relative to the measured one.
enum Gap {
    None,
    Above,
    Below,
}

/// Intervals that are apart by no more than `error` count as overlapping.
fn gap([low, high]: [f64; 2], measured: [f64; 2], error: f64) -> Gap {
    if low > measured[1] + error {
        Gap::Above
    } else if high < measured[0] - error {
        Gap::Below
    } else {
        Gap::None
    }
}

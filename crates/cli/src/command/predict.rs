//! `threadtoll predict`: how many threads are worth having?

use std::process::ExitCode;

use threadtoll_model::simulate::Estimate;
use threadtoll_model::{Change, Row, WhatIf, effort, predict, what_if};
use threadtoll_record::{Document, PredictedChange, PredictedRow, Prediction};
use threadtoll_report::text::{self, Style};

use crate::arguments::Predict;
use crate::console;
use crate::failure::Failure;
use crate::workload::PredictRequest;

/// What is tried out beside what was asked.
const CHANGES: [Change; 5] = [
    Change::HalveHold,
    Change::MoveHalfOut,
    Change::Stripe(2),
    Change::Stripe(4),
    Change::Stripe(8),
];

/// From so many simulated acquisitions on, somebody waits for them and is told.
const WORTH_A_NOTE: u64 = 50_000_000;
/// More are not simulated: nobody waits for them.
const MOST_SIMULATED: u64 = 2_000_000_000;

pub(crate) fn run(arguments: &Predict) -> Result<ExitCode, Failure> {
    let asked = PredictRequest::check(arguments)?;
    let effort = effort(&asked.workload, &asked.threads, asked.options)?;
    if effort > MOST_SIMULATED {
        return Err(Failure::usage("that would be simulated for many minutes")
            .hint("ask for fewer threads, fewer numbers of them, or fewer tasks"));
    }
    if effort > WORTH_A_NOTE {
        console::err(&format!(
            "note: no closed form answers this; up to {} million acquisitions are simulated, some millions a second.",
            effort / 1_000_000
        ));
    }
    let prediction = prediction(asked)?;
    if arguments.json {
        let text = serde_json::to_string(&Document::Prediction(Box::new(prediction)))
            .map_err(|error| Failure::run(error.to_string()))?;
        console::out(&text);
    } else {
        let style = Style { color: true, width: console::width(false) };
        console::out(&text::prediction(&prediction, &style));
    }
    Ok(ExitCode::SUCCESS)
}

fn prediction(asked: PredictRequest) -> Result<Prediction, Failure> {
    let PredictRequest { workload, threads, options, .. } = asked;
    let found = predict(&workload, &threads, options)?;
    let most = threads.iter().copied().max().unwrap_or(1);
    // Without a lock to speak of there is nothing to change about it.
    let changes: &[Change] = if workload.hold.mean_ns() > 0.0 { &CHANGES } else { &[] };
    let what_if = what_if(&workload, most, changes, options)?;
    Ok(Prediction {
        hold_ns: workload.hold.mean_ns(),
        think_ns: workload.think.mean_ns(),
        handoff_ns: asked.handoff_ns,
        cores: workload.cores,
        tasks: options.tasks,
        hold_shape: asked.hold_shape,
        think_shape: asked.think_shape,
        hold_variation: workload.hold.variation(),
        think_variation: workload.think.variation(),
        policy: asked.policy,
        stripes: workload.stripes,
        seed: options.seed,
        knee: found.knee,
        recommended_threads: found.recommended_threads,
        rows: found.rows.iter().map(row).collect(),
        what_if: what_if.iter().map(|answer| change(answer, most)).collect(),
    })
}

fn row(row: &Row) -> PredictedRow {
    let interval = |estimate: fn(&threadtoll_model::simulate::Report) -> Estimate| {
        let estimate = estimate(row.simulated.as_ref()?);
        (estimate.half_width > 0.0)
            .then_some([estimate.value - estimate.half_width, estimate.value + estimate.half_width])
    };
    PredictedRow {
        threads: row.threads,
        model: row.model.name().to_string(),
        why: row.why.to_string(),
        speedup: row.speedup,
        speedup_interval99: interval(|report| report.speedup),
        throughput_per_s: row.throughput_per_s,
        queue_mean: row.queue_mean,
        queue_mean_interval99: interval(|report| report.queue_mean),
        queue_on_entry: row.queue_on_entry,
        wait_share: row.wait_share,
        total_s: row.total_s,
        bound: row.bound,
        amdahl: row.amdahl,
    }
}

fn change(answer: &WhatIf, threads: u32) -> PredictedChange {
    PredictedChange {
        change: answer.change.to_string(),
        threads,
        model: answer.model.name().to_string(),
        throughput_per_s: answer.throughput_per_s,
        speedup: answer.speedup,
        gain: answer.gain,
    }
}

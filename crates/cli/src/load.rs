//! The options for times at which messages are sent.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde::{Serialize, Serializer};
use threadtoll_lab::queue::{ArrivalsChoice, LoadChoice, MAX_RECEIVERS, MAX_SENDERS, Trace};
use threadtoll_record::{Carry, Lose, Scale};

use crate::failure::Failure;
use crate::parse::{bytes, choice, count, counts, duration_ns, list, optional, share};

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// open-loop, for-me: times between messages, uniform or poisson, or a file with a time a line:
    /// 1.5ms since the start, or +250us since the line before [default: poisson]
    #[arg(long, value_name = "ARRIVALS")]
    arrivals: Option<String>,
    /// open-loop, for-me: factor by which the times of an arrivals file are multiplied [default: 1]
    #[arg(long, value_name = "F", allow_hyphen_values = true)]
    scale: Option<String>,
    /// open-loop: messages per second, such as 1000,64000; flood: lines per second; funnel: of all
    /// chatty senders together; for-me: of all senders [default: from 1,000 by factors of 4 until
    /// saturated; flood: 10000; funnel: 200000]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    rate: Option<String>,
    /// burst: messages that are due at the same time [default: 1,8,64,512,4096]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    burst: Option<String>,
    /// burst: times from one burst to the next [default: 10us,100us,1ms]; night-watch: from one
    /// message to the next [default: from 10us by factors of 10 to 1s]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    gap: Option<String>,
    /// depth: messages that the queue holds [default: 1 to 10,000,000 by factors of 10]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    depth: Option<String>,
    /// workers: numbers of receiving threads that share the messages; 1 is always measured, to
    /// compare with [default: 1,2,4,8]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    receivers: Option<String>,
    /// funnel: senders of rare important messages, a thousand per second each; the others are
    /// chatty [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    important: Option<String>,
    /// for-me: messages that may be lost if the queue is full: never any, the newest, which the
    /// queue refuses, or the oldest in it [default: never]
    #[arg(long, value_name = "WHICH")]
    lose: Option<String>,
    /// for-me: most CPU time of all ends, as a share of one CPU, such as 0.2 or 20%; a receiver
    /// that spins takes all of one [default: no limit]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    budget_cpu: Option<String>,
    /// payload: sizes of messages in bytes, of 8,64,512,4KiB,64KiB [default: all]; for-me: one of
    /// these [default: 8]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    payload: Option<String>,
    /// payload: ways to carry messages: moved by value, or in-place (written and read in the
    /// queue's slots, where it can) [default: both]
    #[arg(long, value_name = "LIST")]
    carry: Option<String>,
}

/// Validated options. A plan keeps them by field name.
#[derive(Debug, Serialize)]
pub(crate) struct LoadRequest {
    #[serde(serialize_with = "as_given")]
    arrivals: Option<ArrivalsChoice>,
    scale: Option<Scale>,
    rate: Option<Vec<u64>>,
    burst: Option<Vec<u64>>,
    gap_ns: Option<Vec<u64>>,
    depth: Option<Vec<u64>>,
    receivers: Option<Vec<u64>>,
    important: Option<u64>,
    lose: Option<Lose>,
    budget_cpu: Option<f64>,
    payload_bytes: Option<Vec<u64>>,
    carry: Option<Vec<Carry>>,
}

fn as_given<S: Serializer>(
    arrivals: &Option<ArrivalsChoice>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = arrivals.as_ref().map(|arrivals| match arrivals {
        ArrivalsChoice::Uniform => "uniform",
        ArrivalsChoice::Poisson => "poisson",
        ArrivalsChoice::File(trace) => trace.file.as_str(),
    });
    text.serialize(serializer)
}

impl LoadArgs {
    pub(crate) fn check(&self) -> Result<LoadRequest, Failure> {
        let numbers = |option: &'static str| move |text: &str| counts(option, text, u64::MAX);
        Ok(LoadRequest {
            arrivals: optional(&self.arrivals, arrivals)?,
            scale: optional(&self.scale, scale)?,
            rate: optional(&self.rate, numbers("--rate"))?,
            burst: optional(&self.burst, numbers("--burst"))?,
            gap_ns: optional(&self.gap, |text| {
                list("--gap", text, "time", |part| duration_ns("--gap", part))
            })?,
            depth: optional(&self.depth, numbers("--depth"))?,
            receivers: optional(&self.receivers, |text| {
                counts("--receivers", text, MAX_RECEIVERS)
            })?,
            important: optional(&self.important, |text| {
                count("--important", text, 1, u64::from(MAX_SENDERS))
            })?,
            lose: optional(&self.lose, lose)?,
            budget_cpu: optional(&self.budget_cpu, budget_cpu)?,
            payload_bytes: optional(&self.payload, |text| {
                list("--payload", text, "size", |part| bytes("--payload", part))
            })?,
            carry: optional(&self.carry, |text| {
                list("--carry", text, "way", |part| {
                    choice("--carry", part, &Carry::ALL.map(|carry| (carry.name(), carry)))
                })
            })?,
        })
    }
}

impl LoadRequest {
    pub(crate) fn choice(&self) -> LoadChoice {
        LoadChoice {
            arrivals: self.arrivals.clone(),
            scale: self.scale,
            rates: self.rate.clone(),
            bursts: self.burst.clone(),
            gaps_ns: self.gap_ns.clone(),
            depths: self.depth.clone(),
            receivers: self.receivers.clone(),
            important: self.important,
            lose: self.lose,
            budget_cpu: self.budget_cpu,
            payloads: self.payload_bytes.clone(),
            carries: self.carry.clone(),
        }
    }
}

fn arrivals(text: &str) -> Result<ArrivalsChoice, Failure> {
    match text {
        "uniform" => return Ok(ArrivalsChoice::Uniform),
        "poisson" => return Ok(ArrivalsChoice::Poisson),
        _ => {}
    }
    // A run may be resumed from another folder.
    let path = Path::new(text).canonicalize().map_err(|error| {
        Failure::usage(format!("--arrivals {text}: {error}"))
            .hint("use uniform, poisson, or a file with a time a line")
    })?;
    let trace: Arc<Trace> = Trace::read(&path).map_err(|why| {
        Failure::usage(format!("--arrivals: {why}"))
            .hint("write a time a line: 1.5ms since the start, or +250us since the line before")
    })?;
    Ok(ArrivalsChoice::File(trace))
}

fn scale(text: &str) -> Result<Scale, Failure> {
    let factor = text.parse::<f64>().ok().and_then(Scale::new);
    factor.ok_or_else(|| {
        Failure::usage(format!("--scale {text}: not a factor from 0.000001 to 1,000,000"))
            .hint("0.5 doubles the rate, 2 halves it")
    })
}

fn lose(text: &str) -> Result<Lose, Failure> {
    let all = [Lose::Never, Lose::Newest, Lose::Oldest];
    all.into_iter().find(|lose| lose.name() == text).ok_or_else(|| {
        Failure::usage(format!("--lose {text}: not one of never, newest and oldest"))
            .hint("newest: the queue refuses messages; oldest: it drops those that wait longest")
    })
}

fn budget_cpu(text: &str) -> Result<f64, Failure> {
    share(text).filter(|share| *share > 0.0 && share.is_finite()).ok_or_else(|| {
        Failure::usage(format!("--budget-cpu {text}: not a share of a CPU above 0"))
            .hint("0.2 or 20% is a fifth of one CPU, 2 is two CPUs")
    })
}

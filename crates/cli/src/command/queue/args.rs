use std::path::Path;

use clap::Args;
use serde::{Serialize, Serializer};
use threadtoll_lab::queue::{
    ArrivalsChoice, MAX_CAPACITY, MAX_RATE, MAX_SENDERS, MESSAGE_BYTES, Overrides, Trace, burst,
    open_loop,
};
use threadtoll_record::Scale;

use crate::failure::Failure;
use crate::measure::SamplesArgs;
use crate::parse::{List, Reader, bytes, counts, durations_ns, list, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct CapacityArgs {
    /// Capacities of bounded queues in messages, such as 64,1024; a queue may round down [default:
    /// as many as fit into 256 KiB; ask-reply: 1024]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_CAPACITY))]
    #[arg(allow_hyphen_values = true)]
    pub(super) capacity: Option<List<u64>>,
}

impl CapacityArgs {
    pub(super) fn overrides(&self) -> Overrides {
        Overrides { capacities: self.capacity.clone(), ..Overrides::default() }
    }
}

/// Options of scenarios that record the time of each message.
#[derive(Debug, Args, Serialize)]
pub(super) struct StampedArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) capacity: CapacityArgs,
    #[command(flatten)]
    #[serde(flatten)]
    samples: SamplesArgs,
}

impl StampedArgs {
    pub(super) fn overrides(&self) -> Overrides {
        Overrides { samples: self.samples.samples, ..self.capacity.overrides() }
    }
}

#[derive(Debug, Args, Serialize)]
pub(super) struct ArrivalsArgs {
    /// Times between messages: uniform, poisson, or a file with one time per line: since the start
    /// (1.5ms) or since the previous line (+250us) [default: poisson]
    #[arg(long, value_name = "ARRIVALS", value_parser = Reader(arrivals))]
    #[serde(serialize_with = "as_given")]
    pub(super) arrivals: Option<ArrivalsChoice>,
    /// Factor by which the times of an arrivals file are multiplied [default: 1]
    #[arg(long, value_name = "F", value_parser = Reader(scale), allow_hyphen_values = true)]
    pub(super) scale: Option<Scale>,
    /// Messages per second, of all senders together, such as 1000,64000 [default of open-loop: from
    /// 1,000 by factors of 4 until saturated]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_RATE), allow_hyphen_values = true)]
    pub(super) rate: Option<List<u64>>,
}

impl ArrivalsArgs {
    pub(super) fn is_file(&self) -> bool {
        matches!(self.arrivals, Some(ArrivalsChoice::File(_)))
    }

    /// Checks that the arrivals can be measured in the time per cell.
    pub(super) fn check(&self, time_ns: Option<u64>) -> Result<(), Failure> {
        if self.scale.is_some() && !self.is_file() {
            return Err(Failure::usage("--scale applies to a file of arrivals, and none is given")
                .hint("use --rate, or --arrivals FILE"));
        }
        if self.rate.is_some() && self.is_file() {
            return Err(Failure::usage(
                "--rate does not apply to arrivals from a file, which has its own rate",
            )
            .hint("use --scale: 0.5 doubles the rate"));
        }
        match &self.arrivals {
            Some(ArrivalsChoice::File(trace)) => {
                Ok(open_loop::check(trace, self.scale.unwrap_or(Scale::ONE), time_ns)?)
            }
            _ => Ok(()),
        }
    }
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

fn arrivals(option: &str, text: &str) -> Result<ArrivalsChoice, Failure> {
    match text {
        "uniform" => return Ok(ArrivalsChoice::Uniform),
        "poisson" => return Ok(ArrivalsChoice::Poisson),
        _ => {}
    }
    // The path is absolute, because a run may be resumed from another folder.
    let path = Path::new(text).canonicalize().map_err(|error| {
        Failure::usage(format!("{option} {text}: {error}"))
            .hint("use uniform, poisson, or a file with one time per line")
    })?;
    let trace = Trace::read(&path).map_err(|why| {
        Failure::usage(format!("{option}: {why}")).hint(
            "write one time per line: since the start (1.5ms), or since the line before (+250us)",
        )
    })?;
    Ok(ArrivalsChoice::File(trace))
}

fn scale(option: &str, text: &str) -> Result<Scale, Failure> {
    let factor = text.parse::<f64>().ok().and_then(Scale::new);
    factor.ok_or_else(|| {
        Failure::usage(format!("{option} {text}: not a factor from 0.000001 to 1,000,000"))
            .hint("0.5 doubles the rate, 2 halves it")
    })
}

pub(super) fn senders(option: &str, text: &str) -> Result<Vec<u32>, Failure> {
    let senders = counts(option, text, u64::from(MAX_SENDERS))?;
    Ok(senders.into_iter().map(|senders| senders as u32).collect())
}

pub(super) fn gaps(option: &str, text: &str) -> Result<Vec<u64>, Failure> {
    durations_ns(option, text, burst::MAX_GAP_NS)
}

pub(super) fn sizes(option: &str, text: &str) -> Result<Vec<u64>, Failure> {
    list(option, text, "size", |part| match bytes(option, part)? {
        size if MESSAGE_BYTES.contains(&size) => Ok(size),
        size => Err(Failure::usage(format!(
            "{option} {size}: messages have 8, 64, 512, 4096 or 65536 bytes"
        ))
        .hint("use one of these sizes")),
    })
}

use clap::Args;
use serde::Serialize;
use threadtoll_lab::contention::{Load, overload};
use threadtoll_record::{Scale, Work, duration};

use super::ScenarioOptions;
use crate::failure::Failure;
use crate::parse::{List, Reader, count, duration_ns, durations_ns, list, share};

/// Maximum deadline: an hour.
const MAX_DEADLINE_NS: u64 = 3_600_000_000_000;

#[derive(Debug, Args, Serialize)]
pub(super) struct Overload {
    /// Rates of arrival in the overload, as multiples of what the lock can serve (one caller per
    /// hold time), such as 0.5,2 or 150% [default: 0.5,1,1.5,2,3]
    #[arg(long, value_name = "LIST", value_parser = Reader(rates), allow_hyphen_values = true)]
    arrivals: Option<List<Scale>>,
    /// Numbers of callers that may wait; any further one is refused. Callers
    /// who wait without a bound, and callers who give up, are always measured as well [default: 8]
    #[arg(long, value_name = "LIST", value_parser = Reader(bounds), allow_hyphen_values = true)]
    bound: Option<List<u32>>,
    /// Times after its arrival within which a caller must get the lock [default: ten hold times]
    #[arg(long = "deadline", value_name = "LIST", value_parser = Reader(deadlines))]
    #[arg(allow_hyphen_values = true)]
    deadline_ns: Option<List<u64>>,
    /// Hold time of the lock (250us, 5ms) [default: 5ms; with --work spin 1ms]
    #[arg(long = "hold", value_name = "D", value_parser = Reader(hold))]
    #[arg(allow_hyphen_values = true)]
    hold_ns: Option<u64>,
}

impl ScenarioOptions for Overload {
    fn loads(&self, work: Option<Work>) -> Result<Vec<Load>, Failure> {
        let works = work.map_or_else(|| vec![Work::Sleep, Work::Spin], |work| vec![work]);
        let longest_ns = works.into_iter().map(overload::hold_ns_of).max().unwrap_or(0);
        let hold_ns = self.hold_ns.unwrap_or(longest_ns);
        let shortest = self.deadline_ns.iter().flatten().min();
        if let Some(deadline_ns) = shortest.filter(|deadline_ns| **deadline_ns < hold_ns) {
            return Err(Failure::usage(format!(
                "--deadline {} is shorter than the hold time, {}",
                duration(*deadline_ns),
                duration(hold_ns)
            ))
            .hint("give a longer --deadline or a shorter --hold"));
        }
        Ok(overload::loads(
            work,
            self.hold_ns,
            self.arrivals.as_deref(),
            self.bound.as_deref(),
            self.deadline_ns.as_deref(),
        ))
    }
}

fn rates(option: &str, text: &str) -> Result<Vec<Scale>, Failure> {
    let bad = |part: &str, why: &str| {
        Failure::usage(format!("{option} {text}: “{part}” {why}"))
            .hint("write multiples of what the lock can serve, such as 0.5,2 or 150%")
    };
    list(option, text, "rate", |part| match share(part) {
        None => Err(bad(part, "is not a number")),
        Some(rate) if rate < 0.0 => Err(bad(part, "is negative")),
        Some(rate) if rate > overload::MAX_ARRIVALS => {
            Err(bad(part, &format!("is more than {} times the capacity", overload::MAX_ARRIVALS)))
        }
        Some(rate) => Scale::new(rate)
            .filter(|scale| scale.value() >= MIN_ARRIVALS)
            .ok_or_else(|| bad(part, &format!("is less than {MIN_ARRIVALS} times the capacity"))),
    })
}

/// At lower rates, hardly anybody arrives during an overload.
const MIN_ARRIVALS: f64 = 0.1;

fn bounds(option: &str, text: &str) -> Result<Vec<u32>, Failure> {
    // At most `MAX_BOUND`, so it fits into a `u32`.
    let bound = |part: &str| count(option, part, 0, overload::MAX_BOUND.into());
    list(option, text, "bound", |part| bound(part).map(|bound| bound as u32))
}

fn deadlines(option: &str, text: &str) -> Result<Vec<u64>, Failure> {
    durations_ns(option, text, MAX_DEADLINE_NS)
}

fn hold(option: &str, text: &str) -> Result<u64, Failure> {
    let hold_ns = duration_ns(option, text)?;
    let [shortest, longest] = overload::HOLDS_NS;
    let why = if hold_ns < shortest {
        format!(
            "it must be at least {}, because a thread takes long to notice a caller",
            duration(shortest)
        )
    } else if hold_ns > longest {
        format!(
            "it must be at most {}, because a block lasts for hundreds of holds",
            duration(longest)
        )
    } else {
        return Ok(hold_ns);
    };
    Err(Failure::usage(format!("{option} {text}: {why}")).hint("try --hold 5ms"))
}

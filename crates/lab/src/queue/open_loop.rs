//! `open-loop`: messages are sent when they are due, even if the receiver does not keep up.
//! Delivery times are measured from the due times.

use threadtoll_record::{Arrivals, Budget, Kind, Load, Scale};

use super::arrivals::{LEAST, MAX_MESSAGES, MAX_RATE, Trace};
use super::paced;
use super::{
    ArrivalsChoice, Channel, DEFAULT, Loops, Overrides, Program, QUEUE_ROUNDS, Scenario,
    Unsuitable, Usage, only, rounds, within,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "open-loop",
    sentence: "latency under load: messages sent at given times and rates, up to saturation",
    kind: Kind::OpenLoop,
    loads: || loads(None, None, None),
    has_load,
    budget,
    wake_up: Some("futex"),
    ..DEFAULT
};

/// Default rates, in messages per second. The highest is more than any queue transfers one by one.
const RATES: [u64; 9] =
    [1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000, 4_096_000, 16_384_000, 65_536_000];
const BLOCK_NS: f64 = 25e6;
/// Minimum number of messages in a block at low rates, unless the block would exceed
/// `LONG_BLOCK_NS`.
const MESSAGES: f64 = 100.0;
/// Maximum length of a block, unless two gaps between messages take longer.
const LONG_BLOCK_NS: f64 = 250e6;

fn rate(load: &Load) -> f64 {
    let of_file = || {
        let trace = Trace::of(load).ok()?;
        Some(trace.rate(load.scale.unwrap_or(Scale::ONE)))
    };
    let of_gap = || load.gap_ns.map(|gap| 1e9 / gap.as_f64().max(1.0));
    load.rate_per_s.map(|rate| rate.as_f64()).or_else(of_gap).or_else(of_file).unwrap_or(1.0)
}

/// Returns the length of a block, which is longer at low rates so that the block has enough
/// messages. Unless the arrivals are from a file, a block is at least two gaps between messages
/// long.
fn block_ns(rate: f64, of_file: bool) -> f64 {
    let gap_ns = 1e9 / rate;
    let usual_ns = (MESSAGES * gap_ns).clamp(BLOCK_NS, LONG_BLOCK_NS);
    if of_file { usual_ns } else { usual_ns.max(2.0 * gap_ns) }
}

pub(super) fn budget(overrides: &Overrides, load: &Load) -> Budget {
    budget_of_blocks(overrides, load, block_ns(rate(load), load.arrivals == Some(Arrivals::File)))
}

/// Returns the budget for blocks that normally last `usual_ns`.
pub(super) fn budget_of_blocks(overrides: &Overrides, load: &Load, usual_ns: f64) -> Budget {
    let rate = rate(load);
    // A block has at least `LEAST` messages, however short the requested time is.
    let least_ns = LEAST as f64 * 1e9 / rate;
    let usual_ns = usual_ns.max(least_ns);
    let most_ns = MAX_MESSAGES as f64 * 1e9 / rate;
    let of_samples = overrides.samples.map(|samples| samples as f64 * 1e9 / rate);
    let asked_ns = of_samples.or(overrides.time_ns.map(|ns| ns as f64));
    let whole_ns = asked_ns.unwrap_or(usual_ns * f64::from(QUEUE_ROUNDS));
    let block_ns =
        (whole_ns / f64::from(QUEUE_ROUNDS)).min(usual_ns).min(most_ns).max(least_ns).max(1.0);
    let rounds = if asked_ns.is_some() { rounds(whole_ns / block_ns) } else { QUEUE_ROUNDS };
    Budget { rounds, stretch_ns: 0, stamped_ns: block_ns as u64, stamped_count: None }
}

/// Rejects arrivals from a file if they cannot be measured within the measuring time of a cell.
///
/// # Errors
///
/// Returns an error if a gap is too long, or if too many messages are due at the same time.
pub fn check(trace: &Trace, scale: Scale, time_ns: Option<u64>) -> Result<(), Unsuitable> {
    let longest_ns = trace.longest_ns(scale);
    let run_ns = time_ns.map_or_else(
        || block_ns(trace.rate(scale), true) * f64::from(QUEUE_ROUNDS),
        |ns| ns as f64,
    );
    if longest_ns > run_ns {
        let why = format!(
            "{} has a gap of {:.3} s, but each row is measured for only {:.3} s",
            trace.file,
            longest_ns / 1e9,
            run_ns / 1e9
        );
        return Err(Unsuitable { why, hint: "use a longer --time or a smaller --scale" });
    }
    if trace.rate(scale) > MAX_RATE as f64 {
        let why = format!(
            "{} has {:.0} arrivals per second, but clocks can time at most {MAX_RATE}",
            trace.file,
            trace.rate(scale)
        );
        return Err(Unsuitable { why, hint: "use a larger --scale" });
    }
    if trace.most_at_once() > MAX_MESSAGES / 2 {
        let why = format!(
            "{} has too many arrivals at the same time ({})",
            trace.file,
            trace.most_at_once()
        );
        return Err(Unsuitable { why, hint: "use `threadtoll queue burst`, or other arrivals" });
    }
    Ok(())
}

/// Returns loads with these arrivals; `None` takes the defaults. If the arrivals are from a file,
/// its times are multiplied by `scale`. For other arrivals, `rates` are in messages per second.
pub fn loads(
    arrivals: Option<&ArrivalsChoice>,
    scale: Option<Scale>,
    rates: Option<&[u64]>,
) -> Vec<Load> {
    let arrivals = match arrivals {
        Some(ArrivalsChoice::File(trace)) => return vec![trace.load(scale.unwrap_or(Scale::ONE))],
        Some(ArrivalsChoice::Uniform) => Arrivals::Uniform,
        Some(ArrivalsChoice::Poisson) | None => Arrivals::Poisson,
    };
    let load = |rate: &u64| Load {
        arrivals: Some(arrivals),
        rate_per_s: Some((*rate).into()),
        ..Load::NONE
    };
    rates.unwrap_or(&RATES).iter().map(load).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let Load { arrivals, rate_per_s, .. } = load;
    match arrivals {
        Some(Arrivals::File) => {
            let trace = Trace::of(load)?;
            let scale = load.scale.ok_or("the arrivals have no scale")?;
            let usable =
                trace.rate(scale) <= MAX_RATE as f64 && trace.most_at_once() <= MAX_MESSAGES / 2;
            only(&trace.load(scale), usable, load, "its arrivals are out of range")
        }
        Some(arrivals) => {
            let plain = Load { arrivals: Some(*arrivals), rate_per_s: *rate_per_s, ..Load::NONE };
            only(&plain, within(*rate_per_s, MAX_RATE), load, "its rate is out of range")
        }
        None => Err("the plan does not say when messages are due".into()),
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        paced::program(channel, usage)
    }
}

use clap::Args;
use serde::Serialize;
use threadtoll_record::{Share, Work};

use crate::failure::Failure;
use crate::parse::{List, Reader, count, list, share};

const MAX_RATE: u64 = 100_000_000;
/// Maximum acquisitions per second of a thread with `--work sleep`, because a sleep takes at least
/// about 100 µs.
const MAX_ASLEEP_PER_S: f64 = 10_000.0;

#[derive(Debug, Args, Serialize)]
pub(super) struct ReadShareArgs {
    /// Shares of acquisitions that only read, for locks with readers [default: 0,0.9]
    #[arg(long, value_name = "LIST", value_parser = Reader(shares), allow_hyphen_values = true)]
    pub(super) read_share: Option<List<Share>>,
}

/// Options of scenarios in which threads hold the lock for given shares of their time.
#[derive(Debug, Args, Serialize)]
pub(super) struct SweepArgs {
    /// Shares of its time for which a thread would hold the lock if it never waited, such as
    /// 0.05,50% [default: hold-sweep: 0 to 1; frequency-sweep: 0.1]
    #[arg(long, value_name = "LIST", value_parser = Reader(shares), allow_hyphen_values = true)]
    pub(super) hold_share: Option<List<Share>>,
    /// Acquisitions per second of a thread that never waits [default: hold-sweep: 15000, with
    /// --work sleep 100; frequency-sweep: several rates]
    #[arg(long, value_name = "PER_SECOND", value_parser = Reader(rate))]
    #[arg(allow_hyphen_values = true)]
    rate: Option<f64>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) reads: ReadShareArgs,
}

impl SweepArgs {
    pub(super) fn rate(&self, work: Option<Work>) -> Result<Option<f64>, Failure> {
        match self.rate {
            Some(rate) if work == Some(Work::Sleep) && rate > MAX_ASLEEP_PER_S => {
                Err(Failure::usage(format!(
                    "--rate {rate} is too high for --work sleep: sleeps are not that short"
                ))
                .hint(format!("use at most {MAX_ASLEEP_PER_S}, or --work spin")))
            }
            rate => Ok(rate),
        }
    }
}

fn rate(option: &str, text: &str) -> Result<f64, Failure> {
    Ok(count(option, text, 1, MAX_RATE)? as f64)
}

fn shares(option: &str, text: &str) -> Result<Vec<Share>, Failure> {
    list(option, text, "share", |part| {
        let value = share(part);
        value.and_then(Share::new).ok_or_else(|| {
            let why = if value.is_some() { "is not a share" } else { "is not a number" };
            Failure::usage(format!("{option} {text}: “{part}” {why}"))
                .hint("write a share from 0 to 1, or from 0% to 100%")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_and_percentages() {
        let of = |text| {
            shares("--hold-share", text)
                .map(|all| all.into_iter().map(Share::value).collect::<Vec<_>>())
                .map_err(drop)
        };
        assert_eq!(of("0,0.05, 50%,1").unwrap(), [0.0, 0.05, 0.5, 1.0]);
        for text in ["", "-0.1", "-10%", "50", "101%", "a", "0.5,50%", "NaN", "1e-1", "%", "0,,1"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}

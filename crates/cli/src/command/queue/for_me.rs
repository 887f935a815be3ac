use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::wants;
use threadtoll_lab::queue::{Overrides, Queue, for_me};
use threadtoll_record::Lose;

use super::args::{ArrivalsArgs, StampedArgs, senders, sizes};
use super::{Request, ScenarioOptions};
use crate::failure::Failure;
use crate::parse::{List, Reader, share};
use crate::registry::registry;

#[derive(Debug, Args, Serialize)]
pub(super) struct ForMe {
    #[command(flatten)]
    #[serde(flatten)]
    arrivals: ArrivalsArgs,
    /// Messages that may be lost if the queue is full: never (none), newest (the queue refuses
    /// them) or oldest (the queue drops them) [default: never]
    #[arg(long, value_name = "WHICH", value_parser = Reader(lose))]
    lose: Option<Lose>,
    /// Maximum CPU time of all sending and receiving threads, as a share of one CPU, such as 0.2 or
    /// 20%; a spinning receiver takes a whole CPU [default: no limit]
    #[arg(long, value_name = "SHARE", value_parser = Reader(budget_cpu))]
    #[arg(allow_hyphen_values = true)]
    budget_cpu: Option<f64>,
    /// Message sizes in bytes, chosen from 8,64,512,4KiB,64KiB [default: 8]
    #[arg(long = "payload", value_name = "LIST", value_parser = Reader(sizes))]
    #[arg(allow_hyphen_values = true)]
    payload_bytes: Option<List<u64>>,
    /// Numbers of sending threads, such as 1,2,4 [default: 1]
    #[arg(long, value_name = "LIST", value_parser = Reader(senders), allow_hyphen_values = true)]
    senders: Option<List<u32>>,
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

fn lose(option: &str, text: &str) -> Result<Lose, Failure> {
    let all = [Lose::Never, Lose::Newest, Lose::Oldest];
    all.into_iter().find(|lose| lose.name() == text).ok_or_else(|| {
        Failure::usage(format!("{option} {text}: not one of never, newest and oldest")).hint(
            "newest: a full queue refuses new messages; oldest: it drops those that waited longest",
        )
    })
}

fn budget_cpu(option: &str, text: &str) -> Result<f64, Failure> {
    share(text).filter(|share| *share > 0.0 && share.is_finite()).ok_or_else(|| {
        Failure::usage(format!("{option} {text}: not a positive share of a CPU"))
            .hint("0.2 or 20% is a fifth of one CPU, 2 is two CPUs")
    })
}

impl ScenarioOptions for ForMe {
    fn overrides(&self, time_ns: Option<u64>) -> Result<Overrides, Failure> {
        let ArrivalsArgs { arrivals, scale, rate } = &self.arrivals;
        let (arrivals, rates) = (arrivals.as_ref(), rate.as_deref());
        if arrivals.is_none() && rates.is_none() {
            return Err(Failure::usage("for-me has no default traffic: give --rate or --arrivals")
                .hint("such as --rate 50000 for 50,000 messages per second, or --arrivals FILE"));
        }
        self.arrivals.check(time_ns)?;
        if self.stamped.capacity.capacity.as_ref().is_some_and(|all| all.len() > 1) {
            return Err(Failure::usage(
                "for-me recommends a queue for one capacity, but --capacity has several",
            )
            .hint("run it once for each"));
        }
        for_me::check(arrivals, *scale, rates, self.payload_bytes.as_deref())?;
        Ok(Overrides {
            loads: Some(for_me::loads(arrivals, *scale, rates, self.lose)),
            payloads: self.payload_bytes.clone(),
            senders: self.senders.clone(),
            ..self.stamped.overrides()
        })
    }

    /// Rejects a `--lose` that none of the queues supports.
    fn check_queues(&self, Request { queues, wait, .. }: &Request) -> Result<(), Failure> {
        let Some(lose) = self.lose.filter(|lose| *lose != Lose::Never) else { return Ok(()) };
        let offers = |queue: &Queue| {
            let mut ways = queue.ways.iter().filter(|way| wants(wait, queue, way));
            ways.any(|way| for_me::SCENARIO.loses(queue, way, lose))
        };
        let any = match queues.as_slice() {
            [] => registry().queues.all().any(offers),
            named => named.iter().any(|queue| offers(queue)),
        };
        if any {
            return Ok(());
        }
        let what = match lose {
            Lose::Newest => "refuse messages",
            Lose::Never | Lose::Oldest => "drop the oldest message",
        };
        Err(Failure::refused(format!("--lose {}: none of the queues can {what}", lose.name()))
            .hint("name others, or omit --lose"))
    }
}

//! `threadtoll queue`: queues between threads, in scenarios.

use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::{CpuSelection, Planned, QueueChoice, queue, wants};
use threadtoll_lab::queue::{
    LoadChoice, MAX_BATCH, MAX_CAPACITY, MAX_SENDERS, Overrides, Queue as KnownQueue, SCENARIOS,
    Scenario, Way,
};
use threadtoll_record::{Carry, Lose, Origin, Placement, Wait};

use crate::failure::Failure;
use crate::load::{LoadArgs, LoadRequest};
use crate::measure::{MeasureArgs, MeasureCommand, MeasureRequest, PROCESSES, REPEAT_NS};
use crate::nearest::unknown;
use crate::neighbour::{Beside, NeighboursArgs};
use crate::parse::{choices, count, counts, names, optional};
use crate::peers::PeersArgs;
use crate::registry::registry;
use crate::scenario::ScenarioArgs;
use crate::{by_name, console};

/// Measure latency and throughput of queues between threads
#[derive(Debug, Args)]
pub(crate) struct Queue {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Queues to measure, as named by `threadtoll list queues` and `threadtoll list peers`
    /// [default: all]
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Wait strategies of the receiver: spin (also runs the peers' poll and poll-backoff),
    /// spin-yield, park or adaptive (both also run block); for peers only: poll, poll-backoff,
    /// block [repeatable; default: all]
    #[arg(long, value_name = "WAIT")]
    wait: Vec<String>,
    /// stream: largest batch, 1 for one message at a time [default: one at a time and 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    batch: Option<String>,
    /// stream, funnel, for-me: numbers of sending threads, such as 1,2,4 [default: 1; funnel: up to
    /// twice the CPUs]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    senders: Option<String>,
    /// Capacities of bounded queues in messages, such as 64,1024; a queue may round down [default:
    /// as many as fit into 256 KiB; ask-reply: 1024]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    capacity: Option<String>,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    neighbour: NeighboursArgs,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// `None` only if a run is resumed.
    #[serde(serialize_with = "by_name::one")]
    scenario: Option<&'static Scenario>,
    #[serde(serialize_with = "by_name::list")]
    queues: Vec<&'static KnownQueue>,
    wait: Vec<Wait>,
    batch: Option<u64>,
    senders: Option<Vec<u64>>,
    capacity: Option<Vec<u64>>,
    #[serde(flatten)]
    load: LoadRequest,
    neighbour: Option<Vec<Beside>>,
}

impl MeasureCommand for Queue {
    const NAME: &'static str = "queue";
    const NOTHING_LEFT: &'static str = "try other queues, wait strategies or placements: \
         `threadtoll list peers`, --wait, --placement";
    type Request = Request;

    fn measure_args(&self) -> &MeasureArgs {
        &self.measure
    }

    fn peers(&self) -> Option<&PeersArgs> {
        Some(&self.peers)
    }

    fn check(&self, common: &MeasureRequest) -> Result<Request, Failure> {
        let resumed = self.measure.resume.is_some();
        let is_queue = |name: &str| registry().queues.find(name).is_some();
        let scenario = self.scenario.check(Self::NAME, SCENARIOS, resumed, "queue", is_queue)?;
        let mut request = Request {
            scenario,
            queues: names(&self.queues, "queue", find_queue)?,
            wait: choices(
                "--wait",
                &self.wait,
                "wait",
                &Wait::ALL.map(|wait| (wait.name(), wait)),
            )?,
            batch: optional(&self.batch, |text| count("--batch", text, 1, MAX_BATCH))?,
            senders: optional(&self.senders, |text| {
                counts("--senders", text, u64::from(MAX_SENDERS))
            })?,
            capacity: optional(&self.capacity, |text| counts("--capacity", text, MAX_CAPACITY))?,
            load: self.load.check()?,
            neighbour: self.neighbour.check()?,
        };
        if let Some(scenario) = scenario {
            let left_out = request.leave_out(scenario)?;
            request.validate(scenario, common)?;
            // The plan of a resumed run may have another scenario.
            if !self.measure.quiet && !resumed {
                for (name, why) in left_out {
                    console::note(&format!("left out: {name} ({why})."));
                }
            }
        }
        Ok(request)
    }

    fn processes(_: &Request) -> u32 {
        PROCESSES
    }

    fn repeat_ns(request: &Request, common: &MeasureRequest) -> Option<u64> {
        request.is_default(common).then_some(REPEAT_NS)
    }

    fn until_saturated(request: &Request) -> bool {
        request.scenario.is_some_and(|scenario| scenario.until_saturated(&request.load.choice()))
    }

    fn plan(request: &Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned {
        let Some(scenario) = request.scenario else { return Planned::default() };
        let choice = QueueChoice {
            queues: match request.queues.as_slice() {
                [] => registry().queues.all().collect(),
                named => named.to_vec(),
            },
            placements: common.placements_or(&[Placement::Pinned]),
            waits: request.wait.clone(),
            neighbours: match &request.neighbour {
                None => vec![None],
                Some(all) => all.iter().map(|Beside(neighbour)| *neighbour).collect(),
            },
            overrides: request.overrides(common),
        };
        queue(site, scenario, registry(), &choice)
    }
}

impl Request {
    /// Returns `true` if it measures everything that the scenario has, for its own time.
    fn is_default(&self, common: &MeasureRequest) -> bool {
        let Request { scenario: _, queues, wait, batch, senders, capacity, load, neighbour } = self;
        queues.is_empty()
            && wait.is_empty()
            && batch.is_none()
            && senders.is_none()
            && capacity.is_none()
            && load.choice() == LoadChoice::default()
            && neighbour.is_none()
            && common.time_ns.is_none()
            && common.samples.is_none()
    }

    fn overrides(&self, common: &MeasureRequest) -> Overrides {
        let senders = self.senders.as_ref();
        Overrides {
            batch: self.batch,
            senders: senders.map(|all| all.iter().map(|senders| *senders as u32).collect()),
            capacities: self.capacity.clone(),
            time_ns: common.time_ns,
            samples: common.samples,
            load: self.load.choice(),
        }
    }

    /// Leaves out queues that have no row for `--wait`, each with the reason, and names those that
    /// cannot take part where none was named.
    fn leave_out(&mut self, scenario: &Scenario) -> Result<Vec<(String, String)>, Failure> {
        if self.queues.is_empty() {
            return Ok(self.cannot(scenario, registry().queues.all().collect()));
        }
        let waits = &self.wait;
        let lacks = |queue: &&'static KnownQueue| {
            let mut ways = ways(queue, scenario).peekable();
            ways.peek().is_some() && !ways.any(|way| wants(waits, queue, way))
        };
        let (lacking, left): (Vec<&'static KnownQueue>, Vec<_>) =
            self.queues.iter().copied().partition(lacks);
        let asked: Vec<String> = waits.iter().map(|wait| format!("--wait {wait}")).collect();
        let why = |queue: &'static KnownQueue| {
            let has: Vec<&str> = ways(queue, scenario).map(|way| way.wait.name()).collect();
            format!("{} does not apply; it has {}", asked.join(" "), has.join(", "))
        };
        if let ([first, ..], []) = (lacking.as_slice(), left.as_slice()) {
            let names: Vec<&str> = lacking.iter().map(|queue| queue.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "no queue is left of {}: {}",
                names.join(", "),
                why(first)
            ))
            .hint("omit --wait, or give another"));
        }
        self.queues = left;
        let lacking = lacking.into_iter().map(|queue| (queue.name.clone(), why(queue)));
        // One that cannot run the scenario at all is an error.
        let able = self.queues.iter().copied();
        let able = able.filter(|queue| ways(queue, scenario).next().is_some()).collect();
        Ok(lacking.chain(self.cannot(scenario, able)).collect())
    }

    /// The queues that have no row in the scenario, those that have none with several senders, and
    /// those that cannot carry messages in a requested way.
    fn cannot(
        &self,
        scenario: &Scenario,
        queues: Vec<&'static KnownQueue>,
    ) -> Vec<(String, String)> {
        let (able, unable): (Vec<&'static KnownQueue>, Vec<_>) =
            queues.into_iter().partition(|queue| ways(queue, scenario).next().is_some());
        let several = match &self.senders {
            Some(senders) => senders.iter().any(|senders| *senders > 1),
            None => scenario.has_several_senders(),
        };
        let lone = able
            .iter()
            .copied()
            .filter(|queue| several && !ways(queue, scenario).any(|way| way.many_senders));
        let names = |queues: Vec<&KnownQueue>| -> String {
            queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let unable = (names(unable), format!("cannot run {}", scenario.name));
        let lone = (names(lone.collect()), "with several senders: only one may send".to_string());
        let asked = self.load.choice().carries.unwrap_or_else(|| Carry::ALL.to_vec());
        let in_place = scenario.has_carries() && asked.contains(&Carry::InPlace);
        let lacking = able
            .iter()
            .copied()
            .filter(|queue| in_place && !scenario.carries(queue, Carry::InPlace));
        let lacking = (names(lacking.collect()), "in place: they lend no slots".to_string());
        let all = [unable, lone, lacking].into_iter();
        all.filter(|(names, _)| !names.is_empty()).collect()
    }

    fn validate(&self, scenario: &Scenario, common: &MeasureRequest) -> Result<(), Failure> {
        scenario
            .check(&self.overrides(common))
            .map_err(|unsuitable| Failure::usage(unsuitable.why).hint(unsuitable.hint))?;
        if self.capacity.is_some()
            && !self.queues.is_empty()
            && self.queues.iter().all(|queue| queue.slots().is_none())
        {
            let names: Vec<&str> = self.queues.iter().map(|queue| queue.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--capacity does not apply to {}",
                names.join(", ")
            ))
            .hint("add a bounded queue, or omit --capacity"));
        }
        self.validate_losses(scenario)?;
        let senders = self.senders.iter().flatten().copied().max().unwrap_or(1);
        self.queues.iter().try_for_each(|queue| self.validate_queue(queue, scenario, senders))
    }

    /// Refuses losses that none of the queues offers.
    fn validate_losses(&self, scenario: &Scenario) -> Result<(), Failure> {
        let Some(lose) = self.load.choice().lose.filter(|lose| *lose != Lose::Never) else {
            return Ok(());
        };
        let offers = |queue: &KnownQueue| {
            let mut ways = queue.ways.iter().filter(|way| wants(&self.wait, queue, way));
            ways.any(|way| scenario.loses(queue, way, lose))
        };
        let any = match self.queues.as_slice() {
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

    fn validate_queue(
        &self,
        queue: &'static KnownQueue,
        scenario: &Scenario,
        senders: u64,
    ) -> Result<(), Failure> {
        let name = &queue.name;
        if ways(queue, scenario).next().is_none() {
            return Err(Failure::usage(format!("{name} cannot run {}", scenario.name))
                .hint("`threadtoll list queues` describes each queue"));
        }
        let raw = queue.origin == Origin::Raw;
        let wanted = || ways(queue, scenario).filter(|way| wants(&self.wait, queue, way));
        if senders > 1 && !wanted().any(|way| way.many_senders) {
            return Err(Failure::usage(format!("{name} has one sender, not {senders}"))
                .hint("omit the queue or --senders"));
        }
        if raw && self.batch == Some(1) {
            return Err(Failure::usage(format!("{name} copies whole blocks, not single messages"))
                .hint("omit the queue or --batch"));
        }
        if let Some(batch) = self.batch.filter(|batch| *batch > 1)
            && !raw
            && !wanted().any(|way| way.batches)
        {
            return Err(Failure::usage(format!(
                "{name} has no batch calls, so it cannot run --batch {batch}"
            ))
            .hint("omit the queue, or use --batch 1"));
        }
        Ok(())
    }
}

fn ways(queue: &'static KnownQueue, scenario: &Scenario) -> impl Iterator<Item = &'static Way> {
    queue.ways.iter().filter(|way| scenario.takes(way))
}

fn find_queue(name: &str) -> Result<&'static KnownQueue, Failure> {
    registry().queues.find(name).ok_or_else(|| {
        unknown(
            format!("no queue is called “{name}”"),
            name,
            registry().queues.all().map(|queue| queue.name.as_str()),
            "see `threadtoll list queues` and `threadtoll list peers`",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Queue;
    use crate::measure::plan_options;

    #[test]
    fn plans_keep_the_options_that_were_given() {
        assert_eq!(plan_options::<Queue>("ask-reply"), json!({"scenario": "ask-reply"}));
        let line = "stream funnel --wait park --wait spin --batch 16 --senders 1,2 \
                    --neighbour none,memory";
        let options = json!({
            "scenario": "stream", "queues": ["funnel"], "wait": ["park", "spin"], "batch": 16,
            "senders": [1, 2], "neighbour": ["none", "memory"],
        });
        assert_eq!(plan_options::<Queue>(line), options);
        let options = json!({
            "scenario": "open-loop", "arrivals": "uniform", "rate": [1000, 64_000],
        });
        let line = "open-loop --arrivals uniform --rate 1000,64000";
        assert_eq!(plan_options::<Queue>(line), options);
        let options = json!({"scenario": "burst", "burst": [8], "gap_ns": [10_000, 1_000_000]});
        assert_eq!(plan_options::<Queue>("burst --burst 8 --gap 10us,1ms"), options);
        let options = json!({
            "scenario": "payload", "payload_bytes": [64, 4096], "carry": ["moved", "in-place"],
        });
        let line = "payload --payload 64,4KiB --carry moved,in-place";
        assert_eq!(plan_options::<Queue>(line), options);
        let options = json!({"scenario": "stream", "capacity": [64, 1024]});
        assert_eq!(plan_options::<Queue>("stream --capacity 64,1024"), options);
    }
}

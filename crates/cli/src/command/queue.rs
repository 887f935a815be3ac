mod args;

use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::{CpuSelection, Planned, QueueChoice, queue, wants};
use threadtoll_lab::queue::{self as lab, Overrides, Queue as KnownQueue, Scenario, Way};
use threadtoll_record::{Carry, Origin, Placement, Wait};

use crate::failure::Failure;
use crate::measure::{
    MeasureArgs, MeasureCommand, MeasureRequest, Options, PROCESSES, REPEAT_NS, given,
};
use crate::nearest::unknown;
use crate::neighbour::{Beside, NeighboursArgs};
use crate::parse::{choices, names};
use crate::peers::PeersArgs;
use crate::registry::registry;
use crate::scenario::{missing, scenarios};
use crate::{by_name, console};

/// Measure latency and throughput of queues between threads
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of all scenarios")]
pub(crate) struct Queue {
    #[command(subcommand)]
    scenario: Option<Chosen>,
    /// Wait strategies of the receiver: spin (includes the peers' poll and poll-backoff),
    /// spin-yield, park or adaptive (each includes the peers' block); for peers only: poll,
    /// poll-backoff, block [repeatable; default: all]
    #[arg(long, value_name = "WAIT")]
    wait: Vec<String>,
    #[command(flatten)]
    neighbour: NeighboursArgs,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

scenarios! {
    ask_reply::AskReply,
    stream::Stream,
    open_loop::OpenLoop,
    burst::Burst,
    depth::Depth,
    workers::Workers,
    broadcast::Broadcast,
    flood::Flood,
    funnel_load::Funnel,
    night_watch::NightWatch,
    payload::Payload,
    for_me::ForMe,
}

/// The options of a scenario, and the names of the queues to measure.
#[derive(Debug, Args, Serialize)]
struct Names<T: Args> {
    /// Queues to measure, as named by `threadtoll list queues` and `threadtoll list peers`
    /// [default: all]
    #[arg(id = "queues", value_name = "QUEUE")]
    #[serde(skip)]
    names: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    options: T,
}

/// A scenario's own options. A plan stores them by field name.
trait ScenarioOptions {
    /// Settings of the scenario that the options change. An error if one is impossible. `time_ns`
    /// is the measuring time per cell, if the user gave one.
    fn overrides(&self, time_ns: Option<u64>) -> Result<Overrides, Failure>;

    /// Returns `true` if the plan measures higher and higher rates until the queue is saturated.
    fn until_saturated(&self) -> bool {
        false
    }

    /// Checks that the queues support the options.
    fn check_queues(&self, _: &Request) -> Result<(), Failure> {
        Ok(())
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// `None` only if a run is resumed, because its file names the scenario.
    #[serde(serialize_with = "by_name::one")]
    scenario: Option<&'static Scenario>,
    #[serde(serialize_with = "by_name::list")]
    queues: Vec<&'static KnownQueue>,
    wait: Vec<Wait>,
    neighbour: Option<Vec<Beside>>,
    #[serde(flatten)]
    own: Options,
    #[serde(skip)]
    overrides: Overrides,
    #[serde(skip)]
    until_saturated: bool,
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
        let mut request = Request {
            scenario: None,
            queues: Vec::new(),
            wait: choices(
                "--wait",
                &self.wait,
                "wait",
                &Wait::ALL.map(|wait| (wait.name(), wait)),
            )?,
            neighbour: self.neighbour.check()?,
            own: Options::new(),
            overrides: Overrides::default(),
            until_saturated: false,
        };
        let known = self.scenario.as_ref().and_then(Chosen::known);
        let Some((scenario, queues, options)) = known else {
            let name = self.scenario.as_ref().and_then(Chosen::unknown);
            if resumed && name.is_none() {
                return Ok(request);
            }
            let is_queue = |name: &str| registry().queues.find(name).is_some();
            return Err(missing(Self::NAME, lab::SCENARIOS, name, "queue", is_queue));
        };
        request.scenario = Some(scenario);
        request.queues = names(queues, "queue", find_queue)?;
        request.own = given(&self.scenario)?;
        request.overrides =
            Overrides { time_ns: common.time_ns, ..options.overrides(common.time_ns)? };
        request.until_saturated = options.until_saturated();
        let left_out = request.leave_out(scenario)?;
        request.validate(scenario)?;
        options.check_queues(&request)?;
        // A resumed run prints none of these notes, because its plan may have another scenario.
        if !self.measure.quiet && !resumed {
            for (name, why) in left_out {
                console::note(&format!("left out: {name} ({why})."));
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
        request.until_saturated
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
            overrides: request.overrides.clone(),
        };
        queue(site, scenario, registry(), &choice)
    }
}

impl Request {
    /// Returns `true` if the request measures the whole scenario for its default time.
    fn is_default(&self, common: &MeasureRequest) -> bool {
        let Request { queues, wait, neighbour, own, .. } = self;
        queues.is_empty()
            && wait.is_empty()
            && neighbour.is_none()
            && own.is_empty()
            && common.time_ns.is_none()
    }

    /// Removes queues that offer none of the strategies in `--wait`. Returns the names of all
    /// queues that will not be measured as requested, with the reasons.
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
            format!("{} is not supported, only {}", asked.join(" "), has.join(", "))
        };
        if let ([first, ..], []) = (lacking.as_slice(), left.as_slice()) {
            let names: Vec<&str> = lacking.iter().map(|queue| queue.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "{} cannot be measured: {}",
                names.join(", "),
                why(first)
            ))
            .hint("omit --wait, or give another"));
        }
        self.queues = left;
        let lacking = lacking.into_iter().map(|queue| (queue.name.clone(), why(queue)));
        // A named queue that does not support the scenario at all causes an error later, so no
        // reason is given here.
        let able = self.queues.iter().copied();
        let able = able.filter(|queue| ways(queue, scenario).next().is_some()).collect();
        Ok(lacking.chain(self.cannot(scenario, able)).collect())
    }

    /// Queues that cannot be measured as requested, with the reasons: they cannot run the scenario,
    /// they allow only one of several requested senders, or they cannot carry messages in place.
    fn cannot(
        &self,
        scenario: &Scenario,
        queues: Vec<&'static KnownQueue>,
    ) -> Vec<(String, String)> {
        let (able, unable): (Vec<&'static KnownQueue>, Vec<_>) =
            queues.into_iter().partition(|queue| ways(queue, scenario).next().is_some());
        let several = match &self.overrides.senders {
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
        let lone = (
            names(lone.collect()),
            "rows with several senders, because only one may send".to_string(),
        );
        let mut loads = self.overrides.loads.iter().flatten();
        let in_place = loads.any(|load| load.carry == Some(Carry::InPlace));
        let lacking = able
            .iter()
            .copied()
            .filter(|queue| in_place && !scenario.carries(queue, Carry::InPlace));
        let lacking = (
            names(lacking.collect()),
            "rows with messages filled in place, because no slots are lent".to_string(),
        );
        let all = [unable, lone, lacking].into_iter();
        all.filter(|(names, _)| !names.is_empty()).collect()
    }

    fn validate(&self, scenario: &Scenario) -> Result<(), Failure> {
        if self.overrides.capacities.is_some()
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
        let senders = self.overrides.senders.iter().flatten().copied().max().unwrap_or(1);
        self.queues.iter().try_for_each(|queue| self.validate_queue(queue, scenario, senders))
    }

    fn validate_queue(
        &self,
        queue: &'static KnownQueue,
        scenario: &Scenario,
        senders: u32,
    ) -> Result<(), Failure> {
        let name = &queue.name;
        if ways(queue, scenario).next().is_none() {
            return Err(Failure::usage(format!("{name} cannot run {}", scenario.name))
                .hint("`threadtoll list queues` describes each queue"));
        }
        let raw = queue.origin == Origin::Raw;
        let wanted = || ways(queue, scenario).filter(|way| wants(&self.wait, queue, way));
        if senders > 1 && !wanted().any(|way| way.many_senders) {
            return Err(Failure::usage(format!("{name} allows one sender, not {senders}"))
                .hint("omit the queue or --senders"));
        }
        if raw && self.overrides.batch == Some(1) {
            return Err(Failure::usage(format!("{name} copies whole blocks, not single messages"))
                .hint("omit the queue or --batch"));
        }
        if let Some(batch) = self.overrides.batch.filter(|batch| *batch > 1)
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

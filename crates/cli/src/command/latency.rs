use clap::Args;
use serde::Serialize;
use threadtoll_lab::mechanism::Mechanism;
use threadtoll_lab::plan::{CpuSelection, MAX_PAYLOAD, MechanismChoice, Planned, budget, latency};
use threadtoll_record::{Layout, Neighbour, Pause, Placement};

use crate::by_name;
use crate::failure::Failure;
use crate::measure::{MeasureArgs, MeasureCommand, MeasureRequest, SamplesArgs};
use crate::mechanisms::find;
use crate::neighbour::NeighbourArgs;
use crate::parse::{choice, count, names, optional};
use crate::peers::PeersArgs;
use crate::registry::registry;

const TIME_NS: u64 = 1_000_000_000;

const LINES: [(&str, Layout); 2] = [("own", Layout::Own), ("shared", Layout::Shared)];
const PAUSES: [(&str, Pause); 2] = [("on", Pause::On), ("off", Pause::Off)];

/// Measure the ask-reply latency of mechanisms
#[derive(Debug, Args)]
pub(crate) struct Latency {
    /// Mechanisms to measure, as named by `threadtoll list mechanisms` [default: all]
    #[arg(value_name = "MECHANISM")]
    mechanisms: Vec<String>,
    /// Cache lines of the two counters: own (one each) or shared [default: both]
    #[arg(long, value_name = "LAYOUT")]
    line: Option<String>,
    /// Pause hint in spin loops: on or off [default: both]
    #[arg(long, value_name = "ON|OFF")]
    pause: Option<String>,
    /// Bytes per message, including its 8-byte sequence number: a multiple of 8 up to 1 MiB
    /// [default: 8]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    payload: Option<String>,
    /// Keep the CPUs from idling, with spinning threads of the lowest priority, so that a wake-up
    /// costs only scheduling
    #[arg(long)]
    keep_awake: bool,
    #[command(flatten)]
    neighbour: NeighbourArgs,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    samples: SamplesArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    #[serde(serialize_with = "by_name::list")]
    mechanisms: Vec<&'static Mechanism>,
    line: Option<Layout>,
    pause: Option<Pause>,
    payload_bytes: Option<u64>,
    keep_awake: bool,
    neighbour: Option<Neighbour>,
    samples: Option<u64>,
}

impl MeasureCommand for Latency {
    const NAME: &'static str = "latency";
    type Request = Request;

    fn measure_args(&self) -> &MeasureArgs {
        &self.measure
    }

    fn peers(&self) -> Option<&PeersArgs> {
        Some(&self.peers)
    }

    fn check(&self, _: &MeasureRequest) -> Result<Request, Failure> {
        Ok(Request {
            mechanisms: names(&self.mechanisms, "mechanism", find)?,
            line: optional(&self.line, |text| choice("--line", text, &LINES))?,
            pause: optional(&self.pause, |text| choice("--pause", text, &PAUSES))?,
            payload_bytes: optional(&self.payload, payload_bytes)?,
            keep_awake: self.keep_awake,
            neighbour: self.neighbour.check()?,
            samples: self.samples.samples,
        })
    }

    fn plan(request: &Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned {
        let choice = MechanismChoice {
            placements: common.placements_or(&Placement::ALL),
            layouts: request.line.map_or(vec![Layout::Own, Layout::Shared], |line| vec![line]),
            pauses: request.pause.map_or(vec![Pause::Off, Pause::On], |pause| vec![pause]),
            payloads: vec![request.payload_bytes.unwrap_or(8)],
            // With `--keep-awake`, CPUs that may idle are measured, too, for comparison.
            awake: if request.keep_awake { vec![false, true] } else { vec![false] },
            neighbour: request.neighbour,
        };
        let mechanisms = match request.mechanisms.as_slice() {
            [] => registry().mechanisms.all().collect(),
            named => named.to_vec(),
        };
        let budget = budget(common.time_ns.unwrap_or(TIME_NS), request.samples);
        latency(
            site,
            &registry().mechanisms,
            &mechanisms,
            &choice,
            budget,
            common.placement.is_empty(),
        )
    }
}

fn payload_bytes(text: &str) -> Result<u64, Failure> {
    let bytes = count("--payload", text, 8, MAX_PAYLOAD)?;
    if bytes % 8 != 0 {
        return Err(Failure::usage(format!("--payload {text} is not a multiple of 8"))
            .hint(format!("try {}", bytes.next_multiple_of(8))));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::measure::plan_options;

    #[test]
    fn plans_keep_the_options_that_were_given() {
        assert_eq!(plan_options::<Latency>(""), json!({}));
        let line = "futex park --line own --pause on --payload 64 --keep-awake --neighbour churn \
                    --placement free --placement pinned --time 5ms --over 10us";
        let options = json!({
            "mechanisms": ["futex", "park"], "line": "own", "pause": "on", "payload_bytes": 64,
            "keep_awake": true, "neighbour": "churn", "placement": ["pinned", "free"],
            "time_ns": 5_000_000, "over_ns": 10_000,
        });
        assert_eq!(plan_options::<Latency>(line), options);
        let line = "--samples 7 --cpus 1,0 --seed 0 --simulated-machine 3";
        let options = json!({"samples": 7, "cpus": [1, 0], "seed": 0, "simulated_machine": 3});
        assert_eq!(plan_options::<Latency>(line), options);
    }

    #[test]
    fn payloads_hold_whole_words() {
        assert_eq!(payload_bytes("64").unwrap(), 64);
        for text in ["0", "4", "12", "2097152", "-8", "many"] {
            assert!(payload_bytes(text).is_err(), "{text}");
        }
    }
}

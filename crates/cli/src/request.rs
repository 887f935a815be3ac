//! From texts to typed and checked values, each error a sentence that says what to do.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use threadtoll_lab::mechanism::{self, Mechanism};
use threadtoll_lab::plan::{LONGEST_NS, MOST_BATCH, MOST_PAYLOAD, MOST_SAMPLES, wants};
use threadtoll_lab::queue::{
    MOST_CAPACITY, MOST_SENDERS, Queue as KnownQueue, SCENARIOS, Scenario, scenario,
};
use threadtoll_machine::topology::Level;
use threadtoll_record::{Kind, Layout, Neighbour, Origin, Pause, Placement, Wait};

use crate::arguments::{Latency, Matrix, Measure, Queue, Survey};
use crate::console;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::queues::queues;

/// Options by their long names. `given` are those of the command line, which a resumed file must
/// not contradict.
pub(crate) type Options = BTreeMap<String, Value>;

/// What everything that measures was asked for, checked. What was not given is null.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    pub(crate) time_ns: Option<u64>,
    pub(crate) samples: Option<u64>,
    pub(crate) cpus: Option<Vec<u32>>,
    pub(crate) placements: Vec<Placement>,
    pub(crate) over_ns: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) simulated: Option<u64>,
}

impl Common {
    /// The limit of the reported share where none is given.
    pub(crate) const OVER_NS: u64 = 10_000;
    /// The seed where none is given.
    pub(crate) const SEED: u64 = 1;

    pub(crate) fn check(measure: &Measure) -> Result<Self, Failure> {
        if measure.resume.is_some() && measure.out.is_some() {
            return Err(Failure::usage(
                "--resume continues its own file and cannot be used with --out",
            )
            .hint("give one of them"));
        }
        Ok(Common {
            time_ns: measure.time.as_deref().map(|text| duration_ns("--time", text)).transpose()?,
            samples: measure
                .samples
                .as_deref()
                .map(|text| count("--samples", text, 1, MOST_SAMPLES))
                .transpose()?,
            cpus: measure.cpus.as_deref().map(cpus).transpose()?,
            placements: placements(&measure.placement)?,
            over_ns: measure.over.as_deref().map(|text| duration_ns("--over", text)).transpose()?,
            seed: measure
                .seed
                .as_deref()
                .map(|text| count("--seed", text, 0, u64::MAX))
                .transpose()?,
            simulated: measure
                .simulated_machine
                .as_deref()
                .map(|text| count("--simulated-machine", text, 0, u64::MAX))
                .transpose()?,
        })
    }

    /// What was given, by long names.
    pub(crate) fn given(&self) -> Options {
        let mut given = Options::new();
        let mut note = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                given.insert(name.into(), value);
            }
        };
        note("time_ns", self.time_ns.map(Value::from));
        note("samples", self.samples.map(Value::from));
        note("cpus", self.cpus.as_ref().map(|cpus| json!(cpus)));
        note("placement", (!self.placements.is_empty()).then(|| json!(self.placements)));
        note("over_ns", self.over_ns.map(Value::from));
        note("seed", self.seed.map(Value::from));
        note("simulated_machine", self.simulated.map(Value::from));
        given
    }
}

/// What `survey` was asked for beside that.
pub(crate) fn survey_given(survey: &Survey) -> Options {
    let mut given = Options::new();
    if survey.quick || survey.full {
        given.insert("depth".into(), json!(if survey.quick { "quick" } else { "full" }));
    }
    given
}

/// What `latency` was asked for, checked.
#[derive(Clone, Debug)]
pub(crate) struct LatencyRequest {
    pub(crate) mechanisms: Vec<&'static Mechanism>,
    pub(crate) layout: Option<Layout>,
    pub(crate) pause: Option<Pause>,
    pub(crate) payload: Option<u64>,
    pub(crate) keep_awake: bool,
    pub(crate) neighbour: Option<Neighbour>,
}

impl LatencyRequest {
    pub(crate) fn check(latency: &Latency) -> Result<Self, Failure> {
        let mut mechanisms = Vec::new();
        for name in &latency.mechanisms {
            let mechanism = find(name)?;
            if mechanisms.contains(&mechanism) {
                return Err(Failure::usage(format!("{name} is named twice"))
                    .hint("name each mechanism once"));
            }
            mechanisms.push(mechanism);
        }
        Ok(LatencyRequest {
            mechanisms,
            layout: latency
                .line
                .as_deref()
                .map(|text| {
                    one_of("--line", text, &[("own", Layout::Own), ("shared", Layout::Shared)])
                })
                .transpose()?,
            pause: latency
                .pause
                .as_deref()
                .map(|text| one_of("--pause", text, &[("on", Pause::On), ("off", Pause::Off)]))
                .transpose()?,
            payload: latency.payload.as_deref().map(payload).transpose()?,
            keep_awake: latency.keep_awake,
            neighbour: latency.neighbour.as_deref().map(neighbour).transpose()?,
        })
    }

    pub(crate) fn given(&self) -> Options {
        let mut given = Options::new();
        if !self.mechanisms.is_empty() {
            let names: Vec<&str> = self.mechanisms.iter().map(|mechanism| mechanism.name).collect();
            given.insert("mechanisms".into(), json!(names));
        }
        if let Some(layout) = self.layout {
            given.insert("line".into(), json!(layout));
        }
        if let Some(pause) = self.pause {
            given.insert("pause".into(), json!(pause));
        }
        if let Some(payload) = self.payload {
            given.insert("payload_bytes".into(), json!(payload));
        }
        if self.keep_awake {
            given.insert("keep_awake".into(), json!(true));
        }
        if let Some(neighbour) = self.neighbour {
            given.insert("neighbour".into(), json!(neighbour));
        }
        given
    }
}

/// What `matrix` was asked for, checked.
#[derive(Clone, Debug)]
pub(crate) struct MatrixRequest {
    pub(crate) mechanism: Option<&'static Mechanism>,
    pub(crate) level: Option<Level>,
}

impl MatrixRequest {
    pub(crate) fn check(matrix: &Matrix) -> Result<Self, Failure> {
        let levels: Vec<(&str, Level)> =
            Level::ALL.iter().map(|level| (level.name(), *level)).collect();
        let request = MatrixRequest {
            mechanism: matrix.mechanism.as_deref().map(find).transpose()?,
            level: matrix
                .level
                .as_deref()
                .map(|text| one_of("--level", text, &levels))
                .transpose()?,
        };
        if let Some(mechanism) = request.mechanism
            && mechanism.class == mechanism::Class::OneThread
        {
            return Err(Failure::usage(format!(
                "{} runs on one thread, and a matrix needs pairs of CPUs",
                mechanism.name
            ))
            .hint("name a mechanism of two threads, such as atomic-store or futex"));
        }
        if matrix.measure.placement.iter().any(|placement| placement != "pinned") {
            return Err(Failure::usage("a matrix is measured pinned").hint("leave --placement out"));
        }
        Ok(request)
    }

    pub(crate) fn given(&self) -> Options {
        let mut given = Options::new();
        if let Some(mechanism) = self.mechanism {
            given.insert("mechanisms".into(), json!([mechanism.name]));
        }
        if let Some(level) = self.level {
            given.insert("level".into(), json!(level.name()));
        }
        given
    }
}

/// What `queue` was asked for, checked.
#[derive(Clone, Debug)]
pub(crate) struct QueueRequest {
    /// Null only where a run is resumed.
    pub(crate) scenario: Option<&'static Scenario>,
    pub(crate) queues: Vec<&'static KnownQueue>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) batch: Option<u64>,
    pub(crate) senders: Option<Vec<u64>>,
    pub(crate) capacities: Option<Vec<u64>>,
    pub(crate) neighbour: Option<Neighbour>,
}

impl QueueRequest {
    pub(crate) fn check(queue: &Queue, common: &Common) -> Result<Self, Failure> {
        let scenarios =
            || SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ");
        let found = match &queue.scenario {
            Some(name) => Some(scenario(name).ok_or_else(|| {
                let near = nearest(name, SCENARIOS.iter().map(|scenario| scenario.name));
                let failure = Failure::usage(format!("there is no scenario “{name}”"));
                match (near.as_slice(), queues().find(name)) {
                    ([], Some(_)) => failure.hint(format!(
                        "that is a queue; the scenario stands before it: {}",
                        scenarios()
                    )),
                    ([], None) => failure.hint(format!("it is one of: {}", scenarios())),
                    (near, _) => failure.hint(format!("nearest: {}", near.join(", "))),
                }
            })?),
            None if queue.measure.resume.is_some() => None,
            None => {
                return Err(Failure::usage("queue needs a scenario")
                    .hint(format!("it is one of: {}", scenarios())));
            }
        };
        let mut named = Vec::new();
        for name in &queue.queues {
            let one = find_queue(name)?;
            if named.contains(&one) {
                return Err(
                    Failure::usage(format!("{name} is named twice")).hint("name each queue once")
                );
            }
            named.push(one);
        }
        let mut request = QueueRequest {
            scenario: found,
            queues: named,
            waits: waits(&queue.wait)?,
            batch: queue
                .batch
                .as_deref()
                .map(|text| count("--batch", text, 1, MOST_BATCH))
                .transpose()?,
            senders: queue
                .senders
                .as_deref()
                .map(|text| counts("--senders", text, u64::from(MOST_SENDERS)))
                .transpose()?,
            capacities: queue
                .capacity
                .as_deref()
                .map(|text| counts("--capacity", text, MOST_CAPACITY))
                .transpose()?,
            neighbour: queue.neighbour.as_deref().map(neighbour).transpose()?,
        };
        if let Some(scenario) = found {
            for (name, why) in request.leave_out(scenario)? {
                if !queue.measure.quiet {
                    console::err(&format!("note: {name} is left out: {why}."));
                }
            }
            request.suits(scenario, common)?;
        }
        Ok(request)
    }

    /// Leaves out queues without a row for the waits asked for, a line each. An error if none is
    /// left.
    fn leave_out(&mut self, scenario: &Scenario) -> Result<Vec<(&'static str, String)>, Failure> {
        let waits = &self.waits;
        let lacks = |queue: &&'static KnownQueue| {
            let mut ways = queue.ways.iter().filter(|way| scenario.takes(way)).peekable();
            ways.peek().is_some() && !ways.any(|way| wants(waits, queue, way))
        };
        let (lacking, left): (Vec<&'static KnownQueue>, Vec<_>) =
            self.queues.iter().copied().partition(lacks);
        let asked: Vec<String> = waits.iter().map(|wait| format!("--wait {wait}")).collect();
        let why = |queue: &KnownQueue| {
            let ways = queue.ways.iter().filter(|way| scenario.takes(way));
            let has: Vec<&str> = ways.map(|way| way.wait.name()).collect();
            format!("it waits as {}, not as {} asks", has.join(", "), asked.join(" "))
        };
        if let ([first, ..], []) = (lacking.as_slice(), left.as_slice()) {
            let names: Vec<&str> = lacking.iter().map(|queue| queue.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "none is left of {}: {}",
                names.join(", "),
                why(first)
            ))
            .hint("leave --wait out, or name another"));
        }
        self.queues = left;
        Ok(lacking.into_iter().map(|queue| (queue.name.as_str(), why(queue))).collect())
    }

    /// Refuses what cannot be had of the scenario or of the queues that were named.
    fn suits(&self, scenario: &Scenario, common: &Common) -> Result<(), Failure> {
        let name = scenario.name;
        let most = self.senders.iter().flatten().copied().max().unwrap_or(1);
        if scenario.kind == Kind::Exchange && self.batch.is_some_and(|batch| batch > 1) {
            return Err(Failure::usage(format!(
                "{name} sends one message at a time and has no --batch"
            ))
            .hint("`threadtoll queue stream` sends batches"));
        }
        if scenario.kind == Kind::Exchange && most > 1 {
            return Err(Failure::usage(format!("{name} has one sender and no --senders"))
                .hint("`threadtoll queue stream` has several"));
        }
        if scenario.kind == Kind::Stream && common.samples.is_some() {
            return Err(Failure::usage(
                "a stream has no single samples, so --samples says nothing",
            )
            .hint("--time sets how long each cell is measured"));
        }
        if self.capacities.is_some()
            && !self.queues.is_empty()
            && self.queues.iter().all(|queue| queue.slots().is_none())
        {
            let names: Vec<&str> = self.queues.iter().map(|queue| queue.name.as_str()).collect();
            return Err(Failure::usage(format!("--capacity says nothing of {}", names.join(", ")))
                .hint("name a bounded queue, or leave --capacity out"));
        }
        for queue in &self.queues {
            let ways = || queue.ways.iter().filter(|way| scenario.takes(way));
            if ways().next().is_none() {
                return Err(Failure::usage(format!("{} cannot be put through {name}", queue.name))
                    .hint("`threadtoll list queues` says what each is"));
            }
            let raw = queue.origin == Origin::Raw;
            let wanted = || ways().filter(|way| wants(&self.waits, queue, way));
            if most > 1 && !wanted().any(|way| way.many_senders) {
                return Err(Failure::usage(format!("{} has one sender, not {most}", queue.name))
                    .hint("leave it or --senders out"));
            }
            if raw && self.batch == Some(1) {
                return Err(Failure::usage(format!(
                    "{} copies whole blocks, not single messages",
                    queue.name
                ))
                .hint("leave it or --batch out"));
            }
            if let Some(batch) = self.batch.filter(|batch| *batch > 1)
                && !raw
                && !wanted().any(|way| way.batches)
            {
                return Err(Failure::usage(format!(
                    "{} has no calls for many messages at once, so --batch {batch} cannot be had",
                    queue.name
                ))
                .hint("leave it out, or give --batch 1"));
            }
        }
        Ok(())
    }

    pub(crate) fn given(&self) -> Options {
        let mut given = Options::new();
        if let Some(scenario) = self.scenario {
            given.insert("scenario".into(), json!(scenario.name));
        }
        if !self.queues.is_empty() {
            let names: Vec<&str> = self.queues.iter().map(|queue| queue.name.as_str()).collect();
            given.insert("queues".into(), json!(names));
        }
        if !self.waits.is_empty() {
            given.insert("wait".into(), json!(self.waits));
        }
        if let Some(batch) = self.batch {
            given.insert("batch".into(), json!(batch));
        }
        if let Some(senders) = &self.senders {
            given.insert("senders".into(), json!(senders));
        }
        if let Some(capacities) = &self.capacities {
            given.insert("capacity".into(), json!(capacities));
        }
        if let Some(neighbour) = self.neighbour {
            given.insert("neighbour".into(), json!(neighbour));
        }
        given
    }
}

fn waits(names: &[String]) -> Result<Vec<Wait>, Failure> {
    let known: Vec<(&str, Wait)> = Wait::ALL.iter().map(|wait| (wait.name(), *wait)).collect();
    let mut waits = Vec::new();
    for name in names {
        let wait = one_of("--wait", name, &known)?;
        if waits.contains(&wait) {
            return Err(
                Failure::usage(format!("--wait {name} is given twice")).hint("give each way once")
            );
        }
        waits.push(wait);
    }
    Ok(waits)
}

fn find_queue(name: &str) -> Result<&'static KnownQueue, Failure> {
    queues().find(name).ok_or_else(|| {
        let near = nearest(name, queues().all().map(|queue| queue.name.as_str()));
        let failure = Failure::usage(format!("there is no queue “{name}”"));
        if near.is_empty() {
            failure.hint("`threadtoll list queues` and `threadtoll list peers` name them all")
        } else {
            failure.hint(format!("nearest: {}", near.join(", ")))
        }
    })
}

fn neighbour(text: &str) -> Result<Neighbour, Failure> {
    let kinds =
        [("spin", Neighbour::Spin), ("memory", Neighbour::Memory), ("churn", Neighbour::Churn)];
    one_of("--neighbour", text, &kinds)
}

/// Reads a list of whole numbers from 1 to `most`.
fn counts(option: &str, text: &str, most: u64) -> Result<Vec<u64>, Failure> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let number = count(option, part.trim(), 1, most)?;
        if all.contains(&number) {
            return Err(Failure::usage(format!("{option} {text}: {number} stands in it twice"))
                .hint("name each number once"));
        }
        all.push(number);
    }
    Ok(all)
}

fn find(name: &str) -> Result<&'static Mechanism, Failure> {
    mechanism::find(name).ok_or_else(|| {
        let near = nearest(name, mechanism::ALL.iter().map(|mechanism| mechanism.name));
        let failure = Failure::usage(format!("there is no mechanism “{name}”"));
        if near.is_empty() {
            failure.hint("`threadtoll list mechanisms` names them all")
        } else {
            failure.hint(format!("nearest: {}", near.join(", ")))
        }
    })
}

/// What to do about a duration that is none.
pub(crate) const DURATIONS: &str = "durations are written 250ns, 2.5us, 5ms or 2s";

/// Reads `250ns`, `2.5us`, `5ms`, `2s` as whole nanoseconds.
pub(crate) fn duration_ns(option: &str, text: &str) -> Result<u64, Failure> {
    let bad = |why: &str| Failure::usage(format!("{option} {text}: {why}")).hint(DURATIONS);
    let ns = duration(text).map_err(bad)?;
    if ns == 0.0 {
        return Err(bad("it must be longer than nothing"));
    }
    if ns < 1.0 {
        return Err(bad("it is shorter than a nanosecond"));
    }
    Ok(ns.round() as u64)
}

/// Reads a duration in nanoseconds, parts and zero included, or says why it is none.
pub(crate) fn duration(text: &str) -> Result<f64, &'static str> {
    let unit_at = text.find(|c: char| c.is_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty()
        || !number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-' || c == '+')
    {
        return Err("this is no duration");
    }
    let value: f64 = number.parse().map_err(|_| "this is no duration")?;
    if value < 0.0 {
        return Err("a duration cannot be negative");
    }
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        // Nothing is nothing in any unit.
        "" if value == 0.0 => 1.0,
        "" => return Err("the unit is missing"),
        _ => return Err("this unit is not known"),
    };
    let ns = value * scale;
    if ns > LONGEST_NS as f64 {
        return Err("it is longer than a day");
    }
    // Adding zero turns −0 into 0.
    Ok(ns + 0.0)
}

pub(crate) fn count(option: &str, text: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let bad = |why: String| Failure::usage(format!("{option} {text}: {why}"));
    if text.starts_with('-') && text[1..].chars().all(|c| c.is_ascii_digit()) && text.len() > 1 {
        return Err(
            bad("it cannot be negative".into()).hint(format!("give a whole number from {least}"))
        );
    }
    match text.parse::<u64>() {
        Ok(number) if number < least => Err(bad(format!("it must be at least {least}"))
            .hint(format!("give a whole number from {least}"))),
        Ok(number) if number > most => {
            Err(bad(format!("it must be at most {most}")).hint("give a smaller number"))
        }
        Ok(number) => Ok(number),
        Err(_) => {
            Err(bad("this is no whole number".into())
                .hint(format!("give a whole number from {least}")))
        }
    }
}

fn payload(text: &str) -> Result<u64, Failure> {
    let bytes = count("--payload", text, 8, MOST_PAYLOAD)?;
    if bytes % 8 != 0 {
        return Err(Failure::usage(format!("--payload {text}: it must be a multiple of 8")).hint(
            format!(
                "a message begins with its 8-byte sequence number; the nearest is {}",
                bytes.next_multiple_of(8)
            ),
        ));
    }
    Ok(bytes)
}

fn cpus(text: &str) -> Result<Vec<u32>, Failure> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let cpu: u32 = part.trim().parse().map_err(|_| {
            Failure::usage(format!("--cpus {text}: “{part}” is no number of a CPU"))
                .hint("CPUs are written 0,1,2")
        })?;
        if cpus.contains(&cpu) {
            return Err(Failure::usage(format!("--cpus {text}: CPU {cpu} is named twice"))
                .hint("name each CPU once"));
        }
        cpus.push(cpu);
    }
    Ok(cpus)
}

fn placements(names: &[String]) -> Result<Vec<Placement>, Failure> {
    let known: Vec<(&str, Placement)> =
        Placement::ALL.iter().map(|placement| (placement.name(), *placement)).collect();
    let mut placements = Vec::new();
    for name in names {
        let placement = one_of("--placement", name, &known)?;
        if placements.contains(&placement) {
            return Err(Failure::usage(format!("--placement {name} is given twice"))
                .hint("give each placement once"));
        }
        placements.push(placement);
    }
    placements.sort();
    Ok(placements)
}

pub(crate) fn one_of<T: Copy>(option: &str, text: &str, known: &[(&str, T)]) -> Result<T, Failure> {
    known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Failure::usage(format!("{option} {text}: this is not known"))
            .hint(format!("it takes one of: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, ns) in [
            ("250ns", 250),
            ("2.5us", 2500),
            ("5ms", 5_000_000),
            ("2s", 2_000_000_000),
            ("1µs", 1000),
        ] {
            assert_eq!(duration_ns("--time", text).unwrap(), ns, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_rejected() {
        let bad = [
            "", "0", "0s", "-1s", "nonsense", "5", "1 s", "1e3s", "inf", "NaNs", "1.2.3s", "ms",
            "0.1ns", "2d", "90000s", "--5s",
        ];
        for text in bad {
            assert!(duration_ns("--time", text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_are_distinct_numbers() {
        assert_eq!(cpus("0,3,1").unwrap(), [0, 3, 1]);
        for text in ["", "0,0", "a", "0,,1", "-1", "0,4294967296", "0;1"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn payloads_hold_whole_words() {
        assert_eq!(payload("64").unwrap(), 64);
        for text in ["0", "4", "12", "2097152", "-8", "many"] {
            assert!(payload(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_keep_their_bounds() {
        assert_eq!(count("--samples", "7", 1, 10).unwrap(), 7);
        for text in ["0", "11", "-3", "1.5", "", "0x10", "-"] {
            assert!(count("--samples", text, 1, 10).is_err(), "{text}");
        }
    }
}

//! The requests that prepare a cell and measure a block of it.

use std::fmt::Write;

use threadtoll_record::{
    Arrivals, Cell, Experiment, Load, LockSubject, Lose, Placement, PlannedCell, Work,
};

use super::answer::{Besides, Question};
use crate::queue::IMPORTANT_PER_S;

/// A cell, as a program is asked for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    /// The line that prepares it.
    pub(super) prepare: String,
    /// The kind of answer that its blocks have.
    pub(super) question: Question,
    pub(super) roams: Vec<u32>,
}

impl Request {
    /// CPUs that the whole program is limited to; none if it pins its threads itself.
    pub(crate) fn roams(&self) -> &[u32] {
        &self.roams
    }

    /// The request for a cell; `None` if no program can measure it.
    pub(crate) fn of(planned: &PlannedCell, seed: u64) -> Option<Request> {
        let cell = &planned.cell;
        let (pinned, roams) = places(cell);
        let (prepare, question) = match (&planned.experiment, cell.queue(), cell.lock()) {
            (Experiment::Queue(scenario), Some(_), None) => queue(scenario, cell, &pinned, seed)?,
            (Experiment::Latency | Experiment::Matrix | Experiment::Queue(_), None, None) => {
                let bytes = cell.payload_bytes;
                let prepare =
                    format!("prepare latency {} {pinned} payload_bytes={bytes}", cell.name());
                (prepare, Question::RoundTrips)
            }
            (Experiment::Contention(scenario), None, Some(lock)) => {
                contention(scenario, lock, &pinned)?
            }
            _ => return None,
        };
        Some(Request { prepare, question, roams })
    }
}

/// Returns `true` if programs are asked for such messages.
pub(super) fn has_load(load: &Load) -> bool {
    let Load { arrivals, rate_per_s, burst, gap_ns, lose, .. } = *load;
    let Load { receivers, important, depth, .. } = *load;
    let paced = Load { arrivals, rate_per_s, burst, gap_ns, lose, ..Load::NONE };
    let told = Load { receivers, important, depth, ..paced };
    *load == told
        && arrivals != Some(Arrivals::File)
        && matches!(lose, None | Some(Lose::Never))
        && (!load.is_rare() || rare_per_s(load).is_some())
}

/// The scenario that a program is asked for: of those that only send messages when they are due,
/// the open loop.
pub(super) fn asked_as(scenario: &str) -> &str {
    match scenario {
        "night-watch" | "for-me" => "open-loop",
        other => other,
    }
}

/// Messages per second that are a gap apart, to 0.1%; `None` if that is no whole number.
fn rare_per_s(load: &Load) -> Option<u64> {
    let per_s = 1e9 / load.gap_ns?.as_f64();
    ((per_s.round() / per_s - 1.0).abs() <= 0.001).then_some(per_s.round() as u64)
}

/// The word for the CPUs, in the order in which a program is given them, and the CPUs that all
/// threads share if it names none.
fn places(cell: &Cell) -> (String, Vec<u32>) {
    let list = |cpus: &[u32]| {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        format!("cpus={}", cpus.join(","))
    };
    let load = cell.queue().map(|queue| &queue.load);
    let shared = load.is_some_and(|load| load.receivers.is_some());
    match (cell.placement, cell.cpus.as_slice()) {
        (Placement::Free, cpus) => (list(&[]), cpus.to_vec()),
        (_, [one]) => (list(&[*one, *one]), Vec::new()),
        // Of a cell, the CPU of the end that has it to itself is the last one.
        (_, [receivers @ .., sender]) if shared => {
            (list(&[&[*sender], receivers].concat()), Vec::new())
        }
        (_, [first, others @ .., receiver]) if cell.queue().is_some() => {
            (list(&[&[*first, *receiver], others].concat()), Vec::new())
        }
        (_, cpus) => (list(cpus), Vec::new()),
    }
}

fn queue(scenario: &str, cell: &Cell, pinned: &str, seed: u64) -> Option<(String, Question)> {
    let subject = cell.queue()?;
    let (load, wait) = (&subject.load, subject.wait.name());
    let asked = asked_as(scenario);
    let mut line = format!("prepare queue {} {asked} {pinned} wait={wait}", subject.queue);
    let mut add = |key: &str, value: u64| {
        let _ = write!(line, " {key}={value}");
    };
    if let Some(capacity) = subject.capacity {
        add("capacity", capacity);
    }
    add("batch", subject.batch);
    add("senders", u64::from(subject.senders));
    add("payload_bytes", cell.payload_bytes);
    let counts =
        [("receivers", load.receivers), ("important", load.important), ("depth", load.depth)];
    for (key, count) in counts {
        if let Some(count) = count {
            add(key, count.get());
        }
    }
    let question = match (load.rate_per_s, load.burst, load.gap_ns) {
        (Some(rate), None, None) => {
            add("rate_per_s", rate.get());
            let deliveries = |per_s, besides| Question::Deliveries { per_s, besides };
            match load.important {
                None if scenario == "flood" => Question::SendCalls,
                None => deliveries(rate.as_f64(), Besides::Nothing),
                Some(important) => {
                    let chatty = u64::from(subject.senders).saturating_sub(important.get());
                    let per_s = important.as_f64() * IMPORTANT_PER_S;
                    deliveries(per_s, Besides::Chatty(chatty))
                }
            }
        }
        (None, Some(burst), Some(gap)) => {
            add("burst", burst.get());
            add("gap_ns", gap.get());
            let per_s = burst.as_f64() / gap.as_f64() * 1e9;
            Question::Deliveries { per_s, besides: Besides::Bursts }
        }
        (None, None, Some(_)) => {
            let rate = rare_per_s(load)?;
            add("rate_per_s", rate);
            Question::Deliveries { per_s: rate as f64, besides: Besides::Nothing }
        }
        (None, None, None) => match (load.receivers, load.depth) {
            (None, None) if scenario == "ask-reply" => Question::RoundTrips,
            (None, None) => Question::Stream,
            (Some(receivers), None) => Question::Shared { receivers: receivers.get() },
            (None, Some(depth)) => Question::Calls { depth: depth.get() },
            _ => return None,
        },
        _ => return None,
    };
    if !has_load(load) {
        return None;
    }
    if let Some(arrivals) = load.arrivals.or(load.is_rare().then_some(Arrivals::Uniform)) {
        let _ = write!(line, " arrivals={arrivals}");
    }
    let _ = write!(line, " seed={seed}");
    Some((line, question))
}

/// A pool's threads sleep: computing ones would need our unit of work.
fn contention(scenario: &str, lock: &LockSubject, pinned: &str) -> Option<(String, Question)> {
    if lock.work != Work::Sleep {
        return None;
    }
    let (tasks, threads) = (lock.tasks?, lock.threads);
    let (hold_ns, think_ns) = (lock.hold_ns, lock.think_ns);
    let line = format!(
        "prepare contention {scenario} threads={threads} hold_ns={hold_ns} think_ns={think_ns} \
         tasks={tasks} work=sleep {pinned}"
    );
    Some((line, Question::Pool { tasks, threads }))
}

#[cfg(test)]
mod tests {
    use threadtoll_record::{Budget, Origin, QueueSubject, Relation, Subject, Wait};

    use super::*;

    fn planned(scenario: &str, load: Load, senders: u32, cpus: &[u32]) -> PlannedCell {
        let cell = Cell {
            subject: Subject::Queue(QueueSubject {
                queue: "java-abq".into(),
                origin: Origin::Java,
                wait: Wait::PollBackoff,
                capacity: Some(1024),
                ring_bytes: Some(8192),
                batch: 1,
                version: "17".into(),
                senders,
                load,
            }),
            placement: if cpus.len() == 1 { Placement::SameCpu } else { Placement::Pinned },
            cpus: cpus.to_vec(),
            relation: Relation::SameLlc,
            payload_bytes: 8,
            line: None,
            pause: None,
            keep_awake: false,
            neighbour: None,
            built: None,
        };
        let kind = crate::queue::scenario(scenario).unwrap().kind;
        let budget = Budget { rounds: 2, stretch_ns: 1, stamped_ns: 1, stamped_count: None };
        PlannedCell::of_kind(kind, Experiment::queue(scenario), cell, budget)
    }

    #[test]
    fn a_request_has_what_stands_in_the_cell() {
        let of = |planned: &PlannedCell| Request::of(planned, 7).unwrap();
        let request = of(&planned("ask-reply", Load::NONE, 1, &[2, 3]));
        assert_eq!(
            request.prepare,
            "prepare queue java-abq ask-reply cpus=2,3 wait=poll-backoff capacity=1024 batch=1 \
             senders=1 payload_bytes=8 seed=7"
        );
        assert_eq!((request.question, request.roams), (Question::RoundTrips, vec![]));
        let open =
            Load { arrivals: Some(Arrivals::Poisson), rate_per_s: Some(1000.into()), ..Load::NONE };
        let request = of(&planned("open-loop", open.clone(), 1, &[0]));
        assert!(request.prepare.contains(" cpus=0,0 "), "{}", request.prepare);
        assert!(request.prepare.ends_with(" rate_per_s=1000 arrivals=poisson seed=7"));
        assert_eq!(
            request.question,
            Question::Deliveries { per_s: 1000.0, besides: Besides::Nothing }
        );
        let burst = Load { burst: Some(8.into()), gap_ns: Some(10_000.into()), ..Load::NONE };
        let request = of(&planned("burst", burst, 1, &[0, 1]));
        assert!(request.prepare.ends_with(" burst=8 gap_ns=10000 seed=7"));
        assert_eq!(
            request.question,
            Question::Deliveries { per_s: 800_000.0, besides: Besides::Bursts }
        );
        let rare = Load { gap_ns: Some(3_000.into()), ..Load::NONE };
        let request = of(&planned("night-watch", rare, 1, &[0, 1]));
        assert!(request.prepare.starts_with("prepare queue java-abq open-loop cpus=0,1 "));
        assert!(request.prepare.ends_with(" rate_per_s=333333 arrivals=uniform seed=7"));
        let too_rare = Load { gap_ns: Some(700_000_000.into()), ..Load::NONE };
        assert!(!has_load(&too_rare), "1.43 messages per second");
        let mine = Load { lose: Some(Lose::Never), ..open.clone() };
        let request = of(&planned("for-me", mine, 1, &[0, 1]));
        assert!(request.prepare.starts_with("prepare queue java-abq open-loop cpus=0,1 "));
        assert!(!has_load(&Load { lose: Some(Lose::Newest), ..open.clone() }));
        let trace = Load { arrivals: Some(Arrivals::File), ..open };
        assert_eq!(Request::of(&planned("open-loop", trace, 1, &[0, 1]), 7), None);
    }

    #[test]
    fn the_receivers_cpu_is_the_second_one() {
        let several = planned("stream", Load::NONE, 3, &[4, 5, 6, 7]);
        let request = Request::of(&several, 1).unwrap();
        assert!(request.prepare.contains(" cpus=4,7,5,6 "), "{}", request.prepare);
        let mut free = several;
        free.cell.placement = Placement::Free;
        let request = Request::of(&free, 1).unwrap();
        assert!(request.prepare.contains(" cpus= "), "{}", request.prepare);
        assert_eq!(request.roams, [4, 5, 6, 7]);
    }

    #[test]
    fn scenarios_of_several_threads_are_asked_for_with_their_numbers() {
        let of = |scenario: &str, load: Load, senders, cpus: &[u32]| {
            let Request { prepare, question, .. } =
                Request::of(&planned(scenario, load, senders, cpus), 7).unwrap();
            let start = "prepare queue java-abq ";
            let common = format!(
                " wait=poll-backoff capacity=1024 batch=1 senders={senders} payload_bytes=8 "
            );
            let words = prepare.strip_prefix(start).unwrap().replace(&common, " … ");
            (words, question)
        };
        let load = Load { receivers: Some(2.into()), ..Load::NONE };
        assert_eq!(
            of("workers", load, 1, &[4, 5, 6]),
            ("workers cpus=6,4,5 … receivers=2 seed=7".into(), Question::Shared { receivers: 2 })
        );
        let rate = |arrivals, rate: u64| Load {
            arrivals: Some(arrivals),
            rate_per_s: Some(rate.into()),
            ..Load::NONE
        };
        let funnel = Load { important: Some(2.into()), ..rate(Arrivals::Poisson, 200_000) };
        let question = Question::Deliveries { per_s: 2e3, besides: Besides::Chatty(6) };
        let words = "funnel cpus=0,1 … important=2 rate_per_s=200000 arrivals=poisson seed=7";
        assert_eq!(of("funnel", funnel.clone(), 8, &[0, 1]), (words.into(), question));
        let depth = Load { depth: Some(1000.into()), ..Load::NONE };
        let words = "depth cpus=0,1 … depth=1000 seed=7";
        assert_eq!(of("depth", depth, 1, &[0, 1]), (words.into(), Question::Calls { depth: 1000 }));
        let flood = Load { lose: Some(Lose::Never), ..rate(Arrivals::Poisson, 10_000) };
        let words = "flood cpus=0,1 … rate_per_s=10000 arrivals=poisson seed=7";
        assert_eq!(of("flood", flood.clone(), 2, &[0, 1]), (words.into(), Question::SendCalls));
        assert!(!has_load(&Load { lose: Some(Lose::Oldest), ..flood }));
    }
}

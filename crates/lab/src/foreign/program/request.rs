use std::fmt::Write;

use threadtoll_record::{Cell, Experiment, Load, LockSubject, Placement, PlannedCell, Work};

use super::answer::Question;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    /// The line that prepares the cell.
    pub(super) prepare: String,
    pub(super) question: Question,
    roams: Vec<u32>,
}

impl Request {
    #[cfg(test)]
    pub(super) fn pinned(prepare: String, question: Question) -> Self {
        Request { prepare, question, roams: Vec::new() }
    }

    /// CPUs to which the whole program is restricted; empty if the program pins its threads itself.
    pub(crate) fn roams(&self) -> &[u32] {
        &self.roams
    }

    /// `None` if programs cannot measure the cell.
    pub(crate) fn of(planned: &PlannedCell) -> Option<Request> {
        let cell = &planned.cell;
        let (pinned, roams) = places(cell);
        let (prepare, question) = match (&planned.experiment, cell.queue(), cell.lock()) {
            (Experiment::Queue(scenario), Some(_), None) => queue(scenario, cell, &pinned)?,
            (Experiment::Latency | Experiment::Matrix | Experiment::Queue(_), None, None) => {
                (format!("prepare latency {} {pinned}", cell.name()), Question::RoundTrips)
            }
            (Experiment::Contention(scenario), None, Some(lock)) => {
                contention(scenario, lock, &pinned)?
            }
            _ => return None,
        };
        Some(Request { prepare, question, roams })
    }
}

/// `None` if programs cannot measure the scenario with this load and message size.
pub(super) fn question(scenario: &str, load: &Load, payload_bytes: u64) -> Option<Question> {
    let (question, plain) = match scenario {
        "ask-reply" => (Question::RoundTrips, Load::NONE),
        "stream" => (Question::Stream, Load::NONE),
        "broadcast" => {
            let Load { receivers, graph, .. } = *load;
            (Question::Stream, Load { receivers, graph, ..Load::NONE })
        }
        _ => return None,
    };
    (payload_bytes == 8 && *load == plain).then_some(question)
}

/// The request's word for the CPUs of the threads. If the threads are not pinned, this word names
/// no CPUs, and the CPUs that all threads share are returned as well.
fn places(cell: &Cell) -> (String, Vec<u32>) {
    let list = |cpus: &[u32]| {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        format!("cpus={}", cpus.join(","))
    };
    match (cell.placement, cell.cpus.as_slice()) {
        (Placement::Free, cpus) => (list(&[]), cpus.to_vec()),
        (_, [one]) => (list(&[*one, *one]), Vec::new()),
        (_, cpus) => (list(cpus), Vec::new()),
    }
}

fn queue(scenario: &str, cell: &Cell, pinned: &str) -> Option<(String, Question)> {
    let subject = cell.queue()?;
    let question = question(scenario, &subject.load, cell.payload_bytes)?;
    let (name, wait) = (&subject.queue, subject.wait.name());
    let mut line = format!("prepare queue {name} {scenario} {pinned} wait={wait}");
    if let Some(capacity) = subject.capacity {
        let _ = write!(line, " capacity={capacity}");
    }
    if subject.batch > 1 {
        let _ = write!(line, " batch={}", subject.batch);
    }
    if let (Some(receivers), Some(graph)) = (subject.load.receivers, subject.load.graph) {
        let _ = write!(line, " receivers={receivers} graph={}", graph.name());
    }
    (subject.senders == 1).then_some((line, question))
}

/// Supports only pools whose threads sleep: threads that compute would need our unit of work.
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
    Some((line, Question::Pool { tasks, cycle_ns: lock.cycle_ns() }))
}

#[cfg(test)]
mod tests {
    use threadtoll_record::{Budget, Graph, Origin, QueueSubject, Relation, Subject, Wait};

    use super::*;

    fn planned(scenario: &str, batch: u64, senders: u32, cpus: &[u32]) -> PlannedCell {
        let cell = Cell {
            subject: Subject::Queue(QueueSubject {
                queue: "java-abq".into(),
                origin: Origin::Java,
                wait: Wait::PollBackoff,
                capacity: Some(1024),
                ring_bytes: Some(8192),
                batch,
                version: "17".into(),
                senders,
                load: Load::NONE,
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
        let request = Request::of(&planned("ask-reply", 1, 1, &[2, 3])).unwrap();
        let line = "prepare queue java-abq ask-reply cpus=2,3 wait=poll-backoff capacity=1024";
        assert_eq!(request, Request::pinned(line.into(), Question::RoundTrips));
        let request = Request::of(&planned("stream", 16, 1, &[0])).unwrap();
        let line =
            "prepare queue java-abq stream cpus=0,0 wait=poll-backoff capacity=1024 batch=16";
        assert_eq!(request, Request::pinned(line.into(), Question::Stream));
        let mut free = planned("stream", 1, 1, &[4, 5]);
        free.cell.placement = Placement::Free;
        let request = Request::of(&free).unwrap();
        assert!(request.prepare.contains(" cpus= "), "{}", request.prepare);
        assert_eq!(request.roams(), [4, 5]);
    }

    #[test]
    fn a_request_has_the_receivers_of_a_broadcast() {
        let mut diamond = planned("broadcast", 16, 1, &[0, 1, 2, 3]);
        let Subject::Queue(queue) = &mut diamond.cell.subject else { panic!("a queue") };
        queue.load = Load { receivers: Some(3.into()), graph: Some(Graph::Diamond), ..Load::NONE };
        let line = "prepare queue java-abq broadcast cpus=0,1,2,3 wait=poll-backoff capacity=1024 \
                    batch=16 receivers=3 graph=diamond";
        let request = Request::of(&diamond).unwrap();
        assert_eq!(request, Request::pinned(line.into(), Question::Stream));
    }

    #[test]
    fn other_cells_are_not_asked_for() {
        assert_eq!(Request::of(&planned("stream", 1, 2, &[0, 1])), None);
        assert_eq!(Request::of(&planned("open-loop", 1, 1, &[0, 1])), None);
        let mut larger = planned("stream", 1, 1, &[0, 1]);
        larger.cell.payload_bytes = 64;
        assert_eq!(Request::of(&larger), None);
    }
}

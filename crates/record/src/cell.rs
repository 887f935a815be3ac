use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Build, LockSubject, Placement, QueueSubject, Relation, Subject, Work};

/// Memory layout of the two counters through which a mechanism such as `atomic-store` signals.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each counter in its own cache line.
    Own,
    /// Both counters in one cache line.
    Shared,
}

/// Use of the CPU's pause hint in spin loops.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Pause {
    /// Spin loops use the hint.
    On,
    /// Spin loops do not use the hint.
    Off,
}

/// Load from other threads while a cell is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// The other threads compute without touching memory.
    Spin,
    /// The other threads stream through memory larger than the caches.
    Memory,
    /// The other threads keep sleeping and waking up.
    Churn,
}

impl Neighbour {
    /// Short description of the other threads, such as `spinners`.
    pub fn threads(self) -> &'static str {
        match self {
            Neighbour::Spin => "spinners",
            Neighbour::Memory => "memory streams",
            Neighbour::Churn => "churn",
        }
    }
}

/// One mechanism, queue or lock, with all parameters that identify its measurement.
///
/// Equal cells describe the same measurement. Parameters that do not apply are absent.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Cell {
    /// Mechanism, queue or lock under test.
    #[serde(flatten)]
    pub subject: Subject,
    /// Placement of the threads.
    pub placement: Placement,
    /// CPUs of the cell's threads. Pinned mechanism: the CPU of the thread that sends first, then
    /// that of the other thread. Pinned queue: the CPUs of all senders, then that of the receiver;
    /// if several receivers share the messages, the CPUs of all receivers, then that of the sender.
    /// Pinned lock: the CPUs over which the threads are spread in turn. Same CPU: only that CPU.
    /// Free: all allowed CPUs.
    pub cpus: Vec<u32>,
    /// Relation of `cpus` to each other.
    pub relation: Relation,
    /// Bytes per message, including its 8-byte sequence number; 0 for locks.
    pub payload_bytes: u64,
    /// Layout of the mechanism's counters; absent if the mechanism has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Layout>,
    /// Use of the pause hint in the spin loop; absent if the mechanism does not offer the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// True if threads of the lowest priority spun on the CPUs to keep them from idling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_awake: bool,
    /// Load from other threads, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// Build of the subject; absent if it was built as part of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built: Option<Build>,
}

impl Cell {
    /// Name of the mechanism, queue or lock.
    pub fn name(&self) -> &str {
        self.subject.name()
    }

    /// Name of the mechanism; `None` if the subject is a queue or a lock.
    pub fn mechanism(&self) -> Option<&str> {
        match &self.subject {
            Subject::Mechanism { mechanism, .. } => Some(mechanism),
            Subject::Queue(_) | Subject::Lock(_) => None,
        }
    }

    /// The queue, if the subject is one.
    pub fn queue(&self) -> Option<&QueueSubject> {
        match &self.subject {
            Subject::Queue(queue) => Some(queue),
            Subject::Mechanism { .. } | Subject::Lock(_) => None,
        }
    }

    /// The lock and its workload, if the subject is a lock.
    pub fn lock(&self) -> Option<&LockSubject> {
        match &self.subject {
            Subject::Lock(lock) => Some(lock),
            Subject::Mechanism { .. } | Subject::Queue(_) => None,
        }
    }

    /// Returns `true` if more threads compete for CPUs than the cell has CPUs, so that its figures
    /// include the scheduler's time slices.
    ///
    /// Returns `false` if all threads were placed on one CPU on purpose, or if they sleep.
    pub fn oversubscribed(&self) -> bool {
        let threads = match &self.subject {
            Subject::Queue(queue) => queue.threads(),
            Subject::Lock(lock) if lock.work == Work::Spin => lock.threads as usize,
            Subject::Lock(_) | Subject::Mechanism { .. } => 0,
        };
        self.placement != Placement::SameCpu && threads > self.cpus.len()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Class, Load, Origin, Wait};

    pub(crate) fn stream(senders: u32) -> Cell {
        Cell {
            subject: Subject::Queue(QueueSubject {
                queue: "funnel".into(),
                origin: Origin::Ours,
                wait: Wait::SpinYield,
                capacity: None,
                ring_bytes: None,
                batch: 256,
                version: "0.1.0".into(),
                senders,
                load: Load::NONE,
            }),
            placement: Placement::Pinned,
            cpus: vec![0, 1],
            relation: Relation::SameLlc,
            payload_bytes: 8,
            line: None,
            pause: None,
            keep_awake: false,
            neighbour: None,
            built: None,
        }
    }

    #[test]
    fn threads_beyond_the_cpus_oversubscribe_a_cell() {
        assert!(stream(2).oversubscribed() && !stream(1).oversubscribed());
    }

    /// Files from before there were queues can still be read.
    #[test]
    fn a_cell_is_written_flat_and_a_mechanism_as_ever() {
        let text = r#"{"mechanism":"futex","placement":"pinned","cpus":[0,1],"relation":"same-llc","payload_bytes":8}"#;
        let cell: Cell = serde_json::from_str(text).unwrap();
        assert_eq!((cell.mechanism(), cell.queue()), (Some("futex"), None));
        assert_eq!(serde_json::to_string(&cell).unwrap(), text);
        assert_eq!(cell.subject.class(), Some(Class::Sleep));
        let new = r#"{"mechanism":"carrier-pigeon","class":"poll""#;
        let other: Cell =
            serde_json::from_str(&text.replace(r#"{"mechanism":"futex""#, new)).unwrap();
        assert_eq!(other.subject, Subject::mechanism("carrier-pigeon", Class::Poll));
        let unknown: Cell = serde_json::from_str(&text.replace("futex", "smoke-signal")).unwrap();
        assert_eq!(unknown.subject.class(), None);
        let text = r#"{"queue":"funnel","origin":"ours","wait":"spin-yield","capacity":null,"ring_bytes":null,"batch":256,"version":"0.1.0","senders":1,"placement":"pinned","cpus":[0,1],"relation":"same-llc","payload_bytes":8}"#;
        assert_eq!(serde_json::to_string(&stream(1)).unwrap(), text);
        assert_eq!(serde_json::from_str::<Cell>(text).unwrap(), stream(1));
        // Files from before queues had a capacity can still be read.
        let old = text.replace(r#""capacity":null,"ring_bytes":null,"#, "");
        assert_eq!(serde_json::from_str::<Cell>(&old).unwrap(), stream(1));
    }
}

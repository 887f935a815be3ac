use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Text};

/// A System V semaphore for which threads wait, or the set of it. Its state is read a few times a
/// second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SysvSemaphore {
    /// ID of the semaphore's set.
    pub set: u32,
    /// Number of the semaphore in its set; null if threads wait for several of the set, or if no
    /// wait could be examined.
    pub number: Option<u16>,
    /// Key of the set; null if it has none (`IPC_PRIVATE`), or if it is not known.
    pub key: Option<u32>,
    /// Number of readings; 0 for a semaphore of another IPC namespace, and without permission.
    pub readings: Count,
    /// Largest value that was read; null without readings.
    pub value_max: Option<u32>,
    /// Use of the semaphore.
    #[serde(rename = "use")]
    pub usage: SemaphoreUse,
    /// Share of the readings in which the semaphore was held; null unless it is used as a lock.
    pub held_share: Option<Fraction>,
    /// Process that was most often the last to change the value while threads waited.
    pub changed_by: Option<LastChange>,
}

/// Use of a semaphore, as far as readings of its state show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SemaphoreUse {
    /// Probably a lock: one process at a time held it, those that waited for it held it at other
    /// times, and its value was never above 1.
    Lock,
    /// A signal: processes that waited for it were the last to have taken it.
    Signal,
    /// Unknown.
    Unknown,
}

/// The process that was most often the last to change a semaphore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastChange {
    /// PID of the process.
    pub pid: u32,
    /// Name of the process; empty if it had ended.
    pub name: Text,
    /// Share of the readings with waiting threads in which this process was the last.
    pub share: Fraction,
}

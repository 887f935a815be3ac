use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WaitFamily;

/// Way in which the threads of a mechanism wait for each other. It decides on which CPUs the
/// mechanism can be measured, and what its figures mean.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A single thread both sends and receives.
    OneThread,
    /// A waiting thread spins and never yields its CPU.
    Spin,
    /// A waiting thread polls, and yields its CPU between two attempts.
    Poll,
    /// A waiting thread sleeps in the kernel until it is woken.
    Sleep,
}

impl Class {
    /// Wait family of the class. Mechanisms and queues are compared with others of their family.
    pub fn family(self) -> WaitFamily {
        match self {
            Class::Spin | Class::Poll => WaitFamily::Spinning,
            Class::OneThread | Class::Sleep => WaitFamily::Blocking,
        }
    }

    /// Class implied by the name of a mechanism. Files state a class only if it differs.
    pub(crate) fn usual(mechanism: &str) -> Option<Class> {
        const ONE_THREAD: &[&str] = &["function-call", "fiber-switch", "async-wake"];
        const SPIN: &[&str] = &["atomic-store", "atomic-rmw", "atomic-seqcst"];
        const POLL: &[&str] = &["spin-yield", "sleep-poll"];
        const SLEEP: &[&str] = &[
            "futex",
            "park",
            "std-condvar",
            "std-condvar-after",
            "pthread-condvar",
            "pthread-condvar-after",
            "parking-lot-condvar",
            "parking-lot-condvar-after",
            "semaphore",
            "sysv-semaphore",
            "eventfd",
            "os-pipe",
            "socketpair",
            "tcp-loopback",
            "std-mpsc",
        ];
        [
            (ONE_THREAD, Class::OneThread),
            (SPIN, Class::Spin),
            (POLL, Class::Poll),
            (SLEEP, Class::Sleep),
        ]
        .into_iter()
        .find_map(|(names, class)| names.contains(&mechanism).then_some(class))
    }
}

//! Classes of mechanisms, by how their ends wait.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WaitFamily;

/// How an end waits. This decides where a mechanism can be measured and what its figures mean.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Both ends are one thread.
    OneThread,
    /// A waiting end spins and never yields its CPU.
    Spin,
    /// A waiting end polls and yields its CPU in between.
    Poll,
    /// A waiting end sleeps in the kernel until it is woken.
    Sleep,
}

impl Class {
    /// The wait family whose members it is compared with.
    pub fn family(self) -> WaitFamily {
        match self {
            Class::Spin | Class::Poll => WaitFamily::Spinning,
            Class::OneThread | Class::Sleep => WaitFamily::Blocking,
        }
    }

    /// Class of a mechanism, for files whose cells do not contain it.
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

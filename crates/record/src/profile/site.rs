use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Address, Interval, NameFrom};
use crate::{Count, Fraction, Ratio, Text};

/// A stack of threads that waited for a lock or held it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// Role of the threads at the lock.
    pub role: Role,
    /// Functions of the stack, innermost first, including inlined ones.
    pub frames: Vec<Text>,
    /// Number of frames that unwinding did not find; they were inferred from return addresses on
    /// the stack.
    pub inferred_frames: u32,
    /// Number of samples with this stack.
    pub samples: Count,
    /// Fraction of the samples of this role that have this stack. Samples of unlisted stacks count,
    /// too.
    #[serde(default)]
    pub share: Option<Fraction>,
    /// 95% interval of `share`.
    #[serde(default)]
    pub interval95: Option<Interval<Fraction>>,
    /// Number of acquisitions from this stack.
    pub count: Option<Count>,
    /// Sum of the waiting times, in nanoseconds.
    pub wait_ns: Option<Count>,
    /// Sum of the hold times, in nanoseconds.
    pub hold_ns: Option<Count>,
}

/// Role of the threads at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The threads wait for the lock.
    Waiter,
    /// The threads hold the lock.
    Holder,
    /// A thread at one of several such sites holds the lock, but the samples do not show at which
    /// one.
    Candidate,
}

impl Role {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Role::Waiter => "waiter",
            Role::Holder => "holder",
            Role::Candidate => "candidate",
        }
    }
}

/// Something other than a lock that threads wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleWait {
    /// Name of the object that threads wait for.
    pub name: Text,
    /// Origin of the object's name.
    pub name_from: NameFrom,
    /// Address of the object.
    pub address: Address,
    /// Number of threads seen waiting.
    pub threads: u32,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Ratio,
    /// 95% interval of `queue_mean`.
    pub queue_mean_interval95: Option<Interval<Ratio>>,
    /// Maximum number of threads seen waiting at once.
    pub queue_max: u32,
    /// Code that waits, in descending order of samples.
    pub sites: Vec<Site>,
}

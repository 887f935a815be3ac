//! Places in the code at which threads wait for a lock or hold it, and things other than locks that
//! threads wait for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Address, Interval, NameFrom};
use crate::{Count, Fraction, Ratio, Text};

/// A stack that threads had while they waited for a lock or held it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// Role of the threads.
    pub role: Role,
    /// The functions, innermost first, including inlined ones.
    pub frames: Vec<Text>,
    /// Number of frames that unwinding did not find, and that were inferred from return addresses
    /// on the stack.
    pub inferred_frames: u32,
    /// Number of samples.
    pub samples: Count,
    /// Fraction of the samples of this role that have this stack; all stacks count, including those
    /// that are not listed.
    #[serde(default)]
    pub share: Option<Fraction>,
    /// Its 95% interval.
    #[serde(default)]
    pub interval95: Option<Interval<Fraction>>,
    /// Number of acquisitions.
    pub count: Option<Count>,
    /// Sum of the waiting times.
    pub wait_ns: Option<Count>,
    /// Sum of the hold times.
    pub hold_ns: Option<Count>,
}

/// Role of the threads at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// They wait.
    Waiter,
    /// They hold the lock.
    Holder,
    /// One of the threads at several such sites holds the lock, but the samples do not show at
    /// which site.
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
    /// Its name.
    pub name: Text,
    /// Origin of the name.
    pub name_from: NameFrom,
    /// Its address.
    pub address: Address,
    /// Number of threads seen waiting.
    pub threads: u32,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Ratio,
    /// Its 95% interval.
    pub queue_mean_interval95: Option<Interval<Ratio>>,
    /// Maximum number of threads seen waiting at once.
    pub queue_max: u32,
    /// The code that waits, in descending order of samples.
    pub sites: Vec<Site>,
}

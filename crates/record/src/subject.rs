//! The subject of a cell: a mechanism, a queue or a lock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Class, LockSubject, QueueSubject, WaitFamily};

/// What a cell measures. A file tells them apart by their first field.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(untagged)]
pub enum Subject {
    /// A way of handing over.
    Mechanism {
        /// Its name, as `threadtoll list mechanisms` gives it.
        mechanism: String,
        /// How its ends wait; absent where the name tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Class>,
    },
    /// A queue.
    Queue(QueueSubject),
    /// A lock.
    Lock(LockSubject),
}

impl Subject {
    /// The mechanism of that name, whose ends wait like this.
    pub fn mechanism(name: impl Into<String>, class: Class) -> Self {
        let mechanism = name.into();
        let class = (Class::usual(&mechanism) != Some(class)).then_some(class);
        Subject::Mechanism { mechanism, class }
    }

    /// Its name, whatever it is.
    pub fn name(&self) -> &str {
        match self {
            Subject::Mechanism { mechanism, .. } => mechanism,
            Subject::Queue(queue) => &queue.queue,
            Subject::Lock(lock) => &lock.lock,
        }
    }

    /// How the ends of a mechanism wait, if it is known.
    pub fn class(&self) -> Option<Class> {
        match self {
            Subject::Mechanism { mechanism, class } => class.or_else(|| Class::usual(mechanism)),
            Subject::Queue(_) | Subject::Lock(_) => None,
        }
    }

    /// How it waits, as far as ratios care.
    pub fn family(&self) -> WaitFamily {
        match self {
            Subject::Queue(queue) => queue.wait.family(),
            Subject::Mechanism { .. } => self.class().map_or(WaitFamily::Blocking, Class::family),
            Subject::Lock(_) => WaitFamily::Blocking,
        }
    }
}

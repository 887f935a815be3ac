use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Class, LockSubject, QueueSubject, Text, WaitFamily};

/// Keys of subjects that only older versions measured. A file with such a key is rejected.
/// Otherwise, its cell would be mistaken for another one.
const REMOVED: [&str; 3] = ["between", "hops", "stall_ns"];

/// Subject of a cell. In files, the key `mechanism`, `queue` or `lock` tells the type of subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Subject {
    /// A mechanism.
    Mechanism {
        /// Name of the mechanism, as in `threadtoll list mechanisms`.
        mechanism: Text,
        /// Wait strategy of the mechanism's threads; absent if the name implies it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Class>,
    },
    /// A queue.
    Queue(QueueSubject),
    /// A lock.
    Lock(LockSubject),
}

impl Subject {
    /// The mechanism with this name and class.
    pub fn mechanism(name: impl Into<Text>, class: Class) -> Self {
        let mechanism = name.into();
        let class = (Class::usual(&mechanism) != Some(class)).then_some(class);
        Subject::Mechanism { mechanism, class }
    }

    /// Name of the mechanism, queue or lock.
    pub fn name(&self) -> &str {
        match self {
            Subject::Mechanism { mechanism, .. } => mechanism,
            Subject::Queue(queue) => &queue.queue,
            Subject::Lock(lock) => &lock.lock,
        }
    }

    /// Class of a mechanism; `None` if the class is unknown, and for queues and locks.
    pub fn class(&self) -> Option<Class> {
        match self {
            Subject::Mechanism { mechanism, class, .. } => {
                class.or_else(|| Class::usual(mechanism))
            }
            Subject::Queue(_) | Subject::Lock(_) => None,
        }
    }

    /// Wait family of the subject; blocking for locks, and for mechanisms of an unknown class.
    pub fn family(&self) -> WaitFamily {
        match self {
            Subject::Queue(queue) => queue.wait.family(),
            Subject::Mechanism { .. } => self.class().map_or(WaitFamily::Blocking, Class::family),
            Subject::Lock(_) => WaitFamily::Blocking,
        }
    }
}

/// Not derived: a derived implementation would only report that no variant matches.
impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Mechanism {
            mechanism: Text,
            #[serde(default)]
            class: Option<Class>,
        }

        let members = Map::deserialize(deserializer)?;
        let is_of = |name| members.contains_key(name);
        let (mechanism, queue) = (is_of("mechanism"), is_of("queue"));
        let members = Value::Object(members);
        if let Some(key) = REMOVED.iter().find(|key| members.get(**key).is_some()) {
            return Err(D::Error::custom(format!(
                "this version does not know `{key}`: use the version that wrote the file"
            )));
        }
        if mechanism {
            let Mechanism { mechanism, class } =
                Mechanism::deserialize(members).map_err(D::Error::custom)?;
            Ok(Subject::Mechanism { mechanism, class })
        } else if queue {
            let queue = QueueSubject::deserialize(members).map_err(D::Error::custom)?;
            queue.validate().map_err(D::Error::custom)?;
            Ok(Subject::Queue(queue))
        } else {
            let lock = LockSubject::deserialize(members).map_err(D::Error::custom)?;
            lock.validate().map_err(D::Error::custom)?;
            Ok(Subject::Lock(lock))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_only_older_versions_measured_are_refused_by_name() {
        let text = r#"{"queue":"pipe","origin":"ours","wait":"spin","batch":1,"version":"0.1.0","senders":1,"rate_per_s":10000}"#;
        assert!(serde_json::from_str::<Subject>(text).is_ok());
        for key in REMOVED {
            let old = text.replace("}", &format!(",\"{key}\":3}}"));
            let error = serde_json::from_str::<Subject>(&old).unwrap_err();
            assert!(error.to_string().contains(&format!("does not know `{key}`")), "{error}");
        }
    }
}

//! Profiles of the schema `threadtoll.profile/1`. Its idle time includes every wait that is not for
//! a lock: for work, for other threads and for child processes.

use serde_json::{Map, Value, json};

use super::read::render_error;
use crate::Line;

/// Note on a file of the former schema. The file's name precedes it.
pub(super) const NOTE: &str = "was written by an older version, which did not distinguish waits \
                               for work from waits for other threads: both are shown as \
                               “other”.";

pub(super) fn parse(text: &[u8]) -> Result<Line, String> {
    let mut line: Value = serde_json::from_slice(text).map_err(|error| render_error(&error))?;
    renew(&mut line);
    serde_json::from_value(line).map_err(|error| render_error(&error))
}

/// Converts a profile to the current schema. The former idle time mixes several of the current
/// kinds, so it becomes unknown. Parked threads are assumed to wait for other threads.
fn renew(profile: &mut Value) {
    let Some(profile) = profile.as_object_mut() else { return };
    profile.insert("schema".into(), json!("threadtoll.profile/2"));
    renew_time(profile);
    let processes = profile.get_mut("processes").and_then(Value::as_array_mut);
    for process in processes.into_iter().flatten() {
        process.as_object_mut().into_iter().for_each(renew_time);
    }
}

fn renew_time(owner: &mut Map<String, Value>) {
    let Some(time) = owner.get_mut("time").and_then(Value::as_object_mut) else { return };
    let share = |value: Option<Value>| value.and_then(|value| value.as_f64()).unwrap_or(0.0);
    let idle = share(time.remove("idle_wait"));
    let parked = share(time.remove("parked"));
    let unknown = share(time.remove("unknown"));
    time.insert("thread_wait".into(), json!(parked));
    time.insert("unknown".into(), json!((unknown + idle).clamp(0.0, 1.0)));
    if let Some(within) = time.get_mut("interval95").and_then(Value::as_object_mut) {
        // The new `unknown` is the sum of two shares; the interval of the sum is not known.
        within.remove("unknown");
        within.remove("idle_wait");
        if let Some(parked) = within.remove("parked") {
            within.insert("thread_wait".into(), parked);
        }
    }
}

//! Time for which code of a peer, or a cell, may make no progress.

use std::time::Duration;

/// A number of seconds, for tests: they would wait for nothing else.
const VARIABLE: &str = "THREADTOLL_PATIENCE_S";

/// The time, 20 s unless a test says otherwise.
pub(crate) fn patience() -> Duration {
    let seconds = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    seconds.map_or(threadtoll_lab::PATIENCE, Duration::from_secs)
}

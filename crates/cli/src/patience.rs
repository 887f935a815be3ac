//! Maximum time for which a peer's code, or a cell, may make no progress.

use std::time::Duration;

/// Environment variable for a limit in seconds, so that tests need not wait long.
const VARIABLE: &str = "THREADTOLL_PATIENCE_S";

/// 20 s, unless a test sets a different limit.
pub(crate) fn patience() -> Duration {
    let seconds = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    seconds.map_or(threadtoll_lab::PATIENCE, Duration::from_secs)
}

/// Formats nanoseconds since the Unix epoch as RFC 3339 in UTC with milliseconds
/// (`2026-11-21T10:00:00.000Z`).
///
/// Times outside the calendar's range are written as the epoch.
pub fn timestamp(unix_ns: i128) -> String {
    let time = jiff::Timestamp::from_nanosecond(unix_ns).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

/// Parses a timestamp into nanoseconds since the Unix epoch; `None` if the text is not a timestamp.
pub fn unix_ns(timestamp: &str) -> Option<i128> {
    let time: jiff::Timestamp = timestamp.parse().ok()?;
    Some(time.as_nanosecond())
}

/// Id of a run: its start to the millisecond, and the process id, which distinguishes runs that
/// start at the same time.
pub fn run_id(unix_ns: i128, pid: u32) -> String {
    let digits: String =
        timestamp(unix_ns).chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    format!("{digits}-{pid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(timestamp(1_795_255_200_000_000_000), "2026-11-21T10:00:00.000Z");
        assert_eq!(timestamp(1_795_255_200_123_456_789), "2026-11-21T10:00:00.123Z");
        assert_eq!(timestamp(i128::MAX), "1970-01-01T00:00:00.000Z");
        assert_eq!(unix_ns("2026-11-21T10:00:00.123Z"), Some(1_795_255_200_123_000_000));
        assert_eq!(unix_ns("yesterday"), None);
    }

    #[test]
    fn two_processes_name_their_runs_differently() {
        assert_eq!(run_id(1_795_255_200_123_000_000, 7), "20261121T100000123-7");
        assert_ne!(run_id(0, 7), run_id(0, 8));
    }
}

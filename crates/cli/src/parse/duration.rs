use threadtoll_lab::plan::MAX_NS;

use super::list::list;
use crate::failure::Failure;

pub(crate) const DURATIONS: &str = "write durations as 250ns, 2.5us, 5ms or 2s";

/// Parses a duration of at least a nanosecond, rounded to whole nanoseconds.
pub(crate) fn duration_ns(option: &str, text: &str) -> Result<u64, Failure> {
    match duration_or_zero_ns(option, text)? {
        0 => Err(bad(option, text, "it must be longer than zero")),
        ns => Ok(ns),
    }
}

/// Parses a list of durations, each of at most `most` nanoseconds.
pub(crate) fn durations_ns(option: &str, text: &str, most: u64) -> Result<Vec<u64>, Failure> {
    list(option, text, "time", |part| match duration_ns(option, part)? {
        ns if ns <= most => Ok(ns),
        _ => {
            let most_s = most as f64 / 1e9;
            Err(Failure::usage(format!("{option} {part}: it must be at most {most_s} s"))
                .hint("use a shorter time"))
        }
    })
}

/// Like [`duration_ns`], but accepts zero.
pub(crate) fn duration_or_zero_ns(option: &str, text: &str) -> Result<u64, Failure> {
    let ns = duration(text).map_err(|why| bad(option, text, why))?;
    if ns > 0.0 && ns < 1.0 {
        return Err(bad(option, text, "it is shorter than a nanosecond"));
    }
    Ok(ns.round() as u64)
}

fn bad(option: &str, text: &str, why: &str) -> Failure {
    Failure::usage(format!("{option} {text}: {why}")).hint(DURATIONS)
}

/// Parses a duration into nanoseconds, including zero and fractions. The error is only a reason and
/// does not contain `text`.
pub(crate) fn duration(text: &str) -> Result<f64, &'static str> {
    let unit_at = text.find(|c: char| c.is_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty()
        || !number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-' || c == '+')
    {
        return Err("not a duration");
    }
    let value: f64 = number.parse().map_err(|_| "not a duration")?;
    if value < 0.0 {
        return Err("a duration cannot be negative");
    }
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        // Zero needs no unit.
        "" if value == 0.0 => 1.0,
        "" => return Err("the unit is missing"),
        _ => return Err("unknown unit"),
    };
    let ns = value * scale;
    if ns > MAX_NS as f64 {
        return Err("it is longer than a day");
    }
    // Adding zero turns −0 into 0.
    Ok(ns + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, ns) in [
            ("250ns", 250),
            ("2.5us", 2500),
            ("5ms", 5_000_000),
            ("2s", 2_000_000_000),
            ("1µs", 1000),
        ] {
            assert_eq!(duration_ns("--time", text).unwrap(), ns, "{text}");
        }
    }

    #[test]
    fn bad_durations_are_rejected() {
        let bad = [
            "", "0", "0s", "-1s", "nonsense", "5", "1 s", "1e3s", "inf", "NaNs", "1.2.3s", "ms",
            "0.1ns", "2d", "90000s", "--5s",
        ];
        for text in bad {
            assert!(duration_ns("--time", text).is_err(), "{text}");
            let zero = matches!(text, "0" | "0s");
            assert_eq!(duration_or_zero_ns("--repeat", text).ok(), zero.then_some(0), "{text}");
        }
    }
}

use crate::failure::Failure;

const HINT: &str = "write rates as 20/s or 0.5/s";
/// Maximum rate per second: more than one arrival per picosecond is a typing error.
const MAX_PER_S: f64 = 1e12;
/// Minimum rate per second: one arrival in thirty years.
const MIN_PER_S: f64 = 1e-9;

/// Parses a rate, such as `20/s`, into a number per second.
pub(crate) fn rate_per_s(option: &str, text: &str) -> Result<f64, Failure> {
    let bad = |why: &str| Failure::usage(format!("{option} {text}: {why}")).hint(HINT);
    let (number, unit) = text.split_once('/').unwrap_or((text, ""));
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    let rate: f64 = number.parse().ok().filter(|_| plain).ok_or_else(|| bad("not a rate"))?;
    match unit {
        "s" => {}
        "" => return Err(bad("the unit is missing")),
        _ => return Err(bad("unknown unit")),
    }
    match rate {
        rate if rate < 0.0 => Err(bad("a rate cannot be negative")),
        0.0 => Err(bad("it must be above zero")),
        rate if rate < MIN_PER_S => Err(bad("it is less than one in thirty years")),
        rate if rate > MAX_PER_S => Err(bad("it is more than one per picosecond")),
        rate => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_per_second() {
        for (text, rate) in [("20/s", 20.0), ("0.5/s", 0.5), (".5/s", 0.5), ("1000000/s", 1e6)] {
            assert_eq!(rate_per_s("--arrivals", text).unwrap(), rate, "{text}");
        }
        for text in [
            "",
            "/s",
            "20",
            "20/",
            "20/min",
            "0/s",
            "-1/s",
            "1e3/s",
            "inf/s",
            "NaN/s",
            "20 /s",
            "20/s/s",
            "0.0000000001/s",
            "9999999999999/s",
            "../s",
            "many",
        ] {
            assert!(rate_per_s("--arrivals", text).is_err(), "{text}");
        }
    }
}

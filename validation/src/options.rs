//! Options `--name value`, and durations (`200us`, `5ms`, `1s`, `30ns`).

/// Value of an option, or its default.
pub fn option(name: &str, default: &str) -> String {
    given(name).unwrap_or_else(|| default.to_owned())
}

/// Value of an option, if it was given.
pub fn given(name: &str) -> Option<String> {
    let mut words = std::env::args();
    words.find(|word| word.strip_prefix("--") == Some(name))?;
    words.next()
}

/// A number.
pub fn number(name: &str, default: &str) -> f64 {
    let text = option(name, default);
    text.parse().unwrap_or_else(|_| fail(&format!("--{name} {text} is not a number")))
}

/// A duration, in nanoseconds.
pub fn duration_ns(name: &str, default: &str) -> f64 {
    let text = option(name, default);
    parse_duration(&text).unwrap_or_else(|| fail(&format!("--{name} {text} is not a duration")))
}

fn parse_duration(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let value: f64 = text[..unit].parse().ok()?;
    let factor = match &text[unit..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(value * factor)
}

/// Prints a message and ends the program as for bad usage.
pub fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2)
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("200us"), Some(200e3));
        assert_eq!(parse_duration("1.5ms"), Some(1.5e6));
        assert_eq!(parse_duration("5"), None);
        assert_eq!(parse_duration("5h"), None);
    }
}

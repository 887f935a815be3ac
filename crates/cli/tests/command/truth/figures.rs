//! Figures in printed text.

/// A figure and its interval, each as wide as its rounding allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    /// In nanoseconds, if it has a unit of time.
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Figure {
    pub(super) fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    pub(super) fn overlaps(&self, [least, most]: [f64; 2]) -> bool {
        self.low <= most && least <= self.high
    }

    /// The figure lies in its own interval.
    pub(super) fn is_sound(&self) -> bool {
        self.holds(self.value)
    }
}

/// A number as printed: its value, and half a unit of its last digit.
fn number(text: &str) -> Option<(f64, f64)> {
    let text = text.trim_start_matches('<');
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Some((text.parse().ok()?, 0.5 * 10f64.powi(-(decimals as i32))))
}

fn unit(text: &str) -> Option<f64> {
    match text {
        "ns" | "×" | "" => Some(1.0),
        "µs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

/// A number with its unit.
fn quantity(text: &str) -> Option<(f64, f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".<".contains(c))).unwrap_or(text.len());
    let (digits, name) = text.split_at(end);
    let (value, half) = number(digits)?;
    Some((value, half, name.trim()))
}

/// Parses a range: `50.2–50.6 ns`, `980 ns–1.02 µs`, `1.26–1.28`, `12.1 ns`. One without a unit
/// has that of its figure.
fn range(text: &str, unit_of_figure: f64) -> Option<[f64; 2]> {
    let (low, high) = text.split_once('–').unwrap_or((text, text));
    let (high, half_high, high_unit) = quantity(high)?;
    let (low, half_low, low_unit) = quantity(low)?;
    let scale = |name: &str| if name.is_empty() { Some(unit_of_figure) } else { unit(name) };
    let of_high = scale(high_unit)?;
    let of_low = if low_unit.is_empty() { of_high } else { scale(low_unit)? };
    Some([(low - half_low) * of_low, (high + half_high) * of_high])
}

/// A figure at the start of the text, with what follows it: `50.4 ns (50.2–50.6 ns) through …`,
/// `1.27× (1.26–1.28)`. Without an interval, that of its rounding.
pub(super) fn figure(text: &str) -> Option<(Figure, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || ".<".contains(c)));
    let digits = digits.unwrap_or(text.len());
    let after = &text[digits..];
    let name = ["×", " ns", " µs", " ms", " s"].into_iter().find(|name| after.starts_with(name));
    let name = name.unwrap_or_default();
    let rest = &after[name.len()..];
    let (value, half) = number(&text[..digits])?;
    let scale = unit(name.trim())?;
    let within = rest.strip_prefix(" (").and_then(|rest| rest.split_once(')'));
    let within = within.and_then(|(inner, rest)| Some((range(inner, scale)?, rest)));
    let ([low, high], rest) =
        within.unwrap_or(([(value - half) * scale, (value + half) * scale], rest));
    Some((Figure { value: value * scale, low, high }, rest))
}

/// Returns the parts of a text that fill the braces of a form. Another sentence may follow.
pub(super) fn parts<'t>(text: &'t str, form: &str) -> Option<Vec<&'t str>> {
    let mut literals = form.split('{').map(|part| part.split_once('}').map_or(part, |(_, l)| l));
    let mut rest = text.strip_prefix(literals.next()?)?;
    let literals: Vec<&str> = literals.collect();
    let mut parts = Vec::new();
    for (nth, literal) in literals.iter().enumerate() {
        // The stop at the end is not the first point.
        let last = nth + 1 == literals.len();
        let at = if last { rest.rfind(literal)? } else { rest.find(literal)? };
        parts.push(&rest[..at]);
        rest = &rest[at + literal.len()..];
    }
    Some(parts)
}

#[test]
fn figures_are_read_as_printed() {
    let read =
        |text| figure(text).map(|(figure, rest)| (figure.value, figure.low, figure.high, rest));
    let close = |found: Option<(f64, f64, f64, &str)>, wanted: (f64, f64, f64, &str)| {
        let (value, low, high, rest) = found.unwrap();
        let off = [value - wanted.0, low - wanted.1, high - wanted.2];
        assert!(off.iter().all(|off| off.abs() < 1e-6) && rest == wanted.3, "{found:?}");
    };
    close(read("50.4 ns (50.2–50.6 ns) through"), (50.4, 50.15, 50.65, " through"));
    close(read("1.27× (1.26–1.28)"), (1.27, 1.255, 1.285, ""));
    close(read("999 ns (980 ns–1.02 µs)."), (999.0, 979.5, 1025.0, "."));
    close(read("12.0 ns within"), (12.0, 11.95, 12.05, " within"));
    assert_eq!(figure("none"), None);
    let form = "Of {mechanism}’s {time}, it is {awake}.";
    let told = "Of futex’s 4 µs, it is 2.5 µs.";
    assert_eq!(parts(told, form), Some(vec!["futex", "4 µs", "2.5 µs"]));
    assert_eq!(parts("On futex", form), None);
}

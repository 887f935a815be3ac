//! Figures for human readers: three significant digits, with units.

pub(crate) const UNKNOWN: &str = "–";

const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];

/// A time given in nanoseconds: `45.0 ns`, `2.08 µs`, `16.8 ms`.
pub(crate) fn time(ns: f64) -> String {
    let (figure, unit) = scaled(ns);
    if figure.is_empty() { UNKNOWN.into() } else { format!("{figure} {unit}") }
}

/// A time that may be minutes or hours: `45.0 s`, `3.2 min`, `2.5 h`.
pub(crate) fn long_time(ns: f64) -> String {
    match ns / 60e9 {
        minutes if !(2.0..1e6).contains(&minutes) => time(ns),
        minutes if minutes < 120.0 => format!("{minutes:.1} min"),
        minutes => format!("{:.1} h", minutes / 60.0),
    }
}

pub(crate) fn maybe_time(ns: Option<impl Into<f64>>) -> String {
    ns.map_or_else(|| UNKNOWN.into(), |ns| time(ns.into()))
}

/// A round time, without superfluous digits: `45 ns`, `10 µs`, `2.5 ms`.
pub(crate) fn round_time(ns: f64) -> String {
    let (figure, unit) = scaled(ns);
    let figure = without_zeros(&figure);
    if figure.is_empty() { UNKNOWN.into() } else { format!("{figure} {unit}") }
}

/// A round number, without superfluous digits: `0.5`, `10`.
pub(crate) fn round_digits(value: f64) -> String {
    without_zeros(&digits(value)).into()
}

fn without_zeros(figure: &str) -> &str {
    if figure.contains('.') { figure.trim_end_matches('0').trim_end_matches('.') } else { figure }
}

/// Two times as a range, with a single unit if both have the same: `2.08–2.36 µs`.
pub(crate) fn range(low_ns: f64, high_ns: f64) -> String {
    let ((low, low_unit), (high, high_unit)) = (scaled(low_ns), scaled(high_ns));
    if (&low, low_unit) == (&high, high_unit) {
        round_time(low_ns)
    } else if low_unit == high_unit {
        format!("{low}–{high} {high_unit}")
    } else {
        format!("{low} {low_unit}–{high} {high_unit}")
    }
}

fn scaled(ns: f64) -> (String, &'static str) {
    if !ns.is_finite() {
        return (String::new(), "");
    }
    let (scale, unit) =
        UNITS.into_iter().find(|(scale, _)| (ns / scale).abs() < 999.5).unwrap_or(UNITS[3]);
    (digits(ns / scale), unit)
}

/// Three significant digits, or all digits before the decimal point, grouped as in [`count`].
pub(crate) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.into();
    }
    match value.abs() {
        0.0 => "0".into(),
        size if size < 0.0005 => "<0.001".into(),
        size if size < 0.9995 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        size if size < 9999.5 => format!("{value:.0}"),
        size if size < 999_999_999.5 && value > 0.0 => count(size.round() as u64),
        size if size < 999_999_999.5 => format!("-{}", count(size.round() as u64)),
        _ => format!("{value:.1e}"),
    }
}

/// A number per second: `158`, `1.53 M`.
pub(crate) fn per_second(value: f64) -> String {
    if value < 1e6 { digits(value) } else { format!("{} M", digits(value / 1e6)) }
}

pub(crate) fn range_per_second([low, high]: [f64; 2]) -> String {
    if low < 1e6 || high < 1e6 {
        format!("{}–{}", per_second(low), per_second(high))
    } else {
        format!("{}–{} M", digits(low / 1e6), digits(high / 1e6))
    }
}

/// Rounds a figure as its text does, so that a ratio on a screen is the ratio of the figures shown.
pub(crate) fn shown(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digit = 10f64.powf(value.abs().log10().floor() - 2.0);
    (value / digit).round() * digit
}

/// A number of bytes in the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0 => "0 B".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

pub(crate) fn ratio(value: f64) -> String {
    format!("{}×", digits(value))
}

/// A share between 0 and 1, in percent with two significant digits.
pub(crate) fn share(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.into();
    }
    let percent = value * 100.0;
    match percent.abs() {
        0.0 => "0%".into(),
        size if size < 0.00005 => "<0.0001%".into(),
        size if size < 0.0095 => format!("{percent:.4}%"),
        size if size < 0.095 => format!("{percent:.3}%"),
        size if size < 0.95 => format!("{percent:.2}%"),
        size if size < 9.95 => format!("{percent:.1}%"),
        size if size < 99.5 => format!("{percent:.0}%"),
        size if size < 100.0 => ">99%".into(),
        size if size < 1e6 => format!("{percent:.0}%"),
        _ => format!("{percent:.0e}%"),
    }
}

/// A share in whole percents.
pub(crate) fn percent(value: f64) -> String {
    match value * 100.0 {
        percent if !percent.is_finite() => UNKNOWN.into(),
        0.0 => "0%".into(),
        percent if percent.abs() < 0.95 => "<1%".into(),
        percent if (99.5..99.95).contains(&percent) => ">99%".into(),
        percent => format!("{percent:.0}%"),
    }
}

/// An interval of shares in whole percents: `60–64%`.
pub(crate) fn range_of_shares(low: f64, high: f64) -> String {
    let (low, high) = (percent(low), percent(high));
    if low == high { low } else { format!("{}–{high}", low.trim_end_matches('%')) }
}

/// A share, followed by the distance to the farther end of its interval, in percent: `97 ±1%`. If
/// that distance is larger than the share, the interval: `0–14%`.
pub(crate) fn share_within(value: f64, interval: Option<[f64; 2]>) -> String {
    if let Some([low, high]) = interval
        && high - value > value
        && value > 0.0
    {
        return range_of_shares(low, high);
    }
    match reach(value * 100.0, interval.map(|ends| ends.map(|end| end * 100.0))) {
        Some((value, reach)) => format!("{value} ±{reach}%"),
        None => share(value),
    }
}

/// A figure, followed by the distance to the farther end of its interval: `5.20 ±0.08`. If that
/// distance is larger than the figure, the interval: `0–0.5`.
pub(crate) fn digits_within(value: f64, interval: Option<[f64; 2]>) -> String {
    if let Some([low, high]) = interval
        && value > 0.0
        && high - value > value
        && high < 1e6
    {
        let decimals = decimals(high - value);
        return format!("{low:.decimals$}–{high:.decimals$}");
    }
    match reach(value, interval) {
        Some((value, reach)) if value.contains(|c| matches!(c, '1'..='9')) => {
            format!("{value} ±{reach}")
        }
        _ => digits(value),
    }
}

/// A figure, and the distance to the farther end of its interval, both rounded to the first digit
/// of that distance.
fn reach(value: f64, interval: Option<[f64; 2]>) -> Option<(String, String)> {
    let [low, high] = interval?;
    let reach = (high - value).max(value - low);
    let decimals = decimals(reach);
    (reach > 0.0 && value.abs() < 1e6 && reach < 1e6)
        .then(|| (format!("{value:.decimals$}"), format!("{reach:.decimals$}")))
}

/// Number of decimals that shows the first digit of a distance.
fn decimals(distance: f64) -> usize {
    match distance {
        small if small < 0.0095 => 3,
        small if small < 0.095 => 2,
        small if small < 0.95 => 1,
        _ => 0,
    }
}

/// A relative error: `+3.1%`, or `12.0×` if it is tenfold or more.
pub(crate) fn deviation(value: f64) -> String {
    let percent = value * 100.0;
    if percent.abs() < 999.5 { format!("{percent:+.1}%") } else { ratio(1.0 + value) }
}

/// A coefficient near zero: three significant digits, and an exponent only below 1e-9.
pub(crate) fn coefficient(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-9..1.0).contains(&size) => {
            let decimals = (2.0 - size.log10().floor()) as usize;
            format!("{value:.decimals$}")
        }
        size if size < 1.0 => format!("{value:.1e}"),
        _ => digits(value),
    }
}

pub(crate) fn digits_range([low, high]: [f64; 2]) -> String {
    let (low, high) = (digits(low), digits(high));
    if low == high { low } else { format!("{low}–{high}") }
}

/// An interval of times: `1.38–1.40 µs`, or a single time if both ends read the same.
pub(crate) fn time_range([low, high]: [f64; 2]) -> String {
    if time(low) == time(high) { time(low) } else { range(low, high) }
}

/// A time, followed by its interval unless both ends round to the time's own digits: `1.39 µs
/// (1.38–1.40 µs)`.
pub(crate) fn time_within(ns: f64, interval: Option<[f64; 2]>) -> String {
    let interval = interval.map(time_range).filter(|interval| *interval != time(ns));
    match interval {
        Some(interval) => format!("{} ({interval})", time(ns)),
        None => time(ns),
    }
}

/// A number of things per operation: `1.00`, `0.003`.
pub(crate) fn per_op(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => UNKNOWN.into(),
        0.0 => "0".into(),
        size if size < 0.0005 => "<0.001".into(),
        size if size < 0.0095 => format!("{value:.3}"),
        size if size < 99.995 => format!("{value:.2}"),
        _ => digits(value),
    }
}

/// An interval of numbers per operation.
pub(crate) fn range_per_op([low, high]: [f64; 2]) -> String {
    let (low, high) = (per_op(low), per_op(high));
    if low == high { low } else { format!("{low}–{high}") }
}

/// A number of things. From five digits on, narrow spaces separate groups of three: `12 345`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            grouped.push('\u{202F}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.0001, "<0.001 ns"),
            (0.35, "0.350 ns"),
            (45.0, "45.0 ns"),
            (99.96, "100 ns"),
            (999.6, "1.00 µs"),
            (2082.0, "2.08 µs"),
            (16_808.0, "16.8 µs"),
            (88_102_000.0, "88.1 ms"),
            (6e10, "60.0 s"),
            (1e15, "1\u{202F}000\u{202F}000 s"),
            (-1e15, "-1\u{202F}000\u{202F}000 s"),
            (1e18, "1.0e9 s"),
            (1e300, "1.0e291 s"),
            (-45.0, "-45.0 ns"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(maybe_time(None::<f64>), "–");
        assert_eq!(long_time(45e9), "45.0 s");
        assert_eq!(long_time(192e9), "3.2 min");
        assert_eq!(long_time(9000e9), "2.5 h");
        assert_eq!(long_time(f64::NAN), "–");
    }

    #[test]
    fn round_times_and_ranges_say_no_more_than_needed() {
        assert_eq!(round_time(10_000.0), "10 µs");
        assert_eq!(round_time(100.0), "100 ns");
        assert_eq!(round_time(0.0), "0 ns");
        assert_eq!(round_time(2500.0), "2.5 µs");
        assert_eq!([0.0, 0.5, 10.0, 200.0].map(round_digits), ["0", "0.5", "10", "200"]);
        assert_eq!(range(2082.0, 2360.0), "2.08–2.36 µs");
        assert_eq!(range(45.0, 45.0), "45 ns");
        assert_eq!(range(450.0, 4500.0), "450 ns–4.50 µs");
    }

    #[test]
    fn shares_and_intervals_keep_what_tells() {
        assert_eq!(share(0.0), "0%");
        assert_eq!(share(0.0009), "0.090%");
        assert_eq!(share(0.0000051), "0.0005%");
        assert_eq!(share(1e-9), "<0.0001%");
        assert_eq!(share(0.123), "12%");
        assert_eq!(share(0.9999), ">99%");
        assert_eq!(share(1.0), "100%");
        assert_eq!(share(1e300), "1e302%");
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.004), "<1%");
        assert_eq!(percent(0.03), "3%");
        assert_eq!(percent(0.998), ">99%");
        assert_eq!(percent(1.0), "100%");
        assert_eq!(range_of_shares(0.6, 0.64), "60–64%");
        assert_eq!(range_of_shares(0.6, 0.6), "60%");
        assert_eq!(share_within(0.972, Some([0.96, 0.98])), "97 ±1%");
        assert_eq!(share_within(0.972, Some([0.97, 0.976])), "97.2 ±0.4%");
        assert_eq!(share_within(0.972, None), "97%");
        assert_eq!(share_within(0.04, Some([0.0, 0.14])), "0–14%");
        assert_eq!(digits_within(0.1, Some([0.0, 0.48])), "0.0–0.5");
        assert_eq!(digits_within(0.0, Some([0.0, 0.4])), "0");
        assert_eq!(digits_within(5.2, Some([5.12, 5.24])), "5.20 ±0.08");
        assert_eq!(digits_within(5.2, Some([5.2, 5.2])), "5.20");
        assert_eq!(digits_within(5.2, Some([0.0, 1e300])), "5.20");
        assert_eq!(digits_range([0.985, 0.9912]), "0.985–0.991");
        assert_eq!(digits_range([1.0, 1.0001]), "1.00");
        assert_eq!(time_within(68.0, Some([32.0, 280.0])), "68.0 ns (32.0–280 ns)");
        assert_eq!(time_within(68.0, None), "68.0 ns");
        assert_eq!(time_within(68.0, Some([68.01, 68.02])), "68.0 ns");
        assert_eq!(time_range([1.2, 1.2004]), "1.20 ns");
    }

    #[test]
    fn numbers_of_things_are_short() {
        assert_eq!(per_op(1.0), "1.00");
        assert_eq!(per_op(0.0), "0");
        assert_eq!(per_op(0.003), "0.003");
        assert_eq!(per_op(1e-7), "<0.001");
        assert_eq!(count(9999), "9999");
        assert_eq!(count(1_234_567), "1\u{202F}234\u{202F}567");
        assert_eq!(ratio(27.13), "27.1×");
        assert_eq!(per_second(988_948.0), "988\u{202F}948");
        assert_eq!(digits(9999.4), "9999");
        assert_eq!(digits(100_001.0), count(100_001));
        assert_eq!(per_second(1_531_000.0), "1.53 M");
    }

    #[test]
    fn sizes_are_whole_numbers_of_their_unit() {
        let sizes = [8, 512, 1000, 1536, 4096, 1 << 20].map(size);
        assert_eq!(sizes, ["8 B", "512 B", "1000 B", "1536 B", "4 KiB", "1 MiB"]);
    }
}

/// Parses a share, such as `0.2` or `20%`. It may be negative or larger than 1.
pub(crate) fn share(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    number.parse::<f64>().ok().filter(|_| plain).map(|number| number / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_plain_numbers_and_percentages() {
        assert_eq!((share("0.5"), share("50%"), share("-1")), (Some(0.5), Some(0.5), Some(-1.0)));
        for wrong in ["", "%", "half", "1e3", "inf", "NaN", "+1", "1..2", "5 %"] {
            assert_eq!(share(wrong), None, "{wrong}");
        }
    }
}

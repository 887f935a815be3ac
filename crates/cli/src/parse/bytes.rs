use crate::failure::Failure;

/// Parses a whole number of bytes, such as `512`, `64B`, `4KiB` or `1MiB`.
pub(crate) fn bytes(option: &str, text: &str) -> Result<u64, Failure> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(unit);
    bytes.and_then(|(number, unit)| number.checked_mul(unit)).ok_or_else(|| {
        Failure::usage(format!("{option} {text} is not a number of bytes"))
            .hint(format!("try {option} 512 or {option} 4KiB"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_have_a_binary_unit() {
        let read = |text| bytes("--payload", text).unwrap();
        assert_eq!(["8", "64B", "4KiB", "2 MiB"].map(read), [8, 64, 4096, 2 << 20]);
        for text in ["", "KiB", "-8", "1.5KiB", "4k", "4KB", "99999999999999999999", "8 8"] {
            assert!(bytes("--payload", text).is_err(), "{text}");
        }
    }
}

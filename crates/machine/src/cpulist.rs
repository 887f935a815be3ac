//! The kernel's lists of CPUs: `0-3,8,10-11`.
//!
//! Files are not trusted. Text that does not parse is rejected, and numbers from [`MAX_CPUS`] on
//! are ignored.

/// Linux supports at most 8,192 CPUs.
pub(crate) const MAX_CPUS: u32 = 65_536;

/// The numbers in a list, ascending and without duplicates; `None` if the text is not a list.
///
/// The kernel writes an empty list as empty text.
pub(crate) fn parse(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        ranges.push((first, last));
    }
    // With sorted ranges, a list that repeats a range adds each CPU only once.
    ranges.sort_unstable();
    let mut cpus = Vec::new();
    let mut next = 0;
    for (first, last) in ranges {
        let end = last.saturating_add(1).min(MAX_CPUS);
        cpus.extend(first.max(next)..end);
        next = next.max(end);
    }
    Some(cpus)
}

/// Accepts only digits, because `str::parse` would accept `+1`. A number too large for `u32`
/// becomes `u32::MAX`.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse("0\n"), Some(vec![0]));
        assert_eq!(parse("\n"), Some(vec![]));
        assert_eq!(parse("3,1-2,2"), Some(vec![1, 2, 3]));
    }

    #[test]
    fn hostile_lists() {
        for text in ["a", "1-", "-1", "3-1", "1,,2", "0x3", "1;2", "١", "0-3:1/2", "-", "+1"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse("0-4294967295").map(|cpus| cpus.len()), Some(65_536));
        assert_eq!(parse("99999999999999999999"), Some(vec![]));
        assert_eq!(parse("4294967295"), Some(vec![]));
        let again_and_again = "0-65535,".repeat(200) + "7";
        assert_eq!(parse(&again_and_again).map(|cpus| cpus.len()), Some(65_536));
    }

    proptest! {
        #[test]
        fn anything_is_a_list_or_not(text in "[0-9,\\- a]{0,40}") {
            if let Some(cpus) = parse(&text) {
                prop_assert!(cpus.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(cpus.iter().all(|&cpu| cpu < MAX_CPUS));
            }
        }

        #[test]
        fn what_was_written_is_read(cpus in prop::collection::btree_set(0u32..MAX_CPUS, 0..50)) {
            let text = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(parse(&text), Some(cpus.into_iter().collect::<Vec<_>>()));
        }
    }
}

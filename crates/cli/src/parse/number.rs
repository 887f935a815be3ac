use super::list::list;
use crate::failure::Failure;

/// Maximum number of threads or servers: no process has more threads.
const MAX_THINGS: u64 = 1_000_000;
/// Maximum length of a list of such numbers. A table has a row for each.
const MAX_ROWS: usize = 1000;

pub(crate) fn count(option: &str, text: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let bad = |why: String| Failure::usage(format!("{option} {text}: {why}"));
    let from = format!("use a whole number from {least}");
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if text.strip_prefix('-').is_some_and(digits) {
        return Err(bad("it cannot be negative".into()).hint(from));
    }
    match text.parse::<u64>() {
        Ok(number) if number < least => Err(bad(format!("it must be at least {least}")).hint(from)),
        Ok(number) if number > most => {
            Err(bad(format!("it must be at most {most}")).hint("use a smaller number"))
        }
        Ok(number) => Ok(number),
        Err(_) => Err(bad("not a whole number".into()).hint(from)),
    }
}

pub(crate) fn counts(option: &str, text: &str, most: u64) -> Result<Vec<u64>, Failure> {
    list(option, text, "number", |part| count(option, part, 1, most))
}

/// Parses `--threads`: `1,2,4`, `1..32`, or a mixture of both.
pub(crate) fn numbers_of_threads(text: &str) -> Result<Vec<u32>, Failure> {
    numbers_of("--threads", "threads", text)
}

/// Parses `--servers`, like [`numbers_of_threads`].
pub(crate) fn numbers_of_servers(text: &str) -> Result<Vec<u32>, Failure> {
    numbers_of("--servers", "servers", text)
}

fn numbers_of(option: &str, things: &str, text: &str) -> Result<Vec<u32>, Failure> {
    let number = |part: &str| count(option, part.trim(), 1, MAX_THINGS).map(|number| number as u32);
    let mut all = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once("..") {
            Some((from, to)) => (number(from)?, number(to)?),
            None => {
                let only = number(part)?;
                (only, only)
            }
        };
        if from > to {
            return Err(Failure::usage(format!("{option} {text}: {from}..{to} counts down"))
                .hint(format!("write numbers of {things} as 1,2,4 or 1..32")));
        }
        if all.len() + (to - from) as usize >= MAX_ROWS {
            return Err(Failure::usage(format!("{option} {text} makes more than {MAX_ROWS} rows"))
                .hint(format!("give fewer numbers of {things}, such as 1,10,100,1000")));
        }
        all.extend(from..=to);
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage(format!("{option} {text} contains {} twice", twice[0]))
            .hint("give each number once"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_their_bounds() {
        assert_eq!(count("--samples", "7", 1, 10).unwrap(), 7);
        for text in ["0", "11", "-3", "1.5", "", "0x10", "-"] {
            assert!(count("--samples", text, 1, 10).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_threads_are_lists_and_ranges() {
        assert_eq!(numbers_of_threads("1,2,4").unwrap(), [1, 2, 4]);
        assert_eq!(numbers_of_threads("2..5").unwrap(), [2, 3, 4, 5]);
        assert_eq!(numbers_of_threads("8, 1..3,16").unwrap(), [8, 1, 2, 3, 16]);
        assert_eq!(numbers_of_threads("1..1000").unwrap().len(), 1000);
        for text in [
            "", "0", "0..4", "4..1", "1,,2", "1...4", "a", "1..", "..4", "-1", "2,2", "1..4,3",
            "1..1001",
        ] {
            assert!(numbers_of_threads(text).is_err(), "{text}");
        }
        assert!(numbers_of_threads("1..4294967295").is_err());
        assert!(numbers_of_threads("99999999999").is_err());
    }
}

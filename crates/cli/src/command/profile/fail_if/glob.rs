//! Patterns for names: `*` matches any text, `?` any single character.

/// A pattern that a whole name must match.
#[derive(Debug)]
pub(super) struct Glob(Vec<char>);

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        Glob(pattern.chars().collect())
    }

    /// Returns `true` if the pattern matches the whole name. After a mismatch, only the last `*` is
    /// tried with more text. Therefore the time is at most proportional to the product of both
    /// lengths.
    pub(super) fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (&self.0, name.chars().collect::<Vec<char>>());
        let (mut at, mut seen) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while seen < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(c) if *c == '?' || *c == name[seen] => {
                    at += 1;
                    seen += 1;
                }
                _ => {
                    let Some((star_at, star_seen)) = star else { return false };
                    star = Some((star_at, star_seen + 1));
                    at = star_at + 1;
                    seen = star_seen + 1;
                }
            }
        }
        pattern[at..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for (pattern, name) in [
            ("cache_*", "cache_lock"),
            ("cache_*", "cache_"),
            ("*lock", "lock lock"),
            ("*a*b*", "xxaxxbaxb"),
            ("c?che", "cäche"),
            ("**", ""),
        ] {
            assert!(Glob::new(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("cache_*", "my_cache_lock"),
            ("cache", "caches"),
            ("?", ""),
            ("a*b", "abc"),
            ("", "a"),
        ] {
            assert!(!Glob::new(pattern).matches(name), "{pattern} {name}");
        }
        let hostile = "a".repeat(5000);
        assert!(!Glob::new(&format!("{}b", "a*".repeat(500))).matches(&hostile));
    }
}

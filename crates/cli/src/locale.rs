//! Plain ASCII where the locale can show nothing else.

use std::borrow::Cow;
use std::sync::LazyLock;

/// Returns `true` if the locale is `C` or `POSIX`, or names a character set other than UTF-8. An
/// unset one says nothing about the terminal.
fn is_ascii(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let Some(locale) = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set) else { return false };
    let charset = locale.split_once('.').map(|(_, charset)| charset);
    match charset.map(|charset| charset.split('@').next().unwrap_or_default()) {
        Some(charset) => !["utf-8", "utf8"].contains(&charset.to_lowercase().as_str()),
        None => ["C", "POSIX"].contains(&locale.as_str()),
    }
}

/// The text, or what the locale can show of it.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    static ASCII: LazyLock<bool> = LazyLock::new(|| is_ascii(|name| std::env::var(name).ok()));
    if *ASCII && !text.is_ascii() { Cow::Owned(ascii(text)) } else { Cow::Borrowed(text) }
}

/// Replaces each character by one that looks like it, so that columns stay aligned. Comparisons,
/// arrows and `±` take more, because one would change their meaning.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        plain.push_str(match c {
            '×' => "x",
            'µ' => "u",
            '–' | '—' | '─' | '−' => "-",
            '│' => "|",
            '┤' | '├' | '┬' | '┴' | '┼' | '└' | '┘' | '┌' | '┐' => "+",
            '•' => "*",
            '·' => ".",
            '●' => "o",
            '’' | '‘' => "'",
            '“' | '”' => "\"",
            '…' => "~",
            '≥' => ">=",
            '≤' => "<=",
            '±' => "+/-",
            '→' => "->",
            '←' => "<-",
            '█' | '▉' | '▊' | '▋' | '▌' => "#",
            '▍' | '▎' | '▏' => "-",
            '²' => "2",
            '\u{202F}' | '\u{A0}' => " ",
            c if c.is_ascii() => {
                plain.push(c);
                continue;
            }
            _ => "?",
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn only_a_locale_that_says_so_is_ascii() {
        let of = |name: &'static str, value: &'static str| {
            is_ascii(|variable| (variable == name).then(|| value.to_string()))
        };
        for value in ["C", "POSIX", "C.ISO-8859-1", "de_DE.ISO-8859-15@euro", "en_US.ASCII"] {
            assert!(of("LC_ALL", value), "{value}");
        }
        for value in ["", "C.UTF-8", "en_US.utf8", "en_US.UTF-8@x", "de_DE"] {
            assert!(!of("LANG", value), "{value}");
        }
        assert!(!is_ascii(|_| None));
        assert!(!is_ascii(|name| Some(if name == "LC_ALL" { "C.UTF-8" } else { "C" }.into())));
    }

    #[test]
    fn columns_stay_aligned() {
        assert_eq!(ascii("1.5× · 2 µs ─ “a” … ≥3"), "1.5x . 2 us - \"a\" ~ >=3");
        assert_eq!(ascii("中"), "?");
        assert_eq!(ascii("4.06 → 4.10 µs, bounds of ±4.0%"), "4.06 -> 4.10 us, bounds of +/-4.0%");
    }

    /// Reads the sources of all crates without their comments and unit tests.
    fn sources(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                code.for_each(|line| all.push_str(line));
            }
        }
    }

    #[test]
    fn every_character_that_we_print_has_a_substitute() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut all = String::new();
        for name in ["cli", "lab", "machine", "model", "record", "report"] {
            sources(&crates.join(name).join("src"), &mut all);
        }
        let printed: BTreeSet<char> = all.chars().filter(|c| !c.is_ascii()).collect();
        assert!(printed.contains(&'µ') && printed.contains(&'±'), "{printed:?}");
        let lost: Vec<char> =
            printed.into_iter().filter(|c| ascii(&c.to_string()) == "?").collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

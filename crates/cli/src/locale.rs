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

/// Replaces each character by one that looks like it, so that columns stay aligned. `≥` and `≤`
/// take two, because one would change their meaning.
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
    }
}

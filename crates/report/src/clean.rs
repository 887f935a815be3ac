//! Makes text from result files safe to display. A file may come from anywhere.

/// Maximum length of a displayed text, in characters.
const MAX_CHARS: usize = 2000;

/// Removes control characters, and invisible characters that hide text or change its direction.
/// Tabs and line feeds become spaces. A text that is far too long is truncated, with an ellipsis.
pub fn clean(text: &str) -> String {
    let mut kept: String = text
        .chars()
        .filter_map(|c| match c {
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => Some(' '),
            c => (!steers(c)).then_some(c),
        })
        .take(MAX_CHARS + 1)
        .collect();
    if let Some((at, _)) = kept.char_indices().nth(MAX_CHARS) {
        kept.truncate(at);
        kept.push('…');
    }
    kept
}

/// Like [`clean`], but keeps line feeds and the whole length of the text.
pub(crate) fn strip(mut text: String) -> String {
    text.retain(|c| c == '\n' || !steers(c));
    text
}

/// Returns `true` for control characters, and for invisible characters that change how the text
/// around them is displayed.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
        '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::{clean, strip};

    #[test]
    fn what_steers_a_terminal_is_stripped() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[0m\u{7}\u{9b}2J"), "[31mred[0m2J");
        assert_eq!(clean("a\tb\nc\u{2028}d"), "a b c d");
        assert_eq!(clean("abc\u{202E}fed\u{2066}x\u{200B}y"), "abcfedxy");
        assert_eq!(clean("µs · ä – 中"), "µs · ä – 中");
    }

    #[test]
    fn a_page_keeps_its_lines() {
        assert_eq!(strip("<p>\n\u{1b}a\u{202E}b</p>\n".into()), "<p>\nab</p>\n");
    }

    #[test]
    fn what_is_far_too_long_is_cut() {
        let cut = clean(&"ä".repeat(1_000_000));
        assert_eq!(cut.chars().count(), 2001);
        assert!(cut.ends_with('…'));
    }
}

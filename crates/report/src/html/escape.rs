//! Texts from files, made harmless for a page.

use crate::clean::clean;

/// A text as it may stand between tags or in a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON as it may stand in a script element: nothing in it can end the element or begin a comment.
pub(super) fn json_in_page(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape("<b a='\"'>&\u{1b}[0m"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;[0m");
    }

    #[test]
    fn json_cannot_end_its_element() {
        let json = json_in_page(r#"{"a":"</script><!--\u2028 & "}"#);
        assert!(!json.contains(['<', '>', '&']));
    }
}

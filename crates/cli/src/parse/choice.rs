use super::list::distinct;
use crate::failure::Failure;

pub(crate) fn choice<T: Copy>(option: &str, text: &str, known: &[(&str, T)]) -> Result<T, Failure> {
    known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Failure::usage(format!("{option} {text} is unknown"))
            .hint(format!("use one of: {}", names.join(", ")))
    })
}

/// Parses a repeatable option. `noun` is the word for one of its values in errors.
pub(crate) fn choices<T: Copy + PartialEq>(
    option: &str,
    texts: &[String],
    noun: &str,
    known: &[(&str, T)],
) -> Result<Vec<T>, Failure> {
    distinct(
        texts.iter().map(String::as_str),
        |name| choice(option, name, known),
        |name, _| {
            Failure::usage(format!("{option} {name} is given twice"))
                .hint(format!("give each {noun} once"))
        },
    )
}

//! From the texts of a command line to checked values; each error says what to do.

mod choice;
mod duration;
mod number;

use crate::failure::Failure;

pub(crate) use choice::{choice, choices};
pub(crate) use duration::{DURATIONS, duration, duration_ns};
pub(crate) use number::{count, counts, numbers_of_threads};

/// Reads an option that may be left out.
pub(crate) fn optional<T>(
    text: &Option<String>,
    read: impl FnOnce(&str) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    text.as_deref().map(read).transpose()
}

/// Reads values none of which may come twice; `twice` makes the error for one that does.
pub(crate) fn distinct<'a, T: PartialEq>(
    texts: impl IntoIterator<Item = &'a str>,
    read: impl Fn(&'a str) -> Result<T, Failure>,
    twice: impl Fn(&'a str, &T) -> Failure,
) -> Result<Vec<T>, Failure> {
    let mut values = Vec::new();
    for text in texts {
        let value = read(text)?;
        if values.contains(&value) {
            return Err(twice(text, &value));
        }
        values.push(value);
    }
    Ok(values)
}

/// Reads a list of distinct values with commas between them; `noun` is what they are.
pub(crate) fn list<T: PartialEq>(
    option: &str,
    text: &str,
    noun: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    distinct(text.split(',').map(str::trim), read, |part, _| {
        Failure::usage(format!("{option} {text}: {part} stands in it twice"))
            .hint(format!("name each {noun} once"))
    })
}

/// Reads arguments that are names, each of them once; `noun` is what they name.
pub(crate) fn names<T: PartialEq>(
    texts: &[String],
    noun: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    distinct(texts.iter().map(String::as_str), read, |name, _| {
        Failure::usage(format!("{name} is named twice")).hint(format!("name each {noun} once"))
    })
}

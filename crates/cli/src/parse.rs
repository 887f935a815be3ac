//! From the texts of a command line to checked values; each error says what to do.

mod choice;
mod duration;
mod number;

use crate::failure::Failure;

pub(crate) use choice::{choice, neighbour};
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

//! Parses command-line texts into validated values; each error says what to do.

mod bytes;
mod choice;
mod duration;
mod list;
mod number;
mod rate;
mod reader;
mod share;

use crate::failure::Failure;

pub(crate) use bytes::bytes;
pub(crate) use choice::{choice, choices};
pub(crate) use duration::{DURATIONS, duration, duration_ns, duration_or_zero_ns, durations_ns};
pub(crate) use list::{list, names};
pub(crate) use number::{count, counts, numbers_of_servers, numbers_of_threads};
pub(crate) use rate::rate_per_s;
pub(crate) use reader::{List, Reader, number, numbers};
pub(crate) use share::share;

pub(crate) fn optional<T>(
    text: &Option<String>,
    read: impl FnOnce(&str) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    text.as_deref().map(read).transpose()
}

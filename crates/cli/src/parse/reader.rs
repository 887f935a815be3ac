//! Parses values of options while clap parses the command line.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::{Arg, Command};

use super::number::{count, counts};
use crate::failure::Failure;

/// A list in one argument. The alias hides the `Vec` from clap, which would allow the option to be
/// repeated.
pub(crate) type List<T> = Vec<T>;

/// Parses an option with a function that takes the option's name and text. The function's errors
/// are printed unchanged.
#[derive(Clone)]
pub(crate) struct Reader<F>(pub(crate) F);

/// Parses a whole number from `least` to `most`.
pub(crate) fn number(least: u64, most: u64) -> impl TypedValueParser<Value = u64> {
    Reader(move |option: &str, text: &str| count(option, text, least, most))
}

/// Parses a list of whole numbers from 1 to `most`.
pub(crate) fn numbers(most: u64) -> impl TypedValueParser<Value = List<u64>> {
    Reader(move |option: &str, text: &str| counts(option, text, most))
}

impl<F, T> TypedValueParser for Reader<F>
where
    F: Fn(&str, &str) -> Result<T, Failure> + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let option = arg.and_then(Arg::get_long).map(|long| format!("--{long}"));
        let (read, option) = (self.0.clone(), option.unwrap_or_default());
        let read = move |text: &str| read(&option, text);
        read.parse_ref(command, arg, value)
    }
}

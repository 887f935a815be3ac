//! Rewords clap's errors, each as one sentence.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

pub(crate) const HELP: &str =
    "`threadtoll --help` lists the commands, and `threadtoll COMMAND --help` lists its options";

pub(crate) fn no_command() -> Failure {
    Failure::usage("no command was given")
        .hint("start with `threadtoll survey`, or see `threadtoll --help`")
}

/// A hint to the help of the command that the error is about.
fn options(error: &clap::Error) -> String {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let names: Vec<&str> = usage.split_whitespace().skip(1).take_while(is_name).collect();
    match names.as_slice() {
        [_, _, ..] => format!("`{} --help` lists the options", names.join(" ")),
        _ => HELP.into(),
    }
}

pub(crate) fn render_error(error: &clap::Error) -> Failure {
    // An error from a `Reader` is one sentence already.
    let own = error.source().and_then(|source| source.downcast_ref::<Failure>());
    if let Some(failure) = own {
        return failure.clone();
    }
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            no_command()
        }
        ErrorKind::UnknownArgument => {
            let failure = Failure::usage(format!("unknown option or argument “{argument}”"));
            // clap also suggests options of other scenarios, even if the names are hardly similar.
            let is_near = |near: &String| strsim::jaro(near, &argument) > 0.85;
            match context(ContextKind::SuggestedArg).filter(is_near) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint(options(error)),
            }
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            Failure::usage(format!("{argument} needs a value")).hint(HELP)
        }
        ErrorKind::InvalidValue => {
            let failure = Failure::usage(format!("“{value}” is not a value of {argument}"));
            match context(ContextKind::ValidValue) {
                Some(valid) => failure.hint(format!("use one of: {valid}")),
                None => failure.hint(HELP),
            }
        }
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            if other == argument || other.is_empty() {
                Failure::usage(format!("{argument} is given twice")).hint("give it once")
            } else {
                Failure::usage(format!("{argument} cannot be used with {other}"))
                    .hint("give one of them")
            }
        }
        ErrorKind::MissingRequiredArgument => {
            Failure::usage(format!("{argument} is missing")).hint(HELP)
        }
        ErrorKind::InvalidUtf8 => Failure::usage("an argument is not valid UTF-8"),
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::usage(first.strip_prefix("error: ").unwrap_or(first).to_string()).hint(HELP)
        }
    }
}

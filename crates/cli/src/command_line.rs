//! The command line: parsing, with each error in one sentence.
//!
//! clap takes option values as texts; each command validates its own, so that all messages are
//! ours.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use threadtoll_report::clean;

use crate::command::{COMMANDS, Entry};
use crate::failure::Failure;
use crate::nearest::unknown;

const HELP: &str =
    "`threadtoll --help` lists the commands, `threadtoll COMMAND --help` the options of one";

pub(crate) enum Parsed {
    /// Help, or the version.
    Text(String),
    Command(&'static Entry, ArgMatches),
}

fn declaration() -> clap::Command {
    clap::Command::new("threadtoll")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures what threads pay to talk to each other")
        .after_help(
            "Start with `threadtoll survey`, which takes about a minute. \
             See `threadtoll COMMAND --help` for more.",
        )
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(COMMANDS.iter().map(Entry::declaration))
}

pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let mut matches = match declaration().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            return Ok(Parsed::Text(error.render().ansi().to_string()));
        }
        Err(error) => return Err(render_error(&error)),
    };
    let chosen = matches.remove_subcommand();
    let entry = chosen.and_then(|(name, matches)| Some((Entry::find(&name)?, matches)));
    let (entry, matches) = entry.ok_or_else(no_command)?;
    Ok(Parsed::Command(entry, matches))
}

/// The program as it was started: its path, unless the shell found it by its name.
pub(crate) fn program() -> String {
    std::env::args_os()
        .next()
        .map(|started| clean(&started.to_string_lossy()))
        .filter(|started| started.contains('/') && !started.contains(char::is_whitespace))
        .unwrap_or_else(|| "threadtoll".into())
}

fn no_command() -> Failure {
    Failure::usage("no command was given")
        .hint("start with `threadtoll survey`, or see `threadtoll --help`")
}

/// Turns an error from clap into one sentence.
pub(crate) fn render_error(error: &clap::Error) -> Failure {
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
        ErrorKind::InvalidSubcommand => {
            let typed = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            let names = COMMANDS.iter().map(|entry| entry.name);
            unknown(format!("no command is called “{typed}”"), &typed, names, HELP)
        }
        ErrorKind::UnknownArgument => {
            let failure = Failure::usage(format!("unknown option or argument “{argument}”"));
            match context(ContextKind::SuggestedArg) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint(HELP),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_valid() {
        declaration().debug_assert();
    }

    #[test]
    fn commands_with_resume_are_resumable() {
        for entry in COMMANDS {
            let declaration = entry.declaration();
            let has_resume = declaration.get_arguments().any(|arg| arg.get_id() == "resume");
            assert_eq!(entry.resumable, has_resume, "{}", entry.name);
        }
    }
}

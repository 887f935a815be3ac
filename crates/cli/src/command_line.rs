//! The command line: parsing, with each error in one sentence.
//!
//! clap takes option values as texts; each command validates its own, so that all messages are
//! ours.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::{ContextKind, ErrorKind};

use crate::command::COMMANDS;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::nearest::unknown;
use crate::syntax::{HELP, no_command, render_error};

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
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => {
            let typed = error.get(ContextKind::InvalidSubcommand);
            let typed = typed.map(ToString::to_string).unwrap_or_default();
            let names = COMMANDS.iter().map(|entry| entry.name);
            return Err(unknown(format!("no command is called “{typed}”"), &typed, names, HELP));
        }
        Err(error) => return Err(render_error(&error)),
    };
    let chosen = matches.remove_subcommand();
    let (name, matches) = chosen.ok_or_else(no_command)?;
    let entry = COMMANDS.iter().find(|entry| entry.name == name).ok_or_else(no_command)?;
    Ok(Parsed::Command(entry, matches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::is_resumable;

    #[test]
    fn the_declaration_is_valid() {
        declaration().debug_assert();
    }

    #[test]
    fn commands_with_resume_are_resumable() {
        for entry in COMMANDS {
            let declaration = entry.declaration();
            let has_resume = declaration.get_arguments().any(|arg| arg.get_id() == "resume");
            assert_eq!(is_resumable(entry.name), has_resume, "{}", entry.name);
        }
    }
}

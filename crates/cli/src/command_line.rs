//! Parses the command line and reports each error in one sentence.
//!
//! clap passes option values as text. Each command validates its own values, so that all messages
//! have our wording.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::{ContextKind, ErrorKind};

use crate::command::COMMANDS;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::nearest::unknown;
use crate::syntax::{HELP, no_command, render_error};

pub(crate) enum Parsed {
    /// The text of the help or of the version.
    Text(String),
    Command(&'static Entry, ArgMatches),
}

const QUESTIONS: &str = "\
What does it cost to hand something to another thread?   threadtoll survey
Which queue should my threads use?                       threadtoll queue for-me --rate 50000
Which lock does that program wait for?                   threadtoll profile -p PID
How many threads are worth having?                       threadtoll predict --hold 5ms --think 95ms";

fn declaration() -> clap::Command {
    clap::Command::new("threadtoll")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures what threads pay to talk to each other")
        .before_help(QUESTIONS)
        .after_help("`threadtoll COMMAND -h` shows what most people need, `--help` everything.")
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(COMMANDS.iter().map(Entry::declaration))
}

/// Moves the scenario before the other arguments of its command, so that users may write options
/// before the scenario.
fn scenario_first(declaration: &clap::Command, arguments: &mut [OsString]) {
    const FIRST: usize = 2;
    let command = arguments.get(1).and_then(|name| declaration.find_subcommand(name));
    let Some(command) = command.filter(|command| command.is_allow_external_subcommands_set())
    else {
        return;
    };
    let takes_value = |option: &str| {
        let commands = std::iter::once(command).chain(command.get_subcommands());
        let mut declared = commands.flat_map(clap::Command::get_arguments);
        let arg = declared.find(|arg| arg.get_long() == Some(option))?;
        Some(arg.get_action().takes_values())
    };
    let mut at = FIRST;
    while let Some(argument) = arguments.get(at).and_then(|argument| argument.to_str()) {
        at += match argument.strip_prefix("--") {
            None if argument.starts_with('-') => return,
            None => return arguments[FIRST..=at].rotate_right(1),
            Some(option) if option.is_empty() || option.contains('=') => 1,
            Some(option) => match takes_value(option) {
                Some(takes_value) => 1 + usize::from(takes_value),
                // An unknown option, which clap will reject.
                None => return,
            },
        };
    }
}

pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let declaration = declaration();
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    scenario_first(&declaration, &mut arguments);
    let mut matches = match declaration.try_get_matches_from(arguments) {
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

//! Scenarios of a command. Each is a subcommand, with its options in a file.

use crate::by_name::Named;
use crate::failure::Failure;
use crate::nearest::unknown;

/// Declares the scenarios of a command as `file::Options`. The calling module must define `lab`
/// (the module with the measured scenarios), `Names` (the options of a scenario and the names after
/// them) and the trait `ScenarioOptions`.
macro_rules! scenarios {
    ($($file:ident::$options:ident),+ $(,)?) => {
        $(mod $file;)+

        /// A scenario, as given.
        #[derive(Debug, clap::Subcommand, serde::Serialize)]
        #[command(
            subcommand_value_name = "SCENARIO",
            subcommand_help_heading = "Scenarios",
            disable_help_subcommand = true,
            allow_external_subcommands = true
        )]
        #[serde(untagged)]
        enum Chosen {
            $(
                #[command(name = lab::$file::SCENARIO.name, about = lab::$file::SCENARIO.sentence)]
                $options(Names<$file::$options>),
            )+
            #[command(external_subcommand)]
            Unknown(Vec<String>),
        }

        impl Chosen {
            fn known(&self) -> Option<(&'static lab::Scenario, &[String], &dyn ScenarioOptions)> {
                match self {
                    $(Self::$options(Names { names, options }) => {
                        Some((&lab::$file::SCENARIO, names, options))
                    })+
                    Self::Unknown(_) => None,
                }
            }

            /// The unknown name that was given instead of a scenario.
            fn unknown(&self) -> Option<&str> {
                match self {
                    Self::Unknown(words) => words.first().map(String::as_str),
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use scenarios;

/// The error for a command without a valid scenario. `is_subject` recognizes the names of queues or
/// locks, because the user may have written one instead of a scenario.
pub(crate) fn missing<S: Named>(
    command: &str,
    scenarios: &[S],
    given: Option<&str>,
    subject: &str,
    is_subject: impl FnOnce(&str) -> bool,
) -> Failure {
    let names: Vec<&str> = scenarios.iter().map(Named::name).collect();
    let all = names.join(", ");
    let Some(name) = given else {
        return Failure::usage(format!("{command} needs a scenario"))
            .hint(format!("use one of: {all}"));
    };
    let otherwise = if is_subject(name) {
        format!("that is a {subject}; put a scenario before it: {all}")
    } else {
        format!("use one of: {all}")
    };
    unknown(format!("no scenario is called “{name}”"), name, names, otherwise)
}

/// Allows a command's options after its scenario, too.
pub(crate) fn with_scenarios(command: clap::Command) -> clap::Command {
    if command.is_allow_external_subcommands_set() {
        command.mut_args(|arg| arg.global(true))
    } else {
        command
    }
}

//! Starts other processes of this program.

use std::process::Command;

/// Used instead of the program's path, because the program may have been replaced since it was
/// started.
pub(crate) const PATH: &str = "/proc/self/exe";

/// A command that runs this program, with a word in place of a command's name.
pub(crate) fn this_program(word: &str) -> Command {
    let mut command = Command::new(PATH);
    command.arg(word);
    command
}

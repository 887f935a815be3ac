//! Other processes of this program.

use std::process::Command;

/// Not the program's path: the program may have been replaced since it was started.
pub(crate) const PATH: &str = "/proc/self/exe";

/// This program with a word in place of a command.
pub(crate) fn this_program(word: &str) -> Command {
    let mut command = Command::new(PATH);
    command.arg(word);
    command
}

use std::process::Command;

/// Used instead of the program's path, because that file may have been replaced since the start.
pub(crate) const PATH: &str = "/proc/self/exe";

/// Runs this program with `word` in place of a command's name.
pub(crate) fn this_program(word: &str) -> Command {
    let mut command = Command::new(PATH);
    command.arg(word);
    command
}

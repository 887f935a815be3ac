use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::library::{Described, describe};
use crate::process::{Child, Heard, Parent};

/// Maximum length of a line in bytes: room for the longest description with every character
/// escaped.
const MAX_LINE: usize = 1 << 20;

/// Describes an adapter in another process, within `patience`. `command` starts a process that
/// serves a [description](serve_description).
///
/// # Errors
///
/// The reason why there is no description, worded as a clause.
pub fn describe_in(command: Command, path: &Path, patience: Duration) -> Result<Described, String> {
    let failed =
        |error: io::Error| format!("the process that asks for its description failed: {error}");
    let Some(name) = path.to_str() else { return Err("its name is not UTF-8".into()) };
    let mut child = Child::of_this_program(command).map_err(failed)?;
    // If the process has ended, the next read reports it.
    let _ = child.send(name);
    match child.listen(patience, MAX_LINE).map_err(failed)? {
        Heard::Line(text) => serde_json::from_slice::<Result<Described, String>>(&text)
            .unwrap_or_else(|_| Err("it wrote to a file descriptor of threadtoll".into())),
        Heard::Ended => {
            let how = child.end().map_err(failed)?.clause();
            Err(format!("it {how} before it had sent its description"))
        }
        Heard::Silence => {
            Err(format!("it did not send its description within {} s", patience.as_secs()))
        }
        Heard::Flood => Err("it printed more than 1 MiB before it had sent its description".into()),
    }
}

/// Describes the adapter that the parent process names.
///
/// # Errors
///
/// If the parent process names no adapter, or has ended.
pub fn serve_description() -> io::Result<()> {
    let mut parent = Parent::take()?;
    let line = parent.line()?;
    let described = describe(Path::new(line.trim_end_matches('\n')));
    parent.tell(&serde_json::to_string(&described)?)
}

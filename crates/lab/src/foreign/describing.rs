//! Descriptions of adapters, each from a process that does nothing else.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::library::{Described, describe};
use crate::process::{Child, Heard, Parent};

/// Most bytes of the line with a description, in which a character may be an escape.
const MAX_LINE: usize = 1 << 20;

/// Lets an adapter describe itself in the process of this command, which serves a
/// [description](serve_description), within this time.
///
/// # Errors
///
/// The reason, as a clause.
pub fn describe_in(command: Command, path: &Path, patience: Duration) -> Result<Described, String> {
    let failed = |error: io::Error| format!("its description cannot be asked for: {error}");
    let Some(name) = path.to_str() else { return Err("its name is not UTF-8".into()) };
    let mut child = Child::of_this_program(command).map_err(failed)?;
    // If it has ended, that is heard.
    let _ = child.send(name);
    match child.listen(patience, MAX_LINE).map_err(failed)? {
        Heard::Line(text) => serde_json::from_slice::<Result<Described, String>>(&text)
            .unwrap_or_else(|_| Err("it writes to files of the process".into())),
        Heard::Ended => {
            let how = child.end().map_err(failed)?.clause();
            Err(format!("it {how} before it had described itself"))
        }
        Heard::Silence => {
            Err(format!("it did not describe itself within {} s", patience.as_secs()))
        }
        Heard::Flood => Err("it printed more than 1 MiB before it had described itself".into()),
    }
}

/// Describes the adapter that the process which started this one names.
///
/// # Errors
///
/// If that process names none, or has ended.
pub fn serve_description() -> io::Result<()> {
    let mut parent = Parent::take()?;
    let line = parent.line()?;
    let described = describe(Path::new(line.trim_end_matches('\n')));
    parent.tell(&serde_json::to_string(&described)?)
}

//! Peers in other languages, from a folder.
//!
//! Whatever lies in the folder was written by others and may be wrong in any way. Its files are
//! listed here ([`files`]), an adapter is described by a process that does nothing else
//! ([`describe`]), and [`Foreign::of`] makes rows of the descriptions without running any code of
//! the adapter's. That is loaded by the process that measures a row, when it creates the queue.

mod adapter;
mod description;
mod library;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use library::{Described, describe};

use crate::queue::Queue;

/// Extension of adapters.
const ADAPTER: &str = "so";

/// A peer's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    /// A shared library.
    Adapter(PathBuf),
    /// A program.
    Program(PathBuf),
}

/// Lists the peers of a folder by name: regular files that end in `.so` or are executable. All
/// others, and folders, are passed over.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn files(folder: &Path) -> io::Result<Vec<File>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths.into_iter().filter_map(file).collect())
}

fn file(path: PathBuf) -> Option<File> {
    let metadata = path.metadata().ok().filter(|metadata| metadata.is_file())?;
    if path.extension().is_some_and(|extension| extension == ADAPTER) {
        return Some(File::Adapter(path));
    }
    (metadata.permissions().mode() & 0o111 != 0).then_some(File::Program(path))
}

/// A peer, or one of its queues, that cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// The reason, as a clause: `it has no function tt_create`.
    pub why: String,
}

/// The queues of foreign peers.
#[derive(Debug, Default)]
pub struct Foreign {
    /// Those that can be measured.
    pub queues: Vec<Queue>,
    /// Those that cannot.
    pub left_out: Vec<LeftOut>,
}

impl Foreign {
    /// Makes the rows of described adapters. A queue whose name `is_known` already, or is that of
    /// an earlier one, is left out.
    pub fn of(adapters: &[Described], is_known: impl Fn(&str) -> bool) -> Self {
        let mut foreign = Foreign::default();
        for described in adapters {
            let file = file_name(&described.path);
            match adapter::queues(described) {
                Err(why) => foreign.left_out.push(LeftOut { name: file, why }),
                Ok(found) => {
                    for (name, queue) in found {
                        foreign.add(&file, name, queue, &is_known);
                    }
                }
            }
        }
        foreign
    }

    fn add(
        &mut self,
        file: &str,
        name: String,
        queue: Result<Queue, String>,
        is_known: impl Fn(&str) -> bool,
    ) {
        let taken = || is_known(&name) || self.queues.iter().any(|other| other.name == name);
        let why = match queue {
            Err(why) => why,
            Ok(_) if taken() => "another queue has this name".into(),
            Ok(queue) => return self.queues.push(queue),
        };
        self.left_out.push(LeftOut { name: format!("{name} of {file}"), why });
    }
}

/// Name of a peer's file, for messages.
pub fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

//! Peers in other languages, from a folder.
//!
//! The contents of the folder were written by others and may be wrong in any way. Its files are
//! listed here ([`files`]), each adapter is described by a process that does nothing else
//! ([`describe_in`]), and [`Foreign::of`] makes rows from the descriptions without running any code
//! of the adapters. An adapter is loaded by the process that measures a row, when it creates the
//! queue.

mod adapter;
mod describing;
mod description;
mod library;
pub mod program;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use describing::{describe_in, serve_description};
pub use library::{Described, describe};

use crate::lock::Lock;
use crate::mechanism::Mechanism;
use crate::queue::Queue;

use program::{DescribedProgram, ProgramRows};

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

/// Lists the peers in a folder by name: regular files that end in `.so` or are executable. Folders
/// and all other files are ignored.
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
    /// Why it cannot be measured, as a clause: `it has no function tt_create`.
    pub why: String,
}

/// The rows of foreign peers.
#[derive(Debug, Default)]
pub struct Foreign {
    /// Queues that can be measured.
    pub queues: Vec<Queue>,
    /// Mechanisms of programs.
    pub mechanisms: Vec<Mechanism>,
    /// Locks of programs.
    pub locks: Vec<Lock>,
    /// Peers and queues that cannot be measured.
    pub left_out: Vec<LeftOut>,
}

impl Foreign {
    /// Makes rows from described adapters. A queue is left out if `is_known` accepts its name, or
    /// if an earlier one has the same name.
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

    /// Adds rows from described programs, under the same conditions as [`of`](Self::of).
    pub fn with_programs(
        mut self,
        programs: &[DescribedProgram],
        is_known: impl Fn(&str) -> bool,
    ) -> Self {
        for described in programs {
            let file = file_name(&described.path);
            let ProgramRows { queues, mechanisms, locks, left_out } = described.rows();
            let of = |(name, why)| LeftOut { name: format!("{name} of {file}"), why };
            self.left_out.extend(left_out.into_iter().map(of));
            for queue in queues {
                self.add(&file, queue.name.clone(), Ok(queue), &is_known);
            }
            let taken = "another row has this name";
            for mechanism in mechanisms {
                if is_known(&mechanism.name) || self.mechanisms.contains(&mechanism) {
                    self.left_out.push(of((mechanism.name, taken.into())));
                } else {
                    self.mechanisms.push(mechanism);
                }
            }
            for lock in locks {
                if is_known(&lock.name) || self.locks.contains(&lock) {
                    self.left_out.push(of((lock.name, taken.into())));
                } else {
                    self.locks.push(lock);
                }
            }
        }
        self
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

/// Name of a peer's file, for use in messages.
pub fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

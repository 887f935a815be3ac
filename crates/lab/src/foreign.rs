//! Peers in other languages, from a folder: queues, mechanisms and locks to compare ours with.
//!
//! The files may be wrong in any way. A process that does nothing else obtains the description of
//! each adapter (a shared library; see [`describe_in`]). [`Foreign::of`] makes rows from the
//! descriptions without running any code of the adapters. An adapter is loaded only by a process
//! that measures one of its rows.

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
use crate::rows::Row;

use program::{DescribedProgram, ProgramRows};

/// File name extension of adapters.
const ADAPTER: &str = "so";

/// A peer's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    /// A shared library.
    Adapter(PathBuf),
    /// A program.
    Program(PathBuf),
}

/// Lists the peers in a folder, sorted by name: regular files that end in `.so` or are executable.
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
    /// Name of the peer or queue.
    pub name: String,
    /// Reason, worded as a clause: `it has no function tt_create`.
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
    /// Makes rows from described adapters. Leaves out a queue if `is_known` accepts its name, or if
    /// an earlier queue has the same name.
    pub fn of(adapters: &[Described], is_known: impl Fn(&str) -> bool) -> Self {
        let mut foreign = Foreign::default();
        for described in adapters {
            let file = file_name(&described.path);
            let found = match adapter::queues(described) {
                Ok(found) => found,
                Err(why) => {
                    foreign.left_out.push(LeftOut { name: file, why });
                    continue;
                }
            };
            for (name, queue) in found {
                let refused = match queue {
                    Ok(queue) => add(&mut foreign.queues, vec![queue], "queue", &is_known),
                    Err(why) => vec![(name, why)],
                };
                foreign.leave_out(&file, refused);
            }
        }
        foreign
    }

    /// Adds rows from described programs. As in [`of`](Self::of), a row whose name is taken is left
    /// out.
    pub fn with_programs(
        mut self,
        programs: &[DescribedProgram],
        is_known: impl Fn(&str) -> bool,
    ) -> Self {
        for described in programs {
            let ProgramRows { queues, mechanisms, locks, left_out } = described.rows();
            let refused = [
                left_out,
                add(&mut self.queues, queues, "queue", &is_known),
                add(&mut self.mechanisms, mechanisms, "row", &is_known),
                add(&mut self.locks, locks, "row", &is_known),
            ];
            self.leave_out(&file_name(&described.path), refused.concat());
        }
        self
    }

    fn leave_out(&mut self, file: &str, refused: Vec<Refused>) {
        let of_file = |(name, why)| LeftOut { name: format!("{name} of {file}"), why };
        self.left_out.extend(refused.into_iter().map(of_file));
    }
}

/// Name of a row, and the reason why it cannot be measured.
type Refused = (String, String);

fn add<R: Row>(
    rows: &mut Vec<R>,
    more: Vec<R>,
    what: &str,
    is_known: impl Fn(&str) -> bool,
) -> Vec<Refused> {
    let mut refused = Vec::new();
    for row in more {
        if is_known(row.name()) || rows.contains(&row) {
            refused.push((row.name().into(), format!("another {what} has this name")));
        } else {
            rows.push(row);
        }
    }
    refused
}

/// Name of a peer's file, for use in messages.
pub fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

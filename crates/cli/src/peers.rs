//! `--peers DIR`: queues in other languages.
//!
//! A separate process loads and describes each adapter; a program describes itself. If one crashes,
//! hangs or misbehaves in another way, the only consequence is a warning.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use threadtoll_lab::Peers;
use threadtoll_lab::foreign::{self, File, LeftOut, file_name, program};
use threadtoll_report::clean;

use crate::console;
use crate::failure::Failure;
use crate::patience::patience;
use crate::registry;
use crate::this_program::this_program;

/// First argument of a process that describes an adapter. No command has this name.
pub(crate) const COMMAND: &str = "--describe-adapter";

#[derive(Debug, Args)]
pub(crate) struct PeersArgs {
    /// Also measure the peers in other languages in this folder, such as target/peers, where
    /// peers/build.sh puts them: adapters (NAME.so), which are queues, and programs
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
}

impl PeersArgs {
    /// The absolute path of the folder. A plan stores it, so that a run can be resumed from
    /// elsewhere.
    pub(crate) fn folder(&self) -> Result<Option<String>, Failure> {
        let Some(folder) = &self.peers else { return Ok(None) };
        let bad = |why: &str| bad(&folder.to_string_lossy(), why);
        let whole = folder.canonicalize().map_err(|error| bad(&unreadable(&error)))?;
        match whole.into_os_string().into_string() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(bad("its name is not UTF-8")),
        }
    }
}

pub(crate) fn bad(folder: &str, why: &str) -> Failure {
    Failure::usage(format!("--peers {folder}: {why}"))
        .hint("give the folder where `peers/build.sh` puts peers: target/peers")
}

fn unreadable(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such folder".into(),
        std::io::ErrorKind::NotADirectory => "it is a file, not a folder".into(),
        _ => error.to_string(),
    }
}

/// Adds the peers in a folder to the registry. Must be called before the registry is used. Prints a
/// warning for each peer that cannot be measured. The error is a clause that can follow the
/// folder's name.
pub(crate) fn add(folder: &str) -> Result<(), String> {
    let files = foreign::files(Path::new(folder)).map_err(|error| unreadable(&error))?;
    if files.is_empty() {
        return Err("it has no peers, neither adapters (NAME.so) nor programs".into());
    }
    let mut peers = Peers::default();
    let mut left_out = Vec::new();
    for file in &files {
        let why = match file {
            File::Adapter(path) => foreign::describe_in(this_program(COMMAND), path, patience())
                .map(|found| peers.adapters.push(found)),
            File::Program(path) => {
                program::describe(path, patience()).map(|found| peers.programs.push(found))
            }
        };
        let (File::Adapter(path) | File::Program(path)) = file;
        left_out.extend(why.err().map(|why| LeftOut { name: file_name(path), why }));
    }
    left_out.extend(registry::add(peers));
    for LeftOut { name, why } in left_out {
        console::err_text(&format!("warning: {} was left out: {}.", clean(&name), clean(&why)));
    }
    Ok(())
}

/// Describes the adapter that is named on standard input.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    foreign::serve_description()
        .map_err(|error| Failure::usage(format!("this is no adapter: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

//! The default folder for the files of runs.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

const FOLDER: &str = "threadtoll-results";

/// Path of a new file that is named after its command and run. Creates the folder.
pub(crate) fn new_file(command: &str, run: &str) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(FOLDER).map_err(|error| {
        Failure::usage(format!("cannot make the folder {FOLDER}: {error}"))
            .hint("choose a file with --out")
    })?;
    let path = |suffix: &str| Path::new(FOLDER).join(format!("{command}-{run}{suffix}.jsonl"));
    // If the name exists, a number is added. All runs on a simulated machine have the same name,
    // because that machine has no real clock.
    let names = std::iter::once(String::new()).chain((2..).map(|nth| format!("-{nth}")));
    let mut paths = names.map(|suffix| path(&suffix));
    Ok(paths.find(|path| !path.exists()).unwrap_or_else(|| path("")))
}

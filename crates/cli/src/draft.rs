//! Writes files in one step, so that no reader sees an incomplete file: a draft in the same folder
//! is renamed.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Checks that a file can be written. `what` names the file's contents in errors.
pub(crate) fn probe(path: &Path, what: &str) -> Result<(), Failure> {
    check_folder(path, what)?;
    let draft = draft(path);
    let tried = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&draft)
        .and_then(|_| std::fs::remove_file(&draft));
    tried.map_err(|error| unwritable(path, what, &error.to_string()))
}

pub(crate) fn replace(path: &Path, what: &str, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::run(format!("cannot write {what} {}: {error}", path.display()))
    };
    let draft = draft(path);
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // Only the first error is reported.
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)
}

/// Rejects a path in a folder that does not exist: creating the folder would hide a typing error.
pub(crate) fn check_folder(path: &Path, what: &str) -> Result<(), Failure> {
    let folder = directory(path);
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            Err(unwritable(path, what, "its parent is not a directory"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(unwritable(path, what, &format!("there is no folder {}", folder.display())))
        }
        _ => Ok(()),
    }
}

pub(crate) fn unwritable(path: &Path, what: &str, why: &str) -> Failure {
    Failure::usage(format!("cannot write {what} {}: {why}", path.display()))
        .hint("choose a file in a writable directory")
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn draft(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    directory(path).join(format!(".{name}.{}", std::process::id()))
}

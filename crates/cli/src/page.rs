//! Pages: written in one step, without overwriting anything else.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use threadtoll_record::file::Results;
use threadtoll_report::html;

use crate::failure::Failure;

/// The beginning of our pages. With the title, it marks a file that a newer page may replace.
const BEGINNING: &[u8] = b"<!doctype html>";
/// The titles, one of them within the first [`TITLE_WITHIN`] bytes.
const TITLES: [&[u8]; 2] = [b"<title>What a hand-off costs", b"<title>Where the threads of "];
const TITLE_WITHIN: u64 = 4096;

/// Refuses a path where a page cannot or must not be written.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let failed = |error: std::io::Error| unwritable(path, &error.to_string());
    // Checked before opening: a named pipe would block until it has a writer.
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(unwritable(path, "it is not a regular file")),
        Ok(_) => {
            let file = File::open(path).map_err(failed)?;
            let mut start = Vec::new();
            file.take(TITLE_WITHIN).read_to_end(&mut start).map_err(failed)?;
            let ours = start.starts_with(BEGINNING)
                && TITLES.iter().any(|title| start.windows(title.len()).any(|part| part == *title));
            if start.is_empty() || ours {
                Ok(())
            } else {
                Err(Failure::usage(format!(
                    "{name} exists and is not a threadtoll page; it was not changed"
                ))
                .hint("choose another file for the page"))
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            match directory.map(std::fs::metadata) {
                Some(Ok(found)) if !found.is_dir() => {
                    Err(unwritable(path, "its parent is not a directory"))
                }
                // The page creates a missing directory.
                _ => Ok(()),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// Makes sure that a page can be written, for callers that first measure for minutes.
pub(crate) fn prepare(path: &Path) -> Result<(), Failure> {
    check(path)?;
    let draft = draft(path);
    let tried = std::fs::create_dir_all(directory(path))
        .and_then(|()| OpenOptions::new().write(true).create_new(true).open(&draft))
        .and_then(|_| std::fs::remove_file(&draft));
    tried.map_err(|error| unwritable(path, &error.to_string()))
}

fn unwritable(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("cannot write the page {}: {why}", path.display()))
        .hint("choose a file in a writable directory")
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn draft(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    directory(path).join(format!(".{name}.{}", std::process::id()))
}

/// Writes a draft and renames it, so that no reader sees half a page.
pub(crate) fn write(path: &Path, results: &[Results]) -> Result<(), Failure> {
    check(path)?;
    let failed = |error: std::io::Error| {
        Failure::run(format!("cannot write the page {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory(path)).map_err(failed)?;
    let draft = draft(path);
    let written = std::fs::write(&draft, html::page(results, &[]))
        .and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)
}

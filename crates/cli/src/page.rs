//! Writing a page: only where nothing of value stands, and in one step.

use std::io::Read;
use std::path::Path;

use threadtoll_record::file::Results;
use threadtoll_report::html;

use crate::failure::Failure;

/// How our pages begin; a file that begins so may be replaced by a newer one.
const BEGINNING: &str = "<!doctype html>";

/// Refuses a place where a page cannot or must not be written.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let unwritable = |error: std::io::Error| {
        Failure::usage(format!("cannot write the page {shown}: {error}"))
            .hint("name a file in a directory that can be written")
    };
    match std::fs::File::open(path) {
        Ok(file) => {
            if !file.metadata().map_err(unwritable)?.is_file() {
                return Err(Failure::usage(format!("cannot write the page {shown}: it is not a regular file")));
            }
            let mut start = Vec::new();
            file.take(BEGINNING.len() as u64).read_to_end(&mut start).map_err(unwritable)?;
            if start.is_empty() || start.eq_ignore_ascii_case(BEGINNING.as_bytes()) {
                Ok(())
            } else {
                Err(Failure::usage(format!("{shown} exists and is not a page; it was left as it is"))
                    .hint("name another file for the page"))
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            match directory.map(std::fs::metadata) {
                Some(Ok(found)) if !found.is_dir() => {
                    Err(Failure::usage(format!("cannot write the page {shown}: its directory is no directory")))
                }
                // Made when the page is written.
                _ => Ok(()),
            }
        }
        Err(error) => Err(unwritable(error)),
    }
}

/// Writes the page beside and renames it, so that a reader never sees half of it.
pub(crate) fn write(path: &Path, results: &[Results]) -> Result<(), Failure> {
    check(path)?;
    let failed = |error: std::io::Error| Failure::run(format!("cannot write the page {}: {error}", path.display()));
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let draft = directory.join(format!(".{name}.{}", std::process::id()));
    let written = std::fs::write(&draft, html::page(results)).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // The draft is ours alone, and there is nothing better to say than the first error.
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)
}

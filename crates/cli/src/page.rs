//! HTML pages. Each is written in one step, and replaces only an older page, never another file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use threadtoll_record::file::{Profiled, Results};
use threadtoll_report::html;

use crate::draft;
use crate::failure::Failure;

const WHAT: &str = "the page";
/// Beginning of all our pages. A newer page may replace a file that has this beginning and one of
/// our titles.
const BEGINNING: &[u8] = b"<!doctype html>";
/// The title must be within this number of bytes from the start.
const TITLE_WITHIN: u64 = 4096;

/// Rejects a path at which a page cannot or must not be written.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let failed = |error: std::io::Error| unwritable(path, &error.to_string());
    // Checked before opening, because opening a named pipe would block until the pipe has a writer.
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(unwritable(path, "it is not a regular file")),
        Ok(_) => {
            let file = File::open(path).map_err(failed)?;
            let mut start = Vec::new();
            file.take(TITLE_WITHIN).read_to_end(&mut start).map_err(failed)?;
            let ours = start.starts_with(BEGINNING)
                && html::TITLES.iter().any(|title| {
                    let title = format!("<title>{title}");
                    start.windows(title.len()).any(|part| part == title.as_bytes())
                });
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
            draft::check_folder(path, WHAT)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Checks that a page can be written, for callers that first measure for minutes.
pub(crate) fn prepare(path: &Path) -> Result<(), Failure> {
    check(path)?;
    draft::probe(path, WHAT)
}

fn unwritable(path: &Path, why: &str) -> Failure {
    draft::unwritable(path, WHAT, why)
}

pub(crate) fn write(
    path: &Path,
    results: &[Results],
    profiles: &[Profiled],
) -> Result<(), Failure> {
    replace(path, &html::page(results, profiles))
}

/// Writes a page that exists already as text.
pub(crate) fn replace(path: &Path, page: &str) -> Result<(), Failure> {
    check(path)?;
    draft::replace(path, WHAT, page)
}

/// A command that creates a page from the profile.
pub(crate) fn command(path: &Path) -> String {
    format!("threadtoll report {} --html page.html", path.display())
}

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

const EXCERPT_CHARS: usize = 40;

pub(super) fn read(path: &Path, max_bytes: u64, hint: &str) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let unreadable = |why: &str| Failure::usage(format!("cannot read {name}: {why}")).hint(hint);
    let failed = |error: std::io::Error| unreadable(&error.to_string());
    // Checked before opening, because opening a named pipe would block until the pipe has a writer.
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(unreadable("it is not a regular file"));
    }
    if found.len() > max_bytes {
        return Err(too_large(&name, max_bytes, hint));
    }
    read_all(File::open(path).map_err(failed)?, &name, max_bytes, hint)
}

pub(super) fn read_all(
    source: impl Read,
    name: &str,
    max_bytes: u64,
    hint: &str,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    source
        .take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")).hint(hint))?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(name, max_bytes, hint));
    }
    Ok(bytes)
}

fn too_large(name: &str, max_bytes: u64, hint: &str) -> Failure {
    Failure::usage(format!("{name} is larger than {} MB", max_bytes / 1_000_000)).hint(hint)
}

pub(super) fn excerpt(line: &str) -> String {
    match line.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}

/// Lines with their numbers, counted from 1. Comments and empty lines are omitted.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
}

//! Writes result files. A file appears with its first two lines complete; then lines are appended.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Line, Machine, Plan};

/// Reason why a result file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteFault {
    /// A file with this name exists and is not empty.
    #[error("{} exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// The path is that of a directory, a device or similar.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Another process is writing the file.
    #[error("{} is being written by another process", .0.display())]
    Busy(PathBuf),
    /// An I/O error.
    #[error("cannot {what} {}: {error}", path.display())]
    System {
        /// The action that failed, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
}

/// An open, append-only result file, locked against other writers.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Appender {
    /// Rejects an existing path, except for an empty regular file.
    ///
    /// # Errors
    ///
    /// If the path is rejected, or its metadata cannot be read.
    pub fn check(path: &Path) -> Result<(), WriteFault> {
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => Err(WriteFault::NotAFile(path.to_path_buf())),
            Ok(found) if found.len() > 0 => Err(WriteFault::Exists(path.to_path_buf())),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                Err(WriteFault::System { what: "write", path: path.to_path_buf(), error })
            }
        }
    }

    /// Creates the file with its first two lines. They are written to a temporary file in the same
    /// directory, which is renamed once both lines are on disk.
    ///
    /// # Errors
    ///
    /// If there is a file with this name that is not empty, or an I/O error occurs.
    pub fn create(path: &Path, machine: &Machine, plan: &Plan) -> Result<Self, WriteFault> {
        let text = head(machine, plan);
        let file = create(path, |file| file.write_all(text.as_bytes()))?;
        Ok(Appender { path: path.to_path_buf(), file, length: text.len() as u64 })
    }

    /// Opens a file that [`read`](super::read()) accepted, and truncates it to `length`, the length
    /// of its valid part. `read_length` is the file's size when it was read.
    ///
    /// # Errors
    ///
    /// If another process is writing the file, the file has changed since it was read, or an I/O
    /// error occurs.
    pub fn resume(path: &Path, length: u64, read_length: u64) -> Result<Self, WriteFault> {
        let system =
            |what| move |error| WriteFault::System { what, path: path.to_path_buf(), error };
        let mut file =
            OpenOptions::new().read(true).write(true).open(path).map_err(system("continue"))?;
        lock(&file, path)?;
        let now = file.metadata().map_err(system("continue"))?.len();
        if now != read_length {
            return Err(WriteFault::Busy(path.to_path_buf()));
        }
        if now != length {
            file.set_len(length).map_err(system("cut the incomplete last line of"))?;
        }
        file.seek(SeekFrom::Start(length)).map_err(system("continue"))?;
        Ok(Appender { path: path.to_path_buf(), file, length })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines in one write.
    ///
    /// # Errors
    ///
    /// On an I/O error, such as a full disk. Earlier lines are kept, and any part of the new lines
    /// is removed.
    pub fn append(&mut self, lines: &[Line]) -> Result<(), WriteFault> {
        let text: String = lines.iter().map(to_text).collect();
        match self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush()) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Readers ignore an incomplete last line, so removing it only spares them the note.
                let _ = self.file.set_len(self.length);
                Err(WriteFault::System { what: "append to", path: self.path.clone(), error })
            }
        }
    }

    /// Replaces the file by the first two lines and `lines`. A reader sees either the old or the
    /// new file: the new one has a temporary name until everything is on disk.
    ///
    /// # Errors
    ///
    /// On an I/O error. The file is then unchanged.
    pub fn begin_anew(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        lines: &[Line],
    ) -> Result<(), WriteFault> {
        let mut text = head(machine, plan);
        text.extend(lines.iter().map(to_text));
        self.file = write_draft(
            &self.path,
            |file| file.write_all(text.as_bytes()),
            |draft| {
                std::fs::rename(draft, &self.path).map_err(|error| WriteFault::System {
                    what: "write",
                    path: self.path.clone(),
                    error,
                })
            },
        )?;
        self.length = text.len() as u64;
        Ok(())
    }

    /// Number of bytes in the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Syncs everything to the disk.
    ///
    /// # Errors
    ///
    /// On an I/O error.
    pub fn sync(&self) -> Result<(), WriteFault> {
        self.file.sync_all().map_err(|error| WriteFault::System {
            what: "write",
            path: self.path.clone(),
            error,
        })
    }
}

fn head(machine: &Machine, plan: &Plan) -> String {
    to_text(&Line::Machine(Box::new(machine.clone())))
        + &to_text(&Line::Plan(Box::new(plan.clone())))
}

/// Creates a locked file atomically, unless a file with data exists at `path`.
pub(super) fn create(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<File, WriteFault> {
    Appender::check(path)?;
    write_draft(path, write, |draft| {
        // Another file may have appeared since the first check, and its data must not be lost.
        Appender::check(path)?;
        put_in_place(draft, path).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                WriteFault::Exists(path.to_path_buf())
            } else {
                WriteFault::System { what: "write", path: path.to_path_buf(), error }
            }
        })
    })
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Writes a locked temporary file next to `path`, and moves it into place once it is on disk.
fn write_draft(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
    put_in_place: impl FnOnce(&Path) -> Result<(), WriteFault>,
) -> Result<File, WriteFault> {
    let system = |error| WriteFault::System { what: "write", path: path.to_path_buf(), error };
    let name = path.file_name().ok_or_else(|| WriteFault::NotAFile(path.to_path_buf()))?;
    let mut draft_name = std::ffi::OsString::from(".");
    draft_name.push(name);
    draft_name.push(format!(".{}", std::process::id()));
    let draft = directory(path).join(draft_name);
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&draft).map_err(system)?;
        write(&mut file).map_err(system)?;
        file.sync_all().map_err(system)?;
        lock(&file, path)?;
        put_in_place(&draft)?;
        Ok(file)
    })();
    if written.is_err() {
        // If even removing the draft fails, the first error is the one to report.
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// Renames `draft` to `path` without replacing a file that has data, as far as the file system can
/// ensure that.
fn put_in_place(draft: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if std::fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return std::fs::rename(draft, path);
    }
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Not all file systems support `NOREPLACE`. A hard link does not replace a file either.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            match std::fs::hard_link(draft, path) {
                Ok(()) => std::fs::remove_file(draft),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Without hard links, this replaces any file that appeared since the last check.
                Err(_) => std::fs::rename(draft, path),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn lock(file: &File, path: &Path) -> Result<(), WriteFault> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(WriteFault::Busy(path.to_path_buf())),
        // On a file system without locks, continue without one.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

pub(super) fn to_text(line: &Line) -> String {
    match serde_json::to_string(line) {
        Ok(mut text) => {
            text.push('\n');
            text
        }
        Err(error) => unreachable!("a line has only text keys, so JSON can hold it: {error}"),
    }
}

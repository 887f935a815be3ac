//! Threads of processes that are not observed: memory that processes share may name them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{CWD, Mode, OFlags};

use super::files::{self, ShortPath};

/// The process of a thread, and the thread's name; `None` if there is no such thread.
pub fn whose_thread(tid: u32) -> Option<(u32, OsString)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, format!("/proc/{tid}"), flags, Mode::empty()).ok()?;
    let process = files::Status::read(&directory).ok()?.process;
    let mut name = files::read(&directory, &ShortPath::new(format_args!("comm")), 64).ok()?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some((process, OsString::from_vec(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_any_process_are_named() {
        let own = std::process::id();
        let body = move || {
            // `/proc/thread-self` is a link to `PID/task/TID`.
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            let tid = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
            assert_eq!(whose_thread(tid), Some((own, OsString::from("stranger"))));
        };
        std::thread::Builder::new().name("stranger".into()).spawn(body).unwrap().join().unwrap();
        assert_eq!(whose_thread(i32::MAX as u32), None);
    }
}

//! Running the program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longer than any of these commands takes; more is a hang.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder that is removed when all tests have ended.
fn scratch() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    extern "C" fn remove() {
        if let Some(folder) = FOLDER.get() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
    FOLDER.get_or_init(|| {
        // SAFETY: the function takes no arguments and does not unwind.
        unsafe { libc::atexit(remove) };
        TempDir::new().unwrap().keep()
    })
}

/// The program as a command that ignores the environment, and keeps its runs in a folder that is
/// removed.
pub(crate) fn plain() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadtoll"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    command.current_dir(scratch());
    command
}

/// As [`plain`], and takes signals even if whoever runs the tests ignores them, as `nohup` does.
/// That takes a fork of the tests, which takes longer than most commands.
pub(crate) fn command() -> Command {
    let mut command = plain();
    let take_signals = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            // SAFETY: resets a signal of the child to what it does by default.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the child only calls `signal`, which is async-signal-safe.
    unsafe { command.pre_exec(take_signals) };
    command
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn ran(command: Command) -> Ended {
    let mut command = assert_cmd::Command::from_std(command);
    let output = command.timeout(PATIENCE).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub(crate) fn threadtoll<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    let mut command = plain();
    command.args(arguments);
    ran(command)
}

/// Runs a command line in a folder.
pub(crate) fn run_in(folder: &Path, line: &str) -> Ended {
    let mut command = plain();
    command.current_dir(folder).args(words(line, &[]));
    ran(command)
}

/// Text that it printed.
pub(crate) fn printed_in(folder: &Path, line: &str) -> String {
    run_in(folder, line).done().out
}

/// A run that tests share. None of them changes its files.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) ended: Ended,
    pub(crate) file: PathBuf,
    pub(crate) page: PathBuf,
}

/// The run of a command line, which is measured once however many tests look at it.
pub(crate) fn kept(line: &str) -> &'static Kept {
    static RUNS: Mutex<BTreeMap<String, &'static OnceLock<Kept>>> = Mutex::new(BTreeMap::new());
    let run = *RUNS.lock().unwrap().entry(line.into()).or_insert_with(|| Box::leak(Box::default()));
    run.get_or_init(|| {
        let folder = TempDir::new_in(scratch()).unwrap().keep();
        let ended = run_in(&folder, &format!("{line} --out run.jsonl")).done();
        Kept { ended, file: folder.join("run.jsonl"), page: folder.join("run.html") }
    })
}

impl Kept {
    /// A copy of the file that a test may change, in a folder of its own.
    pub(crate) fn copied_to(&self, folder: &Path) -> PathBuf {
        let copy = folder.join("run.jsonl");
        std::fs::copy(&self.file, &copy).unwrap();
        copy
    }
}

/// Splits a command line at its blanks and appends paths.
pub(crate) fn words<'a>(line: &'a str, paths: &[&'a Path]) -> Vec<&'a OsStr> {
    line.split_whitespace()
        .map(OsStr::new)
        .chain(paths.iter().map(|path| path.as_os_str()))
        .collect()
}

impl Ended {
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// It rejected bad input: in one line and at most one line of hint, and with no other output.
    #[track_caller]
    pub(crate) fn bad(&self) -> &Self {
        assert_eq!(self.code, Some(2), "{self:#?}");
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(lines.len() <= 2 && lines[0].starts_with("error: "), "{self:#?}");
        assert!(lines.get(1).is_none_or(|hint| hint.starts_with("hint: ")), "{self:#?}");
        assert!(self.out.is_empty(), "{self:#?}");
        self
    }

    /// It failed, or refused, with this code; notes may precede the error.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        let errors = self.err.lines().filter(|line| line.starts_with("error: ")).count();
        assert!(errors == 1 && !self.err.contains("panicked"), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, part: &str) -> &Self {
        assert!(self.err.contains(part), "“{part}” is not in {self:#?}");
        self
    }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what} did not come");
        sleep(Duration::from_millis(2));
    }
}

pub(crate) struct Held {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl Held {
    pub(crate) fn of(path: &Path) -> Self {
        Held { path: path.to_path_buf(), bytes: std::fs::read(path).ok() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }

    /// It still has these contents, or still does not exist.
    #[track_caller]
    pub(crate) fn unchanged(&self) {
        let now = std::fs::read(&self.path).ok();
        assert!(now == self.bytes, "{} was changed", self.path.display());
    }
}

/// Pseudo-random numbers, equal in every run of a test.
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Seeded(seed)
    }

    /// SplitMix64 (G. Steele et al., 2014).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Does this with each of `items` on two threads: most of these tests' time is waiting for
/// processes.
pub(crate) fn each<T: Send + Sync>(items: &[T], work: impl Fn(usize, &T) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for half in 0..2 {
            let items = items.iter().enumerate().filter(move |(index, _)| index % 2 == half);
            scope.spawn(move || items.for_each(|(index, item)| work(index, item)));
        }
    });
}

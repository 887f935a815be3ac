//! Starting a program that keeps an account, and ending it.

use crate::Error;
use crate::truth::{Acquisition, read_folder};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A lock, as its program describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueLock {
    /// Identity in the account.
    pub id: u32,
    /// Kind.
    pub kind: String,
    /// Address and size of the object.
    pub address: u64,
    /// Size of the object.
    pub size: u64,
    /// Name, or `-`.
    pub name: String,
    /// To be compared with a profile.
    pub judged: bool,
}

/// A cause, as its program describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueCause {
    /// The cause.
    pub cause: String,
    /// The lock.
    pub lock: u32,
    /// The thread that holds it most; `None` if there is none in particular.
    pub holder: Option<u32>,
    /// Causes that are true besides.
    pub also: Vec<String>,
    /// System call in which the holder sleeps.
    pub call: Option<String>,
}

/// A second count of the time that nobody held a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Free {
    /// The lock.
    pub lock: u32,
    /// First acquisition.
    pub from: u64,
    /// Last release.
    pub to: u64,
    /// Time in between that nobody held it.
    pub free_ns: u64,
}

/// Everything that a program says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Its locks.
    pub locks: Vec<TrueLock>,
    /// The cause that it was built for.
    pub cause: Option<TrueCause>,
    /// Its own second count.
    pub free: Vec<Free>,
    /// All threads have started.
    pub ready: bool,
}

impl Facts {
    /// Adds a line.
    pub fn add(&mut self, line: &str) -> Result<(), Error> {
        let unclear = || format!("a program says {line:?}");
        let mut words = line.split(' ').peekable();
        let side = words.next_if_eq(&"side").is_some();
        let kind = words.next().ok_or_else(unclear)?;
        let words: Vec<&str> = words.collect();
        match (kind, &words[..]) {
            ("lock", [id, kind, address, size, name]) => self.locks.push(TrueLock {
                id: id.parse()?,
                kind: (*kind).to_owned(),
                address: u64::from_str_radix(address.trim_start_matches("0x"), 16)?,
                size: size.parse()?,
                name: (*name).to_owned(),
                judged: !side,
            }),
            ("cause", [cause, lock, holder, also, call]) => {
                self.cause = Some(TrueCause {
                    cause: (*cause).to_owned(),
                    lock: lock.parse()?,
                    holder: Some(holder.parse()?).filter(|&tid| tid != 0),
                    also: also.split(',').filter(|&word| word != "-").map(str::to_owned).collect(),
                    call: Some((*call).to_owned()).filter(|word| word != "-"),
                });
            }
            ("free", [lock, from, to, free]) => self.free.push(Free {
                lock: lock.parse()?,
                from: from.parse()?,
                to: to.parse()?,
                free_ns: free.parse()?,
            }),
            ("ready", []) => self.ready = true,
            _ => return Err(unclear().into()),
        }
        Ok(())
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Target {
    child: Child,
    pid: u32,
    output: BufReader<ChildStdout>,
    /// Its output so far.
    pub facts: Facts,
    /// Where it keeps its account.
    pub folder: PathBuf,
}

impl Target {
    /// Starts a program and waits until its threads run.
    pub fn start(program: &str, arguments: &[String]) -> Result<Target, Error> {
        let folder = new_folder()?;
        let command = Command::new(program_path(program)?);
        Target::run(command, program, arguments, folder)
    }

    /// Has a profiler start a program, and waits until the program's threads run. `profiler`
    /// returns its command line up to the program; the profiler's messages go to a file
    /// `messages`.
    pub fn start_under(
        profiler: impl FnOnce(&Path) -> Command,
        program: &str,
        arguments: &[String],
    ) -> Result<Target, Error> {
        let folder = new_folder()?;
        let mut command = profiler(&folder);
        command.arg("--").arg(program_path(program)?);
        command.stderr(std::fs::File::create(folder.join("messages"))?);
        let mut target = Target::run(command, program, arguments, folder)?;
        target.pid = child_of(target.pid)?;
        Ok(target)
    }

    fn run(
        mut command: Command,
        program: &str,
        arguments: &[String],
        folder: PathBuf,
    ) -> Result<Target, Error> {
        command.args(arguments).arg("--truth").arg(&folder);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let pid = child.id();
        let mut target = Target { child, pid, output, facts: Facts::default(), folder };
        target
            .wait_until_ready()
            .map_err(|error| format!("{program} {}: {error}", arguments.join(" ")))?;
        Ok(target)
    }

    /// Waits until its threads run; if it has replaced itself, those of the new image. A signal
    /// that arrives before then may be taken by the old image.
    pub fn wait_until_ready(&mut self) -> Result<(), Error> {
        self.facts.ready = false;
        while !self.facts.ready {
            if !self.read_line()? {
                return Err("the program ended before its threads ran".into());
            }
        }
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    fn read_line(&mut self) -> Result<bool, Error> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        self.facts.add(line.trim_end())?;
        // Whoever looks at the folder finds there what the account is about.
        let facts = self.folder.join("facts");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(facts)?;
        std::io::Write::write_all(&mut file, line.as_bytes())?;
        Ok(true)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: nobody but its parent, this process or the profiler, waits for the program; the
        // profiler of one that has ended ends too, which closes what `finish` reads.
        unsafe { libc::kill(self.pid() as i32, signal) };
    }

    /// Tells it to finish, and reads its account.
    pub fn finish(mut self) -> Result<(Facts, Vec<Acquisition>), Error> {
        self.end()
    }

    /// Tells it to finish, and reads its account. Its folder remains for now.
    pub fn end(&mut self) -> Result<(Facts, Vec<Acquisition>), Error> {
        self.signal(libc::SIGTERM);
        while self.read_line()? {}
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("the program ended with {status}").into());
        }
        Ok((std::mem::take(&mut self.facts), read_folder(&self.folder)?))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // A program that has ended already makes neither of these fail in a way that matters.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The process that another one has started.
fn child_of(parent: u32) -> Result<u32, Error> {
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // Processes end while others are read.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        if status.lines().any(|line| line == format!("PPid:\t{parent}")) {
            return Ok(pid);
        }
    }
    Err(format!("process {parent} has no child").into())
}

fn new_folder() -> std::io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Memory: a page of a file on a disk can make its writer wait.
    let folder = PathBuf::from(format!("/dev/shm/threadtoll-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder)?;
    Ok(folder)
}

/// A program that `build.sh` has built: they lie beside the harness.
pub fn program_path(program: &str) -> Result<PathBuf, Error> {
    let path = std::env::current_exe()?.with_file_name(program);
    if path.exists() { Ok(path) } else { Err(format!("{}: run build.sh", path.display()).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let mut facts = Facts::default();
        facts.add("side lock 16 mutex 0x560b 40 job_lock").unwrap();
        facts.add("cause hog 0 17 computing -").unwrap();
        facts.add("free 0 100 200 40").unwrap();
        facts.add("ready").unwrap();
        assert_eq!((facts.locks[0].address, facts.locks[0].judged), (0x560b, false));
        let cause = facts.cause.unwrap();
        assert_eq!((cause.holder, cause.also.len(), cause.call), (Some(17), 1, None));
        assert_eq!(facts.free[0].free_ns, 40);
        assert!(facts.ready);
    }

    #[test]
    fn other_lines_are_errors() {
        for line in ["", "lock 1", "free a b c d", "cause", "hello"] {
            assert!(Facts::default().add(line).is_err(), "{line:?}");
        }
    }
}

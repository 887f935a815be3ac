//! Running `threadtoll profile`, and reading what it prints.

use crate::Error;
use crate::account::now;
use crate::options::option;
use crate::target::Target;
use serde_json::Value;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command under test: `THREADTOLL`, or `threadtoll` on the path.
pub fn threadtoll() -> PathBuf {
    std::env::var_os("THREADTOLL").map_or_else(|| "threadtoll".into(), PathBuf::from)
}

/// Name of the file with a profile's records.
const RECORDS: &str = "profile.jsonl";

/// A profiling that is under way.
#[derive(Debug)]
pub struct Profiler {
    child: std::process::Child,
    started: u64,
}

/// A profiling that is over.
#[derive(Debug)]
pub struct Profiled {
    /// Its exit code, 128+S after signal S.
    pub code: i32,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub messages: String,
    /// When the process started and ended.
    pub process: [u64; 2],
    /// CPU time of the profiler, in seconds.
    pub cpu_s: f64,
    /// Most memory that it had, in MiB.
    pub peak_mib: f64,
}

impl Profiler {
    /// Starts to profile a process. Its output goes to files in a folder: nobody has to read it
    /// while it runs.
    pub fn start(pid: u32, seconds: f64, extra: &[&str], folder: &Path) -> Result<Profiler, Error> {
        let file = |name: &str| std::fs::File::create(folder.join(name));
        let started = now();
        let child = profiling(folder)
            .args(["--seconds", &format!("{seconds}s"), "--json"])
            .args(extra)
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(file("output")?)
            .stderr(file("messages")?)
            .spawn()
            .map_err(|error| format!("{}: {error}", threadtoll().display()))?;
        Ok(Profiler { child, started })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, for so many seconds. A profiler that has not ended by then is killed, and
    /// is an error.
    pub fn finish(self, patience_s: f64, folder: &Path) -> Result<Profiled, Error> {
        let pid = self.child.id() as i32;
        // Sleeps until then: looking again and again would slow the profiled program down.
        let ended = ends_within(pid, patience_s)?;
        if !ended {
            // SAFETY: the child has not been waited for, so the PID is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: all zero is a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live values, and the child has not been waited for.
        if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } != pid {
            return Err(std::io::Error::last_os_error().into());
        }
        if !ended {
            return Err("the profiler does not end".into());
        }
        let text = |name: &str| -> Result<String, Error> {
            let mut bytes = Vec::new();
            std::fs::File::open(folder.join(name))?.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        // A run beside the next one is a new file.
        let _ = std::fs::remove_file(folder.join(RECORDS));
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Ok(Profiled {
            code: if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            },
            output: text("output")?,
            messages: text("messages")?,
            process: [self.started, now()],
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            peak_mib: usage.ru_maxrss as f64 / 1024.0,
        })
    }
}

/// Command line of a profiling whose records go to a file in a folder.
fn profiling(folder: &Path) -> Command {
    let mut command = Command::new(threadtoll());
    for (name, call) in [("perf", libc::SYS_perf_event_open), ("slices", libc::SYS_sched_setattr)] {
        if option(name, "yes") == "no" {
            // SAFETY: the closure makes two system calls, and does not allocate.
            unsafe { command.pre_exec(move || refuse(call)) };
        }
    }
    command.arg("profile").arg("--out").arg(folder.join(RECORDS));
    command
}

/// Starts a program by its profiler.
pub fn launch(program: &str, arguments: &[String], extra: &[&str]) -> Result<Target, Error> {
    let command = |folder: &Path| {
        let mut command = profiling(folder);
        command.args(extra);
        command
    };
    Target::start_under(command, program, arguments)
}

/// JSON of a profile in a folder, as `profile show` prints it.
pub fn show(folder: &Path) -> Result<String, Error> {
    let mut command = Command::new(threadtoll());
    let output = command.args(["profile", "show", "--json"]).arg(folder.join(RECORDS)).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns whether a child that has not been waited for ends within some seconds.
fn ends_within(pid: i32, seconds: f64) -> std::io::Result<bool> {
    let checked = |code: i64| match code {
        -1 => Err(std::io::Error::last_os_error()),
        code => Ok(code as i32),
    };
    // SAFETY: takes two numbers.
    let descriptor = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel has just made it, for nobody else.
    let process = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live `pollfd`.
    let ready = unsafe { libc::poll(&mut poll, 1, (seconds * 1e3) as i32) };
    Ok(checked(i64::from(ready))? > 0)
}

/// Refuses a system call to this process and what it executes, as containers do.
fn refuse(call: i64) -> std::io::Result<()> {
    let statement =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        // The number of the system call is the first word of `seccomp_data`.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(equal, 0, 1, call as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes plain numbers.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its filter are live, and the kernel copies them.
    let refused =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    match (promised, refused) {
        (0, 0) => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Profiles a process for so many seconds.
pub fn profile(pid: u32, seconds: f64, extra: &[&str], folder: &Path) -> Result<Profiled, Error> {
    Profiler::start(pid, seconds, extra, folder)?.finish(seconds + 10.0, folder)
}

/// A lock, as the profile describes it. What it withholds is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfiledLock {
    pub kind: String,
    pub name: String,
    pub address: u64,
    pub held_share: Option<f64>,
    pub held_interval: Option<[f64; 2]>,
    pub queue_mean: Option<f64>,
    pub queue_interval: Option<[f64; 2]>,
    pub queue_max: Option<u32>,
    pub threads: Option<u32>,
    pub gain: Option<f64>,
    pub verdict: String,
    pub holders: Vec<(u32, f64)>,
    pub holder_not_seen: Option<f64>,
    /// Cause, its share, and the system call.
    pub causes: Vec<(String, Option<f64>, Option<String>)>,
    pub predicted: Vec<(u32, f64)>,
}

/// A profile of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Start and end of sampling on `CLOCK_MONOTONIC`, if the profile says so.
    pub interval: Option<[u64; 2]>,
    /// Length of sampling.
    pub seconds: f64,
    /// Shares of all thread time: `running`, `io`, ….
    pub time: Vec<(String, f64)>,
    /// Its locks.
    pub locks: Vec<ProfiledLock>,
}

impl Profile {
    /// Reads the JSON of a profile, for one process.
    pub fn parse(text: &str, pid: u32) -> Result<Profile, Error> {
        let whole: Value = serde_json::from_str(text)?;
        if whole["schema"] != "threadtoll.profile/2" {
            return Err(format!("schema {}", whole["schema"]).into());
        }
        let processes = whole["processes"].as_array().ok_or("no processes")?;
        let process = processes
            .iter()
            .rfind(|process| process["pid"] == pid)
            .ok_or_else(|| format!("no process {pid}"))?;
        let mut time = Vec::new();
        // Null where nothing was seen of it.
        for (kind, value) in process["time"].as_object().into_iter().flatten() {
            if let Some(share) = value.as_f64() {
                time.push((kind.clone(), share));
            } else if kind == "io" {
                let kinds = value.as_object().ok_or("io is no object")?;
                time.push((kind.clone(), kinds.values().filter_map(Value::as_f64).sum()));
            }
        }
        let ends = &whole["interval_ns"];
        Ok(Profile {
            interval: ends[0]
                .as_f64()
                .zip(ends[1].as_f64())
                .map(|(from, to)| [from as u64, to as u64]),
            seconds: whole["seconds"].as_f64().ok_or("no seconds")?,
            time,
            locks: process["locks"].as_array().ok_or("no locks")?.iter().map(lock).collect(),
        })
    }

    /// Start and end of sampling: as the profile says, or else guessed from the process that
    /// sampled, which takes some time before and after.
    pub fn interval_within(&self, process: [u64; 2]) -> [u64; 2] {
        self.interval.unwrap_or_else(|| {
            let length = (self.seconds * 1e9) as u64;
            let spare = (process[1] - process[0]).saturating_sub(length);
            [process[0] + spare / 2, process[1] - spare / 2]
        })
    }
}

fn lock(value: &Value) -> ProfiledLock {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let pair = |key: &str| {
        let ends = &value[key];
        ends[0].as_f64().zip(ends[1].as_f64()).map(|(low, high)| [low, high])
    };
    let list = |key: &str| value[key].as_array().cloned().unwrap_or_default();
    let small = |key: &str| value[key].as_u64().and_then(|n| u32::try_from(n).ok());
    let address = text("address");
    ProfiledLock {
        kind: text("kind"),
        name: text("name"),
        address: u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap_or_default(),
        held_share: value["held_share"].as_f64(),
        held_interval: pair("held_share_interval95"),
        queue_mean: value["queue_mean"].as_f64(),
        queue_interval: pair("queue_mean_interval95"),
        queue_max: small("queue_max"),
        threads: small("threads"),
        gain: value["gain"].as_f64(),
        verdict: text("verdict"),
        holders: list("holders")
            .iter()
            .filter_map(|each| {
                Some((u32::try_from(each["tid"].as_u64()?).ok()?, each["share"].as_f64()?))
            })
            .collect(),
        holder_not_seen: value["holder_not_seen_share"].as_f64(),
        causes: list("causes")
            .iter()
            .filter_map(|each| {
                let call = each["syscall"].as_str().map(str::to_owned);
                Some((each["cause"].as_str()?.to_owned(), each["share"].as_f64(), call))
            })
            .collect(),
        predicted: list("predicted")
            .iter()
            .filter_map(|each| {
                Some((u32::try_from(each["threads"].as_u64()?).ok()?, each["speedup"].as_f64()?))
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read() {
        let text = r#"{"schema":"threadtoll.profile/2","seconds":2.0,"interval_ns":[100,300],
            "processes":[{"pid":7,"time":{"running":0.2,"io":{"read":0.1,"write":0.2},
             "interval95":{}},"locks":[]},
            {"pid":8,"time":null,"locks":[{"kind":"mutex","name":"a","address":"0x55","threads":3,
             "held_share":0.3,"held_share_interval95":[0.2,0.4],"queue_mean":null,
             "queue_mean_interval95":null,"verdict":"crowded","holders":[{"tid":9,"share":0.9}],
             "causes":[{"cause":"hog","share":0.7,"syscall":null}],
             "predicted":[{"threads":8,"speedup":4.5}]}]}]}"#;
        let first = Profile::parse(text, 7).unwrap();
        assert_eq!(first.interval_within([0, 1000]), [100, 300]);
        assert_eq!(first.time.len(), 2);
        assert!((first.time.iter().find(|kind| kind.0 == "io").unwrap().1 - 0.3).abs() < 1e-12);
        let second = Profile::parse(text, 8).unwrap();
        let lock = &second.locks[0];
        assert_eq!((lock.address, lock.held_interval), (0x55, Some([0.2, 0.4])));
        assert_eq!((lock.queue_mean, lock.queue_interval), (None, None));
        assert_eq!(lock.holders, [(9, 0.9)]);
        assert_eq!(lock.causes, [("hog".to_owned(), Some(0.7), None)]);
        assert_eq!(lock.predicted, [(8, 4.5)]);
        assert!(Profile::parse(text, 9).is_err());
        assert!(Profile::parse("{}", 7).is_err());
    }

    #[test]
    fn an_interval_that_is_not_given_lies_in_the_middle() {
        let profile = Profile { seconds: 1e-6, ..Profile::default() };
        assert_eq!(profile.interval_within([1000, 2200]), [1100, 2100]);
    }
}

//! Roles that the test binary plays for its tests.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::*;

const ROLE: &str = "THREADTOLL_TEST_ROLE";
/// Environment variable: PID that a role observes.
pub(super) const PID: &str = "THREADTOLL_TEST_PID";
/// Environment variable: script for the shell.
pub(super) const SCRIPT: &str = "THREADTOLL_TEST_SCRIPT";
/// The test that plays roles.
pub(super) const TEST: &str = "process::tests::roles::role";
/// Reported by [`nobody`] in a container with a single user.
pub(super) const NO_OTHER_USER: &str = "no other user";
/// Number of threads of the role [`many`].
pub(super) const MANY: usize = 100;

/// Not a test: the body of processes that tests observe.
#[test]
pub(super) fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("threads") => threads(),
        Ok("orphans") => orphans(),
        Ok("execute") => execute(),
        Ok("many") => many(),
        Ok("scarce") => scarce(),
        Ok("nobody") => nobody(),
        Ok("launch") => launch(),
        Ok("launch twice") => launch_twice(),
        Ok("chaos") => chaos(),
        _ => {}
    }
}

fn ready(facts: &str) {
    println!("\nready {facts}");
}

/// Returns after a line of input, or when the observing test ends.
fn until_told() {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
}

/// Threads that wait for a mutex, sleep, and compute.
fn threads() {
    static MUTEX: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = MUTEX.lock().unwrap();
    // The barrier waits until all threads have set their names.
    let named = Arc::new(Barrier::new(4));
    let start = |name: &str, body: fn()| {
        let named = Arc::clone(&named);
        let body = move || {
            named.wait();
            body();
        };
        thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
    };
    start("mutex", || drop(MUTEX.lock()));
    start("sleep", || thread::sleep(Duration::from_secs(1_000)));
    // The test waits until the thread spins: if it is stopped on its way out of a system call, it
    // seems to be in that call.
    static SPINS: AtomicBool = AtomicBool::new(false);
    start("a \x1b(b) \n", || {
        SPINS.store(true, Release);
        loop {
            std::hint::spin_loop();
        }
    });
    named.wait();
    while !SPINS.load(Acquire) {
        thread::yield_now();
    }
    ready(&format!("{}", &raw const MUTEX as u64));
    until_told();
    std::process::exit(0);
}

/// A child whose first thread ends when told. Another thread goes on until told again.
fn orphans() {
    // SAFETY: the child uses nothing that another thread of this process could have locked; the
    // harness waits for this one.
    let child = unsafe { libc::fork() };
    if child > 0 {
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        std::process::exit(0);
    }
    let (end, ended) = std::sync::mpsc::channel();
    thread::spawn(move || {
        ready(&std::process::id().to_string());
        until_told();
        end.send(()).unwrap();
        until_told();
        std::process::exit(0)
    });
    ended.recv().unwrap();
    // SAFETY: ends this thread alone, which no other one joins.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Executes itself in another role when told.
fn execute() {
    ready("");
    until_told();
    let _ = role_command("threads").exec();
    std::process::exit(1);
}

fn many() {
    // Yama may let a process observe only its descendants; this also admits a sibling.
    // SAFETY: plain numbers. It fails where there is no Yama.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    for _ in 0..MANY {
        thread::spawn(|| thread::sleep(Duration::from_secs(1_000)));
    }
    ready("");
    until_told();
    std::process::exit(0);
}

/// Samples the threads of a process with few descriptors.
fn scarce() {
    let few = Rlimit { current: Some(32), maximum: Some(32) };
    setrlimit(Resource::Nofile, few).unwrap();
    let mut process = Process::open(number(PID)).unwrap();
    process.refresh().unwrap();
    let threads = process.threads();
    let seen =
        threads.iter().filter(|thread| matches!(thread.sample(), ThreadSample::Seen(_))).count();
    // Descriptors are left for other files.
    std::fs::read("/proc/self/stat").unwrap();
    ready(&format!("{seen} of {} threads", threads.len()));
}

/// Observes a process as an ordinary user.
fn nobody() {
    let pid = number(PID);
    // SAFETY: changes the user of this thread, which alone goes on; touches no memory.
    let changed = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) } == 0;
    match changed {
        true => ready(&Process::open(pid).unwrap_err().to_string()),
        false => ready(NO_OTHER_USER),
    }
}

fn script() -> [OsString; 2] {
    ["-c".into(), std::env::var_os(SCRIPT).unwrap()]
}

/// A profiler that starts a program when told, and exits with the program's code.
fn launch() {
    let held = HeldProgram::spawn("sh".as_ref(), &script()).unwrap();
    ready(&held.pid().to_string());
    until_told();
    let mut program = held.release().unwrap();
    ready("");
    std::process::exit(exit_code(program.wait().unwrap()).into());
}

/// Starts a program with `Command`, then as the profiler does.
fn launch_twice() {
    // As if started by a shell with a lower limit.
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum }).unwrap();
    ready("");
    Command::new("sh").args(script()).status().unwrap();
    ready("");
    descriptors::raise_limit();
    assert_ne!(getrlimit(Resource::Nofile).current, Some(200));
    HeldProgram::spawn("sh".as_ref(), &script()).unwrap().release().unwrap().wait().unwrap();
    ready("");
    std::process::exit(0);
}

/// Threads, mappings and programs that come and go, until the process ends at some instant.
fn chaos() {
    let mut state = u64::from(std::process::id()) << 32 | process_time_ns();
    let size = 1 << 16;
    let mut mapping = None;
    loop {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 40 & 255 {
            0..100 => drop(thread::spawn(move || {
                thread::sleep(Duration::from_nanos(state >> 44));
            })),
            100..200 => match mapping.take() {
                // SAFETY: the mapping made below, to which nothing refers.
                Some(start) => drop(unsafe { rustix::mm::munmap(start, size) }),
                None => {
                    let rights = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
                    let flags = rustix::mm::MapFlags::PRIVATE | rustix::mm::MapFlags::POPULATE;
                    // SAFETY: a new mapping wherever there is room.
                    mapping = unsafe {
                        rustix::mm::mmap_anonymous(std::ptr::null_mut(), size, rights, flags)
                    }
                    .ok();
                }
            },
            200..230 => {
                let _ = Command::new("true").spawn().map(|mut child| child.wait());
            }
            230..240 => drop(role_command("chaos").exec()),
            240 => std::process::exit(0),
            _ => thread::sleep(Duration::from_nanos(state >> 44)),
        }
    }
}

fn process_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_nsec as u64
}

fn number(variable: &str) -> u32 {
    std::env::var(variable).unwrap().parse().unwrap()
}

/// Number of threads of the test harness: the first one, and the one that runs the role.
pub(super) const HARNESS: usize = 2;

pub(super) fn role_command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([TEST, "--exact", "--nocapture"]);
    command.env(ROLE, role);
    command
}

/// A process in a role, killed on drop.
pub(super) struct Observed {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Observed {
    /// Returns when the process is ready, with the facts that it prints.
    pub(super) fn start(role: &str) -> (Observed, String) {
        Observed::start_with(role, &[])
    }

    pub(super) fn start_with(role: &str, variables: &[(&str, &str)]) -> (Observed, String) {
        let mut command = role_command(role);
        command.envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut observed = Observed { child, input, output };
        let facts = observed.wait_ready();
        (observed, facts)
    }

    /// Waits until the process is ready again, and returns the facts that it prints.
    pub(super) fn wait_ready(&mut self) -> String {
        loop {
            if let Some(facts) = self.line().strip_prefix("ready ") {
                return facts.to_owned();
            }
        }
    }

    pub(super) fn lines_until_ready(&mut self) -> Vec<String> {
        let lines = std::iter::repeat_with(|| self.line());
        lines.take_while(|line| !line.starts_with("ready ")).collect()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process ended");
        line.trim_end_matches('\n').to_owned()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn open(&self) -> Process {
        let mut process = Process::open(self.pid()).unwrap();
        process.refresh().unwrap();
        process
    }

    pub(super) fn tell(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Kills the process without reaping it.
    pub(super) fn signal_end(&mut self) {
        self.child.kill().unwrap();
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `condition` holds; tests do not depend on how long that takes.
pub(super) fn eventually(mut condition: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came true");
}

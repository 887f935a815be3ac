//! Observes real processes: mostly the test binary itself, executed again in a role.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::*;
use crate::activity::Activity;
use crate::futex::FutexWait;

const ROLE: &str = "THREADTOLL_TEST_ROLE";

/// Not a test: the body of processes that tests observe.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("threads") => threads(),
        Ok("orphans") => orphans(),
        Ok("execute") => execute(),
        _ => {}
    }
}

fn ready(facts: &str) {
    println!("\nready {facts}");
}

/// Ends with the test that observes it.
fn until_told() {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
}

/// Threads that wait for a mutex, sleep, and compute.
fn threads() {
    static MUTEX: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = MUTEX.lock().unwrap();
    // Threads name themselves.
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
    start("a \x1b(b) \n", || {
        loop {
            std::hint::spin_loop();
        }
    });
    named.wait();
    ready(&format!("{}", &raw const MUTEX as u64));
    until_told();
    std::process::exit(0);
}

/// A child whose first thread ends, while another goes on.
fn orphans() {
    // SAFETY: the child uses nothing that another thread of this process could have locked; the
    // harness waits for this one.
    let child = unsafe { libc::fork() };
    if child > 0 {
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        std::process::exit(0);
    }
    thread::spawn(|| {
        ready(&std::process::id().to_string());
        until_told();
        std::process::exit(0)
    });
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

/// Threads of the harness: the first one, and the one that runs the role.
const HARNESS: usize = 2;

fn role_command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process::tests::role", "--nocapture"]);
    command.env(ROLE, role);
    command
}

/// A process in a role. Ends with this value.
pub(super) struct Observed {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Observed {
    pub(super) fn start(role: &str) -> (Observed, String) {
        let mut command = role_command(role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut observed = Observed { child, input, output };
        let facts = observed.wait_ready();
        (observed, facts)
    }

    fn wait_ready(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process ended");
            if let Some(facts) = line.strip_prefix("ready ") {
                return facts.trim().to_owned();
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn open(&self) -> Process {
        let mut process = Process::open(self.pid()).unwrap();
        process.refresh().unwrap();
        process
    }

    fn tell(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn kill(&mut self) {
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

fn thread_named<'a>(process: &'a Process, name: &str) -> &'a Thread {
    let named = |thread: &&Thread| process.thread_name(thread.tid()).is_ok_and(|is| is == name);
    process.threads().iter().find(named).unwrap()
}

#[test]
fn threads_are_seen_at_what_they_do() {
    let (observed, mutex) = Observed::start("threads");
    let process = observed.open();
    assert_eq!(process.threads().len(), HARNESS + 3);
    assert!(process.threads().iter().any(|thread| thread.tid() == process.pid()));

    let mutex: u64 = mutex.parse().unwrap();
    let waits = |thread: &Thread| match thread.look() {
        Look::Seen(Activity::Asleep(call)) => FutexWait::of(&call),
        _ => None,
    };
    let waiter = thread_named(&process, "mutex");
    eventually(|| waits(waiter).is_some());
    let wait = waits(waiter).unwrap();
    assert!((mutex..mutex + 8).contains(&wait.address));
    let mut word = [0; 4];
    assert_eq!(process.memory().read(wait.address, &mut word), 4);
    assert_eq!(u32::from_ne_bytes(word), wait.value);

    let sleeper = thread_named(&process, "sleep");
    let sleeps = |look| match look {
        Look::Seen(Activity::Asleep(call)) => i64::from(call.number) == libc::SYS_clock_nanosleep,
        _ => false,
    };
    eventually(|| sleeps(sleeper.look()));
    let spinner = thread_named(&process, "a \x1b(b) \n");
    assert_eq!(spinner.look(), Look::Seen(Activity::OnCpu));
}

#[test]
fn facts_of_a_process() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    assert!(process.is_running());
    assert_eq!(process.pid(), observed.pid());
    assert_eq!(process.parent().unwrap(), std::process::id());
    assert_eq!(process.program().unwrap(), std::env::current_exe().unwrap());
    assert!(!process.is_32_bit().unwrap());
    let command = process.command_line().unwrap();
    assert_eq!(command[1..3], ["--exact", "process::tests::role"]);
    assert!(!process.name().unwrap().is_empty());
    assert!(process.start_time() > 0);
    assert_eq!(process.image().unwrap(), process.image().unwrap());

    let code = role as fn() as usize;
    let own_maps = maps::read(std::fs::File::open("/proc/self/maps").unwrap().into()).unwrap();
    let own = own_maps.iter().find(|mapping| mapping.contains(code as u64)).unwrap();
    let maps = process.maps().unwrap();
    let same = |mapping: &&Mapping| mapping.inode == own.inode && mapping.offset == own.offset;
    let mapping = maps.iter().find(same).unwrap();
    assert!(mapping.executable && mapping.readable && !mapping.writable);
    assert_eq!(mapping.path, own.path);
    assert!(maps.is_sorted_by_key(|mapping| mapping.start));
}

#[test]
fn a_process_that_has_ended_has_nothing() {
    let (mut observed, _) = Observed::start("threads");
    let mut process = observed.open();
    let memory = process.memory();
    let address = process.maps().unwrap()[0].start;
    assert_eq!(memory.read(address, &mut [0; 4]), 4);
    observed.child.kill().unwrap();
    eventually(|| !process.is_running());
    // Its parent has not asked for its end yet.
    assert!(matches!(Process::open(observed.pid()), Err(ProcessError::Ended(_))));
    observed.kill();
    assert!(!process.is_running());
    assert!(process.threads().iter().all(|thread| thread.look() == Look::Gone));
    assert_eq!(process.maps().unwrap(), []);
    assert_eq!(memory.read(address, &mut [0; 4]), 0);
    assert!(process.name().is_err() && process.image().is_err() && process.program().is_err());
    process.refresh().unwrap();
    assert_eq!(process.threads().len(), 0);
    assert!(matches!(Process::open(observed.pid()), Err(ProcessError::NotFound(_))));
}

#[test]
fn others_go_on_when_the_first_thread_ends() {
    let (mut observed, pid) = Observed::start("orphans");
    let pid = pid.parse().unwrap();
    let mut process = Process::open(pid).unwrap();
    let ended = |process: &mut Process| {
        process.refresh().unwrap();
        let first = process.threads().iter().find(|thread| thread.tid() == process.pid());
        first.is_none_or(|first| first.look() == Look::Gone)
    };
    eventually(|| ended(&mut process));
    process.refresh().unwrap();
    assert!(process.is_running());
    assert!(process.threads().iter().any(|thread| thread.look() != Look::Gone));
    let maps = process.maps().unwrap();
    assert_eq!(process.memory().read(maps[0].start, &mut [0; 4]), 4);
    assert_eq!(process.program().unwrap(), std::env::current_exe().unwrap());
    // Opened late, it can be observed as well.
    let mut late = Process::open(pid).unwrap();
    late.refresh().unwrap();
    assert_eq!(late.memory().read(maps[0].start, &mut [0; 4]), 4);
    observed.tell();
    eventually(|| !process.is_running());
}

#[test]
fn an_executed_program_is_another_image() {
    let (mut observed, _) = Observed::start("execute");
    let mut process = observed.open();
    let before = process.image().unwrap();
    observed.tell();
    observed.wait_ready();
    assert_ne!(process.image().unwrap(), before);
    assert!(process.is_running());
    process.refresh().unwrap();
    assert_eq!(process.threads().len(), HARNESS + 3);
    assert!(process.threads().iter().all(|thread| thread.look() != Look::Gone));
}

#[test]
fn bad_pids_are_refused() {
    let refused = |pid| Process::open(pid).unwrap_err();
    assert!(matches!(refused(std::process::id()), ProcessError::Itself));
    for pid in [0, i32::MAX as u32, u32::MAX] {
        assert_eq!(refused(pid).to_string(), format!("no process has PID {pid}"));
    }
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    let other = process.threads().iter().find(|thread| thread.tid() != process.pid()).unwrap();
    let error = refused(other.tid());
    assert!(matches!(error, ProcessError::Thread { process, .. } if process == observed.pid()));
    assert!(error.hint().is_some());
}

#[test]
fn kernel_threads_are_refused() {
    if !std::fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n") {
        println!("skipped: no kernel thread is visible");
        return;
    }
    let error = Process::open(2).unwrap_err();
    assert!(error.to_string().contains("process 2 (kthreadd) is a kernel thread"), "{error}");
}

#[test]
fn many_threads_without_descriptors_are_seen_as_well() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    let sleeper = thread_named(&process, "sleep");
    let bare = Thread::without_descriptor(sleeper.tid(), &process.directory);
    eventually(|| bare.look() == sleeper.look());
}

#[test]
fn names_are_bytes() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    let names: Vec<OsString> =
        process.threads().iter().map(|thread| process.thread_name(thread.tid()).unwrap()).collect();
    assert!(names.iter().any(|name| name == OsStr::from_bytes(b"a \x1b(b) \n")));
}

/// Prints what a look costs; nothing is asserted.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_look() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    for name in ["mutex", "sleep", "a \x1b(b) \n"] {
        let thread = thread_named(&process, name);
        let bare = Thread::without_descriptor(thread.tid(), &process.directory);
        for (kind, thread) in [("kept descriptor", thread), ("opened anew", &bare)] {
            let looks = 20_000;
            let started = std::time::Instant::now();
            for _ in 0..looks {
                std::hint::black_box(thread.look());
            }
            println!("{name:?}, {kind}: {} ns", started.elapsed().as_nanos() / looks);
        }
    }
    let looks = 100_000;
    let line = b"202 0x55d0c4a2b2a0 0x80 0x2 0x0 0x0 0x0 0x7ffc5ae0f2a8 0x7f594bc2f2ad\n";
    let started = std::time::Instant::now();
    for _ in 0..looks {
        std::hint::black_box(Activity::parse(std::hint::black_box(line)));
    }
    println!("of which reading the line: {} ns", started.elapsed().as_nanos() / looks);
}

//! Observes real processes: mostly the test binary itself, executed again in a role.

mod family;
mod launch;
mod reuse;
mod roles;
mod stress;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use roles::{HARNESS, Observed, eventually};

use super::thread::start_time;
use super::*;

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
    let waits = |thread: &Thread| match thread.sample() {
        ThreadSample::Seen(Activity::Asleep(call)) if i64::from(call.number) == libc::SYS_futex => {
            Some((call.arguments[0], call.arguments[2] as u32))
        }
        _ => None,
    };
    let waiter = thread_named(&process, "mutex");
    // A starting thread may wait for something else first.
    let on_mutex = |(address, _): (u64, u32)| (mutex..mutex + 8).contains(&address);
    eventually(|| waits(waiter).is_some_and(on_mutex));
    let (address, value) = waits(waiter).unwrap();
    let mut word = [0; 4];
    assert_eq!(process.memory().read(address, &mut word), 4);
    assert_eq!(u32::from_ne_bytes(word), value);

    let sleeper = thread_named(&process, "sleep");
    let sleeps = |sample| match sample {
        ThreadSample::Seen(Activity::Asleep(call)) => {
            i64::from(call.number) == libc::SYS_clock_nanosleep
        }
        _ => false,
    };
    eventually(|| sleeps(sleeper.sample()));
    let spinner = thread_named(&process, "a \x1b(b) \n");
    // The spinner may be in a page fault.
    eventually(|| spinner.sample() == ThreadSample::Seen(Activity::OnCpu));
}

#[test]
fn a_stopped_process_is_seen() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    let signal = |signal| {
        // SAFETY: touches no memory; the process is a child that nobody has reaped.
        assert_eq!(unsafe { libc::kill(observed.pid() as i32, signal) }, 0);
    };
    let spinner = thread_named(&process, "a \x1b(b) \n");
    signal(libc::SIGSTOP);
    eventually(|| matches!(spinner.sample(), ThreadSample::Seen(Activity::Faulting { .. })));
    assert!(process.is_running());
    assert_eq!(process.ending(), None);
    assert!(process.memory().read(process.maps().unwrap()[0].start, &mut [0; 4]) == 4);
    signal(libc::SIGCONT);
    eventually(|| spinner.sample() == ThreadSample::Seen(Activity::OnCpu));
}

#[test]
fn facts_of_a_process() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    assert!(process.is_running());
    assert_eq!(process.ending(), None);
    assert_eq!(process.pid(), observed.pid());
    assert_eq!(process.parent().unwrap(), std::process::id());
    assert_eq!(process.program().unwrap(), std::env::current_exe().unwrap());
    assert!(!process.is_32_bit().unwrap());
    let command = process.command_line().unwrap();
    assert_eq!(command[1..3], [roles::TEST, "--exact"]);
    assert!(!process.name().unwrap().is_empty());
    assert!(process.start_time() > 0);
    assert_eq!(process.image().unwrap(), process.image().unwrap());

    let code = roles::role as fn() as usize;
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
    observed.signal_end();
    eventually(|| !process.is_running());
    // The parent has not reaped the process yet.
    assert_eq!(process.ending().unwrap().signal(), Some(libc::SIGKILL));
    assert!(matches!(Process::open(observed.pid()), Err(ProcessError::Ended(_))));
    observed.kill();
    assert!(!process.is_running());
    match process.ending() {
        Some(status) => assert_eq!(status.signal(), Some(libc::SIGKILL)),
        None => println!("not told how it ended: the kernel is older than Linux 6.15"),
    }
    assert!(process.threads().iter().all(|thread| thread.sample() == ThreadSample::Gone));
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
    process.refresh().unwrap();
    observed.tell();
    let ended = |process: &mut Process| {
        process.refresh().unwrap();
        let first = process.threads().iter().find(|thread| thread.tid() == process.pid());
        first.is_none_or(|first| first.sample() == ThreadSample::Gone)
    };
    eventually(|| ended(&mut process));
    process.refresh().unwrap();
    assert!(process.is_running());
    // The ended thread is not listed, and does not count as a new one at each refresh.
    process.list_anew();
    process.refresh().unwrap();
    assert!(process.thread(pid).is_none());
    assert_eq!((process.threads_now(), process.births()), (process.threads().len(), 0));
    assert!(process.threads().iter().any(|thread| thread.sample() != ThreadSample::Gone));
    let maps = process.maps().unwrap();
    assert_eq!(process.memory().read(maps[0].start, &mut [0; 4]), 4);
    assert_eq!(process.program().unwrap(), std::env::current_exe().unwrap());
    // A process can also be opened after its first thread has ended.
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
    assert!(process.threads().iter().all(|thread| thread.sample() != ThreadSample::Gone));
}

#[test]
fn a_program_goes_on_until_another_program_is_executed() {
    let (mut observed, _) = Observed::start("execute");
    let process = observed.open();
    let before = process.program_run().unwrap();
    assert!(before.goes_on());
    observed.tell();
    observed.wait_ready();
    assert!(!before.goes_on());
    let after = process.program_run().unwrap();
    assert!(after.goes_on());
    drop(observed);
    eventually(|| !after.goes_on());
}

#[test]
fn threads_are_found_by_their_places() {
    let (observed, _) = Observed::start("many");
    let process = observed.open();
    assert_eq!(process.threads_now(), process.threads().len());
    let mut found: Vec<u32> =
        (0..process.threads_now()).rev().map(|place| process.thread_at(place).unwrap()).collect();
    found.sort_unstable();
    assert!(found.iter().copied().eq(process.threads().iter().map(Thread::tid)));
    assert_eq!(process.thread_at(process.threads_now()), None);
    assert!(matches!(process.unlisted(found[0]).sample(), ThreadSample::Seen(_)));
    assert_eq!(process.unlisted(std::process::id()).sample(), ThreadSample::Gone);
    assert_eq!(process.births(), 0);
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
    let (tid, directory) = (sleeper.tid(), &process.directory);
    let start = start_time(directory, tid);
    let bare = Thread::without_descriptor(tid, directory, start);
    eventually(|| bare.sample() == sleeper.sample());
    let former = Thread::without_descriptor(tid, directory, start.map(|start| start - 1));
    assert_eq!(former.sample(), ThreadSample::Gone);
}

#[test]
fn as_many_threads_are_listed_anew_if_some_began() {
    let (observed, _) = Observed::start("many");
    let mut process = observed.open();
    let tids = |process: &Process| process.threads.iter().map(Thread::tid).collect::<Vec<_>>();
    let all = tids(&process);
    // As if one thread had begun while another ended.
    process.threads.pop();
    process.listing_took = Duration::from_secs(1);
    assert!(!process.refresh().unwrap());
    process.list_anew();
    assert!(process.refresh().unwrap());
    assert_eq!(tids(&process), all);
    process.list_anew();
    assert!(!process.refresh().unwrap());
}

#[test]
fn names_are_bytes() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    let names: Vec<OsString> =
        process.threads().iter().map(|thread| process.thread_name(thread.tid()).unwrap()).collect();
    assert!(names.iter().any(|name| name == OsStr::from_bytes(b"a \x1b(b) \n")));
}

#[test]
fn threads_are_seen_where_descriptors_are_scarce() {
    let (many, _) = Observed::start("many");
    let (_observer, seen) =
        Observed::start_with("scarce", &[(roles::PID, &many.pid().to_string())]);
    assert_eq!(seen, format!("{} of {0} threads", roles::MANY + HARNESS));
}

#[test]
fn another_users_process_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let own = std::process::id().to_string();
    let (_observer, error) = Observed::start_with("nobody", &[(roles::PID, &own)]);
    if error == roles::NO_OTHER_USER {
        println!("skipped: this root cannot become another user");
        return;
    }
    assert_eq!(error, format!("not permitted to look at process {own}: it belongs to user 0"));
}

/// Prints the cost of a sample; asserts nothing.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_sample() {
    let (observed, _) = Observed::start("threads");
    let process = observed.open();
    for name in ["mutex", "sleep", "a \x1b(b) \n"] {
        let thread = thread_named(&process, name);
        let start = start_time(&process.directory, thread.tid());
        let bare = Thread::without_descriptor(thread.tid(), &process.directory, start);
        for (kind, thread) in [("kept descriptor", thread), ("opened anew", &bare)] {
            let samples = 20_000;
            let started = Instant::now();
            for _ in 0..samples {
                std::hint::black_box(thread.sample());
            }
            println!("{name:?}, {kind}: {} ns", started.elapsed().as_nanos() / samples);
        }
    }
    let samples = 100_000;
    let line = b"202 0x55d0c4a2b2a0 0x80 0x2 0x0 0x0 0x0 0x7ffc5ae0f2a8 0x7f594bc2f2ad\n";
    let started = Instant::now();
    for _ in 0..samples {
        std::hint::black_box(Activity::parse(std::hint::black_box(line)));
    }
    println!("of which reading the line: {} ns", started.elapsed().as_nanos() / samples);
}

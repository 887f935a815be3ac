//! Where a sandbox refuses `membarrier(2)`, before a queue is made or after: no wake-up is lost.
//!
//! A filter of system calls cannot be taken off again, and what the kernel said is remembered for the life of the process, so each
//! case runs in a process of its own: this program again, asked for one of the tests that are otherwise ignored.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use threadtoll::wait::Park;
use threadtoll::{funnel, pipe};

/// Makes `membarrier(2)` fail in this thread and all threads and programs that it starts. False where filters are not to be had.
fn refuse_membarrier() -> bool {
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let step = |code: u32, jt, k| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let mut filter = [
        // The number of the call is the first word that a filter is shown.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_membarrier as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, REFUSE),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: the program and its filter are valid for the call, which copies them.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    set == 0 && is_refused()
}

fn is_refused() -> bool {
    // SAFETY: a query, which takes and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) < 0 }
}

/// Each message is waited for, and each place for one.
fn back_and_forth(
    (mut there, ask): (pipe::Sender<u64, Park>, pipe::Receiver<u64, Park>),
    (answer, mut back): (funnel::Sender<u64, Park>, funnel::Receiver<u64, Park>),
) {
    assert!(is_refused());
    // SAFETY: takes a number. A lost wake-up ends here.
    unsafe { libc::alarm(60) };
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in ask {
                answer.send(number).expect("the other lives");
            }
        });
        for number in 0..1000 {
            there.send(number).expect("the other lives");
            assert_eq!(back.recv(), Ok(number));
        }
        scope.spawn(move || {
            for number in 0..1000 {
                there.send(number).expect("the other lives");
            }
        });
        for number in 0..1000 {
            if number % 100 == 0 {
                // Time for everybody behind us to fill up and fall asleep.
                thread::sleep(Duration::from_millis(2));
            }
            assert_eq!(back.recv(), Ok(number));
        }
    });
}

type Pipe = (pipe::Sender<u64, Park>, pipe::Receiver<u64, Park>);
type Funnel = (funnel::Sender<u64, Park>, funnel::Receiver<u64, Park>);

fn queues() -> (Pipe, Funnel) {
    let pipe = pipe::Options::new().wait(Park).bounded(1);
    let funnel = funnel::Options::new().wait(Park).ceiling(1, funnel::Ceiling::Wait).build();
    (pipe, funnel)
}

#[test]
#[ignore = "run by `refused_before`, in a process of its own"]
fn child_refused_before() {
    let (pipe, funnel) = queues();
    back_and_forth(pipe, funnel);
}

#[test]
#[ignore = "run by `refused_after`, in a process of its own"]
fn child_refused_after() {
    let (pipe, funnel) = queues();
    assert!(refuse_membarrier());
    back_and_forth(pipe, funnel);
}

/// Runs one of the tests above, refused from the start or not.
fn run(test: &str, refused: bool) {
    let program = std::env::current_exe().expect("this program has a name");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--ignored", "--test-threads=1"]);
    if refused {
        // SAFETY: makes system calls only.
        unsafe {
            command.pre_exec(
                || {
                    if refuse_membarrier() { Ok(()) } else { Err(std::io::Error::last_os_error()) }
                },
            );
        }
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: no filter of system calls is to be had here: {error}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn refused_before() {
    run("child_refused_before", true);
}

#[test]
fn refused_after() {
    let may = thread::spawn(refuse_membarrier).join().expect("it does not panic");
    if !may {
        println!("skipped: no filter of system calls is to be had here");
        return;
    }
    run("child_refused_after", false);
}

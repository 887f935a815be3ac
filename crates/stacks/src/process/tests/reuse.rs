//! Reuse of a PID by another process.

use super::eventually;
use crate::process::{Process, ProcessError, ThreadSample};

/// `struct clone_args`, as far as it is used.
#[derive(Default)]
#[repr(C)]
struct CloneArguments {
    flags: u64,
    descriptor: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    tids: u64,
    tid_count: u64,
}

struct Sleeper(u32);

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: touches no memory; the process is a child that nobody has reaped.
        unsafe { libc::kill(self.0 as i32, libc::SIGKILL) };
        // SAFETY: as above.
        unsafe { libc::waitpid(self.0 as i32, std::ptr::null_mut(), 0) };
    }
}

/// Starts a sleeper, with the given PID if any.
fn start(pid: Option<u32>) -> Option<Sleeper> {
    let tids = [pid.unwrap_or_default()];
    let arguments = CloneArguments {
        exit_signal: libc::SIGCHLD as u64,
        tids: if pid.is_some() { tids.as_ptr() as u64 } else { 0 },
        tid_count: u64::from(pid.is_some()),
        ..CloneArguments::default()
    };
    // SAFETY: the arguments outlive the call, which makes a process as fork(2) does; the child
    // calls nothing but system calls.
    let child = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
    };
    if child == 0 {
        loop {
            // SAFETY: has no preconditions.
            unsafe { libc::syscall(libc::SYS_ppoll, 0, 0, 0, 0, 0) };
        }
    }
    u32::try_from(child).ok().map(Sleeper)
}

#[test]
fn a_pid_that_another_process_gets_is_another_process() {
    let first = start(None).unwrap();
    let pid = first.0;
    let mut process = Process::open(pid).unwrap();
    process.refresh().unwrap();
    assert_eq!(process.threads().len(), 1);
    drop(first);
    assert!(matches!(Process::open(pid), Err(ProcessError::NotFound(_) | ProcessError::Ended(_))));
    // Start times have a resolution of 10 ms.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let Some(_next) = start(Some(pid)) else {
        println!("not tested: this user, or this kernel, may not choose a PID");
        return;
    };
    let again = Process::open_again(pid, process.start_time());
    assert!(matches!(again, Err(ProcessError::Ended(_))), "{again:?}");
    let mut second = Process::open(pid).unwrap();
    assert!(Process::open_again(pid, second.start_time()).is_ok());
    second.refresh().unwrap();
    assert!(second.has_thread(pid) && !process.has_thread(pid));
    eventually(|| matches!(second.threads()[0].sample(), ThreadSample::Seen(_)));

    assert!(!process.is_running());
    assert_eq!(process.threads()[0].sample(), ThreadSample::Gone);
    assert!(process.thread_name(pid).is_err());
    assert!(process.image().is_err());
    assert!(process.maps().is_ok_and(|maps| maps.is_empty()));
    process.refresh().unwrap();
    assert!(process.threads().is_empty());
    assert!(second.is_running());
}

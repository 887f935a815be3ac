//! Filters of system calls, for tests that run in processes of their own.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// Makes `membarrier(2)` fail in this thread and in all threads and programs that it starts.
/// Returns `false` if the kernel has no filters.
pub(crate) fn refuse_membarrier() -> bool {
    answer_membarrier(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32) && is_refused()
}

/// Makes the kernel answer each `membarrier(2)` by this action. Returns `false` if it has no
/// filters.
pub(crate) fn answer_membarrier(action: u32) -> bool {
    answer_commands(action, action)
}

/// Makes the kernel answer each `membarrier(2)` by `action`, except the command that queues rely
/// on, which it answers by `expedited`. Returns `false` if it has no filters.
pub(crate) fn answer_commands(action: u32, expedited: u32) -> bool {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let command = std::mem::offset_of!(libc::seccomp_data, args)
        + if cfg!(target_endian = "big") { 4 } else { 0 };
    let mut filter = [
        // A filter's input begins with the number of the call.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 4, libc::SYS_membarrier as u32),
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, command as u32),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, expedited),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, action),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: the program and its filter are valid for the call, which copies them.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0 }
}

pub(crate) fn is_refused() -> bool {
    // SAFETY: a query, which accesses no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) < 0 }
}

/// Returns `false` and prints so if the kernel has no filters.
pub(crate) fn has_filters() -> bool {
    let may = thread::spawn(refuse_membarrier).join().expect("it does not panic");
    if !may {
        println!("skipped: no filter of system calls is to be had here");
    }
    may
}

/// Runs an ignored test of this program in a process of its own, with the call refused from the
/// start or not.
pub(crate) fn run(test: &str, refused: bool) {
    let program = std::env::current_exe().expect("this program has a name");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--ignored", "--test-threads=1"]);
    if refused {
        // SAFETY: makes system calls only.
        unsafe {
            command.pre_exec(|| {
                if refuse_membarrier() { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            });
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
    assert!(
        output.status.success(),
        "{}: {said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("1 passed"), "{said}");
}

//! Restricted environments: one CPU, a sandbox, no `/sys`, a full disk. The command does what is
//! possible and reports the rest.

use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use threadtoll_machine::allowed_cpus;
use threadtoll_machine::lock::machine_lock;
use threadtoll_record::{Line, file};

use crate::lines::{line, lines, plan, records};
use crate::program::{Ended, command, ran, words};

/// Runs it on these CPUs only.
fn on_cpus(cpus: &[u32], line: &str, paths: &[&Path]) -> Ended {
    let mut mask = vec![0u64; 1024];
    cpus.iter().for_each(|cpu| mask[*cpu as usize / 64] |= 1 << (cpu % 64));
    let mut command = command();
    command.args(words(line, paths));
    let confine = move || {
        let size = size_of_val(&mask[..]);
        // SAFETY: the kernel reads as many bytes as the mask has; 0 is this process.
        match unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size, mask.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec only one system call is made, with memory that existed before.
    unsafe { command.pre_exec(confine) };
    ran(command)
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn one_cpu_is_enough_for_a_survey() {
    let _alone = machine_lock().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let cpu = allowed_cpus()[0];
    let ended = on_cpus(&[cpu], "survey --quick --time 2ms --out", &[&path]).done();
    assert!(ended.err.contains("one cpu"), "{}", ended.err);
    let lines = lines(&path);
    let reference = &plan(&lines).groups[0][0].cell;
    assert_eq!((reference.name(), reference.cpus.as_slice()), ("futex", [cpu].as_slice()));
    let records = records(&lines);
    assert!(records.iter().all(|record| record.cell.cpus == [cpu]));
    for mechanism in ["function-call", "futex", "std-condvar", "spin-yield", "std-mpsc"] {
        let found =
            records.iter().any(|record| record.cell.name() == mechanism && record.count > 0);
        assert!(found, "{mechanism} can be measured on one CPU");
    }
    assert!(!records.iter().any(|record| record.cell.name().starts_with("atomic")));
}

#[test]
fn what_one_cpu_cannot_do_is_refused_with_the_reason() {
    let cpu = allowed_cpus()[0];
    // Plans, which watch no CPU, except for one.
    for (line, reason) in [
        ("latency atomic-store", "only one CPU"),
        ("latency atomic-store --placement same-cpu --plan", "keeps its partner off the CPU"),
        ("matrix --plan", "a matrix needs two"),
        ("latency futex --placement pinned --plan", "two pinned threads need two"),
        ("queue for-me pipe --rate 50000 --plan", "two pinned threads need two"),
    ] {
        on_cpus(&[cpu], line, &[]).failed(3).says(reason).says("hint: allow another CPU");
    }
}

#[test]
fn spinning_on_one_cpu_is_refused_and_never_hung() {
    for mechanism in ["atomic-store", "atomic-rmw", "atomic-seqcst"] {
        let line = format!("latency {mechanism} --simulated-machine 1 --placement same-cpu");
        let mut command = command();
        command.args(words(&line, &[]));
        ran(command).failed(3).says("keeps its partner off the CPU");
    }
}

/// Two CPUs, of which one can be hidden.
fn two_cpus() -> Option<[u32; 2]> {
    let two = allowed_cpus().first_chunk().copied();
    if two.is_none() {
        println!("skipped: one CPU cannot hide another");
    }
    two
}

#[test]
fn a_cpuset_hides_cpus() {
    let Some([first, second]) = two_cpus() else { return };
    let line = format!("latency futex --cpus {second}");
    on_cpus(&[first], &line, &[])
        .bad()
        .says("this process may not use it")
        .says(&format!("usable CPUs: CPU {first}"));
    let ended = on_cpus(&[second], "latency futex --time 1ms --plan", &[]).done();
    assert!(ended.out.contains(&format!("CPU {second}")), "{}", ended.out);
}

/// A file of a run on a CPU that is now unavailable cannot be completed, and is not changed.
#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn a_run_is_not_resumed_without_its_cpus() {
    let Some([first, second]) = two_cpus() else { return };
    let _alone = machine_lock().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let line = format!("latency futex --placement pinned --cpus {first},{second} --time 1ms --out");
    on_cpus(&[first, second], &line, &[&path]).done();
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 10]).unwrap();
    let held = crate::program::Held::of(&path);
    on_cpus(&[first], "latency --resume", &[&path]).failed(3).says(&format!("CPU {second}"));
    held.unchanged();
}

/// Makes the kernel refuse these system calls to the program, as a sandbox does.
fn forbidding(calls: &[libc::c_long], error: i32, line: &str) -> Ended {
    let instruction =
        |code: u32, jt: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (index, call) in calls.iter().enumerate() {
        // Jump to the last instruction, past the remaining comparisons and the one that allows.
        let jump = calls.len() - index;
        filter.push(instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            jump as u8,
            *call as u32,
        ));
    }
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(instruction(
        libc::BPF_RET | libc::BPF_K,
        0,
        libc::SECCOMP_RET_ERRNO | error as u32,
    ));
    let mut command = command();
    command.args(words(line, &[]));
    let confine = move || {
        let program =
            libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: plain numbers.
        let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: the kernel copies the program during the call.
        let confined = unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if promised == 0 && confined == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec only two system calls are made, with memory that existed
    // before.
    unsafe { command.pre_exec(confine) };
    ran(command)
}

/// `without_membarrier_it_measures` has a kernel that does not know the call.
#[test]
fn without_membarrier_a_check_says_so() {
    let ended = forbidding(&[libc::SYS_membarrier], libc::EPERM, "check --json").done();
    let Line::Machine(machine) = line(ended.out.trim_end()) else { panic!("{}", ended.out) };
    assert!(!machine.membarrier);
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn without_membarrier_it_measures() {
    let _alone = machine_lock().unwrap();
    forbidding(&[libc::SYS_membarrier], libc::ENOSYS, "latency futex --time 1ms").done();
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn mechanisms_that_a_sandbox_forbids_cost_their_rows_and_not_the_run() {
    let _alone = machine_lock().unwrap();
    let forbidden = [libc::SYS_socket, libc::SYS_eventfd2];
    let ended = forbidding(
        &forbidden,
        libc::EPERM,
        "latency futex tcp-loopback eventfd --time 1ms --placement pinned --placement same-cpu",
    )
    .done();
    for name in ["tcp-loopback", "eventfd"] {
        let refused = ended.err.lines().any(|line| {
            line.contains(&format!("{name} same-cpu")) && line.contains("this machine refuses")
        });
        assert!(refused, "{ended:#?}");
    }
    assert!(ended.out.contains("futex") && !ended.out.contains("\neventfd"), "{}", ended.out);
}

#[test]
fn a_mechanism_that_a_sandbox_forbids_is_refused_with_the_reason() {
    forbidding(&[libc::SYS_eventfd2], libc::EPERM, "latency eventfd")
        .failed(3)
        .says("Operation not permitted");
    forbidding(&[libc::SYS_eventfd2], libc::ENOSYS, "matrix eventfd").failed(3);
    let ended = forbidding(
        &[libc::SYS_sched_setscheduler],
        libc::EPERM,
        "latency futex --keep-awake --plan",
    )
    .done();
    assert!(
        ended.err.contains("left out: futex pinned, CPUs awake")
            && !ended.out.contains("kept awake"),
        "{ended:#?}"
    );
}

#[test]
fn a_sandbox_that_lets_no_thread_be_placed_is_named() {
    let _alone = machine_lock().unwrap();
    let ended = forbidding(&[libc::SYS_sched_setaffinity], libc::EPERM, "latency futex --time 1ms");
    ended.failed(1).says("cannot place a thread").says("seccomp");
}

fn mount(what: Option<&CStr>, path: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> bool {
    let start = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: null or nul-terminated texts, all alive during the call.
    (unsafe { libc::mount(start(what), path.as_ptr(), start(kind), flags, std::ptr::null()) }) == 0
}

/// Runs the program, or a shell, in a mount namespace of its own; `None` if that is not allowed.
fn with_own_mounts(mut command: Command, hide: &'static [&'static CStr]) -> Option<Ended> {
    // SAFETY: plain numbers.
    let user = if unsafe { libc::geteuid() } == 0 { 0 } else { libc::CLONE_NEWUSER };
    let confine = move || {
        // SAFETY: plain numbers.
        let apart = unsafe { libc::unshare(libc::CLONE_NEWNS | user) } == 0;
        // Mounts made here must not show outside.
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if apart
            && mount(None, c"/", None, private)
            && hide.iter().all(|path| mount(Some(c"none"), path, Some(c"tmpfs"), 0))
        {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    // SAFETY: between fork and exec only system calls are made, with memory that existed before.
    unsafe { command.pre_exec(confine) };
    let mut probed = assert_cmd::Command::from_std(command);
    match probed.timeout(std::time::Duration::from_secs(90)).output() {
        Ok(output) => {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            Some(Ended {
                code: output.status.code(),
                out: text(output.stdout),
                err: text(output.stderr),
            })
        }
        Err(error) => {
            println!("skipped: no mounts of our own here: {error}");
            None
        }
    }
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn a_machine_that_shows_nothing_is_measured_all_the_same() {
    let _alone = machine_lock().unwrap();
    for hide in [&[c"/sys"][..], &[c"/sys", c"/proc"]] {
        let mut check = command();
        check.args(["check", "--json"]);
        let Some(ended) = with_own_mounts(check, hide) else { return };
        let ended = ended.done();
        let Line::Machine(machine) = line(ended.out.trim_end()) else { panic!("{}", ended.out) };
        assert_eq!(machine.allowed, allowed_cpus(), "the kernel still says where we may run");
        assert!(
            !machine.synthetic
                && machine.warnings.iter().any(|warning| warning.code.contains("topology"))
        );
        let mut latency = command();
        latency.args(["latency", "futex", "function-call", "--time", "2ms"]);
        let ended = with_own_mounts(latency, hide).unwrap().done();
        assert!(ended.out.contains("futex"), "{}", ended.out);
    }
}

/// A small disk, the command with `full/run.jsonl` on it, and the remains afterwards under `kept/`.
fn on_a_disk_of(size: &str, directory: &Path, line: &str) -> Option<Ended> {
    let script = format!(
        "mkdir full kept && mount -t tmpfs -o size={size} none full && \"$0\" {line} --out full/run.jsonl; \
         code=$?; cp -r full/. kept/; exit $code"
    );
    let mut shell = Command::new("sh");
    shell.current_dir(directory).args(["-c", &script, env!("CARGO_BIN_EXE_threadtoll")]);
    let ended = with_own_mounts(shell, &[])?;
    if ended.err.contains("mount:") {
        println!("skipped: no disk can be mounted here: {}", ended.err);
        return None;
    }
    Some(ended)
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    let directory = TempDir::new().unwrap();
    let survey = "survey --quick --simulated-machine 1 --quiet";
    let Some(ended) = on_a_disk_of("400k", directory.path(), survey) else { return };
    ended.failed(1).says("No space left").says("--resume");
    let kept = directory.path().join("kept/run.jsonl");
    let results = file::read(&kept).unwrap();
    assert!(results.notes.is_empty(), "the line that did not fit was removed");
    assert!(!results.complete() && !results.records().is_empty());
    let mut report = command();
    report.arg("report").arg(&kept);
    ran(report).done();
    let mut resume = command();
    resume.args(words("survey --quiet --resume", &[&kept]));
    ran(resume).done();
    assert!(file::read(&kept).unwrap().complete());
}

#[test]
fn a_disk_without_room_for_anything_keeps_nothing_half_done() {
    let directory = TempDir::new().unwrap();
    let survey = "survey --quick --simulated-machine 1 --quiet";
    let Some(ended) = on_a_disk_of("8k", directory.path(), survey) else { return };
    ended.bad().says("No space left");
    let left: Vec<_> = std::fs::read_dir(directory.path().join("kept")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

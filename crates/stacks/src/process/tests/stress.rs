//! Programs whose threads, mappings and images come and go, killed at random instants.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::roles::role_command;
use crate::process::{Batch, Family, Process, ThreadSample};

#[derive(Debug, Default)]
struct Seen {
    lives: u32,
    rounds: u32,
    activities: u32,
    gone: u32,
    windows: u32,
    unreadable: u32,
    changes: u32,
}

/// To an ordinary user, the kernel refuses access to a thread that is ending and has given up its
/// memory. Yama also refuses access to a process whose parent has ended.
fn is_ordinary_user() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Samples everything until the process has ended.
fn watch(process: Process, seen: &mut Seen) {
    let mut family = Family::with_descendants(process, None).unwrap();
    let mut batch = Batch::new();
    let mut state = 1u64;
    while family.is_running() {
        seen.rounds += 1;
        family.refresh(&mut |_| seen.changes += 1).unwrap();
        for process in family.processes_mut() {
            process.refresh().unwrap();
            for thread in process.threads() {
                match thread.sample() {
                    ThreadSample::Seen(_) => seen.activities += 1,
                    ThreadSample::Gone => seen.gone += 1,
                    ThreadSample::Refused => assert!(is_ordinary_user(), "refused"),
                }
                let _ = process.thread_name(thread.tid());
            }
            batch.clear();
            for mapping in process.maps().unwrap() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let offset = (state >> 32) % (mapping.end - mapping.start);
                batch.push(mapping.start + offset, 80);
            }
            process.memory().read_many(&mut batch);
            for index in 0..batch.len() {
                seen.windows += 1;
                seen.unreadable += u32::from(batch.get(index).is_none());
            }
            let _ = (process.command_line(), process.program(), process.is_32_bit());
            let _ = (process.parent(), process.name());
        }
    }
}

fn kill_at_random_instants(lives: u32) {
    let started = Instant::now();
    let mut seen = Seen::default();
    for life in 0..lives {
        let mut command = role_command("chaos");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        let delay = Duration::from_micros(u64::from(life) * 7_919 % 50_000);
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(delay);
                child.kill().unwrap();
                child.wait().unwrap();
            });
            // The process may have ended, or may be executing a program.
            if let Ok(process) = Process::open(pid) {
                seen.lives += 1;
                watch(process, &mut seen);
            }
        });
    }
    println!("{seen:?} in {:?}", started.elapsed());
    assert!(seen.activities > 0 && seen.windows > seen.unreadable);
}

#[test]
fn programs_die_under_observation() {
    kill_at_random_instants(30);
}

#[test]
#[ignore = "long: ci/long/profile-process.sh"]
fn programs_die_under_observation_a_thousand_times() {
    kill_at_random_instants(1_000);
}

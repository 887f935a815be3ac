//! Programs that are killed, stopped, replaced, told to exit, or unmap their locks, at a random
//! instant while they are profiled.

use crate::{Error, bound, chosen, runs, words};
use std::time::Duration;
use threadtoll_profile_programs::options::number;
use threadtoll_profile_programs::profile::{Profile, Profiler};
use threadtoll_profile_programs::statistics::Random;
use threadtoll_profile_programs::target::Target;

const SECONDS: f64 = 0.3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Kill,
    Stop,
    Exec,
    Exit,
    /// Nothing but what the program does all the time.
    Unmap,
}

/// Runs are looked through up to this one for those that `--only` chooses.
const LAST_RUN: usize = 1_000_000;

pub(crate) fn check() -> Result<bool, Error> {
    let mut random = Random::new(number("seed", "1") as u64);
    let events = [Event::Kill, Event::Stop, Event::Exec, Event::Exit, Event::Unmap];
    let runs = runs("1000");
    let (mut done, mut wrong, mut seen) = (0, 0, [0usize; 2]);
    for run in 0..LAST_RUN {
        if done == runs {
            break;
        }
        let event = events[run % events.len()];
        let program = *random.one_of(&["chaos-c", "chaos-c-static", "chaos-cpp"]);
        let instant = random.share() * (SECONDS + 0.2);
        if !chosen(&format!("{program} {event:?}")) {
            continue;
        }
        done += 1;
        match surprise(program, event, instant, run) {
            Ok(has_locks) => seen[usize::from(has_locks)] += 1,
            Err(error) => {
                wrong += 1;
                println!("{run}: {program}, {event:?} after {instant:.3} s: {error}");
            }
        }
    }
    println!("{done} runs, {wrong} wrong; {} profiles had locks, {} had none", seen[1], seen[0]);
    Ok(bound("the profiler ends in time, in order, and leaves the program alone", wrong == 0))
}

/// Returns whether the profile has locks.
fn surprise(program: &str, event: Event, instant: f64, seed: usize) -> Result<bool, Error> {
    let mut target = Target::start(program, &words(&format!("--seed {seed}")))?;
    let pid = target.pid();
    let profiler = Profiler::start(pid, SECONDS, &[], &target.folder)?;
    std::thread::sleep(Duration::from_secs_f64(instant));
    match event {
        Event::Kill => target.signal(libc::SIGKILL),
        Event::Stop => target.signal(libc::SIGSTOP),
        Event::Exec => target.signal(libc::SIGUSR1),
        Event::Exit => target.signal(libc::SIGTERM),
        Event::Unmap => {}
    }
    let profiled = profiler.finish(SECONDS + 2.0, &target.folder);
    if event == Event::Stop {
        // A stop that was just sent takes a moment.
        std::thread::sleep(Duration::from_millis(50));
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        if !status.contains("State:\tT") {
            return Err("a program that had been stopped goes on".into());
        }
        target.signal(libc::SIGCONT);
    }
    if event == Event::Exec {
        target.wait_until_ready()?;
    }
    let profiled = profiled?;
    if profiled.messages.contains("panicked") {
        return Err(profiled.messages.into());
    }
    for text in [&profiled.output, &profiled.messages] {
        if text.contains(|c: char| c.is_control() && c != '\n') {
            return Err("a control character is printed".into());
        }
    }
    // A program that was gone before the profiler looked is bad input.
    let gone = matches!(event, Event::Kill | Event::Exit) && profiled.code == 2;
    let has_locks = if gone {
        false
    } else if profiled.code == 0 {
        !Profile::parse(&profiled.output, pid)?.locks.is_empty()
    } else {
        return Err(format!("exit code {}: {}", profiled.code, profiled.messages).into());
    };
    if event != Event::Kill {
        // A program that has exited already left with 0 if all was right.
        target.finish()?;
    }
    Ok(has_locks)
}

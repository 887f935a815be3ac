//! Holders and causes, in programs built for each; programs that are not about locks; and an
//! allocator whose lock is comfortable.

use crate::{bound, chosen, run, runs, seconds, shown, words};
use std::path::{Path, PathBuf};
use threadtoll_profile_programs::Error;
use threadtoll_profile_programs::judge::{
    as_built, blames_locks, compare, consistent, right_cause, right_holder, rows,
};
use threadtoll_profile_programs::profile::ProfiledLock;
use threadtoll_profile_programs::target::Target;
use threadtoll_profile_programs::truth::{Modes, realised};

/// Programs, and arguments but the cause.
const LANGUAGES: [(&str, &str); 6] = [
    ("causes-c", ""),
    ("causes-c-static", ""),
    ("causes-cpp", ""),
    ("causes-rust", "--lock std-mutex"),
    ("causes-rust-static", "--lock std-mutex"),
    ("causes-rust", "--lock parking-lot"),
];

const CAUSES: [&str; 10] = [
    "slept-holding --work sleep",
    "slept-holding --work fsync",
    "slept-holding --work read",
    "computing",
    "preempted",
    "throttled",
    "convoy",
    "herd",
    "hog",
    "starved-writer",
];

/// Programs for each cause and language; none where a language has no such lock.
fn programs() -> Vec<(String, String)> {
    let mut programs = Vec::new();
    for cause in CAUSES {
        for (program, lock) in LANGUAGES {
            let lock = match (cause, lock) {
                // std's lock lets writers that wait go first, parking_lot has one that does not.
                ("starved-writer", "--lock std-mutex") => continue,
                ("starved-writer", "--lock parking-lot") => "--lock parking-lot-recursive",
                // The herd waits on std's condition variable.
                ("herd", "--lock parking-lot") => continue,
                _ => lock,
            };
            programs.push((program.to_owned(), format!("{cause} {lock}").trim().to_owned()));
        }
    }
    programs
}

/// A control group with a quota of CPU time, which ends with its value.
struct Quota(PathBuf);

impl Quota {
    /// A fifth of a CPU.
    fn new() -> Result<Quota, String> {
        let name = format!("threadtoll-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let folder = if first.exists() { first } else { Path::new("/sys/fs/cgroup") }.join(name);
        std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let quota = Quota(folder);
        let write = |file: &str, text: &str| std::fs::write(quota.0.join(file), text);
        write("cpu.max", "20000 100000")
            .or_else(|_| write("cpu.cfs_quota_us", "20000"))
            .map_err(|error| format!("no quota can be set: {error}"))?;
        Ok(quota)
    }

    fn take_in(&self, target: &Target) -> Result<(), Error> {
        Ok(std::fs::write(self.0.join("cgroup.procs"), target.pid().to_string())?)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn causes_shown(row: &ProfiledLock) -> String {
    let causes = row.causes.iter().map(|(cause, share, call)| {
        let call = call.as_ref().map(|call| format!(" in {call}")).unwrap_or_default();
        format!("{cause}{call} {}", shown(*share))
    });
    causes.collect::<Vec<_>>().join(", ")
}

pub(crate) fn check_causes() -> Result<bool, Error> {
    let quota = Quota::new();
    if let Err(reason) = &quota {
        println!("no program is throttled: {reason}");
    }
    let programs: Vec<_> = programs()
        .into_iter()
        .filter(|(name, line)| chosen(&format!("{name} {line}")))
        .filter(|(_, line)| quota.is_ok() || line != "throttled")
        .collect();
    if programs.is_empty() {
        return Err("no program is chosen".into());
    }
    let (mut judged, mut causes, mut not_built) = (0, 0, 0);
    let (mut with_holder, mut holders) = (0, 0);
    for (name, line) in programs.iter().cycle().take(runs("100").max(programs.len())) {
        println!("{name} {line}");
        let prepare = |target: &Target| match &quota {
            Ok(quota) if line.starts_with("throttled") => quota.take_in(target),
            _ => Ok(()),
        };
        let run = match run(name, &words(line), &[], prepare) {
            Ok(run) => run,
            Err(error) => {
                judged += 1;
                println!("    FAILED: {error}");
                continue;
            }
        };
        consistent(&run.facts, &run.account)?;
        let truth = run.facts.cause.as_ref().ok_or("the program names no cause")?;
        let [from, to] = run.interval;
        let realised = realised(&run.account, truth.lock, Modes::Any, from, to);
        if let Err(error) = as_built(truth, &run.account, &realised) {
            not_built += 1;
            println!("    not judged: {error}");
            continue;
        }
        judged += 1;
        let lock = run.facts.locks.iter().find(|lock| lock.id == truth.lock);
        let mut found = rows(&run.profile, lock.ok_or("the program names no lock")?);
        found.sort_by(|a, b| {
            b.0.queue_mean.unwrap_or(0.0).total_cmp(&a.0.queue_mean.unwrap_or(0.0))
        });
        with_holder += usize::from(truth.holder.is_some());
        let Some(&(row, _)) = found.first() else {
            println!(
                "    NOT SEEN: held {:.3}, queue {}",
                realised.held_share,
                shown(realised.queue_mean)
            );
            continue;
        };
        let holder = right_holder(row, truth, &realised);
        let cause = found.iter().any(|(row, _)| right_cause(row, truth));
        holders += usize::from(holder == Some(true));
        causes += usize::from(cause);
        let verdict = |right: Option<bool>| match right {
            Some(true) => "right",
            Some(false) => "WRONG",
            None => "any",
        };
        println!(
            "    holder {}: {}, truth {}; cause {}: {}, truth {}; held {}, truth {:.3}; \
             on a CPU {}",
            verdict(holder),
            row.holders
                .first()
                .map_or("none".to_owned(), |(tid, share)| format!("{tid} {share:.2}")),
            match (truth.holder, realised.holders.first()) {
                (Some(_), Some((tid, share))) => format!("{tid} {share:.2}"),
                _ => "any".to_owned(),
            },
            verdict(Some(cause)),
            causes_shown(row),
            truth.cause,
            shown(row.held_share),
            realised.held_share,
            shown(realised.on_cpu),
        );
    }
    println!(
        "{judged} judged, {holders} of {with_holder} holders right, {causes} causes right; \
         {not_built} not as built"
    );
    let of_100 = |count: usize, of: usize| count as f64 >= 0.95 * of as f64;
    let passed =
        with_holder == 0 || bound("the right holder in 95 of 100", of_100(holders, with_holder));
    Ok(bound("the right cause in 95 of 100", judged > 0 && of_100(causes, judged)) && passed)
}

/// Seconds that the threads of a process ran, and seconds that they slept, by the kernel's account.
/// States looked at from a third process would count too few sleepers: it looks when it has a CPU.
fn ran_and_slept(pid: u32, seconds: f64) -> [f64; 2] {
    let account = || -> (f64, f64, f64) {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        threads.filter_map(Result::ok).fold((0.0, 0.0, 0.0), |sum, thread| {
            let said = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let mut figures = said.split(' ').map(|word| word.parse().unwrap_or(0.0) / 1e9);
            let mut next = || figures.next().unwrap_or(0.0);
            (sum.0 + next(), sum.1 + next(), sum.2 + 1.0)
        })
    };
    let before = account();
    std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
    let after = account();
    let (ran, ready) = (after.0 - before.0, after.1 - before.1);
    [ran, before.2 * seconds - ran - ready]
}

pub(crate) fn check_not_locks() -> Result<bool, Error> {
    let kinds = [("cpu", "cpu"), ("disk", "io"), ("socket", "io"), ("idle", "idle")];
    let (mut judged, mut right) = (0, 0);
    for language in ["c", "c-static", "cpp", "rust", "c"] {
        for (program, kind) in kinds {
            // The second time with more threads.
            let threads = if judged < 16 { 4 } else { 16 };
            judged += 1;
            let line = format!("{program} --threads {threads}");
            let name = format!("not-locks-{language}");
            let (found, account) = std::sync::mpsc::channel();
            let watch = |target: &Target| {
                let pid = target.pid();
                std::thread::spawn(move || found.send(ran_and_slept(pid, seconds())));
                Ok(())
            };
            match run(&name, &words(&line), &[], watch) {
                Ok(run) => {
                    // Of a fast disk most time may go into the kernel's code for it.
                    let [ran, slept] = account.recv()?;
                    let kind = if program == "disk" && ran > slept { "cpu" } else { kind };
                    if program == "disk" {
                        println!("by the kernel's account: ran {ran:.2} s, slept {slept:.2} s");
                    }
                    // What threads wait for that wait for others is not known.
                    let answers = match kind {
                        "idle" => ["Cannot be told for sure: no lock was seen", "Cannot be told"],
                        _ => ["Not locks", "Cannot be told for sure: no lock was seen"],
                    };
                    let answered = answers.iter().any(|answer| run.messages.contains(answer));
                    let blame = blames_locks(&run.profile, kind)
                        .or_else(|| (!answered).then(|| "the answer is not so".to_owned()));
                    right += usize::from(blame.is_none());
                    println!("{name} {line}: {}", blame.as_deref().unwrap_or("right"));
                }
                Err(error) => println!("{name} {line}: FAILED: {error}"),
            }
        }
    }
    Ok(bound(&format!("{right} of {judged} are not about locks"), right == judged))
}

pub(crate) fn check_allocator() -> Result<bool, Error> {
    let mut passed = true;
    for program in ["allocator-c", "allocator-c-static", "allocator-cpp"] {
        for rate in [15_000, 100_000] {
            let run = run(program, &words(&format!("--rate {rate}")), &[], |_| Ok(()))?;
            consistent(&run.facts, &run.account)?;
            let [from, to] = run.interval;
            let truth = realised(&run.account, 0, Modes::Any, from, to);
            let found = rows(&run.profile, &run.facts.locks[0]);
            let Some(&(row, _)) = found.first() else {
                passed &= bound(&format!("{program} at {rate}/s: the lock is seen"), false);
                continue;
            };
            let judged = compare(row, truth);
            let text = format!(
                "{program} at {rate}/s ({} acquisitions): held {:.4}, profile {} {:?}; \
                 queue {}, profile {}; {}",
                judged.truth.acquisitions,
                judged.truth.held_share,
                shown(row.held_share),
                row.held_interval,
                shown(judged.truth.queue_mean),
                shown(row.queue_mean),
                row.verdict
            );
            passed &= bound(&text, row.verdict == "comfortable");
        }
    }
    Ok(passed)
}

//! Many threads and locks; and predictions against real runs.

use crate::{Run, bound, run, seconds, words};
use std::collections::BTreeSet;
use threadtoll_profile_programs::Error;
use threadtoll_profile_programs::judge::{compare, rows};
use threadtoll_profile_programs::options::number;
use threadtoll_profile_programs::target::{Target, TrueLock};
use threadtoll_profile_programs::truth::{Modes, realised};

/// Waits that count as seen or not.
const LONG_WAIT_NS: u64 = 200_000;

/// 1,000 threads and 10,000 locks.
pub(crate) fn check() -> Result<bool, Error> {
    let (threads, locks) = (number("threads", "1000"), number("copies", "10000"));
    let line = format!("--threads {threads} --locks mutex --copies {locks} --hold 5ms --think 5ms");
    let run = run("shares-c", &words(&line), &[], |_| Ok(()))?;
    let [from, to] = run.interval;
    let waits = run.account.iter().filter(|each| {
        let long = each.asked.is_some_and(|asked| each.acquired > asked + LONG_WAIT_NS);
        long && (from..to).contains(&each.acquired)
    });
    let waited_for: BTreeSet<u32> = waits.map(|each| each.lock).collect();
    let locks: Vec<_> =
        run.facts.locks.iter().filter(|lock| waited_for.contains(&lock.id)).collect();
    let seen = locks.iter().filter(|lock| !rows(&run.profile, lock).is_empty()).count();
    println!("shares-c {line}: {} locks were waited for, {seen} of them seen", waited_for.len());
    let profiled =
        run.profiled.as_ref().ok_or("its cost is known only of one that is not launched")?;
    let took = (profiled.process[1] - profiled.process[0]) as f64 / 1e9;
    let cpu = profiled.cpu_s / took;
    let peak = profiled.peak_mib;
    let mut passed = figures(&run, &locks);
    passed &= bound(&format!("memory {peak:.1} MiB, at most 64 MB"), peak * 1.048_576 <= 64.0);
    passed &= bound(&format!("own CPU {:.1}%, budget 1%", cpu * 100.0), cpu <= 0.0105);
    let late = took - seconds();
    passed &= bound(&format!("report {late:.2} s after the sampling, at most 0.5 s"), late <= 0.5);
    Ok(passed)
}

/// Compares held shares of the locks that were seen.
fn figures(run: &Run, locks: &[&TrueLock]) -> bool {
    let [from, to] = run.interval;
    let (mut given, mut inside) = (0, 0);
    for lock in locks {
        for (row, modes) in rows(&run.profile, lock) {
            let judged = compare(row, realised(&run.account, lock.id, modes, from, to));
            given += usize::from(judged.held.covers().is_some());
            inside += usize::from(judged.held.covers() == Some(true));
        }
    }
    let text = format!("held share in its interval in at least 90% of {given}: {inside}");
    bound(&text, given > 0 && inside as f64 >= 0.9 * given as f64)
}

/// Work done per second by so many threads.
fn rate(threads: u32, load: &str) -> Result<f64, Error> {
    let target = Target::start("shares-c", &words(&format!("--threads {threads} {load}")))?;
    std::thread::sleep(std::time::Duration::from_secs_f64(seconds()));
    let (_, account) = target.finish()?;
    let from = account.iter().map(|each| each.acquired).min().unwrap_or(0);
    let to = account.iter().map(|each| each.released).max().unwrap_or(u64::MAX);
    let truth = realised(&account, 0, Modes::Any, from, to + 1);
    Ok(truth.acquisitions as f64 / (to - from) as f64 * 1e9)
}

/// Speed-up of 8 and 32 sleeping threads, predicted from 3.
pub(crate) fn check_prediction() -> Result<bool, Error> {
    let mut passed = true;
    for load in [
        "--hold 1ms --think 9ms --shape fixed",
        "--hold 2ms --think 18ms",
        "--hold 2ms --think 58ms",
    ] {
        let run = run("shares-c", &words(&format!("--threads 3 {load}")), &[], |_| Ok(()))?;
        let found = rows(&run.profile, &run.facts.locks[0]);
        let Some(&(row, _)) = found.first() else {
            passed &= bound(&format!("{load}: the lock is seen"), false);
            continue;
        };
        let alone = rate(1, load)?;
        for threads in [8, 32] {
            let real = rate(threads, load)? / alone;
            let predicted = row.predicted.iter().find(|each| each.0 == threads).map(|each| each.1);
            let text = match predicted {
                Some(speedup) => {
                    format!("predicted {speedup:.2}, off by {:.1}%", (speedup / real - 1.0) * 100.0)
                }
                None => "not predicted".to_owned(),
            };
            let close = predicted.is_some_and(|speedup| (speedup / real - 1.0).abs() <= 0.1);
            passed &= bound(&format!("{load}, {threads} threads: real {real:.2}, {text}"), close);
        }
    }
    Ok(passed)
}

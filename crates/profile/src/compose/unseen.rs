//! Sentences about facts that the profile misses, and about ways to find them.

use std::collections::BTreeMap;

use threadtoll_judge::samples::Figure;
use threadtoll_record::Text;
use threadtoll_record::profile::IdleWait;

use super::RunFacts;
use crate::account::{Account, ProcessAccount};
use crate::primitive::MAX_WAIT_TARGETS;
use crate::watched::Watched;

/// Minimum mean number of threads that ended before a sample could examine them, for such threads
/// to be mentioned.
const ENDED_UNSEEN: f64 = 0.1;

/// Minimum number of short-lived processes, and minimum fraction of their time that was missed, for
/// such processes to be mentioned.
const MIN_SHORT_LIVED: usize = 8;
const MISSED: f64 = 0.25;

const MAX_SEMAPHORES: usize = 3;

pub(super) fn unseen(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    facts: &RunFacts,
) -> Vec<Text> {
    let mut unseen: Vec<String> = facts.unseen.clone();
    if let Some(refused) = &facts.perf_refused {
        unseen.push(format!(
            "Threads that run, spin, wait for a CPU or were preempted cannot be distinguished, and \
             running holders have no stacks: {refused}."
        ));
    }
    let mut images = |runs: fn(&ProcessAccount) -> bool, text: &str| {
        if account.processes().any(runs) {
            unseen.push(text.to_owned());
        }
    };
    images(
        |process| process.go,
        "Goroutines' locks: Go parks a thread in the same way whether a goroutine waits for a lock \
         or there is no work; use Go's mutex and block profiles (net/http/pprof).",
    );
    images(
        |process| process.jvm,
        "The Java monitor that threads wait for, and locks of java.util.concurrent: use a JFR \
         recording, or `jcmd PID Thread.print -l`.",
    );
    images(
        |process| process.foreign_libc,
        "Condition variables, semaphores and read-write locks of musl: waits for them are listed \
         as unknown.",
    );
    images(
        |process| process.targets.iter().any(|target| target.identity.is_shared_word()),
        "The C++ atomic that threads wait for, and whether it is a lock: in libstdc++, atomics \
         share the words on which threads sleep, so only stacks can show it. A `std::atomic<int>` \
         has a word of its own.",
    );
    images(
        |process| process.is_full,
        &format!(
            "Waits for locks and other wait targets beyond the first {MAX_WAIT_TARGETS} seen in a \
             process: they count as unknown."
        ),
    );
    if watched.values().any(|watched| watched.is_32_bit) {
        unseen.push("Locks of 32-bit programs are not recognised.".to_owned());
    }
    let with_locks = account.processes().filter(|process| {
        process.targets.iter().any(|target| target.is_lock() && target.is_used())
    });
    let ended = with_locks.map(ProcessAccount::ended_unseen).fold(0.0, f64::max);
    if ended >= ENDED_UNSEEN {
        unseen.push(format!(
            "Threads that end during a sample: on average, {ended:.1} per sample had ended before \
             they were examined. Queues may be longer than shown by that number."
        ));
    }
    unseen.extend(missed(
        account.processes().filter_map(|process| Some((process.found_after_s?, process.seconds()))),
    ));
    let withheld = |process: &ProcessAccount| {
        let used = process.targets.iter().filter(|target| target.is_lock() && target.is_used());
        used.map(|target| process.samples(target)).any(|samples| {
            [samples.held(), samples.queue()]
                .iter()
                .any(|figure| matches!(figure, Figure::Withheld(_)))
        })
    };
    if account.processes().any(withheld) {
        unseen.push(
            "Some figures are withheld, because the profiler waited for a CPU too often. Leave it \
             an idle CPU, or sample for longer."
                .to_owned(),
        );
    }
    unseen.into_iter().map(Text::from).collect()
}

/// Returns a sentence about processes that began during the profile, if much of their time was
/// missed. For each process, `processes` yields the seconds before it was found, and the seconds
/// for which it was observed.
fn missed(processes: impl Iterator<Item = (f64, f64)>) -> Option<String> {
    let (mut number, mut missed, mut observed) = (0, 0.0, 0.0);
    for (before, after) in processes {
        (number, missed, observed) = (number + 1, missed + before, observed + after);
    }
    let share = missed / (missed + observed);
    (number >= MIN_SHORT_LIVED && share >= MISSED).then(|| {
        format!(
            "The beginnings of short-lived processes: {number} processes lived for {:.0} ms on \
             average before they were found, {:.0}% of their time, and others may have ended \
             unseen. Waits may be longer than shown.",
            1e3 * missed / number as f64,
            1e2 * share
        )
    })
}

pub(super) fn semaphores_that_may_lock(
    process: &ProcessAccount,
    listed: &[IdleWait],
) -> Option<Text> {
    let may_lock = |address| {
        let mut targets = process.targets.iter();
        targets.any(|target| target.address == address && process.may_lock(target))
    };
    let listed = listed.iter().filter(|wait| may_lock(wait.address.0));
    let names: Vec<String> =
        listed.take(MAX_SEMAPHORES).map(|wait| format!("`{}`", &*wait.name)).collect();
    (!names.is_empty()).then(|| Text::from(may_be_locks(&names)))
}

fn may_be_locks(names: &[String]) -> String {
    let named = names.join(", ");
    match names.len() {
        1 => format!(
            "Semaphores used as locks: {named} may be one, because its value was never above 1. A \
             semaphore does not show who posts it, so waits for it count as waits for other \
             threads. It is a lock or a limit if the threads that wait for it also post it."
        ),
        _ => format!(
            "Semaphores used as locks: {named} may be such, because their values were never above \
             1. A semaphore does not show who posts it, so waits for it count as waits for other \
             threads. Each is a lock or a limit if the threads that wait for it also post it."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_are_found_late_are_mentioned() {
        let of = |number, before, after| {
            missed(std::iter::repeat_n((before, after), number)).unwrap_or_default()
        };
        let said = of(9, 0.05, 0.1);
        let expected = "9 processes lived for 50 ms on average before they were found, 33% of";
        assert!(said.contains(expected), "{said}");
        assert_eq!(of(9, 0.01, 0.1), "");
        assert_eq!(of(3, 0.05, 0.1), "");
        assert_eq!(of(0, 0.0, 0.0), "");
    }

    #[test]
    fn several_semaphores_are_spoken_of_in_the_plural() {
        let said = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            may_be_locks(&names)
        };
        assert!(said(&["a"]).contains("`a` may be one, because its value was never above 1"));
        let several = said(&["a", "b"]);
        assert!(
            several.contains("`a`, `b` may be such, because their values were never above 1"),
            "{several}"
        );
        assert!(several.contains("does not show who posts it"), "{several}");
    }
}

//! Sentences on what could not be seen, and on how to see it.

use std::collections::BTreeMap;

use threadtoll_judge::samples::Figure;
use threadtoll_record::Text;
use threadtoll_record::profile::IdleWait;

use super::Circumstances;
use crate::account::{Account, ProcessAccount};
use crate::primitive::MAX_OBJECTS;
use crate::watched::Watched;

/// Mean number of threads that ended before they could be examined, from which it is mentioned.
const ENDED_UNSEEN: f64 = 0.1;

/// Maximum number of semaphores of a process that are mentioned as possible locks.
const MAX_SEMAPHORES: usize = 3;

/// Sentences on what could not be seen, and on how to see it.
pub(super) fn unseen(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    circumstances: &Circumstances,
) -> Vec<Text> {
    let mut unseen: Vec<String> = circumstances.unseen.clone();
    if let Some(refused) = &circumstances.perf_refused {
        unseen.push(format!(
            "Threads that run, wait for a CPU or were preempted are not told apart, and running \
             holders have no stacks: {refused}."
        ));
    }
    let mut images = |runs: fn(&ProcessAccount) -> bool, text: &str| {
        if account.processes().any(runs) {
            unseen.push(text.to_owned());
        }
    };
    images(
        |process| process.go,
        "Goroutines' locks: Go parks a thread in the same way if a goroutine waits for one and if \
         there is no work; use its mutex and block profiles (net/http/pprof).",
    );
    images(
        |process| process.jvm,
        "Which Java monitor, and locks of java.util.concurrent: use a JFR recording, or `jcmd PID \
         Thread.print -l`.",
    );
    images(
        |process| process.foreign_libc,
        "Condition variables, semaphores and read-write locks of musl: waits for them are listed \
         as unknown.",
    );
    images(
        |process| process.objects.iter().any(|object| object.identity.is_shared_word()),
        "Which C++ atomic threads wait for, and if it is a lock: libstdc++ lets atomics share the \
         words on which threads sleep, so only stacks tell. A `std::atomic<int>` has a word of its \
         own.",
    );
    images(
        |process| process.is_full,
        &format!(
            "Waits for anything but the {MAX_OBJECTS} locks and other things of a process that \
             were seen first: they count as unknown."
        ),
    );
    if watched.values().any(|watched| watched.is_32_bit) {
        unseen.push("Locks of 32-bit programs are not recognised.".to_owned());
    }
    let with_locks = account.processes().filter(|process| {
        process.objects.iter().any(|object| object.is_lock() && object.is_used())
    });
    let ended = with_locks.map(ProcessAccount::ended_unseen).fold(0.0, f64::max);
    if ended >= ENDED_UNSEEN {
        unseen.push(format!(
            "Threads that end within a sample: {ended:.1} at a time had ended before they were \
             looked at. Queues may be longer by as many."
        ));
    }
    let withheld = |process: &ProcessAccount| {
        let used = process.objects.iter().filter(|object| object.is_lock() && object.is_used());
        used.map(|object| process.samples(object)).any(|samples| {
            [samples.held(), samples.queue()]
                .iter()
                .any(|figure| matches!(figure, Figure::Withheld(_)))
        })
    };
    if account.processes().any(withheld) {
        unseen.push(
            "Some figures are withheld: the profiler waited for a CPU too often to tell. Leave it \
             an idle CPU, or sample for longer."
                .to_owned(),
        );
    }
    unseen.into_iter().map(Text::from).collect()
}

/// Waits for semaphores that may be locks, but are counted as waits for other threads.
pub(super) fn semaphores_that_may_lock(
    process: &ProcessAccount,
    listed: &[IdleWait],
) -> Option<Text> {
    let may_lock = |address| {
        let mut objects = process.objects.iter();
        objects.any(|object| object.address == address && process.may_lock(object))
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
            "Semaphores used as locks: {named} never had more than one item, as a lock would not, \
             but does not show who posts it, so that its waits count as waits for other threads. \
             It is a lock if the threads that wait for it also post it."
        ),
        _ => format!(
            "Semaphores used as locks: {named} never had more than one item each, as locks would \
             not, but do not show who posts them, so that their waits count as waits for other \
             threads. One is a lock if the threads that wait for it also post it."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_semaphores_are_spoken_of_in_the_plural() {
        let said = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            may_be_locks(&names)
        };
        assert!(said(&["a"]).contains("`a` never had more than one item, as a lock would not"));
        let several = said(&["a", "b"]);
        assert!(several.contains("`a`, `b` never had more than one item each"), "{several}");
        assert!(several.contains("do not show who posts them"), "{several}");
    }
}

//! Truth and profile compared.

use crate::Error;
use crate::profile::{Profile, ProfiledLock};
use crate::target::{Facts, Free, TrueCause, TrueLock};
use crate::truth::{Acquisition, Modes, Realised, realised};

/// Finds what a profile says of a lock: by address, otherwise by name.
///
/// Of a lock with readers and writers a profile may have a row each: each is compared with the
/// waits that it is about, and with the holds that keep those threads out.
pub fn rows<'a>(profile: &'a Profile, lock: &TrueLock) -> Vec<(&'a ProfiledLock, Modes)> {
    let inside = |row: &&ProfiledLock| row.address.wrapping_sub(lock.address) < lock.size;
    let mut found: Vec<_> = profile.locks.iter().filter(inside).collect();
    if found.is_empty() && lock.name != "-" {
        found = profile.locks.iter().filter(|row| row.name.contains(&lock.name)).collect();
    }
    let modes = |row: &ProfiledLock| match row.kind.as_str() {
        "rwlock-read" => Modes::Shared,
        "rwlock-write" => Modes::Exclusive,
        _ => Modes::Any,
    };
    found.into_iter().map(|row| (row, modes(row))).collect()
}

/// A figure and its interval, beside the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The truth.
    pub truth: f64,
    /// The profile's, unless it withholds it.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
}

impl Figure {
    /// True if the truth lies in the interval; `None` if there is none.
    pub fn covers(&self) -> Option<bool> {
        self.interval.map(|[low, high]| low <= self.truth && self.truth <= high)
    }

    /// Difference of the profile to the truth.
    pub fn off(&self) -> Option<f64> {
        self.value.map(|value| value - self.truth)
    }
}

/// A lock of a run, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The truth.
    pub truth: Realised,
    /// Held share.
    pub held: Figure,
    /// Mean queue; `None` where the truth is not known.
    pub queue: Option<Figure>,
}

/// Largest error of a held share.
pub const HELD_LIMIT: f64 = 0.03;

/// Largest error of a mean queue: 5%, or 0.05 if that is more.
pub fn queue_limit(truth: f64) -> f64 {
    (truth * 0.05).max(0.05)
}

/// Compares a row with the truth.
pub fn compare(row: &ProfiledLock, truth: Realised) -> Judged {
    let held =
        Figure { truth: truth.held_share, value: row.held_share, interval: row.held_interval };
    let queue = truth.queue_mean.map(|queue| Figure {
        truth: queue,
        value: row.queue_mean,
        interval: row.queue_interval,
    });
    Judged { truth, held, queue }
}

/// Checks a program's account against its second count: shares that differ by more than one in a
/// thousand are an error.
pub fn consistent(facts: &Facts, account: &[Acquisition]) -> Result<(), Error> {
    for &Free { lock, from, to, free_ns } in facts.free.iter().filter(|free| free.to > free.from) {
        let held = realised(account, lock, Modes::Any, from, to).held_share;
        let counted = 1.0 - free_ns as f64 / (to - from) as f64;
        if (held - counted).abs() > 0.001 {
            return Err(format!(
                "lock {lock} was held for {held:.5} of the time by the records, \
                 {counted:.5} by the gaps"
            )
            .into());
        }
    }
    Ok(())
}

/// Checks that a program is what it was built to be, so that a profile is not blamed for it.
pub fn as_built(cause: &TrueCause, account: &[Acquisition], truth: &Realised) -> Result<(), Error> {
    let on_cpu = truth.on_cpu.unwrap_or(f64::NAN);
    let (right, figure) = match cause.cause.as_str() {
        // Writing to a disk takes CPU time too.
        "slept-holding" => (on_cpu < 0.4, on_cpu),
        "computing" => (on_cpu > 0.8, on_cpu),
        "preempted" | "throttled" => (on_cpu < 0.6, on_cpu),
        "convoy" => (truth.free_while_waited > 0.4, truth.free_while_waited),
        "hog" => {
            let most = truth.holders.first().map_or(0.0, |holder| holder.1);
            (most > 0.8, most)
        }
        "starved-writer" => {
            let ratio =
                mean_wait(account, cause.lock, false) / mean_wait(account, cause.lock, true);
            (ratio > 10.0, ratio)
        }
        _ => return Ok(()),
    };
    if right {
        Ok(())
    } else {
        Err(format!("{} did not come about in this run (figure {figure:.2})", cause.cause).into())
    }
}

fn mean_wait(account: &[Acquisition], lock: u32, shared: bool) -> f64 {
    let waits: Vec<f64> = account
        .iter()
        .filter(|each| each.lock == lock && each.shared == shared && each.acquired != u64::MAX)
        .filter_map(|each| Some((each.acquired - each.asked?) as f64))
        .collect();
    waits.iter().sum::<f64>() / waits.len() as f64
}

/// True if the right cause is named: the first cause listed, other than those that are true
/// besides, is the one that the program was built for. Of a holder that sleeps, the call must be
/// named too.
pub fn right_cause(row: &ProfiledLock, truth: &TrueCause) -> bool {
    let named = row.causes.iter().find(|cause| !truth.also.contains(&cause.0));
    named.is_some_and(|(cause, _, call)| {
        let right_call = truth.cause != "slept-holding" || same_call(call, &truth.call);
        *cause == truth.cause && right_call
    })
}

/// glibc sleeps in `clock_nanosleep`, other libraries in `nanosleep`.
fn same_call(said: &Option<String>, truth: &Option<String>) -> bool {
    let plain = |call: &Option<String>| {
        call.as_deref().map(|name| name.trim_start_matches("clock_").to_owned())
    };
    plain(said) == plain(truth)
}

/// True if the right holder is named: the thread that held the lock longest while somebody waited,
/// or one that held it for nine tenths of that. `None` for programs in which no thread is meant to
/// hold it most.
pub fn right_holder(row: &ProfiledLock, cause: &TrueCause, truth: &Realised) -> Option<bool> {
    cause.holder?;
    let share = |tid| truth.holders.iter().find(|holder| holder.0 == tid).map_or(0.0, |it| it.1);
    let longest = truth.holders.first().map_or(0.0, |holder| holder.1);
    let named = row.holders.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    Some(named.is_some_and(|&(tid, _)| share(tid) >= 0.9 * longest))
}

/// Reason for which a profile of a program that is not about locks is wrong: `kind` must have the
/// largest share of time, and each lock must be comfortable and not worth the mending.
pub fn blames_locks(profile: &Profile, kind: &str) -> Option<String> {
    for lock in &profile.locks {
        let gain = lock.gain.unwrap_or(0.0);
        // An undecided verdict on a lock that costs nothing blames nobody.
        if gain >= 0.05 || !(lock.verdict.is_empty() || lock.verdict.starts_with("comfortable")) {
            return Some(format!("{} is {}, gain {gain:.3}", lock.name, lock.verdict));
        }
    }
    let share =
        |name: &str| profile.time.iter().find(|time| time.0 == name).map_or(0.0, |time| time.1);
    let shares = [
        ("cpu", share("on_cpu")),
        ("io", share("io")),
        ("idle", share("idle") + share("thread_wait")),
        ("lock", share("lock_wait")),
        ("sleep", share("sleep")),
        ("unknown", share("unknown")),
    ];
    let most = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most.0 != kind).then(|| format!("most time is {} ({:.2}), not {kind}", most.0, most.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, address: u64) -> ProfiledLock {
        ProfiledLock { kind: kind.to_owned(), address, ..ProfiledLock::default() }
    }

    fn true_lock(name: &str) -> TrueLock {
        TrueLock {
            id: 0,
            kind: "rwlock".to_owned(),
            address: 0x1000,
            size: 56,
            name: name.to_owned(),
            judged: true,
        }
    }

    fn cause(name: &str, also: &[&str], call: Option<&str>) -> TrueCause {
        TrueCause {
            cause: name.to_owned(),
            lock: 0,
            holder: Some(5),
            also: also.iter().map(|&word| word.to_owned()).collect(),
            call: call.map(str::to_owned),
        }
    }

    fn causes(row: &mut ProfiledLock, names: &[&str]) {
        let call = Some("nanosleep".to_owned());
        row.causes = names.iter().map(|&name| (name.to_owned(), Some(0.9), call.clone())).collect();
    }

    #[test]
    fn a_lock_is_found_by_any_address_inside_and_by_name() {
        let locks =
            vec![row("rwlock-read", 0x1008), row("rwlock-write", 0x100c), row("mutex", 0x1038)];
        let mut profile = Profile { locks, ..Profile::default() };
        let found = rows(&profile, &true_lock("-"));
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].1, found[1].1), (Modes::Shared, Modes::Exclusive));
        profile.locks = vec![ProfiledLock { name: "app::CACHE".to_owned(), ..row("parker", 0x99) }];
        assert_eq!(rows(&profile, &true_lock("CACHE")).len(), 1);
        assert!(rows(&profile, &true_lock("-")).is_empty());
    }

    #[test]
    fn figures_are_inside_outside_or_withheld() {
        let figure = |interval| Figure { truth: 0.5, value: Some(0.45), interval };
        assert_eq!(figure(Some([0.4, 0.5])).covers(), Some(true));
        assert_eq!(figure(Some([0.4, 0.49])).covers(), Some(false));
        assert_eq!(figure(None).covers(), None);
        assert!((figure(None).off().unwrap() + 0.05).abs() < 1e-12);
        assert_eq!((queue_limit(0.2), queue_limit(4.0)), (0.05, 0.2));
    }

    #[test]
    fn the_second_count_must_agree() {
        let hold = |from, to| Acquisition {
            tid: 1,
            lock: 0,
            shared: false,
            asked: Some(from),
            acquired: from,
            released: to,
            cpu: 0,
        };
        let account = [hold(100, 200), hold(300, 500)];
        let mut facts = Facts::default();
        facts.add("free 0 100 500 100").unwrap();
        assert!(consistent(&facts, &account).is_ok());
        facts.add("free 0 100 500 110").unwrap();
        assert!(consistent(&facts, &account).is_err());
    }

    #[test]
    fn the_first_cause_counts_that_is_not_true_besides() {
        let mut row = row("mutex", 0);
        let hog = cause("hog", &["computing"], None);
        assert!(!right_cause(&row, &hog));
        causes(&mut row, &["computing", "hog"]);
        assert!(right_cause(&row, &hog));
        causes(&mut row, &["convoy", "hog"]);
        assert!(!right_cause(&row, &hog));
    }

    #[test]
    fn a_sleeping_holder_needs_its_call() {
        let mut row = row("mutex", 0);
        causes(&mut row, &["slept-holding"]);
        assert!(right_cause(&row, &cause("slept-holding", &[], Some("clock_nanosleep"))));
        assert!(!right_cause(&row, &cause("slept-holding", &[], Some("fsync"))));
    }

    #[test]
    fn the_holder_with_the_largest_share_counts() {
        let mut row = row("mutex", 0);
        let mut cause = cause("hog", &[], None);
        let truth =
            |holders: &[(u32, f64)]| Realised { holders: holders.to_vec(), ..Realised::default() };
        let clear = truth(&[(5, 0.8), (4, 0.2)]);
        assert_eq!(right_holder(&row, &cause, &clear), Some(false));
        row.holders = vec![(4, 0.2), (5, 0.8)];
        assert_eq!(right_holder(&row, &cause, &clear), Some(true));
        row.holders = vec![(4, 0.6), (5, 0.4)];
        assert_eq!(right_holder(&row, &cause, &clear), Some(false));
        assert_eq!(right_holder(&row, &cause, &truth(&[(5, 0.51), (4, 0.49)])), Some(true));
        cause.holder = None;
        assert_eq!(right_holder(&row, &cause, &clear), None);
    }

    #[test]
    fn blaming_a_lock_is_noticed() {
        let time = vec![("on_cpu".to_owned(), 0.6), ("io".to_owned(), 0.4)];
        let mut profile = Profile { time, ..Profile::default() };
        assert_eq!(blames_locks(&profile, "cpu"), None);
        assert!(blames_locks(&profile, "io").is_some());
        profile.locks = vec![ProfiledLock { verdict: "crowded".to_owned(), ..row("mutex", 0) }];
        assert!(blames_locks(&profile, "cpu").is_some());
        profile.locks[0].verdict = "comfortable".to_owned();
        profile.locks[0].gain = Some(0.01);
        assert_eq!(blames_locks(&profile, "cpu"), None);
    }
}

//! Signs that threads which wait for others wait for a lock, whatever the lock is made of.
//!
//! Threads leave a lock one at a time, and each is woken by a thread that had the lock before. In
//! contrast, threads leave a barrier or a group commit together. The threads of a pool are woken by
//! a thread that does not wait where they do. Threads that pass something round wait for one
//! another, each on a wait target of its own, and leave in a fixed order. So may those of a fair
//! lock with such wait targets, which leaves that case open.

use std::collections::{HashMap, HashSet};

use crate::account::{SampledState, ThreadThen, Time};

/// Minimum number of threads that wait in the same place: two threads may just take turns.
const FEWEST_USERS: usize = 3;

/// Minimum number of instants that show in which order threads left.
const FEWEST: usize = 10;

/// Threads that left within this time, in microseconds, may have left together.
const APART_US: u32 = 200;

/// Minimum share of ends of waits that are some time apart.
const MOSTLY: f64 = 0.8;

/// Minimum share of instants, or of ends of waits, that stands for all of them.
const NEARLY_ALL: f64 = 0.9;

/// Maximum ratio of threads that wait for a CPU to threads that wait here: without enough CPUs,
/// threads that were woken together go on one after the other.
const FEW_CPUS: f64 = 0.1;

/// Minimum ratio of the time between two ends of waits to the time from an instant to the first of
/// them. It is 2 if they are evenly spaced.
const SPACED: f64 = 0.5;

/// Two threads that left one after the other.
#[derive(Clone, Copy, Debug)]
struct Pair {
    first: u32,
    second: u32,
    /// True if both waited on one wait target.
    together: bool,
    /// Time from the instant to the end of the first wait, and from there to that of the second.
    lead_us: u32,
    gap_us: u32,
}

/// Ends of waits, as far as they show a lock.
#[derive(Debug, Default)]
struct Wakings {
    /// Number of instants at which some thread waited, and of those at which all users did.
    instants: usize,
    all_waited: usize,
    /// Number of ends of waits with known possible wakers; number of these with a user among the
    /// wakers; and number with another thread among them.
    woken: usize,
    by_users: usize,
    by_others: usize,
    /// Number of waiting users, and of users that waited for a CPU, over all instants.
    waiting: usize,
    runnable: usize,
    pairs: Vec<Pair>,
}

/// Returns `true` if the waiting threads were seen to leave as threads leave a lock. `users` are
/// all threads that were ever seen waiting there.
pub(super) fn leave_like_a_lock(
    instants: &[&[ThreadThen]],
    waits: impl Fn(&ThreadThen) -> bool,
    users: &HashSet<u32>,
) -> bool {
    let mut seen = Wakings::default();
    for instant in instants {
        seen.add(instant, &waits, users);
    }
    users.len() >= FEWEST_USERS && seen.are_of_a_lock(users.len())
}

impl Wakings {
    fn add(
        &mut self,
        instant: &[ThreadThen],
        waits: impl Fn(&ThreadThen) -> bool,
        users: &HashSet<u32>,
    ) {
        let is_user = |thread: &ThreadThen| users.contains(&thread.tid);
        let doing = |thread: &ThreadThen, time| thread.state == SampledState::Doing(time);
        let waiting = instant.iter().filter(|thread| waits(thread));
        let active =
            |thread: &ThreadThen| is_user(thread) && !waits(thread) && !doing(thread, Time::Idle);
        self.instants += 1;
        self.all_waited += usize::from(!instant.iter().any(active));
        self.waiting += waiting.clone().count();
        let runnable = instant.iter().filter(|it| is_user(it) && doing(it, Time::Runnable));
        self.runnable += runnable.count();
        let first_of_all = instant.iter().filter_map(|thread| thread.woken_us).min();
        let mut left: Vec<(u32, &ThreadThen)> =
            waiting.filter_map(|thread| Some((thread.woken_us?, thread))).collect();
        left.sort_unstable_by_key(|&(woken_us, thread)| (woken_us, thread.tid));
        let Some(&(lead_us, first)) = left.first() else { return };
        if Some(lead_us) == first_of_all {
            let may =
                |of_users| instant.iter().any(|it| it.may_have_woken && is_user(it) == of_users);
            self.woken += 1;
            self.by_users += usize::from(may(true));
            self.by_others += usize::from(may(false));
        }
        if let Some(&(next_us, second)) = left.get(1) {
            let target = |thread: &ThreadThen| match thread.state {
                SampledState::On { place, .. } => Some(place),
                SampledState::Doing(_) | SampledState::Lock => None,
            };
            let together = target(first).is_some() && target(first) == target(second);
            let (first, second, gap_us) = (first.tid, second.tid, next_us - lead_us);
            self.pairs.push(Pair { first, second, together, lead_us, gap_us });
        }
    }

    fn are_of_a_lock(&self, users: usize) -> bool {
        let nearly = |part: usize, all: usize| part as f64 >= NEARLY_ALL * all as f64;
        let one_works = nearly(self.instants - self.all_waited, self.instants);
        let woken_by_users = self.woken >= FEWEST
            && nearly(self.by_users, self.woken)
            && nearly(self.woken - self.by_others, self.woken);
        let has_cpus = self.runnable as f64 <= FEW_CPUS * self.waiting as f64;
        one_works
            && woken_by_users
            && has_cpus
            && self.one_at_a_time()
            && !self.in_fixed_order(users)
    }

    fn one_at_a_time(&self) -> bool {
        let apart = self.pairs.iter().filter(|pair| pair.gap_us >= APART_US).count();
        let sum = |of: fn(&Pair) -> u32| self.pairs.iter().map(|pair| f64::from(of(pair))).sum();
        let (gaps, leads): (f64, f64) = (sum(|pair| pair.gap_us), sum(|pair| pair.lead_us));
        self.pairs.len() >= FEWEST
            && apart as f64 >= MOSTLY * self.pairs.len() as f64
            && gaps >= SPACED * leads
    }

    /// Returns `true` if the threads waited on different wait targets, and the same thread left
    /// after a given other thread much more often than if any of the others left next.
    fn in_fixed_order(&self, users: usize) -> bool {
        let mut after: HashMap<u32, HashMap<u32, usize>> = HashMap::new();
        let apart = self.pairs.iter().filter(|pair| !pair.together);
        for pair in apart.clone() {
            *after.entry(pair.first).or_default().entry(pair.second).or_default() += 1;
        }
        let usual: usize = after.values().filter_map(|next| next.values().max()).sum();
        let all = apart.count();
        // A few ends of waits seem to be in another order, because samples are late.
        let by_chance = 1.0 / (users.max(FEWEST_USERS) - 1) as f64;
        2 * all > self.pairs.len() && usual as f64 >= (1.0 + by_chance) / 2.0 * all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: u32 = 4;
    const PRODUCER: u32 = 9;

    fn waiting(tid: u32, woken_us: u32) -> ThreadThen {
        let state = SampledState::Doing(Time::Threads);
        let woken_us = Some(woken_us);
        ThreadThen { woken_us, may_have_woken: false, ..ThreadThen::new(tid, state, None, None) }
    }

    fn running(tid: u32) -> ThreadThen {
        ThreadThen::new(tid, SampledState::Doing(Time::Running), None, None)
    }

    fn is_lock(instants: &[Vec<ThreadThen>]) -> bool {
        let instants: Vec<&[ThreadThen]> = instants.iter().map(|instant| &instant[..]).collect();
        leave_like_a_lock(&instants, waits, &(0..USERS).collect())
    }

    fn waits(thread: &ThreadThen) -> bool {
        !matches!(thread.state, SampledState::Doing(Time::Running | Time::Runnable))
    }

    /// Instants at which one user works and the others wait, to leave in the order in which `order`
    /// puts them, `gap_us` apart.
    fn turns(gap_us: u32, order: impl Fn(u32) -> [u32; 3]) -> Vec<Vec<ThreadThen>> {
        let instant = |i| {
            let works = i % USERS;
            let at = (0..).map(|n| 300 + n * gap_us);
            let others = order(i).into_iter().map(|next| (works + next) % USERS);
            let waiters = others.zip(at).map(|(tid, at)| waiting(tid, at));
            waiters.chain([running(works)]).collect()
        };
        (0..40).map(instant).collect()
    }

    fn no_order(i: u32) -> [u32; 3] {
        [[1, 2, 3], [2, 1, 3], [3, 1, 2]][i as usize / 2 % 3]
    }

    #[test]
    fn threads_leave_a_lock_one_at_a_time_in_no_order() {
        assert!(is_lock(&turns(500, no_order)));
        // A barrier, or a lock with holds too short to tell.
        assert!(!is_lock(&turns(30, no_order)));
        // Something that goes round, unless all wait on one target.
        let mut round = turns(500, |_| [1, 2, 3]);
        assert!(!is_lock(&round));
        let seldom_others = turns(500, |i| if i % 4 == 0 { [2, 1, 3] } else { [1, 2, 3] });
        assert!(!is_lock(&seldom_others));
        for thread in round.iter_mut().flatten().filter(|thread| waits(thread)) {
            thread.state = SampledState::On { place: 0, lock: false };
        }
        assert!(is_lock(&round));
        // Too few.
        assert!(!is_lock(&turns(500, no_order)[..9]));
    }

    #[test]
    fn a_thread_that_never_waits_wakes_those_of_a_pool() {
        let with = |more: fn() -> ThreadThen| {
            let mut instants = turns(500, no_order);
            instants.iter_mut().for_each(|instant| instant.push(more()));
            is_lock(&instants)
        };
        assert!(!with(|| running(PRODUCER)));
        assert!(with(|| ThreadThen { may_have_woken: false, ..running(PRODUCER) }));
    }

    #[test]
    fn without_a_thread_that_works_or_a_cpu_it_is_not_known() {
        let mut all_wait = turns(500, no_order);
        for instant in all_wait.iter_mut().step_by(5) {
            let tid = instant[3].tid;
            instant[3] = ThreadThen { may_have_woken: true, ..waiting(tid, 9000) };
        }
        assert!(!is_lock(&all_wait));
        let mut without_cpu = turns(500, no_order);
        for instant in &mut without_cpu {
            instant[3].state = SampledState::Doing(Time::Runnable);
        }
        assert!(!is_lock(&without_cpu));
    }
}

//! Effects of changes on the whole program, consistent with the gain from removing a queue
//! altogether.
//!
//! The models cover only the users of one lock, and no limits but the lock and the CPUs. The
//! program's other threads do not become faster. So a change that keeps the number of threads is
//! never predicted to help more than removing all waiting would.

use threadtoll_stats::interval::Estimate;

use super::gain::Surroundings;
use super::prediction::{Change, WhatIf};

/// Minimum effect that is reported; a smaller one counts as none.
const LEAST: f64 = 0.005;

/// The part of a program's work that a lock's users do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The users' share of the working threads. `most_share` assumes that threads that never wait
    /// for the lock only serve those that do.
    share: f64,
    most_share: f64,
    /// Throughput without the lock's queue, relative to the present.
    most: Estimate,
}

impl Part {
    pub(super) fn of(
        users: u32,
        queue: Estimate,
        program: Surroundings<'_>,
        gain: Estimate,
    ) -> Part {
        let working = (f64::from(users) - queue.value).max(0.0);
        let share = |of: f64| (working / of.max(working).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let of_all = share(program.working);
        let most_share = match program.others_may_set_pace() {
            true => of_all,
            false => of_all.max(share(program.waiters_working)),
        };
        Part { share: of_all, most_share, most: gain.map(|gain| 1.0 + gain) }
    }

    /// The effect on the program, given the effect on the lock's users; `None` if there is none.
    pub(super) fn effect(self, on_users: WhatIf) -> Option<WhatIf> {
        let of = |share: f64, gain: f64| 1.0 + share * (gain - 1.0);
        let least_or_most = |gain: f64| [self.share, self.most_share].map(|share| of(share, gain));
        let [low, lower] = least_or_most(on_users.gain.low);
        let [high, higher] = least_or_most(on_users.gain.high);
        let (low, high) = (low.min(lower), high.max(higher));
        let mut gain = Estimate { value: of(self.share, on_users.gain.value), low, high };
        if !matches!(on_users.change, Change::Threads(_)) {
            let value = gain.value.min(self.most.value.max(1.0));
            let low = gain.low.min(self.most.low.max(1.0)).min(value);
            let high = gain.high.min(self.most.high.max(1.0)).max(value);
            gain = Estimate { value, low, high };
        }
        // The users' own speed-up that corresponds to the limited gain of the program.
        let users = 1.0 + (gain.value - 1.0) / self.share.max(f64::MIN_POSITIVE);
        let limited = (users / on_users.gain.value.max(f64::MIN_POSITIVE)).min(1.0);
        let speedup = on_users.speedup.map(|speedup| speedup * limited);
        let tells = (gain.value - 1.0).abs() >= LEAST;
        tells.then_some(WhatIf { gain, speedup, ..on_users })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gain::Locking;

    fn program(working: f64) -> Surroundings<'static> {
        Surroundings {
            working,
            working_within: 0.0,
            waiters_working: f64::INFINITY,
            on_cpu: Estimate::exact(0.0),
            running: 0.0,
            cpus: 8.0,
            idle_cpus: None,
            users_on_cpu: 0.0,
            users_at_rest: 0.0,
            held_up_by_others: false,
            others: &[],
            locking: Locking::default(),
        }
    }

    fn effect(change: Change, of_users: f64, gain: f64, working: f64) -> Option<f64> {
        let part = Part::of(4, Estimate::exact(3.0), program(working), Estimate::exact(gain));
        let users = Estimate::exact(of_users);
        let what_if = WhatIf { change, threads: 4, speedup: users, gain: users };
        part.effect(what_if).map(|effect| effect.gain.value)
    }

    #[test]
    fn a_pool_of_two_speeds_up_its_part_of_the_program() {
        assert_eq!(effect(Change::MoveOut(1.0), 4.0, 1.5, 2.0), Some(2.5));
        assert_eq!(effect(Change::MoveOut(1.0), 4.0, 3.0, 1.0), Some(4.0));
    }

    #[test]
    fn no_change_helps_more_than_the_end_of_all_waiting() {
        assert_eq!(effect(Change::HalveHold, 2.0, 0.25, 1.0), Some(1.25));
        // The CPUs are full, or another lock is the limit.
        assert_eq!(effect(Change::Stripe(4), 3.5, 0.0, 1.0), None);
        assert_eq!(effect(Change::HalveHold, 1.001, 1.0, 1.0), None);
        // Adding threads may help more than removing all waiting.
        assert_eq!(effect(Change::Threads(8), 1.5, 0.25, 1.0), Some(1.5));
    }

    #[test]
    fn threads_that_only_serve_the_waiters_leave_a_range() {
        let users = Estimate { value: 3.0, low: 2.8, high: 3.2 };
        let of = |waiters_working| {
            let program = Surroundings { waiters_working, ..program(8.0) };
            // Of the eight working threads, two use the lock.
            let gain = Estimate { value: 0.5, low: 0.4, high: 2.0 };
            let part = Part::of(6, Estimate::exact(4.0), program, gain);
            let what_if =
                WhatIf { change: Change::HalveHold, threads: 6, speedup: users, gain: users };
            part.effect(what_if).unwrap().gain
        };
        let all_work = of(f64::INFINITY);
        assert!((all_work.low - 1.4).abs() < 1e-9 && (all_work.high - 1.55).abs() < 1e-9);
        let two_work = of(2.0);
        assert!((two_work.high - 3.0).abs() < 1e-9, "at most the gain: {two_work:?}");
        assert!((two_work.value - 1.5).abs() < 1e-9 && (two_work.low - 1.4).abs() < 1e-9);
    }
}

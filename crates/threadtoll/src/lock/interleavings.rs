//! Every interleaving of a few threads at a lock: of their compare-and-swaps, their calls of the
//! futex, their time-outs.
//!
//! One word is shared, so there is nothing to reorder: a load is a guess that the next
//! compare-and-swap or the kernel checks. The steps from one state of the word to the next are the
//! shipped ones of [`super::state`]. Their order repeats `super::word`, by hand: a change in one
//! must be made in the other.

use std::collections::HashMap;

use super::state::{Role, Sleepers, State, Time};
use crate::sync::mutate;

/// A thread's part.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Number of times that it locks.
    rounds: u8,
    bound: u32,
    /// Its waits may time out at any moment.
    times_out: bool,
    unlocks_fairly: bool,
    starves: Starves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starves {
    Never,
    AfterLosses(u8),
    AtAnyMoment,
}

const PLAN: Plan = Plan {
    rounds: 1,
    bound: u32::MAX,
    times_out: false,
    unlocks_fairly: false,
    starves: Starves::Never,
};
const TWICE: Plan = Plan { rounds: 2, ..PLAN };
const FAIR: Plan = Plan { unlocks_fairly: true, ..PLAN };
const FAIR_TWICE: Plan = Plan { rounds: 2, ..FAIR };
const LATE: Plan = Plan { times_out: true, ..PLAN };
const BOUNDED: Plan = Plan { bound: 1, ..PLAN };
const BOUNDED_LATE: Plan = Plan { times_out: true, ..BOUNDED };
const STARVING: Plan = Plan { starves: Starves::AfterLosses(1), ..PLAN };
const STARVING_TWICE: Plan = Plan { rounds: 2, ..STARVING };
const STARVING_AT_ANY_MOMENT: Plan = Plan { starves: Starves::AtAnyMoment, ..PLAN };
const FAIR_STARVING: Plan = Plan { unlocks_fairly: true, ..STARVING };
const LATE_OR_STARVING: Plan = Plan { times_out: true, ..STARVING };

/// Place of a thread in the code, between two of its steps. A state is the one that it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Thinking,
    Entering(State),
    Looking(Role),
    Deciding(Role, State),
    FallingAsleep(Role, State),
    Asleep(Role),
    Holding,
    Unlocking(State),
    Waking(Sleepers),
    PromisingNobody(State),
    WakingPassedOver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Thread {
    at: At,
    /// Rounds left, the present one included.
    rounds: u8,
    losses: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Moment<const N: usize> {
    word: State,
    threads: [Thread; N],
    /// Sleeping threads, in the order in which they fell asleep.
    asleep: Vec<u8>,
    /// True if the lock is free because an unlock that wanted to hand it over woke nobody.
    freed: bool,
}

impl<const N: usize> Moment<N> {
    fn first(plans: &[Plan; N]) -> Self {
        let threads = plans.map(|plan| Thread { at: At::Thinking, rounds: plan.rounds, losses: 0 });
        Moment { word: State::FREE, threads, asleep: Vec::new(), freed: false }
    }

    /// The moment after a step that takes a thread to this place.
    fn then(&self, thread: usize, word: State, at: At) -> Self {
        let mut next = self.clone();
        next.word = word;
        next.threads[thread].at = at;
        next.freed &= at != At::Holding;
        next
    }

    fn after_round(&self, thread: usize, word: State) -> Self {
        let mut next = self.then(thread, word, At::Thinking);
        next.threads[thread].rounds -= 1;
        next.threads[thread].losses = 0;
        next
    }

    /// A compare-and-swap.
    fn swap(
        &self,
        thread: usize,
        [seen, next]: [State; 2],
        swapped: At,
        failed: impl FnOnce(State) -> At,
    ) -> Self {
        if self.word == seen {
            self.then(thread, next, swapped)
        } else {
            self.then(thread, self.word, failed(self.word))
        }
    }

    /// The thread stops sleeping, or trying to.
    fn get_up(&mut self, thread: usize, role: Role, plans: &[Plan; N]) {
        self.asleep.retain(|asleep| usize::from(*asleep) != thread);
        self.threads[thread].at = At::Looking(role);
        if let Starves::AfterLosses(most) = plans[thread].starves {
            self.threads[thread].losses = (self.threads[thread].losses + 1).min(most);
        }
    }

    /// Wakes the thread of this kind that has slept longest. Returns `false` if there is none.
    fn wake(&mut self, sleepers: Sleepers, plans: &[Plan; N]) -> bool {
        let woken = self.asleep.iter().find_map(|thread| {
            let thread = usize::from(*thread);
            let At::Asleep(role) = self.threads[thread].at else { return None };
            let of_kind = (role == Role::Starved) == (sleepers == Sleepers::Starved);
            of_kind.then_some((thread, role))
        });
        let Some((thread, role)) = woken else { return false };
        let is_awake = mutate!(woken_is_awake, role == Role::Ordinary => false);
        self.get_up(thread, if is_awake { Role::Woken } else { role }, plans);
        true
    }

    /// All moments that a step of this thread may lead to.
    fn after(&self, thread: usize, plans: &[Plan; N]) -> Vec<Self> {
        let (plan, Thread { at, rounds, losses }) = (&plans[thread], self.threads[thread]);
        let swap = |states, swapped, failed: fn(State) -> At| {
            vec![self.swap(thread, states, swapped, failed)]
        };
        match at {
            At::Thinking if rounds == 0 => Vec::new(),
            At::Thinking => swap([State::FREE, State::HELD], At::Holding, At::Entering),
            At::Entering(seen) if !seen.is_locked() => {
                swap([seen, seen.taken()], At::Holding, At::Entering)
            }
            At::Entering(seen) if mutate!(refuse_when_full, seen.waiters() >= plan.bound => false) =>
            {
                vec![self.after_round(thread, self.word)]
            }
            At::Entering(seen) => {
                let (entered, role) = seen.entered();
                mutate!(
                    count_by_swap,
                    swap([seen, entered], At::Looking(role), At::Entering)
                        => vec![self.then(thread, self.word.entered().0, At::Looking(role))]
                )
            }
            At::Looking(role) => {
                vec![self.then(thread, self.word, At::Deciding(role, self.word))]
            }
            At::Deciding(role, seen) => self.after_decision(thread, plan, role, seen, losses),
            At::FallingAsleep(role, expected) => {
                let mut next = self.clone();
                if self.word == expected {
                    next.threads[thread].at = At::Asleep(role);
                    next.asleep.push(thread as u8);
                } else {
                    next.get_up(thread, role, plans);
                }
                vec![next]
            }
            At::Asleep(role) => {
                let starves = plan.starves == Starves::AtAnyMoment && role != Role::Starved;
                if !plan.times_out && !starves {
                    return Vec::new();
                }
                let mut next = self.clone();
                next.get_up(thread, role, plans);
                vec![next]
            }
            At::Holding => {
                if self.word == State::HELD {
                    vec![self.after_round(thread, State::FREE)]
                } else {
                    vec![self.then(thread, self.word, At::Unlocking(self.word))]
                }
            }
            At::Unlocking(seen) if self.word != seen => {
                vec![self.then(thread, self.word, At::Unlocking(self.word))]
            }
            At::Unlocking(seen) => {
                let times = [Time(0), Time(1)];
                let released = times.map(|now| seen.released(plan.unlocks_fairly, || now));
                let after = released.map(|(released, sleepers)| match sleepers {
                    Some(sleepers) => self.then(thread, released, At::Waking(sleepers)),
                    None => self.after_round(thread, released),
                });
                after.into()
            }
            At::Waking(sleepers) => {
                let mut next = self.clone();
                if next.wake(sleepers, plans) || sleepers != Sleepers::Others {
                    vec![next.after_round(thread, self.word)]
                } else {
                    vec![self.then(thread, self.word, At::PromisingNobody(self.word))]
                }
            }
            At::PromisingNobody(seen) => {
                let next = seen.nobody_woken();
                let mut after =
                    self.swap(thread, [seen, next], At::WakingPassedOver, At::PromisingNobody);
                after.freed |= self.word == seen && seen.is_locked() && !next.is_locked();
                vec![after]
            }
            At::WakingPassedOver => {
                let mut next = self.clone();
                mutate!(wake_passed_over, next.wake(Sleepers::Others, plans) => false);
                vec![next.after_round(thread, self.word)]
            }
        }
    }

    /// A waiter has looked at the word. It takes the lock, leaves, or prepares to sleep.
    fn after_decision(
        &self,
        thread: usize,
        plan: &Plan,
        role: Role,
        seen: State,
        losses: u8,
    ) -> Vec<Self> {
        let again = |_| At::Looking(role);
        if seen.may_be_taken_by(role) {
            return vec![self.swap(thread, [seen, seen.taken_by(role)], At::Holding, again)];
        }
        let mut all = Vec::new();
        if plan.times_out {
            all.push(if mutate!(leave_by_swap, self.word == seen => true) {
                self.after_round(thread, self.word.left_by(role))
            } else {
                self.then(thread, self.word, At::Looking(role))
            });
        }
        let starving: &[bool] = match plan.starves {
            Starves::AfterLosses(most) if losses >= most => &[true],
            Starves::AtAnyMoment => &[false, true],
            Starves::Never | Starves::AfterLosses(_) => &[false],
        };
        for starving in starving {
            let (asleep, sleeping) = seen.asleep(role, *starving);
            let falling = At::FallingAsleep(sleeping, asleep);
            all.push(if asleep == seen {
                self.then(thread, self.word, falling)
            } else {
                self.swap(thread, [seen, asleep], falling, again)
            });
        }
        all
    }

    fn count(&self, is_so: impl Fn(At) -> bool) -> usize {
        self.threads.iter().filter(|thread| is_so(thread.at)).count()
    }

    fn is_over(&self) -> bool {
        self.threads.iter().all(|thread| thread.rounds == 0)
    }

    /// Asserts what is true at every moment.
    fn check(&self, plans: &[Plan; N]) {
        assert!(self.word.is_listed(), "{self:?}");
        let holders = self.count(|at| matches!(at, At::Holding | At::Unlocking(_)));
        assert_eq!(holders, usize::from(self.word.is_held()), "holders: {self:?}");
        let waiting = |at| match at {
            At::Looking(role)
            | At::Deciding(role, _)
            | At::FallingAsleep(role, _)
            | At::Asleep(role) => Some(role),
            _ => None,
        };
        let waiters = self.count(|at| waiting(at).is_some());
        assert_eq!(self.word.waiters() as usize, waiters, "queue: {self:?}");
        let bound = plans.iter().map(|plan| plan.bound).max().unwrap_or(u32::MAX);
        assert!(self.word.waiters() <= bound, "beyond its bound: {self:?}");
        let starved = self.count(|at| waiting(at) == Some(Role::Starved));
        assert_eq!(starved, usize::from(self.word.has_starved()), "starved: {self:?}");
        if self.is_over() {
            assert_eq!(self.word, State::FREE, "at the end: {self:?}");
        }
    }

    /// Asserts what is true of a thread that has just taken the lock. `self` is the moment before.
    fn check_taken(&self, thread: usize, plans: &[Plan; N]) {
        let at = self.threads[thread].at;
        if self.word.has_starved() {
            assert!(matches!(at, At::Deciding(Role::Starved, _)), "not the starved: {self:?}");
        }
        let barges = matches!(at, At::Thinking | At::Entering(_));
        if plans.iter().all(|plan| plan.unlocks_fairly) && !self.freed {
            assert!(!barges || self.asleep.is_empty(), "it came later than others: {self:?}");
        }
    }
}

/// Goes through all moments, and returns their number.
fn explore<const N: usize>(plans: [Plan; N]) -> usize {
    let first = Moment::first(&plans);
    let (mut numbers, mut all) = (HashMap::from([(first.clone(), 0)]), vec![first]);
    // For each moment, those that lead to it.
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut number = 0;
    while let Some(moment) = all.get(number).cloned() {
        moment.check(&plans);
        for thread in 0..N {
            for next in moment.after(thread, &plans) {
                let holds = |moment: &Moment<N>| moment.threads[thread].at == At::Holding;
                if holds(&next) && !holds(&moment) {
                    moment.check_taken(thread, &plans);
                }
                let known = *numbers.entry(next).or_insert_with_key(|next| {
                    all.push(next.clone());
                    before.push(Vec::new());
                    all.len() - 1
                });
                before[known].push(number);
            }
        }
        number += 1;
    }
    // From each moment, the end can be reached: nobody is left asleep.
    let mut ends: Vec<usize> = (0..all.len()).filter(|number| all[*number].is_over()).collect();
    let mut can_end = vec![false; all.len()];
    while let Some(number) = ends.pop() {
        if !std::mem::replace(&mut can_end[number], true) {
            ends.extend(&before[number]);
        }
    }
    if let Some(stuck) = can_end.iter().position(|can_end| !can_end) {
        panic!("nobody will wake the sleepers: {:?}", all[stuck]);
    }
    all.len()
}

fn print(cases: &[(&str, usize)]) {
    for (case, moments) in cases {
        println!("{case}: {moments} moments");
    }
}

/// Waiters that are already awake, while others unlock.
pub(crate) fn awake_against_unlock() {
    print(&[
        ("whoever comes first", explore([TWICE, TWICE, PLAN])),
        ("four threads", explore([PLAN; 4])),
        ("one unlocks fairly", explore([FAIR_TWICE, PLAN, TWICE])),
        ("four threads, of which two unlock fairly", explore([FAIR, FAIR, PLAN, PLAN])),
    ]);
}

/// Waiters that time out while the lock is handed over to them.
pub(crate) fn hand_over_against_time_out() {
    print(&[
        ("one times out", explore([LATE, TWICE, TWICE])),
        ("one times out, the others unlock fairly", explore([LATE, FAIR_TWICE, FAIR_TWICE])),
        ("one starves or times out", explore([LATE_OR_STARVING, TWICE, TWICE])),
        ("four threads, each its own way", explore([LATE, LATE_OR_STARVING, FAIR, PLAN])),
    ]);
}

/// Threads that take the lock without waiting, while it is handed over to another.
pub(crate) fn barging_against_hand_over() {
    print(&[
        ("all unlock fairly", explore([FAIR_TWICE, FAIR_TWICE, FAIR])),
        ("one starves", explore([STARVING, TWICE, TWICE])),
        ("all starve", explore([STARVING_TWICE, STARVING, STARVING])),
        ("one starves at any moment", explore([STARVING_AT_ANY_MOMENT, TWICE, PLAN])),
        ("one starves, all unlock fairly", explore([FAIR_STARVING, FAIR_TWICE, FAIR])),
        ("two of four starve", explore([STARVING, STARVING, FAIR, PLAN])),
    ]);
}

/// Waiters that time out, while others are refused because of the bound.
pub(crate) fn bound_against_time_out() {
    print(&[
        ("bounded", explore([BOUNDED; 4])),
        ("bounded, and one times out", explore([BOUNDED_LATE, BOUNDED, BOUNDED, BOUNDED])),
    ]);
}

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod tests {
    #[test]
    fn awake_against_unlock() {
        super::awake_against_unlock();
    }

    #[test]
    fn hand_over_against_time_out() {
        super::hand_over_against_time_out();
    }

    #[test]
    fn barging_against_hand_over() {
        super::barging_against_hand_over();
    }

    #[test]
    fn bound_against_time_out() {
        super::bound_against_time_out();
    }
}

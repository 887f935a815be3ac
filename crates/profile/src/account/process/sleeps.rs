//! The waits of threads that no look saw asleep.
//!
//! A woken thread waits on for the CPU, and looks as if it ran. If a look saw it asleep before, it
//! is known what it waits for; the shorter the sleep, the fewer looks did. The wait is then shared
//! out among the places where threads slept at other looks. A sleep is seen with a probability
//! proportional to its length, so that a place where threads slept at `k` looks, for a time `a` so
//! far on average, has had sleeps in proportion to `k/a` (as Horvitz and Thompson weight unequal
//! probabilities, *A Generalization of Sampling Without Replacement from a Finite Universe*, JASA
//! 47, 1952; the time so far is half the length of equal sleeps). Those that no look would have
//! seen count, each for as long as threads woken there wait for a CPU: a lock's are woken while the
//! thread that let go still runs, a timer's whenever it is time.

use std::collections::{HashMap, VecDeque};

/// Sleeps that are kept of a thread, and of all threads together.
const OF_THREAD: usize = 64;
const OF_ALL: usize = 512;

/// Sleeps of a thread that tell where it sleeps. With fewer, those of all threads do.
const TELLING: usize = 12;

/// Most threads whose sleeps are kept.
const MAX_THREADS: usize = 4096;

/// Places of which it is known for how long threads woken there wait for a CPU; and sleeps for
/// which each counts as all do.
const MAX_PLACES: usize = 1024;
const AS_ALL: f64 = 4.0;

/// Where a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// On one of the things to wait on.
    On(u32),
    /// Elsewhere, in this system call.
    In(u32),
}

/// A sleep in which a thread was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub(super) place: Place,
    /// When it began.
    pub(super) since: u64,
    /// Time for which it had lasted so far, in nanoseconds.
    pub(super) age: u64,
}

/// Sleeps that were seen, and looks at which their threads had been woken and waited for a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Woken {
    sleeps: f64,
    looks: f64,
}

impl Woken {
    fn looks_per_sleep(self) -> f64 {
        self.looks / self.sleeps
    }
}

#[derive(Debug, Default)]
pub(super) struct Sleeps {
    by_thread: HashMap<u32, VecDeque<Sleep>>,
    of_all: VecDeque<Sleep>,
    woken: HashMap<Place, Woken>,
    woken_of_all: Woken,
}

impl Sleeps {
    pub(super) fn note(&mut self, tid: u32, sleep: Sleep) {
        let last = self.last(tid);
        if last.is_none_or(|last| last.since != sleep.since) {
            self.count(sleep.place, |woken| woken.sleeps += 1.0);
        }
        let push = |sleeps: &mut VecDeque<Sleep>, most| {
            if sleeps.len() >= most {
                sleeps.pop_front();
            }
            sleeps.push_back(sleep);
        };
        push(&mut self.of_all, OF_ALL);
        if self.by_thread.len() < MAX_THREADS || self.by_thread.contains_key(&tid) {
            push(self.by_thread.entry(tid).or_default(), OF_THREAD);
        }
    }

    /// A look found a thread woken from a sleep that began then, and waiting for a CPU.
    pub(super) fn note_woken(&mut self, tid: u32, since: u64) {
        if let Some(last) = self.last(tid).filter(|last| last.since == since) {
            self.count(last.place, |woken| woken.looks += 1.0);
        }
    }

    fn last(&self, tid: u32) -> Option<Sleep> {
        self.by_thread.get(&tid).and_then(VecDeque::back).copied()
    }

    fn count(&mut self, place: Place, add: impl Fn(&mut Woken)) {
        if self.woken.len() < MAX_PLACES || self.woken.contains_key(&place) {
            add(self.woken.entry(place).or_default());
            add(&mut self.woken_of_all);
        }
    }

    /// Looks at a thread after each sleep here for as long as it waits for a CPU.
    fn looks_after(&self, place: Place) -> f64 {
        let of_all = self.woken_of_all.looks_per_sleep();
        let woken = self.woken.get(&place).copied().unwrap_or_default();
        if of_all > 0.0 {
            (woken.looks + AS_ALL * of_all) / (woken.sleeps + AS_ALL)
        } else {
            1.0
        }
    }

    /// Keeps those of these threads only.
    pub(super) fn retain(&mut self, alive: impl Fn(u32) -> bool) {
        self.by_thread.retain(|&tid, _| alive(tid));
    }

    /// Things that a thread may wait on that was not seen asleep, at so many looks a nanosecond,
    /// each with its probability.
    pub(super) fn unseen(&self, tid: u32, looks_per_ns: f64) -> Vec<(u32, f64)> {
        let own = self.by_thread.get(&tid).filter(|own| own.len() >= TELLING);
        let Some(sleeps) = own.or_else(|| Some(&self.of_all).filter(|all| all.len() >= TELLING))
        else {
            return Vec::new();
        };
        let mut places: Vec<(Place, f64, f64)> = Vec::new();
        for &Sleep { place, age, .. } in sleeps {
            let age = age.max(1) as f64;
            match places.iter_mut().find(|(other, ..)| *other == place) {
                Some((_, looks, ages)) => (*looks, *ages) = (*looks + 1.0, *ages + age),
                None => places.push((place, 1.0, age)),
            }
        }
        let weight = |(place, looks, ages): (Place, f64, f64)| {
            let age = ages / looks;
            let unseen = looks / age * (-2.0 * age * looks_per_ns).exp();
            (place, unseen * self.looks_after(place))
        };
        let weights: Vec<(Place, f64)> = places.into_iter().map(weight).collect();
        let all: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let share = |(place, weight)| match place {
            Place::On(thing) => Some((thing, weight / all)),
            Place::In(_) => None,
        };
        weights.into_iter().filter_map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Of the looks at a thread that wait for a CPU unseen, the part that each place had, and the
    /// part that was found. The thread waits nine times for 0.1 to 0.3 ms for one lock, then four
    /// times for 0.5 to 1 ms for another, looked at each 2 ms or so, and then for a CPU.
    fn shared_out(waits_for_cpu: [f64; 2]) -> [[f64; 2]; 2] {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut uniform = || random.random::<f64>();
        let (mut sleeps, mut unseen, mut found) = (Sleeps::default(), [0.0; 2], [0.0; 2]);
        let looks_per_ns = 0.5e-6;
        let mut clock = 0.0;
        for turn in 0..400_000 {
            let (place, shortest) = if turn % 13 < 9 { (0, 1e5) } else { (1, 5e5) };
            let length = shortest * (1.0 + uniform() * if place == 0 { 2.0 } else { 1.0 });
            let waits = waits_for_cpu[place as usize];
            let since = clock as u64;
            let mut look = -(1.0 - uniform()).ln() / looks_per_ns;
            let is_seen = look < length;
            while look < length + waits {
                if look < length {
                    let place = Place::On(place);
                    sleeps.note(1, Sleep { place, since, age: look as u64 });
                } else if is_seen {
                    sleeps.note_woken(1, since);
                } else if turn > 1_000 {
                    unseen[place as usize] += 1.0;
                    for (place, share) in sleeps.unseen(1, looks_per_ns) {
                        found[place as usize] += share;
                    }
                }
                look -= (1.0 - uniform()).ln() / looks_per_ns;
            }
            clock += length + waits;
        }
        let all: f64 = unseen.iter().sum();
        [unseen, found].map(|looks| looks.map(|looks| looks / all))
    }

    #[test]
    fn waits_after_unseen_sleeps_are_shared_out_as_long_as_they_last() {
        // Most of the sleeps that are seen are longer than those that are not.
        for waits_for_cpu in [[2e5, 2e5], [2e5, 6e5], [1e6, 1e5]] {
            let [unseen, found] = shared_out(waits_for_cpu);
            for place in 0..2 {
                let off = found[place] - unseen[place];
                assert!(off.abs() < 0.06, "{waits_for_cpu:?}: {unseen:?}, found {found:?}");
            }
        }
    }

    #[test]
    fn few_sleeps_tell_nothing() {
        let mut sleeps = Sleeps::default();
        let sleep = Sleep { place: Place::On(3), since: 100, age: 200 };
        (1..TELLING).for_each(|_| sleeps.note(1, sleep));
        assert_eq!(sleeps.unseen(1, 1e-6), []);
        sleeps.note(2, sleep);
        assert_eq!(sleeps.unseen(1, 1e-6), [(3, 1.0)]);
    }
}

//! The waits of threads that no look saw asleep.
//!
//! A woken thread waits on for the CPU, and looks as if it ran. If a look saw it asleep before, it
//! is known what it waits for; the shorter the sleep, the fewer looks did. The wait is then shared
//! out among the places where threads slept at other looks. A sleep is seen with a probability
//! proportional to its length, so that a place where threads slept at `k` looks, for a time `a` so
//! far on average, has had sleeps in proportion to `k/a` (as Horvitz and Thompson weight unequal
//! probabilities, *A Generalization of Sampling Without Replacement from a Finite Universe*, JASA
//! 47, 1952; the time so far is half the length of equal sleeps, and tells nothing of the time from
//! being woken to running). Those that no look would have seen count.

use std::collections::{HashMap, VecDeque};

/// Sleeps that are kept of a thread, and of all threads together.
const OF_THREAD: usize = 64;
const OF_ALL: usize = 512;

/// Sleeps of a thread that tell where it sleeps. With fewer, those of all threads do.
const TELLING: usize = 12;

/// Most threads whose sleeps are kept.
const MAX_THREADS: usize = 4096;

/// Where a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Time for which it had slept so far, in nanoseconds.
    pub(super) age: u64,
}

#[derive(Debug, Default)]
pub(super) struct Sleeps {
    by_thread: HashMap<u32, VecDeque<Sleep>>,
    of_all: VecDeque<Sleep>,
}

impl Sleeps {
    pub(super) fn note(&mut self, tid: u32, sleep: Sleep) {
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
        for &Sleep { place, age } in sleeps {
            let age = age.max(1) as f64;
            match places.iter_mut().find(|(other, ..)| *other == place) {
                Some((_, looks, ages)) => (*looks, *ages) = (*looks + 1.0, *ages + age),
                None => places.push((place, 1.0, age)),
            }
        }
        let weight = |looks: f64, ages: f64| {
            let age = ages / looks;
            looks / age * (-2.0 * age * looks_per_ns).exp()
        };
        let all: f64 = places.iter().map(|&(_, looks, ages)| weight(looks, ages)).sum();
        let share = |(place, looks, ages)| match place {
            Place::On(thing) => Some((thing, weight(looks, ages) / all)),
            Place::In(_) => None,
        };
        places.into_iter().filter_map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn unseen_sleeps_are_shared_out_as_often_as_they_occur() {
        // A thread waits nine times for 0.1 to 0.3 ms for one lock, then four times for 0.5 to 1 ms
        // for another, looked at each 2 ms or so. Most of the sleeps that are seen are longer.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut uniform = || random.random::<f64>();
        let (mut sleeps, mut unseen, mut found) = (Sleeps::default(), [0.0; 2], [0.0; 2]);
        let looks_per_ns = 0.5e-6;
        for turn in 0..200_000 {
            let (place, shortest) = if turn % 13 < 9 { (0, 1e5) } else { (1, 5e5) };
            let length = shortest * (1.0 + uniform() * if place == 0 { 2.0 } else { 1.0 });
            let until_seen = -(1.0 - uniform()).ln() / looks_per_ns;
            if until_seen < length {
                sleeps.note(1, Sleep { place: Place::On(place), age: until_seen as u64 });
            } else if turn > 1_000 {
                unseen[place as usize] += 1.0;
                for (place, share) in sleeps.unseen(1, looks_per_ns) {
                    found[place as usize] += share;
                }
            }
        }
        for place in 0..2 {
            let off: f64 = (found[place] - unseen[place]) / unseen.iter().sum::<f64>();
            assert!(off.abs() < 0.06, "place {place}: {off}");
        }
    }

    #[test]
    fn few_sleeps_tell_nothing() {
        let mut sleeps = Sleeps::default();
        let sleep = Sleep { place: Place::On(3), age: 200 };
        (1..TELLING).for_each(|_| sleeps.note(1, sleep));
        assert_eq!(sleeps.unseen(1, 1e-6), []);
        sleeps.note(2, sleep);
        assert_eq!(sleeps.unseen(1, 1e-6), [(3, 1.0)]);
    }
}

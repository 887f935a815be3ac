//! Attributes a wait for a CPU to the place of the sleep before it, if no sample saw that sleep.
//!
//! A woken thread that waits for a CPU looks as if it were running. If an earlier sample saw the
//! thread asleep, the object of its wait is known, but samples miss most short sleeps. A wait after
//! a missed sleep is divided among the places where samples saw the thread asleep. The part of a
//! place is proportional to the number of missed sleeps there, and to the mean wait for a CPU after
//! a sleep there, known from the sleeps that were seen. (A lock's waiters are woken while the
//! thread that released the lock still runs; a timer's waiters, at any time.)
//!
//! Samples come at random at a rate `r`. Of `n` sleeps, samples find `n r P(length > a)` at age
//! `a`, per unit of age. So the number of sleeps is the density of sampled ages at age 0, divided
//! by `r` (the renewal process's backward recurrence time; W. Feller, An Introduction to
//! Probability Theory and Its Applications II, XI.4). That density is extrapolated from two ranges
//! of young ages.

use std::collections::{HashMap, VecDeque};

use super::super::mean::{Mean, Stretch};

/// Maximum number of sleeps to keep: of one thread, and of all threads together.
const OF_THREAD: usize = 64;
const OF_ALL: usize = 512;

/// Minimum number of sleeps that show where a thread sleeps. For a thread with fewer sleeps, those
/// of all threads are used.
const TELLING: usize = 12;

const MAX_THREADS: usize = 4096;

const MAX_PLACES: usize = 1024;

/// Weight of the average over all places in the estimate for one place, as a number of sleeps.
const AS_ALL: f64 = 4.0;

/// Ages are counted in bins of half an octave, from 512 ns on.
const BINS_PER_OCTAVE: usize = 2;
const FIRST_OCTAVE: usize = 9;
const BINS: usize = 64;

/// Fraction of a place's samples, from the lowest ages on, that count as young; and minimum number
/// of young samples.
const YOUNG: f64 = 0.15;
const LEAST_YOUNG: f64 = 24.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SleepPlace {
    /// Index of a wait target.
    On(u32),
    /// Number of a system call.
    In(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SampledSleep {
    pub(super) place: SleepPlace,
    pub(super) since: u64,
    pub(super) age: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    place: SleepPlace,
    share: f64,
}

impl Share {
    pub(super) fn on(self) -> Option<(u32, f64)> {
        match self.place {
            SleepPlace::On(target) => Some((target, self.share)),
            SleepPlace::In(_) => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct WokenUnseen {
    /// Threads whose wait was divided among the places where they usually sleep.
    pub(super) shared_out: Tally,
    /// Threads that slept in an unknown place.
    pub(super) anywhere: Tally,
    /// Threads that probably yielded the CPU.
    pub(super) yielding: Tally,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) now: f64,
    pub(super) mean: Mean,
}

impl Tally {
    pub(super) fn end_sample(&mut self, times: u32) {
        if self.now > 0.0 {
            self.mean.add(std::mem::take(&mut self.now), times);
        }
    }
}

impl WokenUnseen {
    fn tallies(&mut self) -> [&mut Tally; 3] {
        [&mut self.shared_out, &mut self.anywhere, &mut self.yielding]
    }

    pub(super) fn end_sample(&mut self, times: u32) {
        self.tallies().into_iter().for_each(|tally| tally.end_sample(times));
    }

    pub(super) fn end_stretch(&mut self, stretch: &Stretch) {
        self.tallies().into_iter().for_each(|tally| tally.mean.end_stretch(stretch));
    }
}

#[derive(Clone, Debug)]
struct SleepsSeen {
    /// Number of samples of a thread asleep in this place, by the age of the sleep.
    samples: [u32; BINS],
    /// Sampling rate in samples per nanosecond, summed over the samples.
    rates: f64,
    sleeps: f64,
    woken: f64,
}

impl SleepsSeen {
    fn all_samples(&self) -> f64 {
        self.samples.iter().map(|&samples| f64::from(samples)).sum()
    }

    /// Density of the sampled ages at age 0, per nanosecond.
    fn density_at_0(&self) -> f64 {
        let young = (YOUNG * self.all_samples()).max(LEAST_YOUNG);
        let (mut below, mut last) = (0.0, 0);
        for (bin, &samples) in self.samples.iter().enumerate() {
            if samples > 0 {
                (below, last) = (below + f64::from(samples), bin);
            }
            if below >= young {
                break;
            }
        }
        let end = end_of(last);
        let first = below / end;
        let next: u32 = self.samples[last + 1..].iter().take(BINS_PER_OCTAVE).sum();
        let slope = first - f64::from(next) / end;
        first + slope.max(0.0) / 2.0
    }

    /// Ratio of sleeps that no sample saw to samples that saw a sleep.
    fn unseen_per_sample(&self) -> f64 {
        let samples = self.all_samples();
        let sleeps = self.density_at_0() * samples / self.rates;
        (sleeps - self.sleeps).max(0.0) / samples
    }
}

impl Default for SleepsSeen {
    fn default() -> SleepsSeen {
        SleepsSeen { samples: [0; BINS], rates: 0.0, sleeps: 0.0, woken: 0.0 }
    }
}

fn bin_of(age: u64) -> usize {
    let bins = (age.max(1) as f64).log2() * BINS_PER_OCTAVE as f64;
    (bins as usize).saturating_sub(FIRST_OCTAVE * BINS_PER_OCTAVE).min(BINS - 1)
}

fn end_of(bin: usize) -> f64 {
    ((FIRST_OCTAVE * BINS_PER_OCTAVE + bin + 1) as f64 / BINS_PER_OCTAVE as f64).exp2()
}

#[derive(Debug, Default)]
pub(super) struct Sleeps {
    by_thread: HashMap<u32, VecDeque<SampledSleep>>,
    of_all: VecDeque<SampledSleep>,
    seen: HashMap<SleepPlace, SleepsSeen>,
    sleeps: f64,
    woken: f64,
}

impl Sleeps {
    pub(super) fn note(&mut self, tid: u32, sleep: SampledSleep, samples_per_ns: f64) {
        let is_new = self.last(tid).is_none_or(|last| last.since != sleep.since);
        if self.seen.len() < MAX_PLACES || self.seen.contains_key(&sleep.place) {
            let seen = self.seen.entry(sleep.place).or_default();
            seen.samples[bin_of(sleep.age)] += 1;
            seen.rates += samples_per_ns;
            if is_new {
                seen.sleeps += 1.0;
                self.sleeps += 1.0;
            }
        }
        let push = |sleeps: &mut VecDeque<SampledSleep>, most| {
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

    pub(super) fn note_woken(&mut self, tid: u32, since: u64) {
        if let Some(last) = self.last(tid).filter(|last| last.since == since)
            && let Some(seen) = self.seen.get_mut(&last.place)
        {
            seen.woken += 1.0;
            self.woken += 1.0;
        }
    }

    fn last(&self, tid: u32) -> Option<SampledSleep> {
        self.by_thread.get(&tid).and_then(VecDeque::back).copied()
    }

    /// Estimated ratio of samples that see a wait for a CPU after an unseen sleep in this place to
    /// samples that see a sleep in this place.
    fn unseen_waits(&self, place: SleepPlace) -> f64 {
        let Some(seen) = self.seen.get(&place) else { return 0.0 };
        let of_all = if self.woken > 0.0 { self.woken / self.sleeps } else { 1.0 };
        let after_each = (seen.woken + AS_ALL * of_all) / (seen.sleeps + AS_ALL);
        seen.unseen_per_sample() * after_each
    }

    pub(super) fn retain(&mut self, alive: impl Fn(u32) -> bool) {
        self.by_thread.retain(|&tid, _| alive(tid));
    }

    pub(super) fn unseen(&self, tid: u32) -> Vec<Share> {
        let own = self.by_thread.get(&tid).filter(|own| own.len() >= TELLING);
        let Some(sleeps) = own.or_else(|| Some(&self.of_all).filter(|all| all.len() >= TELLING))
        else {
            return Vec::new();
        };
        let mut shares: Vec<Share> = Vec::new();
        for &SampledSleep { place, .. } in sleeps {
            match shares.iter_mut().find(|other| other.place == place) {
                Some(other) => other.share += 1.0,
                None => shares.push(Share { place, share: 1.0 }),
            }
        }
        for Share { place, share } in &mut shares {
            *share *= self.unseen_waits(*place);
        }
        shares.retain(|share| share.share > 0.0);
        let all: f64 = shares.iter().map(|share| share.share).sum();
        shares.iter_mut().for_each(|share| share.share /= all);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    type Length = fn(f64) -> f64;

    /// Simulates a thread that sleeps nine times for one lock, then four times for another, and
    /// waits for a CPU after each sleep. Samples come every 2 ms on average. Returns the true
    /// shares of the two locks in the waits after unseen sleeps, and the estimated shares.
    fn shared_out(lengths: [Length; 2], waits_for_cpu: [f64; 2]) -> [[f64; 2]; 2] {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut uniform = || random.random::<f64>();
        let (mut sleeps, mut unseen, mut found) = (Sleeps::default(), [0.0; 2], [0.0; 2]);
        let samples_per_ns = 0.5e-6;
        let mut clock = 0.0;
        for turn in 0..200_000 {
            let place = usize::from(turn % 13 >= 9);
            let length = lengths[place](uniform());
            let waits = waits_for_cpu[place];
            let since = clock as u64;
            let mut sample = -(1.0 - uniform()).ln() / samples_per_ns;
            let is_seen = sample < length;
            while sample < length + waits {
                if sample < length {
                    let place = SleepPlace::On(place as u32);
                    sleeps.note(
                        1,
                        SampledSleep { place, since, age: sample as u64 },
                        samples_per_ns,
                    );
                } else if is_seen {
                    sleeps.note_woken(1, since);
                } else if turn > 20_000 {
                    unseen[place] += 1.0;
                    for (place, share) in sleeps.unseen(1).into_iter().filter_map(Share::on) {
                        found[place as usize] += share;
                    }
                }
                sample -= (1.0 - uniform()).ln() / samples_per_ns;
            }
            clock += length + waits;
        }
        let all: f64 = unseen.iter().sum();
        [unseen, found].map(|samples| samples.map(|samples| samples / all))
    }

    #[test]
    fn waits_after_unseen_sleeps_are_shared_out() {
        let fixed: Length = |_| 8e5;
        let narrow: Length = |share| 1e5 * (1.0 + 2.0 * share);
        let wide: Length = |share| 2e6 * share;
        let exponential: Length = |share| -8e5 * (1.0 - share).ln();
        for lengths in [[narrow, fixed], [fixed, wide], [exponential, fixed], [wide, exponential]] {
            for waits_for_cpu in [[2e5, 2e5], [2e5, 6e5], [1e6, 1e5]] {
                let [unseen, found] = shared_out(lengths, waits_for_cpu);
                let off = found[0] - unseen[0];
                assert!(off.abs() < 0.06, "{waits_for_cpu:?}: {unseen:?}, found {found:?}");
                assert!((found[0] + found[1] - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn few_sleeps_tell_nothing() {
        let mut sleeps = Sleeps::default();
        let sleep = |since| SampledSleep { place: SleepPlace::On(3), since, age: 200 };
        (1..TELLING as u64).for_each(|since| sleeps.note(1, sleep(since), 1e-6));
        assert_eq!(sleeps.unseen(1), []);
        sleeps.note(2, sleep(100), 1e-6);
        assert_eq!(sleeps.unseen(1), [Share { place: SleepPlace::On(3), share: 1.0 }]);
        assert_eq!(Sleeps::default().unseen(1), []);
    }

    #[test]
    fn ages_have_bins() {
        for age in [0, 1, 511, 512, 700, 1_000_000, 1_000_000_000_000] {
            let bin = bin_of(age);
            assert!(end_of(bin) > age as f64, "{age}");
            assert!(bin == 0 || end_of(bin - 1) <= age as f64 * (1.0 + 1e-9), "{age}");
        }
        assert_eq!(bin_of(u64::MAX), BINS - 1);
    }
}

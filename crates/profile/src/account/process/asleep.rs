//! Threads asleep in system calls other than futex(2), by kind of time, system call and stack.

use std::collections::{BTreeMap, HashMap};

use crate::account::mean::{Mean, MeanEstimate, Stretch, Stretches};
use crate::account::time::Time;

const MAX_CALLS: usize = 128;

const MAX_STACKS: usize = 512;

/// Kind of time, and number of the system call in which it is spent; `None` for a page fault.
pub(crate) type Call = (Time, Option<u32>);

#[derive(Debug, Default)]
pub(crate) struct Asleep {
    calls: BTreeMap<Call, InCall>,
}

#[derive(Debug, Default)]
pub(crate) struct InCall {
    mean: Mean,
    now: f64,
    pub(crate) at: HashMap<u32, Sleeping>,
}

/// A sampled sleep counts as young if it began less than this many nanoseconds ago. If most sampled
/// sleeps are young, sleeps are short: of 50 samples that see a sleep of one second, 49 see it at a
/// higher age.
const YOUNG_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sleeping {
    pub(crate) samples: u64,
    /// Number of samples that show the age of the sleep (the time since it began), sum of the
    /// logarithms of these ages, and sum of the squares of these logarithms.
    aged: u64,
    ln_ages: f64,
    ln_squares: f64,
    /// Number of samples that saw a young sleep, and sum of the logarithms of its ages.
    young: u64,
    ln_young: f64,
}

impl Sleeping {
    pub(crate) fn seen(samples: u64) -> Sleeping {
        Sleeping { samples, ..Sleeping::default() }
    }

    pub(crate) fn and(self, other: Sleeping) -> Sleeping {
        Sleeping {
            samples: self.samples + other.samples,
            aged: self.aged + other.aged,
            ln_ages: self.ln_ages + other.ln_ages,
            ln_squares: self.ln_squares + other.ln_squares,
            young: self.young + other.young,
            ln_young: self.ln_young + other.ln_young,
        }
    }

    pub(crate) fn are_alike(self) -> bool {
        // For a sleep sampled at a random time, the variance of the logarithm of its age is 1 if
        // all sleeps have one length, and 1.6 if their lengths are exponentially distributed.
        const MOST_VARIED: f64 = 2.0;
        if self.aged == 0 {
            return true;
        }
        let mean = self.ln_ages / self.aged as f64;
        let variance = self.ln_squares / self.aged as f64 - mean * mean;
        2 * self.aged >= self.samples && variance <= MOST_VARIED
    }

    pub(crate) fn is_aged(self) -> bool {
        self.aged > 0
    }

    /// Typical length of a sleep, if all sleeps are about equally long or most sampled sleeps are
    /// young. Returns `None` otherwise, or if too few ages are known. A sleep is sampled at a
    /// uniformly distributed age, so the mean logarithm of the ages is 1 below the logarithm of the
    /// length.
    pub(crate) fn length_ns(self) -> Option<f64> {
        const FEWEST: u64 = 5;
        let (samples, sum) = match self.are_alike() {
            true => (self.aged, self.ln_ages),
            false if 2 * self.young >= self.samples => (self.young, self.ln_young),
            false => return None,
        };
        (samples >= FEWEST).then(|| (sum / samples as f64 + 1.0).exp())
    }

    fn aged(mut self, age_ns: Option<u64>) -> Sleeping {
        self.samples += 1;
        if let Some(age_ns) = age_ns {
            let ln = (age_ns.max(1) as f64).ln();
            self.aged += 1;
            self.ln_ages += ln;
            self.ln_squares += ln * ln;
            if age_ns < YOUNG_NS {
                self.young += 1;
                self.ln_young += ln;
            }
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn of_length(length_ns: u64, samples: u64) -> Sleeping {
        let age = |sample| Some(length_ns * (2 * sample + 1) / (2 * samples));
        (0..samples).fold(Sleeping::default(), |all, sample| all.aged(age(sample)))
    }
}

impl Asleep {
    pub(super) fn add(&mut self, call: Call, threads: f64) {
        if let Some(of) = self.call(call) {
            of.now += threads;
        }
    }

    pub(super) fn saw_stack(&mut self, call: Call, stack: u32, age_ns: Option<u64>) {
        let Some(of) = self.call(call) else { return };
        if of.at.len() >= MAX_STACKS && !of.at.contains_key(&stack) {
            return;
        }
        let sleeping = of.at.entry(stack).or_default();
        *sleeping = sleeping.aged(age_ns);
    }

    pub(super) fn has(&self, call: Call) -> bool {
        self.calls.contains_key(&call)
    }

    pub(super) fn at_stack(&self, call: u32, stack: u32) -> impl Iterator<Item = Time> {
        let here = move |&(&(_, number), of): &(&Call, &InCall)| {
            number == Some(call) && of.at.contains_key(&stack)
        };
        self.calls.iter().filter(here).map(|(&(time, _), _)| time)
    }

    fn call(&mut self, call: Call) -> Option<&mut InCall> {
        if self.calls.len() >= MAX_CALLS && !self.calls.contains_key(&call) {
            return None;
        }
        Some(self.calls.entry(call).or_default())
    }

    pub(super) fn end_sample(&mut self, times: u32) {
        for of in self.calls.values_mut().filter(|of| of.now > 0.0) {
            of.mean.add(std::mem::take(&mut of.now), times);
        }
    }

    pub(super) fn end_stretch(&mut self, stretch: &Stretch) {
        self.calls.values_mut().for_each(|of| of.mean.end_stretch(stretch));
    }

    pub(super) fn all<'a>(
        &'a self,
        over: &'a Stretches,
    ) -> impl Iterator<Item = (Call, MeanEstimate, &'a InCall)> {
        let with_mean = |(&call, of)| Some((call, InCall::mean(of, over)?, of));
        self.calls.iter().filter_map(with_mean)
    }
}

impl InCall {
    fn mean(&self, over: &Stretches) -> Option<MeanEstimate> {
        self.mean.estimate(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::SampleCount;

    #[test]
    fn a_length_is_told_of_sleeps_that_are_alike_or_mostly_short() {
        const MS: u64 = 1_000_000;
        let length = |of: Sleeping| of.length_ns().map(|ns| (ns / MS as f64).round());
        let [short, longer, long] = [(3, 200), (6, 100), (7_000, 60)]
            .map(|(ms, samples)| Sleeping::of_length(ms * MS, samples));
        assert_eq!([short, longer].map(length), [Some(3.0), Some(6.0)]);
        assert_eq!(length(short.and(longer)), Some(4.0));
        assert_eq!(length(short.and(long)), Some(3.0));
        assert_eq!(length(short.and(Sleeping::of_length(7_000 * MS, 300))), None);
        // The ages of sleeps that began before the profile are unknown.
        assert_eq!(length(short.and(Sleeping::seen(300))), None);
        assert!(Sleeping::seen(300).are_alike() && !short.and(long).are_alike());
    }

    #[test]
    fn calls_and_stacks_are_counted_within_bounds() {
        let mut asleep = Asleep::default();
        let (mut stretches, mut samples) = (Stretches::default(), SampleCount::default());
        let nanosleep = (Time::Sleep, Some(35));
        for sample in 0..200 {
            asleep.add(nanosleep, 2.0);
            asleep.saw_stack(nanosleep, sample % 2, Some(5_000 * u64::from(sample) + 2_500));
            asleep.end_sample(1);
            samples.add(1);
        }
        asleep.end_stretch(&stretches.end_stretch(1.0, &samples).unwrap());
        for call in 0..1_000 {
            asleep.add((Time::Other, Some(call)), 1.0);
            asleep.saw_stack(nanosleep, 10 + call, None);
        }
        let all: Vec<_> = asleep.all(&stretches).collect();
        assert_eq!(all.len(), MAX_CALLS);
        let (_, mean, of) = all.iter().find(|(call, ..)| *call == nanosleep).unwrap();
        assert_eq!((mean.mean, of.at.len()), (2.0, MAX_STACKS));
        let length_ns = of.at[&0].and(of.at[&1]).length_ns().unwrap();
        assert!((length_ns / 1e6 - 1.0).abs() < 0.05, "{length_ns}");
        assert_eq!((of.at[&10].samples, of.at[&10].length_ns()), (1, None));
    }
}

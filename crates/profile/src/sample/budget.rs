//! Rate of samples, and amount that each sample reads.
//!
//! A sample costs one wake-up, and some time for each word and thread that it reads. With a fixed
//! budget, reading fewer threads per sample allows more samples. If a sample reads `m` of `N`
//! threads, each of which waits with probability `p`, the variance of the mean queue over a run is
//! about `(own + N²p(1 − p)/m)/rate`. Here `own`, the variance of the queue itself, is of the order
//! of `Np(1 − p)`. At a given cost `rate·(wake + m·thread)`, that variance is smallest for `m =
//! √(N·wake/thread)`. Shares of time held come from words alone, so they gain from more samples
//! with fewer threads. With 0.6 times as many threads, the queue's error is hardly larger.

/// CPU time that the profiler may use, and has used so far.
#[derive(Clone, Debug)]
pub struct Budget {
    share: f64,
    asked_per_s: f64,
    /// Measured costs, in nanoseconds of CPU time: of a wake-up, a word, and a thread.
    wake_ns: f64,
    word_ns: f64,
    thread_ns: f64,
    once_ns: f64,
    /// CPU time that everything but samples has used since the start, and time elapsed since then.
    other_ns: f64,
    wall_ns: f64,
    least_threads: u32,
    /// CPU time used beyond the allowed amount; negative if some is left.
    overdrawn_ns: f64,
}

/// Rate of samples, and the number of words and threads that each reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Number of samples per second.
    pub rate_per_s: f64,
    /// Maximum number of lock words to read per sample.
    pub words: u32,
    /// Maximum number of threads to read per sample.
    pub threads: u32,
}

/// Cost of a stretch of samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Length of the stretch.
    pub wall_ns: u64,
    /// Number of samples.
    pub samples: u64,
    /// Words that samples read.
    pub words: Readings,
    /// Threads that samples read.
    pub threads: Readings,
    /// CPU time of the sampling thread.
    pub sampling_ns: u64,
    /// Part of `sampling_ns` spent on listing threads.
    pub listing_ns: u64,
    /// CPU time of the whole process.
    pub process_ns: u64,
}

/// Number of things that samples read, and the cost of reading some of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readings {
    /// Number read in all samples.
    pub all: u64,
    /// Number read in the samples that were timed, and the CPU time spent on reading them.
    pub timed: (u64, u64),
}

impl Readings {
    /// Adds the readings of a sample; `ns` is their CPU time if the sample was timed.
    pub fn add(&mut self, number: u64, ns: Option<u64>) {
        self.all += number;
        if let Some(ns) = ns {
            self.timed.0 += number;
            self.timed.1 += ns;
        }
    }
}

/// Minimum rate of samples per second, unless a lower rate was requested. At a lower rate, shares
/// over ten seconds are too coarse to be useful.
const MIN_PER_S: f64 = 20.0;

/// Number of threads per sample, as a fraction of the number that minimises the queue's variance.
const FEWER: f64 = 0.6;

/// Time in nanoseconds over which one-off costs are spread.
const FIRST_NS: f64 = 10e9;

/// Cost of the final report in nanoseconds, which is set aside beforehand.
const REPORT_NS: f64 = 5e6;

/// Time in nanoseconds within which use beyond the budget is made up for. The start always takes
/// more than its part, and a profile often lasts ten seconds: samples must not be few for half of
/// it.
const REPAID_NS: f64 = 6e9;

/// Minimum time in nanoseconds over which occasional costs are spread.
const OCCASIONAL_NS: f64 = 3e9;

/// Minimum cost of reading threads, as a share of the cost of waking up. A sample that reads fewer
/// wastes its wake-up.
const LEAST_FOR_THREADS: f64 = 0.25;

/// Maximum time in nanoseconds for which unused budget is saved up. A program that was idle for
/// long is no reason to exceed the budget when it resumes work.
const LEFT_OVER_NS: f64 = 0.3e9;

/// Minimum share of the budget for samples, however much everything else costs.
const LEAST_FOR_SAMPLES: f64 = 0.1;

/// Weight of the latest stretch of samples in the moving averages of the costs.
const LATEST: f64 = 0.3;

impl Budget {
    /// Creates a budget of `share` of one CPU for at most `asked_per_s` samples per second.
    ///
    /// The initial costs are high guesses, which the first stretches of samples correct.
    pub fn new(share: f64, asked_per_s: f64) -> Self {
        Budget {
            share,
            asked_per_s,
            wake_ns: 60_000.0,
            word_ns: 2_000.0,
            thread_ns: 4_000.0,
            once_ns: REPORT_NS,
            other_ns: 0.0,
            wall_ns: 0.0,
            overdrawn_ns: 0.0,
            least_threads: 1,
        }
    }

    /// Sets the minimum number of threads to read in each sample, at the expense of the rate.
    pub fn read_at_least(&mut self, threads: u32) {
        self.least_threads = threads;
    }

    /// Share of one CPU that may be used.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Adds the cost of a stretch.
    pub fn spent(&mut self, spent: &Spent) {
        let learn = |cost: &mut f64, total: f64, count: u64| {
            if count > 0 {
                *cost += LATEST * (total / count as f64 - *cost);
            }
        };
        let sampling = spent.sampling_ns.saturating_sub(spent.listing_ns) as f64;
        let learn_each = |cost: &mut f64, read: &Readings| {
            let (number, ns) = read.timed;
            learn(cost, ns as f64, number);
            let each = if number > 0 { ns as f64 / number as f64 } else { *cost };
            each * read.all as f64
        };
        let words_ns = learn_each(&mut self.word_ns, &spent.words);
        let threads_ns = learn_each(&mut self.thread_ns, &spent.threads);
        // Everything else that samples do counts as part of the wake-up: stacks, second readings.
        learn(&mut self.wake_ns, (sampling - words_ns - threads_ns).max(0.0), spent.samples);
        let other = (spent.process_ns as f64 - sampling).max(0.0);
        let (wall, mut used) = (spent.wall_ns as f64, spent.process_ns as f64);
        if self.wall_ns == 0.0 {
            self.once_ns += other;
            used -= other;
        } else {
            self.other_ns += other;
        }
        let paying = (FIRST_NS - self.wall_ns).clamp(0.0, wall);
        self.wall_ns += wall;
        let allowed = self.share * wall - self.once_ns * paying / FIRST_NS;
        let most_left = self.share * LEFT_OVER_NS;
        self.overdrawn_ns = (self.overdrawn_ns + used - allowed).max(-most_left);
    }

    /// Effort that the budget allows, with `words` known lock words and `threads` living threads.
    pub fn effort(&self, words: u32, threads: u32) -> Effort {
        // Folding, writing and drawing are part of the budget, but cannot exhaust it: their costs
        // fall with the number of samples.
        let once = if self.wall_ns < FIRST_NS { self.once_ns / FIRST_NS } else { 0.0 };
        let other = self.other_ns / self.wall_ns.max(OCCASIONAL_NS);
        let overdrawn = self.overdrawn_ns / REPAID_NS;
        let left = self.share - once - other - overdrawn;
        let samples = left.clamp(LEAST_FOR_SAMPLES * self.share, self.share) * 1e9;
        let best = FEWER * (f64::from(threads) * self.wake_ns / self.thread_ns).sqrt();
        let best = best.ceil().max(f64::from(self.least_threads));
        let least_threads = best.clamp(1.0, f64::from(threads.max(1)));
        // Words come first, up to the cost of one wake-up, because held shares are computed from
        // them.
        let most_words = (self.wake_ns / self.word_ns).max(16.0).min(f64::from(words));
        let base = self.wake_ns + most_words * self.word_ns;
        let rate = (samples / (base + least_threads * self.thread_ns))
            .max(MIN_PER_S)
            .min(self.asked_per_s);
        // At the minimum rate, even these words may cost too much. They get half of what remains
        // after the wake-up.
        let room = samples / rate - self.wake_ns;
        let most_words = most_words.min((room / 2.0 / self.word_ns).max(1.0));
        let room = room - most_words * self.word_ns;
        let worthwhile = room.max(LEAST_FOR_THREADS * self.wake_ns) / self.thread_ns;
        let least_threads = least_threads.min(worthwhile.max(1.0));
        // The rest of the budget goes to more words first, then to more threads.
        let room = room - least_threads * self.thread_ns;
        let more_words = (room / self.word_ns).clamp(0.0, f64::from(words) - most_words);
        let room = room - more_words * self.word_ns;
        let more_threads =
            (room / self.thread_ns).clamp(0.0, f64::from(threads.max(1)) - least_threads);
        Effort {
            rate_per_s: rate,
            words: (most_words + more_words) as u32,
            threads: (least_threads + more_threads) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(effort: Effort, wake: f64, word: f64, thread: f64) -> f64 {
        let sample = wake + f64::from(effort.words) * word + f64::from(effort.threads) * thread;
        effort.rate_per_s * sample / 1e9
    }

    fn trained(share: f64, rate: f64, costs: [u64; 3]) -> Budget {
        let [wake, word, thread] = costs;
        let mut budget = Budget::new(share, rate);
        for _ in 0..50 {
            budget.spent(&Spent {
                wall_ns: 1_000_000_000,
                samples: 100,
                words: Readings { all: 1_000, timed: (250, 250 * word) },
                threads: Readings { all: 500, timed: (125, 125 * thread) },
                sampling_ns: 100 * wake + 1_000 * word + 500 * thread,
                listing_ns: 0,
                process_ns: 100 * wake + 1_000 * word + 500 * thread + 500_000,
            });
        }
        budget
    }

    #[test]
    fn a_few_threads_are_all_read_at_the_rate_asked_for() {
        let effort = trained(0.1, 1_000.0, [8_000, 200, 1_500]).effort(5, 8);
        assert_eq!(effort, Effort { rate_per_s: 1_000.0, words: 5, threads: 8 });
    }

    #[test]
    fn the_budget_is_kept() {
        for (share, words, threads) in [(0.01, 3, 16), (0.01, 10_000, 1_000), (0.1, 100, 64)] {
            let costs = [8_000, 200, 1_500];
            let effort = trained(share, 1_000.0, costs).effort(words, threads);
            let used = cost(effort, 8_000.0, 200.0, 1_500.0);
            assert!(used <= share, "{effort:?} takes {used} of {share}");
            assert!(used >= 0.5 * share || effort.rate_per_s == 1_000.0, "{effort:?}: {used}");
            assert!(effort.words >= 1 && effort.threads >= 1);
        }
    }

    #[test]
    fn threads_that_are_to_be_read_are_paid_for_by_fewer_samples() {
        let mut budget = trained(0.01, 1_000.0, [8_000, 200, 12_000]);
        let usual = budget.effort(3, 9);
        budget.read_at_least(9);
        let effort = budget.effort(3, 9);
        assert!(usual.threads < 9 && effort.threads == 9, "{usual:?} {effort:?}");
        assert!(effort.rate_per_s < usual.rate_per_s);
        assert!(cost(effort, 8_000.0, 200.0, 12_000.0) <= 0.010_1);
    }

    #[test]
    fn the_budget_is_kept_at_the_lowest_rate() {
        let costs = [60_000, 500, 8_000];
        let effort = trained(0.01, 1_000.0, costs).effort(5_000, 10_000);
        assert_eq!(effort.rate_per_s, MIN_PER_S);
        let used = cost(effort, 60_000.0, 500.0, 8_000.0);
        assert!((0.001..=0.01).contains(&used), "{effort:?} takes {used}");
    }

    #[test]
    fn what_was_overdrawn_is_saved_again() {
        let usual = trained(0.01, 1_000.0, [8_000, 200, 1_500]);
        let mut overdrawn = usual.clone();
        let stretch = Spent { wall_ns: 1_000_000_000, process_ns: 30_000_000, ..Spent::default() };
        overdrawn.spent(&stretch);
        let rate = |budget: &Budget| budget.effort(5, 8).rate_per_s;
        assert!(rate(&overdrawn) < 0.8 * rate(&usual));
        for _ in 0..4 {
            overdrawn.spent(&Spent { process_ns: 5_000_000, ..stretch });
        }
        assert!(overdrawn.overdrawn_ns < 1.0);
    }

    #[test]
    fn the_start_is_paid_for_in_equal_parts() {
        let rates = |start_ns: u64| {
            let mut budget = Budget::new(0.01, 10_000.0);
            let once = start_ns as f64 + REPORT_NS;
            let mut start_ns = start_ns;
            [(0.05e9, 0.05e9), (8e9, 8e9), (4e9, FIRST_NS - 8.05e9)].map(|(wall, paying)| {
                let sampling = (0.01 * wall - once * paying / FIRST_NS) as u64;
                budget.spent(&Spent {
                    wall_ns: wall as u64,
                    sampling_ns: sampling,
                    process_ns: sampling + std::mem::take(&mut start_ns),
                    ..Spent::default()
                });
                budget.effort(1, 1).rate_per_s
            })
        };
        let equal = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-3;
        let (long, short) = (rates(35_000_000), rates(0));
        assert!((0.55..0.7).contains(&(long[0] / short[0])), "{long:?} {short:?}");
        assert!(equal(long[0], long[1]), "{long:?}");
        assert!(equal(long[2], short[2]) && short[2] > short[1], "{long:?} {short:?}");
    }

    #[test]
    fn with_nothing_to_read_samples_are_still_taken() {
        let effort = Budget::new(0.01, 1_000.0).effort(0, 0);
        assert_eq!(effort.words, 0);
        assert!(effort.rate_per_s >= MIN_PER_S);
    }
}

//! How much to do at each look, and how often to look.
//!
//! A look costs the wake-up, the words and the threads that it reads. Of a fixed budget, fewer
//! threads at each look leave room for more looks. The queue's variance over a run is about
//! `(own + N²p(1 − p)/m)/rate` with `m` of `N` threads read and `own` that of the queue itself,
//! which is of the order of `Np(1 − p)`; at a cost of `rate·(wake + m·thread)` its minimum lies at
//! `m = √(N·wake/thread)`. Held shares, which come from words alone, want more looks and fewer
//! threads; at 0.6 times as many threads the queue's error is hardly larger.

/// What one CPU may be used for, and what was used so far.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Share of one CPU.
    share: f64,
    /// Looks a second that were asked for.
    asked_per_s: f64,
    /// Costs as measured so far, in nanoseconds of CPU.
    wake_ns: f64,
    word_ns: f64,
    thread_ns: f64,
    /// CPU used by everything but looks so far, and the time that it took.
    other_ns: f64,
    wall_ns: f64,
    /// CPU used so far, beyond what was allowed until then.
    overdrawn_ns: f64,
}

/// How often to look, and at how many words and threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Looks a second.
    pub rate_per_s: f64,
    /// Most lock words at a look.
    pub words: u32,
    /// Most threads at a look.
    pub threads: u32,
}

/// What a stretch of looks took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Length of the stretch.
    pub wall_ns: u64,
    /// Looks.
    pub looks: u64,
    /// Words read at all of them.
    pub words: u64,
    /// Threads read at all of them.
    pub threads: u64,
    /// CPU time spent reading words.
    pub words_ns: u64,
    /// CPU time spent reading threads.
    pub threads_ns: u64,
    /// CPU time of the thread that looks.
    pub looking_ns: u64,
    /// Of that, time spent listing threads.
    pub listing_ns: u64,
    /// CPU time of the whole process.
    pub process_ns: u64,
}

/// Looks a second below which a share of ten seconds is too coarse to be worth having; asked for
/// less, the rate stays as asked.
const MIN_PER_S: f64 = 20.0;

/// Threads at a look, as a share of the number that suits the queue best.
const FEWER: f64 = 0.6;

/// What is done once at the start counts as if it were spread over this time at least.
const FIRST_NS: f64 = 10e9;

/// The report at the end takes about as much, which is saved beforehand.
const REPORT_NS: f64 = 5e6;

/// CPU used beyond the budget is saved again within this time.
const REPAID_NS: f64 = 3e9;

/// Share of the budget that looks have whatever the rest takes.
const LEAST_LOOKS: f64 = 0.25;

/// Weight of the latest stretch in the costs: the first stretches count more.
const LATEST: f64 = 0.3;

impl Budget {
    /// A budget of `share` of one CPU for at most `asked_per_s` looks a second.
    ///
    /// The first costs are guesses, on the high side, that the first stretch replaces.
    pub fn new(share: f64, asked_per_s: f64) -> Self {
        Budget {
            share,
            asked_per_s,
            wake_ns: 30_000.0,
            word_ns: 2_000.0,
            thread_ns: 4_000.0,
            other_ns: REPORT_NS,
            wall_ns: 0.0,
            overdrawn_ns: REPORT_NS,
        }
    }

    /// Share of one CPU.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Takes account of what a stretch took.
    pub fn spent(&mut self, spent: &Spent) {
        let learn = |cost: &mut f64, total: u64, count: u64| {
            if count > 0 {
                *cost += LATEST * (total as f64 / count as f64 - *cost);
            }
        };
        learn(&mut self.word_ns, spent.words_ns, spent.words);
        learn(&mut self.thread_ns, spent.threads_ns, spent.threads);
        let reading = spent.words_ns + spent.threads_ns;
        let looking = spent.looking_ns.saturating_sub(spent.listing_ns);
        learn(&mut self.wake_ns, looking.saturating_sub(reading), spent.looks);
        self.other_ns += spent.process_ns.saturating_sub(looking) as f64;
        self.wall_ns += spent.wall_ns as f64;
        // What was left over is no reason to use more later on.
        let allowed = self.share * spent.wall_ns as f64;
        self.overdrawn_ns = (self.overdrawn_ns + spent.process_ns as f64 - allowed).max(0.0);
    }

    /// What the budget allows with `words` lock words known and `threads` threads alive.
    pub fn effort(&self, words: u32, threads: u32) -> Effort {
        // What folds, writes and draws is part of the budget, but cannot use it all up: it shrinks
        // with the looks that feed it.
        let other = self.other_ns / self.wall_ns.max(FIRST_NS);
        let overdrawn = self.overdrawn_ns / REPAID_NS;
        let looks = (self.share - other - overdrawn).max(LEAST_LOOKS * self.share) * 1e9;
        let best = FEWER * (f64::from(threads) * self.wake_ns / self.thread_ns).sqrt();
        let best = best.ceil();
        let least_threads = best.clamp(1.0, f64::from(threads.max(1)));
        // Words first at the cost of one wake-up at most: they are what the shares come from.
        let most_words = (self.wake_ns / self.word_ns).max(16.0).min(f64::from(words));
        let base = self.wake_ns + most_words * self.word_ns;
        let rate =
            (looks / (base + least_threads * self.thread_ns)).max(MIN_PER_S).min(self.asked_per_s);
        // At the lowest rate, even these may be too many: half of what there is goes to words.
        let room = looks / rate - self.wake_ns;
        let most_words = most_words.min((room / 2.0 / self.word_ns).max(1.0));
        let room = room - most_words * self.word_ns;
        let least_threads = least_threads.min((room / self.thread_ns).max(1.0));
        // What is left at that rate goes to more words, then to more threads.
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

    /// CPU that an effort takes at given costs, as a share of one CPU.
    fn cost(effort: Effort, wake: f64, word: f64, thread: f64) -> f64 {
        let look = wake + f64::from(effort.words) * word + f64::from(effort.threads) * thread;
        effort.rate_per_s * look / 1e9
    }

    fn trained(share: f64, rate: f64, costs: [u64; 3]) -> Budget {
        let [wake, word, thread] = costs;
        let mut budget = Budget::new(share, rate);
        for _ in 0..50 {
            budget.spent(&Spent {
                wall_ns: 1_000_000_000,
                looks: 100,
                words: 1_000,
                threads: 500,
                words_ns: 1_000 * word,
                threads_ns: 500 * thread,
                looking_ns: 100 * wake + 1_000 * word + 500 * thread,
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
    fn the_budget_is_kept_at_the_lowest_rate() {
        let costs = [60_000, 500, 8_000];
        let effort = trained(0.01, 1_000.0, costs).effort(5_000, 10_000);
        assert_eq!(effort.rate_per_s, MIN_PER_S);
        let used = cost(effort, 60_000.0, 500.0, 8_000.0);
        assert!((0.002..=0.01).contains(&used), "{effort:?} takes {used}");
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
        assert!(overdrawn.overdrawn_ns.abs() < 1.0);
    }

    #[test]
    fn nothing_to_read_is_looked_at_all_the_same() {
        let effort = Budget::new(0.01, 1_000.0).effort(0, 0);
        assert_eq!(effort.words, 0);
        assert!(effort.rate_per_s >= MIN_PER_S);
    }
}

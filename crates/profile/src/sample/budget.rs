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
    /// CPU that the start took, and the report will take.
    once_ns: f64,
    /// CPU used since the start by everything but looks, and the time that has passed.
    other_ns: f64,
    wall_ns: f64,
    /// Threads that are worth to be read at each look, whatever they cost.
    least_threads: u32,
    /// CPU used so far, beyond what was allowed until then; negative if some is left.
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
    /// Looks whose parts were timed.
    pub timed: u64,
    /// Words read at all of them.
    pub words: u64,
    /// Threads read at all of them.
    pub threads: u64,
    /// CPU time spent reading words at those that were timed.
    pub words_ns: u64,
    /// CPU time spent reading threads at those that were timed.
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

/// What is done once counts as if it were spread over this time.
const FIRST_NS: f64 = 10e9;

/// The report at the end takes about as much, which is saved beforehand.
const REPORT_NS: f64 = 5e6;

/// CPU used beyond the budget is saved again within this time. What is done now and then counts as
/// if it were spread over as much at least.
const REPAID_NS: f64 = 3e9;

/// Longest time whose budget may be left for later: a program that did nothing for long is no
/// reason to use more than the budget when it goes on.
const LEFT_OVER_NS: f64 = 0.3e9;

/// Share of the budget that looks have whatever the rest takes.
const LEAST_LOOKS: f64 = 0.1;

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
            once_ns: REPORT_NS,
            other_ns: 0.0,
            wall_ns: 0.0,
            overdrawn_ns: 0.0,
            least_threads: 1,
        }
    }

    /// Has so many threads read at each look, at the cost of fewer looks.
    pub fn read_at_least(&mut self, threads: u32) {
        self.least_threads = threads;
    }

    /// Share of one CPU.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Takes account of what a stretch took.
    pub fn spent(&mut self, spent: &Spent) {
        let learn = |cost: &mut f64, total: f64, count: u64| {
            if count > 0 {
                *cost += LATEST * (total / count as f64 - *cost);
            }
        };
        let looking = spent.looking_ns.saturating_sub(spent.listing_ns) as f64;
        if spent.timed > 0 {
            let all = spent.looks as f64 / spent.timed as f64;
            let (words_ns, threads_ns) =
                (all * spent.words_ns as f64, all * spent.threads_ns as f64);
            learn(&mut self.word_ns, words_ns, spent.words);
            learn(&mut self.thread_ns, threads_ns, spent.threads);
            learn(&mut self.wake_ns, (looking - words_ns - threads_ns).max(0.0), spent.looks);
        }
        let other = (spent.process_ns as f64 - looking).max(0.0);
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

    /// What the budget allows with `words` lock words known and `threads` threads alive.
    pub fn effort(&self, words: u32, threads: u32) -> Effort {
        // What folds, writes and draws is part of the budget, but cannot use it all up: it shrinks
        // with the looks that feed it.
        let once = if self.wall_ns < FIRST_NS { self.once_ns / FIRST_NS } else { 0.0 };
        let other = self.other_ns / self.wall_ns.max(REPAID_NS);
        let overdrawn = self.overdrawn_ns / REPAID_NS;
        let left = self.share - once - other - overdrawn;
        let looks = left.clamp(LEAST_LOOKS * self.share, self.share) * 1e9;
        let best = FEWER * (f64::from(threads) * self.wake_ns / self.thread_ns).sqrt();
        let best = best.ceil().max(f64::from(self.least_threads));
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
                timed: 25,
                words: 1_000,
                threads: 500,
                words_ns: 250 * word,
                threads_ns: 125 * thread,
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
    fn threads_that_are_to_be_read_are_paid_for_by_fewer_looks() {
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
            // In stretches that use what is allowed.
            [(0.05e9, 0.05e9), (8e9, 8e9), (4e9, FIRST_NS - 8.05e9)].map(|(wall, paying)| {
                let looking = (0.01 * wall - once * paying / FIRST_NS) as u64;
                budget.spent(&Spent {
                    wall_ns: wall as u64,
                    looking_ns: looking,
                    process_ns: looking + std::mem::take(&mut start_ns),
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
    fn nothing_to_read_is_looked_at_all_the_same() {
        let effort = Budget::new(0.01, 1_000.0).effort(0, 0);
        assert_eq!(effort.words, 0);
        assert!(effort.rate_per_s >= MIN_PER_S);
    }
}

//! Judges locks: turns counted samples into verdicts, causes, advice and predictions.
//!
//! All functions are pure: nothing here reads a clock, a file or another process.
//! [`Judgement::new`] judges all samples of a lock, and leaves out figures that the samples do not
//! support. Other crates take the samples, and put the verdicts into words.
//!
//! | module | contents |
//! |---|---|
//! | [`sample`] | one sample of a lock |
//! | [`samples`] | held share, queue and hand-offs of a lock, with the bias of late samples |
//! | [`unseen`] | waits that no sample saw |
//! | [`bursts`] | lengths of holds |
//! | [`verdict`] | comfortable, crowded or saturated; efficiency |
//! | [`chain`] | chains of locks: the holder of one waits for the next |
//! | [`mod@gain`] | throughput that the program would gain without a lock's queue |
//! | [`prediction`] | speed-ups with other numbers of threads; effects of changes |
//! | [`effect`] | effects of changes on the whole program, consistent with the gain |
//! | [`places`] | the holder of a lock whose word names no owner |
//! | [`cause`] | causes of waiting |
//! | [`mend`] | advice for each cause |
//! | [`stuck`] | threads that cannot go on |

pub mod bursts;
pub mod cause;
pub mod chain;
pub mod effect;
pub mod gain;
pub mod mend;
pub mod places;
pub mod prediction;
pub mod sample;
pub mod samples;
#[cfg(test)]
mod simulated;
pub mod stuck;
pub mod unseen;
mod unwaited;
pub mod verdict;

use threadtoll_stats::interval::Estimate;

use bursts::Bursts;
use cause::{Cause, CauseShare, HolderCounts, PatternCounts};
use effect::Part;
use gain::{Surroundings, gain};
use prediction::{Change, CpuDemand, Predictor, Present, WhatIf, differ};
use samples::{Figure, LockSamples};
use unseen::Unseen;
use verdict::{Verdict, efficiency};

/// Number of locks into which the predicted striping splits the lock.
const STRIPES: u32 = 4;

/// Moving work out of the lock is predicted only if holders sleep for more than this share of the
/// waiting.
const MIN_SLEPT: f64 = 0.05;

/// Other numbers of threads are predicted only if at most this share of the users that do not wait
/// for the lock wait for other locks.
const MOST_ELSEWHERE: f64 = 0.1;

/// Largest number of threads predicted, unless more are alive.
const MAX_PREDICTED: u32 = 64;

/// Observations of a lock.
#[derive(Clone, Copy, Debug)]
pub struct LockSeen<'a> {
    /// Samples of the lock.
    pub samples: &'a LockSamples,
    /// Waits that no sample saw.
    pub unseen: Unseen,
    /// Bursts of reads of the lock's word.
    pub bursts: &'a Bursts,
    /// States of the holder while some thread waited.
    pub holders: &'a HolderCounts,
    /// Counts of patterns over several samples.
    pub patterns: PatternCounts,
    /// Number of threads seen to hold the lock or to wait for it.
    pub users: u32,
    /// Number of living threads, each of which may use the lock; at least `users`.
    pub alive: u32,
    /// Users' demand for CPUs; `None` if unknown.
    pub cpu: Option<CpuDemand>,
    /// Mean number of threads that would go on if nobody waited for the lock: its queue, unless it
    /// belongs to a [chain]; `None` if unknown.
    pub freed: Option<Estimate>,
    /// Mean number of the lock's users that wait for other locks.
    pub elsewhere: f64,
    /// The rest of the program.
    pub program: Surroundings<'a>,
}

/// A judgement on a lock. Figures that the samples do not support are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Share of time for which the lock is held.
    pub held: Figure,
    /// Mean number of threads waiting for the lock.
    pub queue: Figure,
    /// True if holds are so short that the queue is a lower bound.
    pub queue_is_lower_bound: bool,
    /// Mean hold time in nanoseconds.
    pub hold_ns: Option<Estimate>,
    /// Share of the users that do not wait for the lock.
    pub efficiency: Option<Estimate>,
    /// The verdict, if the samples allow one.
    pub verdict: Option<Verdict>,
    /// Gain in throughput that the program would have without the queue: 0.2 is a fifth more.
    /// `None` if unknown.
    pub gain: Option<Estimate>,
    /// Causes of waiting, in the order in which to address them.
    pub causes: Vec<CauseShare>,
    /// Speed-ups over one thread, in ascending order of the number of threads.
    pub predicted: Vec<(u32, Estimate)>,
    /// Effects of changes on the program; the change that suits the first cause comes first. A
    /// change that keeps the number of threads never exceeds the gain. Changes without an effect
    /// are left out.
    pub what_if: Vec<WhatIf>,
    /// As `what_if`, but with all living threads as users. Empty unless the first effect then leads
    /// to different advice.
    pub what_if_all_use: Vec<WhatIf>,
}

impl Judgement {
    /// Judges a lock.
    pub fn new(seen: LockSeen<'_>) -> Self {
        let (held, queue) = (seen.samples.held(), seen.samples.queue().with_unseen(seen.unseen));
        let waiting = queue.known();
        let cpus = seen.cpu.map_or(u32::MAX, |demand| demand.cpus);
        let causes = cause::causes(seen.holders, seen.patterns, cpus);
        let first = causes.first().copied();
        let by_users = predictor(seen, seen.users);
        // Waking all waiters at once costs CPU time that their waits do not show.
        let herd = first.is_some_and(|first| first.cause == Cause::Herd);
        let freed = seen.freed.filter(|_| !herd);
        let gain = freed.and_then(|freed| gain(freed, seen.program));
        let what_if = |predictor: &Option<Predictor>| -> Vec<WhatIf> {
            let parts = predictor.as_ref().zip(gain).zip(waiting);
            let Some(((predictor, gain), queue)) = parts else { return Vec::new() };
            // The models describe a single lock, not a chain of locks.
            if seen.freed.is_some_and(|freed| differ(freed, queue)) {
                return Vec::new();
            }
            let part = Part::of(seen.users, queue, seen.program, gain);
            let change = |change| part.effect(predictor.what_if(change).ok()?);
            changes(first, seen).into_iter().filter_map(change).collect()
        };
        let by_seen = what_if(&by_users);
        let mut by_all = Vec::new();
        if seen.alive > seen.users {
            by_all = what_if(&predictor(seen, seen.alive));
            if let (Some(one), Some(other)) = (by_seen.first(), by_all.first())
                && !differ(one.gain, other.gain)
            {
                by_all.clear();
            }
        }
        Self {
            held,
            queue,
            queue_is_lower_bound: seen.bursts.queue_is_lower_bound(),
            hold_ns: seen.bursts.hold_ns(),
            efficiency: waiting.map(|queue| efficiency(queue, seen.users)),
            verdict: waiting
                .zip(seen.samples.busy())
                .map(|(queue, busy)| Verdict::new(queue, busy, seen.users)),
            gain,
            causes,
            predicted: by_users.filter(|_| knows_other_threads(seen)).map_or_else(
                Vec::new,
                |predictor| {
                    let speedup = |threads| Some((threads, predictor.speedup(threads).ok()?));
                    predicted_threads(seen).into_iter().filter_map(speedup).collect()
                },
            ),
            what_if: by_seen,
            what_if_all_use: by_all,
        }
    }
}

fn predictor(seen: LockSeen<'_>, users: u32) -> Option<Predictor> {
    let present = Present { means: seen.samples.means()?, users, cpu: seen.cpu };
    Predictor::new(present).ok()
}

/// Smallest relative throughput at which fewer threads do nearly as much.
const NEARLY_AS_MUCH: f64 = 0.9;

impl Judgement {
    /// Returns `true` if at most `threads` threads are predicted to do nearly as much as `present`
    /// threads do.
    pub fn fewer_do(&self, threads: u32, present: u32) -> bool {
        let of = |most: u32| self.predicted.iter().rev().find(|&&(number, _)| number <= most);
        let both = of(threads).zip(of(present));
        both.is_some_and(|((_, few), (_, all))| few.value >= NEARLY_AS_MUCH * all.value)
    }
}

/// Returns `true` if the lock's model can predict other numbers of threads. The model counts all
/// time outside this lock as work. That is wrong if users wait for other locks, where more threads
/// would wait longer, or if something else sets their pace.
fn knows_other_threads(seen: LockSeen<'_>) -> bool {
    let queue = seen.samples.queue().known().map_or(0.0, |queue| queue.value);
    !seen.program.others_may_set_pace()
        && seen.elsewhere <= MOST_ELSEWHERE * (f64::from(seen.users) - queue)
}

/// Numbers of threads to predict: powers of two, the lock's users, and all living threads.
fn predicted_threads(seen: LockSeen<'_>) -> Vec<u32> {
    let most = MAX_PREDICTED.max(seen.alive);
    let mut threads: Vec<u32> =
        (0..31).map(|power| 1 << power).take_while(|&threads| threads <= most).collect();
    threads.extend([seen.users, seen.alive]);
    threads.retain(|&threads| threads > 0);
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Changes to predict; the one that suits the first cause comes first.
fn changes(first: Option<CauseShare>, seen: LockSeen<'_>) -> Vec<Change> {
    let mut changes = vec![Change::HalveHold, Change::Stripe(STRIPES)];
    if knows_other_threads(seen) {
        changes.push(Change::Threads(seen.users.saturating_mul(2)));
    }
    if let Some(slept) = seen.holders.slept().filter(|slept| slept.low > MIN_SLEPT) {
        let suits = first.is_some_and(|first| {
            matches!(first.cause, Cause::SleptHolding(_) | Cause::WaitsForThreads(..))
        });
        changes.insert(usize::from(!suits), Change::MoveOut(slept.value));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::cause::HolderState;
    use super::gain::Locking;
    use super::sample::LockSample;
    use super::simulated::{Program, Times, at};
    use super::*;

    struct Seen {
        samples: LockSamples,
        holders: HolderCounts,
    }

    /// Samples ten seconds of a program whose holders sleep.
    fn sampled(program: Program) -> Seen {
        let run = program.run(10.0, 1);
        let mut seen = Seen { samples: LockSamples::default(), holders: HolderCounts::default() };
        for time in run.instants(1000.0, 2) {
            let waiting = (0..program.threads).filter(|&id| run.waiting(id, time)).count();
            let holder = at(&run.holds, time);
            let sample = LockSample {
                held: Some(holder.is_some()),
                queue: Some(waiting as f64),
                waking: Some(f64::from(u8::from(at(&run.hand_offs, time).is_some()))),
                waiter: 1.0,
                time: 1.0,
                late: false,
            };
            seen.samples.add(time as u64, sample, 1);
            if waiting > 0 {
                seen.holders
                    .add(holder.map_or(HolderState::HandedOver, |_| HolderState::Asleep(230)));
            }
        }
        seen
    }

    fn judged(program: Program, alive: u32) -> Judgement {
        judged_with(program, alive, 0.0)
    }

    fn judged_with(program: Program, alive: u32, elsewhere: f64) -> Judgement {
        let seen = sampled(program);
        let queue = seen.samples.queue().known();
        let waiting = queue.map_or(0.0, |queue| queue.value);
        Judgement::new(LockSeen {
            samples: &seen.samples,
            unseen: Unseen::default(),
            bursts: &Bursts::default(),
            holders: &seen.holders,
            patterns: PatternCounts::default(),
            users: program.threads,
            alive,
            cpu: None,
            freed: queue,
            elsewhere,
            program: Surroundings {
                working: f64::from(program.threads) - waiting,
                working_within: 0.0,
                waiters_working: f64::INFINITY,
                on_cpu: Estimate::exact(0.1),
                running: 0.0,
                cpus: 2.0,
                idle_cpus: None,
                users_on_cpu: 0.0,
                users_at_rest: 0.0,
                held_up_by_others: false,
                others: &[],
                locking: Locking::default(),
            },
        })
    }

    fn words(judgement: &Judgement) -> Vec<&'static str> {
        judgement.verdict.unwrap().words()
    }

    const PROGRAM: Program = Program {
        threads: 8,
        hold: 2e-3,
        think: 8e-3,
        hold_times: Times::Exponential,
        think_times: Times::Exponential,
        hand_off: 0.03e-3,
    };

    #[test]
    fn a_saturated_lock_is_judged_in_full() {
        let judgement = judged(PROGRAM, 14);
        assert_eq!(words(&judgement), ["saturated"]);
        assert_eq!(judgement.causes[0].cause, Cause::SleptHolding(230));
        assert!(matches!(judgement.what_if[0].change, Change::MoveOut(share) if share > 0.9));
        assert!(judgement.what_if[0].gain.low > 1.5);
        // With fourteen users, the gain would be different.
        assert!(!judgement.what_if_all_use.is_empty());
        assert!(judgement.gain.unwrap().low > 0.2);
        let (threads, most) = *judgement.predicted.last().unwrap();
        assert!(threads == 64 && most.holds(5.0), "{most:?}");
        assert!(judgement.predicted.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(!judgement.fewer_do(2, 8) && judgement.fewer_do(32, 64));
    }

    #[test]
    fn threads_that_wait_at_other_locks_leave_more_threads_open() {
        // One of many locks, each of which is used for a small part of the time.
        let program = Program { think: 200e-3, threads: 5, ..PROGRAM };
        let adds = |elsewhere| {
            let judgement = judged_with(program, 5, elsewhere);
            let mut what_ifs = judgement.what_if.iter();
            let adds = what_ifs.any(|what_if| matches!(what_if.change, Change::Threads(_)));
            (adds, judgement.predicted.is_empty())
        };
        assert_eq!(adds(0.1), (true, false));
        assert_eq!(adds(3.3), (false, true));
    }

    /// Three threads share an allocator's lock, with 15,000 or 100,000 acquisitions per second.
    #[test]
    fn a_lock_held_a_fiftieth_of_the_time_is_comfortable() {
        for per_second in [5_000.0, 33_000.0] {
            let program = Program {
                threads: 3,
                hold: 0.0066 / per_second,
                think: 1.0 / per_second,
                ..PROGRAM
            };
            let judgement = judged(Program { hand_off: 0.0, ..program }, 3);
            assert!(judgement.held.known().unwrap().value < 0.03);
            assert_eq!(words(&judgement), ["comfortable"]);
            assert!(judgement.gain.unwrap().high < 0.01);
        }
    }

    #[test]
    fn nothing_seen_is_nothing_judged() {
        let judgement = Judgement::new(LockSeen {
            samples: &LockSamples::default(),
            unseen: Unseen::default(),
            bursts: &Bursts::default(),
            holders: &HolderCounts::default(),
            patterns: PatternCounts::default(),
            users: 0,
            alive: 0,
            cpu: None,
            freed: None,
            elsewhere: 0.0,
            program: Surroundings {
                working: 0.0,
                working_within: 0.0,
                waiters_working: f64::INFINITY,
                on_cpu: Estimate::exact(0.0),
                running: 0.0,
                cpus: 0.0,
                idle_cpus: None,
                users_on_cpu: 0.0,
                users_at_rest: 0.0,
                held_up_by_others: false,
                others: &[],
                locking: Locking::default(),
            },
        });
        assert_eq!((judgement.held, judgement.queue), (Figure::Unknown, Figure::Unknown));
        assert_eq!((judgement.verdict, judgement.gain), (None, None));
        assert!(judgement.predicted.is_empty() && judgement.what_if.is_empty());
    }
}

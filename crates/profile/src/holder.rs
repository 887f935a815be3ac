//! Holders of locks in each sample, and what they do.
//!
//! The words of some locks name their owner, or point to a [record](records) of it. For other
//! locks, the holder is inferred from the code that each thread is in
//! ([`threadtoll_judge::places`]). First, threads are excluded that have not run since the lock
//! last had no holder, which was when its word read free, or when a thread that had waited for it
//! went on. A lock that a writer holds has one holder; a lock that readers share counts as having
//! none. Whether named or inferred, a holder is counted with its activity [at the moment when the
//! word was read](moment).

mod moment;
mod records;
mod released;
mod scene;
mod threads;
mod turn;

use std::collections::{HashMap, VecDeque};

use threadtoll_judge::cause::{HolderCounts, HolderState};
use threadtoll_judge::places::{self, Explained, Places};
use threadtoll_stacks::process::Activity;

use crate::primitive::{Hold, Identity, Kind};
use crate::sample::{ThreadRead, Tick};
use crate::stacks::Stacks;
use crate::tally::count;
use moment::{Moment, Waiters};
pub(crate) use records::HolderRecords;
use released::AsleepOwner;
use scene::{Able, KeptScene, KeptThread};
pub(crate) use threads::SampledThreads;
pub(crate) use turn::turn;

/// Maximum number of samples of all threads that are kept per lock.
const MAX_SCENES: usize = 2048;

/// If a lock's owner has slept on the lock's own word for longer than this, it is not just being
/// woken up: even a control group that had used up its quota has got a new one by then.
const HAND_OVER_NS: u64 = 150_000_000;

/// Everything known about the holders of one lock.
#[derive(Debug, Default)]
pub(crate) struct LockHolder {
    /// Holders, as far as the lock's word names them.
    named: Holders,
    /// Samples of the stacks of all threads, kept if the lock's word does not name the holder.
    scenes: VecDeque<KeptScene>,
    /// Places in the code where the lock is held, learned if its word does not name the holder.
    places: Places,
    /// True if the lock's word names its holder.
    pub(crate) names_owner: bool,
    /// When the lock was last known to have no holder, if its word does not name one.
    free_at: Option<u64>,
    /// Threads of which one held the lock when all threads were last examined. `None` once the lock
    /// has been seen free.
    able: Option<Able>,
    /// True if threads have waited for the lock while it was held and its word did not name the
    /// holder.
    pub(crate) nameless: bool,
    waiters: Waiters,
    waits_for_its_own: Option<OwnWait>,
    /// Evidence of releases by threads other than the owner.
    asleep_owner: AsleepOwner,
}

/// A lock's owner that sleeps on the lock's own word: either it has just been given the lock and is
/// being woken, or it has deadlocked with itself.
#[derive(Clone, Copy, Debug)]
struct OwnWait {
    owner: u32,
    /// When that was first seen.
    since: u64,
    /// Number of samples that are held back until it is known which of the two is the case.
    samples: u64,
}

/// A lock in one sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledLock<'a> {
    /// Index of the lock among the wait targets of the process.
    pub(crate) place: u32,
    /// Index of the lock's other account, if its readers and its writers have one each.
    pub(crate) twin: Option<u32>,
    /// The threads that were seen waiting for the lock.
    pub(crate) waiters: &'a [u32],
    pub(crate) identity: Identity,
    pub(crate) hold: Hold,
    /// State of the lock's word after the threads were examined.
    pub(crate) hold_again: Option<Hold>,
}

impl SampledLock<'_> {
    /// Returns `true` if the wait target at this index is this lock, or its other account.
    fn is_at(&self, place: u32) -> bool {
        place == self.place || Some(place) == self.twin
    }
}

/// Holders of a lock while a thread waited for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// Number of samples by activity.
    pub(crate) doing: HolderCounts,
    /// Number of samples by the holder's activity, including samples without waiters, if the lock's
    /// word names its holder.
    pub(crate) while_held: HolderCounts,
    /// True if the lock was released while the thread that its word named slept.
    pub(crate) released_by_others: bool,
    /// Number of samples by thread.
    pub(crate) threads: HashMap<u32, u64>,
    /// Number of samples by stack.
    pub(crate) stacks: HashMap<u32, u64>,
    /// Stacks of the candidates, in samples in which any of several threads may have been the
    /// holder; number of samples of each stack.
    pub(crate) candidates: HashMap<u32, u64>,
    /// Number of samples that saw such candidates.
    pub(crate) candidate_samples: u64,
    /// True if the holders were inferred from places in the code, because the lock's word does not
    /// name them.
    pub(crate) inferred: bool,
}

impl LockHolder {
    /// Notes that a waiter for the lock, asleep until `asleep_at`, has gone on. The lock was
    /// therefore released, and no thread that has not run since then can hold it.
    pub(crate) fn released_after(&mut self, asleep_at: u64) {
        if self.free_at.is_none_or(|free_at| free_at < asleep_at) {
            self.free_at = Some(asleep_at);
        }
        self.able = self.able.take().filter(|able| able.at > asleep_at);
    }

    /// Counts the holder of the lock, and what it was doing.
    pub(crate) fn count(
        &mut self,
        lock: &SampledLock<'_>,
        threads: &SampledThreads<'_>,
        tick: &Tick,
        contended: bool,
    ) {
        let SampledThreads { read: examined, seen, .. } = *threads;
        let SampledLock { identity, hold, .. } = *lock;
        let unreleased_since = self.waiters.unreleased_since(threads, tick, lock.waiters);
        self.asleep_owner.see(threads, lock, tick.at);
        if let Hold::Held { owner: Some(owner) } = hold {
            let read = examined.iter().find(|read| read.tid == owner);
            // The sampler always examines an owner that a word names. An owner that a record names
            // is examined only if it happens to be picked. That does not depend on what the owner
            // does, so samples without the owner can be ignored.
            if read.is_none() && identity.interpreter_lock().is_some() {
                return;
            }
            let unchanged = lock.hold_again.map(|again| again == hold);
            let of = (owner, read);
            let mut now = Moment::of(threads, lock, of, tick, unchanged, unreleased_since);
            match self.waits_for_its_own(threads, lock, of, tick.at, contended) {
                Some(true) => now.doing = HolderState::Waiting(lock.place),
                Some(false) => {
                    if contended {
                        count(&mut self.named.threads, owner);
                    }
                    return;
                }
                None => {}
            }
            let named = &mut self.named;
            named.while_held.add(match (now.doing, unchanged, read) {
                // The word of a lock without waiters is not read a second time, so its owner is
                // taken to hold the lock still.
                (HolderState::NotSeen, None, Some(read)) => threads.doing(lock, read),
                (doing, ..) => doing,
            });
            if contended {
                named.doing.add(now.doing);
                count(&mut named.threads, owner);
                // The stack of a waiter that was woken to take the lock still shows the place where
                // it waited.
                if let Some(stack) = now.stack.filter(|_| now.doing != HolderState::HandedOver) {
                    count(&mut named.stacks, stack);
                }
            }
            return;
        }
        self.end_own_wait(HolderState::HandedOver);
        // If readers hold the lock, none of them counts as its holder.
        let (held, instead) = match hold {
            Hold::Held { .. } => (true, HolderState::NotSeen),
            Hold::Readers(_) => (false, HolderState::Readers),
            Hold::Free => (false, threads.handed_over(lock)),
            Hold::Unseen => return,
        };
        if !held && (self.names_owner || instead == HolderState::Readers && !self.nameless) {
            if contended {
                self.named.doing.add(instead);
            }
            return;
        }
        self.nameless |= held && contended && !self.names_owner;
        if !held {
            (self.free_at, self.able) = (Some(tick.at), None);
        }
        // Samples without stacks are of use, too: they show which threads were on a CPU.
        let with_stacks = tick.again_at.is_some();
        // If the lock changed hands in the meantime, the stacks say nothing about its holder.
        let changed = with_stacks && Some(hold) != lock.hold_again;
        if changed || !with_stacks && !self.nameless {
            return;
        }
        let still = |tid: u32| seen.timeline.and_then(|it| it.still_since(tid, tick.at, false));
        let still_of = |tid: u32| {
            let read = examined.iter().find(|read| read.tid == tid);
            read.map_or_else(|| still(tid), |read| seen.still_since(read, tick.at))
        };
        // No other thread can get the lock until one of the threads that may hold it has run.
        let unchanged = self.able.as_ref().filter(|able| {
            held && able.tids.iter().all(|&tid| still_of(tid).is_some_and(|since| since <= able.at))
        });
        let is_bystander = |tid: u32, still_since: Option<u64>| {
            let free = still_since.zip(self.free_at);
            free.is_some_and(|(since, free_at)| since <= free_at)
                || self.free_at.is_some() && (threads.rests)(tid)
                || unchanged.is_some_and(|able| !able.tids.contains(&tid))
        };
        // Rust's standard library does not hand its locks to a woken thread: whichever thread comes
        // first takes them.
        let hands_over = !matches!(identity.kind(), Kind::RustMutex | Kind::RustRwLock);
        let kept = |read: &ThreadRead| {
            let still_since = seen.still_since(read, tick.at);
            let woken = seen.is_woken(read, tick.at);
            let waits = threads.waits(lock, read);
            let now = Moment::of(
                threads,
                lock,
                (read.tid, Some(read)),
                tick,
                Some(true),
                unreleased_since,
            );
            KeptThread {
                tid: read.tid,
                waits,
                granted: waits && woken && hands_over,
                stack: seen.stack(read, tick.at).or_else(|| threads.slept_at(read)),
                asleep: read.activity != Activity::OnCpu,
                woken,
                bystander: is_bystander(read.tid, still_since),
                still_since,
                doing: now.doing,
                shown: now.stack,
            }
        };
        // If a thread got or lost a CPU in the meantime, the lock may have changed hands although
        // its word looks as before.
        let switched = |read: &ThreadRead| {
            let until = tick.again_at.unwrap_or(tick.at);
            let last = seen.timeline.and_then(|it| it.state_since(read.tid, until));
            last.is_some_and(|(_, since)| since > tick.at)
        };
        let was_examined = |tid: u32| examined.iter().any(|read| read.tid == tid);
        let scene = KeptScene {
            due: tick.due,
            held,
            complete: threads
                .alive
                .iter()
                .all(|&tid| was_examined(tid) || is_bystander(tid, still(tid))),
            counts: contended && with_stacks,
            teaches: !examined.iter().any(switched),
            instead,
            threads: examined.iter().map(kept).collect(),
        };
        let settled = scene.held && scene.complete && scene.teaches;
        if let Some(able) = settled.then(|| scene.able(tick.at)).flatten() {
            self.able = Some(able);
        }
        self.learn(scene, seen.stacks);
    }

    /// Says whether the owner has slept on the lock's own word for longer than a hand-over takes;
    /// `None` if the owner does not sleep on that word.
    fn waits_for_its_own(
        &mut self,
        threads: &SampledThreads<'_>,
        lock: &SampledLock<'_>,
        (owner, read): (u32, Option<&ThreadRead>),
        at: u64,
        contended: bool,
    ) -> Option<bool> {
        let waits = read.is_some_and(|read| threads.waits_for_its_own(lock, read));
        if !waits || self.waits_for_its_own.is_some_and(|wait| wait.owner != owner) {
            self.end_own_wait(HolderState::HandedOver);
        }
        if !waits {
            return None;
        }
        let new = OwnWait { owner, since: at, samples: 0 };
        let wait = self.waits_for_its_own.get_or_insert(new);
        let long = at.saturating_sub(wait.since) >= HAND_OVER_NS;
        if long {
            let samples = std::mem::take(&mut wait.samples);
            (0..samples).for_each(|_| self.named.doing.add(HolderState::Waiting(lock.place)));
        } else {
            wait.samples += u64::from(contended);
        }
        Some(long)
    }

    fn end_own_wait(&mut self, doing: HolderState) {
        let samples = self.waits_for_its_own.take().map_or(0, |wait| wait.samples);
        (0..samples).for_each(|_| self.named.doing.add(doing));
    }

    /// Learns, from a sample of all threads' stacks, in which code the lock is held.
    fn learn(&mut self, mut scene: KeptScene, stacks: &Stacks) {
        if scene.teaches {
            scene.visit(stacks, |scene| self.places.learn(scene));
        }
        if scene.counts {
            scene.threads.retain(KeptThread::may_hold);
            scene.threads.shrink_to_fit();
            if self.scenes.len() >= MAX_SCENES {
                self.scenes.pop_front();
            }
            self.scenes.push_back(scene);
        }
    }

    /// The only thread that may hold the lock, and when that was found. All other threads have been
    /// excluded, and the lock has not been seen free since.
    pub(crate) fn only_one(&self) -> Option<(u32, u64)> {
        let able = self.able.as_ref()?;
        match able.tids[..] {
            [tid] => Some((tid, able.at)),
            _ => None,
        }
    }

    /// For each stored sample, the time at which it was due and the thread that held the lock, if
    /// the places in the code show it.
    pub(crate) fn at_samples(&self, stacks: &Stacks) -> Vec<(u64, Option<u32>)> {
        let mut explained = Explained::default();
        for scene in &self.scenes {
            scene.visit(stacks, |scene| self.places.explain(scene, &mut explained));
        }
        let samples = self.scenes.iter().map(|scene| {
            let holder = scene.visit(stacks, |scene| self.places.holder(scene, explained));
            let thread = match holder {
                places::SceneHolder::Thread(tid) => Some(tid),
                places::SceneHolder::Nobody | places::SceneHolder::OneOf(_) => None,
            };
            (scene.due, thread)
        });
        samples.collect()
    }

    /// Holders in samples in which a thread waited: named by the lock's word, or inferred from the
    /// places in the code where the lock is held.
    ///
    /// If there are several candidates, only threads that were seen using the lock are named,
    /// because nothing shows that any other thread (such as a main thread that joins the others)
    /// ever holds it.
    pub(crate) fn holders(&self, stacks: &Stacks, uses: &dyn Fn(u32) -> bool) -> Holders {
        let mut holders = self.named.clone();
        holders.released_by_others = self.asleep_owner.released_by_others();
        let undecided = self.waits_for_its_own.map_or(0, |wait| wait.samples);
        (0..undecided).for_each(|_| holders.doing.add(HolderState::NotSeen));
        let mut explained = Explained::default();
        for scene in &self.scenes {
            scene.visit(stacks, |scene| self.places.explain(scene, &mut explained));
        }
        let mut inferred: Vec<(u32, Option<u32>)> = Vec::new();
        for scene in &self.scenes {
            let found = scene.visit(stacks, |scene| self.places.holder(scene, explained));
            let thread = |tid| scene.threads.iter().find(|thread| thread.tid == tid);
            let (doing, held_by) = match found {
                places::SceneHolder::Nobody => (scene.instead, None),
                places::SceneHolder::Thread(tid) => {
                    holders.inferred = true;
                    (thread(tid).map_or(HolderState::NotSeen, |thread| thread.doing), thread(tid))
                }
                places::SceneHolder::OneOf(tids) => {
                    let able = tids.iter().filter_map(|&tid| thread(tid));
                    let doing = match scene.complete {
                        true => agreed(able.map(|thread| thread.doing)),
                        false => HolderState::NotSeen,
                    };
                    let users = tids.into_iter().filter(|&tid| uses(tid));
                    let shown: Vec<u32> = users.filter_map(|tid| thread(tid)?.shown).collect();
                    holders.candidate_samples += u64::from(!shown.is_empty());
                    shown.into_iter().for_each(|stack| count(&mut holders.candidates, stack));
                    (doing, None)
                }
            };
            holders.doing.add(doing);
            inferred.extend(held_by.map(|thread| (thread.tid, thread.shown)));
        }
        for (tid, stack) in without_rare(inferred) {
            count(&mut holders.threads, tid);
            if let Some(stack) = stack {
                count(&mut holders.stacks, stack);
            }
        }
        holders
    }
}

/// Inferred holders, without threads that were inferred in few samples: a thread that does not use
/// the lock may be taken for its holder while the places where it is held are being learned.
fn without_rare(mut all: Vec<(u32, Option<u32>)>) -> Vec<(u32, Option<u32>)> {
    /// Smallest number of samples of a thread, relative to the thread with the most.
    const LEAST: f64 = 0.2;
    let mut samples: HashMap<u32, u64> = HashMap::new();
    all.iter().for_each(|&(tid, _)| *samples.entry(tid).or_default() += 1);
    let least = LEAST * samples.values().max().copied().unwrap_or_default() as f64;
    all.retain(|(tid, _)| samples[tid] as f64 >= least);
    all
}

/// Activity of a holder that may be any of several threads, if all of these run or wait for a CPU.
fn agreed(threads: impl Iterator<Item = HolderState>) -> HolderState {
    let on_cpu = |one: HolderState| {
        matches!(one, HolderState::Running | HolderState::OnCpu | HolderState::Preempted)
    };
    let both = |one: HolderState, other: HolderState| match (one, other) {
        _ if one == other && on_cpu(one) => one,
        _ if on_cpu(one) && on_cpu(other) => HolderState::OnCpu,
        _ => HolderState::NotSeen,
    };
    threads.reduce(both).filter(|&all| on_cpu(all)).unwrap_or(HolderState::NotSeen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_seldom_inferred_is_no_holder() {
        let seen = |tid, samples| std::iter::repeat_n((tid, Some(7)), samples);
        let kept = |all: Vec<_>| {
            let tids: std::collections::BTreeSet<u32> =
                without_rare(all).iter().map(|&(tid, _)| tid).collect();
            tids.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(kept(seen(1, 40).chain(seen(2, 37)).chain(seen(3, 2)).collect()), [1, 2]);
        assert_eq!(kept((0..100).flat_map(|tid| seen(tid, 1)).collect()).len(), 100);
        assert!(kept(Vec::new()).is_empty());
    }

    #[test]
    fn one_of_several_threads_on_cpus_is_on_a_cpu() {
        let all = |doing: &[HolderState]| agreed(doing.iter().copied());
        assert_eq!(all(&[HolderState::Running, HolderState::Running]), HolderState::Running);
        assert_eq!(
            all(&[HolderState::OnCpu, HolderState::Preempted, HolderState::Running]),
            HolderState::OnCpu
        );
        for unclear in
            [&[][..], &[HolderState::Asleep(1)], &[HolderState::OnCpu, HolderState::Asleep(1)]]
        {
            assert_eq!(all(unclear), HolderState::NotSeen);
        }
    }
}

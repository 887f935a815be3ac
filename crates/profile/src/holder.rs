//! Holders of locks in each sample, and their activities.
//!
//! The words of some locks name the owner, or point to a [record](records) of the owner. For other
//! locks, the holder is inferred from the code that each thread is in
//! ([`threadtoll_judge::places`]). Threads are excluded first if they have not run since the lock
//! last had no holder: since its word read free, or since a thread that had waited for the lock
//! went on. A lock that a writer holds has one holder. A lock that readers share counts as having
//! none. Each holder is counted with its activity [at the time when the word was read](moment).

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

const MAX_SCENES: usize = 2048;

/// An owner that sleeps on its own lock's word for longer than this many nanoseconds is not just
/// being woken: by then, even a throttled control group has a new quota.
const HAND_OVER_NS: u64 = 150_000_000;

#[derive(Debug, Default)]
pub(crate) struct LockHolder {
    named: Holders,
    scenes: VecDeque<KeptScene>,
    places: Places,
    pub(crate) names_owner: bool,
    /// Time at which the lock was last known to have no holder, if its word does not name one.
    free_at: Option<u64>,
    /// Threads of which one held the lock when all threads were last examined; `None` once the lock
    /// was seen free.
    able: Option<Able>,
    /// True if threads waited while the lock was held and its word did not name the holder.
    pub(crate) nameless: bool,
    waiters: Waiters,
    waits_for_its_own: Option<OwnWait>,
    asleep_owner: AsleepOwner,
}

/// An owner that sleeps on its own lock's word: it is being woken to take the lock, or it has
/// deadlocked with itself.
#[derive(Clone, Copy, Debug)]
struct OwnWait {
    owner: u32,
    since: u64,
    /// Number of samples held back until it is known if the owner is deadlocked or being woken.
    samples: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledLock<'a> {
    pub(crate) place: u32,
    pub(crate) twin: Option<u32>,
    pub(crate) waiters: &'a [u32],
    pub(crate) identity: Identity,
    pub(crate) hold: Hold,
    /// State after the threads were examined.
    pub(crate) hold_again: Option<Hold>,
}

impl SampledLock<'_> {
    fn is_at(&self, place: u32) -> bool {
        place == self.place || Some(place) == self.twin
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    pub(crate) doing: HolderCounts,
    /// Activities in all samples, with or without waiters, if the lock's word names the holder.
    pub(crate) while_held: HolderCounts,
    pub(crate) released_by_others: bool,
    pub(crate) threads: HashMap<u32, u64>,
    pub(crate) stacks: HashMap<u32, u64>,
    /// Number of samples by stack of a candidate, in samples in which any of several threads may
    /// have been the holder.
    pub(crate) candidates: HashMap<u32, u64>,
    pub(crate) candidate_samples: u64,
    pub(crate) inferred: bool,
}

impl LockHolder {
    /// Notes that a waiter, asleep until `asleep_at`, has gone on. So the lock was released, and
    /// threads that have not run since then cannot hold it.
    pub(crate) fn released_after(&mut self, asleep_at: u64) {
        if self.free_at.is_none_or(|free_at| free_at < asleep_at) {
            self.free_at = Some(asleep_at);
        }
        self.able = self.able.take().filter(|able| able.at > asleep_at);
    }

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
            // The sampler always examines an owner that a word names. It examines an owner that a
            // record names only if that thread is picked. The choice does not depend on the owner's
            // activity, so samples without the owner can be ignored.
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
                // The word of a lock without waiters is not read again. Its owner is then taken to
                // hold the lock still.
                (HolderState::NotSeen | HolderState::OffCpu, None, Some(read)) => {
                    threads.doing(lock, read)
                }
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
        // If the lock has changed hands meanwhile, the stacks say nothing about its holder.
        let changed = with_stacks && Some(hold) != lock.hold_again;
        if changed || !with_stacks && !self.nameless {
            return;
        }
        let still = |tid: u32| seen.timeline.and_then(|it| it.still_since(tid, tick.at, false));
        let still_of = |tid: u32| {
            let read = examined.iter().find(|read| read.tid == tid);
            read.map_or_else(|| still(tid), |read| seen.still_since(read, tick.at))
        };
        // Until one of these threads has run, no other thread can get the lock.
        let unchanged = self.able.as_ref().filter(|able| {
            held && able.tids.iter().all(|&tid| still_of(tid).is_some_and(|since| since <= able.at))
        });
        let is_bystander = |tid: u32, still_since: Option<u64>| {
            let free = still_since.zip(self.free_at);
            free.is_some_and(|(since, free_at)| since <= free_at)
                || self.free_at.is_some() && (threads.rests)(tid)
                || unchanged.is_some_and(|able| !able.tids.contains(&tid))
        };
        // Rust's standard library does not hand its locks to a woken thread. The first thread that
        // tries takes the lock.
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
        // If a thread got or lost a CPU meanwhile, the lock may have changed hands although its
        // word looks unchanged.
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

    /// Returns `true` if the owner has slept on its own lock's word for longer than a hand-over
    /// takes; `None` if the owner does not sleep on that word.
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

    /// The only thread that may hold the lock, and the time at which all others were excluded. The
    /// lock has not been seen free since.
    pub(crate) fn only_one(&self) -> Option<(u32, u64)> {
        let able = self.able.as_ref()?;
        match able.tids[..] {
            [tid] => Some((tid, able.at)),
            _ => None,
        }
    }

    /// Due time of each kept sample, with the holder if the places in the code show it.
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

    /// Holders in samples with waiters, named by the lock's word or inferred from places in the
    /// code.
    ///
    /// If there are several candidates, only those seen using the lock are named. Other threads,
    /// such as a main thread that joins the others, may never hold it.
    pub(crate) fn holders(&self, stacks: &Stacks, uses: &dyn Fn(u32) -> bool) -> Holders {
        let mut holders = self.named.clone();
        holders.released_by_others = self.asleep_owner.released_by_others();
        let undecided = self.waits_for_its_own.map_or(0, |wait| wait.samples);
        (0..undecided).for_each(|_| holders.doing.add(HolderState::NotSeen));
        let mut explained = Explained::default();
        for scene in &self.scenes {
            scene.visit(stacks, |scene| self.places.explain(scene, &mut explained));
        }
        let find =
            |scene: &KeptScene| scene.visit(stacks, |scene| self.places.holder(scene, explained));
        let found: Vec<places::SceneHolder> = self.scenes.iter().map(find).collect();
        let is_told = is_told(&found);
        let mut inferred: Vec<(u32, Option<u32>)> = Vec::new();
        for (scene, found) in self.scenes.iter().zip(found) {
            let thread = |tid| scene.threads.iter().find(|thread| thread.tid == tid);
            let (doing, held_by) = match found {
                places::SceneHolder::Nobody => (scene.instead, None),
                places::SceneHolder::Thread(_) if !is_told => (HolderState::NotSeen, None),
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

/// Returns `true` unless only one thread remains possible in few of the samples with a held lock.
/// The holder may then be at a place that shows nothing, and these few samples may show other
/// threads.
fn is_told(found: &[places::SceneHolder]) -> bool {
    const LEAST: f64 = 0.2;
    let count = |which: fn(&places::SceneHolder) -> bool| {
        found.iter().filter(|holder| which(holder)).count() as f64
    };
    let held = count(|holder| *holder != places::SceneHolder::Nobody);
    count(|holder| matches!(holder, places::SceneHolder::Thread(_))) >= LEAST * held
}

/// Drops holders that were inferred in few samples. While the places are still being learned, a
/// thread that does not use the lock may be taken for its holder.
fn without_rare(mut all: Vec<(u32, Option<u32>)>) -> Vec<(u32, Option<u32>)> {
    const LEAST: f64 = 0.2;
    let mut samples: HashMap<u32, u64> = HashMap::new();
    all.iter().for_each(|&(tid, _)| *samples.entry(tid).or_default() += 1);
    let least = LEAST * samples.values().max().copied().unwrap_or_default() as f64;
    all.retain(|(tid, _)| samples[tid] as f64 >= least);
    all
}

/// Activity of a holder that may be any of several threads, if all of them run or wait for a CPU,
/// or all are throttled.
fn agreed(threads: impl Iterator<Item = HolderState>) -> HolderState {
    let on_cpu = |one: HolderState| {
        matches!(one, HolderState::Running | HolderState::OnCpu | HolderState::Preempted)
    };
    let both = |one: HolderState, other: HolderState| match (one, other) {
        (HolderState::Throttled, HolderState::Throttled) => HolderState::Throttled,
        _ if one == other && on_cpu(one) => one,
        _ if on_cpu(one) && on_cpu(other) => HolderState::OnCpu,
        _ => HolderState::NotSeen,
    };
    let told = |all: &HolderState| on_cpu(*all) || *all == HolderState::Throttled;
    threads.reduce(both).filter(told).unwrap_or(HolderState::NotSeen)
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
    fn few_samples_with_a_sole_candidate_do_not_tell_the_holder() {
        use places::SceneHolder::{Nobody, OneOf, Thread};
        let of = |told, open| {
            let all = [(Thread(1), told), (OneOf(vec![1, 2]), open), (Nobody, 50)];
            is_told(&all.map(|(holder, times)| vec![holder; times]).concat())
        };
        assert!(of(20, 20) && of(5, 20) && of(0, 0));
        assert!(!of(3, 22));
    }

    #[test]
    fn one_of_several_threads_on_cpus_is_on_a_cpu() {
        let all = |doing: &[HolderState]| agreed(doing.iter().copied());
        assert_eq!(all(&[HolderState::Running, HolderState::Running]), HolderState::Running);
        assert_eq!(
            all(&[HolderState::OnCpu, HolderState::Preempted, HolderState::Running]),
            HolderState::OnCpu
        );
        assert_eq!(all(&[HolderState::Throttled; 2]), HolderState::Throttled);
        for unclear in [
            &[][..],
            &[HolderState::Asleep(1)],
            &[HolderState::OnCpu, HolderState::Asleep(1)],
            &[HolderState::Throttled, HolderState::Running],
        ] {
            assert_eq!(all(unclear), HolderState::NotSeen);
        }
    }
}

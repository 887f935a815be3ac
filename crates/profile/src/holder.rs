//! Who holds a lock at a look, and what the holder does.
//!
//! Words that name their owner say it, or point to a [record](records) of it. Of the others the
//! places of threads tell ([`threadtoll_judge::places`]), once those threads are left out that have
//! not run since the word was last seen free.

mod records;
mod scene;
mod threads;
mod turn;

use std::collections::{HashMap, VecDeque};

use threadtoll_judge::cause::{Holder, HolderCounts};
use threadtoll_judge::places::{self, Explained, Places};
use threadtoll_stacks::process::Activity;

use crate::primitive::{Hold, Identity, Kind};
use crate::sample::{ThreadRead, Tick};
use crate::stacks::Stacks;
use crate::tally::count;
pub(crate) use records::HolderRecords;
use scene::{Able, KeptScene, KeptThread};
pub(crate) use threads::Threads;
pub(crate) use turn::turn;

/// Most looks at threads that are kept of one lock.
const MAX_SCENES: usize = 2048;

/// All that is known of the holders of one lock.
#[derive(Debug, Default)]
pub(crate) struct LockHolder {
    /// Its holders, as far as its word names them.
    named: Holders,
    /// Looks at all threads' stacks, kept where its word does not name its holder.
    scenes: VecDeque<KeptScene>,
    /// Places of its holder, where its word does not name it.
    places: Places,
    /// Its word names its holder.
    pub(crate) names_owner: bool,
    /// When its word, which does not name its holder, was last seen free.
    free_at: Option<u64>,
    /// Threads of which one held it when they were last all looked at, unless it has been seen
    /// free since.
    able: Option<Able>,
    /// Threads waited for it while it was held, and its word did not name the holder.
    pub(crate) nameless: bool,
}

/// A lock at one look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    /// Its place among the things that threads of the process wait on.
    pub(crate) place: u32,
    pub(crate) identity: Identity,
    pub(crate) hold: Hold,
    /// State of its word after the threads were looked at.
    pub(crate) hold_again: Option<Hold>,
}

/// Holders of a lock while a thread waited for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// Looks by occupation.
    pub(crate) doing: HolderCounts,
    /// Looks by thread.
    pub(crate) threads: HashMap<u32, u64>,
    /// Looks by stack.
    pub(crate) stacks: HashMap<u32, u64>,
    /// Looks by stacks of which one was the holder's.
    pub(crate) candidates: HashMap<u32, u64>,
    /// Looks that saw such candidates.
    pub(crate) looks_at_candidates: u64,
    /// Places told, not the lock's word.
    pub(crate) inferred: bool,
}

impl LockHolder {
    /// Counts the holder of the lock, and what it was doing.
    pub(crate) fn count(
        &mut self,
        lock: &Lock,
        threads: &Threads<'_>,
        tick: &Tick,
        contended: bool,
    ) {
        let Threads { read: looked_at, seen, .. } = *threads;
        let Lock { place, identity, hold, .. } = *lock;
        if let Hold::Held { owner: Some(owner) } = hold {
            let read = looked_at.iter().find(|read| read.tid == owner);
            // The sampler looks at owners that words name. Those that records name are seen when
            // they happen to be picked, whatever they do: the other looks tell nothing.
            if read.is_none() && identity.interpreter_lock().is_some() {
                return;
            }
            let doing = read.map_or(Holder::NotSeen, |read| threads.doing(place, read));
            let stack = read.and_then(|read| seen.stack(read, tick.at));
            let named = &mut self.named;
            if contended {
                named.doing.add(doing);
                count(&mut named.threads, owner);
                // One that was woken to take the lock stands where it waited.
                if let Some(stack) = stack.filter(|_| doing != Holder::HandedOver) {
                    count(&mut named.stacks, stack);
                }
            }
            return;
        }
        let held = match hold {
            Hold::Held { .. } | Hold::Readers(_) => true,
            Hold::Free => false,
            Hold::Unseen => return,
        };
        let handed_over = threads.handed_over(place);
        if self.names_owner && !held {
            if contended {
                self.named.doing.add(handed_over);
            }
            return;
        }
        // Of several readers none is the holder.
        let shared = matches!(identity.kind(), Kind::RwLock | Kind::RustRwLock);
        if shared && held {
            if contended {
                self.named.doing.add(Holder::NotSeen);
            }
            return;
        }
        self.nameless |= held && contended && !self.names_owner;
        if !held {
            (self.free_at, self.able) = (Some(tick.at), None);
        }
        // Where no stacks were read, threads on CPUs can still be told from one another.
        let with_stacks = tick.again_at.is_some();
        // A lock that changed hands meanwhile says nothing about who stood where.
        let changed = with_stacks && Some(hold) != lock.hold_again;
        if shared || changed || !with_stacks && !self.nameless {
            return;
        }
        let still = |tid: u32| seen.timeline.and_then(|it| it.still_since(tid, tick.at, false));
        let still_of = |tid: u32| {
            let read = looked_at.iter().find(|read| read.tid == tid);
            read.map_or_else(|| still(tid), |read| seen.still_since(read, tick.at))
        };
        // While none of those has run that may hold it, the others cannot get it.
        let unchanged = self.able.as_ref().filter(|able| {
            held && able.tids.iter().all(|&tid| still_of(tid).is_some_and(|since| since <= able.at))
        });
        let is_bystander = |tid: u32, still_since: Option<u64>| {
            let free = still_since.zip(self.free_at);
            free.is_some_and(|(since, free_at)| since <= free_at)
                || unchanged.is_some_and(|able| !able.tids.contains(&tid))
        };
        // Std's mutex belongs to whoever takes it first.
        let hands_over = identity.kind() != Kind::RustMutex;
        let kept = |read: &ThreadRead| {
            let still_since = seen.still_since(read, tick.at);
            let woken = seen.is_woken(read, tick.at);
            let waits = threads.waits(place, read);
            KeptThread {
                tid: read.tid,
                waits,
                granted: waits && woken && hands_over,
                stack: seen.stack(read, tick.at).or_else(|| threads.slept_at(read)),
                asleep: read.activity != Activity::OnCpu,
                woken,
                bystander: is_bystander(read.tid, still_since),
                still_since,
                doing: threads.doing(place, read),
            }
        };
        // It may have changed hands and look as before.
        let switched = |read: &ThreadRead| {
            let until = tick.again_at.unwrap_or(tick.at);
            let last = seen.timeline.and_then(|it| it.state_since(read.tid, until));
            last.is_some_and(|(_, since)| since > tick.at)
        };
        let was_looked_at = |tid: u32| looked_at.iter().any(|read| read.tid == tid);
        let scene = KeptScene {
            held,
            complete: threads
                .alive
                .iter()
                .all(|&tid| was_looked_at(tid) || is_bystander(tid, still(tid))),
            counts: contended && with_stacks,
            teaches: !looked_at.iter().any(switched),
            handed_over,
            threads: looked_at.iter().map(kept).collect(),
        };
        let settled = scene.held && scene.complete && scene.teaches;
        if let Some(able) = settled.then(|| scene.able(tick.at)).flatten() {
            self.able = Some(able);
        }
        self.learn(scene, seen.stacks);
    }

    /// Learns from a look at the stacks of all threads.
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

    /// The one thread that may hold it, and when that was found: all others have been excluded,
    /// and it has not been seen free since.
    pub(crate) fn only_one(&self) -> Option<(u32, u64)> {
        let able = self.able.as_ref()?;
        match able.tids[..] {
            [tid] => Some((tid, able.at)),
            _ => None,
        }
    }

    /// The holders while a thread waited: as its word named them, or by all that was learned of
    /// their places.
    pub(crate) fn holders(&self, stacks: &Stacks) -> Holders {
        let mut holders = self.named.clone();
        let mut explained = Explained::default();
        for scene in &self.scenes {
            scene.visit(stacks, |scene| self.places.explain(scene, &mut explained));
        }
        for scene in &self.scenes {
            let found = scene.visit(stacks, |scene| self.places.holder(scene, explained));
            let thread = |tid| scene.threads.iter().find(|thread| thread.tid == tid);
            let (doing, held_by) = match found {
                places::Holder::Nobody => (scene.handed_over, None),
                places::Holder::Thread(tid) => {
                    holders.inferred = true;
                    (thread(tid).map_or(Holder::NotSeen, |thread| thread.doing), thread(tid))
                }
                places::Holder::OneOf(tids) => {
                    holders.looks_at_candidates += 1;
                    for stack in tids.into_iter().filter_map(|tid| thread(tid)?.stack) {
                        count(&mut holders.candidates, stack);
                    }
                    (Holder::NotSeen, None)
                }
            };
            holders.doing.add(doing);
            if let Some(thread) = held_by {
                count(&mut holders.threads, thread.tid);
                if let Some(stack) = thread.stack {
                    count(&mut holders.stacks, stack);
                }
            }
        }
        holders
    }
}

//! Holders of a process's locks, and what they do.

use super::ProcessAccount;
use crate::account::circumstances::{Circumstances, Last};
use crate::account::object::{KeptScene, KeptThread, count};
use crate::account::occupation::Occupation;
use crate::activity::Activity;
use crate::judge::cause::Holder;
use crate::perf::CpuState;
use crate::primitive::{Hold, Identity, Kind, ReadMemory};
use crate::sample::{Chunk, ThreadRead, Tick};

/// Most records of holders that are told apart.
const MAX_HOLDERS: usize = 4096;

/// A waiter that was woken for nothing has gone back to sleep after running this long at most: it
/// has looked at the word, perhaps spun for a while as parking_lot does, and called the kernel
/// (3 to 20 µs on a virtual machine). One that ran longer may have had the lock.
const RETRY_NS: u64 = 50_000;

impl ProcessAccount {
    /// The thread of a holder's record, if that has been found.
    pub(super) fn holder_of(&mut self, record: u64, lock: Identity) -> Option<u32> {
        if let Some(&tid) = self.holders.get(&record) {
            return tid;
        }
        if self.holders.len() < MAX_HOLDERS {
            self.holders.insert(record, None);
            self.new_records.push((record, lock));
        }
        None
    }

    /// Finds the threads of the holders' records that were seen for the first time.
    pub fn find_holders(&mut self, read: ReadMemory<'_>) {
        for (record, lock) in std::mem::take(&mut self.new_records) {
            let is_thread =
                |tid| self.thread_named(tid).is_some_and(|tid| self.threads.contains(&tid));
            let tid = lock.thread_of(record, read, &is_thread);
            let tid = tid.and_then(|tid| self.thread_named(tid));
            self.holders.insert(record, tid);
        }
    }

    /// A waiter has been woken and does not run yet: the thread that has taken the lock meanwhile,
    /// or `Some(None)` if the lock is the waiter's. `None` if it is not known which.
    ///
    /// The kernel does not show from which wait a thread was woken. It is taken to be the lock's if
    /// all runs since it was seen asleep there were too short to use the lock. So a thread that
    /// sleeps briefly in many other places meanwhile is mistaken for one that is woken in vain.
    pub(super) fn turn(
        &self,
        place: u32,
        tid: u32,
        last: Last,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<Option<u32>> {
        let object = &self.objects[place as usize];
        let timeline = seen.timeline.filter(|_| object.is_lock() && !seen.late)?;
        if timeline.longest_run(tid, last.asleep_at, at)? > RETRY_NS {
            return None;
        }
        let owner = match object.now.hold? {
            Hold::Free => return Some(None),
            Hold::Held { owner } => owner,
            Hold::Readers(_) | Hold::Unseen => return None,
        };
        // A lock that is handed over is held before its new holder runs.
        if owner == Some(tid) || timeline.next_run(tid, at)? > RETRY_NS {
            return Some(None);
        }
        if owner.is_some() {
            return Some(owner);
        }
        // A word that names no owner: if a single thread has a CPU, then that one took it.
        let awake = |&&tid: &&u32| {
            matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
        };
        let mut awake = self.threads.iter().filter(awake);
        let first = awake.next()?;
        awake.next().is_none().then_some(Some(*first))
    }

    /// Counts the holder of a lock, and what it was doing.
    pub(super) fn count_holder(
        &mut self,
        place: u32,
        chunk: &Chunk,
        tick: &Tick,
        seen: &Circumstances<'_>,
        contended: bool,
    ) {
        let threads = chunk.threads(tick);
        let object = &self.objects[place as usize];
        let Some(hold) = object.now.hold.filter(|_| object.is_lock()) else { return };
        if let Hold::Held { owner: Some(owner) } = hold {
            let read = threads.iter().find(|read| read.tid == owner);
            // The sampler looks at owners that words name. Those that records name are seen when
            // they happen to be picked, whatever they do: the other looks tell nothing.
            if read.is_none() && object.identity.interpreter_lock().is_some() {
                return;
            }
            let doing = read.map_or(Holder::NotSeen, |read| self.doing(place, read, tick.at, seen));
            let stack = read.and_then(|read| seen.stack(read, tick.at));
            let named = &mut self.objects[place as usize].named;
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
        if object.names_owner && !held {
            if contended {
                self.objects[place as usize].named.doing.add(Holder::HandedOver);
            }
            return;
        }
        // Of several readers none is the holder.
        let shared = matches!(object.identity.kind(), Kind::RwLock | Kind::RustRwLock);
        if shared && held {
            if contended {
                self.objects[place as usize].named.doing.add(Holder::NotSeen);
            }
            return;
        }
        let object = &mut self.objects[place as usize];
        self.nameless |= held && contended && !object.names_owner;
        // A lock that changed hands meanwhile says nothing about who stood where.
        if shared || tick.again_at.is_none() || object.now.hold != object.now.hold_again {
            return;
        }
        let kept = |read: &ThreadRead| KeptThread {
            tid: read.tid,
            waits: self.last.get(&read.tid).is_some_and(|last| last.waiting_on == Some(place)),
            stack: seen.stack(read, tick.at),
            woken: read.activity == Activity::OnCpu
                && seen.state(read.tid, tick.at) == Some(CpuState::SwitchedOut),
            doing: self.doing(place, read, tick.at, seen),
        };
        let scene = KeptScene {
            held,
            complete: threads.len() >= self.threads.len(),
            counts: contended,
            threads: threads.iter().map(kept).collect(),
        };
        self.objects[place as usize].learn(scene, seen.stacks);
    }

    /// What a thread does that holds a lock.
    fn doing(&self, lock: u32, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> Holder {
        match Occupation::of(&read.activity) {
            Occupation::Futex(wait) => match self.by_word.get(&wait.address) {
                // It has been given the lock in its sleep.
                Some(&waits) if waits == lock => Holder::HandedOver,
                Some(&waits) if self.objects[waits as usize].is_lock() => Holder::Waiting(waits),
                _ => Holder::Asleep(libc::SYS_futex as u32),
            },
            Occupation::OnCpu => {
                let last = self.last.get(&read.tid).copied().unwrap_or_default();
                match seen.state(read.tid, at) {
                    None => Holder::OnCpu,
                    Some(CpuState::Running) => Holder::Running,
                    Some(CpuState::SwitchedOut) if last.waiting_on == Some(lock) => {
                        Holder::HandedOver
                    }
                    Some(_) if seen.throttled => Holder::Throttled,
                    Some(_) => Holder::Preempted,
                }
            }
            _ => match read.activity {
                Activity::Asleep(call) => Holder::Asleep(call.number),
                _ => Holder::NotSeen,
            },
        }
    }
}

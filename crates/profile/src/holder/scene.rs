//! Threads in one sample, kept until the places in the code where the lock is held are known.

use threadtoll_judge::cause::HolderState;
use threadtoll_judge::places::{Scene, ThreadInScene};

use crate::stacks::Stacks;

#[derive(Debug)]
pub(super) struct KeptScene {
    pub(super) due: u64,
    pub(super) held: bool,
    pub(super) complete: bool,
    /// True if a thread waited for the lock and the sample was on time.
    pub(super) counts: bool,
    /// True if no thread got or lost a CPU while the threads were examined.
    pub(super) teaches: bool,
    /// Reason why threads wait if no single thread holds the lock.
    pub(super) instead: HolderState,
    pub(super) threads: Vec<KeptThread>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeptThread {
    pub(super) tid: u32,
    pub(super) waits: bool,
    pub(super) granted: bool,
    pub(super) stack: Option<u32>,
    pub(super) asleep: bool,
    pub(super) woken: bool,
    /// True if the thread cannot hold the lock: it has not run since the word was last free, or one
    /// of several other threads must still hold the lock, because none of them has run.
    pub(super) bystander: bool,
    pub(super) still_since: Option<u64>,
    /// Activity and stack when the word was read, in case the thread is the holder.
    pub(super) doing: HolderState,
    pub(super) shown: Option<u32>,
}

impl KeptThread {
    pub(super) fn may_hold(&self) -> bool {
        !self.waits && !self.bystander || self.granted
    }
}

#[derive(Debug)]
pub(super) struct Able {
    pub(super) at: u64,
    pub(super) tids: Vec<u32>,
}

impl KeptScene {
    pub(super) fn able(&self, at: u64) -> Option<Able> {
        let able = self.threads.iter().filter(|thread| thread.may_hold());
        let tids: Vec<u32> = able.map(|thread| thread.tid).collect();
        (!tids.is_empty()).then_some(Able { at, tids })
    }

    pub(super) fn visit<T>(&self, stacks: &Stacks, visit: impl FnOnce(Scene<'_>) -> T) -> T {
        let stand = |thread: &KeptThread| ThreadInScene {
            thread: thread.tid,
            waits: thread.waits,
            granted: thread.granted,
            places: thread.stack.map_or(&[], |stack| stacks.places(stack)),
            asleep: thread.asleep,
            woken: thread.woken,
            bystander: thread.bystander,
            still_since: thread.still_since,
        };
        let threads: Vec<ThreadInScene<'_>> = self.threads.iter().map(stand).collect();
        visit(Scene { held: self.held, threads: &threads, complete: self.complete })
    }
}

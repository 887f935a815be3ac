//! Activity of a holder at the time when the lock's word was read.
//!
//! The word is read first. The holder's system call and stack are read 10 to 1,000 µs later. By
//! then, a short hold is over, and the thread may sleep elsewhere. Records of context switches show
//! what the thread did when the word was read. A sleep counts as part of the hold only if the word
//! names the thread both before and after the thread is examined, and the thread has not run in
//! between. The thread then held the lock throughout the sleep. If it has run in between, its sleep
//! was short, and the call in which it slept is unknown. Without records, the word alone decides.
//!
//! The stack of a running thread is known only from samples of perf events, which the kernel takes
//! at other times. Such a sample counts if the lock was not released between the sample and the
//! reading of the word. That is certain if, throughout that time, the holder ran and all waiters
//! slept: a release would have woken a waiter.

use threadtoll_judge::cause::HolderState;
use threadtoll_stacks::process::Activity;

use super::{SampledLock, SampledThreads};
use crate::circumstances::NEAR_NS;
use crate::perf::{CpuState, Timeline};
use crate::sample::{ThreadRead, Tick};

/// A holder that released the lock within this many nanoseconds after the word was read ran almost
/// all the time: a sleep takes longer.
const SHORT_NS: u64 = 200_000;

/// Without records of context switches, a holder's state is known only if the thread was examined,
/// and the lock's word read again, within this many nanoseconds.
const WITHIN_NS: u64 = 1_000_000;

/// A thread that was woken, and runs within this many nanoseconds after the word was read, may have
/// slept when the word was read. If it runs later, it waits for a CPU.
const SOON_NS: u64 = 1_000_000;

const MAX_WAITERS: usize = 64;

pub(super) struct Moment {
    pub(super) doing: HolderState,
    pub(super) stack: Option<u32>,
}

impl Moment {
    const NOT_SEEN: Moment = Moment { doing: HolderState::NotSeen, stack: None };

    /// Infers the holder's activity and stack at the reading of the word from what was read later.
    /// `unchanged` is `Some(true)` if the word had the same value when it was read again. The lock
    /// has not been released since `unreleased_since`.
    pub(super) fn of(
        threads: &SampledThreads<'_>,
        lock: &SampledLock,
        (tid, read): (u32, Option<&ThreadRead>),
        tick: &Tick,
        unchanged: Option<bool>,
        unreleased_since: Option<Unreleased>,
    ) -> Moment {
        let seen = threads.seen;
        let ran_with = || {
            // If the thread was woken meanwhile, it may have taken the lock only then.
            let state = seen.timeline.and_then(|timeline| timeline.state_since(tid, tick.at));
            let ran_since = state.filter(|(state, _)| *state == CpuState::Running);
            let since = match unreleased_since? {
                Unreleased::Since(at) => at,
                Unreleased::WaitersAsleepSince(at) => at.max(ran_since?.1),
            };
            seen.stack_of_running(tid, since.max(tick.at.saturating_sub(NEAR_NS)), tick.at)
        };
        let state = seen.state(tid, tick.at);
        if state == Some(CpuState::Running) {
            return Moment { doing: HolderState::Running, stack: ran_with() };
        }
        let Some(read) = read else { return Moment::NOT_SEEN };
        let doing = threads.doing(lock, read);
        if state == Some(CpuState::Preempted) {
            let doing = match read.activity {
                Activity::OnCpu => doing,
                _ if seen.throttled => HolderState::Throttled,
                _ => HolderState::Preempted,
            };
            return Moment { doing, stack: ran_with() };
        }
        let until = tick.checked_at.unwrap_or(tick.at);
        let ran = |timeline: &Timeline| {
            timeline.got_cpu(tid, tick.at, until) == Some(true)
                || doing == HolderState::Preempted && runs_soon(timeline, tid, tick.at)
        };
        if state.is_some() && seen.timeline.is_some_and(ran) {
            let doing = match threads.was_given(lock, tid) {
                true => HolderState::HandedOver,
                false => HolderState::OffCpu,
            };
            return Moment { doing, stack: None };
        }
        // After a longer time, the thread may have released the lock and taken it again.
        let unsure = state.is_none() && until.saturating_sub(tick.at) > WITHIN_NS;
        match (unchanged, read.activity) {
            _ if unsure => Moment::NOT_SEEN,
            (Some(true), Activity::OnCpu) => Moment { doing, stack: ran_with() },
            (Some(true), _) => {
                let stack = read.stack_number.or_else(|| threads.slept_at(read));
                Moment { doing, stack }
            }
            (_, Activity::OnCpu) if state.is_some() => Moment { doing, stack: None },
            (Some(false), _) if state.is_none() && until.saturating_sub(tick.at) <= SHORT_NS => {
                Moment { doing: HolderState::LetGo, stack: None }
            }
            _ => Moment::NOT_SEEN,
        }
    }
}

/// Returns `true` unless a thread without a CPU surely has none for [`SOON_NS`].
fn runs_soon(timeline: &Timeline, tid: u32, after: u64) -> bool {
    match timeline.next_on_cpu(tid, after) {
        Some(at) => at.unwrap_or(timeline.known_until()).saturating_sub(after) <= SOON_NS,
        None => false,
    }
}

/// A period, up to the present sample, in which the lock was not released.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unreleased {
    /// The lock was not released after this time.
    Since(u64),
    /// All waiters have slept since this time, so none of them was given the lock.
    WaitersAsleepSince(u64),
}

#[derive(Debug, Default)]
pub(super) struct Waiters {
    at: u64,
    tids: Vec<u32>,
}

impl Waiters {
    /// Returns the period up to this sample in which the lock was not released, if known. Stores
    /// the sample's waiters for the next call, if all threads were examined and there are few
    /// enough waiters.
    pub(super) fn unreleased_since(
        &mut self,
        threads: &SampledThreads<'_>,
        tick: &Tick,
        waiters: &[u32],
    ) -> Option<Unreleased> {
        let since = match self.unreleased(threads, tick, waiters) {
            true => Some(Unreleased::Since(self.at)),
            false => asleep_since(threads, tick, waiters).map(Unreleased::WaitersAsleepSince),
        };
        self.at = tick.at;
        self.tids.clear();
        if waiters.len() <= MAX_WAITERS && threads.seen.examined_all() {
            self.tids.extend_from_slice(waiters);
        }
        since
    }

    fn unreleased(&self, threads: &SampledThreads<'_>, tick: &Tick, waiters: &[u32]) -> bool {
        let Some(timeline) = threads.seen.timeline else { return false };
        let asleep = |&tid: &u32| {
            let state = timeline.state_since(tid, tick.at);
            let slept = state
                .is_some_and(|(state, since)| state == CpuState::SwitchedOut && since <= self.at);
            slept && waiters.contains(&tid)
        };
        !self.tids.is_empty() && self.tids.iter().all(asleep)
    }
}

fn asleep_since(threads: &SampledThreads<'_>, tick: &Tick, waiters: &[u32]) -> Option<u64> {
    let timeline = threads.seen.timeline.filter(|_| threads.seen.examined_all())?;
    let since = waiters.iter().map(|&tid| match timeline.state_since(tid, tick.at)? {
        (CpuState::SwitchedOut, since) => Some(since),
        _ => None,
    });
    since.reduce(|one, other| Some(one?.max(other?))).flatten()
}

//! Scheduling states of each thread over time.
//!
//! Stores each thread's switches up to the last drain, and forgets old ones after a while. The
//! state of a thread is unknown before its first switch or sample, while records were lost, and
//! once it is no longer followed.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::records::{Direction, Event};

const MOST_GAPS: usize = 64;

/// Maximum time in nanoseconds that a woken thread spends on a CPU in the kernel, on a virtual
/// machine, before it returns to user mode.
const RETURN_NS: u64 = 10_000;

/// Scheduling state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuState {
    /// On a CPU.
    Running,
    /// Ready to run, but preempted by another thread.
    Preempted,
    /// Off its CPU voluntarily. If `/proc` nevertheless shows the thread as running, it was woken
    /// and waits for a CPU.
    SwitchedOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateChange {
    at: u64,
    to: KnownState,
}

impl StateChange {
    /// Keeps the part of the change that is certain if records up to this time are missing.
    fn after_doubt(self, until: u64) -> StateChange {
        match self.to {
            KnownState::Nothing => self,
            KnownState::State(_) | KnownState::Unswitched => {
                StateChange { at: until, to: KnownState::Unswitched }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownState {
    State(CpuState),
    /// The thread is followed, but no switch has been recorded since.
    Unswitched,
    Nothing,
}

impl KnownState {
    fn state(self) -> Option<CpuState> {
        match self {
            KnownState::State(state) => Some(state),
            KnownState::Unswitched | KnownState::Nothing => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u64,
    until: u64,
}

/// Hashes TIDs fast, because each of thousands of switches a second looks up a TID. The kernel
/// assigns TIDs, so no program can force collisions.
#[derive(Debug, Default)]
struct TidHasher(u64);

impl Hasher for TidHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, tid: u32) {
        self.0 = (self.0 ^ u64::from(tid)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Changes of one thread.
#[derive(Debug, Default)]
struct Changes {
    all: VecDeque<StateChange>,
    /// Number of changes at the front that are in order of time; `None` if all are.
    in_order: Option<usize>,
}

impl Changes {
    /// Sorts the changes, and returns the number of duplicates that were dropped.
    fn sort(&mut self) -> usize {
        let Some(in_order) = self.in_order.take() else { return 0 };
        let earliest = self.all.iter().skip(in_order).map(|change| change.at).min();
        let sorted = self.all.range(..in_order);
        let after = sorted.rev().take_while(|change| Some(change.at) >= earliest).count();
        let mut from: Vec<StateChange> = self.all.drain(in_order - after..).collect();
        let before = from.len();
        from.sort_by_key(|change| change.at);
        from.dedup();
        let dropped = before - from.len();
        self.all.extend(from);
        dropped
    }
}

/// Switches of all threads.
#[derive(Debug)]
pub struct Timeline {
    threads: HashMap<u32, Changes, BuildHasherDefault<TidHasher>>,
    /// Threads whose changes are not all in order of time.
    unsorted: Vec<u32>,
    gaps: VecDeque<Gap>,
    changes: usize,
    most_changes: usize,
    latest: u64,
    horizon: u64,
    complete_until: u64,
}

impl Timeline {
    /// Creates a timeline that keeps the latest `most_changes` switches, of 16 bytes each.
    pub fn new(most_changes: usize) -> Timeline {
        Timeline {
            threads: HashMap::default(),
            unsorted: Vec::new(),
            gaps: VecDeque::new(),
            changes: 0,
            most_changes,
            latest: 0,
            horizon: 0,
            complete_until: 0,
        }
    }

    /// Adds an event. Events may come in any order.
    pub fn note(&mut self, event: &Event<'_>) {
        match *event {
            Event::Switch { tid, at, direction, .. } => {
                let to = match direction {
                    Direction::In => CpuState::Running,
                    Direction::Out { preempted: true } => CpuState::Preempted,
                    Direction::Out { preempted: false } => CpuState::SwitchedOut,
                };
                self.change(tid, StateChange { at, to: KnownState::State(to) });
            }
            Event::Sample(sample) => {
                let to = KnownState::State(CpuState::Running);
                self.change(sample.tid, StateChange { at: sample.at, to });
            }
            Event::Followed { tid, at } => {
                self.change(tid, StateChange { at, to: KnownState::Unswitched })
            }
            Event::Exit { tid, at, .. } | Event::Unfollowed { tid, at } => {
                self.change(tid, StateChange { at, to: KnownState::Nothing });
            }
            Event::Lost { after, until, .. } => self.gap(Gap { from: after, until }),
            Event::Fork { .. } | Event::Exec { .. } => {}
        }
    }

    /// Notes that all events until `at` have been added. [`Events::drain`](super::Events::drain)
    /// returns that time.
    pub fn complete_until(&mut self, at: u64) {
        self.sort();
        self.complete_until = self.complete_until.max(at);
    }

    /// Time up to which all events have been added.
    pub fn known_until(&self) -> u64 {
        self.complete_until
    }

    /// State of a thread at a time; `None` if the state is unknown, or not known yet.
    pub fn state(&self, tid: u32, at: u64) -> Option<CpuState> {
        self.state_since(tid, at).map(|(state, _)| state)
    }

    /// State of a thread at a time, and the start of that state.
    pub fn state_since(&self, tid: u32, at: u64) -> Option<(CpuState, u64)> {
        let change = self.last_change(tid, at)?;
        change.to.state().map(|state| (state, change.at))
    }

    /// Time since which a thread has not run; `None` if the thread runs, or if that is unknown.
    /// `asleep` is `true` if the thread was seen asleep at `at`; it matters only if no switch of
    /// the thread is known.
    ///
    /// If a control group is out of quota, a woken thread gets a CPU but loses it before it returns
    /// from the kernel (Linux 6.18). That does not count as a run.
    pub fn still_since(&self, tid: u32, at: u64, asleep: bool) -> Option<u64> {
        let change = self.last_change(tid, at)?;
        if change.to == KnownState::State(CpuState::Preempted)
            && let Some(changes) = self.threads.get(&tid)
            && let Some(slept) = turned_back(&changes.all, change.at, &self.gaps)
        {
            return Some(slept);
        }
        match change.to {
            KnownState::State(CpuState::SwitchedOut | CpuState::Preempted) => Some(change.at),
            KnownState::Unswitched if asleep => Some(change.at),
            KnownState::State(CpuState::Running) | KnownState::Unswitched | KnownState::Nothing => {
                None
            }
        }
    }

    /// Length of the last run of a thread that is preempted at `at`; `None` if the thread is not
    /// preempted, or if the length is unknown.
    pub fn lost_cpu_after(&self, tid: u32, at: u64) -> Option<u64> {
        let lost = self.last_change(tid, at)?;
        if lost.to != KnownState::State(CpuState::Preempted) {
            return None;
        }
        let began = self.last_change(tid, lost.at.checked_sub(1)?)?;
        (began.to == KnownState::State(CpuState::Running)).then(|| lost.at - began.at)
    }

    fn last_change(&self, tid: u32, at: u64) -> Option<StateChange> {
        if at < self.horizon || at > self.complete_until {
            return None;
        }
        let changes = &self.threads.get(&tid)?.all;
        let before = changes.partition_point(|change| change.at <= at);
        let change = *changes.get(before.checked_sub(1)?)?;
        let in_doubt = self.gaps.iter().filter(|gap| gap.from <= at && gap.until >= change.at);
        match in_doubt.map(|gap| gap.until).max() {
            Some(until) if until >= at => None,
            Some(until) => Some(change.after_doubt(until)),
            None => Some(change),
        }
    }

    /// Longest time that a thread ran, between two times, without giving up its CPU voluntarily;
    /// `None` if its state is not known throughout.
    pub fn longest_run(&self, tid: u32, from: u64, until: u64) -> Option<u64> {
        let (mut longest, mut ran) = (0, 0);
        self.states(tid, from, until, |state, ns| {
            ran = match state {
                CpuState::Running => ran + ns,
                CpuState::Preempted => ran,
                CpuState::SwitchedOut => 0,
            };
            longest = longest.max(ran);
            true
        })?;
        Some(longest)
    }

    /// Length of the next run of a thread that has no CPU at `at`, until the thread gives up the
    /// CPU voluntarily. Returns `None` if that is unknown, or not known yet.
    pub fn next_run(&self, tid: u32, at: u64) -> Option<u64> {
        let (mut ran, mut over) = (0, false);
        self.states(tid, at, self.complete_until, |state, ns| {
            match state {
                CpuState::Running => ran += ns,
                CpuState::Preempted => {}
                CpuState::SwitchedOut => over = ran > 0,
            }
            !over
        })?;
        over.then_some(ran)
    }

    /// Returns `Some(true)` if a thread got a CPU after `after` and not after `until`; `None` if
    /// that is unknown.
    pub fn got_cpu(&self, tid: u32, after: u64, until: u64) -> Option<bool> {
        let (mut got, mut before) = (false, CpuState::Running);
        self.states(tid, after, until, |state, _| {
            got |= state == CpuState::Running && before != CpuState::Running;
            before = state;
            !got
        })?;
        Some(got)
    }

    /// Time at which a thread that has no CPU at this time gets one. `Some(None)` if it had none
    /// until [`known_until`](Timeline::known_until); `None` if that is unknown.
    pub fn next_on_cpu(&self, tid: u32, after: u64) -> Option<Option<u64>> {
        let (mut at, mut found) = (after, None);
        self.states(tid, after, self.complete_until, |state, ns| {
            found = (state == CpuState::Running).then_some(at);
            at += ns;
            found.is_none()
        })?;
        Some(found)
    }

    /// Calls `visit` with each state of a thread between two times, and with the state's length,
    /// until `visit` returns `false`.
    fn states(
        &self,
        tid: u32,
        from: u64,
        until: u64,
        mut visit: impl FnMut(CpuState, u64) -> bool,
    ) -> Option<()> {
        if from < self.horizon || until > self.complete_until {
            return None;
        }
        let changes = &self.threads.get(&tid)?.all;
        let first = changes.partition_point(|change| change.at <= from).checked_sub(1)?;
        let mut changes = changes.iter().skip(first).peekable();
        while let Some(change) = changes.next().filter(|change| change.at <= until) {
            let begun = change.at.max(from);
            let ended = changes.peek().map_or(until, |next| next.at.min(until));
            let in_doubt = self.gaps.iter().any(|gap| gap.from <= ended && gap.until >= change.at);
            let state = change.to.state().filter(|_| !in_doubt)?;
            if !visit(state, ended.saturating_sub(begun)) {
                break;
            }
        }
        Some(())
    }

    /// Forgets all times before `at`.
    pub fn forget_before(&mut self, at: u64) {
        self.sort();
        self.horizon = self.horizon.max(at);
        let horizon = self.horizon;
        let past_gaps = self.gaps.iter().filter(|gap| gap.until < horizon);
        let in_doubt_until = past_gaps.map(|gap| gap.until).max();
        self.gaps.retain(|gap| gap.until >= horizon);
        let mut kept = 0;
        self.threads.retain(|_, Changes { all: changes, .. }| {
            let before = changes.partition_point(|change| change.at <= horizon);
            let in_doubt = changes.partition_point(|change| Some(change.at) <= in_doubt_until);
            let ended = changes.iter().take(before).rposition(|it| it.to == KnownState::Nothing);
            // Keep three changes before the horizon: they show if a woken thread lost its CPU at
            // once.
            let first = before.saturating_sub(3).max(in_doubt.saturating_sub(1));
            let first = first.max(ended.unwrap_or(0));
            changes.drain(..first);
            if let (Some(change), Some(until)) = (changes.front_mut(), in_doubt_until)
                && change.at <= until
            {
                *change = change.after_doubt(until);
            }
            let known = changes.iter().any(|change| change.to != KnownState::Nothing);
            if known {
                kept += changes.len();
                if changes.capacity() > 4 * changes.len() + 16 {
                    changes.shrink_to(2 * changes.len());
                }
            }
            known
        });
        self.changes = kept;
    }

    fn change(&mut self, tid: u32, change: StateChange) {
        let changes = self.threads.entry(tid).or_default();
        match changes.all.back() {
            // A duplicate would displace an older change.
            Some(last) if *last == change => return,
            // The events of one CPU are in order of time. A thread that moved to another CPU is
            // sorted later, all its changes at once.
            Some(last) if last.at > change.at && changes.in_order.is_none() => {
                changes.in_order = Some(changes.all.len());
                self.unsorted.push(tid);
            }
            _ => {}
        }
        changes.all.push_back(change);
        self.changes += 1;
        self.latest = self.latest.max(change.at);
        if self.changes > self.most_changes {
            self.forget_half();
        }
    }

    fn sort(&mut self) {
        for tid in self.unsorted.drain(..) {
            if let Some(changes) = self.threads.get_mut(&tid) {
                self.changes -= changes.sort();
            }
        }
    }

    fn gap(&mut self, gap: Gap) {
        if let Some(last) = self.gaps.back_mut()
            && last.from == gap.from
        {
            last.until = last.until.max(gap.until);
            return;
        }
        self.gaps.push_back(gap);
        if self.gaps.len() > MOST_GAPS
            && let (Some(one), Some(other)) = (self.gaps.pop_front(), self.gaps.pop_front())
        {
            let from = one.from.min(other.from);
            self.gaps.push_front(Gap { from, until: one.until.max(other.until) });
        }
    }

    fn forget_half(&mut self) {
        self.sort();
        let earliest = self.threads.values().filter_map(|changes| changes.all.front());
        let earliest = earliest.map(|change| change.at).min().unwrap_or(0).max(self.horizon);
        let mut span = self.latest.saturating_sub(earliest);
        while self.changes > self.most_changes / 2 && span > 0 {
            span /= 2;
            self.forget_before(self.latest - span);
        }
        if self.changes > self.most_changes / 2 {
            // Not even one switch per thread fits.
            self.threads.clear();
            self.changes = 0;
        }
    }
}

/// If the thread was woken but lost its CPU before it returned from the kernel, returns the time at
/// which it had fallen asleep.
fn turned_back(changes: &VecDeque<StateChange>, lost_at: u64, gaps: &VecDeque<Gap>) -> Option<u64> {
    let first = changes.partition_point(|change| change.at < lost_at).checked_sub(2)?;
    let (slept, woken, lost) =
        (changes.get(first)?, changes.get(first + 1)?, changes.get(first + 2)?);
    let states =
        [CpuState::SwitchedOut, CpuState::Running, CpuState::Preempted].map(KnownState::State);
    let in_doubt = gaps.iter().any(|gap| gap.from <= lost_at && gap.until >= slept.at);
    let at_once = lost.at - woken.at <= RETURN_NS && !in_doubt;
    (at_once && [slept.to, woken.to, lost.to] == states).then_some(slept.at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IN: Direction = Direction::In;
    const PREEMPTED: Direction = Direction::Out { preempted: true };
    const BLOCKED: Direction = Direction::Out { preempted: false };

    fn switch(tid: u32, at: u64, direction: Direction) -> Event<'static> {
        Event::Switch { tid, at, cpu: 0, direction }
    }

    fn timeline(events: &[Event<'_>]) -> Timeline {
        let mut timeline = Timeline::new(1000);
        for event in events {
            timeline.note(event);
        }
        timeline.complete_until(1000);
        timeline
    }

    #[test]
    fn states_lie_between_switches_noted_in_any_order() {
        let events = [
            switch(1, 30, IN),
            switch(1, 40, BLOCKED),
            switch(1, 10, IN),
            switch(2, 15, IN),
            switch(1, 20, PREEMPTED),
        ];
        let timeline = timeline(&events);
        let states = [5, 10, 19, 20, 30, 1000, 1001].map(|at| timeline.state(1, at));
        let expected = [
            None,
            Some(CpuState::Running),
            Some(CpuState::Running),
            Some(CpuState::Preempted),
            Some(CpuState::Running),
            Some(CpuState::SwitchedOut),
            None,
        ];
        assert_eq!(states, expected);
        assert_eq!(timeline.state(3, 20), None);
    }

    #[test]
    fn a_thread_that_has_run_meanwhile_got_a_cpu() {
        let events = [switch(1, 10, IN), switch(1, 20, BLOCKED), switch(1, 30, IN)];
        let timeline = timeline(&events);
        let got = |after, until| timeline.got_cpu(1, after, until);
        assert_eq!([got(12, 18), got(12, 25), got(22, 28)], [Some(false); 3]);
        assert_eq!([got(12, 30), got(22, 40)], [Some(true); 2]);
        assert_eq!([got(5, 8), got(900, 1100)], [None; 2]);
    }

    #[test]
    fn runs_last_until_a_thread_gives_up_its_cpu() {
        let events = [
            switch(1, 10, IN),
            switch(1, 20, BLOCKED),
            switch(1, 30, IN),
            switch(1, 35, PREEMPTED),
            switch(1, 40, IN),
            switch(1, 60, BLOCKED),
            switch(1, 70, IN),
        ];
        let timeline = timeline(&events);
        assert_eq!(timeline.longest_run(1, 12, 28), Some(8));
        assert_eq!(timeline.longest_run(1, 12, 65), Some(25));
        assert_eq!(timeline.longest_run(1, 22, 28), Some(0));
        assert_eq!([15, 38, 45].map(|at| timeline.lost_cpu_after(1, at)), [None, Some(5), None]);
        assert_eq!(timeline.next_run(1, 25), Some(25));
        assert_eq!(timeline.next_run(1, 65), None);
        assert_eq!((timeline.longest_run(1, 5, 28), timeline.next_run(2, 25)), (None, None));
    }

    #[test]
    fn runs_with_lost_records_are_not_known() {
        let lost = Event::Lost { after: 32, until: 33, records: 1 };
        let timeline =
            timeline(&[switch(1, 10, BLOCKED), switch(1, 30, IN), lost, switch(1, 40, BLOCKED)]);
        assert_eq!(timeline.longest_run(1, 12, 20), Some(0));
        assert_eq!((timeline.longest_run(1, 12, 35), timeline.next_run(1, 20)), (None, None));
    }

    #[test]
    fn lost_records_leave_doubt_until_the_next_switch() {
        let lost = Event::Lost { after: 15, until: 20, records: 3 };
        let mut timeline = timeline(&[switch(1, 10, IN), lost, switch(1, 30, BLOCKED)]);
        let states = [14, 15, 25, 30].map(|at| timeline.state(1, at));
        let expected = [Some(CpuState::Running), None, None, Some(CpuState::SwitchedOut)];
        assert_eq!(states, expected);
        timeline.forget_before(25);
        assert_eq!(timeline.state(1, 26), None);
        assert_eq!(timeline.state(1, 30), Some(CpuState::SwitchedOut));
    }

    #[test]
    fn a_thread_that_is_not_switched_has_not_run_since_it_is_followed() {
        let followed = |tid| Event::Followed { tid, at: 10 };
        let lost = Event::Lost { after: 40, until: 50, records: 1 };
        let mut timeline = timeline(&[
            followed(1),
            followed(2),
            switch(2, 20, IN),
            switch(2, 30, PREEMPTED),
            followed(3),
            Event::Unfollowed { tid: 3, at: 15 },
            lost,
        ]);
        let still = |timeline: &Timeline, tid| {
            [5, 25, 35, 45, 60].map(|at| timeline.still_since(tid, at, true))
        };
        assert_eq!(still(&timeline, 1), [None, Some(10), Some(10), None, Some(50)]);
        assert_eq!(still(&timeline, 2), [None, None, Some(30), None, Some(50)]);
        assert_eq!(still(&timeline, 3), [None; 5]);
        assert_eq!(timeline.still_since(1, 25, false), None);
        assert_eq!(timeline.still_since(2, 35, false), Some(30));
        timeline.forget_before(60);
        assert_eq!(timeline.still_since(1, 60, true), Some(50));
        assert_eq!((timeline.state(1, 60), timeline.threads.len()), (None, 2));
    }

    #[test]
    fn a_thread_that_is_turned_back_from_the_kernel_has_not_run() {
        let back = |tid, ran: u64| {
            let out = switch(tid, 50_000 + ran, PREEMPTED);
            [switch(tid, 10_000, BLOCKED), switch(tid, 50_000, IN), out]
        };
        let mut timeline = timeline(&[back(1, 5_000), back(2, 500_000)].concat());
        timeline.complete_until(1_000_000);
        let still = |tid, at| timeline.still_since(tid, at, false);
        assert_eq!(
            [40_000, 52_000, 60_000].map(|at| still(1, at)),
            [Some(10_000), None, Some(10_000)]
        );
        assert_eq!(still(2, 600_000), Some(550_000));
    }

    #[test]
    fn a_thread_that_ended_is_forgotten() {
        let ended = Event::Exit { pid: 1, tid: 1, at: 20 };
        let mut timeline = timeline(&[switch(1, 10, IN), ended, switch(2, 10, BLOCKED)]);
        assert_eq!(timeline.state(1, 10), Some(CpuState::Running));
        assert_eq!(timeline.state(1, 20), None);
        timeline.forget_before(30);
        assert_eq!(timeline.threads.len(), 1);
        assert_eq!(timeline.state(2, 500), Some(CpuState::SwitchedOut));
    }

    #[test]
    fn a_switch_that_is_told_twice_counts_once() {
        let mut timeline = Timeline::new(100);
        for at in [80, 80, 10, 10, 80] {
            timeline.note(&switch(1, at, IN));
        }
        timeline.complete_until(100);
        assert_eq!((timeline.threads[&1].all.len(), timeline.changes), (2, 2));
    }

    #[test]
    fn memory_is_bounded() {
        let mut timeline = Timeline::new(100);
        for at in 0..10_000u64 {
            timeline.note(&switch((at % 7) as u32, at, IN));
            assert!(timeline.changes <= 100);
        }
        timeline.complete_until(10_000);
        assert_eq!(timeline.state(3, 10_000), Some(CpuState::Running));
        for tid in 0..10_000 {
            timeline.note(&switch(tid, 10_000, IN));
            timeline.note(&Event::Lost { after: u64::from(tid), until: 20_000, records: 1 });
            assert!(timeline.changes <= 100 && timeline.gaps.len() <= MOST_GAPS);
        }
    }

    proptest! {
        #[test]
        fn any_times_are_survived(
            events in prop::collection::vec((any::<u32>(), any::<u64>(), any::<bool>()), 0..200),
            asked in any::<u64>(),
        ) {
            let mut timeline = Timeline::new(20);
            for (tid, at, lost) in events {
                timeline.note(&switch(tid % 8, at, IN));
                if lost {
                    timeline.note(&Event::Lost { after: asked, until: at, records: 1 });
                }
                timeline.complete_until(asked);
                let _ = timeline.state(tid % 8, asked);
                prop_assert!(timeline.changes <= 20);
            }
        }

        #[test]
        fn forgetting_changes_no_later_answer(
            events in prop::collection::vec((0..3u32, 0..100u64, 0..10u8), 0..60),
            horizon in 0..100u64,
        ) {
            let events: Vec<_> = events
                .into_iter()
                .map(|(tid, at, kind)| match kind {
                    0..=1 => switch(tid, at, IN),
                    2..=3 => switch(tid, at, PREEMPTED),
                    4..=5 => switch(tid, at, BLOCKED),
                    6..=7 => Event::Unfollowed { tid, at },
                    8 => Event::Followed { tid, at },
                    _ => Event::Lost { after: at, until: at + u64::from(tid), records: 1 },
                })
                .collect();
            let whole = timeline(&events);
            let mut shortened = Timeline::new(1000);
            for event in &events {
                shortened.note(event);
            }
            shortened.complete_until(1000);
            shortened.forget_before(horizon);
            let kept: usize = shortened.threads.values().map(|changes| changes.all.len()).sum();
            prop_assert_eq!(kept, shortened.changes);
            for tid in 0..3 {
                for at in horizon..101 {
                    prop_assert_eq!(whole.state(tid, at), shortened.state(tid, at));
                    let still = |timeline: &Timeline| timeline.still_since(tid, at, true);
                    prop_assert_eq!(still(&whole), still(&shortened));
                }
            }
        }
    }
}

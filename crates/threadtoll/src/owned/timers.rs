//! Closures that an owner runs later. They are given a `T` and a `C`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sync::{Arc, AtomicU32, AtomicUsize, Instant, Ordering};

/// Cancelled timers that an owner keeps at least before it looks for them.
const FEW: usize = 64;

type Once<T, C> = Box<dyn FnOnce(&mut T, &mut C) + Send>;
type Again<T, C> = Box<dyn FnMut(&mut T, &mut C) + Send>;

pub(super) enum Body<T, C> {
    Once(Once<T, C>),
    Every(Duration, Again<T, C>),
}

const SET: u32 = 0;
const CANCELLED: u32 = 1;
/// A timer that runs once has begun to run.
const OVER: u32 = 2;

// Relaxed operations are enough: a timer's closure shares nothing with whoever cancels it.
#[derive(Debug)]
struct Token {
    state: AtomicU32,
    /// Number of timers of this owner that were cancelled and that it has not dropped.
    cancelled: Arc<AtomicUsize>,
}

/// A timer of an [owner](super::Owner). Dropping it does not cancel the timer.
#[derive(Clone, Debug)]
pub struct Timer(Arc<Token>);

impl Timer {
    pub(super) fn new(cancelled: &Arc<AtomicUsize>) -> Self {
        let (state, cancelled) = (AtomicU32::new(SET), Arc::clone(cancelled));
        Timer(Arc::new(Token { state, cancelled }))
    }

    /// Cancels the timer. If the owner's own thread calls this, the closure is never run again. If
    /// another thread does, one last run may still begin; an [`ask`](super::Handle::ask) after this
    /// call returns when such a run is over.
    ///
    /// The owner drops the closure at the latest when it would have run it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut owner, handle) = threadtoll::owned::new(0);
    /// let timer = handle.every(Duration::from_millis(1), |count, _| *count += 1);
    /// owner.run_once(Duration::ZERO);
    /// timer.cancel();
    /// owner.run_once(Duration::from_millis(5));
    /// assert_eq!(owner.into_state(), 0);
    /// ```
    pub fn cancel(&self) {
        let Token { state, cancelled } = &*self.0;
        let relaxed = Ordering::Relaxed;
        // Before the state, so that the count is never too low.
        cancelled.fetch_add(1, relaxed);
        if state.compare_exchange(SET, CANCELLED, relaxed, relaxed).is_err() {
            cancelled.fetch_sub(1, relaxed);
        }
    }

    /// Returns `true` if the timer was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) == CANCELLED
    }

    /// A timer that runs once begins to run. Returns `false` if it was cancelled.
    pub(super) fn begin(&self) -> bool {
        let relaxed = Ordering::Relaxed;
        self.0.state.compare_exchange(SET, OVER, relaxed, relaxed).is_ok()
    }
}

pub(super) struct Entry<T, C> {
    pub(super) timer: Timer,
    pub(super) body: Body<T, C>,
}

/// The timers of an owner, by the time at which they are due. Those due at the same time are in the
/// order in which they were set.
pub(super) struct Timers<T, C> {
    entries: BTreeMap<(Instant, u64), Entry<T, C>>,
    next: u64,
    /// Number of cancelled timers beyond which the owner looks for them.
    sweep_at: usize,
    /// See [`Token`].
    cancelled: Arc<AtomicUsize>,
}

impl<T, C> Timers<T, C> {
    pub(super) fn new(cancelled: Arc<AtomicUsize>) -> Self {
        Timers { entries: BTreeMap::new(), next: 0, sweep_at: FEW, cancelled }
    }

    /// Sets a timer, unless it was cancelled before. Drops those that were cancelled if there are
    /// many.
    pub(super) fn insert(&mut self, due: Instant, entry: Entry<T, C>) {
        if entry.timer.is_cancelled() {
            self.forget(1);
            return;
        }
        self.next += 1;
        self.entries.insert((due, self.next), entry);
        // Some of them may not have been set yet.
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        if cancelled <= self.sweep_at {
            self.sweep_at = self.sweep_at.min(self.allowed(cancelled));
            return;
        }
        let gone = self.entries.extract_if(.., |_, entry| entry.timer.is_cancelled());
        let gone: Vec<_> = gone.collect();
        self.forget(gone.len());
        self.sweep_at = self.allowed(cancelled - gone.len().min(cancelled));
        // Last, because destructors may panic.
        drop(gone);
    }

    /// Number of cancelled timers that are allowed if there are this many now.
    fn allowed(&self, cancelled: usize) -> usize {
        cancelled + FEW.max(self.entries.len() / 2)
    }

    pub(super) fn forget(&self, cancelled: usize) {
        self.cancelled.fetch_sub(cancelled, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When the next timer is due. It may have been cancelled.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes out the first timer that is due. Drops those before it that were cancelled.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Entry<T, C>)> {
        loop {
            let first = self.entries.first_entry()?;
            let due = first.key().0;
            if due > now {
                return None;
            }
            let entry = first.remove();
            if !entry.timer.is_cancelled() {
                return Some((due, entry));
            }
            self.forget(1);
        }
    }

    /// Takes out all timers.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Entry<T, C>> + use<T, C> {
        std::mem::take(&mut self.entries).into_values()
    }
}

/// The next time after `now` at which a timer is due that was due at `due`. Times that have passed
/// are left out. `None` if the clock cannot represent it.
pub(super) fn next_time(due: Instant, period: Duration, now: Instant) -> Option<Instant> {
    let late = now.saturating_duration_since(due);
    // A remainder of 64-bit nanoseconds lasts for 584 years.
    let since_last = late.as_nanos() % period.as_nanos().max(1);
    let left = period.saturating_sub(Duration::from_nanos(since_last as u64));
    now.max(due).checked_add(left)
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn missed_times_are_left_out() {
        let due = Instant::now();
        let ms = Duration::from_millis;
        for (late, next) in [(0, 10), (3, 10), (10, 20), (25, 30), (30, 40)] {
            assert_eq!(next_time(due, ms(10), due + ms(late)), Some(due + ms(next)), "{late} late");
        }
        // The owner may look at the clock before the timer is due.
        assert_eq!(next_time(due + ms(5), ms(10), due), Some(due + ms(15)));
        assert_eq!(next_time(due, Duration::MAX, due), None);
    }

    #[test]
    fn cancelled_timers_do_not_pile_up() {
        let count = Arc::new(AtomicUsize::new(0));
        let mut timers = Timers::<(), ()>::new(Arc::clone(&count));
        let later = Instant::now() + Duration::from_secs(3600);
        let entry =
            |timer: &Timer| Entry { timer: timer.clone(), body: Body::Once(Box::new(|(), ()| ())) };
        let kept = Timer::new(&count);
        timers.insert(later, entry(&kept));
        // Cancelled before they are set, or afterwards.
        for round in 0..20_000 {
            let timer = Timer::new(&count);
            if round % 3 == 0 {
                timer.cancel();
            }
            timers.insert(later, entry(&timer));
            timer.cancel();
            timer.cancel();
            assert!(timers.entries.len() <= 2 * FEW + 2, "{}", timers.entries.len());
        }
        // Many are cancelled long before they are set.
        let early: Vec<_> = (0..10_000).map(|_| Timer::new(&count)).collect();
        early.iter().for_each(Timer::cancel);
        timers.insert(later, entry(&Timer::new(&count)));
        early.iter().for_each(|timer| timers.insert(later, entry(timer)));
        assert_eq!(timers.entries.len(), 2);
        assert_eq!(count.load(Ordering::Relaxed), 0);
        let due = Timer::new(&count);
        timers.insert(Instant::now(), entry(&due));
        due.cancel();
        assert!(timers.pop_due(Instant::now()).is_none());
        assert_eq!(count.load(Ordering::Relaxed), 0);
        // One that has run cannot be cancelled.
        assert!(kept.begin());
        kept.cancel();
        assert_eq!((kept.is_cancelled(), count.load(Ordering::Relaxed)), (false, 0));
    }
}

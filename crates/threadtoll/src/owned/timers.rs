//! Closures that an owner runs later. They are given a `T` and a `C`.

use std::collections::BTreeMap;
use std::fmt;
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

/// What a timer's token shares with the owner.
#[derive(Debug)]
struct Token {
    /// 1 once the timer was cancelled.
    cancelled: AtomicU32,
    /// Number of timers of this owner that were cancelled since it last looked for them.
    count: Arc<AtomicUsize>,
}

/// A timer of an [owner](super::Owner). Dropping it does not cancel the timer.
#[derive(Clone, Debug)]
pub struct Timer(Arc<Token>);

impl Timer {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        Timer(Arc::new(Token { cancelled: AtomicU32::new(0), count: Arc::clone(count) }))
    }

    /// Cancels the timer. If its closure runs at this moment on another thread, that run goes on.
    /// Otherwise the closure is never run again.
    ///
    /// The owner drops the closure at the latest when it would have run it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut owner, handle) = threadtoll::owned::new(0);
    /// let timer = handle.every(Duration::from_millis(1), |count, _| *count += 1);
    /// timer.cancel();
    /// owner.run_once(Duration::from_millis(2));
    /// assert_eq!(owner.into_state(), 0);
    /// ```
    pub fn cancel(&self) {
        // Relaxed: a timer's closure shares nothing with whoever cancels it.
        if self.0.cancelled.swap(1, Ordering::Relaxed) == 0 {
            self.0.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the timer was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed) != 0
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
}

impl<T, C> Timers<T, C> {
    pub(super) fn new() -> Self {
        Timers { entries: BTreeMap::new(), next: 0 }
    }

    pub(super) fn insert(&mut self, due: Instant, entry: Entry<T, C>) {
        let cancelled = entry.timer.0.count.load(Ordering::Relaxed);
        if cancelled > FEW.max(self.entries.len() / 2) {
            entry.timer.0.count.fetch_sub(cancelled, Ordering::Relaxed);
            self.entries.retain(|_, entry| !entry.timer.is_cancelled());
        }
        self.next += 1;
        self.entries.insert((due, self.next), entry);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When the next timer is due. It may have been cancelled.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes out the first timer if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Entry<T, C>)> {
        let first = self.entries.first_entry()?;
        let due = first.key().0;
        (due <= now).then(|| (due, first.remove()))
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

impl<T, C> fmt::Debug for Timers<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("count", &self.entries.len()).finish()
    }
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
        let mut timers = Timers::<(), ()>::new();
        let later = Instant::now() + Duration::from_secs(3600);
        let kept = Timer::new(&count);
        timers.insert(later, Entry { timer: kept, body: Body::Once(Box::new(|_, _| ())) });
        for _ in 0..10_000 {
            let timer = Timer::new(&count);
            let body = Body::Once(Box::new(|_, _| ()));
            timers.insert(later, Entry { timer: timer.clone(), body });
            timer.cancel();
            timer.cancel();
            assert!(timers.entries.len() <= 2 * FEW + 2, "{}", timers.entries.len());
        }
        let kept = timers.take().filter(|entry| !entry.timer.is_cancelled()).count();
        assert_eq!(kept, 1);
    }
}

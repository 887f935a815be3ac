//! Reconstructs the queue at a lock from the stamps of the threads that took it.
//!
//! Counting the queue at run time would need a second lock. Stamps from one clock yield the queue
//! afterwards, with an error far below the length of a wait.

/// Stamps of one acquisition, in ticks of a clock that all threads share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acquisition {
    /// End of the thread's previous acquisition.
    pub idle_at: u64,
    /// Time of the request.
    pub requested_at: u64,
    /// Time of the acquisition.
    pub acquired_at: u64,
    /// Time just before the release.
    pub released_at: u64,
    /// Units of work done without the lock, before the request.
    pub think_units: u64,
    /// Units of work done with the lock.
    pub hold_units: u64,
}

/// Figures of one lock in a window of time. Times are in ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTrace {
    /// Units of work done.
    pub units: f64,
    /// Number of acquisitions by each thread.
    pub acquisitions: Vec<u64>,
    /// Waits that ended within the window.
    pub waits: Vec<Wait>,
    /// Waiting time, summed over threads.
    pub wait: f64,
    /// Time for which the lock was held.
    pub hold: f64,
    /// Time spent neither waiting nor holding, summed over threads.
    pub think: f64,
    /// Number of threads still waiting just after an acquisition, summed over acquisitions.
    pub queue_on_entry: u64,
    /// Maximum number of threads that waited at the same time.
    pub queue_max: u32,
    /// Number of acquisitions by threads that had waited for another thread to release the lock.
    pub handoffs: u64,
    /// Time from release to acquisition, summed over hand-offs.
    pub handoff: f64,
    /// Length of the longest wait.
    pub longest_wait: f64,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// End of the wait.
    pub ended_at: u64,
    /// Length of the wait.
    pub length: u64,
    /// Index of the thread.
    pub thread: u32,
}

/// The first acquisitions of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Length of the excerpt. All acquisitions in that time are included.
    pub length: u64,
    /// Times of request, acquisition and release, by thread, since the window began. They are
    /// clipped to the excerpt.
    pub threads: Vec<Vec<[u64; 3]>>,
}

impl Excerpt {
    /// Converts the times of the excerpt to another unit.
    pub fn converted(self, convert: impl Fn(u64) -> u64) -> Self {
        let thread =
            |thread: Vec<[u64; 3]>| thread.into_iter().map(|at| at.map(&convert)).collect();
        Excerpt {
            length: convert(self.length),
            threads: self.threads.into_iter().map(thread).collect(),
        }
    }
}

/// The first `most` acquisitions, of all threads together, in the window from `from` to `until`.
/// `None` if there are none.
pub fn excerpt(
    threads: &[Vec<Acquisition>],
    from: u64,
    until: u64,
    most: usize,
) -> Option<Excerpt> {
    let first = |all: &[Acquisition]| -> Vec<Acquisition> {
        let inside = |one: &&Acquisition| one.released_at > from && one.requested_at < until;
        all.iter().filter(inside).take(most + 1).copied().collect()
    };
    let mut threads: Vec<Vec<Acquisition>> = threads.iter().map(|all| first(all)).collect();
    let mut requests: Vec<u64> = threads.iter().flatten().map(|one| one.requested_at).collect();
    requests.sort_unstable();
    let until = requests.get(most).map_or(until, |next| until.min(*next));
    if requests.is_empty() || until <= from {
        return None;
    }
    threads.iter_mut().for_each(|all| all.retain(|one| one.requested_at < until));
    let moments = |one: Acquisition| {
        let acquired_at = one.acquired_at.max(one.requested_at);
        let moments = [one.requested_at, acquired_at, one.released_at.max(acquired_at)];
        moments.map(|at| at.clamp(from, until) - from)
    };
    let threads = threads.into_iter().map(|all| all.into_iter().map(moments).collect()).collect();
    Some(Excerpt { length: until - from, threads })
}

/// Share of the time from `begin` to `end` that lies in the window from `from` to `until`.
pub fn share_within(begin: u64, end: u64, from: u64, until: u64) -> f64 {
    let inside = end.min(until).saturating_sub(begin.max(from));
    if end > begin { inside as f64 / (end - begin) as f64 } else { 0.0 }
}

/// Reconstructs the queue in the window from `from` to `until`. The acquisitions of each thread
/// must be in order.
pub fn reconstruct(threads: &[Vec<Acquisition>], from: u64, until: u64) -> QueueTrace {
    let mut trace = QueueTrace::default();
    let within = |at: u64| (from..until).contains(&at);
    let part = |begin: u64, end: u64| end.min(until).saturating_sub(begin.max(from)) as f64;
    let mut events: Vec<Event> =
        Vec::with_capacity(3 * threads.iter().map(Vec::len).sum::<usize>());
    for (thread, all) in threads.iter().enumerate() {
        let thread = thread as u32;
        let mut count = 0;
        for (at, acquisition) in all.iter().enumerate() {
            let Acquisition {
                idle_at,
                requested_at,
                acquired_at,
                released_at,
                think_units,
                hold_units,
            } = *acquisition;
            trace.units += think_units as f64 * share_within(idle_at, requested_at, from, until);
            trace.units += hold_units as f64 * share_within(acquired_at, released_at, from, until);
            trace.think += part(idle_at, requested_at);
            trace.wait += part(requested_at, acquired_at);
            trace.hold += part(acquired_at, released_at);
            // After the release, the lock's own code still runs. That time counts as think time.
            let next = all.get(at + 1).map_or(released_at, |next| next.idle_at);
            trace.think += part(released_at, next);
            if within(acquired_at) {
                count += 1;
                let length = acquired_at.saturating_sub(requested_at);
                trace.waits.push(Wait { ended_at: acquired_at, length, thread });
                trace.longest_wait = trace.longest_wait.max(length as f64);
            }
            let acquired_at = acquired_at.max(requested_at);
            let released_at = released_at.max(acquisition.acquired_at);
            events.extend(
                [
                    (requested_at, Action::Request),
                    (acquired_at, Action::Acquire),
                    (released_at, Action::Release),
                ]
                .map(|(at, action)| Event { at, action, requested_at, thread }),
            );
        }
        trace.acquisitions.push(count);
    }
    count_queue(&mut events, &mut trace, within);
    trace
}

/// Events at equal times are counted in the order of these variants, so a release comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Release,
    Request,
    Acquire,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    action: Action,
    /// Start of the thread's wait.
    requested_at: u64,
    thread: u32,
}

fn count_queue(events: &mut [Event], trace: &mut QueueTrace, within: impl Fn(u64) -> bool) {
    events.sort_unstable_by_key(|event| (event.at, event.action, event.thread));
    let (mut waiting, mut holding) = (0u32, 0u32);
    let mut released: Option<(u64, u32)> = None;
    for event in events {
        let inside = within(event.at);
        match event.action {
            Action::Request => {
                waiting += 1;
                // A thread that requests a free lock acquires it at once, so it does not wait.
                if inside && holding > 0 {
                    trace.queue_max = trace.queue_max.max(waiting);
                }
            }
            Action::Release => {
                holding = holding.saturating_sub(1);
                released = Some((event.at, event.thread));
            }
            Action::Acquire => {
                waiting = waiting.saturating_sub(1);
                holding += 1;
                if !inside {
                    continue;
                }
                trace.queue_on_entry += u64::from(waiting);
                trace.queue_max = trace.queue_max.max(waiting);
                let contended = released
                    .filter(|(at, thread)| *at >= event.requested_at && *thread != event.thread);
                if let Some((at, _)) = contended {
                    trace.handoffs += 1;
                    trace.handoff += event.at as f64 - at as f64;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquisition(
        idle_at: u64,
        requested_at: u64,
        acquired_at: u64,
        released_at: u64,
    ) -> Acquisition {
        Acquisition {
            idle_at,
            requested_at,
            acquired_at,
            released_at,
            think_units: requested_at - idle_at,
            hold_units: released_at - acquired_at,
        }
    }

    /// The first thread holds from 10 to 30. The second requests at 20 and acquires at 33. The
    /// third requests at 25 and acquires at 52.
    fn three() -> Vec<Vec<Acquisition>> {
        vec![
            vec![acquisition(0, 10, 10, 30)],
            vec![acquisition(0, 20, 33, 50)],
            vec![acquisition(0, 25, 52, 60)],
        ]
    }

    #[test]
    fn queue_waits_and_hand_offs_come_from_stamps() {
        let trace = reconstruct(&three(), 0, 100);
        assert_eq!(trace.acquisitions, [1, 1, 1]);
        let waits = [(10, 0, 0), (33, 13, 1), (52, 27, 2)].map(|(ended_at, length, thread)| Wait {
            ended_at,
            length,
            thread,
        });
        assert_eq!(trace.waits, waits);
        assert_eq!((trace.wait, trace.hold, trace.longest_wait), (40.0, 45.0, 27.0));
        assert_eq!(
            (trace.queue_on_entry, trace.queue_max),
            (1, 2),
            "the third still waits when the second has it"
        );
        assert_eq!((trace.handoffs, trace.handoff), (2, 5.0));
        assert!(
            (trace.units - (10.0 + 20.0 + 25.0 + 20.0 + 17.0 + 8.0)).abs() < 1e-9,
            "{}",
            trace.units
        );
    }

    #[test]
    fn an_excerpt_has_all_acquisitions_until_its_end() {
        let all = excerpt(&three(), 5, 100, 3).unwrap();
        assert_eq!(all.length, 95);
        assert_eq!(all.threads, [[[5, 5, 25]], [[15, 28, 45]], [[20, 47, 55]]]);
        // The excerpt ends with the third thread's request, which cuts off the second thread's
        // wait.
        let first = excerpt(&three(), 15, 100, 2).unwrap();
        let expected =
            Excerpt { length: 10, threads: vec![vec![[0, 0, 10]], vec![[5, 10, 10]], vec![]] };
        assert_eq!(first, expected);
        assert_eq!(first.converted(|ticks| ticks / 5).threads[1], [[1, 2, 2]]);
        assert_eq!(excerpt(&three(), 60, 100, 3), None, "nothing happens");
        assert_eq!(excerpt(&three(), 26, 100, 1), None, "more threads than that are at the lock");
    }

    #[test]
    fn only_what_lies_in_the_window_counts() {
        let trace = reconstruct(&three(), 20, 40);
        assert_eq!(trace.acquisitions, [0, 1, 0]);
        assert_eq!((trace.wait, trace.hold), (13.0 + 15.0, 10.0 + 7.0));
        assert_eq!((trace.queue_on_entry, trace.handoffs), (1, 1));
        assert!((trace.units - (5.0 + 10.0 + 7.0)).abs() < 1e-9, "{}", trace.units);
    }
}

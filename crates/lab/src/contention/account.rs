//! From the stamps of all threads to what happened at the lock.
//!
//! The queue is not counted while it is there: a counter that all threads write would be a second
//! lock. The stamps say it afterwards, because the clock is the same on all CPUs, to within far
//! less than a wait.

use threadtoll_record::ContentionSeen;

use super::contender::{Taken, share_within};

/// What the threads did within a window, in ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    /// Units done.
    pub(crate) units: f64,
    /// Acquisitions of each thread.
    pub(crate) acquisitions: Vec<u64>,
    /// Each wait that ended in the window: when, how long, and whose it was.
    pub(crate) waits: Vec<(u64, u64, u32)>,
    /// Times in it are ticks.
    pub(crate) seen: ContentionSeen,
}

/// Makes the account of the window from `from` until `until`.
pub(crate) fn account(threads: &[Vec<Taken>], from: u64, until: u64) -> Account {
    let mut account = Account::default();
    let within = |at: u64| (from..until).contains(&at);
    let part = |begin: u64, end: u64| end.min(until).saturating_sub(begin.max(from)) as f64;
    let mut moments: Vec<Moment> =
        Vec::with_capacity(3 * threads.iter().map(Vec::len).sum::<usize>());
    for (thread, all) in threads.iter().enumerate() {
        let thread = thread as u32;
        let mut got = 0;
        for (at, taken) in all.iter().enumerate() {
            let Taken { free, want, got: has, released, think, hold } = *taken;
            account.units += think as f64 * share_within(free, want, from, until);
            account.units += hold as f64 * share_within(has, released, from, until);
            account.seen.think_ns += part(free, want);
            account.seen.wait_ns += part(want, has);
            account.seen.hold_ns += part(has, released);
            // From letting go until the thread is free to think on, the lock's own code runs: it is
            // part of thinking.
            let next = all.get(at + 1).map_or(released, |next| next.free);
            account.seen.think_ns += part(released, next);
            if within(has) {
                got += 1;
                account.waits.push((has, has.saturating_sub(want), thread));
                account.seen.starved_ns =
                    account.seen.starved_ns.max(has.saturating_sub(want) as f64);
            }
            moments.push(Moment { at: want, what: What::Wants, want, of: thread });
            moments.push(Moment { at: has.max(want), what: What::Has, want, of: thread });
            moments.push(Moment { at: released.max(has), what: What::LetsGo, want, of: thread });
        }
        account.acquisitions.push(got);
    }
    queue(&mut moments, &mut account.seen, within);
    account
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    LetsGo,
    Wants,
    Has,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    at: u64,
    what: What,
    /// When the same thread had begun to wait.
    want: u64,
    of: u32,
}

/// Goes through all moments in order and counts who waits.
fn queue(moments: &mut [Moment], seen: &mut ContentionSeen, within: impl Fn(u64) -> bool) {
    moments.sort_unstable_by_key(|moment| (moment.at, moment.what, moment.of));
    let (mut waiting, mut holding) = (0u32, 0u32);
    let mut released: Option<(u64, u32)> = None;
    for moment in moments {
        let inside = within(moment.at);
        match moment.what {
            What::Wants => {
                waiting += 1;
                // While nobody has the lock, who asks takes it, or is about to.
                if inside && holding > 0 {
                    seen.queue_max = seen.queue_max.max(waiting);
                }
            }
            What::LetsGo => {
                holding = holding.saturating_sub(1);
                released = Some((moment.at, moment.of));
            }
            What::Has => {
                waiting = waiting.saturating_sub(1);
                holding += 1;
                if !inside {
                    continue;
                }
                seen.queue_on_entry += u64::from(waiting);
                seen.queue_max = seen.queue_max.max(waiting);
                let contended = released.filter(|(at, of)| *at >= moment.want && *of != moment.of);
                if let Some((at, _)) = contended {
                    seen.handoffs += 1;
                    seen.handoff_ns += moment.at as f64 - at as f64;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(free: u64, want: u64, got: u64, released: u64) -> Taken {
        Taken { free, want, got, released, think: want - free, hold: released - got }
    }

    /// The first thread holds from 10 to 30, the second wants it at 20 and has it at 33, the third
    /// wants it at 25 and has it at 52.
    fn three() -> Vec<Vec<Taken>> {
        vec![vec![taken(0, 10, 10, 30)], vec![taken(0, 20, 33, 50)], vec![taken(0, 25, 52, 60)]]
    }

    #[test]
    fn queue_waits_and_hand_offs_come_from_stamps() {
        let account = account(&three(), 0, 100);
        assert_eq!(account.acquisitions, [1, 1, 1]);
        assert_eq!(account.waits, [(10, 0, 0), (33, 13, 1), (52, 27, 2)]);
        let seen = account.seen;
        assert_eq!((seen.wait_ns, seen.hold_ns, seen.starved_ns), (40.0, 45.0, 27.0));
        assert_eq!(
            (seen.queue_on_entry, seen.queue_max),
            (1, 2),
            "the third still waits when the second has it"
        );
        assert_eq!((seen.handoffs, seen.handoff_ns), (2, 5.0));
        assert!(
            (account.units - (10.0 + 20.0 + 25.0 + 20.0 + 17.0 + 8.0)).abs() < 1e-9,
            "{}",
            account.units
        );
    }

    #[test]
    fn only_what_lies_in_the_window_counts() {
        let account = account(&three(), 20, 40);
        assert_eq!(account.acquisitions, [0, 1, 0]);
        let seen = account.seen;
        assert_eq!((seen.wait_ns, seen.hold_ns), (13.0 + 15.0, 10.0 + 7.0));
        assert_eq!((seen.queue_on_entry, seen.handoffs), (1, 1));
        assert!((account.units - (5.0 + 10.0 + 7.0)).abs() < 1e-9, "{}", account.units);
    }
}

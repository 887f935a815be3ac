//! Overload of a lock: for a while, more callers arrive from outside than the lock can serve.
//!
//! ```text
//!   arrivals        ┌────────────┐
//!   per second  ────┘  overload  └──────────────────
//!                before │            │ after
//!   queue               ╱╲___________   recovery: until nobody waits
//! ```
//!
//! Arrivals do not depend on those who wait, so a queue without a bound grows until the overload
//! ends, and callers who arrive later wait behind it. A bound refuses callers instead, and a
//! caller with a deadline may give up. Callers who get the lock only after their deadline waste
//! it: nobody wants the result any more.
//!
//! [`outcome`] computes the same figures from measured callers and from simulated ones
//! ([`simulate()`]).

mod simulate;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub use simulate::{OverloadedLock, simulate};

use crate::random::unit;

/// Number of equal slices of a run, for each of which there is a mean queue.
pub const SLICES: usize = 60;

/// Rates of arrival over time. They are multiples of the lock's capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    /// Number of callers per second that the lock can serve.
    pub capacity_per_s: f64,
    /// Rate before the overload and after it.
    pub usual: f64,
    /// Rate during the overload.
    pub overload: f64,
    /// Time before the overload, in nanoseconds.
    pub before_ns: f64,
    /// Duration of the overload, in nanoseconds.
    pub overload_ns: f64,
    /// Time after the overload, in nanoseconds.
    pub after_ns: f64,
}

impl Phases {
    /// Time from the first phase's beginning to the last one's end, in nanoseconds.
    pub fn length_ns(&self) -> f64 {
        self.before_ns + self.overload_ns + self.after_ns
    }

    /// End of the overload, in nanoseconds since the beginning.
    pub fn overload_end_ns(&self) -> f64 {
        self.before_ns + self.overload_ns
    }

    /// Draws the times at which callers arrive, in ascending order.
    ///
    /// Each phase has exactly as many callers as its rate gives, at independent times: a Poisson
    /// process, given its number of arrivals. Equal seeds give equal arrivals before and during
    /// the overload, however long the time after it.
    pub fn due_ns(&self, seed: u64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut due = Vec::new();
        let (mut from, mut carried) = (0.0, 0.0);
        for (rate, length) in [
            (self.usual, self.before_ns),
            (self.overload, self.overload_ns),
            (self.usual, self.after_ns),
        ] {
            carried += rate * self.capacity_per_s * length / 1e9;
            let count = carried.round().max(0.0);
            carried -= count;
            let first = due.len();
            due.extend((0..count as usize).map(|_| from + unit(&mut rng) * length));
            due[first..].sort_by(f64::total_cmp);
            from += length;
        }
        due
    }
}

/// Rules for callers who wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Number of callers that may wait; any further one is refused. `None` for no limit.
    pub bound: Option<u32>,
    /// Time in which a caller must get the lock, in nanoseconds.
    pub deadline_ns: f64,
    /// True if callers give up at their deadline.
    pub gives_up: bool,
}

/// A caller. Times are in nanoseconds since the beginning of the first phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caller {
    /// Time of arrival.
    pub due_ns: f64,
    /// True if no thread was free to ask for the lock when the caller arrived.
    pub in_front: bool,
    /// The caller's outcome.
    pub fate: Fate,
}

/// A caller's outcome: it was served, refused, or gave up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// Too many others waited.
    Refused,
    /// The caller gave up at its deadline.
    GaveUp,
    /// The caller got the lock at this time.
    Served(f64),
}

/// Figures of an overload. Unless stated otherwise, callers are those who arrive during the
/// overload.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Number of callers.
    pub arrived: u32,
    /// Number of callers who get the lock before their deadline.
    pub in_time: u32,
    /// Number of callers who get the lock after their deadline.
    pub late: u32,
    /// Number of callers who are refused.
    pub refused: u32,
    /// Number of callers who give up.
    pub gave_up: u32,
    /// Number of callers for whom no thread was free when they arrived.
    pub in_front: u32,
    /// Number of waiting callers, averaged over the overload.
    pub queue_mean: f64,
    /// Largest number of callers who wait at once, in the whole run.
    pub queue_max: u32,
    /// Time from the end of the overload until nobody waits, in nanoseconds; `None` if somebody
    /// waits until the end of the run.
    pub recovery_ns: Option<f64>,
    /// Number of waiting callers, averaged over each of [`SLICES`] slices of the run.
    pub queue: Vec<f64>,
}

/// Computes the figures of these callers.
pub fn outcome(callers: &[Caller], phases: &Phases, deadline_ns: f64) -> Outcome {
    let from_ns = phases.before_ns;
    let until_ns = phases.overload_end_ns();
    let of_overload =
        || callers.iter().filter(|caller| (from_ns..until_ns).contains(&caller.due_ns));
    let count = |is: &dyn Fn(&Caller) -> bool| of_overload().filter(|caller| is(caller)).count();
    let in_time = |caller: &Caller| match caller.fate {
        Fate::Served(at_ns) => Some(at_ns - caller.due_ns <= deadline_ns),
        Fate::Refused | Fate::GaveUp => None,
    };
    let waits: Vec<[f64; 2]> =
        callers.iter().filter_map(|caller| waited(caller, deadline_ns)).collect();
    let slice_ns = phases.length_ns() / SLICES as f64;
    let within = |[from, until]: [f64; 2]| {
        waits.iter().map(|[begin, end]| (end.min(until) - begin.max(from)).max(0.0)).sum::<f64>()
    };
    let slice = |nth: usize| {
        let from = nth as f64 * slice_ns;
        within([from, from + slice_ns]) / slice_ns
    };
    let (queue_max, recovery_ns) = longest_and_recovery(&waits, phases);
    Outcome {
        arrived: of_overload().count() as u32,
        in_time: count(&|caller| in_time(caller) == Some(true)) as u32,
        late: count(&|caller| in_time(caller) == Some(false)) as u32,
        refused: count(&|caller| caller.fate == Fate::Refused) as u32,
        gave_up: count(&|caller| caller.fate == Fate::GaveUp) as u32,
        in_front: count(&|caller| caller.in_front) as u32,
        queue_mean: within([from_ns, until_ns]) / phases.overload_ns,
        queue_max,
        recovery_ns,
        queue: (0..SLICES).map(slice).collect(),
    }
}

/// Time at which a caller begins to wait, and time at which the caller ends to wait.
fn waited(caller: &Caller, deadline_ns: f64) -> Option<[f64; 2]> {
    let until_ns = match caller.fate {
        Fate::Refused => return None,
        Fate::GaveUp => caller.due_ns + deadline_ns,
        Fate::Served(at_ns) => at_ns,
    };
    (until_ns > caller.due_ns).then_some([caller.due_ns, until_ns])
}

fn longest_and_recovery(waits: &[[f64; 2]], phases: &Phases) -> (u32, Option<f64>) {
    let end_ns = phases.overload_end_ns();
    let mut changes: Vec<(f64, i32)> =
        waits.iter().flat_map(|[from, until]| [(*from, 1), (*until, -1)]).collect();
    // A caller who goes makes room before another one comes.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let waiting_at_end: i32 =
        changes.iter().take_while(|(at, _)| *at <= end_ns).map(|(_, change)| change).sum();
    let mut recovered_ns = (waiting_at_end == 0).then_some(end_ns);
    let (mut waiting, mut longest) = (0, 0);
    for (at, change) in changes {
        waiting += change;
        longest = longest.max(waiting);
        if at > end_ns && waiting == 0 && recovered_ns.is_none() {
            recovered_ns = Some(at);
        }
    }
    let recovery_ns = recovered_ns.filter(|at| *at <= phases.length_ns()).map(|at| at - end_ns);
    (longest as u32, recovery_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: Phases = Phases {
        capacity_per_s: 1e9,
        usual: 0.5,
        overload: 2.0,
        before_ns: 100.0,
        overload_ns: 200.0,
        after_ns: 300.0,
    };

    #[test]
    fn each_phase_has_the_callers_that_its_rate_gives() {
        for seed in 0..20 {
            let due = PHASES.due_ns(seed);
            let within =
                |from: f64, until: f64| due.iter().filter(|at| (from..until).contains(*at)).count();
            assert!(due.is_sorted());
            assert_eq!((within(0.0, 100.0), within(100.0, 300.0), due.len()), (50, 400, 600));
            let longer = Phases { after_ns: 3000.0, ..PHASES }.due_ns(seed);
            assert_eq!(due[..450], longer[..450], "a longer time after changes nothing before");
        }
        assert_ne!(PHASES.due_ns(1), PHASES.due_ns(2));
        let tiny = Phases { capacity_per_s: 1e6, ..PHASES };
        assert_eq!(tiny.due_ns(1).len(), 1, "fractions carry over to the next phase");
    }

    #[test]
    fn figures_are_those_counted_by_hand() {
        let caller = |due_ns: f64, fate: Fate| Caller { due_ns, in_front: due_ns > 200.0, fate };
        let callers = [
            caller(10.0, Fate::Served(10.0)),
            caller(110.0, Fate::Served(130.0)),
            caller(120.0, Fate::Refused),
            caller(150.0, Fate::GaveUp),
            caller(250.0, Fate::Served(420.0)),
            caller(310.0, Fate::Served(430.0)),
            caller(500.0, Fate::Served(510.0)),
        ];
        let found = outcome(&callers, &PHASES, 100.0);
        assert_eq!((found.arrived, found.in_time, found.late), (4, 1, 1));
        assert_eq!((found.refused, found.gave_up, found.in_front), (1, 1, 1));
        // 20 ns, 100 ns and 50 ns of waits in 200 ns.
        assert!((found.queue_mean - 170.0 / 200.0).abs() < 1e-12, "{found:?}");
        assert_eq!((found.queue_max, found.recovery_ns), (2, Some(130.0)));
        assert_eq!(found.queue.len(), SLICES);
        // Slices last 10 ns: from 110 ns to 130 ns one waits, from 310 ns to 420 ns two.
        assert_eq!((found.queue[10], found.queue[11], found.queue[12]), (0.0, 1.0, 1.0));
        assert_eq!((found.queue[31], found.queue[41], found.queue[42]), (2.0, 2.0, 1.0));
        let area: f64 = found.queue.iter().map(|mean| mean * 10.0).sum();
        assert!((area - (20.0 + 100.0 + 170.0 + 120.0 + 10.0)).abs() < 1e-9);
    }

    #[test]
    fn recovery_is_unknown_if_somebody_waits_to_the_end() {
        let caller =
            |due_ns: f64, at_ns: f64| Caller { due_ns, in_front: false, fate: Fate::Served(at_ns) };
        let never = [caller(290.0, 450.0), caller(440.0, 601.0)];
        assert_eq!(outcome(&never, &PHASES, 1.0).recovery_ns, None);
        let at_once = [caller(200.0, 300.0), caller(440.0, 601.0)];
        assert_eq!(outcome(&at_once, &PHASES, 1.0).recovery_ns, Some(0.0));
        assert_eq!(outcome(&[], &PHASES, 1.0).recovery_ns, Some(0.0));
    }
}

//! Kinds of simulated machines, whose true behaviour is known.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::{BlockCost, Count, Disturbance};

use crate::samples::Counters;

use super::Regimes;

/// A kind of simulated machine: its changes in speed, and the cause that takes CPU time from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Kind {
    /// Changes in speed.
    pub regimes: Regimes,
    /// Cause that takes CPU time from a twelfth of the blocks.
    pub thief: Thief,
}

/// Causes of lost CPU time. Each shows in a counter of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thief {
    /// Another thread: run-queue delay and an involuntary switch.
    #[default]
    Thread,
    /// The hypervisor: steal time.
    Hypervisor,
    /// A cause that no counter shows. Only threads that spin notice a gap.
    Unseen,
}

impl Thief {
    /// Draws the position in a block, below `places`, that loses CPU time, and the lost time in
    /// picoseconds. One block in twelve loses 20 to 90 µs; for all other blocks, returns `None`.
    pub(super) fn takes(rng: &mut Xoshiro256PlusPlus, places: usize) -> Option<(usize, u64)> {
        let takes = rng.random_range(0..12) == 0;
        takes.then(|| (rng.random_range(0..places), rng.random_range(20_000_000..90_000_000)))
    }

    pub(super) fn counters(
        self,
        stolen_ns: u64,
        [user_ns, system_ns, voluntary_switches]: [u64; 3],
        operations: u64,
    ) -> Counters {
        let by = |thief| Some(Count::from(if self == thief { stolen_ns } else { 0 }));
        let involuntary_switches = u64::from(self == Thief::Thread && stolen_ns > 0);
        Counters {
            cost: BlockCost {
                user_ns: user_ns.into(),
                system_ns: system_ns.into(),
                voluntary_switches: voluntary_switches.into(),
                involuntary_switches: involuntary_switches.into(),
            },
            operations,
            disturbance: Disturbance {
                migrations: Some(0.into()),
                run_queue_ns: by(Thief::Thread),
                steal_ns: by(Thief::Hypervisor),
                ..Disturbance::default()
            },
            spins: false,
            grows: false,
        }
    }
}

/// Mean time in a regime, short enough for the regime to change even in a short run that measures
/// messages. `SLOW_NS` is for locks, whose blocks are longer.
const QUICK_NS: u64 = 400_000_000;
const SLOW_NS: u64 = 20_000_000_000;

impl Kind {
    /// All kinds except the default kind, whose speed never changes.
    pub const ALL: [Kind; 7] = [
        Kind { regimes: Regimes::One, thief: Thief::Thread },
        Kind { regimes: Regimes::One, thief: Thief::Hypervisor },
        Kind { regimes: Regimes::One, thief: Thief::Unseen },
        Kind { regimes: Regimes::Two { stay_ns: QUICK_NS }, thief: Thief::Thread },
        Kind { regimes: Regimes::Two { stay_ns: SLOW_NS }, thief: Thief::Thread },
        Kind { regimes: Regimes::Drifting { wave_ns: 2 * QUICK_NS }, thief: Thief::Thread },
        Kind { regimes: Regimes::Drifting { wave_ns: 2 * SLOW_NS }, thief: Thief::Thread },
    ];

    /// Returns the kind of the machine with this seed. The upper half of the seed is 0 for the
    /// default kind. For any other kind, it is the position in [`Kind::ALL`], counted from 1 and
    /// wrapping around.
    pub fn of(seed: u64) -> Self {
        match (seed >> 32) as usize {
            0 => Kind::default(),
            half => Kind::ALL[(half - 1) % Kind::ALL.len()],
        }
    }

    /// Returns the seed of machine `nth` of this kind.
    pub fn seed(self, nth: u32) -> u64 {
        let place = Kind::ALL.iter().position(|kind| *kind == self);
        place.map_or(0, |place| (place as u64 + 1) << 32) | u64::from(nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_tell_the_kind() {
        assert_eq!(Kind::of(7), Kind::default());
        assert_eq!(Kind::default().seed(7), 7);
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind.seed(7)), kind);
        }
        assert_ne!(Kind::of(u64::MAX), Kind::default());
    }
}

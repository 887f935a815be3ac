//! The two threads of an exchange, or the one thread that is both ends.

use std::sync::Arc;
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Placement;

use crate::LabError;
use crate::error::Make;
use crate::exchange::{DRAIN_ROUNDS, Ends, Follow, Lead, LoopSpec, Stamps, StopAt};
use crate::thread_group::Role;

use super::buffers::{Buffers, SharedBuffers};
use super::passes::{Pass, Passed, Passes, Watch};
use super::pinning::Pinning;
use super::start::{Roles, Start};

/// Number of exchanges per stretch of a warm-up. With more, a slow mechanism would take too long.
const WARM_UP_STRETCH: u64 = 4;
/// Number of round trips that the threads' counters cover in addition to those of the block. One
/// round trip settles both ends after the counters have been read: the read takes microseconds,
/// which the first stamp must not include. The other round trips tell the following end to stop,
/// `DRAIN_ROUNDS` after the settling and `DRAIN_ROUNDS` after the block.
const AROUND: u64 = 1 + 2 * DRAIN_ROUNDS;

pub(super) fn pair(
    clock: &Clock,
    name: &str,
    make: Make<Ends>,
    placement: Placement,
    [lead_cpus, follow_cpus]: [Vec<u32>; 2],
    patience: Duration,
) -> Result<Passes, LabError> {
    let buffers = <[SharedBuffers; 2]>::default();
    let [lead_buffers, follow_buffers] = buffers.clone();
    let roles = move || {
        let Ends { lead, follow } = make()?;
        let last = Arc::new(StopAt::default());
        let mut roles: Roles<Pass, Passed> = Vec::new();
        if let Some(end) = follow {
            roles.push(Box::new(Turns::new(end, &last, &follow_buffers)));
        }
        roles.push(Box::new(Turns::new(lead, &last, &lead_buffers)));
        Ok(roles)
    };
    let start = Start {
        clock: *clock,
        name: name.to_string(),
        placement,
        pinning: Pinning { others: vec![follow_cpus], last: lead_cpus },
        make: Arc::new(roles),
        meet: false,
    };
    Passes::open(start, buffers, patience)
}

/// One of two ends that take turns. The alignment keeps the ends from sharing a cache line.
#[repr(align(128))]
struct Turns<E> {
    end: E,
    last: Arc<StopAt>,
    buffers: SharedBuffers,
    next: u64,
    /// Bits that were wrong in any message of the warm-up; 0 if none were.
    wrong: u64,
    pass: Pass,
}

impl<E> Turns<E> {
    fn new(end: E, last: &Arc<StopAt>, buffers: &SharedBuffers) -> Self {
        let (last, buffers) = (Arc::clone(last), buffers.clone());
        Turns { end, last, buffers, next: 1, wrong: 0, pass: Pass::default() }
    }
}

impl Role<Pass, Passed> for Turns<Box<dyn Lead>> {
    fn enter(&mut self) {
        self.end.enter();
        self.buffers.touch();
    }

    fn prepare(&mut self, pass: Pass, clock: &Clock) {
        let warm_up = LoopSpec {
            first: self.next,
            stretches: u64::MAX,
            per_stretch: WARM_UP_STRETCH,
            until: clock.stamp() + pass.warm_up,
        };
        let warmed = self.end.lead(warm_up, &self.last, Stamps::Clock(clock));
        (self.pass, self.next, self.wrong) = (pass, warmed.next, warmed.wrong);
    }

    fn work(&mut self, clock: &Clock) -> Passed {
        let Turns { end, last, buffers, next, wrong, pass } = self;
        let mut buffers = buffers.cleared();
        let Buffers { times, cpus } = &mut *buffers;
        let settle = LoopSpec { first: *next, stretches: 1, per_stretch: 1, until: u64::MAX };
        let settled = end.lead(settle, last, Stamps::None);
        let marks = match pass.watch {
            Watch::Cpus => Stamps::TimesAndCpus(clock, times, cpus),
            Watch::Nothing | Watch::OneWay => Stamps::Times(clock, times),
        };
        let spec = LoopSpec {
            first: settled.next,
            stretches: pass.stretches,
            per_stretch: pass.per_stretch,
            until: clock.stamp().saturating_add(pass.length),
        };
        let led = end.lead(spec, last, marks);
        *next = led.next;
        let stretches = times.len().saturating_sub(1) as u64;
        Passed {
            wrong: *wrong | settled.wrong | led.wrong,
            operations: stretches * pass.per_stretch + AROUND,
        }
    }
}

impl Role<Pass, Passed> for Turns<Box<dyn Follow>> {
    fn enter(&mut self) {
        self.end.enter();
        self.buffers.touch();
    }

    fn prepare(&mut self, pass: Pass, _: &Clock) {
        let warmed = self.end.follow(self.next, &self.last, Stamps::None);
        (self.pass, self.next, self.wrong) = (pass, warmed.next, warmed.wrong);
    }

    fn work(&mut self, clock: &Clock) -> Passed {
        let Turns { end, last, buffers, next, wrong, pass } = self;
        let mut buffers = buffers.cleared();
        let Buffers { times, cpus } = &mut *buffers;
        let settled = end.follow(*next, last, Stamps::None);
        let marks = match pass.watch {
            Watch::Nothing => Stamps::None,
            Watch::OneWay => Stamps::Times(clock, times),
            Watch::Cpus => Stamps::TimesAndCpus(clock, times, cpus),
        };
        let followed = end.follow(settled.next, last, marks);
        *next = followed.next;
        Passed { wrong: *wrong | settled.wrong | followed.wrong, operations: 0 }
    }
}

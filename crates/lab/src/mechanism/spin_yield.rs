//! Polls with `sched_yield`, which is cheap while no other thread wants the CPU.

use std::sync::atomic::Ordering;
use std::thread;

use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "spin-yield",
        Class::Poll,
        "a counter that the waiting thread polls, yielding its CPU between polls",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    Ok(Ends::two(Polled::new(lead, thread::yield_now), Polled::new(follow, thread::yield_now)))
}

pub(super) struct Polled<F> {
    to: Lane,
    from: Lane,
    between: F,
    seen: u64,
}

impl<F: Fn() + Send> Polled<F> {
    pub(super) fn new((to, from): (Lane, Lane), between: F) -> Self {
        Polled { to, from, between, seen: 0 }
    }
}

impl<F: Fn() + Send> Exchange for Polled<F> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: the ends take turns, so the receiver has read the previous message. The counter
        // is published with release.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Release);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let seq = loop {
            let seq = self.from.load(Ordering::Acquire);
            if seq != self.seen {
                break seq;
            }
            (self.between)();
        };
        self.seen = seq;
        // SAFETY: the counter was read as `seq` with acquire, and this end has not replied yet.
        unsafe { self.from.read(seq) }
    }
}

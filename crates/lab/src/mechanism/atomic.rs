//! Each end writes its own counter and spins on the other end's, so that a cache line moves between
//! two cores.
//!
//! Source: M. Thompson, *Inter Thread Latency* (2011). Its C++ program is the `rmw` form with both
//! counters on one line. The forms differ in the instruction that publishes the counter: a release
//! store, a locked increment, or a sequentially consistent store (on x86-64 a locked exchange, as
//! for Java's `volatile`).

use std::hint;
use std::sync::atomic::Ordering;

use threadtoll_record::Pause;

use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings};
use crate::wrap::{Unwrapped, Wrap};

const STORE: u8 = 0;
const RMW: u8 = 1;
const SEQCST: u8 = 2;

pub(super) fn mechanisms() -> [Mechanism; 3] {
    [
        store::<Unwrapped>(),
        form::<Unwrapped, RMW>(
            "atomic-rmw",
            "a counter that one thread increments with a locked instruction while the other spins on it",
        ),
        form::<Unwrapped, SEQCST>(
            "atomic-seqcst",
            "a counter that one thread stores with sequential consistency while the other spins on it",
        ),
    ]
}

pub(crate) fn store<W: Wrap>() -> Mechanism {
    form::<W, STORE>(
        "atomic-store",
        "a counter that one thread stores with release while the other spins on it",
    )
}

fn form<W: Wrap, const PUBLISH: u8>(name: &str, sentence: &str) -> Mechanism {
    let make = |settings: &Settings| {
        let ends = Lane::pair(settings);
        Ok(match settings.pause {
            Pause::On => make::<W, PUBLISH, true>(ends),
            Pause::Off => make::<W, PUBLISH, false>(ends),
        })
    };
    Mechanism::new(name, Class::Spin, sentence, make).with_layout().with_pause()
}

fn make<W: Wrap, const PUBLISH: u8, const PAUSE: bool>(
    (lead, follow): ((Lane, Lane), (Lane, Lane)),
) -> Ends {
    let end = |lanes| W::end(Line::<PUBLISH, PAUSE>::new(lanes));
    Ends::two(end(lead), end(follow))
}

struct Line<const PUBLISH: u8, const PAUSE: bool> {
    to: Lane,
    from: Lane,
    seen: u64,
}

impl<const PUBLISH: u8, const PAUSE: bool> Line<PUBLISH, PAUSE> {
    fn new((to, from): (Lane, Lane)) -> Self {
        Line { to, from, seen: 0 }
    }
}

impl<const PUBLISH: u8, const PAUSE: bool> Exchange for Line<PUBLISH, PAUSE> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: the ends take turns, so the receiver has read the previous message. The counter
        // is published below, with release or stronger.
        unsafe { self.to.write(seq) };
        match PUBLISH {
            STORE => self.to.store(seq, Ordering::Release),
            // Sequence numbers are consecutive, so the incremented counter equals `seq`.
            RMW => {
                self.to.fetch_add(1, Ordering::SeqCst);
            }
            _ => self.to.store(seq, Ordering::SeqCst),
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let load = if PUBLISH == STORE { Ordering::Acquire } else { Ordering::SeqCst };
        let seq = loop {
            let seq = self.from.load(load);
            if seq != self.seen {
                break seq;
            }
            if PAUSE {
                hint::spin_loop();
            }
        };
        self.seen = seq;
        // SAFETY: the counter was read as `seq` with acquire or stronger, and this end has not
        // replied yet.
        unsafe { self.from.read(seq) }
    }
}

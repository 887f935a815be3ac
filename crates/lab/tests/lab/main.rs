//! Plans, and runs of plans.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::sync::LazyLock;

use threadtoll_lab::Registry;
use threadtoll_lab::lock::{Locks, RawLock};
use threadtoll_lab::mechanism::{Exchange, Mechanism, Mechanisms};
use threadtoll_lab::twin::{self, Wrap};

mod contention;
mod plan;
mod queue;
mod registry;
mod run;

/// The default registry, with twins of mechanisms and locks.
static OURS: LazyLock<Registry> = LazyLock::new(|| Registry {
    mechanisms: Mechanisms::default().with_twins(twin::mechanisms::<Unchanged>()),
    locks: Locks::default().with_twins(twin::locks::<Unchanged>()),
    ..Registry::default()
});

enum Unchanged {}

impl Wrap for Unchanged {
    type End<E: Exchange + 'static> = E;
    type Lock<L: RawLock> = L;

    fn end<E: Exchange + 'static>(end: E) -> E {
        end
    }

    fn lock<L: RawLock>(lock: L) -> L {
        lock
    }
}

fn mechanism(name: &str) -> &'static Mechanism {
    OURS.mechanisms.find(name).unwrap()
}

//! The mechanisms, queues and locks in this build, and those from `--peers`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use threadtoll_lab::foreign::{Foreign, LeftOut};
use threadtoll_lab::queue::{Queue, ours};
use threadtoll_lab::{Peers, Registry};

struct Everything {
    registry: Registry,
    added: Peers,
}

static EVERYTHING: OnceLock<Everything> = OnceLock::new();
static TWINS: AtomicBool = AtomicBool::new(false);

fn everything() -> &'static Everything {
    EVERYTHING
        .get_or_init(|| Everything { registry: build(Foreign::default()), added: Peers::default() })
}

/// Our own mechanisms, queues and locks, the Rust peers if this build has them, and the peers that
/// were [added](add).
pub(crate) fn registry() -> &'static Registry {
    &everything().registry
}

/// The peers in other languages that were [added](add).
pub(crate) fn added() -> &'static Peers {
    &everything().added
}

/// Adds twins (our own mechanisms, queues and locks, compiled a second time, like peers) if this
/// build has them. Must be called before the registry is used.
pub(crate) fn add_twins() {
    TWINS.store(true, Ordering::Relaxed);
}

/// Adds the rows of adapters and programs. Must be called before the registry is used. Returns the
/// peers that cannot be measured.
pub(crate) fn add(added: Peers) -> Vec<LeftOut> {
    let known: Vec<Queue> = ours().into_iter().chain(peers()).collect();
    let own = Registry::default();
    let is_known = |name: &str| {
        known.iter().any(|queue| queue.name == name)
            || own.mechanisms.find(name).is_some()
            || own.locks.find(name).is_some()
    };
    let mut foreign =
        Foreign::of(&added.adapters, is_known).with_programs(&added.programs, is_known);
    let left_out = std::mem::take(&mut foreign.left_out);
    let set = EVERYTHING.set(Everything { registry: build(foreign), added });
    debug_assert!(set.is_ok(), "the registry was used before the peers were known");
    left_out
}

#[cfg(feature = "peers")]
pub(crate) fn peers() -> Vec<Queue> {
    threadtoll_peers_rust::peers()
}

#[cfg(feature = "peers")]
fn build(foreign: Foreign) -> Registry {
    use threadtoll_lab::lock::Locks;
    use threadtoll_lab::mechanism::Mechanisms;
    use threadtoll_lab::queue::Queues;
    use threadtoll_peers_rust::twin;

    let Foreign { mut mechanisms, queues, mut locks, .. } = foreign;
    let mut queues: Vec<Queue> = peers().into_iter().chain(queues).collect();
    if TWINS.load(Ordering::Relaxed) {
        mechanisms.extend(twin::mechanisms());
        queues.extend(twin::queues());
        locks.extend(twin::locks());
    }
    Registry {
        mechanisms: Mechanisms::with(mechanisms),
        queues: Queues::with(queues),
        locks: Locks::with(locks),
    }
}

#[cfg(not(feature = "peers"))]
pub(crate) fn peers() -> Vec<Queue> {
    Vec::new()
}

#[cfg(not(feature = "peers"))]
fn build(foreign: Foreign) -> Registry {
    use threadtoll_lab::lock::Locks;
    use threadtoll_lab::mechanism::Mechanisms;
    use threadtoll_lab::queue::Queues;

    Registry {
        mechanisms: Mechanisms::with(foreign.mechanisms),
        queues: Queues::with(foreign.queues),
        locks: Locks::with(foreign.locks),
    }
}

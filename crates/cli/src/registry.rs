//! The mechanisms, queues and locks in this build, and the queues of `--peers`.

use std::sync::OnceLock;

use threadtoll_lab::Registry;
use threadtoll_lab::foreign::{Described, Foreign, LeftOut};
use threadtoll_lab::queue::{Queue, ours};

struct Everything {
    registry: Registry,
    adapters: Vec<Described>,
}

static EVERYTHING: OnceLock<Everything> = OnceLock::new();

fn everything() -> &'static Everything {
    EVERYTHING.get_or_init(|| Everything { registry: build(Vec::new()), adapters: Vec::new() })
}

/// Returns our own, the peers and twins if they are built in, and what was [added](add).
pub(crate) fn registry() -> &'static Registry {
    &everything().registry
}

/// The adapters whose queues were added.
pub(crate) fn adapters() -> &'static [Described] {
    &everything().adapters
}

/// Adds the queues of adapters, before the registry is used. Returns what cannot be measured.
pub(crate) fn add(adapters: &[Described]) -> Vec<LeftOut> {
    let known: Vec<Queue> = ours().into_iter().chain(peers()).collect();
    let Foreign { queues, left_out } =
        Foreign::of(adapters, |name| known.iter().any(|queue| queue.name == name));
    let everything = Everything { registry: build(queues), adapters: adapters.to_vec() };
    let added = EVERYTHING.set(everything);
    debug_assert!(added.is_ok(), "the registry was used before the peers were known");
    left_out
}

#[cfg(feature = "peers")]
pub(crate) fn peers() -> Vec<Queue> {
    threadtoll_peers_rust::peers()
}

#[cfg(feature = "peers")]
fn build(foreign: Vec<Queue>) -> Registry {
    use threadtoll_lab::lock::Locks;
    use threadtoll_lab::mechanism::Mechanisms;
    use threadtoll_lab::queue::Queues;
    use threadtoll_peers_rust::twin;

    Registry {
        mechanisms: Mechanisms::default().with_twins(twin::mechanisms()),
        queues: Queues::with(peers().into_iter().chain(foreign).collect(), twin::queues()),
        locks: Locks::default().with_twins(twin::locks()),
    }
}

#[cfg(not(feature = "peers"))]
pub(crate) fn peers() -> Vec<Queue> {
    Vec::new()
}

#[cfg(not(feature = "peers"))]
fn build(foreign: Vec<Queue>) -> Registry {
    use threadtoll_lab::queue::Queues;

    Registry { queues: Queues::with(foreign, Vec::new()), ..Registry::default() }
}

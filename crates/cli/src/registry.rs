//! The mechanisms, queues and locks in this build.

use std::sync::LazyLock;

use threadtoll_lab::Registry;
use threadtoll_lab::queue::Queue;

/// Returns our own, and the peers and twins if they are built in.
pub(crate) fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(build);
    &REGISTRY
}

#[cfg(feature = "peers")]
pub(crate) fn peers() -> Vec<Queue> {
    threadtoll_peers_rust::peers()
}

#[cfg(feature = "peers")]
fn build() -> Registry {
    use threadtoll_lab::lock::Locks;
    use threadtoll_lab::mechanism::Mechanisms;
    use threadtoll_lab::queue::Queues;
    use threadtoll_peers_rust::twin;

    Registry {
        mechanisms: Mechanisms::default().with_twins(twin::mechanisms()),
        queues: Queues::with(peers(), twin::queues()),
        locks: Locks::default().with_twins(twin::locks()),
    }
}

#[cfg(not(feature = "peers"))]
pub(crate) fn peers() -> Vec<Queue> {
    Vec::new()
}

#[cfg(not(feature = "peers"))]
fn build() -> Registry {
    Registry::default()
}

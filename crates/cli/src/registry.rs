//! The mechanisms, queues and locks in this build.

use std::sync::LazyLock;

use threadtoll_lab::Registry;
use threadtoll_lab::queue::{Queue, Queues};

/// Returns our own, and the peers and twins if they are built in.
pub(crate) fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry {
        queues: Queues::with(peers(), twins()),
        ..Registry::default()
    });
    &REGISTRY
}

#[cfg(feature = "peers")]
pub(crate) fn peers() -> Vec<Queue> {
    threadtoll_peers_rust::peers()
}

#[cfg(feature = "peers")]
fn twins() -> Vec<Queue> {
    threadtoll_peers_rust::twins()
}

#[cfg(not(feature = "peers"))]
pub(crate) fn peers() -> Vec<Queue> {
    Vec::new()
}

#[cfg(not(feature = "peers"))]
fn twins() -> Vec<Queue> {
    Vec::new()
}

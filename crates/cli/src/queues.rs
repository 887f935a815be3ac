//! The queues that this build knows.

use threadtoll_lab::queue::{Queue, Queues};

#[cfg(feature = "peers")]
const PEERS: &[Queue] = threadtoll_peers_rust::PEERS;
#[cfg(not(feature = "peers"))]
const PEERS: &[Queue] = &[];

/// Ours, and the peers where they were built in.
pub(crate) fn queues() -> Queues {
    Queues::with(PEERS)
}

/// The peers.
pub(crate) fn peers() -> &'static [Queue] {
    PEERS
}

//! The queues that this build knows.

use threadtoll_lab::queue::{Queue, Queues};

#[cfg(feature = "peers")]
use threadtoll_peers_rust::{PEERS, TWINS};
#[cfg(not(feature = "peers"))]
static PEERS: &[Queue] = &[];
#[cfg(not(feature = "peers"))]
static TWINS: &[Queue] = &[];

/// Ours, with the peers and twins if they are built in.
pub(crate) fn queues() -> Queues {
    Queues::with(PEERS, TWINS)
}

/// The peers.
pub(crate) fn peers() -> &'static [Queue] {
    PEERS
}

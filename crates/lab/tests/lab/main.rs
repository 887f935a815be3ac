//! Plans, and runs of plans.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::sync::LazyLock;

use threadtoll_lab::Registry;
use threadtoll_lab::mechanism::Mechanism;

mod comparison;
mod contention;
mod plan;
mod queue;
mod regimes;
mod registry;
mod run;

/// The default registry.
static OURS: LazyLock<Registry> = LazyLock::new(Registry::default);

fn mechanism(name: &str) -> &'static Mechanism {
    OURS.mechanisms.find(name).unwrap()
}

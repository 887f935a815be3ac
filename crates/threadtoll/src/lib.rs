//! Queues between threads that pay the least.
pub mod call;
pub mod error;
pub mod funnel;
#[cfg(all(test, any(loom, shuttle)))]
mod models;
pub mod pipe;
mod sync;
mod unwound;
pub mod wait;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

//! The queues through their public interface: every operation against a plain model, many threads
//! at once, and unlucky circumstances.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

mod call;
mod cpus;
mod departure;
#[cfg(target_os = "linux")]
mod descriptor;
mod element;
#[cfg(target_os = "linux")]
mod frozen;
mod funnel_model;
mod misfortune;
mod model;
mod oneshot;
mod oneshot_model;
mod owned;
mod owned_model;
#[cfg(all(target_os = "linux", feature = "mio"))]
mod owned_sockets;
mod owned_timers;
mod pipe_model;
mod ring;
mod ring_model;
mod ring_select;
mod runs;
mod select;
mod sizes;
mod tasks;
mod threads;
mod verbs;
mod waker;

//! Programs that keep an account of their own locks, and the harness that compares the profiles
//! that `threadtoll profile` makes of them with that account.
//!
//! | module | contents |
//! |---|---|
//! | [`account`], [`work`], [`locks`], [`options`] | for programs: as `native/*.h` for C and C++ |
//! | [`truth`] | the account, read: held shares, queues and holders over an interval |
//! | [`target`] | starting and ending a program |
//! | [`profile`] | running `threadtoll profile` and reading its JSON |
//! | [`judge`] | truth and profile compared |
//! | [`speed`] | how fast the machine computes meanwhile |
//! | [`statistics`] | intervals, and random numbers |

pub mod account;
pub mod judge;
pub mod locks;
pub mod options;
pub mod profile;
pub mod speed;
pub mod statistics;
pub mod target;
pub mod truth;
pub mod work;

/// An error of the harness, with its story.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

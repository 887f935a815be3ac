//! Processes that run code of peers, which may crash, hang, print, fork, or close files.
//!
//! These processes exchange lines with the process that the user started. That process talks to
//! each of them through a [`Child`]; if the other process runs this program, too, it answers
//! through a [`Parent`]. A [guardian](guardian) stands between the two, so that no such process
//! outlives the one that the user started, however the latter ends.

mod child;
mod guardian;
mod parent;

pub(crate) use child::{Child, Heard, how};
pub(crate) use parent::Parent;

//! Processes that run code of peers, which may crash, hang, print, fork, or close files.
//!
//! These processes exchange lines with the process that the user started. [`Child`] is the end of
//! the conversation in the process that the user started; [`Parent`] is the end in a process of
//! this program. A [guardian](guardian) stands between the two, so that no process outlives the
//! first one, however the first one ends.

mod child;
mod guardian;
mod parent;

pub(crate) use child::{Child, Heard, how};
pub(crate) use parent::Parent;

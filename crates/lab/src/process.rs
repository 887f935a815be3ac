//! Processes that run code of peers, which may crash, hang, print, fork, or close files.
//!
//! They exchange lines with the process that the user started. [`Child`] is that process's end of
//! the conversation; [`Parent`] is the other end, in a process of this program. A
//! [guardian](guardian) stands between the two, so that no process outlives the first one, however
//! the first one ends.

mod child;
mod guardian;
mod parent;

pub(crate) use child::{Child, Heard, how};
pub(crate) use parent::Parent;

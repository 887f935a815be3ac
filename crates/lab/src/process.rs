//! Processes that run code of peers, which may crash, hang, print, fork, or close files.
//!
//! The process that the user started exchanges lines with each of them through a [`Child`]. If the
//! child also runs this program, it answers through a [`Parent`]. A [guardian](guardian) stands
//! between the two, so that the child never outlives the process that the user started.

mod child;
mod guardian;
mod parent;

pub(crate) use child::{Child, Heard, how};
pub(crate) use parent::Parent;

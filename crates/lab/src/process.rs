//! Processes that run the code of peers, which may crash, hang, print, fork, or close files.
//!
//! They talk with the process that was started by hand in lines: a [`Child`] is this process's end,
//! [`Parent`] the other one's if it is a process of this program. A [guardian](guardian) stands
//! between them, so that no process outlives the first one, whatever ends that.

mod child;
mod guardian;
mod parent;

pub(crate) use child::{Child, Heard, how};
pub(crate) use parent::Parent;

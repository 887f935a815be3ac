//! Result files: created by rename, appended to block by block, validated on reading, and folded
//! for keeping.

mod fold;
mod read;
mod source;
mod write;

pub use fold::{FoldFault, fold};
pub use read::{Fault, GroupState, Results, read};
pub use write::{Appender, WriteFault};

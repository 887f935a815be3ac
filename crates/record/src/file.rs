//! Files of results: made by rename, appended to block by block, read with suspicion, and folded to
//! be kept.

mod fold;
mod read;
mod source;
mod write;

pub use fold::{FoldFault, fold};
pub use read::{Fault, GroupState, Results, read};
pub use write::{Appender, WriteFault};

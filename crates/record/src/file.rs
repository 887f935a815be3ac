//! Result files: created by rename, appended to block by block, validated on reading, and folded
//! for keeping.

mod fold;
mod profile;
mod read;
mod source;
mod sweep;
mod write;

pub use fold::{FoldFault, fold};
pub use profile::{MAX_PROFILE_LINE, Profiled, read_profile};
pub use read::{Contents, Fault, GroupState, Results, read, read_any};
pub use write::{Appender, WriteFault};

//! Files of results: made by rename, appended to block by block, read with suspicion.

mod plausible;
mod read;
mod write;

pub use read::{Fault, GroupState, Results, read};
pub use write::{Appender, WriteFault};

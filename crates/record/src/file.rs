//! Result files: created by a rename, extended block by block, validated when read, and folded for
//! archiving.

mod fold;
mod former_profile;
mod profile;
mod read;
mod source;
mod sweep;
mod write;

pub use fold::{FoldFault, fold};
pub use profile::{MAX_PROFILE_LINE, Profiled, read_profile};
pub use read::{Fault, GroupState, Results, read};
pub use write::{Appender, WriteFault};

use std::path::Path;

use read::{begin_reading, read_results};

/// Contents of a file.
#[derive(Debug)]
pub enum Contents {
    /// A file of measurements.
    Results(Box<Results>),
    /// A file with a profile.
    Profile(Box<Profiled>),
}

/// Reads a file of measurements (as [`read`] does) or of a profile (as [`read_profile`] does).
///
/// # Errors
///
/// If the file cannot be read or is invalid.
pub fn read_any(path: &Path) -> Result<Contents, Fault> {
    let (mut reader, machine, plan) = begin_reading(path)?;
    if plan.is_profile() {
        let profiled = profile::read_rest(&mut reader, machine, plan)?;
        Ok(Contents::Profile(Box::new(profiled)))
    } else {
        Ok(Contents::Results(Box::new(read_results(&mut reader, machine, plan)?)))
    }
}

//! Mechanisms, as they are named on the command line.

use threadtoll_lab::mechanism::{self, Mechanism};

use crate::failure::Failure;
use crate::nearest::unknown;

/// Finds the mechanism of that name.
pub(crate) fn find(name: &str) -> Result<&'static Mechanism, Failure> {
    mechanism::find(name).ok_or_else(|| {
        unknown(
            format!("there is no mechanism “{name}”"),
            name,
            mechanism::ALL.iter().map(|mechanism| mechanism.name),
            "`threadtoll list mechanisms` names them all",
        )
    })
}

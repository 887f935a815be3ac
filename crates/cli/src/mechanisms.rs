//! Mechanisms, as they are named on the command line.

use threadtoll_lab::mechanism::Mechanism;

use crate::failure::Failure;
use crate::nearest::unknown;
use crate::registry::registry;

/// Finds the mechanism of that name.
pub(crate) fn find(name: &str) -> Result<&'static Mechanism, Failure> {
    let mechanisms = &registry().mechanisms;
    mechanisms.find(name).ok_or_else(|| {
        unknown(
            format!("there is no mechanism “{name}”"),
            name,
            mechanisms.all().map(|mechanism| mechanism.name.as_str()),
            "`threadtoll list mechanisms` names them all",
        )
    })
}

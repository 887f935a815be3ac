use threadtoll_lab::mechanism::Mechanism;

use crate::failure::Failure;
use crate::nearest::unknown;
use crate::registry::registry;

pub(crate) fn find(name: &str) -> Result<&'static Mechanism, Failure> {
    let mechanisms = &registry().mechanisms;
    mechanisms.find(name).ok_or_else(|| {
        unknown(
            format!("no mechanism is called “{name}”"),
            name,
            mechanisms.all().map(|mechanism| mechanism.name.as_str()),
            "see `threadtoll list mechanisms`",
        )
    })
}

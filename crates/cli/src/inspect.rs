use std::time::Duration;

use threadtoll_machine::clock::{self, Clock};
use threadtoll_machine::inspect::InspectOptions;
use threadtoll_record::{Machine, run_id, timestamp};

use crate::entry::CommonArgs;
use crate::failure::Failure;

/// Inspects the machine. The noise test takes the time `noise`.
pub(crate) fn inspect(common: &CommonArgs, noise: Duration) -> Result<(Machine, Clock), Failure> {
    let now = clock::unix_ns();
    threadtoll_machine::inspect::inspect(InspectOptions {
        sysfs_root: common.sysfs(),
        noise,
        run: run_id(now, std::process::id()),
        at: timestamp(now),
        tool: format!("threadtoll {} ({})", env!("CARGO_PKG_VERSION"), env!("THREADTOLL_BUILD")),
    })
    .map_err(|refused| Failure::refused(refused.to_string()))
}

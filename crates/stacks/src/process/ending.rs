//! Exit status of a process that is not a child of this one.
//!
//! Until the parent reaps the process, the status is in `/proc/PID/stat`. Afterwards, the pidfd
//! returns the status from Linux 6.15 on (`PIDFD_GET_INFO` of `include/uapi/linux/pidfd.h`).

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// `_IOWR(0xFF, 11, struct pidfd_info)`, for the first version of the structure.
const PIDFD_GET_INFO: libc::c_ulong = 0xc040_ff0b;
/// `PIDFD_INFO_EXIT`.
const EXIT: u64 = 1 << 3;

/// `struct pidfd_info`, first version.
#[derive(Default)]
#[repr(C)]
struct Info {
    mask: u64,
    control_group: u64,
    pids_and_users: [u32; 11],
    exit_code: i32,
}

const _: () = assert!(size_of::<Info>() == 64);

/// Exit status of a process that its parent has reaped; `None` if the kernel does not report it.
pub(crate) fn of_reaped(pidfd: impl AsFd) -> Option<ExitStatus> {
    let mut info = Info { mask: EXIT, ..Info::default() };
    let pidfd = pidfd.as_fd().as_raw_fd();
    // SAFETY: the structure is live, and as large as the request says.
    let result = unsafe { libc::ioctl(pidfd, PIDFD_GET_INFO as _, &mut info) };
    (result == 0 && info.mask & EXIT != 0).then(|| ExitStatus::from_raw(info.exit_code))
}

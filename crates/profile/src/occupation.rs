//! What a thread spends its time on, by the system call that it sleeps in.

use std::fmt;

use libc::c_long;
use threadtoll_stacks::process::{Activity, SystemCall};

use crate::futex::FutexWait;

/// What a thread spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupation {
    /// On a CPU, or waiting for one.
    OnCpu,
    /// Waiting on a futex: for a lock, or for work.
    Futex(FutexWait),
    /// Waiting until a descriptor has been read or written.
    Io(u32),
    /// Waiting for a disk: the call itself says so.
    Disk,
    /// Waiting for a page of memory.
    Paging,
    /// Waiting until something happens on any of its descriptors, for a signal or for a child.
    Idle,
    /// Waiting for time to pass.
    Sleep,
    /// In another system call.
    Other,
}

/// A kind of thing behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// A regular file or a block device.
    Disk,
    /// A socket.
    Socket,
    /// A pipe.
    Pipe,
    /// A terminal.
    Terminal,
    /// Anything else: a device, a timer, an eventfd.
    Other,
}

/// Knowledge of what is behind the descriptors of processes.
pub(crate) trait Descriptors: fmt::Debug {
    /// The device behind a descriptor of the process of this index.
    fn device(&self, process: u32, descriptor: u32) -> Device;
}

impl Device {
    /// The device behind a link of `/proc/PID/fd`.
    pub fn of_link(link: &[u8]) -> Device {
        match link {
            _ if link.starts_with(b"socket:") => Device::Socket,
            _ if link.starts_with(b"pipe:") => Device::Pipe,
            _ if link.starts_with(b"/dev/pts/") || link.starts_with(b"/dev/tty") => {
                Device::Terminal
            }
            _ if link.starts_with(b"/dev/") && !link.starts_with(b"/dev/shm/") => Device::Other,
            _ if link.starts_with(b"/") => Device::Disk,
            _ => Device::Other,
        }
    }
}

impl Occupation {
    /// The occupation that an activity shows.
    pub fn of(activity: &Activity) -> Occupation {
        match activity {
            Activity::OnCpu => Occupation::OnCpu,
            Activity::Faulting { .. } => Occupation::Paging,
            Activity::Asleep(call) => match FutexWait::of(call) {
                Some(wait) => Occupation::Futex(wait),
                None => Occupation::of_call(call),
            },
        }
    }

    fn of_call(call: &SystemCall) -> Occupation {
        let number = c_long::from(call.number);
        if IO.contains(&number) {
            Occupation::Io(call.arguments[0] as u32)
        } else if DISK.contains(&number) || OLD_DISK.contains(&number) {
            Occupation::Disk
        } else if IDLE.contains(&number) || OLD_IDLE.contains(&number) {
            // `poll(NULL, 0, timeout)` and its like are how programs of old sleep.
            match sleeps(call) {
                true => Occupation::Sleep,
                false => Occupation::Idle,
            }
        } else if [libc::SYS_nanosleep, libc::SYS_clock_nanosleep].contains(&number) {
            Occupation::Sleep
        } else {
            Occupation::Other
        }
    }
}

/// Calls that transfer data, with the descriptor as their first argument.
const IO: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_connect,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_ioctl,
];

/// Calls that wait for a disk (or a file system across a network).
const DISK: &[c_long] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_openat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_getdents64,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_copy_file_range,
];

/// Calls that wait until something happens.
const IDLE: &[c_long] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_io_uring_enter,
    libc::SYS_io_getevents,
    libc::SYS_mq_timedreceive,
    libc::SYS_msgrcv,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_futex_waitv,
];

#[cfg(target_arch = "x86_64")]
const OLD_DISK: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_stat,
    libc::SYS_lstat,
];
#[cfg(target_arch = "x86_64")]
const OLD_IDLE: &[c_long] =
    &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait, libc::SYS_pause];
#[cfg(not(target_arch = "x86_64"))]
const OLD_DISK: &[c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLD_IDLE: &[c_long] = &[];

/// A wait for something on no descriptor at all.
fn sleeps(call: &SystemCall) -> bool {
    let number = c_long::from(call.number);
    let [first, second, ..] = call.arguments;
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_poll {
        return second == 0;
    }
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_select {
        return first == 0;
    }
    match number {
        libc::SYS_ppoll => second == 0,
        libc::SYS_pselect6 => first == 0,
        _ => false,
    }
}

/// Nothing is known of any descriptor.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct NoDescriptors;

#[cfg(test)]
impl Descriptors for NoDescriptors {
    fn device(&self, _: u32, _: u32) -> Device {
        Device::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: c_long, arguments: [u64; 6]) -> Activity {
        let number = number as u32;
        Activity::Asleep(SystemCall { number, arguments, stack_pointer: 0, program_counter: 0 })
    }

    #[test]
    fn calls_are_told_apart() {
        let of = |number, arguments| Occupation::of(&call(number, arguments));
        assert_eq!(of(libc::SYS_read, [5, 0, 0, 0, 0, 0]), Occupation::Io(5));
        assert_eq!(of(libc::SYS_fsync, [5, 0, 0, 0, 0, 0]), Occupation::Disk);
        assert_eq!(of(libc::SYS_clock_nanosleep, [0; 6]), Occupation::Sleep);
        assert_eq!(of(libc::SYS_ppoll, [0x1000, 3, 0, 0, 0, 0]), Occupation::Idle);
        assert_eq!(of(libc::SYS_ppoll, [0, 0, 0x2000, 0, 0, 0]), Occupation::Sleep);
        assert_eq!(of(libc::SYS_getrandom, [0; 6]), Occupation::Other);
        assert!(matches!(of(libc::SYS_futex, [0x1000, 128, 2, 0, 0, 0]), Occupation::Futex(_)));
        assert_eq!(Occupation::of(&Activity::OnCpu), Occupation::OnCpu);
    }

    #[test]
    fn descriptors_lead_to_devices() {
        for (link, device) in [
            (&b"socket:[123]"[..], Device::Socket),
            (b"pipe:[4]", Device::Pipe),
            (b"/dev/pts/0", Device::Terminal),
            (b"/dev/null", Device::Other),
            (b"/var/lib/db", Device::Disk),
            (b"anon_inode:[eventfd]", Device::Other),
        ] {
            assert_eq!(Device::of_link(link), device);
        }
    }
}

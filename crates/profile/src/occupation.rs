//! Activity of a thread, judged by the system call in which it sleeps.

mod device;
mod events;

use libc::c_long;
use threadtoll_stacks::process::{Activity, SystemCall};

pub use device::Device;
pub(crate) use events::Polled;
pub use events::{AwaitedEvent, EventSet};

use crate::futex::FutexWait;

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupation {
    /// On a CPU, or waiting for one.
    OnCpu,
    /// Waiting on a futex.
    Futex(FutexWait),
    /// Waiting to read from this descriptor or to write to it.
    Io(u32),
    /// Waiting for a device that the system call implies.
    Device(Device),
    /// Waiting for a page of memory.
    Paging,
    /// Waiting for an event on any of several descriptors.
    Events(EventSet),
    /// Waiting for other threads or processes to send a signal or data, or to release a file lock.
    Threads,
    /// Waiting for connections.
    Idle,
    /// Sleeping for a set time.
    Sleep,
    /// In another system call.
    Other,
}

impl Occupation {
    /// Determines the occupation of a thread with this activity.
    pub fn of(activity: &Activity) -> Occupation {
        match activity {
            Activity::OnCpu => Occupation::OnCpu,
            Activity::Faulting { .. } => Occupation::Paging,
            Activity::Asleep(call) => match FutexWait::of(call.number, call.arguments) {
                Some(wait) => Occupation::Futex(wait),
                None => Occupation::of_call(call),
            },
        }
    }

    pub(crate) fn of_call(call: &SystemCall) -> Occupation {
        let number = c_long::from(call.number);
        if let Some(set) = EventSet::of(call) {
            return match set.is_empty() {
                true => Occupation::Sleep,
                false => Occupation::Events(set),
            };
        }
        if waits_for_threads(call) {
            Occupation::Threads
        } else if IO.contains(&number) {
            Occupation::Io(call.arguments[0] as u32)
        } else if DISK.contains(&number) || OLD_DISK.contains(&number) {
            Occupation::Device(Device::Disk)
        } else if [libc::SYS_wait4, libc::SYS_waitid].contains(&number) {
            Occupation::Device(Device::Child)
        } else if [libc::SYS_io_uring_enter, libc::SYS_io_getevents].contains(&number) {
            Occupation::Device(Device::Other)
        } else if [libc::SYS_accept, libc::SYS_accept4].contains(&number) {
            Occupation::Idle
        } else if [libc::SYS_nanosleep, libc::SYS_clock_nanosleep].contains(&number) {
            Occupation::Sleep
        } else {
            Occupation::Other
        }
    }
}

fn waits_for_threads(call: &SystemCall) -> bool {
    #[cfg(target_arch = "x86_64")]
    if c_long::from(call.number) == libc::SYS_pause {
        return true;
    }
    THREADS.contains(&c_long::from(call.number)) || locks_part_of_file(call)
}

pub(crate) fn locks_part_of_file(call: &SystemCall) -> bool {
    // The kernel reads only 32 bits of the argument.
    let command = call.arguments[1] as u32 as i32;
    c_long::from(call.number) == libc::SYS_fcntl
        && [libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&command)
}

/// Descriptor of the file for whose lock the call waits; `None` for other calls.
pub(crate) fn file_lock(call: &SystemCall) -> Option<u32> {
    let waits = c_long::from(call.number) == libc::SYS_flock || locks_part_of_file(call);
    waits.then_some(call.arguments[0] as u32)
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

/// Calls that wait for a disk or a network file system.
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
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_getdents64,
    libc::SYS_copy_file_range,
];

/// Calls that another thread or process ends.
const THREADS: &[c_long] = &[
    libc::SYS_flock,
    libc::SYS_futex_waitv,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
];

#[cfg(target_arch = "x86_64")]
const OLD_DISK: &[c_long] =
    &[libc::SYS_unlink, libc::SYS_rename, libc::SYS_mkdir, libc::SYS_stat, libc::SYS_lstat];
#[cfg(not(target_arch = "x86_64"))]
const OLD_DISK: &[c_long] = &[];

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
        assert_eq!(of(libc::SYS_fsync, [5, 0, 0, 0, 0, 0]), Occupation::Device(Device::Disk));
        assert_eq!(of(libc::SYS_wait4, [0; 6]), Occupation::Device(Device::Child));
        assert_eq!(of(libc::SYS_accept4, [3, 0, 0, 0, 0, 0]), Occupation::Idle);
        assert_eq!(of(libc::SYS_clock_nanosleep, [0; 6]), Occupation::Sleep);
        assert_eq!(of(libc::SYS_ppoll, [0, 0, 0x2000, 0, 0, 0]), Occupation::Sleep);
        let set = EventSet::Poll { address: 0x1000, count: 3 };
        assert_eq!(of(libc::SYS_ppoll, [0x1000, 3, 0, 0, 0, 0]), Occupation::Events(set));
        assert_eq!(of(libc::SYS_getrandom, [0; 6]), Occupation::Other);
        assert_eq!(of(libc::SYS_mprotect, [0; 6]), Occupation::Other);
        assert!(matches!(of(libc::SYS_futex, [0x1000, 128, 2, 0, 0, 0]), Occupation::Futex(_)));
        assert_eq!(Occupation::of(&Activity::OnCpu), Occupation::OnCpu);
    }

    #[test]
    fn locks_on_files_are_no_disks() {
        let of = |number, arguments| Occupation::of(&call(number, arguments));
        let command = |command: i32| [4, command as u64, 0, 0, 0, 0];
        assert_eq!(of(libc::SYS_flock, [4, 2, 0, 0, 0, 0]), Occupation::Threads);
        for waits in [libc::F_SETLKW, libc::F_OFD_SETLKW] {
            assert_eq!(of(libc::SYS_fcntl, command(waits)), Occupation::Threads);
            let Activity::Asleep(call) = call(libc::SYS_fcntl, command(waits)) else { panic!() };
            assert_eq!(file_lock(&call), Some(4));
        }
        assert_eq!(of(libc::SYS_fcntl, command(libc::F_GETFL)), Occupation::Other);
        for call in [libc::SYS_semop, libc::SYS_semtimedop, libc::SYS_futex_waitv] {
            assert_eq!(of(call, [0; 6]), Occupation::Threads);
        }
    }
}

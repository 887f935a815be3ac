//! `perf_event_open(2)`: its argument, and the operations on its descriptors.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::registers;

const TYPE_SOFTWARE: u32 = 1;
const COUNT_CPU_CLOCK: u64 = 0;
const COUNT_DUMMY: u64 = 9;

pub(super) const SAMPLE_TID: u64 = 1 << 1;
pub(super) const SAMPLE_TIME: u64 = 1 << 2;
pub(super) const SAMPLE_CPU: u64 = 1 << 7;
pub(super) const SAMPLE_REGS_USER: u64 = 1 << 12;
pub(super) const SAMPLE_STACK_USER: u64 = 1 << 13;

const FLAG_DISABLED: u64 = 1 << 0;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_COMM_EXEC: u64 = 1 << 24;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
const FLAG_CONTEXT_SWITCH: u64 = 1 << 26;

const OPEN_CLOEXEC: libc::c_ulong = 8;

const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;
const IOCTL_SET_OUTPUT: libc::c_ulong = 0x2405;

/// `struct perf_event_attr` up to `clockid`, which Linux 4.1 added.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
}

const _: () = assert!(size_of::<Attribute>() == 96);

impl Attribute {
    fn software(config: u64) -> Attribute {
        Attribute {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attribute>() as u32,
            config,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU,
            flags: FLAG_EXCLUDE_KERNEL
                | FLAG_EXCLUDE_HYPERVISOR
                | FLAG_SAMPLE_ID_ALL
                | FLAG_USE_CLOCKID,
            clock: libc::CLOCK_MONOTONIC,
            ..Attribute::default()
        }
    }

    /// An event that reports nothing and only owns a ring.
    pub(super) fn silent() -> Attribute {
        let silent = Attribute::software(COUNT_DUMMY);
        Attribute { flags: silent.flags | FLAG_DISABLED, ..silent }
    }

    pub(super) fn switches() -> Attribute {
        let dummy = Attribute::software(COUNT_DUMMY);
        Attribute { flags: dummy.flags | FLAG_CONTEXT_SWITCH, ..dummy }
    }

    pub(super) fn samples(period_ns: u64, stack_bytes: u32) -> Attribute {
        let clock = Attribute::software(COUNT_CPU_CLOCK);
        Attribute {
            sample_period: period_ns,
            sample_type: clock.sample_type | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
            sample_regs_user: registers::MASK,
            sample_stack_user: stack_bytes,
            ..clock
        }
    }

    /// Also reports exec calls, and starts and ends of threads.
    pub(super) fn with_tasks(self) -> Attribute {
        Attribute { flags: self.flags | FLAG_TASK | FLAG_COMM | FLAG_COMM_EXEC, ..self }
    }

    /// Threads and processes created from now on inherit the event.
    pub(super) fn inherited(self) -> Attribute {
        Attribute { flags: self.flags | FLAG_INHERIT, ..self }
    }

    pub(super) fn disabled(self) -> Attribute {
        Attribute { flags: self.flags | FLAG_DISABLED, ..self }
    }

    /// Opens the event for thread `tid` (0: the calling thread), on one CPU or on all of them.
    pub(super) fn open(&self, tid: u32, cpu: Option<u32>) -> io::Result<OwnedFd> {
        let cpu = cpu.map_or(-1, |cpu| cpu as libc::c_int);
        let tid = tid as libc::pid_t;
        let no_group: libc::c_int = -1;
        let attribute: *const Attribute = self;
        // SAFETY: the kernel reads `size` bytes, which is the size of the attribute.
        let descriptor = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attribute, tid, cpu, no_group, OPEN_CLOEXEC)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
    }
}

/// Makes `event` write into the ring of `owner`, which must be on the same CPU.
pub(super) fn redirect(event: &OwnedFd, owner: &OwnedFd) -> io::Result<()> {
    control(event, IOCTL_SET_OUTPUT, owner.as_raw_fd())
}

/// Enables or disables an event, together with the events inherited from it.
pub(super) fn enable(event: &OwnedFd, on: bool) -> io::Result<()> {
    control(event, if on { IOCTL_ENABLE } else { IOCTL_DISABLE }, 0)
}

fn control(event: &OwnedFd, request: libc::c_ulong, argument: libc::c_int) -> io::Result<()> {
    let argument = argument as libc::c_ulong;
    // SAFETY: these requests take a number and touch no memory of ours.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as libc::Ioctl, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

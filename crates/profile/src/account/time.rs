//! Activities on which threads spend their time, other than waits on futexes.

use crate::occupation::{AwaitedEvent, Device};
use crate::perf::CpuState;

/// Activity of a thread, other than a wait on a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Time {
    /// On a CPU or waiting for one, if no records of switches show which.
    OnCpu,
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a device.
    Io(Device),
    /// Waiting for a page of memory.
    Paging,
    /// Waiting for other threads or processes, through the kernel.
    Threads,
    /// Waiting for other threads, through a pipe with both ends in the process.
    OwnPipe,
    /// Waiting for work from outside the process.
    Idle,
    /// Sleeping for a set time.
    Sleep,
    /// In another system call.
    Other,
}

impl Time {
    /// All kinds.
    pub const ALL: [Time; 15] = [
        Time::OnCpu,
        Time::Running,
        Time::Runnable,
        Time::Io(Device::Disk),
        Time::Io(Device::Socket),
        Time::Io(Device::Pipe),
        Time::Io(Device::Terminal),
        Time::Io(Device::Child),
        Time::Io(Device::Other),
        Time::Paging,
        Time::Threads,
        Time::Idle,
        Time::Sleep,
        Time::Other,
        Time::OwnPipe,
    ];

    /// `state` is `None` if there are no records of the thread's switches.
    pub(super) fn on_cpu(state: Option<CpuState>) -> Time {
        match state {
            None => Time::OnCpu,
            Some(CpuState::Running) => Time::Running,
            Some(CpuState::Preempted | CpuState::SwitchedOut) => Time::Runnable,
        }
    }

    pub(super) fn of_device(device: Device) -> Time {
        match device {
            Device::Disk | Device::Socket | Device::Pipe | Device::Terminal | Device::Child => {
                Time::Io(device)
            }
            Device::ClientSocket => Time::Io(Device::Socket),
            Device::Timer => Time::Sleep,
            Device::Changes => Time::Idle,
            Device::Wakeups | Device::Signals => Time::Threads,
            Device::OwnPipe => Time::OwnPipe,
            // The object behind the descriptor is unknown, and so is the reason for the wait.
            Device::Epoll | Device::Other => Time::Other,
        }
    }

    pub(super) fn of_events(awaited: AwaitedEvent) -> Time {
        match awaited {
            AwaitedEvent::Work => Time::Idle,
            AwaitedEvent::Threads => Time::Threads,
            AwaitedEvent::Device(device) => Time::of_device(device),
            AwaitedEvent::Nothing => Time::Sleep,
            AwaitedEvent::Unknown => Time::Other,
        }
    }

    /// Returns `true` unless the thread waits for work or for other threads.
    pub(crate) fn is_work(self) -> bool {
        !matches!(self, Time::Idle | Time::Threads | Time::OwnPipe)
    }

    pub(super) fn place(self) -> usize {
        match self {
            Time::OnCpu => 0,
            Time::Running => 1,
            Time::Runnable => 2,
            Time::Io(Device::Disk) => 3,
            Time::Io(Device::Socket) => 4,
            Time::Io(Device::Pipe) => 5,
            Time::Io(Device::Terminal) => 6,
            Time::Io(Device::Child) => 7,
            Time::Io(_) => 8,
            Time::Paging => 9,
            Time::Threads => 10,
            Time::Idle => 11,
            Time::Sleep => 12,
            Time::Other => 13,
            Time::OwnPipe => 14,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_place_of_its_own() {
        for (place, kind) in Time::ALL.into_iter().enumerate() {
            assert_eq!(kind.place(), place, "{kind:?}");
        }
        let devices = [Device::Timer, Device::Epoll, Device::Wakeups, Device::Changes];
        let times = devices.map(Time::of_device);
        let expected = [Time::Sleep, Time::Other, Time::Threads, Time::Idle];
        assert_eq!(times, expected);
    }
}

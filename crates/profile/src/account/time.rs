//! Kinds of time that threads spend outside futexes.

use crate::occupation::Device;
use crate::perf::CpuState;

/// A thread's time outside futexes, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Time {
    /// On a CPU or waiting for one: its switches do not tell which.
    OnCpu,
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a device.
    Io(Device),
    /// Waiting for a page of memory.
    Paging,
    /// Waiting until something happens.
    Idle,
    /// Waiting for time to pass.
    Sleep,
    /// In another system call.
    Other,
}

impl Time {
    /// All kinds.
    pub const ALL: [Time; 12] = [
        Time::OnCpu,
        Time::Running,
        Time::Runnable,
        Time::Io(Device::Disk),
        Time::Io(Device::Socket),
        Time::Io(Device::Pipe),
        Time::Io(Device::Terminal),
        Time::Io(Device::Other),
        Time::Paging,
        Time::Idle,
        Time::Sleep,
        Time::Other,
    ];

    /// The time of a thread that is on a CPU, or waits for one.
    pub(super) fn on_cpu(state: Option<CpuState>) -> Time {
        match state {
            None => Time::OnCpu,
            Some(CpuState::Running) => Time::Running,
            Some(CpuState::Preempted | CpuState::SwitchedOut) => Time::Runnable,
        }
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
            Time::Io(Device::Other) => 7,
            Time::Paging => 8,
            Time::Idle => 9,
            Time::Sleep => 10,
            Time::Other => 11,
        }
    }
}

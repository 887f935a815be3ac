//! Devices behind the file descriptors on which threads wait.

use std::collections::{HashMap, HashSet};

use crate::account::time::Time;
use crate::circumstances::Circumstances;
use crate::occupation::{AwaitedEvent, Device, EventSet, Occupation};

/// Maximum number of descriptors whose devices are cached, and the time for which each is cached,
/// in nanoseconds.
const MAX_DEVICES: usize = 4096;
const DEVICE_NS: u64 = 1_000_000_000;

/// Maximum number of descriptors that can be listed in the time that it takes to find the device of
/// one.
const FEW_DESCRIPTORS: u64 = 32;

/// Cached devices of descriptors, and cached purposes of waits for sets of descriptors, each with
/// the time at which its entry expires.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: HashMap<u32, (Device, u64)>,
    awaited: HashMap<EventSet, (AwaitedEvent, u64)>,
    own_pipes: (HashSet<u32>, u64),
}

/// Time for which a result is cached, in nanoseconds, if the kernel had to list `descriptors`
/// descriptors to find it: the more there were, the longer.
fn holds_ns(descriptors: usize) -> u64 {
    DEVICE_NS * (1 + descriptors as u64 / FEW_DESCRIPTORS)
}

impl Devices {
    /// Kind of time that a thread spends in this activity.
    pub(super) fn time(
        &mut self,
        occupation: Occupation,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Time {
        match occupation {
            Occupation::Io(descriptor) => {
                Time::of_device(self.device(descriptor, process, at, seen))
            }
            Occupation::Device(device) => Time::of_device(device),
            Occupation::Events(set) => Time::of_events(self.awaited(set, process, at, seen)),
            Occupation::Paging => Time::Paging,
            Occupation::Threads => Time::Threads,
            Occupation::Idle => Time::Idle,
            Occupation::Sleep => Time::Sleep,
            Occupation::OnCpu | Occupation::Futex(_) | Occupation::Other => Time::Other,
        }
    }

    fn device(
        &mut self,
        descriptor: u32,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Device {
        if let Some(&(device, until)) = self.devices.get(&descriptor)
            && at < until
        {
            return device;
        }
        let device = match seen.descriptors.device(process, descriptor) {
            Device::Pipe if self.is_own_pipe(descriptor, process, at, seen) => Device::OwnPipe,
            device => device,
        };
        if self.devices.len() >= MAX_DEVICES {
            self.devices.clear();
        }
        self.devices.insert(descriptor, (device, at + DEVICE_NS));
        device
    }

    /// Returns `true` if both ends of the pipe are in the process.
    fn is_own_pipe(
        &mut self,
        descriptor: u32,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> bool {
        if at >= self.own_pipes.1 {
            let (own, of) = seen.descriptors.own_pipes(process);
            self.own_pipes = (own, at + holds_ns(of));
        }
        self.own_pipes.0.contains(&descriptor)
    }

    /// Purpose of a wait for any of these descriptors.
    fn awaited(
        &mut self,
        set: EventSet,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> AwaitedEvent {
        if let Some(&(awaited, until)) = self.awaited.get(&set)
            && at < until
        {
            return awaited;
        }
        let descriptors = seen.descriptors.in_set(process, set);
        let awaited = descriptors.as_ref().map_or(AwaitedEvent::Unknown, |descriptors| {
            let mut device = |descriptor| self.device(descriptor, process, at, seen);
            AwaitedEvent::of(descriptors, &mut device)
        });
        // Not cached: the memory does not hold the set now, but may hold it again in the next
        // sample.
        let Some(descriptors) = descriptors else { return awaited };
        if self.awaited.len() >= MAX_DEVICES {
            self.awaited.clear();
        }
        self.awaited.insert(set, (awaited, at + holds_ns(descriptors.len())));
        awaited
    }
}

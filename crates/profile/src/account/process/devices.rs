//! What is behind the descriptors that threads wait for.

use std::collections::{HashMap, HashSet};

use crate::account::time::Time;
use crate::circumstances::Circumstances;
use crate::occupation::{Awaited, Device, EventSet, Occupation};

/// Most descriptors whose devices are remembered, and for how long.
const MAX_DEVICES: usize = 4096;
const DEVICE_NS: u64 = 1_000_000_000;

/// Descriptors of a set that take no longer to list than the device of one of them.
const FEW_DESCRIPTORS: u64 = 32;

/// What is behind descriptors, and what waits for sets of them are for, each with the time until
/// which that holds.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: HashMap<u32, (Device, u64)>,
    awaited: HashMap<EventSet, (Awaited, u64)>,
    own_pipes: (HashSet<u32>, u64),
}

/// Time for which something that took so many descriptors to find is taken to hold: to list them
/// takes the kernel a while.
fn holds_ns(descriptors: usize) -> u64 {
    DEVICE_NS * (1 + descriptors as u64 / FEW_DESCRIPTORS)
}

impl Devices {
    /// The kind of time that a thread of this occupation spends.
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

    /// Both ends of the pipe are in the process.
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

    /// What a wait for any of these descriptors is for.
    fn awaited(
        &mut self,
        set: EventSet,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Awaited {
        if let Some(&(awaited, until)) = self.awaited.get(&set)
            && at < until
        {
            return awaited;
        }
        let descriptors = seen.descriptors.in_set(process, set);
        let awaited = descriptors.as_ref().map_or(Awaited::Unknown, |descriptors| {
            let mut device = |descriptor| self.device(descriptor, process, at, seen);
            Awaited::of(descriptors, &mut device)
        });
        // Memory that does not hold the set any more may do so again at the next look.
        let Some(descriptors) = descriptors else { return awaited };
        if self.awaited.len() >= MAX_DEVICES {
            self.awaited.clear();
        }
        self.awaited.insert(set, (awaited, at + holds_ns(descriptors.len())));
        awaited
    }
}

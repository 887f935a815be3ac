//! Devices behind the file descriptors on which threads wait.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use threadtoll_stacks::process::{Client, Sockets};

use crate::account::time::Time;
use crate::circumstances::Circumstances;
use crate::occupation::{AwaitedEvent, Device, EventSet, Occupation};

const MAX_DEVICES: usize = 4096;
const DEVICE_NS: u64 = 1_000_000_000;

/// Factor by which a result is cached for a shorter time if a socket is missing from the cached
/// tables of sockets.
const NEWER: u64 = 8;

/// Minimum time between two readings of the tables of sockets, as a multiple of the time that a
/// reading takes.
const TABLES_COST: u64 = 1_000;

/// Number of descriptors that can be listed in the time that it takes to find one descriptor's
/// device.
const FEW_DESCRIPTORS: u64 = 32;

/// Caches of the devices behind descriptors, and of the purposes of waits for sets of descriptors.
/// Each entry holds the time at which it expires.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: HashMap<u32, (Device, u64)>,
    awaited: HashMap<EventSet, (AwaitedEvent, u64)>,
    own_pipes: (HashSet<u32>, u64),
    /// Tables of sockets, and the time from which they may be read again to find a missing socket.
    sockets: (Sockets, u64),
    /// Inodes that were missing from tables just read. The tables list only some kinds of sockets.
    unlisted: HashSet<u64>,
}

/// Time in nanoseconds for which a result is cached if finding it required a list of `descriptors`
/// descriptors.
fn holds_ns(descriptors: usize) -> u64 {
    DEVICE_NS * (1 + descriptors as u64 / FEW_DESCRIPTORS)
}

impl Devices {
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
        let device = match seen.lookups.device(process, descriptor) {
            Device::Pipe if self.is_own_pipe(descriptor, process, at, seen) => Device::OwnPipe,
            device => device,
        };
        if self.devices.len() >= MAX_DEVICES {
            self.devices.clear();
        }
        self.devices.insert(descriptor, (device, at + DEVICE_NS));
        device
    }

    fn is_own_pipe(
        &mut self,
        descriptor: u32,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> bool {
        if at >= self.own_pipes.1 {
            let (own, of) = seen.lookups.own_pipes(process);
            self.own_pipes = (own, at + holds_ns(of));
        }
        self.own_pipes.0.contains(&descriptor)
    }

    fn client(
        &mut self,
        descriptor: u32,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<Client> {
        let inode = seen.lookups.socket(process, descriptor)?;
        let (sockets, until) = &mut self.sockets;
        let known = sockets.client(inode);
        if known.is_some() || self.unlisted.contains(&inode) || at < *until {
            return known;
        }
        let begun = Instant::now();
        *sockets = seen.lookups.sockets(process);
        let spent = TABLES_COST * begun.elapsed().as_nanos() as u64;
        *until = at + spent.max(holds_ns(sockets.number()) / NEWER);
        let client = sockets.client(inode);
        if client.is_none() {
            if self.unlisted.len() >= MAX_DEVICES {
                self.unlisted.clear();
            }
            self.unlisted.insert(inode);
        }
        client
    }

    fn awaited(
        &mut self,
        set: EventSet,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> AwaitedEvent {
        let known = self.awaited.get(&set).copied();
        if let Some((awaited, until)) = known
            && at < until
        {
            return awaited;
        }
        // Often the memory no longer holds the set, because the call has returned since the sample.
        // Then an earlier result is likelier to be right than none, and the next sample may find
        // the set again.
        let Some(descriptors) = seen.lookups.in_set(process, set) else {
            return known.map_or(AwaitedEvent::Unknown, |(awaited, _)| awaited);
        };
        // A client's socket suggests a wait for an answer only if the thread polls this socket
        // alone. Event loops use epoll on both sides of a connection, and desktop programs poll a
        // connection together with other descriptors.
        let may_be_client = descriptors.len() == 1 && !matches!(set, EventSet::Epoll(_));
        let mut unknown = false;
        let mut device = |descriptor| match self.device(descriptor, process, at, seen) {
            Device::Socket if may_be_client => {
                let client = self.client(descriptor, process, at, seen);
                unknown |= client.is_none();
                match client {
                    Some(Client::Yes) => Device::ClientSocket,
                    Some(Client::No) | None => Device::Socket,
                }
            }
            device => device,
        };
        let awaited = AwaitedEvent::of(&descriptors, &mut device);
        if self.awaited.len() >= MAX_DEVICES {
            self.awaited.clear();
        }
        let holds_ns = holds_ns(descriptors.len()) / if unknown { NEWER } else { 1 };
        self.awaited.insert(set, (awaited, at + holds_ns));
        awaited
    }
}

//! Waits for any of several descriptors: poll(2), select(2), epoll_wait(2).
//!
//! That a thread idles is claimed only if something is among them by which work comes from outside:
//! a socket, a timer or changes of files. Threads also wake each other through eventfds, signals
//! and pipes that lead back into the process.

use libc::c_long;
use threadtoll_stacks::process::{Memory, SystemCall};

use super::Device;

/// Most descriptors of one wait whose devices are asked for, until one tells that work is awaited.
pub(crate) const MAX_DESCRIPTORS: usize = 256;

/// Most descriptors that select(2) takes.
const MAX_SELECT: u64 = 1024;

/// Length of a `pollfd`.
const POLLFD: usize = 8;

/// Where the kernel was told which descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventSet {
    /// By this epoll descriptor.
    Epoll(u32),
    /// By an array of `pollfd` at this address, of this length.
    Poll {
        /// Address of the first.
        address: u64,
        /// Number.
        count: u64,
    },
    /// By bits for reading, writing and exceptions, at these addresses, below this number.
    Select {
        /// One more than the highest descriptor.
        below: u64,
        /// Addresses, 0 for none.
        sets: [u64; 3],
    },
}

/// What a thread waits for that waits for any of several descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// Work from outside.
    Work,
    /// Other threads, or a signal.
    Threads,
    /// A device, the only kind among them.
    Device(Device),
    /// Nothing: time to pass.
    Nothing,
    /// Not known.
    Unknown,
}

impl EventSet {
    /// The descriptors that a call waits for, if it is one of those that wait for any of several.
    pub fn of(call: &SystemCall) -> Option<EventSet> {
        let number = c_long::from(call.number);
        let [first, second, third, fourth, ..] = call.arguments;
        let poll = EventSet::Poll { address: first, count: second & 0xffff_ffff };
        let select = EventSet::Select { below: first & 0xffff_ffff, sets: [second, third, fourth] };
        #[cfg(target_arch = "x86_64")]
        match number {
            libc::SYS_poll => return Some(poll),
            libc::SYS_select => return Some(select),
            libc::SYS_epoll_wait => return Some(EventSet::Epoll(first as u32)),
            _ => {}
        }
        match number {
            libc::SYS_ppoll => Some(poll),
            libc::SYS_pselect6 => Some(select),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(EventSet::Epoll(first as u32)),
            _ => None,
        }
    }

    /// A wait for nothing but time: so programs of old sleep.
    pub fn is_empty(&self) -> bool {
        match *self {
            EventSet::Epoll(_) => false,
            EventSet::Poll { count, .. } => count == 0,
            EventSet::Select { below, sets } => below == 0 || sets == [0; 3],
        }
    }

    /// The descriptors that memory of the program names; `None` if it does not hold such a set, or
    /// does not hold it any more. Those of an epoll descriptor are not in its memory.
    pub(crate) fn descriptors(&self, memory: Memory) -> Option<Vec<u32>> {
        match *self {
            EventSet::Epoll(_) => None,
            EventSet::Poll { address, count } => {
                let count = usize::try_from(count).ok()?.min(MAX_DESCRIPTORS);
                let mut bytes = vec![0; count * POLLFD];
                let got = memory.read(address, &mut bytes);
                (got == bytes.len()).then(|| polled(&bytes)).flatten()
            }
            EventSet::Select { below, sets } => {
                let length = below.min(MAX_SELECT).div_ceil(8) as usize;
                let mut all = vec![0; length];
                for address in sets.into_iter().filter(|&address| address != 0) {
                    let mut bytes = vec![0; length];
                    if memory.read(address, &mut bytes) < length {
                        return None;
                    }
                    all.iter_mut().zip(bytes).for_each(|(all, byte)| *all |= byte);
                }
                Some(selected(&all, below))
            }
        }
    }
}

/// Descriptors of an array of `pollfd`: a number, the events asked for, and those that came.
/// Negative numbers are left out by the kernel. `None` if other bytes are there by now.
fn polled(bytes: &[u8]) -> Option<Vec<u32>> {
    const MOST: i32 = 1 << 20;
    const EVENTS: u16 = 0x7fff;
    let (mut descriptors, mut asked) = (Vec::new(), false);
    for entry in bytes.chunks_exact(POLLFD) {
        let &[a, b, c, d, e, f, ..] = entry else { return None };
        let (descriptor, events) = (i32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
        if descriptor >= MOST || events > EVENTS {
            return None;
        }
        asked |= events != 0;
        descriptors.extend(u32::try_from(descriptor).ok());
    }
    // Zeros may be anything.
    asked.then_some(descriptors)
}

/// Descriptors whose bits are set.
fn selected(bits: &[u8], below: u64) -> Vec<u32> {
    let is_set = |descriptor: &u32| bits[*descriptor as usize / 8] >> (descriptor % 8) & 1 != 0;
    let all = (bits.len() * 8).min(below as usize) as u32;
    (0..all).filter(is_set).take(MAX_DESCRIPTORS).collect()
}

impl Awaited {
    /// What a wait for these is for. `own` tells if a pipe leads back into the process.
    pub(crate) fn of(
        descriptors: &[u32],
        device: &mut dyn FnMut(u32) -> Device,
        own: &mut dyn FnMut(&[u32]) -> bool,
    ) -> Awaited {
        if descriptors.is_empty() {
            return Awaited::Nothing;
        }
        let mut devices = Vec::new();
        for &descriptor in descriptors.iter().take(MAX_DESCRIPTORS) {
            match device(descriptor) {
                Device::Socket | Device::Timer | Device::Changes => return Awaited::Work,
                device => devices.push((device, descriptor)),
            }
        }
        let has = |kind: Device| devices.iter().any(|&(device, _)| device == kind);
        let awaited = [Device::Child, Device::Terminal, Device::Other];
        if let Some(kind) = awaited.into_iter().find(|&kind| has(kind)) {
            return Awaited::Device(kind);
        }
        if has(Device::Wakeups) || has(Device::Signals) {
            return Awaited::Threads;
        }
        if has(Device::Epoll) {
            return Awaited::Unknown;
        }
        let pipes: Vec<u32> =
            devices.iter().filter(|of| of.0 == Device::Pipe).map(|of| of.1).collect();
        match pipes.is_empty() {
            true => Awaited::Device(Device::Disk),
            false if own(&pipes) => Awaited::Threads,
            false => Awaited::Device(Device::Pipe),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: c_long, arguments: [u64; 6]) -> SystemCall {
        let number = number as u32;
        SystemCall { number, arguments, stack_pointer: 0, program_counter: 0 }
    }

    #[test]
    fn sets_come_from_arguments() {
        let of = |number, arguments| EventSet::of(&call(number, arguments));
        let poll = EventSet::Poll { address: 0x1000, count: 3 };
        assert_eq!(of(libc::SYS_ppoll, [0x1000, 3, 0, 0, 0, 0]), Some(poll));
        assert_eq!(of(libc::SYS_epoll_pwait, [7, 1, 2, 3, 0, 0]), Some(EventSet::Epoll(7)));
        let select = EventSet::Select { below: 5, sets: [0x10, 0, 0x30] };
        assert_eq!(of(libc::SYS_pselect6, [5, 0x10, 0, 0x30, 0, 0]), Some(select));
        assert_eq!(of(libc::SYS_read, [5, 0, 0, 0, 0, 0]), None);
        let empty = |number, arguments| of(number, arguments).unwrap().is_empty();
        assert!(empty(libc::SYS_ppoll, [0, 0, 0x2000, 0, 0, 0]));
        assert!(empty(libc::SYS_pselect6, [0; 6]) && empty(libc::SYS_pselect6, [9, 0, 0, 0, 1, 0]));
        assert!(!poll.is_empty() && !select.is_empty());
    }

    #[test]
    fn sets_are_read_from_memory() {
        let entry = |descriptor: i32, events: u16| {
            [&descriptor.to_ne_bytes()[..], &events.to_ne_bytes(), &[0, 0]].concat()
        };
        let array = [entry(5, 1), entry(-1, 1), entry(9, 4)].concat();
        assert_eq!(polled(&array), Some(vec![5, 9]));
        // A return address, perhaps.
        assert_eq!(polled(&0x7f12_3456_789a_u64.to_ne_bytes()), None);
        assert_eq!(polled(&[0; 16]), None);
        assert_eq!(selected(&[0b1000_0001, 0b10], 16), [0, 7, 9]);
        assert_eq!(selected(&[0b1000_0001, 0b10], 9), [0, 7]);
    }

    #[test]
    fn a_thread_idles_only_if_work_may_come() {
        let of = |devices: &[Device], own: bool| {
            let descriptors: Vec<u32> = (0..devices.len() as u32).collect();
            Awaited::of(&descriptors, &mut |at| devices[at as usize], &mut |_| own)
        };
        use Device::*;
        for work in [&[Wakeups, Socket][..], &[Timer, Signals], &[Pipe, Changes], &[Socket]] {
            assert_eq!(of(work, false), Awaited::Work, "{work:?}");
        }
        for threads in [&[Wakeups][..], &[Wakeups, Pipe, Signals], &[Signals]] {
            assert_eq!(of(threads, false), Awaited::Threads, "{threads:?}");
        }
        assert_eq!(of(&[Pipe, Pipe], true), Awaited::Threads);
        assert_eq!(of(&[Pipe, Pipe], false), Awaited::Device(Pipe));
        assert_eq!(of(&[Wakeups, Terminal], false), Awaited::Device(Terminal));
        assert_eq!(of(&[Wakeups, Child], false), Awaited::Device(Child));
        assert_eq!(of(&[], false), Awaited::Nothing);
    }
}

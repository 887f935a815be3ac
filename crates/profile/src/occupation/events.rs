//! Waits for any of several descriptors: poll(2), select(2), epoll_wait(2).
//!
//! A thread counts as idle only if one of the descriptors brings work from outside: a socket, a
//! timer or changes to files. Eventfds, signals and pipes back into the process do not count,
//! because threads use them to wake each other. A client in poll(2) waits for a reply, as in
//! recv(2): libraries of databases, HTTP and Python use poll(2) to limit the wait.

use libc::c_long;
use threadtoll_stacks::process::{Memory, SystemCall};

use super::Device;

/// Maximum number of descriptors per wait whose devices are looked up.
pub(crate) const MAX_DESCRIPTORS: usize = 256;

const MAX_SELECT: u64 = 1024;

const POLLFD: usize = 8;

/// A set of descriptors, as it is passed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventSet {
    /// The set of this epoll descriptor.
    Epoll(u32),
    /// An array of `pollfd`.
    Poll {
        /// Address of the first element.
        address: u64,
        /// Number of elements.
        count: u64,
    },
    /// Bit sets for reading, writing and exceptions.
    Select {
        /// One more than the highest descriptor.
        below: u64,
        /// Addresses of the bit sets; 0 for none.
        sets: [u64; 3],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Polled {
    pub(crate) descriptor: u32,
    /// True if the thread waits until it can read, not only until it can write.
    pub(crate) reads: bool,
}

impl Polled {
    /// `events` are flags of poll(2); epoll(7) uses the same values.
    pub(crate) fn new(descriptor: u32, events: u32) -> Polled {
        const READS: u32 = (libc::POLLIN | libc::POLLPRI | libc::POLLRDNORM) as u32;
        const WRITES: u32 = (libc::POLLOUT | libc::POLLWRNORM) as u32;
        Polled { descriptor, reads: events & READS != 0 || events & WRITES == 0 }
    }
}

/// Event for which a thread waits in a call for several descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AwaitedEvent {
    /// Work from outside.
    Work,
    /// Other threads, or a signal.
    Threads,
    /// A device of this kind; no descriptor brings work from outside.
    Device(Device),
    /// Only the timeout.
    Nothing,
    /// Unknown.
    Unknown,
}

impl EventSet {
    /// Returns the descriptors for which a call waits; `None` for calls of other kinds.
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

    /// Returns `true` if the call waits only for its timeout, as older programs do to sleep.
    pub fn is_empty(&self) -> bool {
        match *self {
            EventSet::Epoll(_) => false,
            EventSet::Poll { count, .. } => count == 0,
            EventSet::Select { below, sets } => below == 0 || sets == [0; 3],
        }
    }

    /// Reads the descriptors from the program's memory. Returns `None` if the memory does not (or
    /// no longer) hold such a set, and always for epoll, whose set is in the kernel.
    pub(crate) fn descriptors(&self, memory: Memory) -> Option<Vec<Polled>> {
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
                let mut all = [const { Vec::new() }; 3];
                for (bytes, address) in all.iter_mut().zip(sets) {
                    bytes.resize(length, 0);
                    if address != 0 && memory.read(address, bytes) < length {
                        return None;
                    }
                }
                Some(selected(&all, below))
            }
        }
    }
}

/// Parses an array of `pollfd`. Each element holds a descriptor, the requested events, and the
/// events that occurred. The kernel skips negative descriptors. Returns `None` if the memory now
/// holds something else.
fn polled(bytes: &[u8]) -> Option<Vec<Polled>> {
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
        let descriptor = u32::try_from(descriptor).ok();
        descriptors.extend(descriptor.map(|it| Polled::new(it, events.into())));
    }
    // If no event is requested, the memory may hold anything.
    asked.then_some(descriptors)
}

fn selected(bits: &[Vec<u8>; 3], below: u64) -> Vec<Polled> {
    let polled = |descriptor: u32| {
        let is_set = |bits: &Vec<u8>| {
            bits.get(descriptor as usize / 8).is_some_and(|byte| byte >> (descriptor % 8) & 1 != 0)
        };
        let [reads, writes, exceptions] = bits.each_ref().map(is_set);
        let waits = reads || writes || exceptions;
        waits.then_some(Polled { descriptor, reads: reads || exceptions })
    };
    (0..below.min(MAX_SELECT) as u32).filter_map(polled).take(MAX_DESCRIPTORS).collect()
}

impl AwaitedEvent {
    pub(crate) fn of(
        descriptors: &[Polled],
        device: &mut dyn FnMut(u32) -> Device,
    ) -> AwaitedEvent {
        if descriptors.is_empty() {
            return AwaitedEvent::Nothing;
        }
        let mut devices = Vec::new();
        for &Polled { descriptor, reads } in descriptors.iter().take(MAX_DESCRIPTORS) {
            match device(descriptor) {
                Device::Socket if reads => return AwaitedEvent::Work,
                Device::Timer | Device::Changes => return AwaitedEvent::Work,
                device => devices.push(device),
            }
        }
        let has = |kind: Device| devices.contains(&kind);
        // The process at the other end has not read or replied yet.
        if has(Device::Socket) || has(Device::ClientSocket) {
            return AwaitedEvent::Device(Device::Socket);
        }
        let awaited = [Device::Child, Device::Terminal, Device::Other];
        if let Some(kind) = awaited.into_iter().find(|&kind| has(kind)) {
            return AwaitedEvent::Device(kind);
        }
        if has(Device::Wakeups) || has(Device::Signals) || has(Device::OwnPipe) {
            return AwaitedEvent::Threads;
        }
        if has(Device::Epoll) {
            return AwaitedEvent::Unknown;
        }
        AwaitedEvent::Device(if has(Device::Pipe) { Device::Pipe } else { Device::Disk })
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
        let one = |descriptor, reads| Polled { descriptor, reads };
        assert_eq!(polled(&array), Some(vec![one(5, true), one(9, false)]));
        // Not a `pollfd`, but perhaps a return address.
        assert_eq!(polled(&0x7f12_3456_789a_u64.to_ne_bytes()), None);
        assert_eq!(polled(&[0; 16]), None);
        let sets = [vec![0b1000_0001, 0], vec![1, 0b10], vec![0, 0]];
        assert_eq!(selected(&sets, 16), [one(0, true), one(7, true), one(9, false)]);
        assert_eq!(selected(&sets, 9), [one(0, true), one(7, true)]);
    }

    #[test]
    fn a_thread_idles_only_if_work_may_come() {
        let wait = |devices: &[Device], events: i16| {
            let polled = |at| Polled::new(at, events as u32);
            let descriptors: Vec<Polled> = (0..devices.len() as u32).map(polled).collect();
            AwaitedEvent::of(&descriptors, &mut |at| devices[at as usize])
        };
        let of = |devices: &[Device]| wait(devices, libc::POLLIN | libc::POLLOUT);
        use Device::*;
        for work in [&[Wakeups, Socket][..], &[Timer, Signals], &[Pipe, Changes], &[Socket]] {
            assert_eq!(of(work), AwaitedEvent::Work, "{work:?}");
        }
        for threads in [&[Wakeups][..], &[Wakeups, Pipe, Signals], &[Signals], &[Pipe, OwnPipe]] {
            assert_eq!(of(threads), AwaitedEvent::Threads, "{threads:?}");
        }
        assert_eq!(of(&[Pipe, Pipe]), AwaitedEvent::Device(Pipe));
        assert_eq!(of(&[Wakeups, Terminal]), AwaitedEvent::Device(Terminal));
        assert_eq!(of(&[Wakeups, Child]), AwaitedEvent::Device(Child));
        assert_eq!(of(&[]), AwaitedEvent::Nothing);
        assert_eq!(wait(&[Wakeups, Socket], libc::POLLOUT), AwaitedEvent::Device(Socket));
        assert_eq!(wait(&[Socket], 0), AwaitedEvent::Work);
        assert_eq!(of(&[ClientSocket]), AwaitedEvent::Device(Socket));
    }
}

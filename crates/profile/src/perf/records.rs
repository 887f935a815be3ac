//! Parses the records of a ring.
//!
//! The layout is that of `perf_event_open(2)` for events with `sample_id_all` and the sample types
//! TID, TIME and CPU; samples also have user registers and stack. Records that are too short or of
//! an unknown type become `None`.

use super::registers::UserRegisters;

const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const LOST: u32 = 2;
const SWITCH: u32 = 14;

const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

const HEADER_BYTES: usize = 8;
/// TID, TIME and CPU at the end of each record other than a sample.
const SAMPLE_ID_BYTES: usize = 24;

const REGISTERS_OF_NO_USER: u64 = 0;

/// A report from the kernel. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A thread got a CPU or left it.
    Switch {
        /// Thread.
        tid: u32,
        /// Time.
        at: u64,
        /// CPU that the thread got or left.
        cpu: u32,
        /// Direction of the switch.
        direction: Direction,
    },
    /// A sample of a thread that ran in user mode.
    Sample(StackSample<'a>),
    /// A thread or a process was created.
    Fork {
        /// Process of the new thread.
        pid: u32,
        /// The new thread.
        tid: u32,
        /// Process of the thread that created it.
        parent_pid: u32,
        /// Time.
        at: u64,
    },
    /// A thread ended.
    Exit {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Time.
        at: u64,
    },
    /// A process has called exec, which has ended its other threads.
    Exec {
        /// PID, which is also the TID of the remaining thread.
        pid: u32,
        /// Time.
        at: u64,
    },
    /// Records between `after` and `until` are missing, because a ring was full or switch records
    /// were off.
    Lost {
        /// Time of the last record in that ring before the gap; 0 if there was none.
        after: u64,
        /// Time from which records are complete again.
        until: u64,
        /// Number of records known to be missing.
        records: u64,
    },
    /// A thread is followed from now on.
    Followed {
        /// Thread.
        tid: u32,
        /// Time.
        at: u64,
    },
    /// A thread is no longer followed, or may have run unnoticed. Its state is unknown until its
    /// next event.
    Unfollowed {
        /// Thread.
        tid: u32,
        /// Time.
        at: u64,
    },
}

/// Direction of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The thread got a CPU.
    In,
    /// The thread left its CPU.
    Out {
        /// True if the thread could have continued but lost its CPU to another thread. Linux before
        /// 4.17 does not report this.
        preempted: bool,
    },
}

/// Registers and stack of a thread that ran in user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time.
    pub at: u64,
    /// CPU on which the thread ran.
    pub cpu: u32,
    /// Registers.
    pub registers: UserRegisters<'a>,
    /// Copy of the memory from the stack pointer up.
    pub stack: &'a [u8],
}

impl Event<'_> {
    pub(super) fn at(&self) -> u64 {
        match *self {
            Event::Switch { at, .. }
            | Event::Sample(StackSample { at, .. })
            | Event::Fork { at, .. }
            | Event::Exit { at, .. }
            | Event::Exec { at, .. }
            | Event::Lost { until: at, .. }
            | Event::Followed { at, .. }
            | Event::Unfollowed { at, .. } => at,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    kind: u32,
    flags: u16,
    bytes: usize,
}

/// Decodes the records in the concatenation of `first` and `second`, and passes each to `handle`.
/// `joined` is a buffer for records that cross from `first` to `second`. Returns `false` if the
/// bytes after the last passed record are not a record.
#[must_use]
pub(super) fn each_record(
    first: &[u8],
    second: &[u8],
    joined: &mut Vec<u8>,
    handle: &mut dyn FnMut(Header, &[u8]),
) -> bool {
    let end = first.len() + second.len();
    let mut at = 0;
    while at < end {
        let Some(header) = window(first, second, at, HEADER_BYTES, joined).and_then(header) else {
            return false;
        };
        let body = header.bytes - HEADER_BYTES;
        let Some(body) = window(first, second, at + HEADER_BYTES, body, joined) else {
            return false;
        };
        handle(header, body);
        at += header.bytes;
    }
    true
}

fn header(bytes: &[u8]) -> Option<Header> {
    let mut fields = Fields(bytes);
    let kind = fields.u32()?;
    let flags = fields.u16()?;
    let bytes = usize::from(fields.u16()?);
    (bytes >= HEADER_BYTES).then_some(Header { kind, flags, bytes })
}

fn window<'a>(
    first: &'a [u8],
    second: &'a [u8],
    from: usize,
    bytes: usize,
    joined: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    let to = from + bytes;
    if to <= first.len() {
        return first.get(from..to);
    }
    if let Some(from) = from.checked_sub(first.len()) {
        return second.get(from..from + bytes);
    }
    joined.clear();
    joined.extend_from_slice(&first[from..]);
    joined.extend_from_slice(second.get(..to - first.len())?);
    Some(joined)
}

/// Decodes a record. In [`Event::Lost`], `after` stays 0.
pub(super) fn event(header: Header, body: &[u8]) -> Option<Event<'_>> {
    let mut fields = Fields(body);
    match header.kind {
        SAMPLE => sample(fields).map(Event::Sample),
        SWITCH => {
            let id = SampleId::of(body)?;
            let direction = if header.flags & MISC_SWITCH_OUT == 0 {
                Direction::In
            } else {
                Direction::Out { preempted: header.flags & MISC_SWITCH_OUT_PREEMPT != 0 }
            };
            Some(Event::Switch { tid: id.tid, at: id.at, cpu: id.cpu, direction })
        }
        FORK | EXIT => {
            let (pid, parent_pid) = (fields.u32()?, fields.u32()?);
            let (tid, _parent_tid) = (fields.u32()?, fields.u32()?);
            let at = fields.u64()?;
            Some(if header.kind == FORK {
                Event::Fork { pid, tid, parent_pid, at }
            } else {
                Event::Exit { pid, tid, at }
            })
        }
        COMM if header.flags & MISC_COMM_EXEC != 0 => {
            let pid = fields.u32()?;
            Some(Event::Exec { pid, at: SampleId::of(body)?.at })
        }
        LOST => {
            let _event = fields.u64()?;
            let records = fields.u64()?;
            Some(Event::Lost { after: 0, until: SampleId::of(body)?.at, records })
        }
        _ => None,
    }
}

fn sample(mut fields: Fields<'_>) -> Option<StackSample<'_>> {
    let (pid, tid) = (fields.u32()?, fields.u32()?);
    let at = fields.u64()?;
    let (cpu, _reserved) = (fields.u32()?, fields.u32()?);
    if fields.u64()? == REGISTERS_OF_NO_USER {
        return None;
    }
    let (registers, rest) = UserRegisters::split_from(fields.0)?;
    fields.0 = rest;
    let room = usize::try_from(fields.u64()?).ok()?;
    let stack = fields.take(room)?;
    // If no room was requested for a copy, the field for its length is missing as well.
    let copied = if room == 0 { 0 } else { usize::try_from(fields.u64()?).ok()? };
    let stack = stack.get(..copied)?;
    Some(StackSample { pid, tid, at, cpu, registers, stack })
}

struct SampleId {
    tid: u32,
    at: u64,
    cpu: u32,
}

impl SampleId {
    fn of(body: &[u8]) -> Option<SampleId> {
        // Fixed places, which need no checks of bounds: most records are switches.
        let bytes = body.last_chunk::<SAMPLE_ID_BYTES>()?;
        Some(SampleId {
            tid: u32::from_ne_bytes(bytes[4..8].try_into().ok()?),
            at: u64::from_ne_bytes(bytes[8..16].try_into().ok()?),
            cpu: u32::from_ne_bytes(bytes[16..20].try_into().ok()?),
        })
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::registers::COUNT;
    use super::*;

    fn record(kind: u32, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(flags.to_ne_bytes());
        record.extend(((HEADER_BYTES + body.len()) as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn pair(low: u32, high: u32) -> u64 {
        let [a, b, c, d] = low.to_ne_bytes();
        let [e, f, g, h] = high.to_ne_bytes();
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    fn sample_record(stack: &[u8], copied: u64) -> Vec<u8> {
        let mut body = words(&[pair(7, 8), 1000, pair(3, 0), 2]);
        body.extend(words(&(100..100 + COUNT as u64).collect::<Vec<_>>()));
        body.extend(words(&[stack.len() as u64]));
        body.extend(stack);
        body.extend(words(&[copied]));
        record(SAMPLE, 2, &body)
    }

    fn check(bytes: &[u8], split: usize, expect: &[Event<'_>]) {
        let (first, second) = bytes.split_at(split);
        let mut seen = 0;
        let whole = each_record(first, second, &mut Vec::new(), &mut |header, body| {
            assert_eq!(event(header, body), Some(expect[seen]), "split at {split}");
            seen += 1;
        });
        assert!(whole);
        assert_eq!(seen, expect.len());
    }

    #[test]
    fn records_are_read_wherever_the_ring_wraps() {
        let id = words(&[pair(7, 8), 2000, pair(1, 0)]);
        let mut bytes = record(SWITCH, MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT, &id);
        bytes.extend(record(SWITCH, 0, &id));
        let stack: Vec<u8> = (0..64).collect();
        bytes.extend(sample_record(&stack, 24));
        let registers = words(&(100..100 + COUNT as u64).collect::<Vec<_>>());
        let (registers, _) = UserRegisters::split_from(&registers).unwrap();
        bytes.extend(record(LOST, 0, &[words(&[5, 6]), id.clone()].concat()));
        bytes.extend(record(COMM, MISC_COMM_EXEC, &[words(&[pair(7, 7), 0]), id.clone()].concat()));
        bytes.extend(record(FORK, 0, &[words(&[pair(9, 7), pair(9, 8), 1500]), id].concat()));
        let switch = |direction| Event::Switch { tid: 8, at: 2000, cpu: 1, direction };
        let expect = [
            switch(Direction::Out { preempted: true }),
            switch(Direction::In),
            Event::Sample(StackSample {
                pid: 7,
                tid: 8,
                at: 1000,
                cpu: 3,
                registers,
                stack: &stack[..24],
            }),
            Event::Lost { after: 0, until: 2000, records: 6 },
            Event::Exec { pid: 7, at: 2000 },
            Event::Fork { pid: 9, tid: 9, parent_pid: 7, at: 1500 },
        ];
        for split in 0..=bytes.len() {
            check(&bytes, split, &expect);
        }
    }

    #[test]
    fn a_stack_longer_than_its_room_is_refused() {
        let bytes = sample_record(&[0; 16], 17);
        assert!(each_record(&bytes, &[], &mut Vec::new(), &mut |header, body| {
            assert_eq!(event(header, body), None);
        }));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_survived(
            first in prop::collection::vec(any::<u8>(), 0..200),
            second in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut records = 0;
            let _ = each_record(&first, &second, &mut Vec::new(), &mut |header, body| {
                records += 1;
                let _ = event(header, body);
            });
            prop_assert!(records * HEADER_BYTES <= first.len() + second.len());
        }

        #[test]
        fn hostile_bodies_are_survived(
            kind in 0..20u32,
            flags in any::<u16>(),
            body in prop::collection::vec(any::<u8>(), 0..400),
            lengths in prop::collection::vec(prop_oneof![0..64u64, any::<u64>()], 2),
            split in 0..400usize,
        ) {
            let mut body = body;
            // The last words of a sample hold its lengths.
            for (word, length) in body.rchunks_exact_mut(8).skip(1).step_by(2).zip(lengths) {
                word.copy_from_slice(&length.to_ne_bytes());
            }
            let bytes = record(kind, flags, &body);
            let (first, second) = bytes.split_at(split.min(bytes.len()));
            let whole = each_record(first, second, &mut Vec::new(), &mut |header, body| {
                if let Some(Event::Sample(sample)) = event(header, body) {
                    assert!(sample.stack.len() <= body.len());
                }
            });
            prop_assert!(whole);
        }
    }
}

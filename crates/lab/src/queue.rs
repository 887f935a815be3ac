//! Queues and their scenarios, one per file.
//!
//! A queue implements the interface [`Channel`], and creates its two ends for each of its wait
//! strategies. A scenario decides what the ends do. Its loops are monomorphised for each channel,
//! so that nothing but the queue runs between two messages.
//!
//! A message is its number, in 8 bytes. If there are several senders, the top byte is the sender's
//! number. Only the scenario `payload` sends other messages.

mod arrivals;
mod channel;
mod erased;
mod gathered;
mod lose;
mod message;
mod options;
mod paced;
mod registry;
mod scenario;
mod slots;
mod way;
mod words;

use std::sync::Arc;

use threadtoll::wait::Wait as Waiting;
use threadtoll_record::{Experiment, Load, Wait};

use crate::budget::ROUNDS;
use crate::error::Unavailable;
use crate::exchange::Ends;
use crate::program::Program;
use crate::program_file::ProgramFile;
use crate::stream::Streams;

pub use arrivals::{MAX_RATE, Trace};
pub use channel::{AnySize, Broadcast, Channel, ManySenders, Sink, Source};
pub use message::{MESSAGE_BYTES, Message, Words};
pub use options::{ArrivalsChoice, Overrides, Unsuitable};
pub use registry::Queues;
pub use scenario::Scenario;
pub(crate) use scenario::{Asked, Grouping};
use scenario::{DEFAULT, Loops, only, rounds, within};
pub use slots::{Capacity, RING_BYTES, Slots};
pub use stream::BATCH;
pub(crate) use way::{Flow, Usage, class};
pub use way::{OUR_WAITS, Queue, Way};

/// Default capacity of bounded queues.
pub const CAPACITY: u64 = 1024;
/// Half more rounds than a verdict needs, because some blocks are always disturbed.
const QUEUE_ROUNDS: u32 = ROUNDS + ROUNDS / 2;
/// Maximum capacity that can be requested.
pub const MAX_CAPACITY: u64 = 1 << 24;
/// Sizes of the blocks that a bare copy copies, in words: 4, 16, 64 and 256 KiB.
pub(crate) const BLOCKS: [u64; 4] = [512, 2048, 8192, 32_768];
/// Maximum batch size: the number of messages in a ring of [`RING_BYTES`].
pub const MAX_BATCH: u64 = BLOCKS[3];
/// Maximum number of sending threads.
pub const MAX_SENDERS: u32 = 64;
/// Maximum number of receiving threads.
pub const MAX_RECEIVERS: u64 = 64;

impl Way {
    /// A row of a queue with one sender and one receiver.
    pub fn one_sender<C: AnySize + Default>(wait: Wait) -> Self {
        Self::one_sender_of(C::default(), wait)
    }

    /// A row of a queue whose sending end is cloned for each sender.
    pub fn many_senders<C: ManySenders + Default>(wait: Wait) -> Self {
        Self::many_senders_of(C::default(), wait)
    }

    /// A row of a queue whose ends are cloned for each sender and for each receiver.
    pub fn many_receivers<C: ManySenders + Channel<Source: Clone, Sink: Clone> + Default>(
        wait: Wait,
    ) -> Self {
        Self::many_receivers_of(C::default(), wait)
    }

    /// Like [`one_sender`](Self::one_sender), for this channel value.
    pub fn one_sender_of<C: AnySize>(channel: C, wait: Wait) -> Self {
        Self::new(wait, move |scenario, usage| one_sender(&channel, scenario, usage))
    }

    /// Like [`many_senders`](Self::many_senders), for this channel value.
    pub fn many_senders_of<C: ManySenders>(channel: C, wait: Wait) -> Self {
        let programs = move |scenario: &str, usage| many_senders(&channel, scenario, usage);
        Way { many_senders: true, ..Self::new(wait, programs) }
    }

    /// Like [`many_receivers`](Self::many_receivers), for this channel value.
    pub fn many_receivers_of<C: ManySenders + Channel<Source: Clone, Sink: Clone>>(
        channel: C,
        wait: Wait,
    ) -> Self {
        let programs = move |scenario: &str, usage| many_receivers(&channel, scenario, usage);
        Way { many_senders: true, many_receivers: true, ..Self::new(wait, programs) }
    }

    /// A row that a program in another language measures, in the scenarios and with the loads and
    /// message sizes that `asked` accepts. On simulated machines, one of our queues replaces it.
    pub(crate) fn elsewhere(
        wait: Wait,
        file: ProgramFile,
        asked: impl Fn(&str, &Load, u64) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(wait, move |scenario, usage| {
            if !asked(scenario, &usage.load, usage.payload_bytes) {
                return None;
            }
            let like = if scenario == broadcast::SCENARIO.name {
                broadcast::program(&ring::Ring::new(Waiting::Spin), usage)?
            } else {
                one_sender(&pipe::Pipe::unbounded(Waiting::Spin), scenario, usage)?
            };
            Some(like.or_elsewhere(Some(&file)))
        })
    }

    /// A row that only `ask-reply` can measure, given a constructor of both ends.
    pub fn exchange_only(
        wait: Wait,
        make: impl Fn() -> Result<Ends, Unavailable> + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(make);
        Self::new(wait, move |scenario, usage| {
            let make = Arc::clone(&make);
            (scenario == ask_reply::SCENARIO.name)
                .then(|| Program::Exchange { make, class: usage.class })
        })
    }

    /// A row of a queue that gives every message to each of several receivers, with its rows of one
    /// receiver in the scenarios of `alone`.
    pub(crate) fn broadcast_and<C: Broadcast + AnySize>(
        channel: C,
        wait: Wait,
        alone: &'static [&'static str],
    ) -> Self {
        Self::new(wait, move |scenario, usage| {
            if scenario == broadcast::SCENARIO.name {
                return broadcast::program(&channel, usage);
            }
            alone.contains(&scenario).then(|| one_sender(&channel, scenario, usage)).flatten()
        })
    }

    /// A row of a queue that gives every message to each of several receivers.
    pub fn broadcast_only(channel: impl Broadcast, wait: Wait) -> Self {
        Self::new(wait, move |scenario, usage| {
            let is_broadcast = scenario == broadcast::SCENARIO.name;
            is_broadcast.then(|| broadcast::program(&channel, usage)).flatten()
        })
    }

    pub(crate) fn stream_only(wait: Wait, make: fn(u64) -> Result<Streams, Unavailable>) -> Self {
        let way = Self::new(wait, move |scenario, usage| {
            // A plan from a file must not exhaust memory.
            let round = usage.flow.batch.clamp(1, MAX_BATCH);
            let make = Arc::new(move || make(round));
            (scenario == stream::SCENARIO.name).then(|| usage.stream(round, make))
        });
        way.in_batches()
    }
}

macro_rules! queues {
    ($($vis:vis $file:ident),+ $(,)?) => {
        $($vis mod $file;)+

        /// This project's queues, and the bare copy, whose throughput is the upper limit for all of
        /// them.
        pub fn ours() -> Vec<Queue> {
            let mut all = Vec::new();
            $(all.extend($file::queues());)+
            all
        }
    };
}

queues! {
    pub pipe,
    pub funnel,
    call,
    pub oneshot,
    owned,
    pub ring,
    bundle,
    raw_copy,
}

macro_rules! scenarios {
    ($($module:ident),+ $(,)?) => {
        $(pub mod $module;)+

        /// Every scenario.
        pub const SCENARIOS: &[Scenario] = &[$($module::SCENARIO),+];

        fn one_sender<C: AnySize>(
            channel: &C,
            scenario: &str,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario == $module::SCENARIO.name {
                return $module::Compiled::one_sender(channel, usage);
            })+
            None
        }

        fn many_senders<C: ManySenders>(
            channel: &C,
            scenario: &str,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario == $module::SCENARIO.name {
                return $module::Compiled::many_senders(channel, usage);
            })+
            None
        }

        fn many_receivers<C: ManySenders + Channel<Source: Clone, Sink: Clone>>(
            channel: &C,
            scenario: &str,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario == $module::SCENARIO.name {
                return $module::Compiled::many_receivers(channel, usage);
            })+
            None
        }
    };
}

scenarios! {
    ask_reply,
    stream,
    open_loop,
    burst,
    depth,
    workers,
    broadcast,
    flood,
    funnel_load,
    night_watch,
    payload,
    for_me,
}

/// Returns the scenario with this name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    pub(crate) fn of(experiment: &Experiment) -> Option<&'static Scenario> {
        match experiment {
            Experiment::Queue(name) => scenario(name),
            Experiment::Latency | Experiment::Matrix | Experiment::Contention(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_record::{Carry, Origin};

    use super::*;
    use crate::real::check;

    #[test]
    fn names_are_written_as_the_contract_has_them_and_found_again() {
        let queues = Queues::default();
        for queue in queues.all() {
            assert_eq!(queues.find(&queue.name), Some(queue));
            assert!(queue.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{queue:?}");
            assert!(!queue.sentence.is_empty() && queue.sentence.len() < 100, "{queue:?}");
            for (at, way) in queue.ways.iter().enumerate() {
                assert!(SCENARIOS.iter().any(|scenario| scenario.takes(way)), "{queue:?}");
                assert!(queue.ways[..at].iter().all(|other| other.wait != way.wait), "{queue:?}");
            }
        }
        assert_eq!(queues.find("tube"), None);
        assert!(SCENARIOS.iter().all(|one| {
            Scenario::of(&one.experiment()).is_some_and(|found| found.name == one.name)
        }));
    }

    #[test]
    fn a_capacity_is_what_the_queue_takes() {
        let lines = Slots { spare: |groups| groups / 64, ..Slots::groups(7, 64) };
        assert_eq!(
            (lines.capacity_within(RING_BYTES), lines.ring_bytes(28_224)),
            (28_224, RING_BYTES - 64)
        );
        assert_eq!((lines.capacity(1000), lines.ring_bytes(1000)), (1000, (143 + 2) * 64));
        assert_eq!(Slots::NUMBERED.capacity_within(RING_BYTES), 16_384);
        let powers = Slots::PLAIN.power_of_two();
        assert_eq!(
            (powers.capacity(1023), powers.capacity(1024), powers.capacity(1)),
            (512, 1024, 1)
        );
        assert_eq!(powers.ring_bytes(512), 4096);
    }

    #[test]
    fn larger_messages_take_as_much_more_memory() {
        let slots = Slots::NUMBERED.of(4096);
        assert_eq!((slots.ring_bytes(10), slots.capacity_within(RING_BYTES)), (41_040, 63));
        assert_eq!(Slots::groups(32, 288).of(64).ring_bytes(1), 32 * 64 + 32);
        assert_eq!(Slots::NUMBERED.of(8).ring_bytes(3), Slots::NUMBERED.ring_bytes(3));
    }

    #[test]
    fn ours_carry_messages_of_all_sizes() {
        // All sizes for a queue's first wait strategy, a single size for the others.
        let first = [&MESSAGE_BYTES[..], &[24]].concat();
        let others = vec![64];
        for queue in ours() {
            let ways = queue.ways.iter().filter(|way| payload::SCENARIO.takes(way));
            for (way, sizes) in ways.zip(std::iter::once(&first).chain(std::iter::repeat(&others)))
            {
                for (carry, bytes) in
                    Carry::ALL.iter().flat_map(|carry| sizes.iter().map(|bytes| (*carry, *bytes)))
                {
                    let messages = ((1 << 20) / bytes).clamp(8, 130);
                    let carried = check::payload(
                        way,
                        carry,
                        bytes,
                        if bytes > 4096 { 3 } else { 64 },
                        messages,
                    );
                    let carried = carried.unwrap_or_else(|why| {
                        panic!("{queue:?}, {way:?}, {carry}, {bytes} B: {why}")
                    });
                    let typed = MESSAGE_BYTES.contains(&bytes);
                    let expected = match carry {
                        Carry::Moved => typed && queue.origin == Origin::Ours,
                        Carry::InPlace => typed && queue.name.starts_with("pipe"),
                    };
                    assert_eq!(carried, expected, "{queue:?}, {carry}, {bytes} B");
                }
            }
        }
    }

    #[test]
    fn ours_deliver_what_was_sent() {
        for queue in ours() {
            for way in &queue.ways {
                let senders: &[u32] = if way.many_senders { &[1, 2] } else { &[1] };
                let batches: &[u64] = match queue.origin {
                    Origin::Raw => &BLOCKS,
                    _ if way.batches => &[1, 100, BATCH],
                    _ => &[1],
                };
                for (senders, batch) in
                    senders.iter().flat_map(|one| batches.iter().map(move |batch| (*one, *batch)))
                {
                    if stream::SCENARIO.takes(way) {
                        check::stream(way, senders, batch, CAPACITY, 3 * CAPACITY)
                            .unwrap_or_else(|why| panic!("{queue:?} {batch}: {why}"));
                    }
                }
                // If a batch is larger than a queue, the sender of a diamond waits for the last
                // receiver.
                for (load, batch) in broadcast::loads(None, None)
                    .iter()
                    .flat_map(|load| [1, 64].map(|batch| (load, batch)))
                {
                    let brought = check::broadcast(way, load, batch, 8);
                    let brought = brought.unwrap_or_else(|why| panic!("{queue:?} {load:?}: {why}"));
                    assert_eq!(brought, broadcast::SCENARIO.takes(way), "{queue:?} {load:?}");
                }
                if ask_reply::SCENARIO.takes(way) {
                    check::ask_reply(way, 1_000).unwrap_or_else(|why| panic!("{queue:?}: {why}"));
                }
            }
        }
    }
}

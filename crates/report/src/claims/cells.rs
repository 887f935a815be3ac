//! The properties by which a claim selects cells.

use threadtoll_record::{Cell, Layout, Pause, Record, Spread, Subject, WaitFamily, Work};

use crate::class::slept;
use crate::clean::clean;
use crate::label::plural;
use crate::units::{count, per_second, round_time, share};

use Property::*;
use Value::{Number, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Name,
    Placement,
    Cpus,
    SharedLine,
    Wait,
    MaySleep,
    Slept,
    /// True for a Rust queue that guards its messages with a lock.
    UnderLock,
    Batch,
    Senders,
    Burst,
    GapNs,
    RatePerS,
    Sleeps,
    Exponential,
    Oversubscribed,
    Threads,
    HoldNs,
    ThinkNs,
    CycleNs,
    HoldShare,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Word(String),
    Number(f64),
}

/// A condition on a property. Both ends of a range are included.
#[derive(Clone, Copy, Debug)]
pub(super) enum Is {
    All(&'static [Is]),
    OneOf(Property, &'static [&'static str]),
    Between(Property, f64, f64),
    No(Property),
    Yes(Property),
    /// The property has the same value as in the compared cell.
    Same(Property),
}

/// Beginnings of the names of queues that guard their messages with a lock.
const UNDER_LOCK: [&str; 2] = ["flume-", "kanal-"];

impl Property {
    /// The value of this property; `None` if the cell does not have it.
    pub(super) fn of(self, record: &Record) -> Option<Value> {
        let cell = &record.cell;
        let (queue, lock) = (cell.queue(), cell.lock());
        let word = |text: &str| Some(Word(text.into()));
        let is = |yes: bool| Some(Number(yes.into()));
        match self {
            Name => word(cell.name()),
            Placement => word(&cell.placement.to_string()),
            Cpus => word(&format!("{:?}", cell.cpus)),
            SharedLine => is(cell.line == Some(Layout::Shared)),
            Wait => word(queue?.wait.name()),
            MaySleep => is(cell.subject.family() == WaitFamily::Blocking),
            Slept => is(slept(record)),
            UnderLock => {
                let queue = &*queue?.queue;
                is(UNDER_LOCK.iter().any(|name| queue.starts_with(name)))
            }
            Batch => Some(Number(queue?.batch as f64)),
            Senders => Some(Number(queue?.senders.into())),
            Burst => Some(Number(queue?.load.burst?.as_f64())),
            GapNs => Some(Number(queue?.load.gap_ns?.as_f64())),
            RatePerS => Some(Number(queue?.load.rate_per_s?.as_f64())),
            Sleeps => is(lock?.work == Work::Sleep),
            Exponential => is(lock?.spread == Spread::Exponential),
            Oversubscribed => is(cell.oversubscribed()),
            Threads => Some(Number(lock?.threads.into())),
            HoldNs => Some(Number(lock?.hold_ns as f64)),
            ThinkNs => Some(Number(lock?.think_ns as f64)),
            CycleNs => Some(Number(lock?.cycle_ns() as f64)),
            HoldShare => Some(Number(lock?.hold_share())),
        }
    }
}

impl Is {
    pub(super) fn met_by(self, record: &Record, compared: &Record) -> bool {
        match self {
            Is::All(conditions) => conditions.iter().all(|all| all.met_by(record, compared)),
            Is::OneOf(property, words) => match property.of(record) {
                Some(Word(word)) => words.contains(&&*word),
                _ => false,
            },
            Is::Between(property, least, most) => match property.of(record) {
                Some(Number(value)) => (least..=most).contains(&value),
                _ => false,
            },
            Is::No(property) => property.of(record) == Some(Number(0.0)),
            Is::Yes(property) => property.of(record) == Some(Number(1.0)),
            Is::Same(property) => property.of(record) == property.of(compared),
        }
    }

    /// The cell's value, if the condition allows several and the value belongs in a name.
    fn value(self, record: &Record) -> Option<String> {
        const TOLERANCE: f64 = 0.02;
        let Is::Between(property, least, most) = self else { return None };
        let Number(value) = property.of(record).filter(|_| most - least > TOLERANCE)? else {
            return None;
        };
        match property {
            Senders => Some(plural(value as u64, "sender")),
            Burst => Some(format!("{} messages", count(value as u64))),
            GapNs => Some(format!("every {}", round_time(value))),
            RatePerS => Some(format!("{}/s", per_second(value))),
            Threads => Some(plural(value as u64, "thread")),
            HoldShare => Some(share(value)),
            _ => None,
        }
    }
}

/// Returns `true` for a cell without payload, neighbours, pause hint, or CPUs kept awake; for a
/// lock, also only if it admits one thread at a time.
pub(super) fn is_plain(cell: &Cell) -> bool {
    let plain = match &cell.subject {
        Subject::Lock(lock) => {
            let several = ["counter-", "striped"].iter().any(|name| lock.lock.starts_with(name));
            lock.read_share.is_none() && !several
        }
        Subject::Queue(_) | Subject::Mechanism { .. } => {
            cell.payload_bytes == 8 && !cell.keep_awake && cell.pause != Some(Pause::On)
        }
    };
    plain && cell.neighbour.is_none()
}

/// Name of a cell, with the values that the conditions leave open:
/// `pipe (spin), 8 messages, every 10 µs`, `std-mutex, sleeping, 20 threads`.
pub(super) fn name(record: &Record, conditions: &[Is]) -> String {
    let cell = &record.cell;
    let mut parts = vec![match &cell.subject {
        Subject::Queue(queue) => format!("{} ({})", clean(cell.name()), queue.wait.name()),
        Subject::Lock(_) => clean(cell.name()),
        Subject::Mechanism { .. } => clean(&cell.label()),
    }];
    parts.extend((Sleeps.of(record) == Some(Number(1.0))).then(|| "sleeping".to_string()));
    parts.extend(conditions.iter().filter_map(|condition| condition.value(record)));
    parts.join(", ")
}

/// Group in which answers are counted: one per lock, and per number of messages in a burst.
pub(super) fn group(record: &Record) -> String {
    match (&record.cell.subject, Burst.of(record)) {
        (Subject::Lock(_), _) => clean(record.cell.name()),
        (_, Some(Number(burst))) => plural(burst as u64, "message"),
        _ => String::new(),
    }
}

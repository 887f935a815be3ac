//! Messages that were sent when they were due.

use super::super::talk::Fault;
use super::lines::{Lines, Tally, instead, number};
use super::{ROUNDING, wrong};

/// Messages from which on their rate says anything, and how far off it may be.
const RATED: u64 = 200;
const RATE_OFF: f64 = 1.5;

/// Messages that were sent when they were due.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deliveries {
    /// Times until they were received.
    pub(crate) delivered: Tally,
    /// Times until their send calls began.
    pub(crate) late: Tally,
    /// CPU time of the receiver and of the send calls, if known.
    pub(crate) busy_ns: Option<u64>,
    /// All messages of the block, counted or not.
    pub(crate) sent: u64,
    pub(crate) elapsed_ns: u64,
    /// Time from the first counted message to the moment at which the last one was due.
    pub(crate) window_ns: u64,
    /// Messages due, and received, in this time.
    pub(crate) due: u64,
    pub(crate) received: u64,
    pub(crate) bursts: Option<Bursts>,
    pub(crate) chatty: Option<Chatty>,
}

impl Deliveries {
    /// The longest time of all that it says.
    pub(super) fn longest_ns(&self) -> f64 {
        let Deliveries { elapsed_ns, delivered, late, bursts, chatty, .. } = self;
        let chatty_ns = chatty.as_ref().map_or(0, |chatty| chatty.delivered.max_ns());
        let whole = [*elapsed_ns, delivered.max_ns(), late.max_ns(), chatty_ns];
        let last_ns = bursts.map_or(0.0, |bursts| bursts.last_ns);
        whole.into_iter().fold(last_ns, |longest, ns| longest.max(ns as f64))
    }
}

/// The further figures of an answer about deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Besides {
    Nothing,
    Bursts,
    /// The deliveries of this many chatty senders; the others' are those of important messages.
    Chatty(u64),
}

/// Messages of chatty senders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chatty {
    /// Times until they were received.
    pub(crate) delivered: Tally,
    /// Their mean by sender, of those that have any.
    pub(crate) means_ns: Vec<f64>,
}

/// Medians over the bursts of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts {
    pub(crate) first_ns: f64,
    pub(crate) last_ns: f64,
    pub(crate) drain_ns: f64,
    pub(crate) bursts: u64,
    pub(crate) found_empty: u64,
}

/// Reads deliveries of messages that were due at this rate.
pub(super) fn read(
    lines: &mut Lines<'_>,
    per_s: f64,
    besides: Besides,
) -> Result<Deliveries, Fault> {
    let delivered = lines.tally("count", 0)?;
    let late = lines.tally("lateness", 0)?;
    let (name, value) = lines.pair()?;
    let busy_ns = if name == "busy_ns" { Some(number(&name, &value)?) } else { None };
    let sent = match busy_ns {
        Some(_) => lines.positive_number("sent")?,
        None if name == "sent" => number(&name, &value)?,
        None => return Err(instead(&name, "sent")),
    };
    let elapsed_ns = lines.positive_number("elapsed_ns")?;
    let window_ns = lines.positive_number("window_ns")?;
    let due = lines.positive_number("due")?;
    let received = lines.number("received")?;
    let (mut bursts, mut chatty) = (None, None);
    match besides {
        Besides::Nothing => {}
        Besides::Bursts => bursts = Some(read_bursts(lines)?),
        Besides::Chatty(senders) => chatty = Some(read_chatty(lines, senders)?),
    }
    lines.all_checked(sent)?;
    let (count, late_count) = (delivered.count(), late.count());
    let all = count + chatty.as_ref().map_or(0, |chatty| chatty.delivered.count());
    if count != late_count {
        return Err(wrong(format!(
            "it has {count} delivery times, but {late_count} of how late messages were sent"
        )));
    }
    if count == 0 || all > sent || due > count || received > sent {
        return Err(wrong(format!(
            "it sent {sent} messages, and counts {all} of them, {due} that were due and \
             {received} that were received"
        )));
    }
    if window_ns > elapsed_ns {
        return Err(wrong("its messages were due for longer than its block lasted"));
    }
    let rate_per_s = due as f64 / window_ns as f64 * 1e9;
    let off = (rate_per_s / per_s).max(per_s / rate_per_s);
    if due >= RATED && off > RATE_OFF {
        return Err(wrong(format!(
            "its messages were due at {rate_per_s:.0}/s instead of {per_s:.0}/s"
        )));
    }
    Ok(Deliveries {
        delivered,
        late,
        busy_ns,
        sent,
        elapsed_ns,
        window_ns,
        due,
        received,
        bursts,
        chatty,
    })
}

fn read_bursts(lines: &mut Lines<'_>) -> Result<Bursts, Fault> {
    let found = Bursts {
        first_ns: lines.decimal("first_ns")?,
        last_ns: lines.decimal("last_ns")?,
        drain_ns: lines.decimal("drain_ns")?,
        bursts: lines.positive_number("bursts")?,
        found_empty: lines.number("found_empty")?,
    };
    if found.first_ns > found.last_ns {
        return Err(wrong("the first message of its bursts comes after the last one"));
    }
    if found.found_empty > found.bursts {
        return Err(wrong("more of its bursts found the queue empty than there were"));
    }
    Ok(found)
}

fn read_chatty(lines: &mut Lines<'_>, senders: u64) -> Result<Chatty, Fault> {
    let delivered = lines.tally("chatty", 0)?;
    let means: Vec<f64> =
        (0..senders).map(|_| lines.decimal("mean_ns")).collect::<Result<_, _>>()?;
    let means_ns: Vec<f64> = means.into_iter().filter(|mean_ns| *mean_ns > 0.0).collect();
    if means_ns.is_empty() != delivered.0.is_empty() {
        return Err(wrong("its chatty senders have no mean for their messages, or no messages"));
    }
    if means_ns.iter().any(|mean_ns| *mean_ns > delivered.max_ns() as f64 * ROUNDING) {
        return Err(wrong("the mean of a chatty sender is above all of its deliveries"));
    }
    Ok(Chatty { delivered, means_ns })
}

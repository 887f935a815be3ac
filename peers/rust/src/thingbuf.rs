//! `thingbuf`, its blocking channel: an array of slots that messages are written into in place.

use thingbuf::mpsc::blocking::{Receiver, Sender, channel};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, BLOCK, NOBODY, TIGHT, bounded, until};

pub(crate) fn row() -> Queue {
    bounded(
        "thingbuf",
        env!("VERSION_THINGBUF"),
        Slots::NUMBERED,
        [
            Way::many_senders::<Bounded<TIGHT>>(Wait::Poll),
            Way::many_senders::<Bounded<BACKOFF>>(Wait::PollBackoff),
            Way::many_senders::<Bounded<BLOCK>>(Wait::Block),
        ],
        "thingbuf::mpsc::blocking::channel, an array of reused slots",
    )
}

pub(crate) struct Bounded<const HOW: u32>;

impl<const HOW: u32> Channel for Bounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = channel(capacity);
        Ok((To(to), From(from)))
    }
}

#[derive(Clone)]
pub(crate) struct To<const HOW: u32>(Sender<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        if HOW == BLOCK {
            let _ = self.0.send(message);
        } else {
            until::<HOW, _>(|| self.0.try_send(message).ok());
        }
    }
}

pub(crate) struct From<const HOW: u32>(Receiver<u64>);

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if HOW == BLOCK {
            self.0.recv().unwrap_or(NOBODY)
        } else {
            until::<HOW, _>(|| self.0.try_recv().ok())
        }
    }
}

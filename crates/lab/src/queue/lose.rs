//! Send calls that may lose the newest or the oldest message, as the load says.

use threadtoll_record::Lose;

use super::{Channel, Source, Usage};

pub(super) fn loses<C: Channel>(usage: &Usage) -> bool {
    match usage.load.lose {
        None | Some(Lose::Never) => true,
        Some(Lose::Newest) => !usage.grows,
        Some(Lose::Oldest) => C::OVERWRITES,
    }
}

pub(super) enum Sent {
    /// The queue had room, grew, or made the sender wait.
    Taken,
    Refused,
    /// The queue accepted the message and dropped the oldest.
    Dropped,
}

/// Sends one message. Waits for room only if no message may be lost.
#[inline(always)]
pub(super) fn send<S: Source>(source: &mut S, message: u64, lose: Lose) -> Sent {
    match lose {
        Lose::Never => {
            source.send(message);
            Sent::Taken
        }
        Lose::Newest if source.try_send(message) => Sent::Taken,
        Lose::Newest => Sent::Refused,
        Lose::Oldest if source.force_send(message) => Sent::Dropped,
        Lose::Oldest => Sent::Taken,
    }
}

/// Numbers of messages that the queue accepted, refused, and dropped to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) taken: u64,
    pub(super) refused: u64,
    pub(super) dropped: u64,
}

impl Tally {
    #[inline(always)]
    pub(super) fn count(&mut self, sent: Sent) {
        match sent {
            Sent::Taken => self.taken += 1,
            Sent::Refused => self.refused += 1,
            Sent::Dropped => {
                self.taken += 1;
                self.dropped += 1;
            }
        }
    }
}

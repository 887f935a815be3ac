//! Send calls that may lose a message; the load says which message.

use threadtoll_record::Lose;

use super::{Channel, Source, Usage};

/// Returns `true` if the queue can lose messages in the way that the load allows.
pub(super) fn loses<C: Channel>(usage: &Usage) -> bool {
    match usage.load.lose {
        None | Some(Lose::Never) => true,
        Some(Lose::Newest) => !usage.grows,
        Some(Lose::Oldest) => C::OVERWRITES,
    }
}

/// Result of a send call.
pub(super) enum Sent {
    /// The queue had room, grew, or made the sender wait.
    Taken,
    Refused,
    /// The queue accepted the message and dropped another one.
    Dropped,
}

/// Sends one message. If the queue is full, waits only if no message may be lost.
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

/// Numbers of messages that the queue accepted, that it refused, and that it dropped in favour of
/// others.
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

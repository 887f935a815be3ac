//! Send calls that may lose a message, as the load says which.

use threadtoll_record::Lose;

use super::Source;

/// Outcome of a send call.
pub(super) enum Sent {
    /// The queue had room, made some by growing, or the sender waited.
    Taken,
    Refused,
    /// The queue took it and dropped another one.
    Dropped,
}

/// Sends one message; waits while the queue is full only if none may be lost.
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

/// Messages that the queue took, those that it refused, and those that it dropped for others.
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

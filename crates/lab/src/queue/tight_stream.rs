//! `tight-stream`: a stream through bounded queues of 16 messages, so that senders often wait.

use threadtoll_record::Kind;

use super::{Scenario, stream};

pub(super) use super::stream::{many_senders, one_sender};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "tight-stream",
    sentence: "a stream through bounded queues that hold 16 messages",
    kind: Kind::Stream,
    capacity: |slots| slots.capacity(16),
    ..stream::SCENARIO
};

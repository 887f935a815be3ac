//! `ask-reply`: a message is sent only after the echo of the previous message has come back.
//!
//! The engine for mechanisms drives two crossed queues. An article on Habr (2016) also measures
//! this way. Dividing the time for many messages by their number would yield throughput, not
//! delivery time.

use std::sync::Arc;

use threadtoll_record::Kind;

use crate::budget::budget_with_rounds;
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};
use crate::program::Program;

use super::{CAPACITY, Channel, DEFAULT, Loops, QUEUE_ROUNDS, Scenario, Sink, Source, Usage};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "ask-reply",
    sentence: "latency of a message through one queue and its echo through another, one at a time",
    kind: Kind::Exchange,
    budget: |overrides, _| {
        budget_with_rounds(QUEUE_ROUNDS, overrides.time_ns.unwrap_or(TIME_NS), overrides.samples)
    },
    capacity: |slots, _| slots.capacity(CAPACITY),
    wake_up: Some("futex"),
    ..DEFAULT
};

/// Default measuring time per cell: 31 rounds of two blocks (one with stretches, one stamped), each
/// 12 ms long.
const TIME_NS: u64 = 744_000_000;

struct End<C: Channel> {
    to: C::Source,
    from: C::Sink,
}

impl<C: Channel> Exchange for End<C> {
    fn enter(&mut self) {
        self.to.enter();
        self.from.enter();
    }

    #[inline(always)]
    fn send(&mut self, seq: u64) {
        self.to.send(seq);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.from.receive()
    }
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        let (channel, capacity) = (channel.clone(), usage.flow.capacity);
        let make = Arc::new(move || ends(&channel, capacity));
        Some(Program::Exchange { make, class: usage.class })
    }
}

fn ends<C: Channel>(channel: &C, capacity: usize) -> Result<Ends, Unavailable> {
    let (there_in, there_out) = channel.open(capacity)?;
    let (back_in, back_out) = channel.open(capacity)?;
    Ok(Ends::two(
        End::<C> { to: there_in, from: back_out },
        End::<C> { to: back_in, from: there_out },
    ))
}

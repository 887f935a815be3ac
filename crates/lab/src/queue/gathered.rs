//! Messages of several senders, for scenarios that report them separately: a receiver that stamps
//! them, and their deliveries.

use threadtoll_machine::clock::Clock;

use crate::exchange::on_a_line;
use crate::samples::Deliveries;
use crate::thread_group::{BlockSpec, Log, Role};

use super::Sink;
use super::paced::{END, touched};
use super::stream::with;

/// Receives until each sender has ended. Its log contains the messages, each with its stamp.
#[repr(align(128))]
pub(super) struct Receiver<S> {
    sink: Option<S>,
    senders: usize,
    /// Maximum number of messages of a block.
    room: Box<dyn Fn(BlockSpec) -> usize + Send>,
    times: Vec<u64>,
    numbers: Vec<u64>,
}

impl<S> Receiver<S> {
    pub(super) fn new(
        sink: S,
        senders: usize,
        room: impl Fn(BlockSpec) -> usize + Send + 'static,
    ) -> Self {
        Receiver {
            sink: Some(sink),
            senders,
            room: Box::new(room),
            times: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

impl<S: Sink> Role for Receiver<S> {
    fn enter(&mut self) {
        with(&mut self.sink, Sink::enter);
    }

    fn prepare(&mut self, block: BlockSpec, _: &Clock) {
        let room = (self.room)(block);
        (self.times, self.numbers) = (touched(room), touched(room));
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Receiver { sink, senders, times, numbers, .. } = self;
        let (count, wrong) = with(
            sink,
            #[inline(always)]
            |sink| receive(sink, clock, *senders, times, numbers),
        );
        times.truncate(count);
        numbers.truncate(count);
        Log { times: vec![std::mem::take(times)], numbers: std::mem::take(numbers), wrong }
    }
}

/// Receives until each sender has ended. Returns the number of messages that were kept, and a
/// second number, which is not 0 if some had no room.
#[inline(always)]
fn receive<S: Sink>(
    sink: &mut S,
    clock: &Clock,
    senders: usize,
    times: &mut [u64],
    numbers: &mut [u64],
) -> (usize, u64) {
    on_a_line();
    let (mut count, mut ended, mut wrong) = (0, 0, 0);
    loop {
        let message = sink.receive();
        let now = clock.stamp();
        if message == END {
            ended += 1;
            if ended == senders {
                return (count, wrong);
            }
            continue;
        }
        match times.get_mut(count).zip(numbers.get_mut(count)) {
            Some((time, number)) => {
                (*time, *number) = (now, message);
                count += 1;
            }
            None => wrong = u64::MAX,
        }
    }
}

/// Deliveries of messages in order. A row has the times when a message was due, when its send call
/// could have begun, when it began, when it returned, and when the message was received.
pub(super) fn deliveries(rows: &[[u64; 5]]) -> Deliveries {
    let column = |of: usize| rows.iter().map(|times| times[of]).collect();
    Deliveries {
        due_ps: column(0),
        ready_ps: column(1),
        sent_ps: column(2),
        after_ps: column(3),
        received_ps: column(4),
        ..Deliveries::default()
    }
}

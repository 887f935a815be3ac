//! For scenarios that distinguish the messages of several senders: a receiver that stamps every
//! message, the evaluation of the logs, and a simulated queue.

use std::collections::VecDeque;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Lose;

use crate::exchange::{on_a_line, with};
use crate::samples::Deliveries;
use crate::thread_group::{BlockSpec, Log, Role, VirtualQueue};
use crate::touched::touched;

use super::Sink;
use super::arrivals::Schedule;
use super::paced::{END, busy_ns, sending_ps};
use super::stream::{NUMBER_BITS, first};

/// The log holds each message and its stamp.
#[repr(align(128))]
pub(super) struct Receiver<S> {
    sink: Option<S>,
    senders: usize,
    /// Returns the maximum number of messages in a block.
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

/// Receives until every sender's end marker has arrived. Returns the number of recorded messages,
/// and 0 if there was room for all messages.
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

pub(super) struct OfSender<'a> {
    pub(super) due: &'a [u64],
    sent: &'a [u64],
    after: &'a [u64],
    ready: &'a [u64],
    /// Time at which each message was received; `None` if the message was lost.
    received: Vec<Option<u64>>,
    /// Number of warm-up messages at the beginning, which do not count.
    pub(super) lead: usize,
}

impl OfSender<'_> {
    /// Returns five times of message `nth`: due, ready to be sent, send call begun, send call
    /// returned, received. `None` if the message was lost.
    pub(super) fn row(&self, nth: usize) -> Option<[u64; 5]> {
        let received = self.received[nth]?;
        Some([self.due[nth], self.ready[nth], self.sent[nth], self.after[nth], received])
    }
}

/// Sorts messages by sender, given the logs of the generators and, as the last log, of the
/// receiver. `None` if a message was received twice, overtook another message of its sender, or is
/// missing although it was neither refused nor dropped.
pub(super) fn by_sender(logs: &[Log]) -> Option<Vec<OfSender<'_>>> {
    let (receiver, generators) = logs.split_last()?;
    let (mut all, mut lost) = (Vec::new(), 0);
    for log in generators {
        let [due, sent, after, ready] = log.times.as_slice() else { return None };
        let (lead, gone) = log.numbers.split_first()?;
        lost += gone.iter().sum::<u64>();
        let received = vec![None; due.len()];
        all.push(OfSender { due, sent, after, ready, received, lead: *lead as usize });
    }
    let mut next = vec![0; all.len()];
    for (time, number) in receiver.times.first()?.iter().zip(&receiver.numbers) {
        let sender = (number >> NUMBER_BITS) as usize;
        let nth = number.checked_sub(first(sender))? as usize;
        let place = all.get_mut(sender)?.received.get_mut(nth)?;
        if nth < next[sender] {
            return None;
        }
        next[sender] = nth + 1;
        *place = Some(*time);
    }
    let missing = all.iter().flat_map(|own| &own.received).filter(|time| time.is_none());
    (missing.count() as u64 == lost).then_some(all)
}

/// Returns the deliveries for these [rows](OfSender::row), and the number of messages over which
/// the CPU time is spread. That number includes all senders' messages, even those without a row.
pub(super) fn deliveries(
    rows: &[[u64; 5]],
    senders: &[OfSender<'_>],
    cpu_ns: &[u64],
) -> (Deliveries, u64) {
    let column = |of: usize| rows.iter().map(|times| times[of]).collect();
    let sending = senders.iter().map(|own| sending_ps(own.sent, own.after)).sum();
    let messages = senders.iter().map(|own| own.due.len() as u64).sum();
    let deliveries = Deliveries {
        due_ps: column(0),
        ready_ps: column(1),
        sent_ps: column(2),
        after_ps: column(3),
        received_ps: column(4),
        busy_ns: busy_ns(sending, cpu_ns, senders.len()),
        busy_messages: Some(messages),
        ..Deliveries::default()
    };
    (deliveries, messages)
}

/// Simulates a queue with one server. `capacity` excludes the message being served. It has no
/// effect if no message may be lost.
pub(super) fn simulate(
    queue: &mut VirtualQueue<'_>,
    schedules: &[Schedule],
    lose: Lose,
    capacity: usize,
) -> Vec<Log> {
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    let mut logs: Vec<Log> = Vec::new();
    for (sender, Schedule { due_ps, lead }) in schedules.iter().enumerate() {
        order.extend(due_ps.iter().enumerate().map(|(nth, due)| (*due, nth, sender)));
        let numbers = vec![*lead as u64, 0, 0];
        logs.push(Log { times: vec![Vec::new(); 4], numbers, wrong: 0 });
    }
    order.sort_unstable();
    let count = order.len();
    let mut free = vec![queue.begins_ps; schedules.len()];
    let mut sent: Vec<(u64, u64)> = Vec::with_capacity(count);
    for (at, (due, nth, sender)) in order.into_iter().enumerate() {
        let due = queue.begins_ps + due;
        let sends = free[sender].max(due) + (queue.stall_ps)(at, count);
        free[sender] = sends;
        // Simulated send calls take no time.
        let times = logs[sender].times.iter_mut().zip([due, sends, sends, due]);
        times.for_each(|(all, time)| all.push(time));
        sent.push((sends, first(sender) + nth as u64));
    }
    sent.sort_unstable();
    let mut receiver = Log { times: vec![Vec::new()], ..Log::default() };
    let mut waiting: VecDeque<(u64, u64)> = VecDeque::new();
    let mut idle = queue.begins_ps;
    let mut served = 0;
    // Serves the messages whose service begins by `until`.
    let mut serve = |waiting: &mut VecDeque<(u64, u64)>, until: u64| {
        while let Some((came, number)) = waiting.front().copied() {
            let begins = idle.max(came);
            if begins > until {
                return;
            }
            waiting.pop_front();
            idle = begins + (queue.service_ps)(served, count);
            served += 1;
            receiver.times[0].push(idle);
            receiver.numbers.push(number);
        }
    };
    for (now, number) in sent {
        serve(&mut waiting, now);
        if lose != Lose::Never && waiting.len() >= capacity {
            let lost = match lose {
                Lose::Oldest => waiting.pop_front().map_or(number, |(_, oldest)| oldest),
                Lose::Never | Lose::Newest => number,
            };
            let sender = (lost >> NUMBER_BITS) as usize;
            logs[sender].numbers[if lose == Lose::Oldest { 2 } else { 1 }] += 1;
            if lost == number {
                continue;
            }
        }
        waiting.push_back((now, number));
    }
    serve(&mut waiting, u64::MAX);
    logs.push(receiver);
    logs
}

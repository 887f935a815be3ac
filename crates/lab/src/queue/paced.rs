//! Messages that are sent when they are due, for scenarios with one paced sender.
//!
//! ```text
//!   generator ──▶ queue ──▶ receiver: in order? and a stamp for each message
//!       │ due, sent, after the send call                   │ received
//!       └──────────────────────────┬───────────────────────┘
//!                                  ▼
//!                   delivery: received − due;  lateness: sent − ready
//! ```
//!
//! A message is ready when it is due and all earlier send calls would have returned if the
//! generator itself had lost no time. If a queue makes its sender wait, deliveries take longer, but
//! the generator is not late. The time for the generator's own stamps does make it late.
//!
//! Due times are drawn before the clock starts, and a delivery is measured from its due time. A
//! stall of the generator or the receiver therefore lengthens the deliveries of all messages due
//! during the stall: there is no "coordinated omission" (G. Tene, *How NOT to Measure Latency*,
//! 2013).

use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Load;

use crate::error::Unavailable;
use crate::exchange::{on_a_line, with};
use crate::program::Program;
use crate::samples::{Deliveries, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Reading, Role, ThreadGroup, VirtualQueue};
use crate::touched::touched;

use super::arrivals::{LEAST, MAX_MESSAGES, Pattern, Schedule};
use super::{Channel, Sink, Source, Usage};

/// Marks the end of a block. No message has this value, because message numbers begin with 1.
pub(super) const END: u64 = 0;
/// Time from the moment when all threads are ready until the schedule starts. In this time, the
/// receiver begins to wait.
pub(super) const AHEAD_NS: f64 = 100_000.0;
/// Approximate overshoot of a sleep, including the timer slack.
const WAKE_NS: f64 = 150_000.0;
/// The generator gives up when a block takes this multiple of its length, because the queue is
/// saturated.
const PATIENCE: f64 = 2.0;

pub(super) fn program<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
    let channel = channel.clone();
    let Usage { flow, load, .. } = usage.clone();
    let burst = load.burst.map(|burst| burst.get() as usize);
    let of_simulated = load.clone();
    let make = move || {
        let (source, sink) = channel.open(flow.capacity)?;
        let generator = Generator::new(pattern(&load)?, source);
        let roles: ThreadGroup = vec![Box::new(generator), Box::new(Receiver::new(sink))];
        Ok(roles)
    };
    let simulate =
        move |queue: &mut VirtualQueue<'_>| Ok(simulate(&pattern(&of_simulated)?, queue));
    Some(usage.threads(2, make, move |block_logs| read(block_logs, burst), simulate))
}

pub(super) fn pattern(load: &Load) -> Result<Pattern, Unavailable> {
    let invalid = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    Pattern::of(load).map_err(|why| Unavailable::new("its arrivals", invalid(why)))
}

#[repr(align(128))]
pub(super) struct Generator<S> {
    pattern: Pattern,
    source: Option<S>,
    /// Due times of the block's messages, in ticks after the start of the block.
    due: Vec<u64>,
    lead: usize,
    /// Time at which the generator gives up, in ticks after the start of the block.
    until: u64,
    sent: Vec<u64>,
    /// Times at which the send calls returned.
    after: Vec<u64>,
    /// Times at which the messages were ready, as defined in the module's documentation.
    ready: Vec<u64>,
    /// Number of ticks that [`STAMPS`] stamps take.
    stamps: u64,
    first: u64,
    /// True if the generator sleeps until its next message is almost due.
    naps: bool,
    /// Index of this sender, and number of senders. Messages are dealt to senders round-robin.
    dealt: [usize; 2],
}

impl<S> Generator<S> {
    pub(super) fn new(pattern: Pattern, source: S) -> Self {
        Generator {
            pattern,
            source: Some(source),
            due: Vec::new(),
            lead: 0,
            until: 0,
            sent: Vec::new(),
            after: Vec::new(),
            ready: Vec::new(),
            stamps: 0,
            first: 1,
            naps: false,
            dealt: [0, 1],
        }
    }

    pub(super) fn from(self, first: u64) -> Self {
        Generator { first, ..self }
    }

    pub(super) fn with_naps(self) -> Self {
        Generator { naps: true, ..self }
    }

    pub(super) fn dealt(self, sender: usize, senders: usize) -> Self {
        Generator { dealt: [sender, senders], ..self }
    }

    /// Returns the sending end; `None` while a block is measured.
    pub(super) fn source(&mut self) -> Option<&mut S> {
        self.source.as_mut()
    }
}

impl<S: Source> Role for Generator<S> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
    }

    fn prepare(&mut self, block: BlockSpec, clock: &Clock) {
        let schedule = self.pattern.schedule(block.length_ns, MAX_MESSAGES, block.seed);
        let Schedule { due_ps, lead } = schedule.dealt(self.dealt);
        self.due = due_ps.iter().map(|ps| clock.ticks(*ps as f64 / 1e3)).collect();
        self.lead = lead;
        let last = self.due.last().copied().unwrap_or(0);
        self.until = last.max(clock.ticks(block.length_ns)).saturating_mul(PATIENCE as u64);
        self.sent = touched(self.due.len());
        self.after = touched(self.due.len());
        self.ready = touched(self.due.len());
        self.stamps = stamps(clock);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Generator { source, due, lead, until, sent, after, first, naps, .. } = self;
        let begin = clock.stamp() + clock.ticks(AHEAD_NS);
        due.iter_mut().for_each(|due| *due += begin);
        let until = begin.saturating_add(*until);
        let made = with(
            source,
            #[inline(always)]
            |source| match naps {
                false => generate::<S, false>(
                    source,
                    clock,
                    due,
                    *lead + LEAST,
                    until,
                    *first,
                    sent,
                    after,
                ),
                true => generate::<S, true>(
                    source,
                    clock,
                    due,
                    *lead + LEAST,
                    until,
                    *first,
                    sent,
                    after,
                ),
            },
        );
        due.truncate(made);
        sent.truncate(made);
        after.truncate(made);
        let ready = &mut self.ready;
        ready.truncate(made);
        set_ready(ready, due, sent, after, self.stamps);
        Log {
            times: [due, sent, after, ready].map(std::mem::take).into(),
            numbers: vec![*lead as u64],
            wrong: 0,
        }
    }
}

/// Number of stamps that are timed together. A single stamp may take less than a tick.
const STAMPS: u64 = 64;

/// Returns the number of ticks that `STAMPS` stamps take: the minimum of several measurements.
fn stamps(clock: &Clock) -> u64 {
    let batch = |_| {
        let begin = clock.stamp();
        (1..STAMPS).for_each(|_| _ = std::hint::black_box(clock.stamp()));
        clock.stamp() - begin
    };
    (0..8).map(batch).min().unwrap_or(0)
}

/// Computes when each message was ready: when it was due, and all earlier send calls would have
/// returned if each had begun as early as possible and had taken no stamp.
fn set_ready(ready: &mut [u64], due: &[u64], sent: &[u64], after: &[u64], stamps: u64) {
    // In units of 1/`STAMPS` tick.
    let mut free = 0;
    let calls = sent.iter().zip(after).map(|(sent, after)| after.saturating_sub(*sent));
    for ((ready, due), call) in ready.iter_mut().zip(due).zip(calls) {
        let begin = free.max(due * STAMPS);
        free = begin + (call * STAMPS).saturating_sub(stamps);
        *ready = begin / STAMPS;
    }
}

/// Sends each message as soon as it is due, and returns the number sent. Gives up after `until`,
/// but not before `least` messages. A late generator takes one stamp per message: the stamp after a
/// send call is also the stamp before the next call.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the loop must not reach through a reference")]
fn generate<S: Source, const NAPS: bool>(
    source: &mut S,
    clock: &Clock,
    due: &[u64],
    least: usize,
    until: u64,
    first: u64,
    sent: &mut [u64],
    after: &mut [u64],
) -> usize {
    on_a_line();
    // Indexes slices of equal length: for some queues, zipped iterators were compiled to a dozen
    // moves to and from the stack.
    let count = due.len();
    let (sent, after) = (&mut sent[..count], &mut after[..count]);
    let mut now = clock.stamp();
    let mut at = 0;
    while at < count {
        if now > until && at >= least {
            break;
        }
        let due_at = due[at];
        while now < due_at {
            if NAPS {
                nap(due_at - now, clock);
            }
            now = clock.stamp();
        }
        sent[at] = now;
        source.send(first + at as u64);
        now = clock.stamp();
        after[at] = now;
        at += 1;
    }
    source.send(END);
    at
}

fn nap(ticks: u64, clock: &Clock) {
    let left_ns = clock.ns(ticks);
    if left_ns > 2.0 * WAKE_NS {
        std::thread::sleep(Duration::from_nanos((left_ns - WAKE_NS) as u64));
    }
}

#[repr(align(128))]
pub(super) struct Receiver<S> {
    sink: Option<S>,
    received: Vec<u64>,
}

impl<S> Receiver<S> {
    fn new(sink: S) -> Self {
        Receiver { sink: Some(sink), received: Vec::new() }
    }
}

impl<S: Sink> Role for Receiver<S> {
    fn enter(&mut self) {
        with(&mut self.sink, Sink::enter);
    }

    fn prepare(&mut self, _: BlockSpec, _: &Clock) {
        // Twice the maximum, because several messages in a file may be due at the same time.
        self.received = touched(2 * MAX_MESSAGES);
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Receiver { sink, received } = self;
        let (count, wrong) = with(
            sink,
            #[inline(always)]
            |sink| receive(sink, clock, received),
        );
        received.truncate(count);
        Log { times: vec![std::mem::take(received)], numbers: Vec::new(), wrong }
    }
}

/// Receives until the end marker. Returns the number of messages, and the bits that were wrong in
/// any of them.
#[inline(always)]
fn receive<S: Sink>(sink: &mut S, clock: &Clock, received: &mut [u64]) -> (usize, u64) {
    on_a_line();
    let mut wrong = 0;
    let mut count = 0;
    loop {
        let message = sink.receive();
        let now = clock.stamp();
        if message == END {
            return (count, wrong);
        }
        let Some(place) = received.get_mut(count) else { return (count, u64::MAX) };
        *place = now;
        count += 1;
        wrong |= message ^ count as u64;
    }
}

pub(super) fn sending_ps(sent_ps: &[u64], after_ps: &[u64]) -> u64 {
    sent_ps.iter().zip(after_ps).map(|(sent, after)| after.saturating_sub(*sent)).sum()
}

/// Returns the CPU time of all threads. The first `senders` entries of `cpu_ns` are the senders':
/// they contribute their time in send calls, or their CPU time if that is less because a call
/// slept.
pub(super) fn busy_ns(sending_ps: u64, cpu_ns: &[u64], senders: usize) -> u64 {
    let (senders_ns, others_ns) = cpu_ns.split_at(senders.min(cpu_ns.len()));
    (sending_ps / 1000).min(senders_ns.iter().sum()) + others_ns.iter().sum::<u64>()
}

/// Returns the deliveries; `None` if the generator's messages differ from the receiver's.
pub(super) fn read(block_logs: BlockLogs, burst: Option<usize>) -> Option<Reading> {
    let BlockLogs { mut logs, cpu_ns, cpu, clock_bound_ns } = block_logs;
    let [generator, receiver] = logs.as_mut_slice() else { return None };
    let [due_ps, sent_ps, after_ps, ready_ps] = generator.times.as_mut_slice() else {
        return None;
    };
    let received_ps = std::mem::take(receiver.times.first_mut()?);
    let [due_ps, sent_ps, after_ps, ready_ps] =
        [due_ps, sent_ps, after_ps, ready_ps].map(std::mem::take);
    let lead = *generator.numbers.first()? as usize;
    if received_ps.len() != due_ps.len() || lead >= due_ps.len() {
        return None;
    }
    let messages = due_ps.len() as u64;
    let busy_ns = busy_ns(sending_ps(&sent_ps, &after_ps), &cpu_ns, 1);
    let deliveries = Deliveries {
        due_ps,
        ready_ps,
        sent_ps,
        after_ps,
        received_ps,
        lead,
        chatty: None,
        burst,
        busy_ns,
        busy_messages: None,
        lost: None,
        idle: None,
        cpu,
        clock_bound_ns,
    };
    Some((Samples::OpenLoop(deliveries), messages))
}

/// Simulates a queue with one server: each message waits for the previous one.
pub(super) fn simulate(pattern: &Pattern, queue: &mut VirtualQueue<'_>) -> Vec<Log> {
    let Schedule { due_ps, lead } =
        pattern.schedule(queue.block.length_ns, queue.most, queue.block.seed);
    let due_ps: Vec<u64> = due_ps.iter().map(|due| queue.begins_ps + due).collect();
    let count = due_ps.len();
    let (mut sent_ps, mut received_ps) = (Vec::new(), Vec::new());
    let (mut free, mut idle) = (queue.begins_ps, queue.begins_ps);
    for (at, due) in due_ps.iter().enumerate() {
        free = free.max(*due) + (queue.stall_ps)(at, count);
        sent_ps.push(free);
        idle = idle.max(free) + (queue.service_ps)(at, count);
        received_ps.push(idle);
    }
    // Simulated send calls take no time.
    let times = vec![due_ps.clone(), sent_ps.clone(), sent_ps, due_ps];
    let generator = Log { times, numbers: vec![lead as u64], wrong: 0 };
    vec![generator, Log { times: vec![received_ps], ..Log::default() }]
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Condvar, Mutex};

    use super::*;

    /// A queue whose receiver sleeps once.
    #[derive(Clone, Default)]
    struct Sleepy(Arc<(Mutex<VecDeque<u64>>, Condvar)>);

    struct Sleeper {
        queue: Sleepy,
        clock: Clock,
        /// Times at which the receiver fell asleep and woke.
        slept: Arc<Mutex<Option<[u64; 2]>>>,
    }

    const SLEEPS_AFTER: u64 = 20;
    const SLEEP: Duration = Duration::from_millis(50);

    impl Source for Sleepy {
        fn send(&mut self, message: u64) {
            self.0.0.lock().unwrap().push_back(message);
            self.0.1.notify_one();
        }
    }

    impl Sink for Sleeper {
        fn receive(&mut self) -> u64 {
            let (messages, arrived) = &*self.queue.0;
            let mut messages = messages.lock().unwrap();
            loop {
                match messages.pop_front() {
                    Some(SLEEPS_AFTER) => {
                        drop(messages);
                        let asleep = self.clock.stamp();
                        std::thread::sleep(SLEEP);
                        *self.slept.lock().unwrap() = Some([asleep, self.clock.stamp()]);
                        return SLEEPS_AFTER;
                    }
                    Some(message) => return message,
                    None => messages = arrived.wait(messages).unwrap(),
                }
            }
        }
    }

    #[test]
    fn a_sender_that_the_queue_held_up_is_not_late() {
        let due = [100, 110, 120, 130, 300];
        let ready = |sent: [u64; 5], after: [u64; 5]| {
            let mut ready = [0; 5];
            set_ready(&mut ready, &due, &sent, &after, 2 * STAMPS);
            ready
        };
        // The second call waits for room until 160. Every other call takes 10, of which 2 are its
        // stamp.
        let held_up = ready([100, 110, 160, 170, 300], [110, 160, 170, 180, 310]);
        assert_eq!(held_up, [100, 110, 158, 166, 300]);
        // The generator stalls for 50 before the second call.
        let stalled = ready([100, 160, 170, 180, 300], [110, 170, 180, 190, 310]);
        assert_eq!(stalled, [100, 110, 120, 130, 300]);
    }

    #[test]
    fn stamps_of_less_than_a_tick_add_up() {
        // A hundred messages are due at once. Each call is followed by a stamp of half a tick.
        let due = [1000; 100];
        let sent: Vec<u64> = (0..100).map(|nth| 1000 + nth).collect();
        let after: Vec<u64> = sent.iter().map(|sent| sent + 1).collect();
        let mut ready = [0; 100];
        set_ready(&mut ready, &due, &sent, &after, STAMPS / 2);
        assert_eq!(sent[99] - ready[99], 50);
    }

    #[test]
    fn every_message_that_a_sleeping_receiver_made_late_is_late() {
        let (clock, _) = Clock::gate().unwrap();
        let queue = Sleepy::default();
        let slept = Arc::default();
        let sink = Sleeper { queue: queue.clone(), clock, slept: Arc::clone(&slept) };
        // The receiver sleeps at message 20, and at least 49 messages are due before it wakes.
        let pattern = Pattern::Uniform { gap_ns: 1e6 };
        let mut roles: ThreadGroup =
            vec![Box::new(Generator::new(pattern, queue)), Box::new(Receiver::new(sink))];
        let block = BlockSpec { length_ns: 120e6, seed: 1 };
        let run = |mut role: Box<dyn Role>| {
            std::thread::spawn(move || {
                role.prepare(block, &clock);
                role.work(&clock)
            })
        };
        let receiver = run(roles.remove(1));
        let generator = run(roles.remove(0));
        let logs = vec![generator.join().unwrap(), receiver.join().unwrap()];
        let [asleep, awake] = slept.lock().unwrap().unwrap();
        let block_logs = BlockLogs { logs, cpu_ns: vec![0, 0], cpu: 0, clock_bound_ns: None };
        let (samples, count) = read(block_logs, None).unwrap();
        let Samples::OpenLoop(deliveries) = samples else { panic!("{samples:?}") };
        // Times are in ticks. However late the threads ran, no message that was due during the
        // sleep can have been received before its end.
        let times = deliveries.due_ps.iter().zip(&deliveries.received_ps);
        let meanwhile: Vec<_> = times.filter(|(due, _)| (asleep..awake).contains(*due)).collect();
        assert!(meanwhile.len() >= 49, "{} of {count}", meanwhile.len());
        assert!(meanwhile.iter().all(|(due, received)| *received - *due >= awake - *due));
    }

    #[test]
    fn a_lost_message_is_no_reading() {
        let log = |times: &[&[u64]], numbers: &[u64]| Log {
            times: times.iter().map(|times| times.to_vec()).collect(),
            numbers: numbers.to_vec(),
            wrong: 0,
        };
        let block_logs = |received: &[u64]| BlockLogs {
            logs: vec![log(&[[1, 2, 3].as_slice(); 4], &[1]), log(&[received], &[])],
            cpu_ns: vec![7, 5],
            cpu: 1,
            clock_bound_ns: None,
        };
        assert!(read(block_logs(&[2, 3, 4]), None).is_some());
        assert!(read(block_logs(&[2, 3]), None).is_none());
    }
}

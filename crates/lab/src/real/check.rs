//! Checks that a queue delivers every message that was sent. For tests of adapters, which have no
//! access to the loops.
//!
//! Measures nothing: threads may run on any CPU.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Barrier, LazyLock};
use std::thread;
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_record::{Carry, Graph, Load, Placement};

use crate::LabError;
use crate::budget::PATIENCE;
use crate::mechanism::Class;
use crate::program::{Program, StreamProgram};
use crate::queue::{
    Broadcast, CAPACITY, Flow, Sink, Source, Usage, Way, ask_reply, broadcast, payload, stream,
};
use crate::stream::{StreamControl, Streams};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Role};

use super::pair::pair;
use super::passes::{Pass, Watch};
use super::pinning::Pinning;
use super::stream::threads;

/// Time in which a message that is there is received.
const LATE: Duration = Duration::from_millis(20);

/// Streams at least `messages` messages from `senders` threads in batches of `batch`. If the queue
/// is bounded, its capacity is `capacity`.
///
/// # Errors
///
/// Returns a sentence that describes the fault.
pub fn stream(
    way: &Way,
    senders: u32,
    batch: u64,
    capacity: u64,
    messages: u64,
) -> Result<(), String> {
    let flow = Flow { senders, batch, capacity: capacity as usize };
    deliver(&program(way, flow)?, senders, messages)
}

/// Sends at least `messages` messages of `payload_bytes` bytes from one thread, carried as `carry`
/// says. If the queue is bounded, its capacity is `capacity`. Returns `false` if the queue cannot
/// carry messages in that way.
///
/// # Errors
///
/// Returns a sentence that describes the fault.
pub fn payload(
    way: &Way,
    carry: Carry,
    payload_bytes: u64,
    capacity: u64,
    messages: u64,
) -> Result<bool, String> {
    let flow = Flow { senders: 1, batch: 1, capacity: capacity as usize };
    // `grows` makes the sender wait for the receiver, as for an unbounded queue.
    let load = Load { carry: Some(carry), ..Load::NONE };
    let usage = Usage { load, payload_bytes, grows: true, ..usage(flow) };
    match way.program(payload::SCENARIO.name, usage) {
        Some(Program::Stream(program)) => deliver(&program, 1, messages).map(|()| true),
        _ => Ok(false),
    }
}

/// Runs a warm-up and a second pass, which starts with the queue as the warm-up has left it.
fn deliver(program: &StreamProgram, senders: u32, messages: u64) -> Result<(), String> {
    let (clock, placement) = (clock()?, Placement::Free);
    let pinning = Pinning::of(placement, &allowed_cpus(), senders as usize);
    let mut threads = threads(&clock, "the queue", &program.make, placement, pinning, PATIENCE)
        .map_err(sentence)?;
    let per_stretch = (messages / 2).next_multiple_of(program.round);
    threads.run(one_stretch(per_stretch), PATIENCE).map(drop).map_err(sentence)
}

fn one_stretch(per_stretch: u64) -> Pass {
    Pass { warm_up: 0, stretches: 1, per_stretch, length: u64::MAX, watch: Watch::Nothing }
}

/// Checks that a queue accepts `capacity` messages without a receiver, in one round of a stream.
///
/// # Errors
///
/// Returns a sentence that describes the fault.
pub fn holds(way: &Way, capacity: u64) -> Result<(), String> {
    let flow = Flow { senders: 1, batch: 1, capacity: capacity as usize };
    let program = program(way, flow)?;
    assert_eq!(program.round, capacity, "a round fills the queue");
    let Streams { mut senders, receiver } = streams(&program)?;
    let control = StreamControl::new(1);
    // The sender stops after the first round.
    control.stop();
    let mut sender = senders.remove(0);
    let (done, is_done) = channel();
    thread::spawn(move || {
        sender.enter();
        let sent = sender.send(0, &control);
        // The receiver of this result is gone if `holds` has stopped waiting.
        let _ = done.send((sent, sender));
    });
    // If sending takes longer than this, the sender is blocked on a full queue.
    let in_time = is_done.recv_timeout(Duration::from_secs(60));
    drop(receiver);
    match in_time {
        Ok((sent, _)) if sent == capacity => Ok(()),
        Ok((sent, _)) => Err(format!("{sent} messages were sent, not {capacity}")),
        Err(_) => Err(format!("it does not take {capacity} messages")),
    }
}

/// Returns the addresses of the measured loops in a stream from one sender.
///
/// # Errors
///
/// Returns a sentence that describes the fault.
pub fn loops(way: &Way, batch: u64) -> Result<Vec<usize>, String> {
    let flow = Flow { senders: 1, batch, capacity: CAPACITY as usize };
    let Streams { senders, receiver } = streams(&program(way, flow)?)?;
    let sending = senders.iter().map(|sender| sender.code());
    Ok(sending.chain(std::iter::once(receiver.code())).collect())
}

/// Sends `messages` messages back and forth.
///
/// # Errors
///
/// Returns a sentence that describes the fault.
pub fn ask_reply(way: &Way, messages: u64) -> Result<(), String> {
    let flow = Flow { senders: 1, batch: 1, capacity: CAPACITY as usize };
    let Some(Program::Exchange { make, .. }) = way.program(ask_reply::SCENARIO.name, usage(flow))
    else {
        return Err("it cannot run ask-reply".into());
    };
    let cpus = [allowed_cpus(), allowed_cpus()];
    let mut pair =
        pair(&clock()?, "the queue", make, Placement::Free, cpus, PATIENCE).map_err(sentence)?;
    pair.run(one_stretch(messages), PATIENCE).map(drop).map_err(sentence)
}

/// Sends messages to several receivers for a millisecond, twice: the second time, the queue is as
/// the first has left it. The queue's capacity is `capacity` if it is bounded. Returns `false` if
/// the queue cannot do this.
///
/// # Errors
///
/// Returns a sentence that describes the fault. If the check takes too long, because a receiver
/// waits for a message that it lacks, its threads are left behind.
pub fn broadcast(way: &Way, load: &Load, batch: u64, capacity: u64) -> Result<bool, String> {
    let (way, load, (tell, told)) = (way.clone(), load.clone(), channel());
    thread::spawn(move || tell.send(all_messages(&way, &load, batch, capacity)));
    told.recv_timeout(PATIENCE).unwrap_or_else(|why| match why {
        RecvTimeoutError::Timeout => Err(format!("not done after {} s", PATIENCE.as_secs())),
        RecvTimeoutError::Disconnected => Err("it panicked".into()),
    })
}

fn all_messages(way: &Way, load: &Load, batch: u64, capacity: u64) -> Result<bool, String> {
    let flow = Flow { senders: 1, batch, capacity: capacity as usize };
    let usage = Usage { load: load.clone(), ..usage(flow) };
    let Some(Program::ThreadGroup(program)) = way.program(broadcast::SCENARIO.name, usage) else {
        return Ok(false);
    };
    let mut roles = (program.make)().map_err(|why| why.to_string())?;
    let (clock, ready) = (&clock()?, &Barrier::new(roles.len()));
    for seed in [1, 2] {
        let run = |role: &mut Box<dyn Role>| {
            if seed == 1 {
                role.enter();
            }
            role.prepare(BlockSpec { length_ns: 1e6, seed }, clock);
            ready.wait();
            role.work(clock)
        };
        let logs: Vec<Log> = thread::scope(|scope| {
            let all: Vec<_> = roles.iter_mut().map(|role| scope.spawn(move || run(role))).collect();
            all.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        if logs.len() < roles.len() || logs.iter().any(|log| log.wrong != 0) {
            return Err(format!("a receiver got another message than was sent: {logs:?}"));
        }
        let cpu_ns = vec![0; logs.len()];
        if (program.read)(BlockLogs { logs, cpu_ns, cpu: 0, clock_bound_ns: None }).is_none() {
            return Err("a receiver lacks a message".into());
        }
    }
    Ok(true)
}

/// Checks that the last receiver of a diamond gets a message only after all others have handled it.
///
/// # Errors
///
/// Returns a sentence that describes the fault.
pub fn diamond(channel: &impl Broadcast) -> Result<(), String> {
    let opened = channel.open(Graph::Diamond, 3, 8);
    let (mut source, mut sinks) = opened.map_err(|why| why.to_string())?;
    let mut last = sinks.pop().ok_or("it has no receivers")?;
    source.send(1);
    thread::scope(|scope| {
        let last = scope.spawn(move || last.receive());
        let (mut early, mut right) = (false, true);
        for sink in &mut sinks {
            thread::sleep(LATE);
            early |= last.is_finished();
            right &= sink.receive() == 1;
        }
        if !last.join().is_ok_and(|message| message == 1) || !right {
            return Err("a receiver got another message than was sent".into());
        }
        if early { Err("the last receiver came before another one".into()) } else { Ok(()) }
    })
}

fn usage(flow: Flow) -> Usage {
    Usage { flow, class: Class::Spin, grows: false, load: Load::NONE, payload_bytes: 8 }
}

fn program(way: &Way, flow: Flow) -> Result<StreamProgram, String> {
    match way.program(stream::SCENARIO.name, usage(flow)) {
        Some(Program::Stream(program)) => Ok(program),
        _ => Err("it cannot run stream".into()),
    }
}

fn streams(program: &StreamProgram) -> Result<Streams, String> {
    (program.make)().map_err(|why| why.to_string())
}

/// All checks share a clock, because choosing one takes longer than most of the checks.
fn clock() -> Result<Clock, String> {
    static CLOCK: LazyLock<Result<Clock, String>> = LazyLock::new(|| {
        Clock::gate().map(|(clock, _)| clock).map_err(|refused| refused.to_string())
    });
    CLOCK.clone()
}

fn sentence(error: LabError) -> String {
    match error {
        LabError::Unavailable { reason, .. } => reason.to_string(),
        error => error.to_string(),
    }
}

//! Checks that a queue delivers what was sent, for tests of adapters, which have no access to the
//! loops.
//!
//! Measures nothing; threads may run on any CPU.

use std::sync::Arc;
use std::thread;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Carry, Load};

use crate::exchange::{DRAIN_ROUNDS, Ends, LoopSpec, Stamps, StopAt};
use crate::mechanism::Class;
use crate::program::{Program, STACK_BYTES, StreamProgram};
use crate::stream::{StreamControl, StreamSpec, Streams};

use super::{CAPACITY, Flow, Usage, Way};

/// Streams at least `messages` from `senders` threads in batches of `batch`, through a queue with
/// this `capacity` if it is bounded.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn stream(
    way: &Way,
    senders: u32,
    batch: u64,
    capacity: u64,
    messages: u64,
) -> Result<(), String> {
    let flow = Flow { senders, batch, capacity: capacity as usize };
    deliver(&program(way, flow)?, messages)
}

/// Sends at least `messages` messages of this many bytes, carried in this way, from one thread,
/// through a queue with this `capacity` if it is bounded. Returns `false` if the queue cannot carry
/// them in this way.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn payload(
    way: &Way,
    carry: Carry,
    payload_bytes: u64,
    capacity: u64,
    messages: u64,
) -> Result<bool, String> {
    let flow = Flow { senders: 1, batch: 1, capacity: capacity as usize };
    // As for a queue that grows: the sender then also waits for the receiver.
    let load = Load { carry: Some(carry), ..Load::NONE };
    let usage = Usage { load, payload_bytes, grows: true, ..usage(flow) };
    let Some(Program::Stream(program)) = way.program(super::payload::SCENARIO.name, usage) else {
        return Ok(false);
    };
    let delivered = spawn(move || deliver(&program, messages));
    delivered?.join().map_err(|_| "the receiver panicked")?.map(|()| true)
}

/// Starts a thread with a stack of the same size as a measured thread's.
fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, String> {
    let builder = thread::Builder::new().stack_size(STACK_BYTES);
    builder.spawn(body).map_err(|error| error.to_string())
}

fn deliver(program: &StreamProgram, messages: u64) -> Result<(), String> {
    let Streams { senders, mut receiver } = streams(program)?;
    let control = Arc::new(StreamControl::new(senders.len() as u32));
    let (clock, _) = Clock::gate().map_err(|refused| refused.to_string())?;
    // Two passes: the second one starts with the queue as the first has left it.
    let passes = 1..=2;
    let sending: Result<Vec<_>, String> = senders
        .into_iter()
        .enumerate()
        .map(|(index, mut sender)| {
            let (control, passes) = (Arc::clone(&control), passes.clone());
            spawn(move || {
                sender.enter();
                let mut sent = 0;
                for pass in passes {
                    control.await_begin(pass);
                    sent += sender.send(index, &control);
                }
                sent
            })
        })
        .collect();
    let sending = sending?;
    receiver.enter();
    let mut received = 0;
    for pass in passes {
        control.begin(pass);
        let per_stretch = (messages / 2).next_multiple_of(program.round);
        let found = receiver.receive(
            StreamSpec { per_stretch, stretches: 1, until: u64::MAX },
            &control,
            &clock,
            None,
        );
        if found.wrong != 0 {
            return Err("a message was wrong, lost or out of order".into());
        }
        received += found.messages;
    }
    let mut sent = 0;
    for sender in sending {
        sent += sender.join().map_err(|_| "a sender panicked")?;
    }
    if sent == received {
        Ok(())
    } else {
        Err(format!("{received} of {sent} messages were received"))
    }
}

/// Checks that a queue accepts `capacity` messages without a receiver, in one round of a stream.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn holds(way: &Way, capacity: u64) -> Result<(), String> {
    let flow = Flow { senders: 1, batch: 1, capacity: capacity as usize };
    let program = program(way, flow)?;
    assert_eq!(program.round, capacity, "a round fills the queue");
    let Streams { mut senders, receiver } = streams(&program)?;
    let control = StreamControl::new(1);
    // Stops after the first round.
    control.stop();
    let mut sender = senders.remove(0);
    let (done, is_done) = std::sync::mpsc::channel();
    thread::spawn(move || {
        sender.enter();
        let sent = sender.send(0, &control);
        // The test may have given up waiting.
        let _ = done.send((sent, sender));
    });
    // If it takes longer than this, the sender is blocked on a full queue.
    let in_time = is_done.recv_timeout(std::time::Duration::from_secs(60));
    drop(receiver);
    match in_time {
        Ok((sent, _)) if sent == capacity => Ok(()),
        Ok((sent, _)) => Err(format!("{sent} messages were sent, not {capacity}")),
        Err(_) => Err(format!("it does not take {capacity} messages")),
    }
}

/// Addresses of the measured loops in a stream from one sender.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn loops(way: &Way, batch: u64) -> Result<Vec<usize>, String> {
    let flow = Flow { senders: 1, batch, capacity: CAPACITY as usize };
    let Streams { senders, receiver } = streams(&program(way, flow)?)?;
    let sending = senders.iter().map(|sender| sender.code());
    Ok(sending.chain(std::iter::once(receiver.code())).collect())
}

/// Sends this many messages back and forth.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn ask_reply(way: &Way, messages: u64) -> Result<(), String> {
    let flow = Flow { senders: 1, batch: 1, capacity: CAPACITY as usize };
    let Some(Program::Exchange { make, .. }) =
        way.program(super::ask_reply::SCENARIO.name, usage(flow))
    else {
        return Err("it cannot run ask-reply".into());
    };
    let Ends { mut lead, follow: Some(mut follow) } = make().map_err(|why| why.to_string())? else {
        return Err("both of its ends are one thread".into());
    };
    let last = Arc::new(StopAt::default());
    let of_follower = Arc::clone(&last);
    let following = thread::spawn(move || {
        follow.enter();
        follow.follow(1, &of_follower, Stamps::None)
    });
    lead.enter();
    let spec = LoopSpec { first: 1, stretches: 1, per_stretch: messages, until: u64::MAX };
    let led = lead.lead(spec, &last, Stamps::None);
    let followed = following.join().map_err(|_| "the following end panicked")?;
    if led.wrong | followed.wrong != 0 {
        return Err("a message was wrong, lost or out of order".into());
    }
    if led.next == messages + DRAIN_ROUNDS + 1 && followed.next == led.next {
        Ok(())
    } else {
        Err(format!("{} messages were sent, and {} came back", followed.next - 1, led.next - 1))
    }
}

fn usage(flow: Flow) -> Usage {
    Usage { flow, class: Class::Spin, grows: false, load: Load::NONE, payload_bytes: 8 }
}

fn program(way: &Way, flow: Flow) -> Result<StreamProgram, String> {
    match way.program(super::stream::SCENARIO.name, usage(flow)) {
        Some(Program::Stream(program)) => Ok(program),
        _ => Err("it cannot run stream".into()),
    }
}

fn streams(program: &StreamProgram) -> Result<Streams, String> {
    (program.make)().map_err(|why| why.to_string())
}

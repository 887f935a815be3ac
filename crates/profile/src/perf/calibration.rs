//! Measures what perf events cost threads that switch, on this machine.
//!
//! Two threads on one CPU pass a number to and fro, in blocks with and without events. What a
//! switch costs while events are open but off is not measured: it cannot be saved.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::mpsc::{Receiver, RecvError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::gettid;
use threadtoll_machine::current_cpu;
use threadtoll_machine::place::pin_to;
use threadtoll_stats::median;

use super::budget::SwitchCosts;
use super::events::{EventOptions, Events, Following};
use crate::clock::thread_cpu;

/// Time limit for a block. On a busy machine, each trip may wait for two time slices.
const PATIENCE: Duration = Duration::from_secs(2);

const ROUNDS: usize = 7;
const TRIPS: u32 = 8;
/// On each trip, both threads get the CPU and leave it.
const SWITCHES_PER_TRIP: u32 = 4;

/// Measures the costs in threads of its own, with some milliseconds of CPU time. Nothing arrives if
/// they cannot be measured.
pub(crate) fn begin(options: EventOptions) -> Receiver<SwitchCosts> {
    let (tell, costs) = channel();
    let calibrate = move || {
        if let Some(costs) = measure(options) {
            _ = tell.send(costs);
        }
    };
    _ = thread::Builder::new().name("calibration".into()).spawn(calibrate);
    costs
}

fn measure(options: EventOptions) -> Option<SwitchCosts> {
    let (go, blocks) = channel();
    let (tell, told) = channel();
    let (to_echo, from_caller) = pipe().ok().map(|(reader, writer)| (writer, reader))?;
    let (from_echo, to_caller) = pipe().ok()?;
    let cpu = current_cpu();
    let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.into()).spawn(run).ok()
    };
    let told_by_echo = tell.clone();
    spawn("echo", Box::new(move || _ = echo(cpu, from_caller, to_caller, &told_by_echo)))?;
    spawn("caller", Box::new(move || _ = call(cpu, to_echo, from_echo, &blocks, &tell)))?;
    let next = || told.recv_timeout(PATIENCE).ok();
    let (Told::Thread(one), Told::Thread(other)) = (next()?, next()?) else { return None };
    let mut events = Events::open(options).ok()?;
    for tid in [one, other] {
        if events.follow_thread(tid).ok()? != Following::Now {
            return None;
        }
    }
    let mut cost = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let mut block = |switches: bool, samples: bool| {
            events.set_switches(switches);
            events.set_samples(samples);
            go.send(()).ok()?;
            let told = next()?;
            // Lost records cost less than others.
            events.drain(&mut |_| ());
            match told {
                Told::Block(_) if events.lost() > 0 => None,
                Told::Block(ns) => Some(ns as f64 / f64::from(TRIPS * SWITCHES_PER_TRIP)),
                Told::Thread(_) => None,
            }
        };
        let (none, records, both) = (block(false, false)?, block(true, false)?, block(true, true)?);
        cost[0].push(records - none);
        cost[1].push(both - records);
    }
    let [record_ns, timer_ns] = cost.map(|costs| median(costs).unwrap_or_default());
    Some(SwitchCosts { record_ns, timer_ns }.at_least_the_lowest())
}

enum Told {
    /// A thread is ready.
    Thread(u32),
    /// CPU time in nanoseconds that both threads spent on a block.
    Block(u64),
}

fn own_tid() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Answers each message with the CPU time of this thread.
fn echo(
    cpu: u32,
    mut from: PipeReader,
    mut to: PipeWriter,
    tell: &Sender<Told>,
) -> Result<(), Stopped> {
    pin_to(&[cpu]).map_err(|_| Stopped)?;
    tell.send(Told::Thread(own_tid())).map_err(|_| Stopped)?;
    let mut message = [0; 8];
    loop {
        from.read_exact(&mut message)?;
        to.write_all(&thread_cpu().to_ne_bytes())?;
    }
}

fn call(
    cpu: u32,
    mut to: PipeWriter,
    mut from: PipeReader,
    go: &Receiver<()>,
    tell: &Sender<Told>,
) -> Result<(), Stopped> {
    pin_to(&[cpu]).map_err(|_| Stopped)?;
    tell.send(Told::Thread(own_tid())).map_err(|_| Stopped)?;
    let mut trip = || -> io::Result<u64> {
        let mut answer = [0; 8];
        to.write_all(&answer)?;
        from.read_exact(&mut answer)?;
        Ok(u64::from_ne_bytes(answer))
    };
    loop {
        go.recv()?;
        let (mut other, own) = (trip()?, thread_cpu());
        let before = other + own;
        for _ in 0..TRIPS {
            other = trip()?;
        }
        let spent = (other + thread_cpu()).saturating_sub(before);
        tell.send(Told::Block(spent)).map_err(|_| Stopped)?;
    }
}

/// The other end is gone.
struct Stopped;

impl From<RecvError> for Stopped {
    fn from(_: RecvError) -> Stopped {
        Stopped
    }
}

impl From<io::Error> for Stopped {
    fn from(_: io::Error) -> Stopped {
        Stopped
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_machine::lock::machine_lock;

    use super::*;
    use crate::perf::SampleOptions;

    #[test]
    fn costs_are_those_of_this_machine() {
        let samples = Some(SampleOptions { period_ns: 20_000_000, stack_bytes: 1024 });
        let options = EventOptions { switches: true, samples };
        if let Err(refused) = Events::open(options) {
            eprintln!("skipped: {refused}");
            return;
        }
        let _machine = machine_lock().unwrap();
        let costs = begin(options).recv().unwrap();
        assert!((50.0..50_000.0).contains(&costs.record_ns), "{costs:?}");
        assert!((0.0..50_000.0).contains(&costs.timer_ns), "{costs:?}");
    }
}

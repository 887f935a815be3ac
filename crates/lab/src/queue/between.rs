//! Treatment of caches and pages between two messages, so that a message finds its ends as one
//! that comes after a day would.
//!
//! ```text
//!   flush-caches      sender:   send ▸ read a buffer ▸ spin until the next message is due
//!                     receiver: receive ▸ stamp ▸ read a buffer ▸ wait for the next message
//!   give-back-pages   sender:   send ▸ spin for half of the gap ▸ give back pages ▸ spin
//!                     receiver: receive ▸ stamp ▸ wait for the next message
//! ```
//!
//! A buffer has twice the size of the level 1 and level 2 data caches of the CPU that reads it.
//! Each end does that on its own thread, before it waits: while it waits, nobody else can empty the
//! caches of its CPU without taking that CPU from it. So the caches hold nothing of a message's way
//! but what waiting itself touches: what a spinning receiver polls, or the way into sleep. Pages
//! are of the process, so the sender gives them back while the receiver waits.

use std::path::Path;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::{
    CodePages, allowed_cpus, private_cache_bytes, thread_cpu_ns, thread_page_faults,
};
use threadtoll_record::{Between, BetweenBlock};

use crate::crew::{Log, Reading, Worked};
use crate::program::Program;
use crate::samples::Samples;

use super::arrivals::MAX_MESSAGES;
use super::paced::{self, Pause, touched};
use super::{Channel, Usage};

/// Size of buffers in relation to caches: reading as much as a cache holds leaves some of what was
/// there before, because no cache replaces strictly the oldest line.
const TIMES: u64 = 2;
/// Largest buffer, and the one where the kernel does not show the caches.
const MAX_BYTES: u64 = 16 << 20;
const USUAL_BYTES: u64 = 4 << 20;
/// Bytes that a cache loads at once, or fewer.
const LINE: usize = 64;

/// Shortest gap between two messages: about ten times as long as it takes.
pub(super) fn shortest_gap_ns(between: Option<Between>) -> u64 {
    match between {
        None => 1,
        Some(Between::FlushCaches) => 1_000_000,
        Some(Between::GiveBackPages) => 100_000,
    }
}

/// The program of two ends between whose messages something is done.
pub(super) fn program<C: Channel>(channel: &C, usage: Usage, between: Between) -> Option<Program> {
    let sender = move || At::new(between, true);
    let receiver = move || At::new(between, false);
    let Some(Program::Crew(mut crew)) = paced::program_with(channel, usage, sender, receiver)
    else {
        return None;
    };
    crew.read = std::sync::Arc::new(read);
    let simulate = crew.simulate;
    crew.simulate = std::sync::Arc::new(move |queue| Ok(simulated(simulate(queue)?, between)));
    // Page faults are what is measured.
    crew.grows |= between == Between::GiveBackPages;
    Some(Program::Crew(crew))
}

/// Bytes that simulated ends read, or give back.
const SIMULATED_BYTES: u64 = 4 << 20;
/// Page faults that a simulated receiver has for each time that pages were given back.
const SIMULATED_FAULTS: u64 = 3;

/// Time that a simulated message takes longer.
fn simulated_ps(between: Between) -> u64 {
    match between {
        Between::FlushCaches => 400_000,
        Between::GiveBackPages => 3_000_000,
    }
}

/// The logs of simulated ends, which are ready at once.
fn simulated(mut logs: Vec<Log>, between: Between) -> Vec<Log> {
    if let Some(received_ps) = logs.last_mut().and_then(|receiver| receiver.times.first_mut()) {
        received_ps.iter_mut().for_each(|ps| *ps += simulated_ps(between));
    }
    for log in &mut logs {
        let messages = log.times.first().map_or(0, Vec::len).saturating_sub(1) as u64;
        let page_faults = match between {
            Between::FlushCaches => 0,
            Between::GiveBackPages => messages * SIMULATED_FAULTS,
        };
        log.times.push(Vec::new());
        log.numbers.extend([SIMULATED_BYTES, 0, page_faults]);
    }
    logs
}

/// Work of one end.
enum Act {
    Nothing,
    Read(Vec<u8>),
    GiveBack(CodePages),
}

/// One end between two messages.
pub(super) struct At {
    between: Between,
    sends: bool,
    act: Act,
    /// When it was ready for the next message.
    ready: Vec<u64>,
    /// CPU time of what it did, and that of taking a CPU time.
    own_ns: u64,
    reading_ns: u64,
    page_faults: u64,
}

impl At {
    fn new(between: Between, sends: bool) -> Self {
        At {
            between,
            sends,
            act: Act::Nothing,
            ready: Vec::new(),
            own_ns: 0,
            reading_ns: 0,
            page_faults: 0,
        }
    }

    fn bytes(&self) -> u64 {
        match &self.act {
            Act::Nothing => 0,
            Act::Read(buffer) => buffer.len() as u64,
            Act::GiveBack(pages) => pages.bytes(),
        }
    }
}

/// Bytes that empty the caches of any CPU on which the calling thread may run.
fn emptying_bytes() -> u64 {
    let sizes = allowed_cpus().into_iter().filter_map(|cpu| {
        private_cache_bytes(Path::new("/sys"), cpu).map(|bytes| bytes.saturating_mul(TIMES))
    });
    sizes.max().unwrap_or(USUAL_BYTES).min(MAX_BYTES)
}

fn read_all(buffer: &[u8]) {
    let sum = buffer.iter().step_by(LINE).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}

impl Pause for At {
    fn prepare(&mut self) {
        match (self.between, &self.act) {
            (Between::FlushCaches, Act::Nothing) => {
                // Not zeros, whose pages would all be one.
                self.act = Act::Read(vec![1; emptying_bytes() as usize]);
            }
            (Between::GiveBackPages, Act::Nothing) if self.sends => {
                self.act = Act::GiveBack(CodePages::of_this_process());
            }
            _ => {}
        }
        self.ready = touched(2 * MAX_MESSAGES);
        self.ready.clear();
        self.own_ns = 0;
        self.reading_ns = thread_cpu_ns();
        self.reading_ns = thread_cpu_ns() - self.reading_ns;
        if let Act::Read(buffer) = &self.act {
            read_all(buffer);
        }
        self.page_faults = thread_page_faults();
    }

    fn pause(&mut self, now: u64, next: Option<u64>, clock: &Clock) -> u64 {
        match &self.act {
            Act::Nothing => return now,
            Act::Read(buffer) => {
                let before = thread_cpu_ns();
                read_all(buffer);
                let took_ns = thread_cpu_ns() - before;
                self.own_ns += took_ns + self.reading_ns;
            }
            Act::GiveBack(pages) => {
                let Some(next) = next else { return now };
                let halfway = now + next.saturating_sub(now) / 2;
                while clock.stamp() < halfway {}
                pages.give_back();
            }
        }
        let now = clock.stamp();
        if self.ready.len() < self.ready.capacity() {
            self.ready.push(now);
        }
        now
    }

    fn report(&mut self, log: &mut Log) {
        let page_faults = thread_page_faults().saturating_sub(self.page_faults);
        log.times.push(std::mem::take(&mut self.ready));
        log.numbers.extend([self.bytes(), self.own_ns, page_faults]);
    }
}

/// As other paced messages, without the CPU time of what was done between them.
fn read(mut worked: Worked) -> Option<Reading> {
    let mut ready = Vec::new();
    let mut bytes = 0;
    let mut page_faults = 0;
    for (log, cpu_ns) in worked.logs.iter_mut().zip(&mut worked.cpu_ns) {
        ready.push(log.times.pop()?);
        page_faults = log.numbers.pop()?;
        *cpu_ns = cpu_ns.saturating_sub(log.numbers.pop()?);
        bytes = log.numbers.pop()?.max(bytes);
    }
    let due_ps = worked.logs.first()?.times.first()?.clone();
    let (mut samples, messages) = paced::read(worked, None)?;
    let Samples::OpenLoop(deliveries) = &mut samples else { return None };
    let late = |(at, due): (usize, &u64)| {
        ready.iter().any(|ready| ready.get(at).is_some_and(|ready| ready > due))
    };
    deliveries.between = Some(BetweenBlock {
        bytes: bytes.into(),
        page_faults: page_faults.into(),
        messages: messages.saturating_sub(1).into(),
        unready: (due_ps[1..].iter().enumerate().filter(|own| late(*own)).count() as u64).into(),
    });
    Some((samples, messages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_between_messages_is_not_charged_to_them() {
        let log = |times: &[&[u64]], numbers: &[u64]| Log {
            times: times.iter().map(|times| times.to_vec()).collect(),
            numbers: numbers.to_vec(),
            wrong: 0,
        };
        let due: &[u64] = &[100_000, 200_000, 300_000];
        let sent: &[u64] = &[101_000, 201_000, 301_000];
        // The receiver was not ready for the second message.
        let after: &[u64] = &[102_000, 202_000, 302_000];
        let sender = log(&[due, sent, after, due, &[150_000; 2]], &[1, 64, 7, 9]);
        let received: &[u64] = &[110_000, 210_000, 310_000];
        let receiver = log(&[received, &[205_000, 260_000, 360_000]], &[96, 300, 6]);
        let worked = Worked {
            logs: vec![sender, receiver],
            cpu_ns: vec![1000, 900],
            cpu: 1,
            clock_bound_ns: None,
        };
        let (Samples::OpenLoop(deliveries), 3) = read(worked).unwrap() else { panic!("no loop") };
        // Three send calls of a nanosecond.
        assert_eq!(deliveries.busy_ns, 3 + 600);
        let between = deliveries.between.unwrap();
        assert_eq!((between.bytes.get(), between.page_faults.get()), (96, 6));
        assert_eq!((between.messages.get(), between.unready.get()), (2, 1));
    }

    #[test]
    fn an_end_reads_its_whole_buffer_and_says_when_it_was_done() {
        let (clock, _) = Clock::gate().unwrap();
        let mut receiver = At::new(Between::FlushCaches, false);
        receiver.prepare();
        let before = clock.stamp();
        let after = receiver.pause(before, None, &clock);
        let mut log = Log::default();
        receiver.report(&mut log);
        assert_eq!(log.times, [vec![after]]);
        let &[bytes, cpu_ns, _] = log.numbers.as_slice() else { panic!("{log:?}") };
        assert!(after > before && bytes >= 1 << 16 && cpu_ns > 0, "{log:?}");
    }
}

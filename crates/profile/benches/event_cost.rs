//! Measures what perf events cost the threads that are followed, in CPU time.
//!
//! ```text
//!   switches: two threads on one CPU ── byte through a pipe ──▶ and back: four records a trip
//!   samples:  one thread that computes, drained on another CPU
//!   threads:  a thread that starts and joins others, which inherit its events
//! ```
//!
//! Blocks with and without events alternate, the order of each pair at random. Prints the median of
//! the paired differences with its 95% interval, next to a control whose blocks are equal. Run:
//! `cargo bench -p threadtoll-profile --bench event_cost [-- PAIRS]`

use std::hint::black_box;
use std::io::{Read, Write, pipe};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use threadtoll_machine::lock::machine_lock;
use threadtoll_machine::place::{allowed_cpus, pin_to};
use threadtoll_profile::perf::{Event, EventOptions, Events, PerfRefused, SampleOptions, Timeline};
use threadtoll_stats::resample::{Processes, median_with_interval};

const TRIPS: u32 = 1_500;
const RECORDS_PER_TRIP: f64 = 4.0;
const STARTS: u32 = 100;
const TURNS: u64 = 100_000_000;
const SAMPLE_PERIOD: Duration = Duration::from_micros(500);

/// Longer than a block: draining is no part of the CPU time of blocks that switch.
const LONG: Duration = Duration::from_secs(10);

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let pairs = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(200);
    match measure(pairs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<PerfRefused>() => {
            eprintln!("skipped: {error}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(pairs: u32) -> Result<(), Error> {
    let _machine = machine_lock()?;
    for (name, samples) in [("switch", false), ("switch, samples every 10 ms", true)] {
        let mut echo = Crew::echo()?;
        let samples = samples.then_some(SampleOptions { period_ns: 10_000_000, stack_bytes: 8192 });
        let options = EventOptions { switches: true, samples };
        let found = compare(pairs, &mut echo, options, false)?;
        report(&format!("{name}, per record"), &found, f64::from(TRIPS) * RECORDS_PER_TRIP);
    }
    let period_ns = SAMPLE_PERIOD.as_nanos() as u64;
    for stack_bytes in [0, 8192, 32768] {
        let samples = Some(SampleOptions { period_ns, stack_bytes });
        let options = EventOptions { switches: false, samples };
        let found = compare(pairs, &mut Crew::computing()?, options, false)?;
        report(&format!("sample with {stack_bytes} B of stack, each"), &found, found.samples);
    }
    let samples = Some(SampleOptions { period_ns, stack_bytes: 8192 });
    let options = EventOptions { switches: true, samples };
    let found = compare(pairs, &mut Crew::starting()?, options, true)?;
    report("thread started, both events inherited, each", &found, f64::from(STARTS));
    Ok(())
}

/// Threads that work when told to and answer with the CPU time, in nanoseconds, that it took.
struct Crew {
    tids: Vec<u32>,
    go: Sender<()>,
    done: Receiver<f64>,
}

impl Crew {
    fn of(mut work: impl FnMut() -> f64 + Send + 'static) -> Result<Crew, Error> {
        let (go, told) = channel();
        let (answer, done) = channel();
        let (tell, tid) = channel();
        let cpu = allowed_cpus()[0];
        thread::spawn(move || {
            let _ = pin_to(&[cpu]);
            let _ = tell.send(tid_of_this_thread());
            while told.recv().is_ok() && answer.send(work()).is_ok() {}
        });
        Ok(Crew { tids: vec![tid.recv()?], go, done })
    }

    fn echo() -> Result<Crew, Error> {
        let (mut there_out, mut there_in) = pipe()?;
        let (mut back_out, mut back_in) = pipe()?;
        let (tell, tid) = channel();
        let cpu = allowed_cpus()[0];
        thread::spawn(move || {
            let _ = pin_to(&[cpu]);
            let _ = tell.send(tid_of_this_thread());
            let mut byte = [0];
            while there_out.read_exact(&mut byte).is_ok() && back_in.write_all(&byte).is_ok() {}
        });
        let mut crew = Crew::of(move || {
            let started = cpu_ns(ClockId::ProcessCPUTime);
            let mut byte = [0];
            for trip in 0..TRIPS {
                let sent = [trip as u8];
                let whole = there_in.write_all(&sent).and_then(|()| back_out.read_exact(&mut byte));
                assert!(whole.is_ok() && byte == sent, "an echo is lost");
            }
            cpu_ns(ClockId::ProcessCPUTime) - started
        })?;
        crew.tids.push(tid.recv()?);
        Ok(crew)
    }

    fn computing() -> Result<Crew, Error> {
        Crew::of(|| {
            // A stack as deep as the deepest copy.
            let deep = black_box([0u8; 40 << 10]);
            let started = cpu_ns(ClockId::ThreadCPUTime);
            let mut turns = 0;
            while turns < TURNS {
                turns = black_box(turns + 1);
            }
            let spent = cpu_ns(ClockId::ThreadCPUTime) - started;
            black_box(&deep);
            spent
        })
    }

    fn starting() -> Result<Crew, Error> {
        Crew::of(|| {
            let started = cpu_ns(ClockId::ProcessCPUTime);
            for _ in 0..STARTS {
                assert!(thread::spawn(|| ()).join().is_ok());
            }
            cpu_ns(ClockId::ProcessCPUTime) - started
        })
    }

    fn work(&self) -> Result<f64, Error> {
        self.go.send(())?;
        Ok(self.done.recv()?)
    }

    /// Works while samples are drained, because they would fill a ring within a block.
    fn work_drained(
        &self,
        events: &mut Events,
        every: Duration,
        timeline: &mut Timeline,
        drained: &mut Drained,
    ) -> Result<f64, Error> {
        self.go.send(())?;
        let mut count = || {
            let started = cpu_ns(ClockId::ThreadCPUTime);
            let complete = events.drain(&mut |event| {
                timeline.note(&event);
                drained.records += 1;
                drained.samples += u32::from(matches!(event, Event::Sample(_)));
            });
            timeline.complete_until(complete);
            timeline.forget_before(complete);
            drained.ns += cpu_ns(ClockId::ThreadCPUTime) - started;
        };
        loop {
            match self.done.recv_timeout(every) {
                Ok(spent) => {
                    count();
                    return Ok(spent);
                }
                Err(RecvTimeoutError::Timeout) => count(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[derive(Default)]
struct Drained {
    records: u32,
    samples: u32,
    ns: f64,
}

struct Found {
    plain: Vec<f64>,
    differences: Vec<f64>,
    controls: Vec<f64>,
    samples: f64,
    drain_ns: f64,
    lost: u64,
}

fn compare(
    pairs: u32,
    crew: &mut Crew,
    options: EventOptions,
    inherited: bool,
) -> Result<Found, Error> {
    let mut found = Found {
        plain: vec![],
        differences: vec![],
        controls: vec![],
        samples: 0.0,
        drain_ns: 0.0,
        lost: 0,
    };
    let mut drained = Drained::default();
    let mut timeline = Timeline::new(100_000);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..pairs {
        let mut followed = || -> Result<f64, Error> {
            let mut events = Events::open(options)?;
            for &tid in &crew.tids {
                if inherited {
                    events.follow_program(tid)?;
                } else {
                    events.follow_thread(tid)?;
                }
            }
            let every = if options.switches { LONG } else { 16 * SAMPLE_PERIOD };
            let spent = crew.work_drained(&mut events, every, &mut timeline, &mut drained)?;
            found.lost += events.lost();
            Ok(spent)
        };
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (plain, events) = if random & 1 == 0 {
            let plain = crew.work()?;
            (plain, followed()?)
        } else {
            let events = followed()?;
            (crew.work()?, events)
        };
        found.differences.push(events - plain);
        found.controls.push(crew.work()? - crew.work()?);
        found.plain.push(plain);
    }
    found.samples = f64::from(drained.samples) / f64::from(pairs);
    found.drain_ns = drained.ns / f64::from(drained.records.max(1));
    Ok(found)
}

fn report(name: &str, found: &Found, units: f64) {
    let per_unit = |values: &[f64]| {
        let values: Vec<f64> = values.iter().map(|value| value / units).collect();
        let (middle, interval) = median_with_interval(&values, &Processes::one(values.len()), 1)?;
        Some((middle, interval?))
    };
    let (Some((cost, [low, high])), Some((control, [control_low, control_high])), Some(plain)) =
        (per_unit(&found.differences), per_unit(&found.controls), per_unit(&found.plain))
    else {
        println!("{name}: too few pairs");
        return;
    };
    println!(
        "{name}: {cost:.0} ns ({low:.0} to {high:.0}); control {control:.0} ({control_low:.0} to \
         {control_high:.0}); a block is {:.2} ms; the profiler needs {:.0} ns per record; {} are lost",
        plain.0 * units / 1e6,
        found.drain_ns,
        found.lost
    );
}

fn tid_of_this_thread() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

fn cpu_ns(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

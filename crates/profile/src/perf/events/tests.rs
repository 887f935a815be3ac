//! Follows real threads of this process, and children. If the kernel permits no perf events, the
//! tests print the reason.

use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use threadtoll_machine::lock::machine_lock;
use threadtoll_machine::place::pin_to;

use super::*;
use crate::perf::{CpuState, Timeline};

const PATIENCE: Duration = Duration::from_secs(60);
const MARK: u64 = 0x7468_7265_6164_746f;

fn switches() -> EventOptions {
    EventOptions { switches: true, samples: None }
}

fn switches_and_samples() -> EventOptions {
    let samples = SampleOptions { period_ns: 1_000_000, stack_bytes: 1024 };
    EventOptions { switches: true, samples: Some(samples) }
}

fn events_within(options: EventOptions, limits: Limits) -> Option<Events> {
    match Events::within(options, limits) {
        Ok(events) => Some(events),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn events(options: EventOptions) -> Option<Events> {
    events_within(options, Limits::of_this_process())
}

struct Worker {
    tid: u32,
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(cpu: Option<u32>, mut work: impl FnMut() + Send + 'static) -> Worker {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let seen = stop.clone();
        let handle = thread::Builder::new().stack_size(64 << 10).spawn(move || {
            if let Some(cpu) = cpu {
                pin_to(&[cpu]).unwrap();
            }
            ready.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            while !seen.load(Ordering::Relaxed) {
                work();
            }
        });
        Worker { tid: is_ready.recv().unwrap(), stop, handle: Some(handle.unwrap()) }
    }

    fn sleeper() -> Worker {
        Worker::start(None, || thread::sleep(Duration::from_millis(1)))
    }

    fn pinned_sleeper() -> Worker {
        Worker::start(Some(allowed_cpus()[0]), || thread::sleep(Duration::from_millis(1)))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

#[inline(never)]
fn spin() {
    let mut count = 0u64;
    while count < 1_000_000 {
        count = black_box(count + 1);
    }
}

/// Puts a mark on the stack and calls [`spin`], whose own locals may lie below the stack pointer.
fn marked_spin() {
    let mark = black_box([MARK; 4]);
    spin();
    black_box(&mark);
}

fn is_in_spin(address: u64) -> bool {
    let start = spin as *const () as u64;
    (start..start + 1024).contains(&address)
}

fn tids_that_switch(events: &mut Events, expect: &[u32]) {
    let mut missing: HashSet<u32> = expect.iter().copied().collect();
    let deadline = Instant::now() + PATIENCE;
    while !missing.is_empty() {
        assert!(Instant::now() < deadline, "{} threads were never seen", missing.len());
        thread::sleep(Duration::from_millis(10));
        events.drain(&mut |event| {
            if let Event::Switch { tid, .. } = event {
                missing.remove(&tid);
            }
        });
        events.refresh();
    }
}

#[test]
fn a_preempted_spinner_is_told_from_a_sleeper() {
    let Some(mut events) = events(switches()) else { return };
    let _machine = machine_lock().unwrap();
    let cpu = allowed_cpus()[0];
    let spinners = [Worker::start(Some(cpu), spin), Worker::start(Some(cpu), spin)];
    let sleeper = Worker::sleeper();
    for worker in spinners.iter().chain([&sleeper]) {
        assert_eq!(events.follow_thread(worker.tid).unwrap(), Following::Now);
    }
    let mut timeline = Timeline::new(100_000);
    let mut seen: HashMap<(u32, CpuState), u32> = HashMap::new();
    let mut count = |tid, state| *seen.entry((tid, state)).or_default() += 1;
    let (mut enough, mut asked_until) = (0, now());
    let deadline = Instant::now() + PATIENCE;
    while enough < 200 {
        assert!(Instant::now() < deadline, "{enough} instants are known");
        thread::sleep(Duration::from_millis(20));
        let complete = events.drain(&mut |event| timeline.note(&event));
        timeline.complete_until(complete);
        for at in (asked_until..complete).step_by(500_000) {
            let states = spinners.each_ref().map(|spinner| timeline.state(spinner.tid, at));
            assert_ne!(states, [Some(CpuState::Running); 2], "two threads on one CPU");
            for (spinner, state) in spinners.iter().zip(states) {
                if let Some(state) = state {
                    count(spinner.tid, state);
                }
            }
            if let (Some(state), [Some(_), Some(_)]) = (timeline.state(sleeper.tid, at), states) {
                count(sleeper.tid, state);
                enough += 1;
            }
        }
        asked_until = complete;
        timeline.forget_before(complete);
    }
    let seen = |tid, state| seen.get(&(tid, state)).copied().unwrap_or(0);
    for spinner in &spinners {
        assert!(seen(spinner.tid, CpuState::Running) > 0);
        // Even a spinner occasionally sleeps in a page fault.
        let preempted = seen(spinner.tid, CpuState::Preempted);
        assert!(seen(spinner.tid, CpuState::SwitchedOut) < preempted.div_ceil(10));
    }
    assert!(seen(sleeper.tid, CpuState::SwitchedOut) > 100);
}

fn samples_show_where_a_thread_runs(mut events: Events) {
    let _machine = machine_lock().unwrap();
    let spinner = Worker::start(None, marked_spin);
    assert_eq!(events.follow_thread(spinner.tid).unwrap(), Following::Now);
    let (mut samples, mut inside, mut marked) = (0, 0, 0);
    let deadline = Instant::now() + PATIENCE;
    while samples < 50 {
        assert!(Instant::now() < deadline, "{samples} samples");
        thread::sleep(Duration::from_millis(10));
        events.drain(&mut |event| {
            let Event::Sample(sample) = event else { return };
            assert_eq!((sample.pid, sample.tid), (std::process::id(), spinner.tid));
            assert!(sample.stack.len() <= 1024);
            samples += 1;
            inside += u32::from(is_in_spin(sample.registers.program_counter()));
            let words = sample.stack.chunks_exact(8);
            marked += u32::from(words.into_iter().any(|word| word == MARK.to_ne_bytes()));
        });
    }
    assert!(inside * 2 > samples, "{inside} of {samples} in the function");
    assert!(marked * 2 > samples, "{marked} of {samples} with its caller's mark on the stack");
}

#[test]
fn samples_of_a_running_thread_lie_in_its_function() {
    if let Some(events) = events(switches_and_samples()) {
        samples_show_where_a_thread_runs(events);
    }
}

fn own_rings() -> Limits {
    Limits { most_shared_cpus: 0, ..Limits::of_this_process() }
}

#[test]
fn a_thread_with_a_ring_of_its_own_is_sampled() {
    if let Some(events) = events_within(switches_and_samples(), own_rings()) {
        samples_show_where_a_thread_runs(events);
    }
}

#[test]
fn rings_of_threads_need_no_descriptor_per_cpu() {
    let Some(mut events) = events_within(switches(), own_rings()) else { return };
    let sleepers = [Worker::sleeper(), Worker::sleeper()];
    for sleeper in &sleepers {
        assert_eq!(events.follow_thread(sleeper.tid).unwrap(), Following::Now);
    }
    assert!(events.rings.is_empty());
    assert_eq!(events.descriptors, 4);
    tids_that_switch(&mut events, &sleepers.each_ref().map(|sleeper| sleeper.tid));
    events.set_switches(false);
    events.drain(&mut |_| ());
    let mut seen = 0;
    thread::sleep(Duration::from_millis(20));
    events.drain(&mut |event| seen += u32::from(matches!(event, Event::Switch { .. })));
    assert_eq!(seen, 0);
}

#[test]
fn many_threads_are_followed_at_once() {
    let Some(mut events) = events(switches_and_samples()) else { return };
    let work = || thread::sleep(Duration::from_millis(20));
    let workers: Vec<_> = (0..320).map(|_| Worker::start(None, work)).collect();
    let tids: Vec<u32> = workers.iter().map(|worker| worker.tid).collect();
    for &tid in &tids {
        assert_ne!(events.follow_thread(tid).unwrap(), Following::Ended);
    }
    if let Some(turns) = events.turns() {
        let needed = allowed_cpus().len() * (1 + tids.len() * 2);
        assert!(events.limits.descriptors < needed, "{turns:?}");
        eprintln!("not at once here: {}", turns.why);
    }
    tids_that_switch(&mut events, &tids);
    // All workers are stopped at once, so that their last sleeps overlap.
    for worker in &workers {
        worker.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn threads_take_turns_where_descriptors_are_few() {
    let limits = Limits { descriptors: 3, ..Limits::of_this_process() };
    let Some(mut events) = events_within(switches(), limits) else { return };
    let _machine = machine_lock().unwrap();
    let workers: Vec<_> = (0..7).map(|_| Worker::pinned_sleeper()).collect();
    let tids: Vec<u32> = workers.iter().map(|worker| worker.tid).collect();
    let following: Vec<_> = tids.iter().map(|&tid| events.follow_thread(tid).unwrap()).collect();
    assert_eq!(following[..2], [Following::Now; 2]);
    assert_eq!(following[2..], [Following::InTurns; 5]);
    let turns = events.turns().unwrap();
    assert_eq!((turns.followed, turns.waiting), (2, 5));
    assert!(turns.why.to_string().contains("descriptors"), "{}", turns.why);
    tids_that_switch(&mut events, &tids);
    for &tid in &tids[..6] {
        events.forget(tid);
    }
    events.refresh();
    assert!(events.turns().is_none());
    tids_that_switch(&mut events, &tids[6..]);
}

#[test]
fn a_thread_that_waits_again_is_reported_as_no_longer_followed() {
    let limits = Limits { descriptors: 2, ..Limits::of_this_process() };
    let Some(mut events) = events_within(switches(), limits) else { return };
    let _machine = machine_lock().unwrap();
    let workers = [Worker::pinned_sleeper(), Worker::pinned_sleeper()];
    events.follow_thread(workers[0].tid).unwrap();
    events.follow_thread(workers[1].tid).unwrap();
    tids_that_switch(&mut events, &[workers[0].tid]);
    // The other thread gets its turn now, unless `tids_that_switch` has already given it one.
    events.refresh();
    let mut unfollowed = Vec::new();
    events.drain(&mut |event| {
        if let Event::Unfollowed { tid, .. } = event {
            unfollowed.push(tid);
        }
    });
    assert!(unfollowed.contains(&workers[0].tid));
}

#[test]
fn threads_made_later_are_inherited() {
    let Some(mut events) = events(switches()) else { return };
    let (go, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let program = thread::spawn(move || {
        tell.send(vec![rustix::thread::gettid().as_raw_nonzero().get() as u32]).unwrap();
        wait.recv().unwrap();
        let workers = [Worker::sleeper(), Worker::sleeper(), Worker::sleeper()];
        tell.send(workers.iter().map(|worker| worker.tid).collect()).unwrap();
        wait.recv().unwrap();
    });
    let first = told.recv().unwrap()[0];
    assert_eq!(events.follow_program(first).unwrap(), Following::Now);
    go.send(()).unwrap();
    let later = told.recv().unwrap();
    tids_that_switch(&mut events, &later);
    go.send(()).unwrap();
    program.join().unwrap();
    let mut ended = HashSet::new();
    let deadline = Instant::now() + PATIENCE;
    while !later.iter().chain([&first]).all(|tid| ended.contains(tid)) {
        assert!(Instant::now() < deadline, "{ended:?}");
        thread::sleep(Duration::from_millis(1));
        events.drain(&mut |event| {
            if let Event::Exit { tid, .. } = event {
                ended.insert(tid);
            }
        });
    }
}

#[test]
fn children_of_a_program_are_followed_through_fork_and_exec() {
    let Some(mut events) = events(switches()) else { return };
    let mut program = Command::new("sh")
        .args(["-c", "read line; sleep 0.02; echo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(events.follow_program(program.id()).unwrap(), Following::Now);
    program.stdin.take().unwrap().write_all(b"\n").unwrap();
    program.wait().unwrap();
    let (mut forked, mut executed, mut switched, mut ended) =
        (Vec::new(), HashSet::new(), HashSet::new(), HashSet::new());
    events.drain(&mut |event| match event {
        Event::Fork { pid, parent_pid, .. } => {
            assert_eq!(parent_pid, program.id());
            forked.push(pid);
        }
        Event::Exec { pid, .. } => assert!(executed.insert(pid)),
        Event::Switch { tid, .. } => _ = switched.insert(tid),
        Event::Exit { tid, .. } => _ = ended.insert(tid),
        _ => {}
    });
    let [child] = forked[..] else { panic!("{forked:?}") };
    assert!(executed.contains(&child) && switched.contains(&child) && ended.contains(&child));
    assert!(ended.contains(&program.id()));
}

#[test]
fn a_thread_is_followed_to_cpus_that_it_could_not_use_before() {
    let &[first, second, ..] = &allowed_cpus()[..] else {
        eprintln!("skipped: two CPUs are needed");
        return;
    };
    let Some(mut events) = events(switches()) else { return };
    let _machine = machine_lock().unwrap();
    let target = Arc::new(AtomicU32::new(first));
    let target_seen = target.clone();
    let worker = Worker::start(Some(first), move || {
        pin_to(&[target_seen.load(Ordering::Relaxed)]).unwrap();
        thread::sleep(Duration::from_millis(1));
    });
    events.follow_thread(worker.tid).unwrap();
    assert_eq!(events.descriptors, 2);
    tids_that_switch(&mut events, &[worker.tid]);
    target.store(second, Ordering::Relaxed);
    let mut seen = false;
    let deadline = Instant::now() + PATIENCE;
    while !seen {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(10));
        events.refresh();
        events.drain(&mut |event| {
            seen |= matches!(event, Event::Switch { cpu, .. } if cpu == second);
        });
    }
    assert_eq!(events.descriptors, 4);
}

#[test]
fn a_thread_of_somebody_else_is_refused() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may follow every thread");
        return;
    }
    let Some(mut events) = events(switches()) else { return };
    assert!(matches!(events.follow_thread(1), Err(PerfRefused::NotPermitted)));
    assert!(matches!(events.follow_program(1), Err(PerfRefused::NotPermitted)));
}

#[test]
fn a_program_on_many_cpus_inherits_nothing() {
    let limits = Limits { most_inherited_cpus: 0, ..Limits::of_this_process() };
    let Some(mut events) = events_within(switches(), limits) else { return };
    let worker = Worker::sleeper();
    let refused = events.follow_program(worker.tid);
    assert!(matches!(refused, Err(PerfRefused::ManyCpus { .. })), "{refused:?}");
}

#[test]
fn switches_beyond_the_budget_are_paused_and_leave_doubt() {
    let Some(mut events) = events(switches()) else { return };
    let workers = [Worker::sleeper(), Worker::sleeper()];
    for worker in &workers {
        events.follow_thread(worker.tid).unwrap();
    }
    tids_that_switch(&mut events, &workers.each_ref().map(|worker| worker.tid));
    events.keep_within(1e-12);
    let mut timeline = Timeline::new(1000);
    events.drain(&mut |event| timeline.note(&event));
    let off = now();
    thread::sleep(Duration::from_millis(20));
    let mut seen = 0;
    let complete = events.drain(&mut |event| {
        seen += u32::from(matches!(event, Event::Switch { .. }));
        timeline.note(&event);
    });
    timeline.complete_until(complete);
    assert_eq!(seen, 0);
    assert!(complete > off);
    assert_eq!(timeline.state(workers[0].tid, complete), None);
    events.keep_within(1.0);
    tids_that_switch(&mut events, &workers.each_ref().map(|worker| worker.tid));
}

#[test]
fn lost_records_are_counted_and_leave_doubt() {
    let limits = Limits { most_ring_bytes: 4096, ..Limits::of_this_process() };
    let Some(mut events) = events_within(switches(), limits) else { return };
    let worker = Worker::start(None, || thread::sleep(Duration::from_micros(10)));
    events.follow_thread(worker.tid).unwrap();
    let mut gaps = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while events.lost() == 0 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(200));
        for _ in 0..2 {
            events.drain(&mut |event| {
                if let Event::Lost { after, until, records } = event {
                    gaps.push((after, until, records));
                }
            });
            thread::sleep(Duration::from_millis(10));
        }
    }
    let counted: u64 = gaps.iter().map(|gap| gap.2).sum();
    assert_eq!(counted, events.lost());
    assert!(gaps.iter().all(|&(after, until, _)| 0 < after && after < until), "{gaps:?}");
}

#[test]
fn a_thread_that_has_ended_is_no_error() {
    let Some(mut events) = events(switches_and_samples()) else { return };
    let worker = Worker::sleeper();
    let tid = worker.tid;
    events.follow_thread(tid).unwrap();
    let before = events.descriptors;
    drop(worker);
    // A join may return shortly before the thread ends.
    let deadline = Instant::now() + PATIENCE;
    while std::fs::exists(format!("/proc/self/task/{tid}")).unwrap() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(1));
    }
    events.drain(&mut |_| ());
    assert!(events.descriptors < before, "descriptors of a thread that ended are closed");
    assert_eq!(events.follow_thread(tid).unwrap(), Following::Ended);
    assert_eq!(events.follow_program(tid).unwrap(), Following::Ended);
}

#[test]
fn threads_may_end_while_they_are_opened() {
    let Some(mut events) = events(switches_and_samples()) else { return };
    for _ in 0..300 {
        let (tell, told) = mpsc::channel();
        let short = thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
        });
        events.follow_thread(told.recv().unwrap()).unwrap();
        short.join().unwrap();
        events.drain(&mut |_| ());
    }
    events.refresh();
}

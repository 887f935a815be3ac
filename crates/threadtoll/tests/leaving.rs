//! A request that carries the sender of its reply, sent while the receiver leaves: the asking
//! thread learns that no reply will come, and does not wait for one. Two CPUs race at the moment at
//! which half of the requests come too late.
//!
//! `THREADTOLL_LEAVE_MS` is the time for each kind of queue, in milliseconds.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

#[path = "queues/cpus.rs"]
mod cpus;
#[path = "sandbox/filter.rs"]
mod filter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use filter::{has_filters, refuse_membarrier, run};
use threadtoll::error::CallTimeoutError;
use threadtoll::{call, funnel, pipe};

/// The sender of a reply.
type Reply = pipe::Sender<()>;

/// One race at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Time for each kind of queue.
fn time() -> Duration {
    let time = std::env::var("THREADTOLL_LEAVE_MS").ok();
    Duration::from_millis(time.and_then(|time| time.parse().ok()).unwrap_or(30))
}

/// Polls until the condition holds.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let mut looks = 0u32;
    while !is_so() {
        looks += 1;
        if looks.is_multiple_of(4096) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The last round of each step.
#[derive(Default)]
struct Rounds {
    made: AtomicU64,
    begun: AtomicU64,
    left: AtomicU64,
}

/// A kind of queue, with its ends on two CPUs.
struct Race<'a> {
    name: &'a str,
    cpus: [usize; 2],
    /// Number of messages that are received before the receiver leaves.
    received: u64,
}

impl Race<'_> {
    /// Races for a while. `ask` returns `false` if the request came back.
    fn run<S, R: Send>(
        &self,
        make: impl Fn() -> (S, R) + Sync,
        ask: impl Fn(&mut S, Option<Reply>) -> bool + Sync,
        receive: impl Fn(&mut R) + Sync,
    ) {
        let rounds = Rounds::default();
        let receivers = Mutex::new(None);
        let receivers = || receivers.lock().unwrap_or_else(PoisonError::into_inner);
        let stranded = thread::scope(|scope| {
            scope.spawn(|| {
                assert!(cpus::bind(self.cpus[1]));
                for round in 1.. {
                    wait_until(|| rounds.made.load(Ordering::Acquire) == round);
                    let Some((mut receiver, lead)) = receivers().take() else { break };
                    rounds.begun.store(round, Ordering::Release);
                    (0..self.received).for_each(|_| receive(&mut receiver));
                    (0..lead).for_each(|_| std::hint::spin_loop());
                    drop(receiver);
                    rounds.left.store(round, Ordering::Release);
                }
            });
            let asking = scope.spawn(|| {
                assert!(cpus::bind(self.cpus[0]));
                let (mut round, mut accepted, mut stranded, mut lead) = (0, 0, 0, 0i64);
                let began = Instant::now();
                while began.elapsed() < time() {
                    round += 1;
                    let (reply, answer) = pipe::bounded(1);
                    let (mut sender, receiver) = make();
                    let about = u64::wrapping_mul(round, 0x9e37_79b9_7f4a_7c15) >> 59;
                    *receivers() = Some((receiver, lead + about.cast_signed()));
                    rounds.made.store(round, Ordering::Release);
                    wait_until(|| rounds.begun.load(Ordering::Acquire) == round);
                    for _ in 0..self.received {
                        ask(&mut sender, None);
                    }
                    (lead..0).for_each(|_| std::hint::spin_loop());
                    if ask(&mut sender, Some(reply)) {
                        accepted += 1;
                        lead -= 1;
                    } else {
                        lead += 1;
                    }
                    wait_until(|| rounds.left.load(Ordering::Acquire) == round);
                    // Otherwise the receiver would wait as long as this sender lives.
                    stranded += u64::from(!answer.is_disconnected());
                    drop(sender);
                }
                rounds.made.store(round + 1, Ordering::Release);
                println!(
                    "{}, {} received before: {round} rounds, {accepted} accepted, {stranded} stranded",
                    self.name, self.received
                );
                // Changes the lead by one per round, so that both outcomes occur.
                assert!(round < 10_000 || (1..round).contains(&accepted), "there was no race");
                stranded
            });
            asking.join().expect("it does not panic")
        });
        assert_eq!(stranded, 0, "{}: requests that nobody has dropped", self.name);
    }
}

fn leave_pipes(cpus: [usize; 2]) {
    type Make = fn() -> (pipe::Sender<Option<Reply>>, pipe::Receiver<Option<Reply>>);
    let kinds: [(&str, Make); 4] = [
        ("pipe for one message", || pipe::bounded(1)),
        ("pipe for 16", || pipe::bounded(16)),
        ("unbounded pipe", pipe::unbounded),
        ("pipe that fences", || pipe::Options::new().fence().unbounded()),
    ];
    for (name, make) in kinds {
        for received in [0, 1, 2] {
            Race { name, cpus, received }.run(
                make,
                |sender, reply| sender.send(reply).is_ok(),
                |receiver| drop(receiver.recv()),
            );
        }
    }
}

fn leave_funnels(cpus: [usize; 2]) {
    type Make = fn() -> (funnel::Sender<Option<Reply>>, funnel::Receiver<Option<Reply>>);
    let kinds: [(&str, Make); 3] = [
        ("funnel for 16", || funnel::bounded(16)),
        ("unbounded funnel", funnel::unbounded),
        ("funnel that interrupts nobody", || funnel::Options::new().fence().unbounded()),
    ];
    for (name, make) in kinds {
        for received in [0, 1] {
            Race { name, cpus, received }.run(
                make,
                |sender, reply| sender.send(reply).is_ok(),
                |receiver| drop(receiver.recv()),
            );
        }
    }
}

/// Long enough to ask, too short for an answer.
const AT_ONCE: Duration = Duration::from_nanos(1);

fn leave_calls(cpus: [usize; 2]) {
    Race { name: "call whose caller leaves", cpus, received: 1 }.run(
        || {
            let (caller, callee) = call::line::<(), Reply>();
            (callee, caller)
        },
        |callee, reply| {
            let Some(reply) = reply else { return true };
            let received = callee.recv();
            let in_time = !callee.is_disconnected();
            if received.is_ok() {
                callee.answer(reply);
            }
            in_time
        },
        |caller| drop(caller.call_timeout((), AT_ONCE)),
    );
    Race { name: "call whose callee leaves", cpus, received: 0 }.run(
        call::line::<Option<Reply>, ()>,
        |caller, reply| {
            let answer = caller.call_timeout(reply, AT_ONCE);
            !matches!(answer, Err(CallTimeoutError::Disconnected(_)))
        },
        |_| {},
    );
}

/// Runs a race on two CPUs, if there are two.
fn on_two_cpus(race: impl Fn([usize; 2])) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match cpus::allowed()[..] {
        [first, .., last] => race([first, last]),
        _ => println!("skipped: a race needs two CPUs"),
    }
}

#[test]
fn pipes() {
    on_two_cpus(leave_pipes);
}

#[test]
fn funnels() {
    on_two_cpus(leave_funnels);
}

#[test]
fn calls() {
    on_two_cpus(leave_calls);
}

fn leave_all(cpus: [usize; 2]) {
    leave_pipes(cpus);
    leave_funnels(cpus);
    leave_calls(cpus);
}

#[test]
#[ignore = "run by `where_the_barrier_is_refused`, in a process of its own"]
fn child_refused_before() {
    on_two_cpus(leave_all);
}

#[test]
#[ignore = "run by `where_the_barrier_is_refused_later`, in a process of its own"]
fn child_refused_after() {
    // All queues rely on the kernel's answer to the first one.
    drop(pipe::bounded::<()>(1));
    assert!(refuse_membarrier());
    on_two_cpus(leave_all);
}

#[test]
fn where_the_barrier_is_refused() {
    on_two_cpus(|_| {
        if has_filters() {
            run("child_refused_before", true);
        }
    });
}

#[test]
fn where_the_barrier_is_refused_later() {
    on_two_cpus(|_| {
        if has_filters() {
            run("child_refused_after", false);
        }
    });
}

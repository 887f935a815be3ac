//! How an end of a queue waits, as types: [`Spin`], [`SpinYield`], [`Park`], [`Adaptive`].
//!
//! **Decide by what the CPU is for.** [`Spin`] and [`SpinYield`] never sleep, cost a CPU, and react
//! within a cache line's transfer. [`Park`] sleeps at once and costs a wake-up for each message
//! that is waited for. [`Adaptive`], the default, spins where that has paid and sleeps where it has
//! not.
//!
//! | | looks again | gives its CPU away | wakes within |
//! |---|---|---|---|
//! | [`Spin`] | after a pause of some 25 ns | never | a cache line's transfer |
//! | [`SpinYield`] | between calls of `sched_yield(2)` | to threads that are ready to run | a transfer, or another thread's time slice |
//! | [`Park`] | once; 64 times if it waits for room | then (`futex(2)`) | a wake-up: microseconds |
//! | [`Adaptive`] | for half a microsecond; if most of its last eight waits were short, for as long as sleeping costs | then (`futex(2)`) | a transfer while messages keep coming, a wake-up when they do not |
//!
//! `Adaptive` pays for its latency in CPU time: where messages come more often than a sleep costs,
//! it spins all the time. [Figures](crate#measured).
//!
//! # What a sleep costs others
//!
//! While messages keep coming, a pipe's send executes no fence, no locked instruction and no system
//! call for the sake of sleepers. **An end that goes to sleep may pay for that, and so may every
//! CPU that runs a thread of this process**: the end makes all of them execute a barrier
//! (`membarrier(2)`), an interruption, whatever they are doing.
//!
//! | who sleeps | interrupts |
//! |---|---|
//! | a [pipe](crate::pipe)'s receiver | when it has received 64 messages or more since it last slept, and the first time that it has not. Then the sender fences for each message (and, if the pipe is bounded, the receiver), until 64 are received without a sleep |
//! | a [funnel](crate::funnel)'s receiver | never |
//! | a sender that waits for room in either, unless a pipe's receiver sleeps often | each time |
//! | an end of a [call](crate::call) | each time |
//! | anyone, with `Options::fence` | never: each message pays for a full fence |
//!
//! Behind a fence the thread waits until its store is visible, which takes about as long as a cache
//! line's transfer if the other end is looking at that line. Where the kernel has no such call,
//! queues fence.
//!
//! # What adapting costs
//!
//! `Adaptive` spins for at most its estimate of what a sleep costs: the 10th percentile of the
//! sleeps of this process, between 1 and 20 µs; it begins with 10 µs and learns over some hundred
//! sleeps. If the estimate holds, a wait costs at most twice what sleeping at once would, plus half
//! a microsecond (the argument of Karlin, Manasse, McGeoch and Owicki: *Competitive randomized
//! algorithms for non-uniform problems*, SODA 1990).
//!
//! A sample is the time that the end took to go to sleep, and the time from its wake-up, which the
//! waker notes, until it ran. The percentile is a low one so that a busy machine, on which woken
//! threads wait for a CPU, does not make ends spin for longer. Since the waker's note also tells
//! when the message came, a queue learns that waits have become short while it sleeps through them.
//! Where both ends are bound to the same single CPU it does not spin at all; of a funnel's senders,
//! the one counts that waited or woke last.

mod park;
mod pause;
mod stats;
mod strategy;

pub(crate) use park::{
    ALIVE, FenceOutcome, Parker, Probe, Until, WaitOutcome, barrier_or_nap, wait, wake, wake_some,
};
pub(crate) use stats::WaitStats;
pub(crate) use strategy::SPINS_BEFORE_PARK;

/// A way of waiting: one of the types of this module.
pub trait Wait: strategy::Strategy {}

/// Never sleeps: looks again and again.
///
/// Its CPU is gone for everybody else, and where there are fewer CPUs than spinning threads, each
/// waits for the others' time slices: a round trip takes milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spin;

/// Never sleeps, but lets others run between looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpinYield;

/// Sleeps at once where it waits for messages. Where it waits for room it looks 64 times before,
/// since an end that is awake makes room sooner than anybody can fall asleep.
///
/// A sleep may interrupt other threads of the process: see
/// [the module](self#what-a-sleep-costs-others).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Park;

/// Spins for half a microsecond, or for as long as sleeping would cost where most waits are shorter
/// than that, and then sleeps: the default.
///
/// A sleep may interrupt other threads of the process: see
/// [the module](self#what-a-sleep-costs-others).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Adaptive;

impl Wait for Spin {}
impl Wait for SpinYield {}
impl Wait for Park {}
impl Wait for Adaptive {}

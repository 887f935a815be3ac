//! Ways for the ends of a queue to [`Wait`]. A queue is told which when it is created, by its
//! `Options::wait`.
//!
//! [`Adaptive`] is the default. Choose another if you know what else needs the CPU:
//!
//! | | polls | gives up its CPU | reacts after |
//! |---|---|---|---|
//! | [`Spin`] | about every 25 ns | never | the transfer of a cache line |
//! | [`SpinYield`] | between `sched_yield(2)` calls | to ready threads | a transfer or time slice |
//! | [`Park`] | once, or up to 64 times | then, by `futex(2)` | a wake-up: microseconds |
//! | [`Adaptive`] | for 0.5 µs, or a sleep's cost | then, by `futex(2)` | a transfer or a wake-up |
//!
//! `Adaptive` pays for its latency with CPU time: if the gaps between messages are shorter than a
//! sleep takes, it spins all the time. See the [figures](crate#measured).
//!
//! ```
//! use threadtoll::funnel;
//! use threadtoll::wait::Wait;
//!
//! // A log that rarely has anything to write: sleep at once.
//! let (sender, mut receiver) = funnel::Options::new().wait(Wait::Park).unbounded();
//! sender.send("started").unwrap();
//! assert_eq!(receiver.recv(), Ok("started"));
//! ```
//!
//! # What a sleep costs others
//!
//! A send does not have to execute a fence for the sake of sleeping receivers. In return, **a
//! thread that goes to sleep may interrupt every CPU that runs a thread of this process**: it calls
//! `membarrier(2)`, which makes each of them execute a barrier.
//!
//! | who goes to sleep | interrupts other threads |
//! |---|---|
//! | receiver of a [pipe](crate::pipe) | until it sleeps often: see below the table |
//! | receiver of a [funnel](crate::funnel) | only if it waits for a send in progress |
//! | sender of a full pipe | each time, unless the receiver sleeps often |
//! | sender of a full funnel | until senders sleep often |
//! | either end of a [call](crate::call) | until an end sleeps often |
//! | either end of a [ring](crate::ring) | until ends often sleep for the same end: see below |
//! | any end, with `Options::fence` | never, but each message costs a fence |
//!
//! Ends that sleep often temporarily execute a fence for each message instead:
//!
//! - A pipe's receiver that goes to sleep interrupts others if it has received at least 64 messages
//!   since its last sleep, and also the first time that it has received fewer. From then on, the
//!   sender executes a fence for each message, and so does the receiver if the pipe is bounded,
//!   until 64 messages are received without a sleep.
//! - A funnel's sender that goes to sleep interrupts others if no sender has slept during the last
//!   64 messages, and also the first time that one has. From then on, the receiver executes a fence
//!   for each message, until 64 are received without a sleep of a sender.
//! - An end of a call interrupts others the first time that it sleeps. From then on, both ends
//!   execute a fence for each request and answer, until one of them has sent 64 without sleeping
//!   itself.
//! - An end of a ring that goes to sleep until another end comes further interrupts others if none
//!   has slept for that end during its last 64 events, and also the first time that one has. From
//!   then on, that end executes a fence for each publication or batch, until none has slept for 64
//!   of its events. So if each of them has 64 events or more, each sleep interrupts others.
//!
//! Since Linux 6.9, the kernel executes one `membarrier(2)` at a time. If another thread is in that
//! call, a thread that goes to sleep polls its queue in the meantime, for at most about 25 µs, and
//! one call serves all threads that asked before it began.
//!
//! A fence makes its thread wait until the thread's last store is visible. If the other end is
//! polling the cache line of that store, this takes about as long as moving the line.
//!
//! # Tasks
//!
//! A task that waits (`recv_async`, `send_async`, `poll_recv`) does not spin, whatever the queue's
//! `Wait` is, and counts as a thread that sleeps in all of the above. The end that would wake a
//! thread wakes the task instead: it takes the waker out of the queue and calls it.
//!
//! If the kernel refuses `membarrier(2)` although it was there when the first queue was created,
//! the task cannot rely on being woken. Its executor then polls it again and again while it waits.
//!
//! # Several queues at once
//!
//! A [`Select`](crate::select::Select) has a wait of its own, and ignores those of the queues. When
//! it sleeps, each of its sources counts as one at which a receiver sleeps, but a single barrier
//! serves all of them. An event loop that sleeps by a `select::Descriptor` does so, too, each time
//! that arming it finds nothing.
//!
//! # How `Adaptive` decides
//!
//! `Adaptive` spins for half a microsecond. If most of its last eight waits were short, it spins
//! on, for at most its estimate of the cost of a sleep. The estimate is the 10th percentile of the
//! costs of this process's sleeps, limited to between 1 and 20 µs. It starts at 10 µs and settles
//! over some hundred sleeps. If the estimate is right, a wait costs at most twice as much as
//! sleeping at once, plus half a microsecond (Karlin, Manasse, McGeoch and Owicki: *Competitive
//! randomized algorithms for non-uniform problems*, SODA 1990).
//!
//! The cost of a sleep is the time to fall asleep, plus the time from the wake-up, which the waker
//! records, until the thread runs. The percentile is low so that a busy machine, on which woken
//! threads wait for a CPU, does not make threads spin for longer. The waker's record also shows
//! when the message came, so a queue notices that its waits have become short even while its ends
//! sleep through them.
//!
//! If both ends are pinned to the same CPU, `Adaptive` does not spin. For a funnel, this depends on
//! the sender that last waited or woke the receiver.
//!
//! [`Adaptive`]: Wait::Adaptive
//! [`Park`]: Wait::Park
//! [`Spin`]: Wait::Spin
//! [`SpinYield`]: Wait::SpinYield

mod for_now;
mod once;
mod park;
mod parker;
mod pause;
mod source;
mod stats;
mod strategy;
mod task;
mod waker_cell;

pub(crate) use for_now::LastSleep;
pub(crate) use once::spin_before_sleep;
pub(crate) use park::{
    FenceOutcome, Polled, Probe, Until, WaitOutcome, barrier_or_nap, wait, wake, wake_some,
};
pub(crate) use parker::{ALIVE, Parker};
pub(crate) use pause::{calibrate_pause, pause};
pub(crate) use source::{Needs, Watch};
pub(crate) use stats::WaitStats;
pub(crate) use strategy::SPINS_BEFORE_PARK;
pub(crate) use task::{Waiter, wait_by};
pub(crate) use waker_cell::WakerCell;

/// A way for an end of a queue to wait: a receiver for a message, a sender for room.
///
/// Operations that succeed at once do not depend on it.
///
/// ```
/// use threadtoll::pipe;
/// use threadtoll::wait::Wait;
///
/// let configured = "spin";
/// let wait = match configured {
///     "spin" => Wait::Spin,
///     "park" => Wait::Park,
///     _ => Wait::default(),
/// };
/// let (sender, receiver) = pipe::Options::new().wait(wait).bounded::<u64>(1024);
/// # drop((sender, receiver));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Spins for half a microsecond or, if most recent waits were short, for as long as a sleep
    /// would cost; then sleeps. The default.
    ///
    /// A sleep may [interrupt other threads](self#what-a-sleep-costs-others).
    #[default]
    Adaptive,
    /// Polls until there is something to do; never sleeps.
    ///
    /// Needs a CPU of its own. If there are more spinning threads than CPUs, they wait for each
    /// other's time slices and a round trip takes milliseconds.
    Spin,
    /// Alternates between polling and yielding; never sleeps.
    SpinYield,
    /// Sleeps at once if there is no message. If there is no room, or if another thread is in the
    /// middle of sending the message, polls 64 times before it sleeps: if that other thread is
    /// awake, it ends the wait sooner than this thread can fall asleep.
    ///
    /// A sleep may [interrupt other threads](self#what-a-sleep-costs-others).
    Park,
}

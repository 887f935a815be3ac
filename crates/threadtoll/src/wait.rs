//! How an end of a queue waits, as types: [`Spin`], [`SpinYield`], [`Park`], [`Adaptive`].
//!
//! | | looks again | gives its CPU away | wakes within |
//! |---|---|---|---|
//! | [`Spin`] | without pause, later with the CPU's pause hint | never | a cache line's transfer |
//! | [`SpinYield`] | between `sched_yield(2)` calls | to whoever is ready to run | a cache line's transfer, or somebody's time slice |
//! | [`Park`] | once; 64 times for room, or where messages keep coming | then at once: it sleeps in the kernel (`futex(2)`) | a wake-up: microseconds |
//! | [`Adaptive`] | for about as long as sleeping and waking takes on this machine, then it sleeps | when waiting is long | a line's transfer when messages keep coming, a wake-up when they do not |
//!
//! What it costs the *other* side that somebody may sleep: one load of a word that it looks at anyway. There is no fence, no locked
//! instruction and no system call in a send that wakes nobody. The sleeper pays instead: before it sleeps it makes every other
//! CPU execute a barrier (`membarrier(2)`), so that either the sender's next look finds the sleeper, or the sleeper's last look
//! finds the message. Where the kernel offers no such call, queues made in that process fence in every send; nothing else
//! changes.
//!
//! `Adaptive` spins for at most what it expects to lose by sleeping, which never costs more than twice the best choice made in hindsight
//! (Karlin, Manasse, McGeoch, Owicki: *Competitive randomized algorithms for non-uniform problems*, SODA 1990). What sleeping costs
//! is learned: whoever wakes a thread notes when, and the woken thread how much later it ran. Where both ends are bound to the
//! same single CPU it does not spin at all.

mod learned;
mod pace;
mod parked;
mod strategy;

pub(crate) use learned::Meeting;
pub(crate) use pace::Pace;
pub(crate) use parked::{Announced, Certainty, Sleeper, Waited, by_barrier, wait, wake};
pub(crate) use strategy::{BARE, GLANCES};

/// A way of waiting: one of the types of this module.
pub trait Wait: strategy::Strategy {}

/// Never sleeps: looks again and again.
///
/// Its CPU is gone for everybody else, and where there are fewer CPUs than spinning threads, each waits for the others' time slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spin;

/// Never sleeps, but lets others run between looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpinYield;

/// Sleeps at once where it waits for messages, unless they kept coming. Then, and where it waits for room, it looks 64 times before, with the CPU's
/// pause hint in between, since an end that is awake sends or makes room sooner than anybody can fall asleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Park;

/// Spins for about as long as sleeping would cost, then sleeps: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Adaptive;

impl Wait for Spin {}
impl Wait for SpinYield {}
impl Wait for Park {}
impl Wait for Adaptive {}

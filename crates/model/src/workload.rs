use crate::bounds::{self, Limits};
use crate::error::{MAX_LOCKS, number, share};
use crate::simulate::{Cores, HandOff, Locks, Policy, System};
use crate::{Load, ModelError, Shape};

/// Threads that think, take the lock, hold it, and think again. The number of threads is a separate
/// argument.
///
/// ```
/// use threadtoll_model::{Shape, Workload};
///
/// let workload = Workload::new(Shape::fixed(5e6)?, Shape::fixed(95e6)?);
/// assert_eq!(workload.knee()?, 20.0);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Hold time.
    pub hold: Shape,
    /// Think time.
    pub think: Shape,
    /// Time until a woken thread runs.
    pub hand_off: HandOff,
    /// Policy that decides which thread gets a released lock.
    pub policy: Policy,
    /// Share of acquisitions by readers, which may hold the lock together.
    pub read_share: f64,
    /// Number of locks that share the load; 1 if the lock is not striped. Each acquisition takes
    /// one at random.
    pub stripes: u32,
    /// Number of cores; `None` if threads never lack a core.
    pub cores: Option<u32>,
}

impl Workload {
    /// One FIFO lock with free hand-offs, and enough cores.
    pub fn new(hold: Shape, think: Shape) -> Self {
        Self {
            hold,
            think,
            hand_off: HandOff::free(),
            policy: Policy::Fifo,
            read_share: 0.0,
            stripes: 1,
            cores: None,
        }
    }

    /// Mean hold time and mean think time.
    ///
    /// # Errors
    ///
    /// If both are zero.
    pub fn load(&self) -> Result<Load, ModelError> {
        Load::new(self.hold.mean_ns(), self.think.mean_ns())
    }

    /// Readers do not exclude each other, so their hold times count as think time.
    fn serial(&self) -> Result<Load, ModelError> {
        share("share of readers", self.read_share)?;
        let (hold_ns, think_ns) = (self.hold.mean_ns(), self.think.mean_ns());
        let shared_ns = hold_ns * self.read_share;
        Load::new(hold_ns - shared_ns, think_ns + shared_ns)
    }

    /// Number of threads at which the two asymptotes of the speed-up meet (see [`bounds`]).
    /// Infinite if nothing limits the speed-up.
    ///
    /// A FIFO lock is also occupied during each hand-off; a barging lock is not.
    ///
    /// # Errors
    ///
    /// If a figure of the workload is out of range.
    pub fn knee(&self) -> Result<f64, ModelError> {
        let hand_off_ns = match self.policy {
            // The idle time before a wake-up is not known in advance. With the shortest hand-off,
            // the knee is an upper bound. Readers that are admitted together share a hand-off.
            Policy::Fifo => self.hand_off.shortest_ns() * (1.0 - self.read_share),
            Policy::Barging | Policy::SpinThenPark { .. } => 0.0,
        };
        bounds::knee(self.serial()?, Limits { locks: self.stripes, cores: self.cores, hand_off_ns })
    }

    /// Upper bound on the speed-up of `threads` threads, for all distributions, policies and
    /// hand-offs.
    ///
    /// # Errors
    ///
    /// If a figure of the workload is out of range.
    pub fn bound(&self, threads: u32) -> Result<f64, ModelError> {
        let limits = Limits { locks: self.stripes, cores: self.cores, hand_off_ns: 0.0 };
        bounds::speedup(self.serial()?, threads, limits)
    }

    /// The system to simulate. Threads that share cores get slices of 3 ms, or of a thousandth of a
    /// task if that is longer. A woken thread preempts a thinking one, as on Linux by default.
    ///
    /// # Errors
    ///
    /// If a figure of the workload is out of range.
    pub fn system(&self, threads: u32) -> Result<System, ModelError> {
        number("stripes", self.stripes, MAX_LOCKS)?;
        let slice_ns = (self.load()?.cycle_ns() / 1000.0).max(3e6);
        Ok(System {
            threads,
            think: self.think.clone(),
            locks: vec![Locks {
                count: self.stripes,
                policy: self.policy,
                hand_off: self.hand_off.clone(),
                read_share: self.read_share,
                ..Locks::one(self.hold.clone())
            }],
            cores: self.cores.filter(|&cores| cores < threads).map(|count| Cores {
                count,
                slice_ns,
                wake_preempts: true,
            }),
        })
    }
}

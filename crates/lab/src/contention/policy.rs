//! Which thread gets a released lock.

/// Which waiting thread gets a released lock. How long a hand-off takes is not part of the policy;
/// it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantPolicy {
    /// The longest-waiting thread; waiters sleep.
    InOrder,
    /// The longest-waiting thread; waiters spin.
    InOrderSpinning,
    /// Whichever thread tries first; waiters sleep, possibly after spinning for a while.
    Barging,
    /// Whichever thread tries first; waiters spin.
    BargingSpinning,
    /// No thread ever waits.
    NeverWaits,
}

impl GrantPolicy {
    /// Returns `true` if waiters never give up their CPU.
    pub fn spins(self) -> bool {
        matches!(self, GrantPolicy::InOrderSpinning | GrantPolicy::BargingSpinning)
    }

    /// Returns `true` if threads are served in arrival order.
    pub fn in_order(self) -> bool {
        matches!(self, GrantPolicy::InOrder | GrantPolicy::InOrderSpinning)
    }
}

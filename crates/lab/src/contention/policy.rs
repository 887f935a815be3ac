//! Which thread gets a released lock.

/// Which waiting thread gets a released lock. Hand-off times are not part of the policy; they are
/// measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantPolicy {
    /// The longest-waiting thread; waiters sleep.
    InOrder,
    /// The longest-waiting thread; waiters spin.
    InOrderSpinning,
    /// The thread that tries first; waiters may spin for a while before they sleep.
    Barging,
    /// The thread that tries first; waiters spin.
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

/// Order in which waiting threads get a released lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantPolicy {
    /// The longest-waiting thread gets the lock; waiters sleep.
    InOrder,
    /// The longest-waiting thread gets the lock; waiters spin.
    InOrderSpinning,
    /// The first thread that tries gets the lock; waiters sleep, possibly after spinning for a
    /// while.
    Barging,
    /// The first thread that tries gets the lock; waiters spin.
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

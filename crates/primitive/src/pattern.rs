//! Limits that real fields never exceed.

/// Maximum number of threads or waiters in a field.
pub(super) const MAX_THREADS: u32 = 1 << 16;

/// The kernel's limit for TIDs on 64-bit machines (`PID_MAX_LIMIT`).
pub(super) const MAX_TID: u32 = 1 << 22;

/// Returns `true` for addresses that a 64-bit program may use.
pub(super) fn user_address(address: u64) -> bool {
    (0x1_0000..1 << 56).contains(&address)
}

//! Decodes the futex system calls in which threads wait (futex(2)).
//!
//! `futex_waitv` is not decoded: the addresses of its words are in the program's memory, not among
//! the arguments.

const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;

/// `futex_wait` of Linux 6.7, with the same number on every architecture.
const SYS_FUTEX_WAIT: u32 = 455;

/// A wait on a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FutexWait {
    /// Address of the futex word.
    pub address: u64,
    /// Operation, without its flags.
    pub operation: Operation,
    /// True if only threads of this process use the futex.
    pub private: bool,
    /// True if the timeout is measured on `CLOCK_REALTIME`.
    pub realtime: bool,
    /// Value that the word had when the thread went to sleep; meaningless for
    /// [`Operation::LockPi`].
    pub value: u32,
    /// True if the wait has a timeout.
    pub timed: bool,
}

/// Futex operations that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `FUTEX_WAIT`.
    Wait,
    /// `FUTEX_WAIT_BITSET`.
    WaitBitset,
    /// `FUTEX_LOCK_PI` and `FUTEX_LOCK_PI2`.
    LockPi,
    /// `FUTEX_WAIT_BITSET` with a mask, which only programs with locks of their own use.
    WaitMasked,
    /// `FUTEX_WAIT_REQUEUE_PI`.
    WaitRequeuePi,
}

/// `FUTEX_BITSET_MATCH_ANY`.
const ANY: u32 = u32::MAX;

impl FutexWait {
    /// Decodes a system call; `None` unless it waits on a futex.
    pub fn of(call: u32, arguments: [u64; 6]) -> Option<FutexWait> {
        if i64::from(call) == libc::SYS_futex {
            let [address, flags, value, timeout, _, mask] = arguments;
            let operation = match flags & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME) {
                0 => Operation::Wait,
                9 if mask as u32 == ANY => Operation::WaitBitset,
                9 => Operation::WaitMasked,
                6 | 13 => Operation::LockPi,
                11 => Operation::WaitRequeuePi,
                _ => return None,
            };
            return Some(FutexWait {
                address,
                operation,
                private: flags & FUTEX_PRIVATE != 0,
                realtime: flags & FUTEX_CLOCK_REALTIME != 0,
                value: value as u32,
                timed: timeout != 0,
            });
        }
        if call == SYS_FUTEX_WAIT {
            // (address, value, mask, flags, timeout, clock)
            let [address, value, _, flags, timeout, clock] = arguments;
            return Some(FutexWait {
                address,
                operation: Operation::WaitBitset,
                private: flags & FUTEX_PRIVATE != 0,
                realtime: clock == libc::CLOCK_REALTIME as u64,
                value: value as u32,
                timed: timeout != 0,
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(call: i64, arguments: [u64; 6]) -> Option<FutexWait> {
        FutexWait::of(call as u32, arguments)
    }

    #[test]
    fn waits_are_decoded() {
        let mutex = decoded(libc::SYS_futex, [0x1000, 128, 2, 0, 0, 0]).unwrap();
        assert_eq!(mutex.operation, Operation::Wait);
        assert_eq!((mutex.address, mutex.value), (0x1000, 2));
        assert!(mutex.private && !mutex.realtime && !mutex.timed);

        let join = decoded(libc::SYS_futex, [0x1000, 265, 77, 0, 0, !0]).unwrap();
        assert_eq!(join.operation, Operation::WaitBitset);
        assert!(!join.private && join.realtime);

        let own = decoded(libc::SYS_futex, [0x1000, 137, 3, 0, 0, 4]).unwrap();
        assert_eq!(own.operation, Operation::WaitMasked);

        let futex2 = decoded(455, [0x1000, 5, !0, 128 | 2, 0x20, 1]).unwrap();
        assert_eq!(futex2.value, 5);
        assert!(futex2.private && futex2.timed && !futex2.realtime);
    }

    #[test]
    fn calls_that_wake_are_not_waits() {
        assert_eq!(decoded(libc::SYS_futex, [0x1000, 129, 1, 0, 0, 0]), None);
        assert_eq!(decoded(libc::SYS_read, [0, 0x1000, 1, 0, 0, 0]), None);
    }
}

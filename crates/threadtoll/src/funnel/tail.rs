//! The word from which senders draw tickets. The bits from `TICKET` up hold the next ticket. The
//! bits below are flags; a debug assertion (`is_legal`) checks, whenever a flag is set, that they
//! form one of these combinations:
//!
//! | `ALIVE` | `RECEIVER_GONE` | `RECEIVER_PARKED` | |
//! |---|---|---|---|
//! | 1 | 0 | 0 | messages come and are received |
//! | 1 | 0 | 1 | the receiver sleeps, or is about to: a sender that draws a ticket wakes it |
//! | 1 | 1 | 0 | the receiver is gone: tickets from here on are void |
//! | 0 | – | – | a forked child: the other bits mean nothing |

pub(super) const RECEIVER_PARKED: u64 = 1;
pub(super) const RECEIVER_GONE: u64 = 1 << 1;
pub(super) const ALIVE: u64 = 1 << 2;
const SHIFT: u32 = 3;
/// One ticket.
pub(super) const TICKET: u64 = 1 << SHIFT;

/// The next ticket in a value of the tail word.
#[inline(always)]
pub(super) fn ticket(tail: u64) -> u64 {
    tail >> SHIFT
}

/// Returns `true` if the table above allows this tail.
pub(super) fn is_legal(tail: u64) -> bool {
    tail & ALIVE == 0 || tail & RECEIVER_GONE == 0 || tail & RECEIVER_PARKED == 0
}

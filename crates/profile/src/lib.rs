//! Looks at a running program from outside: which locks its threads wait for, who holds them, and
//! what the holders are doing.
//!
//! The program is never stopped, traced or written to. At random times, fixed beforehand, the
//! sampler reads the words of all known locks and the system calls in which threads sleep;
//! everything else is worked out from those samples.
//!
//! | module | contents |
//! |---|---|
//! | [`activity`] | what a thread was doing when it was looked at |
//! | [`futex`] | the futex system calls, decoded |
//! | [`primitive`] | the lock, or other object, that a futex word belongs to |

pub mod activity;
pub mod futex;
pub mod primitive;

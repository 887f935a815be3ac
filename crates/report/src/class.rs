//! What kind of toll a mechanism takes.

use threadtoll_record::{Cell, Record, Relation};

/// What the waiting end does, and so what the hand-off costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Nothing crosses between threads.
    OneThread,
    /// It spins on a cache line.
    Line,
    /// It looks again and again with the kernel's help, and is never woken.
    Poll,
    /// It sleeps in the kernel until it is woken.
    Sleep,
    /// Spins or sleeps by its own judgement, or is unknown to us.
    Other,
}

/// The class of a cell, by its mechanism's name.
pub(crate) fn class(cell: &Cell) -> Class {
    if cell.relation == Relation::SameThread {
        return Class::OneThread;
    }
    match cell.name() {
        "function-call" | "fiber-switch" | "async-wake" => Class::OneThread,
        "atomic-store" | "atomic-rmw" | "atomic-seqcst" => Class::Line,
        "spin-yield" | "sleep-poll" => Class::Poll,
        "futex"
        | "park"
        | "std-condvar"
        | "std-condvar-after"
        | "pthread-condvar"
        | "pthread-condvar-after"
        | "parking-lot-condvar"
        | "parking-lot-condvar-after"
        | "semaphore"
        | "sysv-semaphore"
        | "eventfd"
        | "os-pipe"
        | "socketpair"
        | "tcp-loopback" => Class::Sleep,
        _ => Class::Other,
    }
}

/// Whether the record's ends really slept at each hand-off, as far as its context switches tell.
pub(crate) fn slept(record: &Record) -> bool {
    class(&record.cell) == Class::Sleep
        && record.cost.voluntary_switches_per_op.is_none_or(|switches| switches > 0.5)
}

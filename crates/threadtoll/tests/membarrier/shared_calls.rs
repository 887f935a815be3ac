//! A sleeper that finds another thread in `membarrier(2)`. The call that runs began too early to
//! serve it, but the next one that begins after its look serves it, whoever executes it. A counter
//! says so: it is odd while a call runs.

use super::BOTH;
use super::machine::Instruction::{self, *};
use super::machine::{Hardware, Label, Machine, Order, Place, Verdict};

/// The word of the sleeper's queue, and the message that it waits for.
const STATE: Place = 0;
const SLEEPS: u8 = 1;
const HEADER: Place = 1;
/// Even numbers of barriers that were executed, plus 1 while one is.
const CALLS: Place = 2;

/// A fault in the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The sleeper takes the call that runs for its own.
    TakesTheRunningOne,
    /// The sleeper looks at the counter before it sets its bit.
    LooksBeforeBit,
    /// The other thread counts its call before it is done.
    CountsTooEarly,
    /// The other thread's call is refused, and counts all the same.
    CountsARefusal,
}

/// Sends one message.
fn sender() -> Vec<Instruction> {
    let clear = Update(0, STATE, !SLEEPS, 0, Order::AcqRel);
    vec![
        Store(HEADER, 1, Order::Release),
        Load(0, STATE, Order::Relaxed),
        IfAny(0, SLEEPS, 1),
        Goto(2),
        At(1),
        clear,
        IfAny(0, SLEEPS, 3),
        Goto(2),
        At(3),
        FutexWake(STATE),
        At(2),
    ]
}

/// Goes to sleep in another queue: executes a barrier, and counts it.
fn other(fault: Fault) -> Vec<Instruction> {
    let begin = Update(0, CALLS, !0, 1, Order::Relaxed);
    let end = Update(1, CALLS, 0, 2, Order::Release);
    match fault {
        Fault::CountsTooEarly => vec![Fence, begin, Fence, end, Membarrier, Fence],
        Fault::CountsARefusal => vec![Fence, begin, Fence, end],
        _ => vec![Fence, begin, Fence, Membarrier, Fence, end],
    }
}

/// Waits for the message. It looks at the counter once; the other thread's only call has not begun,
/// runs, or is over.
fn sleeper(fault: Fault) -> Vec<Instruction> {
    const OWN: Label = 1;
    const PENDING: Label = 2;
    const FENCED: Label = 3;
    const CLEAR: Label = 4;
    const FOUND: Label = 5;
    const RUNS: Label = 6;
    let look = Load(1, HEADER, Order::Acquire);
    // Register 3 keeps the state without the bit, for the futex.
    let mut program =
        vec![Update(3, STATE, !0, SLEEPS, Order::AcqRel), Fence, Load(2, CALLS, Order::Relaxed)];
    if fault == Fault::LooksBeforeBit {
        program.reverse();
    }
    program.extend([
        IfAny(2, 1, RUNS),
        IfAtLeast(2, 2, OWN),
        // Nobody runs: it would begin its own call. Here the other thread is faster.
        Goto(PENDING),
        At(RUNS),
    ]);
    // The call that runs is not enough: its end is waited for, and then its own is executed.
    let end_of_running = if fault == Fault::TakesTheRunningOne { FENCED } else { OWN };
    program.extend([
        Load(2, CALLS, Order::Acquire),
        IfAtLeast(2, 2, end_of_running),
        Goto(RUNS),
        At(PENDING),
        Load(2, CALLS, Order::Acquire),
        IfAtLeast(2, 2, FENCED),
        Goto(PENDING),
        At(OWN),
        Fence,
        Membarrier,
        Fence,
        At(FENCED),
        look,
        IfAtLeast(1, 1, CLEAR),
        FutexWait(STATE, 3, SLEEPS),
        Goto(FOUND),
        At(CLEAR),
        Update(2, STATE, !SLEEPS, 0, Order::Relaxed),
        At(FOUND),
    ]);
    program
}

fn check(hardware: Hardware, fault: Fault) -> Verdict {
    Machine::new(hardware, vec![sender(), other(fault), sleeper(fault)], false).run()
}

#[test]
fn a_later_call_of_another_thread_serves_a_sleeper() {
    for hardware in BOTH {
        let verdict = check(hardware, Fault::None);
        println!("{hardware:?}: {verdict}");
        assert!(matches!(verdict, Verdict::Sound { .. }), "{hardware:?}: {verdict}");
    }
}

#[test]
fn each_fault_loses_a_wake_up() {
    for hardware in BOTH {
        for fault in [
            Fault::TakesTheRunningOne,
            Fault::LooksBeforeBit,
            Fault::CountsTooEarly,
            Fault::CountsARefusal,
        ] {
            let verdict = check(hardware, fault);
            let first = verdict.to_string();
            println!("{hardware:?}, {fault:?}: {}", first.lines().next().unwrap_or(""));
            assert!(matches!(verdict, Verdict::Lost { .. }), "{hardware:?}, {fault:?}: {verdict}");
        }
    }
}

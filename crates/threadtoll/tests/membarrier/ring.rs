//! Two readers of a ring that sleep on the writer's word and share a bit. One of them receives the
//! event, sets the bit again because it waits for the next one, and gives up. The other one must
//! not sleep for ever.

use super::machine::Instruction::{self, *};
use super::machine::{Hardware, Machine, Order, Verdict};
use super::{BOTH, HEADER, MESSAGES, STATE};

const SLEEPS: u8 = 1;
/// Counts wake-ups, of which there is one.
const EPOCH: u8 = 2;

/// The side that executes the barrier.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Barrier {
    Membarrier,
    Fences,
}

/// A fault in one of the ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// A reader sleeps without the barrier.
    NoBarrier,
    NoSecondLook,
    /// A wake-up is not counted in the word.
    NoEpoch,
    /// A reader that gives up clears the bit.
    ClearsSharedBit,
    /// The writer looks at the word before it publishes.
    LooksBeforePublishing,
}

fn writer(barrier: Barrier, fault: Fault) -> Vec<Instruction> {
    let (wake, out, found) = (1, 2, 3);
    let publish = Store(HEADER, 1, Order::Release);
    let look = Load(0, STATE, Order::Acquire);
    let mut program = vec![Store(MESSAGES, 1, Order::Relaxed)];
    match (fault, barrier) {
        (Fault::LooksBeforePublishing, _) => program.extend([look, publish]),
        (_, Barrier::Membarrier) => program.extend([publish, look]),
        (_, Barrier::Fences) => program.extend([publish, Fence, look]),
    }
    let epoch = if fault == Fault::NoEpoch { 0 } else { EPOCH };
    program.extend([IfAny(0, SLEEPS, wake), Goto(out), At(wake)]);
    program.extend([Update(0, STATE, !SLEEPS, epoch, Order::AcqRel), IfAny(0, SLEEPS, found)]);
    program.extend([Goto(out), At(found), FutexWake(STATE), At(out)]);
    program
}

/// Sets the bit, executes the barrier, and looks.
fn announce(barrier: Barrier, fault: Fault) -> Vec<Instruction> {
    let mut program = vec![Update(0, STATE, !0, SLEEPS, Order::AcqRel)];
    match barrier {
        _ if fault == Fault::NoBarrier => {}
        Barrier::Membarrier => program.extend([Fence, Membarrier, Fence]),
        Barrier::Fences => program.push(Fence),
    }
    program
}

/// A reader that waits for the event. `waits_on` says that it then waits for another one, and gives
/// up before it is asleep.
fn reader(barrier: Barrier, fault: Fault, waits_on: bool) -> Vec<Instruction> {
    let (top, found) = (1, 2);
    let look = Load(1, HEADER, Order::Acquire);
    let mut program = vec![look, IfAtLeast(1, 1, found), At(top)];
    program.extend(announce(barrier, fault));
    if fault != Fault::NoSecondLook {
        program.extend([look, IfAtLeast(1, 1, found)]);
    }
    program.extend([FutexWait(STATE, 0, SLEEPS), look, IfAtLeast(1, 1, found), Goto(top)]);
    program.extend([At(found), Load(3, MESSAGES, Order::Relaxed), Assert(3, 1)]);
    if waits_on {
        program.extend(announce(barrier, fault));
    }
    program
}

/// A reader that gives up although the event has not come.
fn impatient_reader(barrier: Barrier, fault: Fault) -> Vec<Instruction> {
    let mut program = announce(barrier, fault);
    if fault == Fault::ClearsSharedBit {
        program.push(Update(2, STATE, !SLEEPS, 0, Order::Relaxed));
    }
    program
}

fn check(hardware: Hardware, barrier: Barrier, fault: Fault, impatient: bool) -> Verdict {
    let other =
        if impatient { impatient_reader(barrier, fault) } else { reader(barrier, fault, true) };
    let programs = vec![writer(barrier, fault), reader(barrier, fault, false), other];
    Machine::new(hardware, programs, false).run()
}

#[test]
fn no_reader_that_shares_a_bit_sleeps_for_ever() {
    for hardware in BOTH {
        for barrier in [Barrier::Membarrier, Barrier::Fences] {
            for impatient in [false, true] {
                let verdict = check(hardware, barrier, Fault::None, impatient);
                println!("{hardware:?}, {barrier:?}, gives up early {impatient}: {verdict}");
                assert!(matches!(verdict, Verdict::Sound { .. }), "{hardware:?}: {verdict}");
            }
        }
    }
}

#[test]
fn each_fault_leaves_a_reader_asleep() {
    for hardware in BOTH {
        for (fault, impatient) in [
            (Fault::NoBarrier, false),
            (Fault::NoSecondLook, false),
            (Fault::NoEpoch, false),
            (Fault::ClearsSharedBit, true),
            (Fault::LooksBeforePublishing, false),
        ] {
            let verdict = check(hardware, Barrier::Membarrier, fault, impatient);
            let first = verdict.to_string();
            println!("{hardware:?}, {fault:?}: {}", first.lines().next().unwrap_or(""));
            assert!(matches!(verdict, Verdict::Lost { .. }), "{hardware:?}, {fault:?}: {verdict}");
        }
    }
}

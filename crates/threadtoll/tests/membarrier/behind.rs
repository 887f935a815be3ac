//! A funnel's receiver that sleeps behind a send in progress. It says so in a word that senders
//! read after each stamp, and says which ticket it waits for. A sender that finds that wakes it, if
//! the ticket is its own.

use super::BOTH;
use super::machine::Instruction::{self, *};
use super::machine::{Hardware, Label, Machine, Order, Place, Verdict};

/// The word on which the receiver sleeps.
const FUTEX: Place = 0;
const RECEIVER_SLEEPS: u8 = 1;
const SIGNALS: Place = 1;
const RECEIVER_BEHIND: u8 = 1;
/// The ticket that the receiver waits for.
const TAKEN: Place = 2;
/// The stamps of the tickets.
const STAMPS: Place = 3;
/// The message of the first ticket.
const MESSAGE: Place = 5;

/// The barrier between a bit and a look, and between a stamp and a look.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Barrier {
    /// The receiver executes it for both.
    Membarrier,
    /// Each side for itself.
    Fences,
}

/// A fault in the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The receiver only fences, or, where senders fence, does not.
    NoBarrierOfReceiver,
    /// Senders do not fence where they must.
    NoFenceOfSender,
    BarrierBeforeBit,
    NoSecondLook,
    /// The receiver does not say which ticket it waits for.
    TakenIsOld,
    /// A sender looks for the bit before it stores its stamp.
    LooksBeforeStamp,
    /// A sender looks at the ticket before it stores its stamp.
    LooksAtTicketBeforeStamp,
    DoesNotWake,
}

/// Labels, numbered by step and ticket.
fn label(step: Label, ticket: u8) -> Label {
    step * 2 + Label::from(ticket) + 1
}

fn sender(barrier: Barrier, fault: Fault, ticket: u8) -> Vec<Instruction> {
    let [attend, wake, found, out] = std::array::from_fn(|step| label(step as Label, ticket));
    let stamp = Store(STAMPS + ticket, 1, Order::Release);
    let look = [Load(0, SIGNALS, Order::Relaxed)];
    let ticket_look = [Load(1, TAKEN, Order::Relaxed)];
    let mut program = Vec::new();
    if ticket == 0 {
        program.push(Store(MESSAGE, 7, Order::Relaxed));
    }
    match fault {
        Fault::LooksBeforeStamp => program.extend([look[0], stamp]),
        Fault::LooksAtTicketBeforeStamp => program.extend([ticket_look[0], stamp, look[0]]),
        _ => program.extend([stamp, look[0]]),
    }
    if barrier == Barrier::Fences {
        // `SENDERS_FENCE` sends every stamp through the slow path.
        program.extend((fault != Fault::NoFenceOfSender).then_some(Fence));
    } else {
        program.extend([IfAny(0, RECEIVER_BEHIND, attend), Goto(out), At(attend)]);
    }
    if fault != Fault::LooksBeforeStamp {
        program.push(Load(0, SIGNALS, Order::Acquire));
    }
    let behind = label(4, ticket);
    program.extend([IfAny(0, RECEIVER_BEHIND, behind), Goto(out), At(behind)]);
    if fault != Fault::LooksAtTicketBeforeStamp {
        program.extend(ticket_look);
    }
    program.extend([IfAtLeast(1, ticket + 1, out), IfAtLeast(1, ticket, wake), Goto(out)]);
    program.push(At(wake));
    if fault != Fault::DoesNotWake {
        let clear = Update(0, FUTEX, !RECEIVER_SLEEPS, 0, Order::AcqRel);
        program.extend([clear, IfAny(0, RECEIVER_SLEEPS, found), Goto(out)]);
        program.extend([At(found), FutexWake(FUTEX)]);
    }
    program.push(At(out));
    program
}

/// Receives both tickets, the first with a message to look at.
fn receiver(barrier: Barrier, fault: Fault) -> Vec<Instruction> {
    let mut program = Vec::new();
    for ticket in 0..2 {
        let [top, kept, again, clear, found] =
            std::array::from_fn(|step| label(step as Label, ticket));
        let look = Load(1, STAMPS + ticket, Order::Acquire);
        program.extend([look, IfAtLeast(1, 1, found), At(top)]);
        program.push(Update(0, FUTEX, !0, RECEIVER_SLEEPS, Order::AcqRel));
        if fault != Fault::TakenIsOld {
            program.push(Store(TAKEN, ticket, Order::Release));
        }
        let set = Update(2, SIGNALS, !0, RECEIVER_BEHIND, Order::AcqRel);
        let mut steps = match (barrier, fault) {
            (Barrier::Membarrier, Fault::NoBarrierOfReceiver) => vec![set, Fence],
            (Barrier::Membarrier, _) => vec![set, Fence, Membarrier, Fence],
            (Barrier::Fences, Fault::NoBarrierOfReceiver) => vec![set],
            (Barrier::Fences, _) => vec![set, Fence],
        };
        if fault == Fault::BarrierBeforeBit {
            steps.rotate_left(1);
        }
        program.extend(steps);
        if fault != Fault::NoSecondLook {
            program.extend([look, IfAtLeast(1, 1, clear)]);
        }
        program.push(FutexWait(FUTEX, 0, RECEIVER_SLEEPS));
        program.extend([Load(2, FUTEX, Order::Acquire), IfAny(2, RECEIVER_SLEEPS, kept)]);
        program.extend([Goto(again), At(kept)]);
        program.push(Update(2, FUTEX, !RECEIVER_SLEEPS, 0, Order::Relaxed));
        program.extend([At(again), look, IfAtLeast(1, 1, found), Goto(top), At(clear)]);
        program.push(Update(2, FUTEX, !RECEIVER_SLEEPS, 0, Order::Relaxed));
        program.push(At(found));
        if ticket == 0 {
            program.extend([Load(3, MESSAGE, Order::Relaxed), Assert(3, 7)]);
        }
        program.push(Update(2, SIGNALS, !RECEIVER_BEHIND, 0, Order::Relaxed));
        if fault != Fault::TakenIsOld {
            program.push(Store(TAKEN, ticket + 1, Order::Release));
        }
    }
    program
}

/// The tickets belong to one sender, which sends both in turn, or to two.
fn check(hardware: Hardware, barrier: Barrier, fault: Fault, senders: usize) -> Verdict {
    let mut programs = vec![sender(barrier, fault, 0)];
    let second = sender(barrier, fault, 1);
    if senders == 1 {
        programs[0].extend(second);
    } else {
        programs.push(second);
    }
    programs.push(receiver(barrier, fault));
    Machine::new(hardware, programs, false).run()
}

#[test]
fn a_receiver_behind_a_send_is_woken_by_it() {
    for hardware in BOTH {
        for barrier in [Barrier::Membarrier, Barrier::Fences] {
            for senders in 1..=2 {
                let verdict = check(hardware, barrier, Fault::None, senders);
                println!("{hardware:?}, {barrier:?}, {senders} senders: {verdict}");
                assert!(
                    matches!(verdict, Verdict::Sound { .. }),
                    "{hardware:?}, {barrier:?}, {senders} senders: {verdict}"
                );
            }
        }
    }
}

#[test]
fn each_fault_leaves_it_asleep() {
    for (hardware, barrier, fault) in [
        (Hardware::Tso, Barrier::Membarrier, Fault::NoBarrierOfReceiver),
        (Hardware::Tso, Barrier::Fences, Fault::NoFenceOfSender),
        // On x86 setting the bit is a barrier.
        (Hardware::Weak, Barrier::Fences, Fault::NoBarrierOfReceiver),
        (Hardware::Tso, Barrier::Membarrier, Fault::BarrierBeforeBit),
        (Hardware::Tso, Barrier::Membarrier, Fault::NoSecondLook),
        (Hardware::Tso, Barrier::Membarrier, Fault::TakenIsOld),
        (Hardware::Tso, Barrier::Membarrier, Fault::LooksBeforeStamp),
        (Hardware::Tso, Barrier::Membarrier, Fault::LooksAtTicketBeforeStamp),
        (Hardware::Tso, Barrier::Membarrier, Fault::DoesNotWake),
    ] {
        let verdict = check(hardware, barrier, fault, 1);
        let first = verdict.to_string();
        println!("{hardware:?}, {fault:?}: {}", first.lines().next().unwrap_or(""));
        assert!(matches!(verdict, Verdict::Lost { .. }), "{hardware:?}, {fault:?}: {verdict}");
    }
}

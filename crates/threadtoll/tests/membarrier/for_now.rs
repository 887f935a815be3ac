//! A receiver that sleeps often. It makes the sender fence for each message (`FENCE_FOR_NOW`),
//! executes the barrier once, and then sleeps without one. Once messages come without a sleep, it
//! clears the bit.

use super::machine::Instruction::{self, *};
use super::machine::{Hardware, Machine, Order, Verdict};
use super::{BOTH, Barrier, FENCE_FOR_NOW, HEADER, MESSAGES, Mutation, RECEIVER_SLEEPS};
use super::{SENDER_SLEEPS, STATE, TAKEN, Writer};

/// A fault in one of the ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// Publishes without the fence.
    NoFence,
    /// The receiver sets the bit without the barrier.
    NoBarrier,
    /// A sender that goes to sleep reads the bit before it sets its own.
    LooksTooEarly,
    /// The receiver clears the bit by a store, and with it the one that the sender may have set.
    ClearsByStore,
}

/// An end's use of the bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Role {
    fault: Fault,
    /// The receiver sets it if it is not set.
    sets: bool,
    /// The next publication clears it.
    clears: bool,
}

impl Writer {
    /// The instructions of a publication between the two looks at the state.
    pub(super) fn fence_for_now(&mut self) -> Vec<Instruction> {
        let Some(role) = self.for_now else { return vec![] };
        let (fenced, plain) = (self.label(), self.label());
        let mut instructions = vec![];
        if role.clears {
            instructions.push(match role.fault {
                Fault::ClearsByStore => Store(STATE, 0, Order::Release),
                _ => Update(0, STATE, !FENCE_FOR_NOW, 0, Order::AcqRel),
            });
        }
        instructions.push(Load(0, STATE, Order::Relaxed));
        instructions.extend([IfAny(0, FENCE_FOR_NOW, fenced), Goto(plain), At(fenced)]);
        instructions.extend((role.fault != Fault::NoFence).then_some(Fence));
        instructions.push(At(plain));
        instructions
    }

    /// Skips the barrier if the bit was set already.
    pub(super) fn spare_barrier(&mut self, barrier: &mut Vec<Instruction>) {
        let Some(role) = self.for_now else { return };
        let (fenced, done) = (self.label(), self.label());
        let too_early = role.fault == Fault::LooksTooEarly && !role.sets;
        // Register 0 holds the state before the bit was set.
        let look = if too_early {
            vec![Load(2, STATE, Order::Acquire), IfAny(2, FENCE_FOR_NOW, fenced)]
        } else {
            vec![IfAny(0, FENCE_FOR_NOW, fenced)]
        };
        let no_barrier = role.sets && role.fault == Fault::NoBarrier;
        let heavy = if no_barrier { vec![Fence] } else { std::mem::take(barrier) };
        *barrier = [&look[..], &heavy, &[Goto(done), At(fenced), Fence, At(done)]].concat();
    }

    /// Bits that are set together with the side's own.
    pub(super) fn lasting(&self) -> u8 {
        self.for_now.map_or(0, |role| if role.sets { FENCE_FOR_NOW } else { 0 })
    }

    /// A sender with that fault reads the state before it sets its bit.
    pub(super) fn look_too_early(&self, barrier: &mut [Instruction]) {
        if self.for_now.is_some_and(|role| role.fault == Fault::LooksTooEarly && !role.sets) {
            barrier.swap(0, 1);
        }
    }
}

/// Two messages, in slots of their own. The sender may wait until some were taken, and the receiver
/// may clear the bit when it has taken the first.
fn check(hardware: Hardware, waits_for: u8, clears: bool, fault: Fault) -> Verdict {
    let mut sender = Writer::new(Barrier::Membarrier, Mutation::None);
    let mut receiver = Writer::new(Barrier::Membarrier, Mutation::None);
    sender.for_now = Some(Role { fault, sets: false, clears: false });
    for message in 1..=2 {
        let place = MESSAGES + message - 1;
        sender.write([Store(place, message, Order::Relaxed)]);
        sender.publish(HEADER, message, RECEIVER_SLEEPS);

        receiver.for_now = Some(Role { fault, sets: true, clears: false });
        receiver.wait(HEADER, message, RECEIVER_SLEEPS);
        receiver.write([Load(3, place, Order::Relaxed), Assert(3, message)]);
        if waits_for > 0 {
            let clears = clears && message == 1;
            receiver.for_now = Some(Role { fault, sets: true, clears });
            receiver.publish(TAKEN, message, SENDER_SLEEPS);
        }
    }
    if waits_for > 0 {
        sender.wait(TAKEN, waits_for, SENDER_SLEEPS);
    }
    Machine::new(hardware, vec![sender.program, receiver.program], false).run()
}

/// Three cases: only the receiver sleeps; both do; both do, and the bit is cleared in between.
const SHAPES: [(&str, u8, bool); 3] =
    [("the receiver sleeps", 0, false), ("both sleep", 2, false), ("cleared", 2, true)];

#[test]
fn no_wake_up_is_lost_while_the_sender_fences() {
    for hardware in BOTH {
        for (name, waits_for, clears) in SHAPES {
            let verdict = check(hardware, waits_for, clears, Fault::None);
            println!("{hardware:?}, {name}: {verdict}");
            assert!(matches!(verdict, Verdict::Sound { .. }), "{hardware:?}, {name}: {verdict}");
        }
    }
}

#[test]
fn each_fault_loses_a_wake_up() {
    for hardware in BOTH {
        for (fault, waits_for, clears) in [
            (Fault::NoFence, 0, false),
            (Fault::NoBarrier, 0, false),
            (Fault::LooksTooEarly, 2, true),
            (Fault::ClearsByStore, 2, true),
        ] {
            let verdict = check(hardware, waits_for, clears, fault);
            let first = verdict.to_string();
            println!("{hardware:?}, {fault:?}: {}", first.lines().next().unwrap_or(""));
            assert!(matches!(verdict, Verdict::Lost { .. }), "{hardware:?}, {fault:?}: {verdict}");
        }
    }
}

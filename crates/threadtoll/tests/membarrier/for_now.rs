//! Ends that sleep often. A bit makes those that publish fence for each message (`FENCE_FOR_NOW`),
//! and while it is set, ends sleep without a barrier.

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
    /// A sleeper sets the bit without the barrier.
    NoBarrier,
    /// A sender that goes to sleep reads the bit before it sets its own.
    LooksTooEarly,
    /// The receiver clears the bit by a store, and with it the one that the sender may have set.
    ClearsByStore,
    /// As `ClearsByStore`, for a receiver that sets the bit.
    SetsByStore,
}

/// An end's use of the bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Role {
    fault: Fault,
    /// Its sleeps set it if it is not set.
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

/// Whose sleeps set the bit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protocol {
    /// Those of the receiver. The sender may wait for room, and relies on the bit as it finds it.
    Pipe,
    /// Those of either end. The sender is the caller, and waits for each answer.
    Call,
    /// None: the receiver sets it after it has made room. Only the sender relies on it.
    Funnel,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    protocol: Protocol,
    /// Number of messages that must have been taken before the sender of a pipe is done.
    waits_for: u8,
    /// The receiver clears the bit when it has taken this message; 0 for never.
    clears_at: u8,
}

/// Two messages, in slots of their own.
fn check(hardware: Hardware, shape: Shape, fault: Fault) -> Verdict {
    let Shape { protocol, waits_for, clears_at } = shape;
    let mut sender = Writer::new(Barrier::Membarrier, Mutation::None);
    let mut receiver = Writer::new(Barrier::Membarrier, Mutation::None);
    let role = |sets, clears| Some(Role { fault, sets, clears });
    for message in 1..=2 {
        let place = MESSAGES + message - 1;
        sender.write([Store(place, message, Order::Relaxed)]);
        sender.for_now = if protocol == Protocol::Funnel {
            None
        } else {
            role(protocol == Protocol::Call, false)
        };
        sender.publish(HEADER, message, RECEIVER_SLEEPS);
        if protocol != Protocol::Pipe {
            sender.for_now = role(protocol == Protocol::Call, false);
            sender.wait(TAKEN, message, SENDER_SLEEPS);
        }

        let receiver_sets = protocol != Protocol::Funnel;
        receiver.for_now = if receiver_sets { role(true, false) } else { None };
        receiver.wait(HEADER, message, RECEIVER_SLEEPS);
        receiver.write([Load(3, place, Order::Relaxed), Assert(3, message)]);
        if protocol != Protocol::Pipe || waits_for > 0 {
            receiver.for_now = role(receiver_sets, clears_at == message);
            receiver.publish(TAKEN, message, SENDER_SLEEPS);
        }
        if protocol == Protocol::Funnel && clears_at != message {
            receiver.write([match fault {
                Fault::SetsByStore => Store(STATE, FENCE_FOR_NOW, Order::Release),
                _ => Update(2, STATE, !0, FENCE_FOR_NOW, Order::AcqRel),
            }]);
        }
    }
    if protocol == Protocol::Pipe && waits_for > 0 {
        sender.wait(TAKEN, waits_for, SENDER_SLEEPS);
    }
    Machine::new(hardware, vec![sender.program, receiver.program], false).run()
}

/// Only the receiver of a pipe sleeps; both do; both do, and the bit is cleared in between.
const PIPE: [Shape; 3] = [
    Shape { protocol: Protocol::Pipe, waits_for: 0, clears_at: 0 },
    Shape { protocol: Protocol::Pipe, waits_for: 2, clears_at: 0 },
    Shape { protocol: Protocol::Pipe, waits_for: 2, clears_at: 1 },
];
const CALL: [Shape; 2] = [
    Shape { protocol: Protocol::Call, waits_for: 0, clears_at: 0 },
    Shape { protocol: Protocol::Call, waits_for: 0, clears_at: 1 },
];
const FUNNEL: [Shape; 2] = [
    Shape { protocol: Protocol::Funnel, waits_for: 0, clears_at: 0 },
    Shape { protocol: Protocol::Funnel, waits_for: 0, clears_at: 2 },
];

#[test]
fn no_wake_up_is_lost_while_ends_fence() {
    for hardware in BOTH {
        for shape in PIPE.into_iter().chain(CALL).chain(FUNNEL) {
            let verdict = check(hardware, shape, Fault::None);
            println!("{hardware:?}, {shape:?}: {verdict}");
            assert!(matches!(verdict, Verdict::Sound { .. }), "{hardware:?}, {shape:?}: {verdict}");
        }
    }
}

#[test]
fn each_fault_loses_a_wake_up() {
    for hardware in BOTH {
        for (fault, shape) in [
            (Fault::NoFence, PIPE[0]),
            (Fault::NoBarrier, PIPE[0]),
            (Fault::LooksTooEarly, PIPE[2]),
            (Fault::ClearsByStore, PIPE[2]),
            (Fault::NoFence, CALL[0]),
            (Fault::NoBarrier, CALL[0]),
            (Fault::ClearsByStore, CALL[1]),
            (Fault::NoFence, FUNNEL[0]),
            (Fault::SetsByStore, FUNNEL[0]),
        ] {
            let verdict = check(hardware, shape, fault);
            let first = verdict.to_string();
            println!("{hardware:?}, {fault:?}, {shape:?}: {}", first.lines().next().unwrap_or(""));
            assert!(
                matches!(verdict, Verdict::Lost { .. }),
                "{hardware:?}, {fault:?}, {shape:?}: {verdict}"
            );
        }
    }
}

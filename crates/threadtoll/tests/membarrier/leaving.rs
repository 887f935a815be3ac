//! A receiver that leaves while its sender sends. The sender publishes and checks if the receiver
//! is gone; the receiver sets its bit and looks for messages. When both have returned, and the
//! sender still lives, each accepted message has been received or dropped, and none that came back
//! has.
//!
//! Only the receiver has a barrier. It skips that if the sender's next send is its first, which
//! begins with a read-modify-write of the state, or if there is no next send.

use super::machine::Instruction::{self, *};
use super::machine::{Hardware, Label, Machine, Order, Place, Verdict};
use super::{BOTH, HEADER, MESSAGES, NEVER_SENT, Pipe, STATE, TAKEN};

const RECEIVER_GONE: u8 = 16;
const SENT_LATE: u8 = 32;
const DRAINED: u8 = 64;
const SENDER_GONE: u8 = 128;

/// Number of messages that were accepted.
const ACCEPTED: Place = MESSAGES + 2;

/// The receiver's step between its bit and its look.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Barrier {
    Membarrier,
    /// It fences, and so does the sender (`MUST_FENCE`).
    Fences,
    /// The kernel refuses the barrier: it fences, and naps.
    Nap,
    /// As `Nap`, without the nap.
    NoNap,
    Nothing,
}

/// A fault in the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    BarrierBeforeBit,
    /// The sender clears its bit after it has published.
    ClearsTooLate,
    /// A sender that finds `DRAINED` takes its message back, dropped or not.
    IgnoresTaken,
    /// `DRAINED` is set without release.
    RelaxedDrained,
    /// `SENT_LATE` is set without acquire and release.
    RelaxedSentLate,
    /// A receiver that finds `SENT_LATE` does not look again.
    IgnoresSentLate,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    barrier: Barrier,
    pipe: Pipe,
    messages: u8,
    /// Number of messages that the receiver tries to receive before it leaves.
    tries: u8,
    /// True if the sender leaves as well, at the end.
    closes: bool,
    fault: Fault,
}

/// Labels, numbered by step and message.
fn label(step: Label, message: u8) -> Label {
    step * 8 + Label::from(message)
}

const REFUSED: Label = 0;
const OVER: Label = 1;

impl Case {
    fn sender(&self) -> Vec<Instruction> {
        let mut program = Vec::new();
        let relaxed_late = self.fault == Fault::RelaxedSentLate;
        let late_order = if relaxed_late { Order::Relaxed } else { Order::AcqRel };
        for message in 1..=self.messages {
            let [room, has_room, attend, gone, drained, accepted] =
                std::array::from_fn(|step| label(step as Label + 1, message));
            let clear_bit =
                (message == 1).then_some(Update(0, STATE, !NEVER_SENT, 0, Order::AcqRel));
            if let Some(clear_bit) = clear_bit
                && self.fault != Fault::ClearsTooLate
            {
                program.extend([clear_bit, IfAny(0, RECEIVER_GONE, REFUSED)]);
            }
            if self.pipe == Pipe::One && message > 1 {
                program.extend([At(room), Load(1, TAKEN, Order::Acquire)]);
                program.extend([IfAtLeast(1, message - 1, has_room)]);
                program.extend([Load(0, STATE, Order::Acquire), IfAny(0, RECEIVER_GONE, REFUSED)]);
                program.extend([Goto(room), At(has_room)]);
            }
            program.push(Store(self.pipe.place(message), message, Order::Relaxed));
            program.push(Store(HEADER, message, Order::Release));
            if self.barrier == Barrier::Fences {
                program.push(Fence);
            } else {
                let look = Load(0, STATE, Order::Relaxed);
                program.extend([look, IfAny(0, !0, attend), Goto(accepted), At(attend)]);
            }
            program.extend([Load(0, STATE, Order::Acquire), IfAny(0, RECEIVER_GONE, gone)]);
            program.extend([Goto(accepted), At(gone), Update(0, STATE, !0, SENT_LATE, late_order)]);
            program.extend([Load(1, TAKEN, Order::Relaxed), IfAny(0, DRAINED, drained)]);
            program.extend([Goto(accepted), At(drained)]);
            if self.fault != Fault::IgnoresTaken {
                program.push(IfAtLeast(1, message, accepted));
            }
            program.extend([Goto(REFUSED), At(accepted), Store(ACCEPTED, message, Order::Relaxed)]);
            if self.fault == Fault::ClearsTooLate {
                program.extend(clear_bit);
            }
        }
        program.push(At(REFUSED));
        program.extend(self.closes.then_some(Update(0, STATE, !0, SENDER_GONE, Order::AcqRel)));
        program
    }

    /// Moves a message out.
    fn take(&self, message: u8) -> [Instruction; 2] {
        [Load(3, self.pipe.place(message), Order::Relaxed), Assert(3, message)]
    }

    fn receiver(&self) -> Vec<Instruction> {
        let mut program = Vec::new();
        let [there, leave, look, found, late] =
            [1, 2, 3, 4, 5].map(|step| move |message| label(step, message));
        for message in 1..=self.tries {
            program
                .extend([Load(1, HEADER, Order::Acquire), IfAtLeast(1, message, there(message))]);
            program.extend([Goto(leave(message - 1)), At(there(message))]);
            program.extend(self.take(message));
            program.push(Store(TAKEN, message, Order::Release));
        }
        program.push(Goto(leave(self.tries)));
        for taken in 0..=self.tries {
            self.leave(&mut program, [leave(taken), look(taken)]);
        }
        let relaxed = self.fault == Fault::RelaxedDrained;
        let order = if relaxed { Order::Relaxed } else { Order::AcqRel };
        for taken in 0..=self.messages {
            program.push(At(look(taken)));
            if taken < self.messages {
                let seen = IfAtLeast(1, taken + 1, found(taken));
                program.extend([Load(1, HEADER, Order::Acquire), seen]);
            }
            program.extend([Store(TAKEN, taken, Order::Release), Load(1, STATE, Order::Acquire)]);
            if self.fault != Fault::IgnoresSentLate {
                program.push(IfAny(1, SENT_LATE, late(taken)));
            }
            program.extend([Swap(2, STATE, 1, !0, DRAINED, order), IfAny(2, 1, OVER)]);
            program.extend([Goto(look(taken)), At(late(taken))]);
            program.extend([Swap(2, STATE, 1, !SENT_LATE, 0, order), Goto(look(taken))]);
            program.push(At(found(taken)));
            if taken < self.messages {
                program.extend(self.take(taken + 1));
                program.push(Goto(look(taken + 1)));
            }
        }
        program.push(At(OVER));
        program
    }

    /// Sets `RECEIVER_GONE`, with the barrier unless no send is in flight.
    fn leave(&self, program: &mut Vec<Instruction>, [leave, look]: [Label; 2]) {
        let idle = NEVER_SENT | SENDER_GONE;
        let gone = Update(0, STATE, !0, RECEIVER_GONE, Order::AcqRel);
        let barrier: &[Instruction] = match self.barrier {
            Barrier::Membarrier => &[Fence, Membarrier, Fence],
            Barrier::Fences | Barrier::NoNap => &[Fence],
            Barrier::Nap => &[Fence, Nap],
            Barrier::Nothing => &[],
        };
        program.push(At(leave));
        if self.fault == Fault::BarrierBeforeBit {
            program.extend(barrier);
            program.push(gone);
        } else {
            program.extend([gone, IfAny(0, idle, look)]);
            program.extend(barrier);
        }
        program.push(Goto(look));
    }

    fn run(&self, hardware: Hardware) -> Found {
        let programs = vec![self.sender(), self.receiver()];
        let machine = Machine::new(hardware, programs, false).beginning_with(STATE, NEVER_SENT);
        let (Verdict::Sound { states }, memories) = machine.run_to_memories() else {
            return Found::Wrong;
        };
        let mut found = Found::Sound { states };
        for memory in memories {
            let [taken, accepted] = [TAKEN, ACCEPTED].map(|place| memory[place as usize]);
            if taken < accepted {
                return Found::Stranded;
            }
            if taken > accepted {
                found = Found::Twice;
            }
        }
        found
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    Sound {
        states: usize,
    },
    /// A message was accepted, and was not dropped.
    Stranded,
    /// A message was dropped, and also came back.
    Twice,
    /// A message was missing, or an end waits for ever.
    Wrong,
}

/// A few messages, of which the receiver tries to receive some. An unbounded pipe has slots for
/// two.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (pipe, most) in [(Pipe::Unbounded, 2), (Pipe::One, 3)] {
        for messages in 1..=most {
            for tries in 0..=messages {
                for closes in [false, true] {
                    let (barrier, fault) = (Barrier::Membarrier, Fault::None);
                    cases.push(Case { barrier, pipe, messages, tries, closes, fault });
                }
            }
        }
    }
    cases
}

#[test]
fn nothing_is_stranded() {
    for hardware in BOTH {
        for barrier in [Barrier::Membarrier, Barrier::Fences, Barrier::Nap] {
            for case in cases() {
                let case = Case { barrier, ..case };
                let found = case.run(hardware);
                println!("{hardware:?}, {case:?}: {found:?}");
                assert!(matches!(found, Found::Sound { .. }), "{hardware:?}, {case:?}: {found:?}");
            }
        }
    }
}

const SIMPLEST: Case = Case {
    barrier: Barrier::Membarrier,
    pipe: Pipe::Unbounded,
    messages: 1,
    tries: 0,
    closes: false,
    fault: Fault::None,
};

#[test]
fn without_the_barrier_a_message_is_stranded() {
    for hardware in BOTH {
        for barrier in [Barrier::Nothing, Barrier::NoNap] {
            for pipe in [Pipe::Unbounded, Pipe::One] {
                let case = Case { barrier, pipe, ..SIMPLEST };
                assert_eq!(case.run(hardware), Found::Stranded, "{hardware:?}, {case:?}");
            }
        }
    }
}

#[test]
fn every_fault_is_found() {
    for (case, fault, hardware, expected) in [
        (SIMPLEST, Fault::BarrierBeforeBit, Hardware::Tso, Found::Stranded),
        (SIMPLEST, Fault::ClearsTooLate, Hardware::Tso, Found::Stranded),
        (SIMPLEST, Fault::IgnoresTaken, Hardware::Tso, Found::Twice),
        (SIMPLEST, Fault::IgnoresSentLate, Hardware::Tso, Found::Stranded),
        // On x86 each read-modify-write is a barrier, whatever its ordering.
        (SIMPLEST, Fault::RelaxedDrained, Hardware::Weak, Found::Twice),
        (SIMPLEST, Fault::RelaxedSentLate, Hardware::Weak, Found::Stranded),
    ] {
        let case = Case { fault, ..case };
        let found = case.run(hardware);
        println!("{hardware:?}, {case:?}: {found:?}");
        assert_eq!(found, expected, "{hardware:?}, {case:?}");
    }
}

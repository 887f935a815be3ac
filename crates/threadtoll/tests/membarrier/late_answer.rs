//! An answer that meets a caller that leaves. The callee publishes and checks if the caller is
//! gone, the caller sets its bit and looks for an answer, and the first to claim the answer drops
//! it.
//!
//! This also covers a message of a funnel that meets a receiver that leaves: its stamp is the turn.

use super::machine::Instruction::{self, *};
use super::machine::{Hardware, Machine, Order, Place};

const STATE: Place = 0;
const CALLER_GONE: u8 = 1;
/// 1 while there is an answer.
const TURN: Place = 1;
const ANSWERED: u8 = 1;

/// Claims the answer, if there is one. Register 0 must be 0.
const CLAIM: Instruction = Update(0, TURN, !ANSWERED, 0, Order::Acquire);

fn callee(fences: bool) -> Vec<Instruction> {
    let mut program = vec![Store(TURN, ANSWERED, Order::Release)];
    program.extend(fences.then_some(Fence));
    let look = Load(1, STATE, Order::Acquire);
    program.extend([look, IfAny(1, CALLER_GONE, 1), Goto(2), At(1), CLAIM, At(2)]);
    program
}

fn caller(barrier: &[Instruction]) -> Vec<Instruction> {
    let mut program = vec![Update(1, STATE, !0, CALLER_GONE, Order::AcqRel)];
    program.extend(barrier);
    program.push(CLAIM);
    program
}

/// Possible numbers of times that the answer is dropped while the callee lives.
fn drops(hardware: Hardware, callee: Vec<Instruction>, caller: Vec<Instruction>) -> Vec<u8> {
    let machine = Machine::new(hardware, vec![callee, caller], false);
    let outcomes = machine.outcomes();
    let mut drops: Vec<u8> = outcomes.iter().map(|registers| registers[0] + registers[4]).collect();
    drops.sort_unstable();
    drops.dedup();
    drops
}

#[test]
fn a_late_answer_is_dropped_once() {
    for hardware in [Hardware::Tso, Hardware::Weak] {
        assert_eq!(drops(hardware, callee(false), caller(&[Fence, Membarrier, Fence])), [1]);
        assert_eq!(drops(hardware, callee(true), caller(&[Fence])), [1]);
        assert_eq!(drops(hardware, callee(false), caller(&[Fence, Nap])), [1]);
    }
}

#[test]
fn without_the_barrier_a_late_answer_is_stranded() {
    for hardware in [Hardware::Tso, Hardware::Weak] {
        assert_eq!(drops(hardware, callee(false), caller(&[Fence])), [0, 1]);
        assert_eq!(drops(hardware, callee(false), caller(&[])), [0, 1]);
    }
}

//! A receiver that goes to sleep without the barrier, because the sender's next send begins with a
//! read-modify-write of the state: nothing was ever sent (`NEVER_SENT`), or every message that a
//! pipe for one message has ever held was taken (`FIRST_FILL`).

use super::machine::Instruction::*;
use super::machine::{Hardware, Machine, Order, Verdict};
use super::{BOTH, Barrier, FIRST_FILL, HEADER, Mutation, Pipe, RECEIVER_SLEEPS, SENDER_SLEEPS};
use super::{NEVER_SENT, STATE, TAKEN, Writer};

/// A fault in how the sender clears the bits, or in how the receiver reads them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The sender clears its bit after it has published.
    TooLate,
    /// The sender clears `NEVER_SENT`, but not `FIRST_FILL`.
    OnlyOnce,
    /// The receiver takes the first fill for over before it has taken anything.
    NothingTaken,
}

fn check(hardware: Hardware, barrier: Barrier, pipe: Pipe, messages: u8, fault: Fault) -> Verdict {
    let mut sender = Writer::new(barrier, Mutation::None);
    let mut receiver = Writer::new(barrier, Mutation::None);
    for message in 1..=messages {
        let clear_bit = match message {
            1 => Some(NEVER_SENT),
            _ => (pipe == Pipe::One).then_some(FIRST_FILL),
        };
        let clear_bit = clear_bit.map(|bit| Update(0, STATE, !bit, 0, Order::AcqRel));
        if fault != Fault::TooLate {
            sender.write(clear_bit.filter(|_| message == 1 || fault != Fault::OnlyOnce));
        }
        let place = pipe.place(message);
        if pipe == Pipe::One && message == 2 {
            sender.wait(TAKEN, 1, SENDER_SLEEPS);
        }
        sender.write([Store(place, message, Order::Relaxed)]);
        sender.publish(HEADER, message, RECEIVER_SLEEPS);
        if fault == Fault::TooLate {
            sender.write(clear_bit);
        }

        let used_up = message == 2 || fault == Fault::NothingTaken;
        receiver.spared_by = if used_up { pipe.bits() } else { NEVER_SENT };
        receiver.wait(HEADER, message, RECEIVER_SLEEPS);
        receiver.write([Load(3, place, Order::Relaxed), Assert(3, message)]);
        if pipe == Pipe::One {
            receiver.publish(TAKEN, message, SENDER_SLEEPS);
        }
    }
    let naps = barrier == Barrier::Naps;
    Machine::new(hardware, vec![sender.program, receiver.program], naps)
        .beginning_with(STATE, pipe.bits())
        .run()
}

#[test]
fn no_wake_up_is_lost_without_a_barrier() {
    for hardware in BOTH {
        for pipe in [Pipe::Unbounded, Pipe::One] {
            for (name, barrier) in [
                ("membarrier", Barrier::Membarrier),
                ("fences on both sides", Barrier::Fences),
                ("naps", Barrier::Naps),
            ] {
                let verdict = check(hardware, barrier, pipe, 2, Fault::None);
                println!("{hardware:?}, {name}, {pipe:?}: {verdict}");
                assert!(
                    matches!(verdict, Verdict::Sound { .. }),
                    "{hardware:?}, {name}: {verdict}"
                );
            }
        }
    }
}

#[test]
fn without_clearing_the_bit_a_wake_up_is_lost() {
    for hardware in BOTH {
        // A second message would wake a receiver that has missed the first.
        for (pipe, messages, fault) in [
            (Pipe::Unbounded, 1, Fault::TooLate),
            (Pipe::One, 2, Fault::TooLate),
            (Pipe::One, 2, Fault::OnlyOnce),
            (Pipe::One, 1, Fault::NothingTaken),
        ] {
            let verdict = check(hardware, Barrier::Membarrier, pipe, messages, fault);
            let first = verdict.to_string();
            let first = first.lines().next().unwrap_or("");
            println!("{hardware:?}, {pipe:?}, {fault:?}: {first}");
            assert!(matches!(verdict, Verdict::Lost { .. }), "{pipe:?}, {fault:?}: {verdict}");
        }
    }
}

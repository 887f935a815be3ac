//! A receiver that goes to sleep without the barrier, because nothing was ever sent (`NEVER_SENT`):
//! the sender's first send begins with a read-modify-write of the state.

use super::machine::Instruction::*;
use super::machine::{Hardware, Machine, Order, Verdict};
use super::{BOTH, Barrier, HEADER, Mutation, NEVER_SENT, Pipe, RECEIVER_SLEEPS, SENDER_SLEEPS};
use super::{STATE, TAKEN, Writer};

/// `too_late` plants a fault: the sender clears the bit after it has published.
fn check(
    hardware: Hardware,
    barrier: Barrier,
    pipe: Pipe,
    messages: u8,
    too_late: bool,
) -> Verdict {
    let mut sender = Writer::new(barrier, Mutation::None);
    let mut receiver = Writer { spared_by: NEVER_SENT, ..Writer::new(barrier, Mutation::None) };
    for message in 1..=messages {
        let clear_bit = (message == 1).then_some(Update(0, STATE, !NEVER_SENT, 0, Order::AcqRel));
        if !too_late {
            sender.write(clear_bit);
        }
        let place = pipe.place(message);
        if pipe == Pipe::One && message == 2 {
            sender.wait(TAKEN, 1, SENDER_SLEEPS);
        }
        sender.write([Store(place, message, Order::Relaxed)]);
        sender.publish(HEADER, message, RECEIVER_SLEEPS);
        if too_late {
            sender.write(clear_bit);
        }

        receiver.wait(HEADER, message, RECEIVER_SLEEPS);
        receiver.write([Load(3, place, Order::Relaxed), Assert(3, message)]);
        if pipe == Pipe::One {
            receiver.publish(TAKEN, message, SENDER_SLEEPS);
        }
    }
    let naps = barrier == Barrier::Naps;
    Machine::new(hardware, vec![sender.program, receiver.program], naps)
        .beginning_with(STATE, NEVER_SENT)
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
                let verdict = check(hardware, barrier, pipe, 2, false);
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
        let verdict = check(hardware, Barrier::Membarrier, Pipe::Unbounded, 1, true);
        let first = verdict.to_string();
        let first = first.lines().next().unwrap_or("");
        println!("{hardware:?}: {first}");
        assert!(matches!(verdict, Verdict::Lost { .. }), "{hardware:?}: {verdict}");
    }
}

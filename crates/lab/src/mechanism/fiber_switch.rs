//! A switch between two stacks of one thread, and back: the cost of a hand-off without another CPU
//! or a scheduler. The stacks are those of the `corosensei` crate.

use corosensei::{Coroutine, CoroutineResult};

use crate::exchange::Solo;

use super::message::{read_message, write_message};
use super::{Class, Ends, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "fiber-switch",
        Class::OneThread,
        "a switch to a stackful coroutine on the same thread, and back",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let words = settings.payload_bytes / 8;
    // Boxed, because real fibers pass messages by pointer.
    let fiber = Coroutine::new(move |yielder, mut message: Box<[u64]>| {
        loop {
            let seq = read_message(&message);
            write_message(&mut message, seq);
            message = yielder.suspend(message);
        }
    });
    Ok(Ends::one(FiberSwitch {
        fiber: Fiber(fiber),
        message: Some(vec![0; words].into_boxed_slice()),
    }))
}

struct FiberSwitch {
    fiber: Fiber,
    message: Option<Box<[u64]>>,
}

struct Fiber(Coroutine<Box<[u64]>, Box<[u64]>, ()>);

// SAFETY: a coroutine is not `Send`, because its stack may hold anything. The stack of this
// coroutine holds a box of words and some integers: no reference to its thread and no lock guard.
unsafe impl Send for Fiber {}

impl Solo for FiberSwitch {
    #[inline(always)]
    fn exchange(&mut self, seq: u64) -> u64 {
        let Some(mut message) = self.message.take() else { return !seq };
        write_message(&mut message, seq);
        match self.fiber.0.resume(message) {
            CoroutineResult::Yield(message) => {
                let echo = read_message(&message);
                self.message = Some(message);
                echo
            }
            CoroutineResult::Return(()) => !seq,
        }
    }
}

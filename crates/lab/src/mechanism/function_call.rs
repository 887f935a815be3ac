//! A function call that cannot be inlined: the cheapest possible hand-off.

use std::hint::black_box;

use crate::exchange::Solo;

use super::message::{read_message, write_message};
use super::{Class, Ends, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "function-call",
        Class::OneThread,
        "a call that the compiler cannot inline, and its return",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    Ok(Ends::one(FunctionCall {
        message: vec![0; settings.payload_bytes / 8],
        callee: black_box(echo),
    }))
}

struct FunctionCall {
    message: Vec<u64>,
    /// A function pointer, to prevent inlining.
    callee: fn(&mut [u64]) -> u64,
}

impl Solo for FunctionCall {
    #[inline(always)]
    fn exchange(&mut self, seq: u64) -> u64 {
        write_message(&mut self.message, seq);
        (self.callee)(&mut self.message)
    }
}

#[inline(never)]
fn echo(message: &mut [u64]) -> u64 {
    read_message(message)
}

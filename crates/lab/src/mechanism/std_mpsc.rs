//! The standard library's channels with blocking receives. A message of 8 bytes travels in the
//! channel; a larger one is a vector that is sent back and forth. The channel allocates a block
//! every 31 messages, and the measured time includes that.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::message::{read_message, write_message};
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "std-mpsc",
        Class::Sleep,
        "std::sync::mpsc channels with blocking receives",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let words = settings.payload_bytes / 8;
    Ok(if words == 1 {
        let (there_in, there_out) = channel();
        let (back_in, back_out) = channel();
        Ends::two(Small { to: there_in, from: back_out }, Small { to: back_in, from: there_out })
    } else {
        let (there_in, there_out) = channel();
        let (back_in, back_out) = channel();
        Ends::two(
            Large { to: there_in, from: back_out, message: vec![1; words] },
            Large { to: back_in, from: there_out, message: Vec::new() },
        )
    })
}

struct Small {
    to: Sender<u64>,
    from: Receiver<u64>,
}

impl Exchange for Small {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // Sending cannot fail: the other end is dropped only at the end of the run.
        let _ = self.to.send(seq);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.from.recv().unwrap_or(0)
    }
}

struct Large {
    to: Sender<Vec<u64>>,
    from: Receiver<Vec<u64>>,
    /// The message; empty while the other end has it.
    message: Vec<u64>,
}

impl Exchange for Large {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        let mut message = std::mem::take(&mut self.message);
        write_message(&mut message, seq);
        let _ = self.to.send(message);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        match self.from.recv() {
            Ok(message) => {
                let seq = read_message(&message);
                self.message = message;
                seq
            }
            Err(_) => 0,
        }
    }
}

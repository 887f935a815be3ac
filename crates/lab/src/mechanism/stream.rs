//! Messages through a kernel byte stream. The kernel copies each message twice.

use std::io::{Read, Write};

use super::message::{bytes, bytes_mut, read_message, write_message};
use super::{Ends, Exchange, Settings};

pub(super) fn ends<W, R>(lead: (W, R), follow: (W, R), settings: &Settings) -> Ends
where
    W: Write + Send + 'static,
    R: Read + Send + 'static,
{
    let end = |(to, from)| Stream { to, from, message: vec![1; settings.payload_bytes / 8] };
    Ends::two(end(lead), end(follow))
}

struct Stream<W, R> {
    to: W,
    from: R,
    message: Vec<u64>,
}

impl<W: Write + Send, R: Read + Send> Exchange for Stream<W, R> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        write_message(&mut self.message, seq);
        // If the stream is broken, no message arrives, which the engine reports.
        let _ = self.to.write_all(bytes(&self.message));
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        match self.from.read_exact(bytes_mut(&mut self.message)) {
            Ok(()) => read_message(&self.message),
            // No message has the sequence number 0.
            Err(_) => 0,
        }
    }
}

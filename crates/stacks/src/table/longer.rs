//! Longer copies, for stacks that did not fit into the first copy.

use std::time::{Duration, Instant};

use crate::process::Process;
use crate::stack::StackBytes;

/// Lengths of the longer copies in bytes, tried in turn.
pub(super) const LENGTHS: [usize; 2] = [64 << 10, 256 << 10];

/// Minimum time between two longer copies; each takes about 50 µs.
const EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct LongerCopy {
    bytes: Vec<u8>,
    copied: Option<Instant>,
}

impl LongerCopy {
    /// Returns `true` if a longer copy was made so recently that the next one has to wait.
    pub(super) fn was_lately(&self) -> bool {
        self.copied.is_some_and(|at| at.elapsed() < EVERY)
    }

    pub(super) fn begin(&mut self) {
        self.copied = Some(Instant::now());
    }

    /// Extends a copy of a stack with the memory beyond it. `None` if the bytes from `kept` to the
    /// end of the copy, which are its last frame, have changed: the memory beyond may then belong
    /// to another stack.
    pub(super) fn read(
        &mut self,
        of: &Process,
        stack: StackBytes<'_>,
        kept: usize,
        length: usize,
    ) -> Option<StackBytes<'_>> {
        self.bytes.resize(length, 0);
        let got = of.memory().read(stack.base, &mut self.bytes);
        let end = stack.bytes.len();
        let known = stack.bytes.get(kept..).filter(|_| got > end)?;
        if known != &self.bytes[kept..end] {
            return None;
        }
        self.bytes[..end].copy_from_slice(stack.bytes);
        Some(StackBytes { base: stack.base, bytes: &self.bytes[..got] })
    }
}

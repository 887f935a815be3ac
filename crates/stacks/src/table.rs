//! Numbered stacks, and the names of their functions.

mod known;
mod longer;
mod mappings;

use std::sync::Arc;
use std::time::Duration;

use crate::image::{CodeAddress, Image, ImageId, Images, Place, SharedPlace};
use crate::process::Process;
use crate::spin_loop::{AROUND, is_before_loop, is_spin_loop};
use crate::stack::{Registers, Stack, StackBytes, Unwinder};
use crate::symbol::{StaticVariables, Symbols, Variable, Wanted};
use known::{KnownStacks, StackKey};
use longer::LongerCopy;
use mappings::Mappings;

/// Maximum number of bytes of a function that are searched for a loop.
const MAX_SPINNER: usize = 256;

/// The numbered stacks of all processes, and the names of their functions. The caller numbers the
/// processes.
#[derive(Debug, Default)]
pub struct StackTable {
    images: Images,
    mappings: Mappings,
    unwinder: Unwinder,
    symbols: Symbols,
    known: KnownStacks,
    longer: LongerCopy,
    scratch: Stack,
    seen: u64,
    cut: u64,
}

impl StackTable {
    /// Creates an empty table.
    pub fn new() -> StackTable {
        StackTable::default()
    }

    /// Adds a process and reads its mappings.
    pub fn open(&mut self, process: u32, of: &Process) {
        self.mappings.open(process, of, &mut self.images);
    }

    /// Reads the mappings of an [opened](StackTable::open) process again. If the process has ended
    /// or executed another program, keeps the known mappings.
    pub fn list(&mut self, process: u32, of: &Process) {
        self.mappings.list(process, of, &mut self.images);
    }

    /// Stops reading the memory of a process that has ended; keeps its mappings.
    pub fn close(&mut self, process: u32) {
        self.mappings.close(process);
    }

    /// Drops the mappings of a process.
    pub fn forget(&mut self, process: u32) {
        self.mappings.forget(process);
    }

    /// Limits the total time for reading mappings again, which happens when a stack contains code
    /// outside all known mappings.
    pub fn allow_listing(&mut self, time: Duration) {
        self.mappings.listing_allowed = time;
    }

    /// Files that were mapped since the last call, each with the number of the process that mapped
    /// it.
    pub fn newly_mapped(&mut self) -> Vec<(u32, ImageId)> {
        self.mappings.newly_mapped()
    }

    /// Returns `true` if a process has mapped a file for which `is_such` returns `true`.
    pub fn any_image(&self, process: u32, is_such: impl Fn(&Image) -> bool) -> bool {
        self.mappings.any_image(process, &self.images, is_such)
    }

    /// A file that some process has mapped, now or at an earlier time.
    pub fn image(&self, id: ImageId) -> Option<&Image> {
        self.images.get(id).map(Arc::as_ref)
    }

    /// Address at which a process has mapped a place in a file.
    pub fn address_of(&self, process: u32, place: CodeAddress) -> Option<u64> {
        self.mappings.get(process)?.address_of(place)
    }

    /// Number of a thread's stack; `None` if there are too many different stacks. The process must
    /// have been [opened](StackTable::open).
    pub fn number(
        &mut self,
        process: u32,
        of: &Process,
        registers: Registers,
        stack: StackBytes<'_>,
    ) -> Option<u32> {
        self.seen += 1;
        let position = StackKey {
            process,
            stack_pointer: registers.stack_pointer(),
            program_counter: registers.program_counter(),
        };
        if let Some(number) = self.known.find(position, stack) {
            self.cut += u64::from(self.stack(number).is_some_and(|stack| stack.cut));
            return Some(number);
        }
        let mut unwound = std::mem::take(&mut self.scratch);
        self.unwind(process, of, registers, stack, &mut unwound);
        let later = unwound.cut && unwound.copy_ended && self.longer.was_lately();
        if unwound.cut && unwound.copy_ended && !later {
            self.unwind_longer(process, of, registers, stack, &mut unwound);
        }
        self.cut += u64::from(unwound.cut);
        let number = self.known.keep(process, &unwound);
        self.scratch = unwound;
        if let Some(number) = number.filter(|_| !later) {
            self.known.remember(position, number);
        }
        number
    }

    /// Unwinds again, with longer copies of the stack.
    fn unwind_longer(
        &mut self,
        process: u32,
        of: &Process,
        registers: Registers,
        stack: StackBytes<'_>,
        unwound: &mut Stack,
    ) {
        let mut longer = std::mem::take(&mut self.longer);
        longer.begin();
        for length in longer::LENGTHS {
            let frame = unwound.frames.last().map_or(0, |frame| frame.frame_address);
            let Some(kept) = frame.checked_sub(stack.base).map(|from| from as usize) else { break };
            let Some(copy) = longer.read(of, stack, kept, length) else { break };
            self.unwind(process, of, registers, copy, unwound);
            if !unwound.cut || !unwound.copy_ended || copy.bytes.len() < length {
                break;
            }
        }
        self.longer = longer;
    }

    fn unwind(
        &mut self,
        process: u32,
        of: &Process,
        registers: Registers,
        stack: StackBytes<'_>,
        unwound: &mut Stack,
    ) {
        unwound.frames.clear();
        (unwound.cut, unwound.copy_ended) = (true, false);
        for again in [false, true] {
            let listed = self.mappings.list_if_stale(process, of, &mut self.images, again);
            if again && !listed {
                return;
            }
            let Some(space) = self.mappings.get(process) else { return };
            self.unwinder.unwind(space, &self.images, registers, stack, unwound);
            // If unwinding did not reach the thread's start, a library may have been loaded since
            // the mappings were read, so they are read again.
            if !unwound.frames.is_empty() && (!unwound.cut || unwound.copy_ended) {
                return;
            }
        }
    }

    /// The stack with this number.
    #[inline]
    pub fn stack(&self, number: u32) -> Option<&Stack> {
        self.known.get(number)
    }

    /// Number of stacks; they are numbered from 0.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns `true` if no stack has been numbered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of stacks passed to [`number`](StackTable::number), and number of those that lacked
    /// outer frames.
    pub fn seen_and_cut(&self) -> (u64, u64) {
        (self.seen, self.cut)
    }

    /// Name of the function at an address; see [`Symbols::name`].
    pub fn name(&mut self, place: Place) -> String {
        self.symbols.name(&self.images, place)
    }

    /// Names of the functions at an address, including inlined ones; see [`Symbols::describe`].
    pub fn describe(&mut self, place: Place) -> Arc<[String]> {
        self.symbols.describe(&self.images, place)
    }

    /// Name of the function at an address, if it has a symbol; see [`Symbols::function_at`].
    pub fn function_at(&mut self, place: Place) -> Option<Arc<str>> {
        self.symbols.function_at(&self.images, place)
    }

    /// Returns `true` if the code at an address is in a loop that spins until another thread
    /// changes a word.
    pub fn is_spin_loop(&self, place: Place) -> bool {
        let Place::Image(CodeAddress { image, address }) = place else { return false };
        let mut code = [0; 2 * AROUND];
        let from = address.saturating_sub(AROUND as u64);
        let read = self.image(image).is_some_and(|image| image.read(from, &mut code));
        read && is_spin_loop(&code, (address - from) as usize)
    }

    /// Returns `true` if the function at an address spins in a loop with the CPU's instruction for
    /// that, and no such instruction lies before the address: a thread there has not begun to spin.
    pub fn is_before_spin_loop(&mut self, place: Place) -> bool {
        let Place::Image(code) = place else { return false };
        let Some((start, size)) = self.symbols.extent(&self.images, code) else { return false };
        let mut bytes = [0; MAX_SPINNER];
        let bytes = &mut bytes[..size.min(MAX_SPINNER)];
        let read = self.image(code.image).is_some_and(|image| image.read(start, bytes));
        read && is_before_loop(bytes, (code.address - start) as usize)
    }

    /// The variable at an address in a process, and the file that contains it.
    pub fn variable(&mut self, process: u32, address: u64) -> Option<(Variable, ImageId)> {
        let data = self.mappings.get(process)?.data(address)?;
        Some((self.symbols.variable(&self.images, data)?, data.image))
    }

    /// Location of an address in shared memory, equal in all processes that share the memory.
    pub fn shared_place(&self, process: u32, address: u64) -> Option<SharedPlace> {
        self.mappings.get(process)?.shared_place(address)
    }

    /// Static variables in a file whose types `wanted` selects; see [`Symbols::static_variables`].
    pub fn static_variables<K: Copy>(
        &mut self,
        image: ImageId,
        wanted: Wanted<K>,
    ) -> Option<StaticVariables<K>> {
        self.symbols.static_variables(&self.images, image, wanted)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    #[test]
    fn mappings_stay_those_of_the_program_that_was_seen() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "read line; exec sleep 60"]);
        let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::open(shell.id()).unwrap();
        let eventually = |is_so: &dyn Fn() -> bool| {
            let began = Instant::now();
            while !is_so() {
                assert!(began.elapsed() < Duration::from_secs(20));
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        // `spawn` may return before the shell has loaded its libraries.
        let named = |name: &str| {
            process.maps().is_ok_and(|maps| {
                let mut paths = maps.iter().filter_map(|mapping| mapping.path.as_ref());
                paths.any(|path| path.to_string_lossy().contains(name))
            })
        };
        eventually(&|| named("[heap]"));
        let mut stacks = StackTable::new();
        stacks.open(0, &process);
        let images = |stacks: &StackTable| stacks.mappings.get(0).unwrap().images();
        let (before, program) = (images(&stacks), process.image().unwrap());
        assert!(!before.is_empty());

        // Only new files are reported.
        let new = stacks.newly_mapped();
        assert_eq!(new, { before.iter().map(|&image| (0, image)) }.collect::<Vec<_>>());
        stacks.list(0, &process);
        assert_eq!(stacks.newly_mapped(), []);
        stacks.forget(0);
        stacks.list(0, &process);
        assert_eq!(stacks.newly_mapped(), new);

        drop(shell.stdin.take().map(|mut stdin| stdin.write_all(b"go\n")));
        eventually(&|| process.image().is_ok_and(|image| image != program));
        stacks.list(0, &process);
        assert_eq!(images(&stacks), before);
        shell.kill().unwrap();
        shell.wait().unwrap();
        stacks.list(0, &process);
        assert_eq!(images(&stacks), before);
    }
}

//! Samples sleeping threads as the profiler does.

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use threadtoll_stacks::image::{AddressSpace, Images};
use threadtoll_stacks::process::Activity;
use threadtoll_stacks::process::Mapping;
use threadtoll_stacks::stack::{Registers, Stack, StackBytes, Unwinder};
use threadtoll_stacks::symbol::Symbols;

/// Bytes of a stack that are copied at first, and at most.
const STACK_BYTES: usize = 16 << 10;
const MAX_STACK_BYTES: usize = 1 << 20;

pub(crate) struct Observer {
    pub(crate) pid: u32,
    pub(crate) images: Images,
    pub(crate) space: AddressSpace,
    pub(crate) unwinder: Unwinder,
    pub(crate) symbols: Symbols,
    memory: fs::File,
}

pub(crate) struct Seen {
    pub(crate) stack: Stack,
    /// Names of the functions, innermost first, those inlined among them.
    pub(crate) names: Vec<String>,
}

impl Observer {
    pub(crate) fn new(pid: u32) -> Observer {
        let mut images = Images::new();
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap();
        let mappings = maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse);
        let space = AddressSpace::new(pid, &mappings.collect::<Vec<_>>(), &mut images);
        let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
        let (unwinder, symbols) = (Unwinder::new(), Symbols::new());
        Observer { pid, images, space, unwinder, symbols, memory }
    }

    /// Registers and stack of a thread, once it sleeps.
    pub(crate) fn copy(&self, tid: u32, most: usize) -> (Registers, u64, Vec<u8>) {
        let path = format!("/proc/{}/task/{tid}/syscall", self.pid);
        let until = Instant::now() + Duration::from_secs(60);
        let (stack_pointer, program_counter) = loop {
            let line = fs::read(&path).unwrap();
            if let Some(position) = Activity::parse(&line).and_then(|seen| seen.position()) {
                break position;
            }
            assert!(Instant::now() < until, "thread {tid} does not fall asleep");
            std::thread::yield_now();
        };
        let mut bytes = vec![0; most];
        let mut length = 0;
        while length < bytes.len() {
            // A page at a time: the stack may end within the copy.
            let at = stack_pointer + length as u64;
            let page = (4096 - (at % 4096) as usize).min(bytes.len() - length);
            match self.memory.read_at(&mut bytes[length..length + page], at) {
                Ok(more) if more > 0 => length += more,
                _ => break,
            }
        }
        bytes.truncate(length);
        (Registers::new(program_counter, stack_pointer), stack_pointer, bytes)
    }

    pub(crate) fn sample(&mut self, tid: u32) -> Seen {
        let mut stack = Stack::default();
        let mut most = STACK_BYTES;
        loop {
            let (registers, base, bytes) = self.copy(tid, most);
            let bytes = StackBytes { base, bytes: &bytes };
            self.unwinder.unwind(&self.space, &self.images, registers, bytes, &mut stack);
            if !stack.copy_ended || most == MAX_STACK_BYTES {
                break;
            }
            most *= 4;
        }
        let mut names = Vec::new();
        for frame in &stack.frames {
            let functions = self.symbols.describe(&self.images, frame.instruction());
            names.extend(functions.iter().cloned());
        }
        Seen { stack, names }
    }
}

//! The stacks that were seen, each known by a number.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use crate::image::{AddressSpace, CodeAddress, Image, ImageId, Images, Place};
use crate::primitive::spinning::spins_for_a_lock;
use crate::primitive::{Caller, Identity, declared};
use crate::process::{self, Process};
use crate::stack::{Frame, Registers, Stack, StackBytes, Unwinder};
use crate::symbol::{LockType, StaticLock, StaticLocks, Symbols};
use threadtoll_judge::places;

/// Most stacks that are told apart.
const MAX_STACKS: usize = 20_000;

/// Most positions whose last stack is remembered.
const MAX_POSITIONS: usize = 20_000;

/// Most stacks that a new position is compared with: those of other threads that do the same.
const ALIKE: usize = 4;

/// Frames of a waiter that tell what it waits for.
const CALLERS: usize = 12;

/// Time after which mappings are listed anew if an address lies in none of them.
const LISTING: Duration = Duration::from_secs(1);

/// Lengths of the copies of a stack that is longer than the first one, tried in turn.
const LONGER: [usize; 2] = [64 << 10, 256 << 10];

/// Time between two longer copies, each of which takes some 50 µs.
const LONGER_EVERY: Duration = Duration::from_millis(100);

/// The stacks of all processes, and the names in them.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    images: Images,
    unwinder: Unwinder,
    symbols: Symbols,
    spaces: Vec<Option<Space>>,
    known: Vec<Known>,
    by_contents: HashMap<u64, u32>,
    /// The last stack of a thread that slept at this position.
    by_position: HashMap<Position, u32>,
    /// The last few stacks of each process with this program counter.
    by_code: HashMap<(u32, u64), Vec<u32>>,
    scratch: Stack,
    longer: Vec<u8>,
    copied_longer: Option<Instant>,
    /// Files whose static locks are not all known yet.
    scans: VecDeque<Scan>,
    static_locks: HashMap<ImageId, Vec<StaticLock>>,
    /// Time that may be spent, and was, on listing mappings anew for stacks.
    pub(crate) listing_allowed: Duration,
    listing: Duration,
    /// Until then names include inlined functions, for which debug information is read.
    pub(crate) inlined_until: Option<Instant>,
    /// Stacks that were looked at.
    pub(crate) seen: u64,
    /// Of these, those whose outer frames are missing.
    pub(crate) cut: u64,
}

/// The search for static locks in a file.
#[derive(Debug)]
struct Scan {
    image: ImageId,
    /// A process that has mapped it.
    process: u32,
    /// `None` before it has begun.
    units: Option<StaticLocks>,
}

#[derive(Debug)]
struct Space {
    space: AddressSpace,
    /// The program whose mappings these are.
    program: process::Image,
    /// Last attempt to list them.
    listed_at: Instant,
    /// Files in which static locks have been, or will be, looked for.
    scanned: HashSet<ImageId>,
}

#[derive(Debug)]
struct Known {
    stack: Stack,
    places: Vec<places::Place>,
    /// Its innermost function spins for a lock, as far as that has been asked for.
    spins: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Position {
    process: u32,
    stack_pointer: u64,
    program_counter: u64,
}

impl Stacks {
    /// Reads the mappings of a process that was found.
    pub(crate) fn open(&mut self, process: u32, of: &Process) {
        let index = process as usize;
        if self.spaces.len() <= index {
            self.spaces.resize_with(index + 1, || None);
        }
        self.list(process, of);
    }

    /// Lists the mappings of a process that was [opened](Stacks::open). Those that are known stay
    /// if it has ended or executes another program by now.
    pub(crate) fn list(&mut self, process: u32, of: &Process) {
        let Some(known) = self.spaces.get_mut(process as usize) else { return };
        if let Some(space) = known {
            space.listed_at = Instant::now();
        }
        let Ok(program) = of.image() else { return };
        if known.as_ref().is_some_and(|space| space.program != program) {
            return;
        }
        let Ok(maps) = of.maps() else { return };
        let space = AddressSpace::new(of.pid(), &maps, &mut self.images);
        // An `exec` in between would mix two programs.
        if maps.is_empty() || of.image().ok().as_ref() != Some(&program) {
            return;
        }
        let mut scanned = known.take().map(|space| space.scanned).unwrap_or_default();
        let new: Vec<ImageId> =
            space.images().into_iter().filter(|&image| scanned.insert(image)).collect();
        *known = Some(Space { space, program, listed_at: Instant::now(), scanned });
        // The runtime's own locks are hardly ever at fault, and those that are waited for are seen
        // all the same.
        for image in new.into_iter().filter(|&image| !is_of_runtime(&self.images, image)) {
            self.scans.push_back(Scan { image, process, units: None });
        }
    }

    /// A process has ended: what it had mapped where goes on to be known.
    pub(crate) fn close(&mut self, process: u32) {
        if let Some(Some(Space { space, .. })) = self.spaces.get_mut(process as usize) {
            space.close_memory();
        }
    }

    /// Nobody asks for names of this process any more.
    pub(crate) fn forget(&mut self, process: u32) {
        if let Some(space) = self.spaces.get_mut(process as usize) {
            *space = None;
        }
    }

    /// Looks for static locks, as debug information types them, until it is so late. Returns
    /// those that were found, each with its process and at its address there.
    pub(crate) fn static_locks(&mut self, until: Instant) -> Vec<(u32, Identity)> {
        let mut found = Vec::new();
        while Instant::now() < until
            && let Some(scan) = self.scans.front_mut()
        {
            let of_unit = match self.static_locks.get(&scan.image) {
                // Another process has mapped the same file.
                Some(known) if scan.units.is_none() => Some(known.clone()),
                _ => {
                    if scan.units.is_none() {
                        scan.units = self.symbols.static_locks(&self.images, scan.image);
                    }
                    scan.units.as_mut().and_then(Iterator::next)
                }
            };
            for lock in of_unit.iter().flatten() {
                let place = CodeAddress { image: scan.image, address: lock.address };
                let space = self.spaces.get(scan.process as usize).and_then(Option::as_ref);
                let identity = space
                    .and_then(|space| space.space.address_of(place))
                    .and_then(|address| declared(type_name(lock.lock), address));
                found.extend(identity.map(|identity| (scan.process, identity)));
            }
            let again = scan.units.is_none();
            match of_unit {
                Some(locks) if !again => {
                    self.static_locks.entry(scan.image).or_default().extend(locks);
                }
                _ => {
                    self.static_locks.entry(scan.image).or_default();
                    self.scans.pop_front();
                }
            }
        }
        found
    }

    /// One of the files that a process has mapped is such.
    pub(crate) fn maps(&self, process: u32, is_such: impl Fn(&Image) -> bool) -> bool {
        let Some(Some(Space { space, .. })) = self.spaces.get(process as usize) else {
            return false;
        };
        let mut images = space.images().into_iter().filter_map(|image| self.images.get(image));
        images.any(|image| is_such(image))
    }

    /// The number of a stack; `None` if too many differ.
    pub(crate) fn number(
        &mut self,
        process: u32,
        of: &Process,
        registers: Registers,
        stack: StackBytes<'_>,
    ) -> Option<u32> {
        self.seen += 1;
        let position = Position {
            process,
            stack_pointer: registers.stack_pointer(),
            program_counter: registers.program_counter(),
        };
        if let Some(&number) = self.by_position.get(&position)
            && has_frames(position, stack, &self.known[number as usize].stack.frames)
        {
            self.cut += u64::from(self.known[number as usize].stack.cut);
            return Some(number);
        }
        if let Some(number) = self.like_another(position, stack) {
            self.remember(position, number);
            return Some(number);
        }
        let mut unwound = std::mem::take(&mut self.scratch);
        self.unwind(process, of, registers, stack, &mut unwound);
        let later = unwound.cut && unwound.copy_ended && self.copied_longer_lately();
        if unwound.cut && unwound.copy_ended && !later {
            self.unwind_longer(process, of, registers, stack, &mut unwound);
        }
        self.cut += u64::from(unwound.cut);
        let number = self.keep(process, &unwound);
        self.scratch = unwound;
        if let Some(number) = number.filter(|_| !later) {
            self.remember(position, number);
        }
        number
    }

    /// The stack of another thread that has all return addresses of this one, each as far from the
    /// stack pointer.
    fn like_another(&self, position: Position, stack: StackBytes<'_>) -> Option<u32> {
        let numbers = self.by_code.get(&(position.process, position.program_counter))?;
        numbers.iter().copied().find(|&number| {
            let known = &self.known[number as usize].stack;
            let outermost = known.frames.last().map_or(u64::MAX, |frame| frame.frame_address);
            let innermost = known.frames.first().map_or(0, |frame| frame.frame_address);
            let whole = outermost.wrapping_sub(innermost) <= stack.bytes.len() as u64;
            !known.cut && whole && has_frames(position, stack, &known.frames)
        })
    }

    fn remember(&mut self, position: Position, number: u32) {
        if self.by_position.len() >= MAX_POSITIONS {
            self.by_position.clear();
            self.by_code.clear();
        }
        self.by_position.insert(position, number);
        let code = (position.process, position.program_counter);
        let alike = self.by_code.entry(code).or_default();
        if !alike.contains(&number) {
            alike.truncate(ALIKE - 1);
            alike.insert(0, number);
        }
    }

    fn copied_longer_lately(&self) -> bool {
        self.copied_longer.is_some_and(|at| at.elapsed() < LONGER_EVERY)
    }

    /// Unwinds a stack that is longer than its copy: what lies beyond is read now. It belongs to
    /// the copy if the frame at the copy's end is still as it was.
    fn unwind_longer(
        &mut self,
        process: u32,
        of: &Process,
        registers: Registers,
        stack: StackBytes<'_>,
        unwound: &mut Stack,
    ) {
        self.copied_longer = Some(Instant::now());
        let mut longer = std::mem::take(&mut self.longer);
        for length in LONGER {
            let frame = unwound.frames.last().map_or(0, |frame| frame.frame_address);
            let Some(kept) = frame.checked_sub(stack.base).map(|from| from as usize) else { break };
            longer.resize(length, 0);
            let got = of.memory().read(stack.base, &mut longer);
            let end = stack.bytes.len();
            let Some(known) = stack.bytes.get(kept..).filter(|_| got > end) else { break };
            if known != &longer[kept..end] {
                break;
            }
            longer[..end].copy_from_slice(stack.bytes);
            let stack = StackBytes { base: stack.base, bytes: &longer[..got] };
            self.unwind(process, of, registers, stack, unwound);
            if !unwound.cut || !unwound.copy_ended || got < length {
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
        let index = process as usize;
        unwound.frames.clear();
        (unwound.cut, unwound.copy_ended) = (true, false);
        for again in [false, true] {
            let stale = self.spaces[index]
                .as_ref()
                .is_none_or(|space| again && space.listed_at.elapsed() >= LISTING);
            if stale && self.listing < self.listing_allowed {
                let began = Instant::now();
                self.list(process, of);
                self.listing += began.elapsed();
            } else if again {
                return;
            }
            let Some(Space { space, .. }) = &self.spaces[index] else { return };
            self.unwinder.unwind(space, &self.images, registers, stack, unwound);
            // A library that was loaded meanwhile shows as an address in no mapping.
            if !unwound.frames.is_empty() && (!unwound.cut || unwound.copy_ended) {
                return;
            }
        }
    }

    fn keep(&mut self, process: u32, stack: &Stack) -> Option<u32> {
        let outermost = stack.frames.last().map_or(0, |frame| frame.frame_address);
        let place = |frame: &Frame| places::Place {
            return_address: frame.address,
            frame: outermost.wrapping_sub(frame.frame_address),
        };
        let places: Vec<places::Place> = stack.frames.iter().map(place).collect();
        let mut hasher = DefaultHasher::new();
        (process, stack.cut, &places).hash(&mut hasher);
        let contents = hasher.finish();
        if let Some(&number) = self.by_contents.get(&contents) {
            return Some(number);
        }
        if self.known.len() >= MAX_STACKS {
            return None;
        }
        let number = self.known.len() as u32;
        self.known.push(Known { stack: stack.clone(), places, spins: None });
        self.by_contents.insert(contents, number);
        Some(number)
    }

    /// The places of a stack's frames. Those of a stack that was cut count from a frame that is
    /// not its outermost, and tell nothing.
    pub(crate) fn places(&self, number: u32) -> &[places::Place] {
        match self.known.get(number as usize) {
            Some(known) if !known.stack.cut => &known.places,
            _ => &[],
        }
    }

    /// The functions that tell what a thread with this stack waits for.
    pub(crate) fn callers(&mut self, number: u32) -> Vec<Caller> {
        let Some(known) = self.known.get(number as usize) else { return Vec::new() };
        let frames = known.stack.frames.iter().take(CALLERS);
        frames
            .map(|frame| Caller {
                function: self
                    .symbols
                    .function_at(&self.images, frame.instruction())
                    .map(|name| name.to_string()),
                module: match frame.place {
                    Place::Image(CodeAddress { image, .. }) => self
                        .images
                        .get(image)
                        .map_or_else(String::new, |image| image.name().to_owned()),
                    _ => String::new(),
                },
            })
            .collect()
    }

    /// A running thread with this stack spins for a lock.
    pub(crate) fn spins(&mut self, number: u32) -> bool {
        let Some(known) = self.known.get_mut(number as usize) else { return false };
        *known.spins.get_or_insert_with(|| {
            let innermost = known.stack.frames.first().map(Frame::instruction);
            let function = innermost.and_then(|at| self.symbols.function_at(&self.images, at));
            function.is_some_and(|name| spins_for_a_lock(&name))
        })
    }

    /// The names of a stack's functions, innermost first, and the number of inferred frames.
    pub(crate) fn names(&mut self, number: u32) -> (Vec<String>, u32) {
        let Some(known) = self.known.get(number as usize) else { return (Vec::new(), 0) };
        let mut names = Vec::new();
        for frame in &known.stack.frames {
            let place = frame.instruction();
            names.extend(functions(&mut self.symbols, &self.images, self.inlined_until, place));
        }
        let inferred = known.stack.frames.iter().filter(|frame| frame.inferred).count();
        (names, inferred as u32)
    }

    /// The function that called for the wait: the innermost one that does not belong to the
    /// runtime.
    pub(crate) fn caller(&mut self, number: u32) -> Option<String> {
        let known = self.known.get(number as usize)?;
        let mut fallback = None;
        for frame in &known.stack.frames {
            let of_runtime = is_in_runtime(&self.images, frame.place);
            let place = frame.instruction();
            let functions = functions(&mut self.symbols, &self.images, self.inlined_until, place);
            for name in functions {
                if !of_runtime && !is_runtime_function(&name) {
                    return Some(name);
                }
                fallback.get_or_insert(name);
            }
        }
        fallback
    }

    /// The name of the variable at an address.
    pub(crate) fn name_of_data(&mut self, process: u32, address: u64) -> Option<String> {
        let space = self.spaces.get(process as usize)?.as_ref()?;
        let data = space.space.data(address)?;
        let (name, offset) = self.symbols.name_of_data(&self.images, data)?;
        Some(if offset == 0 { name } else { format!("{name}+{offset:#x}") })
    }
}

/// Names of the functions at an address, innermost first: inlined ones only for so long, and none
/// of the runtime's, whose debug information is large.
fn functions(
    symbols: &mut Symbols,
    images: &Images,
    inlined_until: Option<Instant>,
    place: Place,
) -> Vec<String> {
    let in_time = inlined_until.is_some_and(|until| Instant::now() < until);
    match in_time && !is_in_runtime(images, place) {
        true => symbols.describe(images, place).to_vec(),
        false => vec![symbols.name(images, place)],
    }
}

/// Code of the runtime, or of no file.
fn is_in_runtime(images: &Images, place: Place) -> bool {
    match place {
        Place::Image(code) => {
            images.get(code.image).is_some_and(|image| is_runtime_file(image.name()))
        }
        Place::Generated | Place::NotCode => true,
    }
}

fn is_of_runtime(images: &Images, image: ImageId) -> bool {
    images.get(image).is_none_or(|image| is_runtime_file(image.name()))
}

/// A file that belongs to the C or C++ library, or to the loader.
fn is_runtime_file(name: &str) -> bool {
    const STARTS: [&str; 13] = [
        "libc.so",
        "libc-",
        "libm.so",
        "libm-",
        "libdl",
        "librt",
        "libresolv",
        "libpthread",
        "ld-linux",
        "libstdc++",
        "libc++",
        "libgcc",
        "[vdso]",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// A function that implements locking or sleeping, or is generated around the program's own.
fn is_runtime_function(name: &str) -> bool {
    const STARTS: &[&str] = &[
        "std::",
        "core::",
        "alloc::",
        "<std::",
        "<core::",
        "<alloc::",
        "parking_lot",
        "<parking_lot",
        "lock_api::",
        "__pthread",
        "pthread_",
        "__lll_",
        "__futex",
        "futex_",
        "syscall",
        "___pthread",
        "__GI_",
        "__new_sem_",
        "lll_",
        "sem_clockwait",
        "sem_timedwait",
        "sem_wait",
        // Locks of common libraries, and of what they are made for.
        "CRYPTO_THREAD_",
        "PyCOND_",
        "PyThread_",
        "absl::",
        "apr_thread_",
        "g_cond_",
        "g_mutex_",
        "g_rw_lock_",
        "runtime.futex",
        "runtime.note",
        "sqlite3_mutex_",
        "uv_cond_",
        "uv_mutex_",
        "uv_rwlock_",
        "uv_sem_",
        // The virtual machine of Java, around the program and in its own waits.
        "JavaCalls::",
        "JavaThread::",
        "Monitor::wait",
        "Mutex::lock",
        "ObjectMonitor::",
        "ObjectSynchronizer::",
        "Parker::park",
        "PosixSemaphore::",
        "Runtime1::",
        "Semaphore::",
        "SharedRuntime::",
        "Thread::call_run",
        "[generated code]",
        "os::PlatformEvent::",
        "os::PlatformMonitor::",
        "os::PlatformMutex::",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// The name that debug information gives a type.
fn type_name(lock: LockType) -> &'static str {
    match lock {
        LockType::PthreadMutex => "pthread_mutex_t",
        LockType::PthreadRwlock => "pthread_rwlock_t",
        LockType::RustMutex => "std::sync::poison::mutex::Mutex",
        LockType::RustRwLock => "std::sync::poison::rwlock::RwLock",
        LockType::ParkingLotMutex => "lock_api::mutex::Mutex<parking_lot::raw_mutex::RawMutex>",
        LockType::ParkingLotRwLock => {
            "lock_api::rwlock::RwLock<parking_lot::raw_rwlock::RawRwLock>"
        }
    }
}

/// All return addresses of frames that lie in a copy are there, each as far from the stack pointer
/// as in the stack that the frames are of, which may be another thread's.
#[cfg(target_arch = "x86_64")]
fn has_frames(position: Position, stack: StackBytes<'_>, frames: &[Frame]) -> bool {
    let innermost = frames.first().map_or(0, |frame| frame.frame_address);
    let away = position.stack_pointer.wrapping_sub(innermost);
    let slot = |frame: &Frame| frame.frame_address.wrapping_add(away).wrapping_sub(8);
    let returned = |frame: &Frame| stack.word(slot(frame)) == Some(frame.address);
    // What lies beyond a copy was read once.
    let beyond = |frame: &Frame| slot(frame) >= stack.end().saturating_sub(7);
    let near = frames.iter().skip(1).take_while(|frame| !beyond(frame));
    near.clone().next().is_some() && { near }.all(returned)
}

/// Return addresses lie where each function likes.
#[cfg(not(target_arch = "x86_64"))]
fn has_frames(_: Position, _: StackBytes<'_>, _: &[Frame]) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

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
        // `spawn` returns before or after the shell has loaded its libraries.
        let named = |name: &str| {
            process.maps().is_ok_and(|maps| {
                let mut paths = maps.iter().filter_map(|mapping| mapping.path.as_ref());
                paths.any(|path| path.to_string_lossy().contains(name))
            })
        };
        eventually(&|| named("[heap]"));
        let mut stacks = Stacks::default();
        stacks.open(0, &process);
        let images = |stacks: &Stacks| stacks.spaces[0].as_ref().unwrap().space.images();
        let (before, program) = (images(&stacks), process.image().unwrap());
        assert!(!before.is_empty());

        // Only files that are new are searched for static locks.
        let queued = stacks.scans.len();
        assert!(queued > 0);
        stacks.list(0, &process);
        assert_eq!(stacks.scans.len(), queued);
        stacks.spaces[0].as_mut().unwrap().scanned.clear();
        stacks.list(0, &process);
        assert_eq!(stacks.scans.len(), 2 * queued);

        drop(shell.stdin.take().map(|mut stdin| stdin.write_all(b"go\n")));
        eventually(&|| process.image().is_ok_and(|image| image != program));
        stacks.list(0, &process);
        assert_eq!(images(&stacks), before);
        shell.kill().unwrap();
        shell.wait().unwrap();
        stacks.list(0, &process);
        assert_eq!(images(&stacks), before);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_thread_that_does_the_same_as_another_has_its_stack() {
        let frame = |address, frame_address| Frame {
            address,
            is_return_address: frame_address > 0x1000,
            place: Place::NotCode,
            frame_address,
            inferred: false,
        };
        let stack = Stack {
            frames: vec![frame(7, 0x1000), frame(8, 0x1018), frame(9, 0x1040)],
            cut: false,
            copy_ended: false,
        };
        let mut stacks = Stacks::default();
        let at = |stack_pointer| Position { process: 0, stack_pointer, program_counter: 7 };
        let number = stacks.keep(0, &stack).unwrap();
        stacks.remember(at(0x1000), number);

        let mut words = [0u64; 12];
        (words[2], words[7]) = (8, 9);
        let copy = |words: [u64; 12]| words.map(u64::to_le_bytes).concat();
        let find = |stacks: &Stacks, position: Position, bytes: &[u8]| {
            stacks.like_another(position, StackBytes { base: position.stack_pointer, bytes })
        };
        assert_eq!(find(&stacks, at(0x5000), &copy(words)), Some(number));
        let elsewhere = Position { program_counter: 6, ..at(0x5000) };
        assert_eq!(find(&stacks, elsewhere, &copy(words)), None);
        assert_eq!(find(&stacks, Position { process: 1, ..at(0x5000) }, &copy(words)), None);
        // Another function called, and a copy that does not reach so far.
        assert_eq!(find(&stacks, at(0x5000), &copy(words)[..40]), None);
        words[7] = 10;
        assert_eq!(find(&stacks, at(0x5000), &copy(words)), None);
    }

    #[test]
    fn a_site_is_the_program_s_own() {
        for runtime in [
            "lll_mutex_lock_optimized",
            "___pthread_mutex_lock",
            "sqlite3_mutex_enter",
            "CRYPTO_THREAD_write_lock",
            "os::PlatformMonitor::wait(long)",
            "[generated code]",
            "runtime.futex",
        ] {
            assert!(is_runtime_function(runtime), "{runtime}");
        }
        for own in ["sqlite3_step", "take_gil", "CompileQueue::get()", "Unsafe_Park", "semantics"] {
            assert!(!is_runtime_function(own), "{own}");
        }
    }
}

//! Recognises locks and other wait targets from a program's memory, stacks and debug information.
//! The caller passes in the bytes and names; nothing here reads a program.
//!
//! A futex word belongs to a wait target: a lock, or something that idle threads wait for. Each
//! *family* of primitives is one file and one name in `families!`. It declares the layouts of its
//! wait targets, their types in debug information, and its functions on stacks.
//!
//! A primitive claims an address if the [`Evidence`] gathered there fits: the operation and values
//! with which threads waited, the values of the word, the fields around it, and the functions that
//! waited. The strongest claim wins. While two claims are equally strong, the primitive remains
//! unknown. A word at which only idle waits were seen is never taken for a lock merely because
//! nothing else fits.
//!
//! Offsets were taken from the headers that each file cites, and checked against running programs
//! on x86-64. glibc uses the same layouts on all 64-bit architectures.

pub mod evidence;
pub mod function;
pub mod futex;
pub mod library;
mod lock_names;
mod name;
mod pattern;
pub mod spinning;
pub mod waiting;
pub mod window;

#[cfg(test)]
mod live;
#[cfg(test)]
mod recorded;

use std::fmt;

pub use evidence::{Caller, Context, Evidence, Wait};
pub use name::FunctionName;
pub use runtime::is_runtime_file;
pub use window::Window;

use evidence::Claim;
use function::Part;
use library::LibraryLock;

macro_rules! families {
    ($($file:ident),+ $(,)?) => {
        $(mod $file;)+

        static FAMILIES: &[&Family] = &[$(&$file::FAMILY),+];
    };
}

families! {
    glibc_mutex,
    glibc_rwlock,
    glibc_condvar,
    glibc_semaphore,
    glibc_spinlock,
    glibc_barrier,
    glibc_join,
    glibc_once,
    musl_mutex,
    futex_lock,
    rust_mutex,
    rust_rwlock,
    rust_condvar,
    rust_once,
    rust_parker,
    parking_lot_parker,
    parking_lot_lock,
    threadtoll_mutex,
    cpp_atomic,
    absl,
    jvm,
    go,
    cpython,
    glibc_library,
    libgomp,
    libomp,
    allocators,
    ruby,
    by_name,
    runtime,
}

/// Maximum number of wait targets that are distinguished in one process.
pub const MAX_WAIT_TARGETS: usize = 20_000;

/// Kind of a wait target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mutex of the C library, or one built like it.
    Mutex,
    /// A reader-writer lock.
    RwLock,
    /// `std::sync::Mutex` of Rust.
    RustMutex,
    /// `std::sync::RwLock` of Rust.
    RustRwLock,
    /// A lock for which threads spin, and none sleeps.
    Spinlock,
    /// A lock of an unknown kind.
    Futex,
    /// A word on which one thread sleeps, for a reason that the word does not show.
    Parker,
    /// A condition variable.
    Condvar,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// The end of a thread.
    Join,
    /// An initialisation that runs once.
    Once,
    /// Not known.
    Unknown,
}

impl Kind {
    /// Meaning of a wait for a target of this kind.
    pub fn role(self) -> Role {
        match self {
            Kind::Mutex
            | Kind::RwLock
            | Kind::RustMutex
            | Kind::RustRwLock
            | Kind::Spinlock
            | Kind::Futex => Role::Lock,
            Kind::Condvar | Kind::Semaphore | Kind::Barrier | Kind::Join | Kind::Once => Role::Idle,
            Kind::Parker => Role::Parked,
            Kind::Unknown => Role::Unknown,
        }
    }
}

/// Meaning of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Contention: another thread holds a lock.
    Lock,
    /// Idle: waiting for work, for a signal, or for other threads to catch up.
    Idle,
    /// Asleep on the thread's own word, either for a lock or idle. Only the lock that
    /// [`Identity::parked_on`] finds, or the stack, shows the reason.
    Parked,
    /// Not known.
    Unknown,
}

/// Reason why a thread sleeps on its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkedFor {
    /// A lock that the word does not show.
    Lock,
    /// Work, or a signal.
    Idle,
    /// Time to pass.
    Sleep,
    /// Unknown, because the runtime parks threads in one way for locks and for anything else.
    Untold,
}

/// State of a lock at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// No thread holds the lock.
    Free,
    /// One thread holds the lock.
    Held {
        /// TID of the holder in the program's PID namespace, if the lock records it.
        owner: Option<u32>,
    },
    /// This number of readers hold the lock.
    Readers(u32),
    /// The bytes are missing, or the wait target is not a lock.
    Unseen,
}

/// Kind of access that a waiter wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Access as a lock's only holder, or as its writer.
    Exclusive,
    /// Access as a reader.
    Shared,
}

/// Lock for which a parked thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parked {
    /// Address of the lock.
    pub lock: u64,
    /// Value that the thread left for the thread that will wake it.
    pub token: u64,
}

/// Field of a lock that identifies the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerField {
    /// The word at this address contains a TID of the program's PID namespace, possibly with bits
    /// of the kernel.
    Tid(u64),
    /// A pointer to the holder's own record.
    Record,
    /// No field identifies the holder.
    None,
}

/// Copies the program's memory at an address into the given bytes; returns the number of bytes
/// read.
pub type ReadMemory<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;

struct Family {
    primitives: &'static [&'static dyn Primitive],
    /// Beginnings of function names, and the roles of these functions on stacks. A name that ends
    /// with `$` is complete.
    functions: &'static [(&'static str, Part)],
    /// Prefixes that count only in Rust, because a C++ program may have namespaces of these names.
    rust_functions: &'static [(&'static str, Part)],
    /// Last parts of the names of functions that take a lock, although no word in the names says
    /// so.
    takes_lock: &'static [&'static str],
    /// Exported functions that take a lock on a condition variable, in other functions of their
    /// library. The latter have no names if the library has no symbols.
    takes_lock_inside: &'static [&'static str],
    /// Last parts of names, or paths, of functions that spin for a lock, although no word in the
    /// names says so.
    spins: &'static [&'static str],
    /// Paths of functions that try once to take the lock at the address in the register of their
    /// first argument, and then spin in a loop. The register keeps the address.
    spins_at_argument: &'static [&'static str],
    /// Locks inside the family's library that a program takes without naming them.
    library_locks: &'static [LibraryLock],
    /// True if the family's library never sleeps through the C library's function `syscall`, as
    /// programs with locks of their own do.
    sleeps_by_itself: bool,
}

impl Family {
    const NONE: Family = Family {
        primitives: &[],
        functions: &[],
        rust_functions: &[],
        takes_lock: &[],
        takes_lock_inside: &[],
        spins: &[],
        spins_at_argument: &[],
        library_locks: &[],
        sleeps_by_itself: false,
    };
}

/// One kind of wait target of one runtime.
pub(crate) trait Primitive: fmt::Debug + Sync {
    /// Such as `glibc mutex`.
    fn name(&self) -> &'static str;

    fn kind(&self) -> Kind;

    /// Claims an address at which threads waited, if the evidence fits.
    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim>;

    /// Numbers of bytes before the wait target, and from its address on, that the functions below
    /// read.
    fn extent(&self) -> (u64, usize);

    fn hold(&self, _target: u64, _window: &Window<'_>) -> Hold {
        Hold::Unseen
    }

    /// Exact number of waiting threads, spinning ones included, if the bytes show it.
    fn waiting(&self, _target: u64, _window: &Window<'_>) -> Option<u32> {
        None
    }

    fn owner_field(&self, _target: u64) -> OwnerField {
        OwnerField::None
    }

    /// Address of the holder's own record, if the wait target is held and points to one.
    fn holder_record(&self, _target: u64, _window: &Window<'_>) -> Option<u64> {
        None
    }

    /// Thread to which a holder's record belongs.
    fn thread_of(
        &self,
        _record: u64,
        _read: ReadMemory<'_>,
        _is_thread: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        None
    }

    /// Returns `true` if the bytes cannot be a state of the wait target.
    fn contradicted(&self, _target: u64, _window: &Window<'_>) -> bool {
        false
    }

    /// Returns `true` if the wait target is not a lock, but is in a state in which it may serve as
    /// one.
    fn may_lock(&self, _target: u64, _window: &Window<'_>) -> bool {
        false
    }

    fn access(&self, _target: u64, _wait: &Wait) -> Access {
        Access::Exclusive
    }

    /// Lock for which a parker's owner waits.
    fn parked_on(&self, _target: u64, _window: &Window<'_>) -> Option<Parked> {
        None
    }

    /// Reason why a parker's owner sleeps with these functions on its stack, innermost first. If no
    /// functions are known, the reason to assume.
    fn parked_for(&self, _callers: &[Caller]) -> ParkedFor {
        ParkedFor::Idle
    }

    /// One name for all locks that owners of such parkers wait for, if the locks cannot be told
    /// apart.
    fn locks_as_one(&self) -> Option<&'static str> {
        None
    }

    /// Name of an interpreter's own lock. The thread that runs the interpreter's code holds that
    /// lock.
    fn interpreter_lock(&self) -> Option<&'static str> {
        None
    }

    /// Returns `true` if waiters yield their CPU for a while before they sleep.
    fn waiters_yield(&self) -> bool {
        false
    }

    /// Name of the part of the wait target at this offset, if threads wait for the part separately.
    fn part(&self, _offset: u64) -> Option<&'static str> {
        None
    }

    /// Returns `true` if debug information gives such wait targets the type with this path. The
    /// path of a typedef is only its name.
    fn has_type(&self, _path: &str) -> bool {
        false
    }
}

/// The wait target at an address.
#[derive(Clone, Copy)]
pub struct Identity {
    primitive: &'static dyn Primitive,
    /// Address of the wait target, which may differ from that of the futex word.
    pub address: u64,
    /// True if more evidence will not change the answer, unless the memory is reused.
    pub certain: bool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.name(), self.address)?;
        if self.certain { Ok(()) } else { f.write_str(" (provisional)") }
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.address == other.address
            && self.certain == other.certain
    }
}

impl Identity {
    /// A wait target about which nothing is known.
    pub fn unknown(address: u64) -> Identity {
        Identity { primitive: &Unknown, address, certain: false }
    }

    /// A wait target of the same kind at another address.
    pub fn at(self, address: u64) -> Identity {
        Identity { address, ..self }
    }

    /// Name of the primitive, such as `glibc mutex`.
    pub fn name(&self) -> &'static str {
        self.primitive.name()
    }

    /// Kind of wait target.
    pub fn kind(&self) -> Kind {
        self.primitive.kind()
    }

    /// Meaning of a wait for this target.
    pub fn role(&self) -> Role {
        self.kind().role()
    }

    /// Address and number of the bytes that [`hold`](Self::hold) and similar functions need.
    pub fn window(&self) -> (u64, usize) {
        let (before, length) = self.primitive.extent();
        let start = self.address.saturating_sub(before);
        (start, length + (self.address - start) as usize)
    }

    /// State of the lock at the instant when the bytes were read.
    pub fn hold(&self, window: &Window<'_>) -> Hold {
        self.primitive.hold(self.address, window)
    }

    /// Number of threads that waited for the lock at the instant when the bytes were read; `None`
    /// if the lock does not count them.
    pub fn waiting(&self, window: &Window<'_>) -> Option<u32> {
        self.primitive.waiting(self.address, window)
    }

    /// Field that identifies the holder of the lock.
    pub fn owner_field(&self) -> OwnerField {
        self.primitive.owner_field(self.address)
    }

    /// Address of the holder's own record, if the lock points to one instead of containing a TID.
    pub fn holder_record(&self, window: &Window<'_>) -> Option<u64> {
        self.primitive.holder_record(self.address, window)
    }

    /// Thread to which a holder's record belongs.
    pub fn thread_of(
        &self,
        record: u64,
        read: ReadMemory<'_>,
        is_thread: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        self.primitive.thread_of(record, read, is_thread)
    }

    /// Returns `true` if the bytes cannot be a state of this wait target: the memory was reused, or
    /// the identity was wrong. Only repeated contradictions count, because a lock may be read
    /// between two of its own stores.
    pub fn contradicted(&self, window: &Window<'_>) -> bool {
        self.primitive.contradicted(self.address, window)
    }

    /// Returns `true` if the wait target is not a lock, but is in a state in which it may serve as
    /// one.
    pub fn may_lock(&self, window: &Window<'_>) -> bool {
        self.primitive.may_lock(self.address, window)
    }

    /// Kind of access that a waiter wants.
    pub fn access(&self, wait: &Wait) -> Access {
        self.primitive.access(self.address, wait)
    }

    /// Reason why the owner of a [`Kind::Parker`] sleeps with these functions on its stack,
    /// innermost first.
    pub fn parked_for(&self, callers: &[Caller]) -> ParkedFor {
        self.primitive.parked_for(callers)
    }

    /// Name of the lock, if it is an interpreter's own.
    pub fn interpreter_lock(&self) -> Option<&'static str> {
        self.primitive.interpreter_lock()
    }

    /// Returns `true` if waiters yield their CPU for a while before they sleep.
    pub fn waiters_yield(&self) -> bool {
        self.primitive.waiters_yield()
    }

    /// Name of the part of this wait target that contains an address, if there is one.
    pub fn part_at(&self, address: u64) -> Option<String> {
        let part = self.primitive.part(address.checked_sub(self.address)?)?;
        Some(format!("{} of {}", part, self.interpreter_lock()?))
    }

    /// Returns `true` if several wait targets share this word. The word does not show the one that
    /// a thread waits for.
    pub fn is_shared_word(&self) -> bool {
        self.name() == cpp_atomic::SHARED
    }

    /// One name for all locks that owners of such parkers wait for, if the locks cannot be told
    /// apart.
    pub fn locks_as_one(&self) -> Option<&'static str> {
        self.primitive.locks_as_one()
    }

    /// Lock for which the owner of a [`Kind::Parker`] sleeps, if memory shows it. The sleep then
    /// counts at the lock's own address, as [`Wait::Parked`].
    pub fn parked_on(&self, window: &Window<'_>) -> Option<Parked> {
        self.primitive.parked_on(self.address, window)
    }
}

/// Identifies the wait target at an address.
///
/// Call this again whenever there is new evidence, until the identity is certain. Memory that is
/// reused needs new evidence.
pub fn identify(evidence: &Evidence, context: &Context<'_>) -> Identity {
    let mut best: Option<(Claim, &'static dyn Primitive)> = None;
    let mut contested = false;
    let by_program = evidence.sleeps_through_syscall();
    let possible = FAMILIES.iter().filter(|family| !(by_program && family.sleeps_by_itself));
    for &primitive in possible.flat_map(|family| family.primitives) {
        let Some(claim) = primitive.claim(evidence, context) else { continue };
        match &best {
            Some((leader, _)) if claim.strength < leader.strength => {}
            Some((leader, _)) if claim.strength == leader.strength => contested = true,
            _ => {
                best = Some((claim, primitive));
                contested = false;
            }
        }
    }
    match best {
        Some((claim, primitive)) if !contested => {
            Identity { primitive, address: claim.address, certain: claim.strength.is_certain() }
        }
        _ => Identity::unknown(evidence.address()),
    }
}

/// Identifies a wait target by the path of its type in debug information, before any thread has
/// waited for it. `None` if no family has the type.
pub fn declared(type_path: &str, address: u64) -> Option<Identity> {
    let primitive = primitives().find(|primitive| primitive.has_type(type_path))?;
    Some(Identity { primitive, address, certain: true })
}

fn primitives() -> impl Iterator<Item = &'static dyn Primitive> {
    FAMILIES.iter().flat_map(|family| family.primitives).copied()
}

#[derive(Debug)]
struct Unknown;

impl Primitive for Unknown {
    fn name(&self) -> &'static str {
        "unknown"
    }

    fn kind(&self) -> Kind {
        Kind::Unknown
    }

    fn claim(&self, _: &Evidence, _: &Context<'_>) -> Option<Claim> {
        None
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}

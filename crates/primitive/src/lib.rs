//! Recognises locks and other wait targets, as a profiler finds them: in memory, on stacks and in
//! debug information. Nothing here reads a program; the caller passes in the bytes and names that
//! it has read.
//!
//! A futex word belongs to a wait target, which may be a lock, or something that idle threads wait
//! for. A *family* of primitives is one file and one name in `families!`. It declares what its wait
//! targets look like, which types they have in debug information, and which functions it has on
//! stacks. A primitive claims an address if the [`Evidence`] gathered there fits: the operation and
//! values with which threads waited, the values that the word took, the fields around it, and the
//! functions that waited. The strongest claim wins; if two are equally strong, the primitive
//! remains unknown until there is more evidence. A word at which only idle waits were seen is never
//! taken for a lock merely because nothing else fits.
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
    cpp_atomic,
    absl,
    jvm,
    go,
    cpython,
    glibc_library,
    libgomp,
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
    /// Meaning of a wait for it.
    pub fn role(self) -> Role {
        match self {
            Kind::Mutex | Kind::RwLock | Kind::RustMutex | Kind::RustRwLock | Kind::Futex => {
                Role::Lock
            }
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
    /// Idle: waiting for work, for a signal, or for another thread to get as far.
    Idle,
    /// Asleep on the thread's own word: contention or idle. Only the lock that
    /// [`Identity::parked_on`] finds, or the stack, can show which.
    Parked,
    /// Not known.
    Unknown,
}

/// Reason for which a thread sleeps on a word of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkedFor {
    /// A lock, although the word does not show it.
    Lock,
    /// Work, or a signal.
    Idle,
    /// Time to pass.
    Sleep,
    /// Unknown: its runtime parks threads for locks in the same way as for anything else.
    Untold,
}

/// State of a lock at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Nobody holds it.
    Free,
    /// One thread holds it.
    Held {
        /// Its TID as the program knows it, if the lock records that.
        owner: Option<u32>,
    },
    /// This many readers hold it.
    Readers(u32),
    /// The bytes are missing, or the wait target is not a lock.
    Unseen,
}

/// The kind of access that a waiter wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A lock's only holder, or its writer.
    Exclusive,
    /// A reader.
    Shared,
}

/// Lock that a parked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parked {
    /// Address of the lock.
    pub lock: u64,
    /// Word that the thread left for those that wake it.
    pub token: u64,
}

/// Evidence that identifies a lock's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerField {
    /// The word at this address: a TID as the program numbers threads, possibly combined with bits
    /// of the kernel.
    Tid(u64),
    /// A pointer to the holder's own record.
    Record,
    /// Nothing.
    None,
}

/// Copies memory of the program into the given bytes. Returns the number of bytes that could be
/// read.
pub type ReadMemory<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;

/// The wait targets and functions that one file describes.
struct Family {
    /// Its wait targets.
    primitives: &'static [&'static dyn Primitive],
    /// Beginnings of its functions' names, and the parts that these functions play on stacks. A
    /// name that ends with a `$` is a complete one.
    functions: &'static [(&'static str, Part)],
    /// Prefixes that count only in Rust, because a C++ program may have a namespace of that name.
    rust_functions: &'static [(&'static str, Part)],
    /// Functions that take a lock although no word of their names suggests it, given by the last
    /// parts of their names.
    takes_lock: &'static [&'static str],
    /// Functions that spin until they have a lock although no word of their names suggests it,
    /// given by the last parts of their names or by their paths.
    spins: &'static [&'static str],
    /// Locks inside its library that a program takes without naming them.
    library_locks: &'static [LibraryLock],
}

impl Family {
    const NONE: Family = Family {
        primitives: &[],
        functions: &[],
        rust_functions: &[],
        takes_lock: &[],
        spins: &[],
        library_locks: &[],
    };
}

/// One kind of wait target of one runtime.
pub(crate) trait Primitive: fmt::Debug + Sync {
    /// Name, such as `glibc mutex`.
    fn name(&self) -> &'static str;

    /// Kind of wait target.
    fn kind(&self) -> Kind;

    /// Claims an address at which threads waited, if the evidence fits.
    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim>;

    /// Bytes that the other functions read: how many before the wait target, and how many from its
    /// address on.
    fn extent(&self) -> (u64, usize);

    /// Holder of the lock at this instant.
    fn hold(&self, _target: u64, _window: &Window<'_>) -> Hold {
        Hold::Unseen
    }

    /// Evidence that identifies its holder.
    fn owner_field(&self, _target: u64) -> OwnerField {
        OwnerField::None
    }

    /// Address of the holder's own record, if the wait target is held and points to it.
    fn holder_record(&self, _target: u64, _window: &Window<'_>) -> Option<u64> {
        None
    }

    /// The thread to which such a record belongs.
    fn thread_of(
        &self,
        _record: u64,
        _read: ReadMemory<'_>,
        _is_thread: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        None
    }

    /// Returns `true` if the wait target cannot be in the state that the bytes show.
    fn contradicted(&self, _target: u64, _window: &Window<'_>) -> bool {
        false
    }

    /// Returns `true` if the wait target is not a lock, but in a state in which it may be used as
    /// one.
    fn may_lock(&self, _target: u64, _window: &Window<'_>) -> bool {
        false
    }

    /// The kind of access that a waiter wants.
    fn access(&self, _target: u64, _wait: &Wait) -> Access {
        Access::Exclusive
    }

    /// Lock for which the owner of a parker waits.
    fn parked_on(&self, _target: u64, _window: &Window<'_>) -> Option<Parked> {
        None
    }

    /// Reason why the owner of a parker sleeps with these functions on its stack, innermost first.
    /// Without functions, the reason to assume if nothing more is known.
    fn parked_for(&self, _callers: &[Caller]) -> ParkedFor {
        ParkedFor::Idle
    }

    /// One name for all locks that the owners of such parkers wait for, if the locks cannot be
    /// distinguished.
    fn locks_as_one(&self) -> Option<&'static str> {
        None
    }

    /// Name of the lock, if it is an interpreter's own lock, held by the thread that runs its code.
    fn interpreter_lock(&self) -> Option<&'static str> {
        None
    }

    /// Returns `true` if threads that wait for it yield their CPU for a while before they sleep.
    fn waiters_yield(&self) -> bool {
        false
    }

    /// Name of the part of the wait target at this offset, if threads wait for that part
    /// separately.
    fn part(&self, _offset: u64) -> Option<&'static str> {
        None
    }

    /// Returns `true` if debug information gives such wait targets the type with this path. The
    /// path of a typedef is its name alone.
    fn has_type(&self, _path: &str) -> bool {
        false
    }
}

/// The wait target at an address.
#[derive(Clone, Copy)]
pub struct Identity {
    primitive: &'static dyn Primitive,
    /// Address of the wait target, which need not be that of the futex word.
    pub address: u64,
    /// True if more evidence will not change the answer, unless the memory is used for something
    /// else.
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

    /// Identity of a wait target of this kind at another address.
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

    /// Meaning of a wait for it.
    pub fn role(&self) -> Role {
        self.kind().role()
    }

    /// Address and number of the bytes that [`hold`](Self::hold) and similar functions examine.
    pub fn window(&self) -> (u64, usize) {
        let (before, length) = self.primitive.extent();
        let start = self.address.saturating_sub(before);
        (start, length + (self.address - start) as usize)
    }

    /// Holder of the lock at this instant.
    pub fn hold(&self, window: &Window<'_>) -> Hold {
        self.primitive.hold(self.address, window)
    }

    /// Evidence that identifies the holder of the lock.
    pub fn owner_field(&self) -> OwnerField {
        self.primitive.owner_field(self.address)
    }

    /// Address of the holder's own record, if the lock points to a record and holds no TID.
    pub fn holder_record(&self, window: &Window<'_>) -> Option<u64> {
        self.primitive.holder_record(self.address, window)
    }

    /// The thread to which a holder's record belongs.
    pub fn thread_of(
        &self,
        record: u64,
        read: ReadMemory<'_>,
        is_thread: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        self.primitive.thread_of(record, read, is_thread)
    }

    /// Returns `true` if the wait target cannot be in the state that the bytes show: either the
    /// memory is now used for something else, or it never was what it seemed. A lock may be caught
    /// between two of its own stores, so only repeated contradictions count.
    pub fn contradicted(&self, window: &Window<'_>) -> bool {
        self.primitive.contradicted(self.address, window)
    }

    /// Returns `true` if the wait target is not a lock, but in a state in which it may be used as
    /// one.
    pub fn may_lock(&self, window: &Window<'_>) -> bool {
        self.primitive.may_lock(self.address, window)
    }

    /// The kind of access that a waiter wants.
    pub fn access(&self, wait: &Wait) -> Access {
        self.primitive.access(self.address, wait)
    }

    /// Reason why the owner of a [`Kind::Parker`] sleeps with these functions on its stack.
    pub fn parked_for(&self, callers: &[Caller]) -> ParkedFor {
        self.primitive.parked_for(callers)
    }

    /// Name of the lock, if it is an interpreter's own lock.
    pub fn interpreter_lock(&self) -> Option<&'static str> {
        self.primitive.interpreter_lock()
    }

    /// Returns `true` if threads that wait for it yield their CPU for a while before they sleep.
    pub fn waiters_yield(&self) -> bool {
        self.primitive.waiters_yield()
    }

    /// Name of the part of this wait target at an address, if the address is that of a part.
    pub fn part_at(&self, address: u64) -> Option<String> {
        let part = self.primitive.part(address.checked_sub(self.address)?)?;
        Some(format!("{} of {}", part, self.interpreter_lock()?))
    }

    /// Returns `true` for a word on which threads wait for any of several wait targets, none of
    /// which it names.
    pub fn is_shared_word(&self) -> bool {
        self.name() == cpp_atomic::SHARED
    }

    /// One name for all locks that the owners of such parkers wait for, if the locks cannot be
    /// distinguished.
    pub fn locks_as_one(&self) -> Option<&'static str> {
        self.primitive.locks_as_one()
    }

    /// Lock for which the owner of a [`Kind::Parker`] sleeps, if its memory shows that. The sleep
    /// of the thread is then counted at the lock's own address, as [`Wait::Parked`].
    pub fn parked_on(&self, window: &Window<'_>) -> Option<Parked> {
        self.primitive.parked_on(self.address, window)
    }
}

/// Identifies the wait target at an address.
///
/// Ask again whenever there is new evidence, until the identity is certain; after that, the
/// evidence is no longer needed. Memory that is used for something else needs new evidence.
pub fn identify(evidence: &Evidence, context: &Context<'_>) -> Identity {
    let mut best: Option<(Claim, &'static dyn Primitive)> = None;
    let mut contested = false;
    for primitive in primitives() {
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

/// Identity of a wait target to which debug information gives the type with this path, before any
/// thread has waited for it. `None` if no family has the type.
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

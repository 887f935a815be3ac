//! The C functions of an adapter, as `peers/adapter.h` declares them.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use serde::{Deserialize, Serialize};
use threadtoll_record::Checksum;

use super::description::{self, MAX_BYTES};

pub(super) type Create = unsafe extern "C" fn(*const c_char, usize) -> *mut c_void;
pub(super) type CreateSized = unsafe extern "C" fn(*const c_char, usize, usize) -> *mut c_void;
pub(super) type Destroy = unsafe extern "C" fn(*mut c_void);
pub(super) type Send = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int;
pub(super) type Receive = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> c_long;
pub(super) type SendMany = unsafe extern "C" fn(*mut c_void, *const c_void, usize, usize) -> usize;
pub(super) type ReceiveMany = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize) -> usize;
pub(super) type Claim = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub(super) type Publish = unsafe extern "C" fn(*mut c_void);
pub(super) type Enter = unsafe extern "C" fn(*mut c_void, c_int);
type Describe = unsafe extern "C" fn() -> *const c_char;

macro_rules! functions {
    (
        required: { $($required:ident: $required_type:ty = $required_name:literal,)+ }
        optional: { $($optional:ident: $optional_type:ty = $optional_name:literal,)+ }
    ) => {
        /// The library stays loaded until the process ends, because a thread may hang in one of its
        /// functions.
        #[derive(Clone, Copy)]
        pub(super) struct Functions {
            $(pub(super) $required: $required_type,)+
            $(pub(super) $optional: Option<$optional_type>,)+
        }

        impl Functions {
            fn of(library: &'static Library) -> Result<Self, String> {
                Ok(Functions {
                    $($required: {
                        // SAFETY: by the interface, a symbol of this name is such a function.
                        let symbol = unsafe { library.get::<$required_type>($required_name) };
                        *symbol.map_err(|_| format!("it has no function {}", $required_name))?
                    },)+
                    $($optional: {
                        // SAFETY: as above.
                        let symbol = unsafe { library.get::<$optional_type>($optional_name) };
                        symbol.ok().map(|symbol| *symbol)
                    },)+
                })
            }

            fn optional(&self) -> Vec<String> {
                let mut names = Vec::new();
                $(names.extend(self.$optional.map(|_| $optional_name.to_string()));)+
                names
            }
        }
    };
}

functions! {
    required: {
        describe: Describe = "tt_describe",
        create: Create = "tt_create",
        destroy: Destroy = "tt_destroy",
        send: Send = "tt_send",
        try_receive: Receive = "tt_try_recv",
    }
    optional: {
        create_sized: CreateSized = "tt_create_sized",
        send_wait: Send = "tt_send_wait",
        receive: Receive = "tt_recv",
        send_many: SendMany = "tt_send_many",
        receive_many: ReceiveMany = "tt_recv_many",
        claim: Claim = "tt_claim",
        publish: Publish = "tt_publish",
        enter: Enter = "tt_enter",
    }
}

/// An adapter and its description, which another process obtained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: Checksum,
    /// Names of the optional functions that the file provides.
    pub functions: Vec<String>,
    /// The adapter's description, in JSON.
    pub text: String,
}

impl Described {
    pub(super) fn has(&self, function: &str) -> bool {
        self.functions.iter().any(|name| name == function)
    }
}

/// Loads an adapter into this process and obtains its description.
///
/// This runs the adapter's code, which may end the process, never return, or print anything.
///
/// # Errors
///
/// The reason why there is no description, worded as a clause: `it has no function tt_create`.
pub fn describe(path: &Path) -> Result<Described, String> {
    let (functions, sha256) = load(path)?;
    // SAFETY: the function takes no arguments, and may be called at any time.
    let text = unsafe { (functions.describe)() };
    if text.is_null() {
        return Err("it does not describe itself".into());
    }
    // SAFETY: by the interface, the text ends with a zero byte. Nothing after that byte or after
    // the limit is read.
    let length = unsafe { libc::strnlen(text, MAX_BYTES + 1) };
    // SAFETY: these bytes were just read, and by the interface the text is static.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    let text = description::text(bytes)?;
    Ok(Described { path: path.into(), sha256, functions: functions.optional(), text })
}

fn load(path: &Path) -> Result<(Functions, Checksum), String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    // If the path had no slash, the library would be searched for in other folders.
    let path = path.canonicalize().map_err(unreadable)?;
    let bytes = fs::read(&path).map_err(unreadable)?;
    // `RTLD_NOW`: a missing symbol is noticed here, and none is resolved while messages are timed.
    // `RTLD_LOCAL`: the library's symbols are kept separate from those of other adapters.
    // SAFETY: the library's initialisers run, as the user asked for: `--peers` names code to be
    // executed.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| {
        let error = error.to_string();
        format!("it cannot be loaded: {}", description::clean(&error))
    })?;
    let functions = Functions::of(Box::leak(Box::new(library)))?;
    Ok((functions, Checksum::of_bytes(&bytes)))
}

/// Loads the adapter when the first of its queues is created.
pub(super) struct Loader {
    path: PathBuf,
    sha256: Checksum,
    functions: OnceLock<Result<Functions, String>>,
}

impl Loader {
    pub(super) fn new(described: &Described) -> Self {
        Loader {
            path: described.path.clone(),
            sha256: described.sha256.clone(),
            functions: OnceLock::new(),
        }
    }

    pub(super) fn functions(&self) -> io::Result<Functions> {
        let loaded = self.functions.get_or_init(|| match load(&self.path)? {
            (functions, sha256) if sha256 == self.sha256 => Ok(functions),
            _ => Err("it has changed since the run began".into()),
        });
        loaded.clone().map_err(io::Error::other)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

pub(super) fn create(
    functions: &Functions,
    name: &CStr,
    capacity: usize,
    message_bytes: usize,
) -> Option<*mut c_void> {
    let queue = match (message_bytes, functions.create_sized) {
        // SAFETY: by the interface; the name ends with a zero byte and outlives the call.
        (8, _) | (_, None) => unsafe { (functions.create)(name.as_ptr(), capacity) },
        // SAFETY: as above.
        (bytes, Some(create)) => unsafe { create(name.as_ptr(), capacity, bytes) },
    };
    (!queue.is_null()).then_some(queue)
}

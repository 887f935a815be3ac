//! Language runtimes, recognised by their files and functions: the code between a program and its
//! locks.
//!
//! Source: glibc, musl, libstdc++, Rust's standard library.

use super::Family;
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    functions: &[
        // Waits and system calls in C.
        ("___pthread_", Part::Wait),
        ("__pthread_", Part::Wait),
        ("__GI___pthread_", Part::Wait),
        ("pthread_", Part::Wait),
        ("__GI___futex", Part::Wait),
        ("__GI___nanosleep", Part::Wait),
        ("__GI___clock_nanosleep", Part::Wait),
        ("__GI_", Part::Wait),
        ("__futex", Part::Wait),
        ("futex_", Part::Wait),
        ("__timedwait", Part::Wait),
        ("__syscall", Part::Wait),
        ("__internal_syscall", Part::Wait),
        ("syscall", Part::Wait),
        // Libraries of C and C++.
        ("std::", Part::Library),
        ("_M_invoke", Part::Library),
        ("_M_run$", Part::Library),
        ("libstdc++.so", Part::Library),
        ("libc.so", Part::Library),
        ("libpthread", Part::Library),
        // Code that a JIT compiler generated.
        ("[generated code]", Part::Generated),
        // Beginnings of threads and programs.
        ("start_thread$", Part::Start),
        ("clone$", Part::Start),
        ("clone3$", Part::Start),
        ("__clone", Part::Start),
        ("__GI___clone", Part::Start),
        ("_start$", Part::Start),
        ("__libc_start", Part::Start),
        ("__invoke", Part::Start),
        ("std::thread::", Part::Start),
        ("std::__invoke", Part::Start),
        ("std::_Invoke", Part::Start),
        ("execute_native_thread_routine$", Part::Start),
    ],
    rust_functions: &[
        ("core::", Part::Library),
        ("alloc::", Part::Library),
        ("alloc[", Part::Library),
        ("core[", Part::Library),
        ("std[", Part::Library),
        ("__rust_", Part::Start),
        ("std::rt::", Part::Start),
        ("std::panic", Part::Start),
        ("std::sys::backtrace", Part::Start),
        ("std::sys::thread", Part::Start),
        ("std::sys::pal::unix::thread", Part::Start),
        ("std::sys_common::backtrace", Part::Start),
        ("core::ops::function", Part::Start),
        ("alloc::boxed::Box", Part::Start),
    ],
    ..Family::NONE
};

/// Returns `true` for a file of the C or C++ library, the loader, or OpenMP.
pub fn is_runtime_file(name: &str) -> bool {
    const STARTS: [&str; 17] = [
        "libc.so",
        "libc-",
        "libm.so",
        "libm-",
        "libdl",
        "librt",
        "libresolv",
        "libpthread",
        "ld-linux",
        "ld-musl-",
        "libstdc++",
        "libc++",
        "libgcc",
        "libgomp",
        "libomp",
        "libiomp",
        "[vdso]",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

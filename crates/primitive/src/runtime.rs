//! Files of runtimes: the code between a program and its locks.

/// A file that belongs to the C or C++ library, to the loader or to OpenMP.
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

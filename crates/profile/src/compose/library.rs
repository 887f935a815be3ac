//! Locks inside well-known libraries, which a program takes without naming them: by the functions
//! that wait for them, or by their symbols.
//!
//! From the sources of glibc 2.31 to 2.41, jemalloc 5, gperftools, CRuby 2.7 to 3.4 and Rust's
//! standard library.

use threadtoll_primitive::FunctionName;
use threadtoll_primitive::function::Part;

use crate::primitive::{Caller, is_runtime_file};

/// A lock inside a library.
#[derive(Debug)]
pub(super) struct LibraryLock {
    pub(super) name: &'static str,
    /// Functions that wait for it, called by the program or by each other; `*` stands for any end.
    functions: &'static [&'static str],
    /// Symbols of the C library or the loader that contain it.
    symbols: &'static [&'static str],
    /// Its functions' names are no other's; those of the others count in the C library alone.
    anywhere: bool,
    /// What to do about it, as a sentence.
    pub(super) mend: &'static str,
}

static LOCKS: &[LibraryLock] = &[
    LibraryLock {
        name: "malloc arena",
        functions: &[
            "malloc",
            "calloc",
            "realloc",
            "free",
            "cfree",
            "memalign",
            "aligned_alloc",
            "posix_memalign",
            "__libc_malloc*",
            "__libc_calloc*",
            "__libc_realloc*",
            "__libc_free*",
            "_int_malloc*",
            "_int_free*",
            "_int_realloc*",
            "arena_get*",
            "sysmalloc*",
            "tcache_init*",
        ],
        symbols: &["main_arena"],
        anywhere: false,
        mend: "Allocate less often, allow more arenas (MALLOC_ARENA_MAX), or link an allocator \
               with caches for each thread (jemalloc, mimalloc, tcmalloc).",
    },
    LibraryLock {
        name: "rand's lock",
        functions: &["rand", "random", "__random", "srand", "srandom", "__srandom", "initstate"],
        symbols: &[],
        anywhere: false,
        mend: "Give each thread a generator of its own (random_r, std::mt19937) instead of rand.",
    },
    LibraryLock {
        name: "tzset_lock",
        functions: &[
            "localtime",
            "localtime_r",
            "__localtime_r",
            "gmtime",
            "gmtime_r",
            "__gmtime_r",
            "mktime",
            "timelocal",
            "strftime",
            "strftime_l",
            "ctime",
            "ctime_r",
            "tzset",
            "__tz_convert",
        ],
        symbols: &["tzset_lock"],
        anywhere: false,
        mend: "Cache the converted time: one conversion a second serves all threads.",
    },
    LibraryLock {
        name: "envlock",
        functions: &["setenv", "putenv", "unsetenv", "clearenv", "getenv", "__add_to_environ"],
        symbols: &["envlock"],
        anywhere: false,
        mend: "Set the environment before threads start, and keep what changes in variables of the \
               program's own.",
    },
    LibraryLock {
        name: "lock of a stdio FILE",
        functions: &[
            "printf",
            "fprintf",
            "vprintf",
            "vfprintf",
            "__printf_chk",
            "__fprintf_chk",
            "__vfprintf_chk",
            "__vprintf_chk",
            "__vfprintf_internal",
            "puts",
            "fputs",
            "putc",
            "fputc",
            "putchar",
            "fwrite",
            "fread",
            "getc",
            "fgetc",
            "fgets",
            "getchar",
            "getline",
            "getdelim",
            "ungetc",
            "perror",
            "fflush",
            "fseek",
            "ftell",
            "rewind",
            "setvbuf",
            "_IO_*",
            "__overflow",
            "__uflow",
        ],
        symbols: &["_IO_stdfile_*"],
        anywhere: false,
        mend: "Write less often: let each thread fill a buffer of its own, and write it in one go.",
    },
    LibraryLock {
        name: "loader lock",
        functions: &[
            "dlopen",
            "dlclose",
            "dlsym",
            "dlvsym",
            "dladdr",
            "dladdr1",
            "dlinfo",
            "dl_iterate_phdr",
            "__dl_iterate_phdr",
            "_dl_open",
            "_dl_close",
            "_dl_addr",
            "_dl_find_object*",
            "_Unwind_Find_FDE",
        ],
        symbols: &["_rtld_global", "_rtld_local", "_dl_load_lock", "_dl_load_write_lock"],
        anywhere: false,
        mend: "Load libraries and look symbols up once, before threads start; exceptions need this \
               lock only before glibc 2.35 and GCC 12.",
    },
    LibraryLock {
        name: "syslog_lock",
        functions: &["syslog", "vsyslog", "__syslog_chk", "__vsyslog_internal", "openlog"],
        symbols: &["syslog_lock"],
        anywhere: false,
        mend: "Hand messages to one thread that calls syslog, so that no other waits for the log.",
    },
    LibraryLock {
        name: "cache of thread stacks",
        functions: &["pthread_create*", "__pthread_create*", "allocate_stack*", "__nptl_*"],
        symbols: &["stack_cache_lock", "_dl_stack_cache_lock"],
        anywhere: false,
        mend: "Keep a pool of threads instead of starting one for each task.",
    },
    LibraryLock {
        name: "jemalloc arena",
        functions: &["je_*", "_rjem_*", "arena_malloc_hard*", "arena_tcache_fill*"],
        symbols: &[],
        anywhere: true,
        mend: "Allow more arenas (MALLOC_CONF=narenas:N), or allocate less often.",
    },
    LibraryLock {
        name: "tcmalloc's lock",
        functions: &["tcmalloc::*"],
        symbols: &[],
        anywhere: true,
        mend: "Allow larger caches for each thread (TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES), or \
               allocate less often.",
    },
    LibraryLock {
        name: "Rust's stdout or stderr",
        functions: &["std::io::stdio::*"],
        symbols: &[],
        anywhere: true,
        mend: "Lock it once for many writes, through a BufWriter, or print from one thread.",
    },
    LibraryLock {
        name: "GVL (Ruby)",
        functions: &["gvl_acquire*", "thread_sched_to_running*", "rb_gvl_*"],
        symbols: &[],
        anywhere: true,
        mend: "One thread at a time runs Ruby: use processes, Ractors, or extensions that release \
               the lock.",
    },
];

/// Most functions of a stack, innermost first, that may belong to the library.
const MAX_CALLERS: usize = 12;

/// The lock that threads with this stack wait for, if a library has it.
pub(super) fn waited_for(callers: &[Caller]) -> Option<&'static LibraryLock> {
    for caller in callers.iter().take(MAX_CALLERS) {
        let in_runtime = is_runtime_file(caller.module.rsplit('/').next().unwrap_or_default());
        let Some(function) = caller.function.as_deref().map(FunctionName::parse) else {
            // A function of a library that was stripped.
            if in_runtime { continue } else { return None }
        };
        let found = LOCKS.iter().find(|lock| {
            let waits = || lock.functions.iter().any(|it| fits(function.path(), it));
            (lock.anywhere || in_runtime) && waits()
        });
        if found.is_some() {
            return found;
        }
        // Those that called the library wait for other locks, too.
        if !in_runtime && function.part() == Part::Program {
            return None;
        }
    }
    None
}

/// The lock at a symbol of the C library or the loader.
pub(super) fn at_symbol(symbol: &str) -> Option<&'static LibraryLock> {
    let symbol = symbol.split('+').next().unwrap_or_default();
    LOCKS.iter().find(|lock| lock.symbols.iter().any(|pattern| fits(symbol, pattern)))
}

fn fits(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(module: &str, function: Option<&str>) -> Caller {
        Caller { function: function.map(str::to_owned), module: module.to_owned() }
    }

    fn name(callers: &[(&str, Option<&str>)]) -> Option<&'static str> {
        let callers: Vec<Caller> = callers.iter().map(|&(file, of)| caller(file, of)).collect();
        waited_for(&callers).map(|lock| lock.name)
    }

    const LIBC: &str = "libc.so.6";

    #[test]
    fn a_library_s_lock_is_known_by_the_function_that_waits_for_it() {
        let wait = (LIBC, Some("__lll_lock_wait_private"));
        assert_eq!(name(&[wait, (LIBC, Some("random")), ("a", Some("w"))]), Some("rand's lock"));
        // The C library is stripped: only functions that it exports have names.
        let stripped = [(LIBC, None), (LIBC, None), (LIBC, Some("malloc")), ("a", Some("w"))];
        assert_eq!(name(&stripped), Some("malloc arena"));
        let nested = [wait, (LIBC, Some("free")), (LIBC, Some("fclose")), ("a", Some("main"))];
        assert_eq!(name(&nested), Some("malloc arena"));
        let rust = [
            (LIBC, Some("syscall")),
            ("app", Some("std::sys::sync::mutex::futex::Mutex::lock_contended")),
            ("app", Some("<std::io::stdio::Stdout as std::io::Write>::write_all")),
        ];
        assert_eq!(name(&rust), Some("Rust's stdout or stderr"));
    }

    #[test]
    fn a_program_s_own_lock_is_none_of_a_library() {
        let wait = (LIBC, Some("__lll_lock_wait"));
        let lock = (LIBC, Some("pthread_mutex_lock"));
        assert_eq!(name(&[wait, lock, ("a", Some("get")), (LIBC, Some("qsort"))]), None);
        // An allocator of the program's own.
        assert_eq!(name(&[wait, lock, ("a", Some("malloc")), ("a", Some("main"))]), None);
        assert_eq!(name(&[wait, lock, ("a", None), (LIBC, Some("malloc"))]), None);
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn symbols_of_the_loader_are_known() {
        assert_eq!(at_symbol("_rtld_global+0xa08").map(|lock| lock.name), Some("loader lock"));
        assert_eq!(at_symbol("main_arena").map(|lock| lock.name), Some("malloc arena"));
        assert!(at_symbol("cache_lock").is_none());
    }

    #[test]
    fn each_mend_is_one_sentence_that_fits_two_lines() {
        for lock in LOCKS {
            assert!(lock.mend.len() <= 150 && lock.mend.ends_with('.'), "{}", lock.mend);
        }
    }
}

//! Locks inside well-known libraries, which a program takes without naming them. Their waiting
//! functions or their symbols identify them.

use crate::function::Part;
use crate::{Caller, FAMILIES, FunctionName, is_runtime_file};

/// A lock inside a library.
#[derive(Debug)]
pub struct LibraryLock {
    /// Name of the lock.
    pub name: &'static str,
    /// Functions that wait for the lock; `*` stands for any suffix.
    pub(crate) functions: &'static [&'static str],
    /// Files in which a waiting function without a name waits for this lock.
    pub(crate) files: &'static [&'static str],
    /// Symbols in the C library or the loader that contain the lock.
    pub(crate) symbols: &'static [&'static str],
    /// True if only this library has functions with these names. Otherwise, the names count only in
    /// the C library.
    pub(crate) anywhere: bool,
    /// Advice in one sentence.
    pub mend: &'static str,
}

/// Number of innermost functions of a stack that are searched for those of a library.
const MAX_CALLERS: usize = 12;

/// Lock of a library for which a thread with this stack waits, if there is one.
pub fn waited_for(callers: &[Caller]) -> Option<&'static LibraryLock> {
    for caller in callers.iter().take(MAX_CALLERS) {
        let file = caller.module.rsplit('/').next().unwrap_or_default();
        let in_runtime = is_runtime_file(file);
        let Some(function) = caller.function.as_deref().map(FunctionName::parse) else {
            // The function may belong to a stripped library.
            match in_runtime {
                true => continue,
                false => return locks().find(|lock| lock.files.iter().any(|it| fits(file, it))),
            }
        };
        let found = locks().find(|lock| {
            let waits = || lock.functions.iter().any(|it| fits(function.path(), it));
            (lock.anywhere || in_runtime) && waits()
        });
        if found.is_some() {
            return found;
        }
        // Even if a library called it, a function of the program may wait for a lock of its own.
        if !in_runtime && function.part() == Part::Program {
            return None;
        }
    }
    None
}

/// The lock of a library that a function takes, on whatever its waiters sleep.
pub fn taken_in(function: &str) -> Option<&'static LibraryLock> {
    let function = FunctionName::parse(function);
    FAMILIES.iter().find_map(|family| {
        let inside = family.takes_lock_inside.contains(&function.path());
        let takes = |lock: &LibraryLock| {
            inside || lock.anywhere && lock.functions.iter().any(|it| fits(function.path(), it))
        };
        family.library_locks.iter().find(|lock| takes(lock))
    })
}

/// The lock of a library with this name.
pub fn named(name: &str) -> Option<&'static LibraryLock> {
    locks().find(|lock| lock.name == name)
}

/// The lock that a symbol of the C library or the loader contains.
pub fn at_symbol(symbol: &str) -> Option<&'static LibraryLock> {
    let symbol = symbol.split('+').next().unwrap_or_default();
    locks().find(|lock| lock.symbols.iter().any(|pattern| fits(symbol, pattern)))
}

fn locks() -> impl Iterator<Item = &'static LibraryLock> {
    FAMILIES.iter().flat_map(|family| family.library_locks)
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
        // In a stripped C library, only exported functions have names.
        let stripped = [(LIBC, None), (LIBC, None), (LIBC, Some("malloc")), ("a", Some("w"))];
        assert_eq!(name(&stripped), Some("malloc arena"));
        let allocator = [(LIBC, Some("pthread_mutex_lock")), ("/usr/lib/libjemalloc.so.2", None)];
        assert_eq!(name(&allocator), Some("jemalloc arena"));
        let heap = [
            (LIBC, Some("pthread_mutex_lock")),
            ("libjvm.so", Some("Mutex::lock()")),
            ("libjvm.so", Some("ParallelScavengeHeap::mem_allocate(unsigned long, bool*)")),
        ];
        assert_eq!(name(&heap), Some("Java's heap lock"));
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
        // The program's own allocator.
        assert_eq!(name(&[wait, lock, ("a", Some("malloc")), ("a", Some("main"))]), None);
        assert_eq!(name(&[wait, lock, ("a", None), (LIBC, Some("malloc"))]), None);
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn a_function_of_ruby_takes_its_global_lock() {
        let taken = |function| taken_in(function).map(|lock| lock.name);
        assert_eq!(taken("rb_threadptr_execute_interrupts"), Some("GVL (Ruby)"));
        assert_eq!(taken("thread_sched_to_running_common.constprop.0"), Some("GVL (Ruby)"));
        assert_eq!(taken("boost::shared_mutex::lock()"), None);
        assert!(named("GVL (Ruby)").is_some() && named("").is_none());
    }

    #[test]
    fn symbols_of_the_loader_are_known() {
        assert_eq!(at_symbol("_rtld_global+0xa08").map(|lock| lock.name), Some("loader lock"));
        assert_eq!(at_symbol("main_arena").map(|lock| lock.name), Some("malloc arena"));
        assert!(at_symbol("cache_lock").is_none());
    }

    #[test]
    fn each_mend_is_one_sentence_that_fits_two_lines() {
        for lock in locks() {
            assert!(lock.mend.len() <= 150 && lock.mend.ends_with('.'), "{}", lock.mend);
        }
    }
}

//! Recognises functions that spin until they have a lock, by their names.
//!
//! Waiters of a spin lock keep running, so they look like threads at work. A loop that is inlined
//! into the program's own code is not recognised, because the name of its function is lost.

use crate::{FAMILIES, FunctionName};

/// Returns `true` if a function with this demangled name spins until it has a lock.
pub fn spins_for_a_lock(function: &str) -> bool {
    let name = FunctionName::parse(function);
    let is_it = |known: &&str| [name.last(), name.path()].contains(known);
    if FAMILIES.iter().any(|family| family.spins.iter().any(is_it)) {
        return true;
    }
    let name = name.last().to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(&["spin_lock", "spinlock", "spin_mutex", "spinmutex", "lock_spin", "mutex_spin"])
        && !has(&["unlock", "try", "init", "destroy", "release", "free", "new"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_functions_are_known_by_name() {
        for name in [
            "pthread_spin_lock",
            "__pthread_spin_lock",
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "absl::base_internal::SpinLock::SlowLock()",
            "ObjectMonitor::TrySpin(JavaThread*)",
            "runtime.lock2",
            "__kmpc_critical_with_hint",
            "omp_set_lock",
            "spin_lock<int>(int&)",
            "SpinMutex::acquire_spin_lock",
        ] {
            assert!(spins_for_a_lock(name), "{name}");
        }
        for name in [
            "pthread_spin_unlock",
            "pthread_spin_trylock",
            "pthread_mutex_lock",
            "__kmpc_barrier",
            "spindle_blocks",
            "spin_the_wheel",
            "do_spin",
            "main",
            "",
        ] {
            assert!(!spins_for_a_lock(name), "{name}");
        }
    }
}

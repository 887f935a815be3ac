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

/// Returns `true` if a function with this demangled name tries once to take the lock at the address
/// in the register of its first argument, and then spins in a loop until it has the lock.
pub fn spins_at_argument(function: &str) -> bool {
    let name = FunctionName::parse(function);
    FAMILIES.iter().any(|family| family.spins_at_argument.contains(&name.path()))
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

    #[test]
    fn the_lock_of_some_functions_is_in_a_register() {
        let known = ["pthread_spin_lock", "__pthread_spin_lock"];
        assert!(known.into_iter().all(spins_at_argument));
        let others = ["pthread_spin_trylock", "my::pthread_spin_lock", "spin_lock", "s_lock"];
        assert!(!others.into_iter().any(spins_at_argument));
    }
}

//! Locks of LLVM's OpenMP library, which is also Intel's.
//!
//! Threads that wait for a critical section or a lock spin, and yield the CPU if there are more
//! threads than CPUs. So there is no futex word to recognise.
//!
//! Source: LLVM, `openmp/runtime/src/kmp_lock.cpp` and `kmp_csupport.cpp`.

use super::Family;
use crate::function::Part;

/// Functions that return once the thread has a lock.
const TAKERS: &[&str] = &[
    "__kmpc_critical",
    "__kmpc_critical_with_hint",
    "__kmpc_set_lock",
    "__kmpc_set_nest_lock",
    "omp_set_lock",
    "omp_set_nest_lock",
];

pub(super) static FAMILY: Family = Family {
    functions: &[
        ("__kmp_acquire_", Part::Lock),
        ("__kmpc_critical", Part::Lock),
        ("__kmpc_set_lock", Part::Lock),
        ("__kmpc_set_nest_lock", Part::Lock),
        ("__kmp", Part::Library),
        ("libomp.so", Part::Library),
        ("libomp-", Part::Library),
        ("libiomp5.so", Part::Library),
    ],
    takes_lock: TAKERS,
    spins: TAKERS,
    ..Family::NONE
};

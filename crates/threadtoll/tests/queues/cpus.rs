//! The CPUs that this process may use.

/// The numbers of the CPUs; empty if unknown.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> Vec<usize> {
    // SAFETY: all zeros is a valid `cpu_set_t`.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid, and its size is passed.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) } != 0 {
        return Vec::new();
    }
    // SAFETY: the set was filled in, and the index is inside it.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) })
        .collect()
}

/// Pins the calling thread to a CPU. Returns `false` on failure.
#[cfg(target_os = "linux")]
pub(crate) fn bind(cpu: usize) -> bool {
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is inside the set.
    unsafe { libc::CPU_SET(cpu, &mut one) };
    // SAFETY: the set is valid, and its size is told.
    unsafe { libc::sched_setaffinity(0, size_of_val(&one), &one) == 0 }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn bind(_: usize) -> bool {
    false
}

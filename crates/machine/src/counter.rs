//! Counters that stamps read, and the order of a reading among other instructions.
//!
//! **x86.** `lfence; rdtsc; lfence`. `rdtsc` alone may be reordered with its neighbours. The first
//! `lfence` delays it until earlier instructions have completed, such as the load that saw the
//! partner's message. The second `lfence` delays later instructions, such as spinning for the
//! answer, until the counter has been read. (Intel SDM 2B, `RDTSC`. On AMD CPUs where this is
//! configurable, Linux makes `lfence` dispatch-serialising at boot.)
//!
//! A *store* before the stamp may still be in the store buffer, as it should: its way to the other
//! CPU is part of the hand-off. A store after the stamp cannot become visible before the reading,
//! because stores leave the buffer in order after they retire. `rdtscp` waits for all earlier
//! instructions, so it needs only the second fence.
//!
//! **aarch64.** `isb; mrs cntvct_el0; isb`. The counter may be read speculatively. The first `isb`
//! keeps the reading behind the branch out of a spin loop, and so behind the load on which the
//! branch depends. The second `isb` keeps later instructions behind the reading (Arm ARM, "Ordering
//! of reads of the counter").
//!
//! **Otherwise.** `CLOCK_MONOTONIC_RAW` through the vDSO, which orders the reading after earlier
//! instructions. Later loads may begin some nanoseconds early, while the vDSO converts the reading.
//!
//! The assembly is not `nomem`, so the compiler moves no memory access across a stamp.

use threadtoll_record::ClockSource;

use crate::place::current_cpu;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    #[cfg(target_arch = "x86_64")]
    Tsc,
    #[cfg(target_arch = "aarch64")]
    Cntvct,
    /// `CLOCK_MONOTONIC_RAW`; a tick is a nanosecond.
    Raw,
}

impl Counter {
    /// Ordered as the module head describes.
    #[inline(always)]
    pub(crate) fn read(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => tsc(),
            #[cfg(target_arch = "aarch64")]
            Counter::Cntvct => cntvct(),
            Counter::Raw => raw_ns(),
        }
    }

    /// Reads the counter and the CPU. If `aux_names_cpu` is true, one instruction reads both.
    #[inline(always)]
    pub(crate) fn read_with_cpu(self, aux_names_cpu: bool) -> (u64, u32) {
        #[cfg(target_arch = "x86_64")]
        if aux_names_cpu {
            return tsc_with_cpu();
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = aux_names_cpu;
        (self.read(), current_cpu())
    }

    pub(crate) fn source(self) -> ClockSource {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => ClockSource::Tsc,
            #[cfg(target_arch = "aarch64")]
            Counter::Cntvct => ClockSource::Cntvct,
            Counter::Raw => ClockSource::MonotonicRaw,
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn tsc() -> u64 {
    let ticks: u64;
    // SAFETY: the instructions exist on every x86-64 CPU and touch only the named registers. The
    // gate checked with the kernel (`PR_GET_TSC`) that they do not trap.
    unsafe {
        std::arch::asm!(
            "lfence", "rdtsc", "shl rdx, 32", "or rax, rdx", "lfence",
            out("rax") ticks, out("rdx") _, options(nostack),
        );
    }
    ticks
}

/// Linux stores the CPU in the low 12 bits of `IA32_TSC_AUX`, and the node above them
/// (`VDSO_CPUNODE_MASK`).
#[cfg(target_arch = "x86_64")]
pub(crate) const AUX_CPU_MASK: u32 = 0xfff;

/// The time-stamp counter and the CPU in `IA32_TSC_AUX`. Needs `rdtscp` in CPUID.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn tsc_with_cpu() -> (u64, u32) {
    let ticks: u64;
    let aux: u32;
    // SAFETY: callers looked for `rdtscp` in CPUID, or hold a clock whose gate did; only the named
    // registers change.
    unsafe {
        std::arch::asm!(
            "rdtscp", "shl rdx, 32", "or rax, rdx", "lfence",
            out("rax") ticks, out("rdx") _, out("ecx") aux, options(nostack),
        );
    }
    (ticks, aux & AUX_CPU_MASK)
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn cntvct() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets EL0 read the virtual count (directly or by emulation), and no other state
    // changes.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds; 0 if the call fails, which the gate detects.
#[inline(always)]
pub(crate) fn raw_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, writable timespec. On failure it stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

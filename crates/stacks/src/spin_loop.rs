//! Recognises, by their machine instructions, loops that spin until another thread changes a word.
//! This finds locks that were inlined into the program's own code and so have no function name.
//!
//! On AArch64, a spin loop contains `yield` or `isb`. On x86-64, it does one of the following:
//!
//! - it contains `pause`;
//! - it exchanges a word (`xchg`) and jumps back at once;
//! - it only reads a word again and again;
//! - it only compares and exchanges a word with a constant.
//!
//! About one in several thousand other instruction sequences matches by chance. A loop that reads a
//! value, changes it, and then compares and exchanges it does not match, because counters use such
//! loops, too.

#[cfg(target_arch = "x86_64")]
mod x86;

/// Number of bytes of code to search on each side of an instruction.
pub(crate) const AROUND: usize = 48;

/// Maximum distance in bytes from the instruction to a `pause` or an exchange.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const NEAR: usize = 24;

/// The code around position `at`, and the position of the instruction within that code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn near(code: &[u8], at: usize) -> (&[u8], usize) {
    let from = at.saturating_sub(NEAR);
    (&code[from.min(code.len())..code.len().min(at + NEAR)], at - from)
}

/// Number of bytes of an instruction by which a thread tells the CPU that it spins.
#[cfg(target_arch = "x86_64")]
const HINT: usize = 2;
#[cfg(not(target_arch = "x86_64"))]
const HINT: usize = 4;

/// Returns `true` if the code contains an instruction by which a thread tells the CPU that it
/// spins:
/// `pause`.
#[cfg(target_arch = "x86_64")]
fn has_hint(code: &[u8]) -> bool {
    const PAUSE: [u8; HINT] = [0xf3, 0x90];
    code.windows(HINT).any(|bytes| *bytes == PAUSE)
}

/// Returns `true` if the code contains an instruction by which a thread tells the CPU that it
/// spins:
/// `yield` or `isb`.
#[cfg(target_arch = "aarch64")]
fn has_hint(code: &[u8]) -> bool {
    const YIELD: u32 = 0xd503_203f;
    const ISB: u32 = 0xd503_3fdf;
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    code.chunks_exact(HINT).any(|bytes| matches!(word(bytes), YIELD | ISB))
}

/// Not implemented for other architectures.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_hint(_: &[u8]) -> bool {
    false
}

/// Returns `true` if a function with this code has a loop with such an instruction, and that loop
/// begins after position `at`.
pub(crate) fn is_before_loop(code: &[u8], at: usize) -> bool {
    let passed = &code[..code.len().min(at.saturating_add(HINT))];
    has_hint(code) && !has_hint(passed)
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn is_spin_loop(code: &[u8], at: usize) -> bool {
    if x86::only_waits(code, at) {
        return true;
    }
    let (code, at) = near(code, at);
    // Bytes from the exchange to the jump back. A test such as `test %al,%al` lies between them.
    const MOST_BETWEEN: usize = 12;
    let jumps_back = |from: usize, to: usize| {
        let code = &code[from..];
        let jump = code.windows(2).take(MOST_BETWEEN).enumerate().find_map(|(place, pair)| {
            let back = (pair[1] as i8).unsigned_abs() as usize;
            let is_jump = matches!(pair[0], 0x74 | 0x75 | 0xeb) && (pair[1] as i8) < 0;
            is_jump.then_some((place + 2, back))
        });
        jump.is_some_and(|(end, back)| (from + end).checked_sub(back).is_some_and(|it| it <= to))
    };
    // `xchg` of a register with memory.
    let exchanges = |place: usize| {
        let is_exchange = matches!(code[place], 0x86 | 0x87);
        let memory = code.get(place + 1).is_some_and(|byte| byte >> 6 != 3);
        is_exchange && memory && place.abs_diff(at) <= MOST_BETWEEN && jumps_back(place + 2, place)
    };
    has_hint(code) || (0..code.len()).any(exchanges)
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn is_spin_loop(code: &[u8], at: usize) -> bool {
    let (code, at) = near(code, at);
    has_hint(&code[at % HINT..])
}

/// Not implemented for other architectures.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn is_spin_loop(_: &[u8], _: usize) -> bool {
    false
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn loops_that_spin_are_known_by_their_instructions() {
        // `mov %edx,%eax; xchg %al,flag(%rip); test %al,%al; jne` to the beginning.
        let exchange = [0x89, 0xd0, 0x86, 0x05, 1, 2, 0, 0, 0x84, 0xc0, 0x75, 0xf4, 0xc3];
        assert!(is_spin_loop(&exchange, 8));
        // An exchange outside a loop, and an exchange of two registers.
        assert!(!is_spin_loop(&[0x86, 0x05, 1, 2, 0, 0, 0x84, 0xc0, 0x75, 0x10], 6));
        assert!(!is_spin_loop(&[0x87, 0xc1, 0x84, 0xc0, 0x75, 0xfa], 2));
        // `pause; cmpb $0,(%rdi); jne`.
        assert!(is_spin_loop(&[0xf3, 0x90, 0x80, 0x3f, 0, 0x75, 0xf9], 2));
        // `lock incl (%rdi); dec %ecx; jne`.
        assert!(!is_spin_loop(&[0xf0, 0xff, 0x07, 0xff, 0xc9, 0x75, 0xf9], 3));
    }

    #[test]
    fn a_first_attempt_lies_before_the_loop() {
        // `pthread_spin_lock` of glibc 2.36: `lock decl (%rdi); jne; xor %eax,%eax; ret; nop`, then
        // `pause; cmpl $0,(%rdi); jg` to the beginning, and `jmp` to the `pause`.
        let code = [
            0xf0, 0xff, 0x0f, 0x75, 0x0b, 0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x84, 0, 0, 0, 0,
            0, //
            0xf3, 0x90, 0x83, 0x3f, 0, 0x7f, 0xe9, 0xeb, 0xf7,
        ];
        let before = [0, 3, 5, 7, 16, 18, 21, 23].map(|at| is_before_loop(&code, at));
        assert_eq!(before, [true, true, true, true, false, false, false, false]);
        assert!(!is_before_loop(&code[..8], 3), "a function without a loop");
        assert!(!is_before_loop(&code, usize::MAX));
    }
}

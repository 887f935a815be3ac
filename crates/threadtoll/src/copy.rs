//! Copies messages into and out of memory that two CPUs share.
//!
//! To copy some kilobytes, `memcpy` of glibc 2.36 uses `rep movsb`. During this instruction, an AMD
//! Zen 3 seems to wait for earlier stores to cache lines that another CPU owns: a sender that
//! copied 4-KiB slices with it took 2.8 µs per slice instead of 0.3 µs. For a few words, the call
//! of `memcpy` alone costs more than the copy.

use std::mem::MaybeUninit;

/// Largest size in bytes that a compiler copies without a call.
const INLINE_BYTES: usize = 128;
/// Number of bytes that the loop copies per iteration.
const PASS: usize = 64;

/// Moves a message to `to`.
///
/// # Safety
///
/// `to` must be valid for writes and aligned.
#[inline(always)]
pub(crate) unsafe fn write<T>(to: *mut T, message: T) {
    if size_of::<T>() <= INLINE_BYTES {
        // SAFETY: the caller's promise.
        unsafe { to.write(message) };
        return;
    }
    let message = MaybeUninit::new(message);
    // SAFETY: the caller's promise; the message is a local variable, and is not used again.
    unsafe { copy(message.as_ptr(), to, 1) };
}

/// Moves a message out of `from`.
///
/// # Safety
///
/// `from` must be valid for reads, aligned, and contain a message, which may be moved out only
/// once.
#[inline(always)]
pub(crate) unsafe fn read<T>(from: *const T) -> T {
    if size_of::<T>() <= INLINE_BYTES {
        // SAFETY: the caller's promise.
        return unsafe { from.read() };
    }
    let mut message = MaybeUninit::uninit();
    // SAFETY: the caller's promise; the message is a local variable.
    unsafe { copy(from, message.as_mut_ptr(), 1) };
    // SAFETY: copied from a message.
    unsafe { message.assume_init() }
}

/// Copies contiguous messages.
///
/// # Safety
///
/// `from` must be valid for reads of `count` messages, and `to` for writes of as many. They must
/// not overlap.
#[inline(always)]
pub(crate) unsafe fn copy<T>(from: *const T, to: *mut T, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_bytes(from.cast(), to.cast(), count * size_of::<T>()) };
}

/// Like [`copy`], for bytes, which may be parts of messages, contain pointers or be uninitialised.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    /// Copies the `size_of::<N>()` bytes at offset `at` through a register.
    macro_rules! part {
        ($N:ty, $at:expr) => {{
            // SAFETY: inside the bytes that are copied.
            let from = unsafe { from.add($at) }.cast::<MaybeUninit<$N>>();
            // SAFETY: inside the bytes that are copied.
            let to = unsafe { to.add($at) }.cast::<MaybeUninit<$N>>();
            // SAFETY: valid; `MaybeUninit` may hold anything.
            let part = unsafe { from.read_unaligned() };
            // SAFETY: valid; `MaybeUninit` may hold anything.
            unsafe { to.write_unaligned(part) };
        }};
    }
    use std::arch::x86_64::__m128i as Wide;

    /// Copies the bytes that the loop leaves: one value of each type `N` whose size is a set bit of
    /// `bytes`, from the largest type to the smallest.
    macro_rules! rest {
        ($($N:ty)+) => {$(
            if bytes & size_of::<$N>() != 0 {
                part!($N, bytes & !(2 * size_of::<$N>() - 1));
            }
        )+};
    }

    let mut at = 0;
    // Written as four copies; otherwise the compiler would turn the loop into a call of `memcpy`.
    while at + PASS <= bytes {
        part!(Wide, at);
        part!(Wide, at + 16);
        part!(Wide, at + 32);
        part!(Wide, at + 48);
        at += PASS;
    }
    rest!([Wide; 2] Wide u64 u32 u16 u8);
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_and_no_other() {
        let source: Vec<u8> = (0..400u32).map(|byte| byte as u8 | 1).collect();
        for count in 0..300 {
            for offset in [0, 1, 7] {
                let mut target = vec![0u8; 400];
                let (from, to) = (&source[offset..], &mut target[3..]);
                // SAFETY: both have that many bytes.
                unsafe { copy(from.as_ptr(), to.as_mut_ptr(), count) };
                assert_eq!(target[3..3 + count], source[offset..offset + count]);
                assert!(target[..3].iter().chain(&target[3 + count..]).all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn messages_are_moved_whole() {
        fn check<const N: usize>() {
            let message: [String; N] = std::array::from_fn(|index| index.to_string());
            let mut place = MaybeUninit::uninit();
            // SAFETY: room for a message.
            unsafe { write(place.as_mut_ptr(), message.clone()) };
            // SAFETY: just written, and moved out once.
            assert_eq!(unsafe { read(place.as_ptr()) }, message);
        }
        check::<1>();
        check::<6>();
        check::<100>();
    }
}

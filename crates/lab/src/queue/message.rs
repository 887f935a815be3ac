//! Messages of several sizes. Every word of a message follows from the message's number, so a
//! receiver can verify every word.

use std::fmt;
use std::mem::MaybeUninit;

use super::words::{count_up, count_up_into, difference};

/// Number of low bits of each word in which the words of a message count up. The bits above hold
/// the message's number. The low bits suffice for the largest message, so no word occurs twice.
const INDEX_BITS: u32 = 20;

/// Sizes in bytes of the types that implement [`Message`].
pub const MESSAGE_BYTES: [u64; 5] = [8, 64, 512, 4096, 65_536];

/// Returns the first word of message `number`. The other words count up from it.
pub(super) fn first_word(number: u64) -> u64 {
    number << INDEX_BITS
}

pub(super) fn number(first_word: u64) -> u64 {
    first_word >> INDEX_BITS
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl<const N: usize> Sealed for super::Words<N> {}
}

/// A message of a queue: a single word, or [`Words`].
pub trait Message: sealed::Sealed + Copy + Send + Sync + fmt::Debug + 'static {
    /// Returns a message whose words all equal `word`.
    fn all(word: u64) -> Self;

    /// Writes every word of message `number` into `place`.
    fn fill(place: &mut MaybeUninit<Self>, number: u64);

    /// Like [`fill`](Self::fill), but overwrites an existing message.
    fn overwrite(&mut self, number: u64);

    /// Returns the first word of the message.
    fn first(&self) -> u64;

    /// Returns the bits in which any word differs from message `number`; 0 if no word does.
    fn difference(&self, number: u64) -> u64;

    /// Returns message `number`.
    #[inline(always)]
    fn numbered(number: u64) -> Self {
        let mut place = MaybeUninit::uninit();
        Self::fill(&mut place, number);
        // SAFETY: `fill` writes all of `place`; only this module implements `fill`.
        unsafe { place.assume_init() }
    }
}

impl Message for u64 {
    #[inline(always)]
    fn all(word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn fill(place: &mut MaybeUninit<Self>, number: u64) {
        place.write(first_word(number));
    }

    #[inline(always)]
    fn overwrite(&mut self, number: u64) {
        *self = first_word(number);
    }

    #[inline(always)]
    fn first(&self) -> u64 {
        *self
    }

    #[inline(always)]
    fn difference(&self, number: u64) -> u64 {
        self ^ first_word(number)
    }
}

/// A message of `N` words.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Words<const N: usize>([u64; N]);

impl<const N: usize> fmt::Debug for Words<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} words from {:?}", self.0.first())
    }
}

impl<const N: usize> Message for Words<N> {
    #[inline(always)]
    fn all(word: u64) -> Self {
        Words([word; N])
    }

    #[inline(always)]
    fn fill(place: &mut MaybeUninit<Self>, number: u64) {
        let words = place.as_mut_ptr().cast::<[MaybeUninit<u64>; N]>();
        // SAFETY: `Words` is transparent, and uninitialised words have the layout of words.
        let words = unsafe { &mut *words };
        count_up_into(words, first_word(number));
    }

    #[inline(always)]
    fn overwrite(&mut self, number: u64) {
        count_up(&mut self.0, first_word(number));
    }

    #[inline(always)]
    fn first(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
    }

    #[inline(always)]
    fn difference(&self, number: u64) -> u64 {
        difference(&self.0, first_word(number))
    }
}

#[cfg(test)]
impl<const N: usize> Words<N> {
    pub(super) fn overwrite_half_of(&mut self, other: &Self) {
        self.0[N / 2..].copy_from_slice(&other.0[N / 2..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_word_is_verified<const N: usize>() {
        let message = Words::<N>::numbered(7);
        assert_eq!(message.difference(7), 0);
        let mut other = message;
        other.overwrite(8);
        assert_eq!(other.difference(8), 0);
        assert_ne!(message.difference(6), 0, "another message");
        for place in [0, N / 2, N - 1] {
            let mut damaged = message;
            damaged.0[place] ^= 1 << 40;
            assert_eq!(damaged.difference(7), 1 << 40, "word {place}");
        }
        let older = Words::<N>::numbered(7 - 4);
        let mut torn = message;
        torn.overwrite_half_of(&older);
        assert_ne!(torn.difference(7), 0, "half of it is of an older message");
    }

    #[test]
    fn a_damaged_or_torn_message_is_detected_whatever_its_size() {
        every_word_is_verified::<8>();
        every_word_is_verified::<64>();
        every_word_is_verified::<512>();
        every_word_is_verified::<8192>();
        assert_eq!(u64::numbered(7).difference(7), 0);
        assert_ne!(u64::numbered(7).difference(8), 0);
    }

    #[test]
    fn sizes_are_those_of_the_types() {
        let sizes = [
            size_of::<u64>(),
            size_of::<Words<8>>(),
            size_of::<Words<64>>(),
            size_of::<Words<512>>(),
            size_of::<Words<8192>>(),
        ];
        assert_eq!(sizes.map(|bytes| bytes as u64), MESSAGE_BYTES);
    }
}

//! Passes in which a stream fills and verifies words, in addition to the queue's work. They must
//! affect neither the figures of queues nor those of the bare copy, so the passes are compiled for
//! the widest vectors that LLVM uses by default, and use these if the CPU supports them.

use std::mem::MaybeUninit;

/// Up to this number of words, calling the wide version of a pass costs more than the pass itself.
const FEW: usize = 8;

/// Compiles a pass twice, plain and wide; uses the wide version if the CPU supports it and there
/// are enough words.
macro_rules! pass {
    ($(#[$doc:meta])* $name:ident($words:ident: $slice:ty $(, $argument:ident: $type:ty)?) $(-> $result:ty)? $body:block) => {
        $(#[$doc])*
        #[inline(always)]
        pub(super) fn $name($words: $slice $(, $argument: $type)?) $(-> $result)? {
            #[inline(always)]
            fn plain($words: $slice $(, $argument: $type)?) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn wide($words: $slice $(, $argument: $type)?) $(-> $result)? {
                plain($words $(, $argument)?)
            }

            #[cfg(target_arch = "x86_64")]
            if $words.len() > FEW && is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU supports these instructions.
                return unsafe { wide($words $(, $argument)?) };
            }
            plain($words $(, $argument)?)
        }
    };
}

pass! {
    /// Fills the words, counting up from `first`.
    count_up(words: &mut [u64], first: u64) {
        for (index, word) in words.iter_mut().enumerate() {
            *word = first.wrapping_add(index as u64);
        }
    }
}

pass! {
    /// Like [`count_up`], into memory that may be uninitialised.
    count_up_into(words: &mut [MaybeUninit<u64>], first: u64) {
        for (index, word) in words.iter_mut().enumerate() {
            word.write(first.wrapping_add(index as u64));
        }
    }
}

pass! {
    /// Bits in which any of the words differs from its expected value, if words should count up
    /// from `first`. 0 if all words are right.
    difference(words: &[u64], first: u64) -> u64 {
        words.iter().enumerate().fold(0, |wrong, (index, word)| wrong | (word ^ first.wrapping_add(index as u64)))
    }
}

pass! {
    /// Sum of the words.
    sum(words: &[u64]) -> u64 {
        words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_counts_whatever_the_length() {
        for length in 0..100usize {
            for first in [1, u64::MAX - 10] {
                let mut words = vec![0; length];
                count_up(&mut words, first);
                assert!(
                    words
                        .iter()
                        .zip(0u64..)
                        .all(|(word, index)| *word == first.wrapping_add(index))
                );
                assert_eq!(difference(&words, first), 0);
                let all = words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
                assert_eq!(sum(&words), all);
                for place in 0..length {
                    words[place] ^= 1 << (place % 64);
                    assert_eq!(difference(&words, first), 1 << (place % 64));
                    assert_ne!(sum(&words), all);
                    words[place] ^= 1 << (place % 64);
                }
            }
        }
    }
}

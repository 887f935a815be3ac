//! Loops that fill and verify the words of messages. Their time must not show in the figures of the
//! queues or of the bare copy. On x86-64, each loop is therefore also compiled for AVX2, and that
//! version runs if the CPU supports it.

use std::mem::MaybeUninit;

/// Up to this number of words, a call of the wide version costs more than the loop itself.
const FEW: usize = 8;

/// Compiles a loop twice, plain and wide. Runs the wide version if the CPU supports it and there
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
                // SAFETY: the CPU supports AVX2.
                return unsafe { wide($words $(, $argument)?) };
            }
            plain($words $(, $argument)?)
        }
    };
}

pass! {
    count_up(words: &mut [u64], first: u64) {
        for (index, word) in words.iter_mut().enumerate() {
            *word = first.wrapping_add(index as u64);
        }
    }
}

pass! {
    count_up_into(words: &mut [MaybeUninit<u64>], first: u64) {
        for (index, word) in words.iter_mut().enumerate() {
            word.write(first.wrapping_add(index as u64));
        }
    }
}

pass! {
    /// Returns the bits in which any word differs from the sequence that counts up from `first`; 0
    /// if no word does.
    difference(words: &[u64], first: u64) -> u64 {
        words.iter().enumerate().fold(0, |wrong, (index, word)| wrong | (word ^ first.wrapping_add(index as u64)))
    }
}

pass! {
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

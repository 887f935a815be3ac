//! Contents of messages: the sequence number, then words that count up from it. The receiver reads
//! them all.

/// Fills a message, starting with its sequence number.
#[inline(always)]
pub(super) fn write_message(message: &mut [u64], seq: u64) {
    for (index, word) in message.iter_mut().enumerate() {
        *word = seq.wrapping_add(index as u64);
    }
}

/// Reads a whole message and returns its sequence number, or a different number if any part is
/// wrong.
#[inline(always)]
pub(super) fn read_message(message: &[u64]) -> u64 {
    let sum = message.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    verify_sum(message[0], sum, message.len())
}

/// Checks the sum of the words, where word `index` of message `seq` is `seq + index`. Returns `seq`
/// if the sum is right, and a different number otherwise.
#[inline(always)]
pub(super) fn verify_sum(seq: u64, sum: u64, words: usize) -> u64 {
    let words = words as u64;
    let expected = seq.wrapping_mul(words).wrapping_add(words * words.wrapping_sub(1) / 2);
    // The difference is 0 if the sum is right; otherwise it flips some bits of `seq`.
    seq ^ (sum ^ expected)
}

/// The bytes of a message, for the kernel to copy.
#[inline(always)]
pub(super) fn bytes(message: &[u64]) -> &[u8] {
    // SAFETY: any word is eight valid bytes, the length covers the words, and bytes need no
    // alignment.
    unsafe { std::slice::from_raw_parts(message.as_ptr().cast(), size_of_val(message)) }
}

/// The writable bytes of a message.
#[inline(always)]
pub(super) fn bytes_mut(message: &mut [u64]) -> &mut [u8] {
    // SAFETY: as above, and any eight bytes are a valid word.
    unsafe { std::slice::from_raw_parts_mut(message.as_mut_ptr().cast(), size_of_val(message)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_back_as_its_number_and_a_changed_one_does_not() {
        for words in [1usize, 2, 8, 513] {
            let mut message = vec![0; words];
            for seq in [1, 2, u64::MAX - 1] {
                write_message(&mut message, seq);
                assert_eq!(read_message(&message), seq);
                let last = words - 1;
                message[last] ^= 4;
                assert_ne!(read_message(&message), seq);
            }
        }
    }

    #[test]
    fn an_old_message_is_not_taken_for_a_new_one() {
        let mut message = vec![0; 8];
        write_message(&mut message, 6);
        message[0] = 7;
        assert_ne!(read_message(&message), 7, "only the number is new");
    }
}

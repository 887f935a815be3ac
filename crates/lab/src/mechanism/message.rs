//! Contents of a message: the sequence number, then words that count up from it. The receiver reads
//! every word.

#[inline(always)]
pub(super) fn write_message(message: &mut [u64], seq: u64) {
    for (index, word) in message.iter_mut().enumerate() {
        *word = seq.wrapping_add(index as u64);
    }
}

/// Returns the message's sequence number, or a different number if any word is wrong.
#[inline(always)]
pub(super) fn read_message(message: &[u64]) -> u64 {
    let sum = message.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    verify_sum(message[0], sum, message.len())
}

/// Returns `seq` if `sum` is the sum of the words of message `seq`, and a different number
/// otherwise. Word `i` of message `seq` is `seq + i`.
#[inline(always)]
pub(super) fn verify_sum(seq: u64, sum: u64, words: usize) -> u64 {
    let words = words as u64;
    let expected = seq.wrapping_mul(words).wrapping_add(words * words.wrapping_sub(1) / 2);
    // `sum ^ expected` is 0 if the sum is right; otherwise it flips bits of `seq`.
    seq ^ (sum ^ expected)
}

#[inline(always)]
pub(super) fn bytes(message: &[u64]) -> &[u8] {
    // SAFETY: a word is eight valid bytes, the length is that of all words, and bytes need no
    // alignment.
    unsafe { std::slice::from_raw_parts(message.as_ptr().cast(), size_of_val(message)) }
}

#[inline(always)]
pub(super) fn bytes_mut(message: &mut [u64]) -> &mut [u8] {
    // SAFETY: as in `bytes`; also, any eight bytes are a valid word.
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

//! Stalls of a sender: the shares that held up others.

use crate::{Count, FunnelBlock, Ns, Stalls, StallsBlock};

use super::{rounded_ns, significant};

/// Two-sided 95% quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// The stalls of a cell's blocks; `None` if it has none.
pub(super) fn stalls<'b>(blocks: impl Iterator<Item = &'b FunnelBlock>) -> Option<Stalls> {
    let own: Vec<StallsBlock> = blocks.filter_map(|block| block.stalls).collect();
    own.first()?;
    let sum = |of: fn(&StallsBlock) -> Count| own.iter().map(of).sum::<Count>();
    let count = sum(|block| block.count);
    let share = |held: Count| {
        let (share, interval) = wilson(held.as_f64(), count.as_f64())?;
        Some((significant(share).into(), interval.map(|bound| significant(bound).into())))
    };
    let longest = |of: fn(&StallsBlock) -> Ns| {
        let longest = own.iter().map(|block| of(block).get()).max_by(f64::total_cmp);
        longest.filter(|_| count.get() > 0).map(rounded_ns)
    };
    let receiver = share(sum(|block| block.held_receiver));
    let senders = share(sum(|block| block.held_senders));
    Some(Stalls {
        count,
        held_receiver: receiver.map(|(share, _)| share),
        held_receiver_interval95: receiver.map(|(_, interval)| interval),
        held_senders: senders.map(|(share, _)| share),
        held_senders_interval95: senders.map(|(_, interval)| interval),
        longest_delivery_ns: longest(|block| block.longest_delivery_ns),
        longest_send_ns: longest(|block| block.longest_send_ns),
    })
}

/// A share with its 95% score interval (E. B. Wilson, *Probable inference*, 1927). Resampled blocks
/// would give no interval where no stall held anybody up, or each did.
fn wilson(held: f64, count: f64) -> Option<(f64, [f64; 2])> {
    if count < 1.0 {
        return None;
    }
    let share = (held / count).min(1.0);
    let weight = Z * Z / count;
    let middle = (share + weight / 2.0) / (1.0 + weight);
    let reach = (share * (1.0 - share) * weight + weight * weight / 4.0).sqrt() / (1.0 + weight);
    let bound = |bound: f64| bound.clamp(0.0, 1.0);
    // Rounding must not take the share itself out of its interval.
    Some((share, [bound(middle - reach).min(share), bound(middle + reach).max(share)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R. G. Newcombe, *Two-sided confidence intervals for the single proportion*, 1998, table I.
    #[test]
    fn intervals_are_those_of_the_literature() {
        for (held, count, expected) in [
            (81.0, 263.0, [0.2553, 0.3662]),
            (15.0, 148.0, [0.0624, 0.1605]),
            (0.0, 20.0, [0.0, 0.1611]),
            (1.0, 29.0, [0.0061, 0.1718]),
        ] {
            let (_, found) = wilson(held, count).unwrap();
            let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-4;
            assert!(found.into_iter().zip(expected).all(near), "{held} of {count}: {found:?}");
        }
        assert_eq!(wilson(0.0, 0.0), None);
        assert_eq!(wilson(5.0, 5.0).map(|(share, [_, high])| [share, high]), Some([1.0, 1.0]));
    }
}

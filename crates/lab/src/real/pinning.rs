//! CPUs of a queue's threads.

use threadtoll_record::Placement;

/// CPUs of the last thread, which is the receiver, and of the other threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pinning {
    pub(super) others: Vec<Vec<u32>>,
    pub(super) last: Vec<u32>,
}

impl Pinning {
    /// If pinned, the last thread has the last CPU to itself, and the other threads share the
    /// remaining CPUs round-robin.
    pub(super) fn of(placement: Placement, cpus: &[u32], others: usize) -> Self {
        match (placement, cpus) {
            (Placement::Pinned, [own @ .., last]) if !own.is_empty() => Pinning {
                others: (0..others).map(|index| vec![own[index % own.len()]]).collect(),
                last: vec![*last],
            },
            (_, cpus) => Pinning { others: vec![cpus.to_vec(); others], last: cpus.to_vec() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_has_a_cpu_for_itself_and_senders_share_the_others() {
        let pinned = Pinning::of(Placement::Pinned, &[4, 5, 6], 3);
        assert_eq!(pinned, Pinning { others: vec![vec![4], vec![5], vec![4]], last: vec![6] });
        let free = Pinning::of(Placement::Free, &[0, 1], 2);
        assert_eq!(free, Pinning { others: vec![vec![0, 1], vec![0, 1]], last: vec![0, 1] });
        let same = Pinning::of(Placement::SameCpu, &[3], 1);
        assert_eq!(same, Pinning { others: vec![vec![3]], last: vec![3] });
    }
}

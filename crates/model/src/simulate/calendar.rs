//! Planned events, earliest first.
//!
//! A heap with four children per node (D. B. Johnson, *Priority queues with update and finding
//! minimum spanning trees*, Information Processing Letters 4, 1975) of 16-byte keys. Taking the
//! earliest event leaves a hole at the root, which the next planned event fills. Nearly every event
//! plans another one, so taking and planning together cost a single walk down the heap.

/// Number of low bits of a [`Tag`] that hold the thread.
const THREAD_BITS: u32 = 24;

/// A running number in the order of planning, above the bits of the thread. Zero stands for no
/// event.
pub(crate) type Tag = u64;

/// Bits of the time, above the tag. Times are never negative, so their bits sort like the times.
/// Equal times sort in the order of planning.
type Key = u128;

#[derive(Debug)]
pub(crate) struct Calendar {
    keys: Vec<Key>,
    hole: bool,
    planned: u64,
}

impl Calendar {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { keys: Vec::with_capacity(capacity), hole: false, planned: 0 }
    }

    #[inline]
    pub(crate) fn put(&mut self, at: f64, thread: u32) -> Tag {
        self.planned += 1;
        let tag = self.planned << THREAD_BITS | u64::from(thread);
        let key = u128::from(at.to_bits()) << 64 | u128::from(tag);
        if self.hole {
            self.hole = false;
            self.down(key);
        } else {
            self.keys.push(key);
            self.up(key);
        }
        tag
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<(f64, Tag, u32)> {
        if self.hole {
            self.hole = false;
            let last = self.keys.pop()?;
            if !self.keys.is_empty() {
                self.down(last);
            }
        }
        let &first = self.keys.first()?;
        self.hole = true;
        let tag = first as u64;
        Some((f64::from_bits((first >> 64) as u64), tag, (tag & ((1 << THREAD_BITS) - 1)) as u32))
    }

    #[inline]
    fn down(&mut self, key: Key) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let child = 4 * at + 1;
            let (mut least, mut least_key) = (at, key);
            if let Some(&[a, b, c, d]) = keys.get(child..child + 4) {
                let (left, left_key) = if b < a { (child + 1, b) } else { (child, a) };
                let (right, right_key) = if d < c { (child + 3, d) } else { (child + 2, c) };
                let (lower, lower_key) =
                    if right_key < left_key { (right, right_key) } else { (left, left_key) };
                if lower_key < key {
                    (least, least_key) = (lower, lower_key);
                }
            } else {
                for (index, &other) in keys.iter().enumerate().skip(child).take(4) {
                    if other < least_key {
                        (least, least_key) = (index, other);
                    }
                }
            }
            keys[at] = least_key;
            if least == at {
                return;
            }
            at = least;
        }
    }

    #[inline]
    fn up(&mut self, key: Key) {
        let mut at = self.keys.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_equal_ones_in_order_of_planning() {
        let mut calendar = Calendar::with_capacity(0);
        let mut seed = 1u64;
        for thread in 0..1000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            calendar.put((seed >> 60) as f64, thread);
        }
        let mut last = (0.0, 0);
        for round in 0..3000 {
            let (at, tag, thread) = calendar.take().unwrap();
            assert!((at, tag) > last, "{round}");
            last = (at, tag);
            if round < 2000 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                calendar.put(at + (seed >> 60) as f64, thread);
            }
        }
        assert!(calendar.take().is_none());
    }
}

//! Background load: one thread on each allowed CPU that the cell does not use. If the cell uses all
//! CPUs, one thread on each CPU competes with the cell.

use std::hint::{self, black_box};
use std::thread;
use std::time::Duration;

use threadtoll_record::Neighbour;

use crate::LabError;

use super::background_load::BackgroundLoad;

/// Memory of one stream, in bytes. It is larger than a CPU's share of any last-level cache known to
/// us.
const STREAM_BYTES: usize = 64 << 20;
/// Maximum memory of all streams of a cell together, in bytes. With many CPUs, less memory per
/// stream is enough to fill the caches.
const STREAMS_BYTES: usize = 512 << 20;
/// Bytes streamed between two checks of the stop flag.
const STREAM_STEP: usize = 64 << 10;

pub(super) fn neighbours(
    kind: Neighbour,
    cell: &[u32],
    allowed: &[u32],
) -> Result<BackgroundLoad, LabError> {
    let cpus = neighbour_cpus(cell, allowed);
    let stream = (STREAMS_BYTES / cpus.len().max(1)).clamp(STREAM_STEP, STREAM_BYTES);
    BackgroundLoad::start(&cpus, move |_| Ok(work(kind, stream)))
}

fn neighbour_cpus(cell: &[u32], allowed: &[u32]) -> Vec<u32> {
    let spare: Vec<u32> = allowed.iter().copied().filter(|cpu| !cell.contains(cpu)).collect();
    if spare.is_empty() { cell.to_vec() } else { spare }
}

fn work(kind: Neighbour, stream: usize) -> Box<dyn FnMut()> {
    match kind {
        Neighbour::Spin => Box::new(|| (0..256).for_each(|_| hint::spin_loop())),
        Neighbour::Memory => {
            // The memory is a whole number of steps, so that no step goes past the end.
            let mut memory = vec![1u64; stream / STREAM_STEP * STREAM_STEP / 8];
            let mut at = 0;
            Box::new(move || {
                let end = at + STREAM_STEP / 8;
                memory[at..end].iter_mut().for_each(|word| *word = word.wrapping_add(1));
                black_box(&memory[at]);
                at = end % memory.len();
            })
        }
        Neighbour::Churn => Box::new(|| thread::sleep(Duration::from_micros(20))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_take_spare_cpus_first() {
        assert_eq!(neighbour_cpus(&[0, 1], &[0, 1, 2, 3]), [2, 3]);
        assert_eq!(neighbour_cpus(&[0, 1], &[0, 1]), [0, 1]);
    }
}

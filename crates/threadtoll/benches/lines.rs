//! Round trips of many parked call lines: `cargo bench -p threadtoll --bench lines`.
//!
//! ```text
//!   caller ⇄ callee     both sleep at once (`Park`)
//!   caller ⇄ callee     as many lines as the row says, each calling without a pause
//!   ...
//! ```
//!
//! An end that goes to sleep may call `membarrier(2)`, of which Linux executes one at a time since
//! 6.9. Lines with `Options::fence` never do, so the ratio of the two shows what the call costs as
//! lines are added. Blocks of both alternate. With more lines than CPUs the figures include the
//! scheduler's time slices: those rows are called oversubscribed.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use threadtoll::call;
use threadtoll::wait::Wait::Park;

const LINES: [usize; 4] = [1, 4, 16, 64];
const BLOCKS: usize = 21;
const BLOCK: Duration = Duration::from_millis(100);

fn main() {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    println!(
        "p50 of a round trip, medians of {BLOCKS} blocks of {} ms, {cpus} CPUs",
        BLOCK.as_millis()
    );
    println!("{:>5}  {:>10}  {:>10}  ratio of paired blocks", "lines", "default", "fence");
    for lines in LINES {
        let mut medians = [Vec::new(), Vec::new()];
        for block in 0..BLOCKS {
            // The first of a pair takes turns.
            for at in [block % 2, 1 - block % 2] {
                medians[at].push(block_median_us(lines, at == 1));
            }
        }
        let ratios = medians[0].iter().zip(&medians[1]).map(|(default, fence)| default / fence);
        let mut ratios: Vec<f64> = ratios.collect();
        let [default, fence] = medians.map(|mut medians| median(&mut medians));
        let ratio = median(&mut ratios);
        // The sorted ratios between which the median lies with 95% confidence (order statistics of
        // 21).
        let [low, high] = [ratios[5], ratios[15]];
        let busy = if lines > cpus { "  oversubscribed" } else { "" };
        println!(
            "{lines:5}  {default:7.2} µs  {fence:7.2} µs  {ratio:.2} ({low:.2} to {high:.2}){busy}"
        );
    }
}

/// The median; sorts the values.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Median round trip of all lines, in microseconds.
fn block_median_us(lines: usize, fence: bool) -> f64 {
    let start = Barrier::new(lines);
    let mut trips: Vec<f64> = thread::scope(|scope| {
        let callers: Vec<_> = (0..lines)
            .map(|_| {
                let options = call::Options::new().wait(Park);
                let options = if fence { options.fence() } else { options };
                let (mut caller, mut callee) = options.line::<u64, u64>();
                scope.spawn(move || callee.serve(|number| number + 1));
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    let mut trips = Vec::new();
                    let mut before = began;
                    while before - began < BLOCK {
                        assert_eq!(caller.call(1), Ok(2));
                        let now = Instant::now();
                        trips.push((now - before).as_nanos() as f64 / 1e3);
                        before = now;
                    }
                    trips
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap_or_default()).collect()
    });
    median(&mut trips)
}

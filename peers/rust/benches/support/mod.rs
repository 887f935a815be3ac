//! Parts that the benchmarks share.
//!
//! A benchmark measures rows (queues) in cells (a gap, a number of senders). A *block* is one row
//! in one cell for some milliseconds; a *round* is one block of every row in every cell, in
//! shuffled order. Ratios are taken within a round.

pub(crate) mod arguments;
pub(crate) mod blocks;
pub(crate) mod observer;
pub(crate) mod place;
pub(crate) mod queues;
pub(crate) mod table;
pub(crate) mod time;

use std::fs;
use std::panic;
use std::process;

/// Prints the machine, and makes a panic end the process.
///
/// A thread that waits for a panicked one would wait for ever.
pub(crate) fn begin() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::exit(1);
    }));
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpus = threadtoll_machine::allowed_cpus().len();
    println!("{}, {cpus} CPUs allowed", model.map_or("unknown CPU", |(_, model)| model));
}
